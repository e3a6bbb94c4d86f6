// What a bench reports: medians and spreads, rates against a card's peak, the columns of its table, and its JSON.
#include "bench/bench_table.h"

#include <gtest/gtest.h>

#include "render/card_rates.h"
#include "support/checks.h"

namespace h3::test {

namespace {

BenchPlace place(std::optional<double> peak = std::nullopt) {
  BenchPlace p;
  p.bench = "step";
  p.machine = "NVIDIA H200";
  p.libraries = "CUDA";
  p.transport = "nccl";
  p.precision = "bf16";
  p.ranks = 2;
  p.peak = peak;
  return p;
}

BenchRow row(const std::string& what, double seconds) {
  BenchRow r;
  r.what = what;
  r.time = Timing::of({seconds});
  return r;
}

}  // namespace

TEST(Timing, MedianAndSpread) {
  const Timing t = Timing::of({4, 1, 2, 3, 10});
  EXPECT_EQ(t.median, 3);
  EXPECT_EQ(t.least, 1);
  EXPECT_EQ(t.most, 10);
  EXPECT_EQ(t.repeats, 5);
  EXPECT_DOUBLE_EQ(t.spread(), 3);
  EXPECT_EQ(Timing::of({7}).spread(), 0);
}

TEST(CardRates, ByTheDriversName) {
  EXPECT_EQ(bf16_peak("NVIDIA H200"), 989.4e12);
  EXPECT_EQ(bf16_peak("NVIDIA H100 80GB HBM3"), 989.4e12);
  EXPECT_EQ(bf16_peak("NVIDIA H100 PCIe"), 756e12);
  EXPECT_EQ(bf16_peak("NVIDIA A100-SXM4-80GB"), 312e12);
  EXPECT_EQ(bf16_peak("NVIDIA A40"), 149.7e12);
  EXPECT_EQ(bf16_peak("NVIDIA L40S"), 362.1e12);
  EXPECT_EQ(bf16_peak("NVIDIA GeForce RTX 4090"), 165.2e12);
}

TEST(CardRates, NothingIsGuessed) {
  for (const char* name : {"", "AMD EPYC", "NVIDIA RTX A4000", "NVIDIA GeForce RTX 4090 Laptop GPU",
                           "NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 3090 Ti", "NVIDIA H2000"})
    EXPECT_FALSE(bf16_peak(name)) << name;
}

TEST(BenchTable, SharesOfPeakAndCeiling) {
  BenchTable table(place(1000e12));
  BenchRow step = row("step", 2);
  step.flops = 3000e12;
  step.ceiling = 1.5;
  step.exposed = 0.25;
  step.card = {1500, 690};
  step.more = {{"relative error", 0.00232}};
  EXPECT_DOUBLE_EQ(*table.mfu(step), 0.75);
  EXPECT_DOUBLE_EQ(step.of_ceiling(), 0.75);
  table.add(step);
  table.add(row("another", 1));
  EXPECT_FALSE(table.mfu(table.rows()[1]));
  const std::string text = table.text();
  for (const char* part : {"2 ranks of NVIDIA H200", "1000.0 TFLOP/s", "2000.000", "75.0 %", "250.000", "1500", "690",
                           "relative error", "0.00232"})
    expect_has(text, part);
  // Nothing was repeated and nothing was moved.
  for (const char* part : {"least..most", "GB/s"}) EXPECT_EQ(text.find(part), text.npos) << part;
}

TEST(BenchTable, UnknownCardsHaveNoUtilisation) {
  BenchTable table(place());
  BenchRow step = row("step", 2);
  step.flops = 5e9;
  table.add(step);
  expect_has(table.text(), "peak (dense bf16, a card): unknown");
  expect_has(table.text(), "2.5 GFLOP/s");
  EXPECT_EQ(table.text().find("MFU"), std::string::npos);
  EXPECT_TRUE(table.json()["rows"][0]["mfu"].is_null());
  EXPECT_TRUE(table.json()["peak_flops"].is_null());
}

TEST(BenchTable, JsonHoldsEverything) {
  BenchTable table(place(1000e12));
  BenchRow copy = row("copy", 0.5);
  copy.bytes = 1e9;
  copy.more = {{"registers", 128}};
  table.add(copy);
  table.note("frames abc");
  const auto j = table.json();
  EXPECT_EQ(j["bench"], "step");
  EXPECT_EQ(j["ranks"], 2);
  EXPECT_EQ(j["notes"][0], "frames abc");
  const auto& r = j["rows"][0];
  EXPECT_EQ(r["what"], "copy");
  EXPECT_EQ(r["median_seconds"], 0.5);
  EXPECT_EQ(r["bytes"], 1e9);
  EXPECT_EQ(r["registers"], 128.0);
  EXPECT_TRUE(r["flops"].is_null());
  EXPECT_TRUE(r["exposed_seconds"].is_null());
}

}  // namespace h3::test
