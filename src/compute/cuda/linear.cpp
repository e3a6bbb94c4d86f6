// Linear layers. The algorithm belongs to the kind of layer (gemm_table.h); what this file adds is how a call's
// operands are brought into the form which that algorithm needs, without changing a bit of the result.
#include <algorithm>

#include "compute/cuda/cuda_operators.h"
#include "compute/cuda/cuda_queue.h"
#include "compute/cuda/views.h"
#include "compute/named_range.h"
#include "kernels/elementwise.h"
#include "kernels/plain_linear.h"
#include "kernels/rows.h"

namespace h3 {

using namespace cuda;

namespace {

GemmKey key_of(const LinearShape& shape) {
  return {shape.k, shape.full_outputs, shape.x, shape.y, shape.bias};
}

LinearShape shape_of(const Tensor& x, const LinearWeights& w, const Tensor& y) {
  LinearShape shape{x.size(1), w.full_outputs, x.dtype, y.dtype, {}};
  if (w.bias) shape.bias = w.bias.dtype;
  return shape;
}

bool aligned(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % GemmTable::kAlignment == 0;
}

bool aligned_rows(const Tensor& t) {
  const auto pitch = static_cast<std::uint64_t>(t.stride(0)) * size_of(t.dtype);
  return aligned(t.data) && (t.size(0) <= 1 || pitch % GemmTable::kAlignment == 0);
}

// Hands out the queue's scratch memory from the start.
class Scratch {
 public:
  explicit Scratch(CudaQueue& queue) : at_(static_cast<char*>(queue.scratch())), end_(at_ + CudaQueue::kScratch) {}
  std::int64_t left() const { return end_ - at_; }
  Tensor take(Shape shape, DType dtype) {
    const Tensor t(at_, shape, dtype, Place::device);
    at_ += (t.bytes() + kUnit - 1) / kUnit * kUnit;
    CHECK_LE(at_ - end_, 0);
    return t;
  }
  static constexpr std::size_t kUnit = 256;

 private:
  char* at_;
  char* end_;
};

struct Call {
  CudaQueue& queue;
  const GemmKey& key;
  const cublasLtMatmulAlgo_t& algorithm;

  void multiply(const Tensor& x, const Tensor& weight, const void* bias, const Tensor& y) const {
    const auto stride = [](const Tensor& t) { return t.size(0) > 1 ? t.stride(0) : t.size(1); };
    GemmProblem p(key, {x.size(0), weight.size(0), stride(x), stride(weight), stride(y)}, bias);
    const float one = 1, zero = 0;
    H3_CUDA(cublasLtMatmul(queue.blas(), p.operation(), &one, weight.data, p.weight(), x.data, p.x(), &zero, y.data,
                           p.y(), y.data, p.y(), &algorithm, queue.workspace(), CudaQueue::kWorkspace, queue.stream()));
  }

  void copy(const Tensor& from, const Tensor& to) const {
    H3_CUDA(kernels::move_rows(byte_rows(from), nullptr, from.size(0),
                               from.size(1) * static_cast<std::int64_t>(size_of(from.dtype)), byte_rows(to),
                               queue.stream()));
  }

  // Through aligned copies, block by block. The rows of weights that fill the last block are whatever memory holds;
  // what comes of them is dropped.
  void multiply_staged(Scratch scratch, const Tensor& x, const Tensor& weight, const char* bias,
                       const Tensor& y) const {
    constexpr std::int64_t kOutputs = 64;
    const std::int64_t k = x.size(1), row_bytes = (k + kOutputs) * static_cast<std::int64_t>(sizeof(float)) + 64;
    const std::int64_t rows = (scratch.left() - static_cast<std::int64_t>(4 * Scratch::kUnit)) / row_bytes - kOutputs;
    H3_CHECK(rows > 0, fmt::format("a linear layer over {} values does not fit the workspace", k));
    const Tensor staged_weight = scratch.take({kOutputs, k}, x.dtype);
    const Tensor staged_bias = scratch.take({kOutputs}, y.dtype);
    const std::int64_t step = std::min(rows, x.size(0));
    const Tensor staged_x = scratch.take({step, k}, x.dtype);
    const Tensor staged_y = scratch.take({step, kOutputs}, y.dtype);
    for (std::int64_t n = 0; n < weight.size(0); n += kOutputs) {
      const std::int64_t outputs = std::min(kOutputs, weight.size(0) - n);
      copy(weight.rows(n, n + outputs), staged_weight.rows(0, outputs));
      const auto bias_bytes = static_cast<std::int64_t>(size_of(y.dtype));
      if (bias)
        H3_CUDA(cudaMemcpyAsync(staged_bias.data, bias + n * bias_bytes, static_cast<std::size_t>(outputs * bias_bytes),
                                cudaMemcpyDeviceToDevice, queue.stream()));
      for (std::int64_t m = 0; m < x.size(0); m += step) {
        const std::int64_t count = std::min(step, x.size(0) - m);
        copy(x.rows(m, m + count), staged_x.rows(0, count));
        multiply(staged_x.rows(0, count), staged_weight, staged_bias.data, staged_y.rows(0, count));
        copy(staged_y.rows(0, count).slice(1, 0, outputs), y.rows(m, m + count).slice(1, n, n + outputs));
      }
    }
  }

  // The bias in y's type and aligned, in scratch memory where it is not so already.
  const void* prepared_bias(Scratch& scratch, const Tensor& bias, DType dtype) const {
    if (!bias || (bias.dtype == dtype && aligned(bias.data))) return bias.data;
    const Tensor copy = scratch.take({1, bias.size(0)}, dtype);
    kernels::Matrix from{bias.data, 1, bias.size(0), bias.size(0), element_of(bias.dtype)};
    H3_CUDA(kernels::cast(from, matrix(copy), queue.stream()));
    return copy.data;
  }
};

}  // namespace

void CudaOperators::prepare_linear(Queue& q, const LinearShape& shape) {
  gemms_.algorithm(cuda_queue(q).blas(), CudaQueue::kWorkspace, key_of(shape));
}

void CudaOperators::linear(Queue& q, const Tensor& x, const LinearWeights& w, const Tensor& y) {
  const NamedRange range("linear");
  CudaQueue& queue = cuda_queue(q);
  CHECK_EQ(x.rank(), 2);
  const std::int64_t m = x.size(0), k = x.size(1), n = w.weight.size(0);
  const kernels::Matrix from = matrix(x, m, k), weight = matrix(w.weight, n, k), to = matrix(y, m, n);
  const kernels::Vector bias = vector(w.bias, n);
  check_dtype(w.weight, x.dtype);
  CHECK_LE(n, w.full_outputs);
  if (m == 0 || n == 0) return;
  H3_CHECK(y.dtype == x.dtype || y.dtype == DType::f32, "a linear layer's result has its operands' type or f32");
  const GemmKey key = key_of(shape_of(x, w, y));
  const auto& algorithm = gemms_.algorithm(queue.blas(), CudaQueue::kWorkspace, key);
  if (!algorithm) {
    H3_CUDA(kernels::plain_linear(from, weight, bias, to, queue.stream()));
    return;
  }
  const Call call{queue, key, *algorithm};
  Scratch scratch(queue);
  const auto y_bytes = static_cast<std::uint64_t>(n) * size_of(y.dtype);
  const bool direct =
      aligned_rows(x) && aligned_rows(w.weight) && aligned_rows(y) && y_bytes % GemmTable::kAlignment == 0;
  const void* prepared = call.prepared_bias(scratch, w.bias, y.dtype);
  if (direct)
    call.multiply(x, w.weight, prepared, y);
  else
    call.multiply_staged(scratch, x, w.weight, static_cast<const char*>(prepared), y);
}

}  // namespace h3
