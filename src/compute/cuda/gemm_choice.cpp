#include "compute/cuda/gemm_choice.h"

namespace h3 {

namespace {

constexpr int kGroupOfTiles = 12579;  // rows of a group of the video decoder, seven tiles

constexpr GemmConfig kTile128x128{66, CUBLASLT_MATMUL_TILE_128x128, CUBLASLT_MATMUL_STAGES_64xAUTO, 1,
                                  CUBLASLT_CLUSTER_SHAPE_2x1x1};
constexpr GemmConfig kTile128x288{66, CUBLASLT_MATMUL_TILE_128x288, CUBLASLT_MATMUL_STAGES_64xAUTO, 5,
                                  CUBLASLT_CLUSTER_SHAPE_2x1x1};

// The video decoder's layers on an H200, measured in turns at its power limit for kGroupOfTiles rows; in milliseconds,
// beside the algorithm that the heuristic names first: 0.501 (0.526), 0.163 (0.192), 0.639 (0.744), 0.708 (0.812).
constexpr GemmChoice kChoices[] = {
    {90, {2048, 6144, DType::f16, DType::f16, DType::f16}, kGroupOfTiles, kTile128x288},
    {90, {2048, 2048, DType::f16, DType::f16, DType::f16}, GemmTable::kNominalRows, kTile128x128},
    {90, {8192, 2048, DType::f16, DType::f16, DType::f16}, GemmTable::kNominalRows, kTile128x128},
    {90, {6144, 3072, DType::f16, DType::f32, DType::f32}, GemmTable::kNominalRows, kTile128x128},
};

template <typename T>
int attribute(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t name) {
  T value{};
  H3_CUDA(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, name, &value, sizeof value, nullptr));
  return static_cast<int>(value);
}

GemmConfig config_of(const cublasLtMatmulAlgo_t& a) {
  return {attribute<std::int32_t>(a, CUBLASLT_ALGO_CONFIG_ID),
          attribute<std::uint32_t>(a, CUBLASLT_ALGO_CONFIG_TILE_ID),
          attribute<std::uint32_t>(a, CUBLASLT_ALGO_CONFIG_STAGES_ID),
          attribute<std::uint32_t>(a, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION),
          attribute<std::uint16_t>(a, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID)};
}

}  // namespace

const GemmChoice* gemm_choice(int capability, const GemmKey& layer) {
  for (const GemmChoice& choice : kChoices)
    if (choice.capability == capability && choice.layer == layer) return &choice;
  return nullptr;
}

std::optional<std::size_t> find_config(std::span<const cublasLtMatmulAlgo_t> candidates, const GemmConfig& config) {
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (config_of(candidates[i]) == config) return i;
  return {};
}

}  // namespace h3
