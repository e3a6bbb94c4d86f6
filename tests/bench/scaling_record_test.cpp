// The record of a scaling study: points join and replace each other, and what is read off them.
#include "bench/scaling_record.h"

#include <gtest/gtest.h>

#include "bench/scaling_bench.h"
#include "render/run_plan.h"
#include "support/checks.h"

namespace h3::test {

namespace {

ScalingPoint point(const std::string& kind, int ranks, std::int64_t rows, double seconds) {
  ScalingPoint p;
  p.kind = kind;
  p.ranks = ranks;
  p.rows = rows;
  p.transport = ranks == 1 ? "none" : "nccl";
  p.exchange = "all-gather";
  p.time = Timing::of({seconds});
  p.flops = 38.535e9 * static_cast<double>(rows) + 1.4336e6 * static_cast<double>(rows * rows);
  return p;
}

ScalingRecord measured() {
  ScalingRecord record{"NVIDIA H200", "CUDA", "bf16", "synthetic:1", {}};
  record.add(point("strong", 2, 74410, 7.989));
  record.add(point("strong", 1, 74410, 15.544));
  record.add(point("strong", 1, 38734, 5.420));
  record.add(point("strong", 2, 38734, 2.844));
  record.add(point("throughput", 2, 38734, 5.5));
  return record;
}

}  // namespace

TEST(ScalingRecord, PointsOfOnePlaceReplaceEachOther) {
  ScalingRecord record = measured();
  EXPECT_EQ(record.points.size(), 5u);
  record.add(point("strong", 2, 38734, 2.5));
  EXPECT_EQ(record.points.size(), 5u);
  ScalingPoint far = point("strong", 2, 38734, 3.5);
  far.nodes = 2;
  record.add(far);
  EXPECT_EQ(record.points.size(), 6u);
  const ScalingPoint* base = base_point(record, far);
  ASSERT_TRUE(base);
  EXPECT_EQ(base->ranks, 1);
  EXPECT_EQ(base->time.median, 5.420);
  EXPECT_FALSE(base_point(record, point("decode", 2, 124, 1)));
}

TEST(ScalingRecord, SurvivesItsFile) {
  const TemporaryFolder folder;
  const auto file = write_into(folder, "scaling.json", to_json(measured()).dump());
  EXPECT_EQ(to_json(read_scaling(file)), to_json(measured()));
  for (const char* text : {"", "[]", "{}", "{\"machine\": 5}"})
    expect_has(message_of<UserError>([&] { read_scaling(write_into(folder, "bad.json", text)); }), "bad.json");
  auto broken = to_json(measured());
  broken["points"][0]["median_seconds"] = 0;
  expect_has(message_of<UserError>([&] { read_scaling(write_into(folder, "bad.json", broken.dump())); }), "bad.json");
}

TEST(ScalingRecord, TableHoldsSpeedUpsAndPredictions) {
  const std::string text = scaling_text(measured(), released_model_config().transformer);
  for (const char* part : {"1.91", "95.3 %", "1.95", "97.3 %", "98.5 %", "a clip a rank"})
    expect_has(text, part);
  // Without a step of one rank nothing is predicted.
  ScalingRecord two{"NVIDIA H200", "CUDA", "bf16", "synthetic:1", {}};
  two.add(point("strong", 2, 38734, 2.844));
  EXPECT_EQ(scaling_text(two, released_model_config().transformer).find("fitted"), std::string::npos);
}

TEST(ScalingRecord, Crossover) {
  // Two ranks at 1.6 times the speed of one: a pair of clips is sooner done with a clip a rank, as are all even
  // numbers; five clips take three rounds alone, 3.0 against 3.1.
  EXPECT_EQ(crossover(0.625, 1, 2), 4);
  EXPECT_EQ(crossover(0.4, 1, 2), 0);
  EXPECT_EQ(crossover(1, 1, 2), 1);
}

TEST(ScalingRecord, EqualWorkARank) {
  const TransformerConfig config = released_model_config().transformer;
  for (const int ranks : {2, 4, 8}) {
    const std::int64_t rows = weak_rows(config, 38734, ranks);
    const double ratio = step_flops(config, rows, rows, config.heads) / step_flops(config, 38734, 38734, config.heads);
    EXPECT_NEAR(ratio, ranks, 1e-3 * ranks) << rows;
  }
  EXPECT_EQ(weak_rows(config, 38734, 1), 38734);
}

}  // namespace h3::test
