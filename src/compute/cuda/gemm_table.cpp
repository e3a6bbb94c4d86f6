#include "compute/cuda/gemm_table.h"

#include <algorithm>
#include <array>
#include <span>
#include <sstream>

#include "base/error.h"
#include "compute/cuda/gemm_choice.h"

namespace h3 {

namespace {

constexpr std::uint32_t kAlignment = GemmTable::kAlignment;

cudaDataType_t cuda_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    default:
      check_failed(__FILE__, __LINE__, "a float dtype", std::string(name_of(dtype)));
  }
}

bool whole_pieces(std::int64_t elements, DType dtype) {
  return elements * static_cast<std::int64_t>(size_of(dtype)) % kAlignment == 0;
}

// Is a sum over k computed in one piece and one order?
bool keeps_sums_whole(const cublasLtMatmulAlgo_t& algorithm) {
  std::int32_t pieces = 0;
  std::uint32_t scheme = 0;
  H3_CUDA(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &pieces, sizeof pieces,
                                               nullptr));
  H3_CUDA(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme,
                                               sizeof scheme, nullptr));
  return (pieces == 0 || pieces == 1) && scheme == CUBLASLT_REDUCTION_SCHEME_NONE;
}

// Questions about a problem need a bias pointer that is as aligned as real ones; nobody reads it.
GemmProblem problem_of(const GemmKey& key, std::int64_t rows, std::int64_t outputs) {
  return GemmProblem(key, {rows, outputs, key.k, key.k, key.outputs},
                     reinterpret_cast<const void*>(std::uintptr_t{kAlignment}));
}

// Does the algorithm take single rows, odd numbers of rows, and slices of a few outputs?
bool takes_slices(cublasLtHandle_t handle, std::size_t workspace, const GemmKey& key,
                  const cublasLtMatmulAlgo_t& algorithm) {
  for (const std::int64_t outputs : {key.outputs, std::min<std::int64_t>(key.outputs, 16)})
    for (const std::int64_t rows : {1, 2, 3, 17, 129, 4096, 65537}) {
      GemmProblem p = problem_of(key, rows, outputs);
      cublasLtMatmulHeuristicResult_t result{};
      if (cublasLtMatmulAlgoCheck(handle, p.operation(), p.weight(), p.x(), p.y(), p.y(), &algorithm, &result) !=
              CUBLAS_STATUS_SUCCESS ||
          result.workspaceSize > workspace)
        return false;
    }
  return true;
}

class Preference {
 public:
  explicit Preference(std::size_t workspace) {
    H3_CUDA(cublasLtMatmulPreferenceInit(&preference_));
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace));
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE));
    for (const auto operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      set(operand, kAlignment);
  }
  cublasLtMatmulPreference_t get() { return &preference_; }

 private:
  template <typename T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    H3_CUDA(cublasLtMatmulPreferenceSetAttribute(&preference_, attribute, &value, sizeof value));
  }
  cublasLtMatmulPreferenceOpaque_t preference_;
};

std::string hex_of(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  for (const std::uint64_t word : algorithm.data) text += fmt::format("{:016x}", word);
  return text;
}

cublasLtMatmulAlgo_t algorithm_of(const std::string& hex) {
  cublasLtMatmulAlgo_t algorithm{};
  constexpr std::size_t kDigits = 16;
  CHECK_EQ(hex.size(), kDigits * std::size(algorithm.data));
  for (std::size_t i = 0; i < std::size(algorithm.data); ++i)
    algorithm.data[i] = std::stoull(hex.substr(i * kDigits, kDigits), nullptr, 16);
  return algorithm;
}

DType dtype_of(const std::string& name) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    if (name == name_of(dtype)) return dtype;
  check_failed(__FILE__, __LINE__, "a float dtype", name);
}

}  // namespace

std::string GemmKey::text() const {
  return fmt::format("gemm {} {} {} {} {}", k, outputs, name_of(x), name_of(y), bias ? name_of(*bias) : "none");
}

GemmProblem::GemmProblem(const GemmKey& key, const Sizes& s, const void* bias) {
  const auto wide = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  H3_CUDA(cublasLtMatmulDescInit(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const cublasOperation_t transpose = CUBLAS_OP_T;
  H3_CUDA(cublasLtMatmulDescSetAttribute(&operation_, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose));
  if (key.bias) {
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    H3_CUDA(cublasLtMatmulDescSetAttribute(&operation_, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    H3_CUDA(cublasLtMatmulDescSetAttribute(&operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
  }
  H3_CUDA(cublasLtMatrixLayoutInit(&weight_, cuda_type(key.x), wide(key.k), wide(s.outputs), s.weight_stride));
  H3_CUDA(cublasLtMatrixLayoutInit(&x_, cuda_type(key.x), wide(key.k), wide(s.rows), s.x_stride));
  H3_CUDA(cublasLtMatrixLayoutInit(&y_, cuda_type(key.y), wide(s.outputs), wide(s.rows), s.y_stride));
}

std::vector<cublasLtMatmulAlgo_t> GemmTable::candidates(cublasLtHandle_t handle, std::size_t workspace,
                                                        const GemmKey& key, std::int64_t nominal_rows) {
  // A half result that takes a bias of higher precision is one rounding that the library's epilogue does not offer.
  const bool bias_fits = !key.bias || key.y == DType::f32 || *key.bias == key.y;
  if (!bias_fits || !whole_pieces(key.k, key.x) || !whole_pieces(key.outputs, key.y)) return {};
  constexpr int kAsked = 32;
  std::array<cublasLtMatmulHeuristicResult_t, kAsked> results{};
  Preference preference(workspace);
  GemmProblem p = problem_of(key, nominal_rows, key.outputs);
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, p.operation(), p.weight(), p.x(), p.y(), p.y(),
                                                               preference.get(), kAsked, results.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  check_call(status, "cublasLtMatmulAlgoGetHeuristic");
  std::vector<cublasLtMatmulAlgo_t> taken;
  for (const auto& result : std::span(results).first(static_cast<std::size_t>(found)))
    if (result.state == CUBLAS_STATUS_SUCCESS && keeps_sums_whole(result.algo) &&
        takes_slices(handle, workspace, key, result.algo))
      taken.push_back(result.algo);
  return taken;
}

const std::optional<cublasLtMatmulAlgo_t>& GemmTable::algorithm(cublasLtHandle_t handle, std::size_t workspace,
                                                                const GemmKey& key) {
  const auto known = algorithms_.find(key);
  if (known != algorithms_.end()) return known->second;
  return algorithms_[key] = choose(handle, workspace, key);
}

std::optional<cublasLtMatmulAlgo_t> GemmTable::choose(cublasLtHandle_t handle, std::size_t workspace,
                                                      const GemmKey& key) const {
  if (const GemmChoice* choice = gemm_choice(capability_, key)) {
    const auto offered = candidates(handle, workspace, key, choice->nominal_rows);
    if (const auto found = find_config(offered, choice->config)) return offered[*found];
  }
  const auto offered = candidates(handle, workspace, key);
  if (offered.empty()) return {};
  return offered.front();
}

std::vector<std::string> GemmTable::lines() const {
  std::vector<std::string> lines;
  for (const auto& [key, algorithm] : algorithms_)
    lines.push_back(key.text() + " " + (algorithm ? hex_of(*algorithm) : "plain"));
  return lines;
}

void GemmTable::adopt(const std::string& line) {
  std::istringstream in(line);
  std::string word, x, y, bias, algorithm;
  GemmKey key;
  in >> word >> key.k >> key.outputs >> x >> y >> bias >> algorithm;
  H3_CHECK(in && word == "gemm", line);
  key.x = dtype_of(x);
  key.y = dtype_of(y);
  if (bias != "none") key.bias = dtype_of(bias);
  auto& chosen = algorithms_[key];
  chosen.reset();
  if (algorithm != "plain") chosen = algorithm_of(algorithm);
}

}  // namespace h3
