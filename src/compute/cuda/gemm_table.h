// Which cuBLASLt algorithm computes which kind of linear layer. It is the first that the library's heuristic names at a
// nominal row count for (k, outputs of the full layer, element types, bias), or the one that gemm_choice.h prefers to
// it, and then used for every number of rows and every slice of outputs, so that a result does not depend on how the
// work is cut (spec/dit.md 7.4). Algorithms that cut the
// sum over k are never taken; where none is left, the layer runs on the plain kernel of kernels/plain_linear.h.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "compute/cuda/cuda_error.h"

namespace h3 {

struct GemmKey {
  std::int64_t k = 0, outputs = 0;
  DType x = DType::f32, y = DType::f32;
  std::optional<DType> bias;
  auto operator<=>(const GemmKey&) const = default;
  std::string text() const;
};

// y^T [n, m] = weight^T [k, n]^T . x^T [k, m] + bias in cuBLASLt's column-major words. `bias` has y's type.
class GemmProblem {
 public:
  struct Sizes {
    std::int64_t rows, outputs, x_stride, weight_stride, y_stride;
  };
  GemmProblem(const GemmKey& key, const Sizes& sizes, const void* bias);
  cublasLtMatmulDesc_t operation() { return &operation_; }
  cublasLtMatrixLayout_t weight() { return &weight_; }
  cublasLtMatrixLayout_t x() { return &x_; }
  cublasLtMatrixLayout_t y() { return &y_; }

 private:
  cublasLtMatmulDescOpaque_t operation_;
  cublasLtMatrixLayoutOpaque_t weight_, x_, y_;
};

class GemmTable {
 public:
  // `capability` as 90 for 9.0.
  explicit GemmTable(int capability) : capability_(capability) {}
  static constexpr std::int64_t kNominalRows = 4096;
  // Bytes by which every operand of a call is aligned: pointers, row strides, and rows of y.
  static constexpr std::uint32_t kAlignment = 16;
  // The algorithm of a kind of layer, chosen at the first call; none: the plain kernel computes it.
  const std::optional<cublasLtMatmulAlgo_t>& algorithm(cublasLtHandle_t handle, std::size_t workspace,
                                                       const GemmKey& key);
  // Every algorithm that the heuristic offers for a kind of layer and that obeys the rules above, best first.
  static std::vector<cublasLtMatmulAlgo_t> candidates(cublasLtHandle_t handle, std::size_t workspace,
                                                      const GemmKey& key, std::int64_t nominal_rows = kNominalRows);
  // One line a kind of layer; `adopt` takes such a line from another rank in place of a choice of its own.
  std::vector<std::string> lines() const;
  void adopt(const std::string& line);

 private:
  std::optional<cublasLtMatmulAlgo_t> choose(cublasLtHandle_t handle, std::size_t workspace, const GemmKey& key) const;

  int capability_;
  std::map<GemmKey, std::optional<cublasLtMatmulAlgo_t>> algorithms_;
};

}  // namespace h3
