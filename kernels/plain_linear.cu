#include "kernels/plain_linear.h"

#include "kernels/chunk.cuh"
#include "kernels/launch.h"
#include "kernels/tile_product.cuh"

namespace h3::kernels {

namespace {

// Output features are the product's rows and input rows its columns.
template <typename T>
struct LinearProblem {
  Matrix x, weight, y;
  Vector bias;

  using Tap = int;
  using Row = const T*;
  using Column = const T*;
  __host__ __device__ std::int64_t rows() const { return y.columns; }
  __host__ __device__ std::int64_t columns() const { return y.rows; }
  __host__ __device__ int depth() const { return static_cast<int>(x.columns); }
  __device__ void select(int) {}
  __device__ Tap tap(int k) const { return k; }
  __device__ Row row(std::int64_t i) const { return static_cast<const T*>(weight.data) + i * weight.stride; }
  __device__ Column column(std::int64_t j) const { return static_cast<const T*>(x.data) + j * x.stride; }
  __device__ float a(Row row, int k) const { return to_float(row[k]); }
  __device__ float b(Column column, int k) const { return to_float(column[k]); }
  __device__ void store(std::int64_t i, std::int64_t j, float sum) const {
    if (bias.data) sum += load_one(bias.data, bias.type, i);
    const std::int64_t at = j * y.stride + i;
    if (y.type == Element::f32)
      static_cast<float*>(y.data)[at] = sum;
    else
      static_cast<T*>(y.data)[at] = from_float<T>(sum);
  }
};

}  // namespace

cudaError_t plain_linear(const Matrix& x, const Matrix& weight, const Vector& bias, const Matrix& y,
                         cudaStream_t stream) {
  if (y.type != Element::f32 && y.type != x.type) return cudaErrorInvalidValue;
  if (x.type != weight.type || x.columns > 0x7fffffff) return cudaErrorInvalidValue;
  return with_type(x.type, [&](auto zero) {
    return tile_product(LinearProblem<decltype(zero)>{x, weight, y, bias}, 1, stream);
  });
}

}  // namespace h3::kernels
