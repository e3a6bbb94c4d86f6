#include <algorithm>

#include "bench/benches.h"
#include "bench/random_tensors.h"
#include "render/partition_use.h"
#include "render/run_plan.h"
#include "transformer/clip.h"

namespace h3 {

namespace {

// A clip of target video rows behind text rows; what the rows mean does not matter for their time.
Clip bench_clip(const TransformerConfig& t, std::int64_t rows) {
  Clip clip;
  clip.rows = rows;
  clip.text_rows = std::min<std::int64_t>(1024, rows / 4);
  clip.segments = {{SegmentKind::text, 0, clip.text_rows, 0}, {SegmentKind::target_video, clip.text_rows, rows, 0}};
  clip.classes.assign(static_cast<std::size_t>(rows), static_cast<std::int32_t>(ModulationClass::video));
  clip.cos.assign(static_cast<std::size_t>(rows * 3 * t.rope_freqs), 0.8f);
  clip.sin.assign(clip.cos.size(), 0.6f);
  return clip;
}

}  // namespace

BenchRow time_step(Bench& bench, Transformer& transformer, Communicator& ranks, const ShardPlan& plan,
                   std::int64_t rows) {
  const TransformerConfig& t = bench.session().config().transformer;
  const Clip clip = bench_clip(t, rows);
  std::vector<float> text = random_values(clip.text_rows * t.text_dim, 2);
  transformer.begin(bench.queue(), clip, plan, Tensor(text.data(), {clip.text_rows, t.text_dim}, DType::f32), {},
                    {{0.3f, 0.3f, 0.5f, 0.999f, 1.0f}});
  RandomTensors random(bench.machine(), bench.queue());
  const std::int64_t own = transformer.video_rows().size();
  const Tensor x = random.make({own, t.video_row()}, DType::f32), v = random.make({own, t.video_row()}, DType::f32);
  const Tensor none = random.make({0, t.audio_channels}, DType::f32);
  const double exchange_before = transformer.exchange_seconds();
  BenchRow row = bench.time(fmt::format("step {} rows on {}", rows, ranks_text(ranks.size())),
                            [&] { transformer.forward(bench.queue(), 0, x, none, v, none); });
  row.flops = step_flops(t, rows, rows, t.heads);
  if (ranks.size() > 1)
    row.exposed = bench.largest(transformer.exchange_seconds() - exchange_before) / (bench.repeats() + 1);
  return row;
}

void bench_step(Bench& bench, std::int64_t rows, BenchTable& table) {
  Session& s = bench.session();
  const StepCeiling ceiling = bench_operators(bench, rows, table);
  StageTimes times;
  const ShardPlan plan = make_shard_plan(rows, s.config().transformer.heads, s.row_shares(), s.head_shares());
  BenchRow row =
      time_step(bench, s.transformer(opened_partitions(s.model()).front(), times), s.communicator(), plan, rows);
  row.ceiling = ceiling.seconds();
  table.add(std::move(row));
}

}  // namespace h3
