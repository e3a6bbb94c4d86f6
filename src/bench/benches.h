// The benches by name. Each is collective over the session's ranks and fills a table that is the same on all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/measure.h"
#include "weights/weight_set.h"

namespace h3 {

// One matrix product as a layer of this shape does it: x [rows, k] by `outputs` of the layer's outputs.
BenchRow time_linear(Bench& bench, const std::string& name, std::int64_t rows, const LinearShape& shape,
                     std::int64_t outputs);

// What a step is made of, at this rank's shapes: the block's four matrix products and attention over `rows` rows, in
// turns as in a block, once with each engine that could compute the attention; with several ranks the exchange's
// collectives; copies between host and device. From products and attention the least time that one evaluation can take.
struct StepCeiling {
  double linear_seconds = 0, attention_seconds = 0;  // of the whole model, by the engine that the session takes
  double linear_rate = 0, attention_rate = 0;        // operations a second of all ranks
  double seconds() const { return linear_seconds + attention_seconds; }
};
StepCeiling bench_operators(Bench& bench, std::int64_t rows, BenchTable& table);
void bench_collectives(Bench& bench, std::int64_t rows, BenchTable& table);
void bench_copies(Bench& bench, BenchTable& table);

// One evaluation of a transformer whose ranks are all the session's or, with the others idle, some of them.
BenchRow time_step(Bench& bench, Transformer& transformer, Communicator& ranks, const ShardPlan& plan,
                   std::int64_t rows);

// One evaluation of the session's transformer over `rows` rows, beside its ceiling.
void bench_step(Bench& bench, std::int64_t rows, BenchTable& table);

// Encoding a prompt of `rows` rows, as a render does it: the layers' weights pass through the device.
void bench_text(Bench& bench, std::int64_t rows, BenchTable& table);

struct ClipSize {
  std::int64_t width = 0, height = 0, frames = 0;
};
// Decoding a clip's frames from random latents, beside the ceiling that the decoder's matrix products and attention
// set, timed over a unit of tiles.
void bench_video(Bench& bench, const ClipSize& clip, BenchTable& table);

// Each component's weights on their way to a GPU, leg by leg: into the node's window (from files cold, then warm, or
// from the seed), page-locking the window, copies from it before and after. One component at a time is in memory.
void bench_weights(Bench& bench, const std::vector<Component>& components, BenchTable& table);

// The attention kernels of this machine in turns, one rank, random values.
struct AttentionRequest {
  std::vector<std::int64_t> rows, heads;
  std::int64_t head_dim = 0;
  int rounds = 3;
};
void bench_attention(Bench& bench, const AttentionRequest& request, BenchTable& table);

}  // namespace h3
