// What one block of the kernel for a linear layer with SwiGLU does (linear_swiglu_sm90.h).
//
// A block computes 192 rows of 128 outputs: three warpgroups of 64 rows, each of which multiplies them by the 128 gate
// and the 128 value rows of the weight, so that a thread holds both factors of its outputs. A fourth warpgroup gives up
// its registers and only starts copies. Two blocks, one below the other, share the weight's rows: each fetches half of
// them for both. Blocks stay and walk from tile to tile; copies for the next tile run while one is finished.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/chunk.cuh"
#include "kernels/sm90.cuh"

namespace h3::kernels::swiglu_sm90 {

using namespace sm90;

inline constexpr int kWarpgroup = 128;
inline constexpr int kConsumers = 3, kGroupRows = 64, kTileRows = kConsumers * kGroupRows;
inline constexpr int kTileOutputs = 128;
inline constexpr int kBlocks = 2;  // of a cluster
inline constexpr int kDepth = 64, kStep = 16, kRowBytes = kDepth * 2;
inline constexpr int kSlots = 4;
inline constexpr int kXBytes = kTileRows * kRowBytes, kHalfBytes = kTileOutputs * kRowBytes;
inline constexpr int kSlotBytes = kXBytes + 2 * kHalfBytes;
inline constexpr int kAlignment = 1024;  // of swizzled tiles
inline constexpr int kSharedBytes = kAlignment + kSlots * kSlotBytes + 2 * kSlots * 8;
inline constexpr int kThreads = (kConsumers + 1) * kWarpgroup;
inline constexpr int kProducerRegisters = 32, kConsumerRegisters = 160;  // together what kThreads get at launch
inline constexpr std::uint16_t kEveryBlock = (1 << kBlocks) - 1;
inline constexpr int kClusterRows = kBlocks * kTileRows;
// Clusters at work at one time share so many row tiles, which the L2 cache keeps while the weight passes by.
inline constexpr int kRowTilesTogether = 11;

struct Problem {
  const f16* bias;
  f16* y;
  std::int64_t y_stride;
  int rows, outputs, depth_tiles;
  int row_tiles, column_tiles;  // of clusters
};

struct Shared {
  std::uint32_t slots, filled, freed;
  __device__ __forceinline__ explicit Shared(const void* start) {
    slots = (shared_address(start) + kAlignment - 1) & ~static_cast<std::uint32_t>(kAlignment - 1);
    filled = slots + kSlots * kSlotBytes;
    freed = filled + kSlots * 8;
  }
  // A slot is free when all consumer warps of both blocks have read it, for a copy writes to both.
  __device__ void init_barriers() const {
    for (int i = 0; i < kSlots; ++i) {
      barrier_init(filled + i * 8, 1);
      barrier_init(freed + i * 8, kBlocks * kConsumers * kWarpgroup / 32);
    }
    fence_barrier_init();
  }
};

using RingPlace = sm90::RingPlace<kSlots>;

// Cluster tiles: bands of row tiles, within a band column after column.
struct Units {
  int unit, end;
  __device__ __forceinline__ explicit Units(const Problem& p)
      : unit(static_cast<int>(blockIdx.x) / kBlocks), end(p.row_tiles * p.column_tiles) {}
  __device__ __forceinline__ bool done() const { return unit >= end; }
  __device__ __forceinline__ void advance() { unit += static_cast<int>(gridDim.x) / kBlocks; }
};

struct Tile {
  int row, output;
  __device__ __forceinline__ Tile(const Problem& p, int unit, std::uint32_t block) {
    const int band = unit / (kRowTilesTogether * p.column_tiles), first = band * kRowTilesTogether;
    const int height = min(kRowTilesTogether, p.row_tiles - first), within = unit - first * p.column_tiles;
    const int column = within / height;
    row = (first + within - column * height) * kClusterRows + static_cast<int>(block) * kTileRows;
    output = column * kTileOutputs;
  }
};

__device__ __forceinline__ void produce(const CUtensorMap& x, const CUtensorMap& weight, const Problem& p,
                                        const Shared& shared, std::uint32_t block) {
  prefetch_map(x);
  prefetch_map(weight);
  RingPlace place;
  for (Units units(p); !units.done(); units.advance()) {
    const Tile tile(p, units.unit, block);
    const int weight_row = tile.output + static_cast<int>(block) * p.outputs;  // gates, or values
    for (int t = 0; t < p.depth_tiles; ++t, place.advance()) {
      const std::uint32_t filled = shared.filled + place.slot * 8, slot = shared.slots + place.slot * kSlotBytes;
      wait(shared.freed + place.slot * 8, place.phase ^ 1);
      arrive_expecting(filled, kSlotBytes);
      copy_tile(slot, x, filled, {t * kDepth, tile.row, 0, 0});
      copy_tile_to_blocks(slot + kXBytes + block * kHalfBytes, weight, filled, {t * kDepth, weight_row, 0, 0},
                          kEveryBlock);
    }
  }
}

// One thread's part in the 64 rows of a warpgroup: of the warp's 16 rows, the lane holds lane/4 and lane/4 + 8, and of
// every 8 outputs the two at lane%4 * 2. Sum 4 j + 2 r + i is of row r and output 8 j + lane%4 * 2 + i.
struct Consumer {
  const Problem& p;
  const Shared& shared;
  std::uint32_t block;
  int group;
  bool leader;  // of its warp
  RingPlace place;
  float gate[64], value[64];

  __device__ __forceinline__ void free_slot(std::uint32_t slot) const {
    if (!leader) return;
    arrive(shared.freed + slot * 8);
    arrive_at_block(shared.freed + slot * 8, block ^ 1);
  }

  __device__ __forceinline__ void multiply(bool first) {
    wait(shared.filled + place.slot * 8, place.phase);
    const std::uint32_t slot = shared.slots + place.slot * kSlotBytes;
    const sm90::Operand x(slot + group * (kGroupRows * kRowBytes), 16), weight(slot + kXBytes, 16);
    fence_products();
#pragma unroll
    for (int step = 0; step < kDepth / kStep; ++step) {
      const int within = step * kStep * 2;
      const bool accumulate = !first || step > 0;
      Products<f16>::multiply(gate, x.at(within), weight.at(within), accumulate);
      Products<f16>::multiply(value, x.at(within), weight.at(kHalfBytes + within), accumulate);
    }
    commit_products();
  }

  template <int kPending>
  __device__ __forceinline__ void wait_both() {
    wait_products<kPending>(gate);
    wait_products<kPending>(value);
  }

  __device__ __forceinline__ void multiply_all() {
    multiply(true);
    for (int t = 1; t < p.depth_tiles; ++t) {
      const std::uint32_t last = place.slot;
      place.advance();
      multiply(false);
      wait_both<1>();
      free_slot(last);
    }
    wait_both<0>();
    free_slot(place.slot);
    place.advance();
  }

  // Two neighbouring outputs.
  __device__ __forceinline__ static std::uint32_t gated(const float* gate_sums, const float* value_sums,
                                                        __half2 gate_bias, __half2 value_bias) {
    const float2 gb = __half22float2(gate_bias), vb = __half22float2(value_bias);
    const float2 g = __half22float2(__floats2half2_rn(__fadd_rn(gate_sums[0], gb.x), __fadd_rn(gate_sums[1], gb.y)));
    const __half2 v = __floats2half2_rn(__fadd_rn(value_sums[0], vb.x), __fadd_rn(value_sums[1], vb.y));
    const __half2 y = __hmul2_rn(__floats2half2_rn(silu<f16>(g.x), silu<f16>(g.y)), v);
    return *reinterpret_cast<const std::uint32_t*>(&y);
  }

  // Exchanges among the four lanes of a quad: lane l gets every lane's element l.
  __device__ __forceinline__ static void transpose(std::uint32_t (&r)[4], int lane) {
#pragma unroll
    for (int mask = 1; mask <= 2; mask *= 2)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (i & mask) continue;
        const bool upper = (lane & mask) != 0;
        const std::uint32_t got = __shfl_xor_sync(~0u, upper ? r[i] : r[i | mask], mask);
        (upper ? r[i] : r[i | mask]) = got;
      }
  }

  __device__ __forceinline__ void store(const Tile& tile) const {
    const int lane = thread_number() % 32, quad = lane % 4, warp = thread_number() % kWarpgroup / 32;
    const int row = tile.row + group * kGroupRows + warp * 16 + lane / 4;
#pragma unroll
    for (int set = 0; set < 4; ++set) {
      __half2 gate_bias[4], value_bias[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const f16* bias = p.bias + tile.output + set * 32 + j * 8 + quad * 2;
        gate_bias[j] = *reinterpret_cast<const __half2*>(bias);
        value_bias[j] = *reinterpret_cast<const __half2*>(bias + p.outputs);
      }
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        std::uint32_t out[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int i = (set * 4 + j) * 4 + r * 2;
          out[j] = gated(gate + i, value + i, gate_bias[j], value_bias[j]);
        }
        transpose(out, quad);
        if (row + r * 8 < p.rows)
          *reinterpret_cast<uint4*>(p.y + (row + r * 8) * p.y_stride + tile.output + set * 32 + quad * 8) =
              make_uint4(out[0], out[1], out[2], out[3]);
      }
    }
  }

  __device__ __forceinline__ void run() {
    for (Units units(p); !units.done(); units.advance()) {
      multiply_all();
      store(Tile(p, units.unit, block));
    }
  }
};

}  // namespace h3::kernels::swiglu_sm90
