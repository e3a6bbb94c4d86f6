// Where a patch lies in its picture, told to the vision tower twice: a learned table interpolated to the grid, and a
// rotary table over rows and columns (spec/text.md 4.3, 4.4). Rows are patches in merge-block order.
#pragma once

#include <cstdint>

#include "compute/tensor.h"
#include "weights/model_config.h"

namespace h3 {

struct PatchPlace {
  std::int64_t row = 0, column = 0;
};
// The place of patch i of a grid with `columns` columns: 2 x 2 blocks row by row, inside a block row by row.
PatchPlace patch_place(std::int64_t i, std::int64_t columns);

// Patches [first, first + out.size(0)) of a grid: out [n, hidden] (host, f32 or bf16) from the learned table
// [side * side, hidden]. Interpolated in float32, rounded once.
void fill_vision_positions(const Tensor& table, std::int64_t rows, std::int64_t columns, std::int64_t first,
                           const Tensor& out);

// cos and sin [rows * columns, head_dim / 2] f32, host: the row's angles, then the column's.
void fill_vision_rope(const VisionConfig& config, std::int64_t rows, std::int64_t columns, const Tensor& cos,
                      const Tensor& sin);

}  // namespace h3
