// Attention for Hopper (compute capability 9.0): o = softmax(scale * q k^T) v per head, half types in and out, products
// and softmax in float32, no mask: bf16 with head size 128, and f16 with head size 64 for several sequences at once.
// Faster than the libraries' kernels.
//
// How it computes. A tile of 192 query rows of one head meets the keys in tiles of 80 (96 at head size 64). Three
// warpgroups own 64 rows each; a fourth gives up its registers and only starts copies: the copy engine brings key and
// value tiles, through a ring of eight slots, straight out of strided global memory into the swizzled layout that the
// matrix units read. Two neighbouring blocks form a cluster and work on neighbouring query tiles of the same head, so
// each fetches half of every key and value tile and the engine delivers it to both: half the traffic out of the L2
// cache.
//
// A warpgroup starts the product of its queries with key tile j, and behind it the product of the weights of tile j-1
// with value tile j-1; then it turns the logits of tile j into weights while the other two warpgroups use the matrix
// units. Named barriers pass the turn round, which keeps the matrix units busy nearly all the time, and keeps one
// warpgroup's products together, which costs less energy: at these rates the card's power limit sets the speed.
// The weights never leave the registers: the layout of a product's result is the layout of the next one's left operand.
//
// Softmax runs online against each row's largest logit so far. Output and sum are rescaled only in tiles that bring
// some row of a warp a new one, which soon gets rare; the warp's other rows are then multiplied by exactly 1, so that a
// row's result depends on its own logits alone.
//
// Bits. Key tiles are cut by key row and walked from the last (ragged) to the first, whoever else is in the call;
// nothing is split along keys and nothing is added atomically. A row of a head has the same result in any call that
// holds it, with any strides, at any place in its tile.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace h3 {

// Element strides between rows and between heads; the 128 elements of a row and head are contiguous.
struct AttentionSm90Strides {
  std::int64_t row = 0, head = 0;
};

struct AttentionSm90Args {
  const void* q = nullptr;  // [rows_q, heads, 128] bf16
  const void* k = nullptr;  // [rows_k, heads, 128] bf16
  const void* v = nullptr;  // [rows_k, heads, 128] bf16
  void* o = nullptr;        // [rows_q, heads, 128] bf16; only these elements are written
  int rows_q = 0, rows_k = 0, heads = 0;
  AttentionSm90Strides q_stride, k_stride, v_stride, o_stride;
  float scale = 0;  // above zero, as in 1 / sqrt(128)
};

// Queues the kernel; never waits. Pointers must be 16-byte aligned and strides positive multiples of 8, below 2^39 (a
// stride along an axis of size 1 is not looked at). No query rows or no heads: nothing to do. cudaErrorInvalidValue
// where this does not hold, where there is no key, or above 2^30 rows; cudaErrorNotSupported on devices of another
// capability and in builds without sm_90a.
cudaError_t h3_attention_sm90(const AttentionSm90Args& args, cudaStream_t stream);

// The same for f16 and head size 64. rows_q and rows_k are those of one of `sequences` that lie behind each other and
// attend each to itself. `sanitize`: NaN becomes 0, and what f16 cannot hold its largest finite value.
cudaError_t h3_attention_sm90_f16(const AttentionSm90Args& args, int sequences, bool sanitize, cudaStream_t stream);

// Registers and spilled bytes of the kernel, for reports.
cudaError_t h3_attention_sm90_attributes(cudaFuncAttributes* attributes);

}  // namespace h3
