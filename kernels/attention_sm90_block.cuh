// What one block of the attention kernel does (attention_sm90.h says how it computes): the shapes of its tiles, its
// shared memory, the producer that fills the ring of tiles, and the consumers that turn tiles into output rows.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/sm90.cuh"

namespace h3::kernels::attention_sm90 {

using namespace sm90;

inline constexpr int kSlab = 64;                    // what one 128-byte swizzled row holds
inline constexpr int kWarpgroup = 128, kWarp = 32;  // threads
inline constexpr int kConsumers = 3, kGroupRows = 64, kTileRows = kConsumers * kGroupRows;
inline constexpr int kStep = 16;  // depth of one matrix instruction
inline constexpr int kSlots = 8;
inline constexpr int kBlocks = 2;  // of a cluster
// Powers of two by which a logit may exceed its row's reference before the row is rescaled. With 8 there are next to no
// rescales and the kernel is 2 % faster, but the largest weight is then seldom exactly 1: 1 % more rounding error.
inline constexpr float kHeadroom = 0;
inline constexpr int kThreads = (kConsumers + 1) * kWarpgroup;
inline constexpr int kProducerRegisters = 32, kConsumerRegisters = 160;  // together what kThreads get at launch
inline constexpr int kMostRows = 1 << 30;
inline constexpr std::uint16_t kEveryBlock = (1 << kBlocks) - 1;

inline constexpr int kRowBytes = kSlab * 2;
inline constexpr int kAlignment = 1024;  // of swizzled tiles

// What differs by element type and head size. `kSteps` of a query row's kHeadSize / kStep are kept in registers: what
// the register file has room for.
template <typename T, int kHead, int kKeys, int kSteps>
struct Kind {
  using Element = T;
  static constexpr int kHeadSize = kHead, kTileKeys = kKeys, kStepsInRegisters = kSteps;
  static constexpr int kSlabs = kHeadSize / kSlab;
  static constexpr int kQueryBytes = kTileRows * kHeadSize * 2, kQuerySlab = kTileRows * kRowBytes;
  static constexpr int kSlotBytes = kTileKeys * kHeadSize * 2, kSlotSlab = kTileKeys * kRowBytes;
  static constexpr int kSharedBytes = kAlignment + kQueryBytes + kSlots * kSlotBytes + (2 * kSlots + 2) * 8;
  // Of a tile each block of a cluster fetches one slab, or half the keys where there is but one slab.
  static constexpr bool kBySlab = kSlabs == kBlocks;
  static constexpr int kBoxKeys = kBySlab ? kTileKeys : kTileKeys / kBlocks;
  static_assert(kBySlab || (kSlabs == 1 && kBoxKeys % 8 == 0), "whole slabs, or groups of eight swizzled rows");
};
using Bf16Size128 = Kind<__nv_bfloat16, 128, 80, 2>;
using F16Size64 = Kind<__half, 64, 96, 4>;

// `heads` are those of one sequence; head h of sequence s is number s * heads + h.
struct Problem {
  void* o;
  std::int64_t row_stride, head_stride, sequence_stride;
  int rows_q, rows_k, heads, sequences;
  bool sanitize;
  int key_tiles, units_per_head;  // a unit is the work of a cluster: kBlocks query tiles of one head
  float scale_log2;               // logit to power of two
};

// Addresses in shared memory: the query tile, the ring of key and value tiles, and their barriers.
template <typename Kind>
struct Shared {
  std::uint32_t query, slots, filled, freed, query_filled, query_freed;

  __device__ __forceinline__ explicit Shared(const void* start) {
    query = (shared_address(start) + kAlignment - 1) & ~static_cast<std::uint32_t>(kAlignment - 1);
    slots = query + Kind::kQueryBytes;
    filled = slots + kSlots * Kind::kSlotBytes;
    freed = filled + kSlots * 8;
    query_filled = freed + kSlots * 8;
    query_freed = query_filled + 8;
  }
  __device__ __forceinline__ std::uint32_t slot(std::uint32_t i) const { return slots + i * Kind::kSlotBytes; }

  // A slot is free when all consumer warps of all blocks of the cluster have read it, for a copy writes to all blocks.
  __device__ void init_barriers() const {
    for (int i = 0; i < kSlots; ++i) {
      barrier_init(filled + i * 8, 1);
      barrier_init(freed + i * 8, kBlocks * kConsumers * kWarpgroup / kWarp);
    }
    barrier_init(query_filled, 1);
    barrier_init(query_freed, kConsumers * kWarpgroup / kWarp);
    fence_barrier_init();
  }
};

// A place in the ring. Producer and consumers walk it in one order: key tile j, then value tile j - 1.
using RingPlace = sm90::RingPlace<kSlots>;

// Units in head-major order, so that the blocks at work at one time share their keys in the L2 cache.
struct Units {
  int unit, step, end;
  __device__ __forceinline__ explicit Units(const Problem& problem)
      : unit(blockIdx.x / kBlocks),
        step(gridDim.x / kBlocks),
        end(problem.units_per_head * problem.heads * problem.sequences) {}
  __device__ __forceinline__ bool done() const { return unit >= end; }
  __device__ __forceinline__ void advance() { unit += step; }
};

struct QueryTile {
  int sequence, head, row;
  __device__ __forceinline__ QueryTile(const Problem& problem, int unit, std::uint32_t block)
      : sequence(unit / problem.units_per_head / problem.heads),
        head(unit / problem.units_per_head - sequence * problem.heads),
        row((unit % problem.units_per_head * kBlocks + static_cast<int>(block)) * kTileRows) {}
};

// One thread's part in filling the ring.
template <typename Kind>
struct Producer {
  const Problem& problem;
  const Shared<Kind>& shared;
  std::uint32_t block;
  RingPlace place;

  __device__ __forceinline__ void load(const CUtensorMap& map, int tile, const QueryTile& of) {
    const std::uint32_t filled = shared.filled + place.slot * 8;
    wait(shared.freed + place.slot * 8, place.phase ^ 1);
    arrive_expecting(filled, Kind::kSlotBytes);
    const int part = static_cast<int>(block);
    if constexpr (Kind::kBySlab) {
      copy_tile_to_blocks(shared.slot(place.slot) + block * Kind::kSlotSlab, map, filled,
                          {0, tile * Kind::kTileKeys, part, of.head}, kEveryBlock);
    } else {
      copy_tile_to_blocks(shared.slot(place.slot) + block * (Kind::kBoxKeys * kRowBytes), map, filled,
                          {0, tile * Kind::kTileKeys + part * Kind::kBoxKeys, of.sequence, of.head}, kEveryBlock);
    }
    place.advance();
  }

  __device__ __forceinline__ void run(const CUtensorMap& q, const CUtensorMap& k, const CUtensorMap& v) {
    prefetch_map(q);
    prefetch_map(k);
    prefetch_map(v);
    std::uint32_t query_phase = 1;
    for (Units units(problem); !units.done(); units.advance()) {
      const QueryTile tile(problem, units.unit, block);
      load(k, problem.key_tiles - 1, tile);
      wait(shared.query_freed, query_phase);
      query_phase ^= 1;
      arrive_expecting(shared.query_filled, Kind::kQueryBytes);
      copy_tile(shared.query, q, shared.query_filled, {0, tile.row, Kind::kBySlab ? 0 : tile.sequence, tile.head});
      for (int t = problem.key_tiles - 1; t >= 0; --t) {
        if (t > 0) load(k, t - 1, tile);
        load(v, t, tile);
      }
    }
  }
};

// One thread's part in the rows of a warpgroup. A product's result lies in the threads so: of the warp's 16 rows, the
// lane holds rows lane/4 and lane/4 + 8, here 0 and 1, and of every 8 columns the two at lane%4 * 2. Element i of a
// result belongs to row i/2 % 2 and column i/4 * 8 + lane%4 * 2 + i%2. Four lanes (a quad) share a row.
template <typename Kind>
struct Consumer {
  using Element = typename Kind::Element;
  static constexpr int kHeadSize = Kind::kHeadSize, kTileKeys = Kind::kTileKeys;
  static constexpr int kStepsInRegisters = Kind::kStepsInRegisters;

  const Problem& problem;
  const Shared<Kind>& shared;
  std::uint32_t block;
  int group;    // which of the consumers
  bool leader;  // of its warp
  RingPlace place;

  std::uint32_t query[kStepsInRegisters][4];  // the first steps of the query rows, as left operand
  float logits[kTileKeys / 2];
  std::uint32_t weights[kTileKeys / kStep][4];  // in the element type, as left operand
  float output[kHeadSize / 2];
  float shift[2];  // of each row: minus the largest logit so far, as a power of two
  float sum[2];    // of this thread's weights

  // ---- hand-over of slots and turns

  __device__ __forceinline__ std::uint32_t take_slot() {
    wait(shared.filled + place.slot * 8, place.phase);
    const std::uint32_t slot = place.slot;
    place.advance();
    return slot;
  }
  __device__ __forceinline__ void free_slot(std::uint32_t slot) const {
    if (!leader) return;
    arrive(shared.freed + slot * 8);
    arrive_at_block(shared.freed + slot * 8, block ^ 1);
  }
  __device__ __forceinline__ void free_query() const {
    if (leader) arrive(shared.query_freed);
  }
  // Turns at the matrix units go round the consumers; barrier 1 + group opens a group's turn.
  __device__ __forceinline__ void await_turn() const { named_sync(1 + group, 2 * kWarpgroup); }
  __device__ __forceinline__ void pass_turn() const {
    named_arrive(1 + (group + 1 == kConsumers ? 0 : group + 1), 2 * kWarpgroup);
  }

  // ---- products

  __device__ __forceinline__ void load_query() {
    const int lane = thread_number() % kWarp, row = (thread_number() - kWarpgroup) / kWarp * 16 + lane % 16;
#pragma unroll
    for (int step = 0; step < kStepsInRegisters; ++step) {
      const int chunk = step * 2 + lane / 16;  // of 16 bytes; the swizzle exchanges chunks within eight rows
      load_matrices(query[step], shared.query + row * kRowBytes + ((chunk ^ row % 8) << 4));
    }
  }

  __device__ __forceinline__ void start_logits(std::uint32_t slot) {
    const Operand q(shared.query + group * (kGroupRows * kRowBytes), 16), k(shared.slot(slot), 16);
#pragma unroll
    for (int step = 0; step < kHeadSize / kStep; ++step) {
      const int slab = step / (kSlab / kStep), within = step % (kSlab / kStep) * kStep * 2;
      const std::uint64_t keys = k.at(slab * Kind::kSlotSlab + within);
      if (step < kStepsInRegisters) {
        Products<Element>::multiply(logits, query[step], keys, step > 0);
      } else {
        Products<Element>::multiply(logits, q.at(slab * Kind::kQuerySlab + within), keys, step > 0);
      }
    }
    commit_products();
  }

  __device__ __forceinline__ void start_output(std::uint32_t slot) {
    const Operand v(shared.slot(slot), Kind::kSlotSlab);
#pragma unroll
    for (int step = 0; step < kTileKeys / kStep; ++step) {
      Products<Element>::multiply_transposed(output, weights[step], v.at(step * kStep * kRowBytes));
    }
    commit_products();
  }

  // ---- softmax

  // Keys from `valid` on do not exist.
  __device__ __forceinline__ void mask(int valid) {
    const int first = thread_number() % 4 * 2;
#pragma unroll
    for (int i = 0; i < kTileKeys / 2; ++i) {
      if (i / 4 * 8 + first + i % 2 >= valid) logits[i] = -INFINITY;
    }
  }

  // The largest logits of the two rows among this thread's.
  __device__ __forceinline__ float2 largest() const {
    float even[2] = {logits[0], logits[2]}, odd[2] = {logits[1], logits[3]};
#pragma unroll
    for (int i = 4; i < kTileKeys / 2; i += 4) {
      even[0] = fmaxf(even[0], logits[i]);
      odd[0] = fmaxf(odd[0], logits[i + 1]);
      even[1] = fmaxf(even[1], logits[i + 2]);
      odd[1] = fmaxf(odd[1], logits[i + 3]);
    }
    return {fmaxf(even[0], odd[0]), fmaxf(even[1], odd[1])};
  }

  __device__ __forceinline__ static float largest_of_quad(float x) {
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
  }
  __device__ __forceinline__ static float sum_of_quad(float x) {
    x = __fadd_rn(x, __shfl_xor_sync(~0u, x, 1));
    return __fadd_rn(x, __shfl_xor_sync(~0u, x, 2));
  }

  __device__ __forceinline__ float shift_for(float logit) const {
    return -__fmul_rn(logit, problem.scale_log2);
  }
  __device__ __forceinline__ bool exceeds(int row, float logit) const {
    return __fmaf_rn(logit, problem.scale_log2, shift[row]) > kHeadroom;
  }

  __device__ __forceinline__ void set_shifts() {
    const float2 top = largest();
    shift[0] = shift_for(largest_of_quad(top.x));
    shift[1] = shift_for(largest_of_quad(top.y));
  }

  // Where a row has a new largest logit, what was summed so far is scaled to it. All lanes of a quad decide alike;
  // whether other rows of the warp come along, for a factor of exactly 1, changes nothing.
  __device__ __forceinline__ void update_shifts(float2 top) {
    if (!__any_sync(~0u, exceeds(0, top.x) || exceeds(1, top.y))) return;
    top.x = largest_of_quad(top.x);
    top.y = largest_of_quad(top.y);
    const float next[2] = {exceeds(0, top.x) ? shift_for(top.x) : shift[0],
                           exceeds(1, top.y) ? shift_for(top.y) : shift[1]};
    const float factor[2] = {exp2_fast(__fadd_rn(next[0], -shift[0])), exp2_fast(__fadd_rn(next[1], -shift[1]))};
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      shift[row] = next[row];
      sum[row] = __fmul_rn(sum[row], factor[row]);
    }
#pragma unroll
    for (int i = 0; i < kHeadSize / 2; ++i) output[i] = __fmul_rn(output[i], factor[i / 2 % 2]);
  }

  // Logits to weights: in float32 into the sums, in the element type for the product.
  __device__ __forceinline__ void weigh() {
#pragma unroll
    for (int i = 0; i < kTileKeys / 2; i += 2) {
      const int row = i / 2 % 2;
      const float a = exp2_fast(__fmaf_rn(logits[i], problem.scale_log2, shift[row]));
      const float b = exp2_fast(__fmaf_rn(logits[i + 1], problem.scale_log2, shift[row]));
      sum[row] = __fadd_rn(sum[row], __fadd_rn(a, b));
      weights[i / 8][i / 2 % 4] = pack<Element>(a, b);
    }
  }

  // ---- a query tile

  __device__ __forceinline__ void first_keys() {
    const std::uint32_t keys = take_slot();
    fence_products();
    start_logits(keys);
    wait_products<0>(logits);
    free_slot(keys);
    const int valid = problem.rows_k - (problem.key_tiles - 1) * kTileKeys;
    if (valid < kTileKeys) mask(valid);
    set_shifts();
    weigh();
  }

  __device__ __forceinline__ void next_keys() {
    const std::uint32_t keys = take_slot();
    await_turn();
    fence_products();
    start_logits(keys);
    const std::uint32_t values = take_slot();
    fence_products();
    start_output(values);
    pass_turn();
    wait_products<1>(logits);
    free_slot(keys);
    const float2 top = largest();
    wait_products<0>(output);
    free_slot(values);
    update_shifts(top);
    weigh();
  }

  __device__ __forceinline__ void last_values() {
    const std::uint32_t values = take_slot();
    fence_products();
    start_output(values);
    wait_products<0>(output);
    free_slot(values);
  }

  __device__ __forceinline__ float finished(float x) const {
    if constexpr (std::is_same_v<Element, __half>) {
      constexpr float kLargestF16 = 65504.0f;
      if (problem.sanitize) return isnan(x) ? 0.0f : fminf(fmaxf(x, -kLargestF16), kLargestF16);
    }
    return x;
  }

  __device__ __forceinline__ void store(int unit) {
    asm volatile("" : "+r"(unit));  // computed here, not carried through the loop over keys
    const QueryTile tile(problem, unit, block);
    const int thread = thread_number() - kWarpgroup, lane = thread % kWarp;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float inverse = __frcp_rn(sum_of_quad(sum[row]));
      const int r = tile.row + thread / kWarp * 16 + lane / 4 + 8 * row;
      if (r >= problem.rows_q) continue;
      Element* o = static_cast<Element*>(problem.o) + tile.sequence * problem.sequence_stride + r * problem.row_stride +
                   tile.head * problem.head_stride + lane % 4 * 2;
#pragma unroll
      for (int c = 0; c < kHeadSize / 8; ++c) {
        const int i = 4 * c + 2 * row;
        *reinterpret_cast<std::uint32_t*>(o + c * 8) =
            pack<Element>(finished(__fmul_rn(output[i], inverse)), finished(__fmul_rn(output[i + 1], inverse)));
      }
    }
  }

  __device__ __forceinline__ void run() {
    if (group == kConsumers - 1) pass_turn();  // the first turn is nobody's to pass
    std::uint32_t query_phase = 0;
    for (Units units(problem); !units.done(); units.advance()) {
      wait(shared.query_filled, query_phase);
      query_phase ^= 1;
      load_query();
      sum[0] = sum[1] = 0;
#pragma unroll
      for (int i = 0; i < kHeadSize / 2; ++i) output[i] = 0;
      first_keys();
      for (int j = 1; j < problem.key_tiles; ++j) next_keys();
      free_query();
      last_values();
      store(units.unit);
    }
    if (group == 0) await_turn();
  }
};

}  // namespace h3::kernels::attention_sm90
