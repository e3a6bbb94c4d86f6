#include <random>

#include "bench/benches.h"
#include "bench/random_tensors.h"
#include "render/run_plan.h"
#include "text/text_encoder.h"

namespace h3 {

// A prompt's rows: tokens that any tokenizer could give, each at its own position.
static Presentation random_presentation(const TextConfig& config, std::int64_t rows) {
  Presentation p;
  std::mt19937 words(4);
  for (std::int64_t i = 0; i < rows; ++i) {
    p.ids.push_back(static_cast<std::int32_t>(static_cast<std::int64_t>(words() >> 1) % config.vocab));
    for (auto& axis : p.positions) axis.push_back(static_cast<std::int32_t>(i));
  }
  p.tags.assign(static_cast<std::size_t>(rows), 1);
  p.types.assign(static_cast<std::size_t>(rows), RowType::text);
  p.segments = {{PresentationSegment::Kind::prompt, 0, rows, -1}};
  return p;
}

void bench_text(Bench& bench, std::int64_t rows, BenchTable& table) {
  Session& s = bench.session();
  StageTimes times;
  const WeightSet& weights = s.weights(Component::text_encoder, times);
  s.await_page_locks();
  const Presentation presentation = random_presentation(s.config().text, rows);
  TextEncoder encoder(s.machine(), s.communicator(), s.config().text, weights);
  BenchRow row = bench.time(fmt::format("text of {} rows on {}", rows, ranks_text(bench.ranks())),
                            [&] { encoder.encode(s.queue(), presentation); });
  row.flops = text_flops(s.config().text, rows);
  table.add(std::move(row));
}

}  // namespace h3
