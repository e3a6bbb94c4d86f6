// The model of a step's time: what it says of the cards it was fitted on, of other counts, and of published figures.
#include "render/step_model.h"

#include <gtest/gtest.h>

#include <numeric>

#include "support/checks.h"

namespace h3::test {

namespace {

const TransformerConfig& released() {
  static const ModelConfig config = released_model_config();
  return config.transformer;
}

StepRanks ranks_of(std::int64_t rows, const std::vector<double>& shares) {
  StepRanks ranks;
  ranks.plan = make_shard_plan(rows, released().heads, shares, shares);
  ranks.pattern = choose_exchange("auto", static_cast<int>(shares.size()), released().hidden, released().inner());
  return ranks;
}

StepRanks equal(std::int64_t rows, int count) {
  return ranks_of(rows, std::vector<double>(static_cast<std::size_t>(count), 1.0));
}

double seconds(const StepRanks& ranks, const StepRates& rates) {
  return predict_step(released(), ranks, rates).seconds();
}

// Steps measured on one and two H200s (docs/scaling.md).
const std::vector<StepPoint> kMeasured{{1, 38734, 5.420}, {1, 74410, 15.544}, {2, 38734, 2.844}, {2, 74410, 7.989}};

}  // namespace

TEST(StepModel, ReproducesWhatItWasFittedOn) {
  StepRates start;
  start.linear = start.attention = 1e12;
  const StepRates fitted = fit_step_rates(released(), kMeasured, "auto", 2, start);
  for (const StepPoint& p : kMeasured)
    EXPECT_NEAR(seconds(equal(p.rows, p.ranks), fitted) / p.seconds, 1, 1e-3) << p.ranks << " ranks, " << p.rows;
  // The table that `plan` starts from holds these rates.
  const StepRates table = *step_rates_of("H200");
  EXPECT_NEAR(table.linear / fitted.linear, 1, 0.01);
  EXPECT_NEAR(table.attention / fitted.attention, 1, 0.01);
  for (const StepPoint& p : kMeasured)
    EXPECT_NEAR(seconds(equal(p.rows, p.ranks), table) / p.seconds, 1, 0.01) << p.ranks << " ranks, " << p.rows;
}

TEST(StepModel, FitsWhatThereIs) {
  StepRates start;
  start.linear = 100e12;
  start.attention = 200e12;
  start.link = 7e9;
  // One length tells one factor.
  const StepPoint one{1, 38734, 5.420};
  const StepRates fitted = fit_step_rates(released(), {&one, 1}, "auto", 2, start);
  EXPECT_NEAR(seconds(equal(38734, 1), fitted), 5.420, 1e-9);
  EXPECT_NEAR(fitted.attention / fitted.linear, 2, 1e-9);
  EXPECT_EQ(fitted.link, 7e9);
  // One length on two ranks tells a rate without a delay.
  const std::vector<StepPoint> two{{1, 38734, 5.420}, {2, 38734, 2.844}};
  EXPECT_NEAR(seconds(equal(38734, 2), fit_step_rates(released(), two, "auto", 2, start)), 2.844, 1e-9);
  const StepPoint only{2, 38734, 2.844};
  expect_has(message_of<UserError>([&] { fit_step_rates(released(), {&only, 1}, "auto", 2, start); }), "one rank");
}

TEST(StepModel, MoreRanksAreFasterAndLessEfficient) {
  const StepRates rates = *step_rates_of("H200");
  double before = seconds(equal(74410, 1), rates), efficiency = 1;
  const double alone = before;
  for (const int count : {2, 4, 8}) {
    const double now = seconds(equal(74410, count), rates);
    EXPECT_LT(now, before) << count;
    EXPECT_LE(alone / now / count, efficiency) << count;
    before = now;
    efficiency = alone / now / count;
  }
  EXPECT_GT(efficiency, 0.8);
  // 56 heads over 9 ranks: one has 7, as on 8, so attention gains nothing.
  EXPECT_GT(seconds(equal(74410, 9), rates) / seconds(equal(74410, 8), rates), 0.95);
}

TEST(StepModel, OtherNodesAreFarther) {
  const StepRates rates = *step_rates_of("H200");
  StepRanks ranks = equal(74410, 8);
  const StepPrediction near = predict_step(released(), ranks, rates);
  ranks.ranks_per_node = 4;
  const StepPrediction far = predict_step(released(), ranks, rates);
  EXPECT_EQ(near.compute, far.compute);
  EXPECT_GT(far.exchange, near.exchange);
  ranks.ranks_per_node = 8;
  EXPECT_EQ(predict_step(released(), ranks, rates).exchange, near.exchange);
}

TEST(StepModel, StreamedWeightsBoundShortClips) {
  StepRates rates = *step_rates_of("NVIDIA GeForce RTX 4090");
  StepRanks ranks = equal(1000, 1);
  ranks.streamed_bytes = 40e9;
  const StepPrediction brief = predict_step(released(), ranks, rates);
  EXPECT_EQ(brief.bound(), "weights");
  EXPECT_DOUBLE_EQ(brief.seconds(), 40e9 / rates.host_link);
  ranks.plan = equal(74410, 1).plan;
  EXPECT_EQ(predict_step(released(), ranks, rates).bound(), "compute");
}

TEST(StepModel, CardsByName) {
  EXPECT_FALSE(step_rates_of("AMD EPYC"));
  EXPECT_FALSE(step_rates_of(""));
  const StepRates h100 = *step_rates_of("NVIDIA H100 80GB HBM3"), a100 = *step_rates_of("NVIDIA A100-SXM4-80GB");
  EXPECT_GT(h100.linear, a100.linear);
  expect_has(a100.source, "not measured");
}

TEST(StepModel, DecodingIsDealtInUnits) {
  StepRates rates;
  rates.decode = 100;
  EXPECT_DOUBLE_EQ(predict_decode(1000, 4, 1, rates), 10);
  EXPECT_DOUBLE_EQ(predict_decode(1000, 4, 2, rates), 5);
  EXPECT_DOUBLE_EQ(predict_decode(1000, 4, 3, rates), 5);
  EXPECT_DOUBLE_EQ(predict_decode(1000, 4, 9, rates), 2.5);
}

// Published speed-ups of a like pipeline (one clip split over consumer cards that exchange through host memory, no
// NVLink): three equal cards 2.59x over one, two pairs of unequal cards 1.33x and 1.56x over the faster one. Neither
// cards' rates nor clips are published with them, so this is assumed: a clip of 124 frames at 1344x768 (38,734 rows),
// linear layers and attention at 150 TFLOP/s on the (faster) card, 16 GB/s received by each rank, which PCIe 4.0 x16
// gives when data goes down and up through host memory at once, shares in proportion to the cards' speeds.
class WithoutNvlink : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 38734;
  StepRates rates() const {
    StepRates r;
    r.linear = r.attention = 150e12;
    r.link = 16e9;
    return r;
  }
  double pair(double slower) const {
    StepRanks ranks = ranks_of(kRows, {1, slower});
    ranks.speeds = {1, slower};
    return seconds(equal(kRows, 1), rates()) / seconds(ranks, rates());
  }
};

TEST_F(WithoutNvlink, ThreeEqualCards) {
  EXPECT_NEAR(seconds(equal(kRows, 1), rates()) / seconds(equal(kRows, 3), rates()), 2.59, 0.13);
}

// The slower cards' speeds that would explain the pairs: 0.40 and 0.67 of the faster one's, as between neighbouring
// generations or classes of consumer cards (an RTX 3090 has 0.43 of an RTX 4090's peak, that one 0.79 of an RTX
// 5090's).
TEST_F(WithoutNvlink, UnequalPairs) {
  EXPECT_NEAR(pair(0.40), 1.33, 0.04);
  EXPECT_NEAR(pair(0.67), 1.56, 0.05);
  // Equal shares would waste the faster card: the pair would be no faster than its slower card twice.
  StepRanks even = equal(kRows, 2);
  even.speeds = {1, 0.4};
  EXPECT_LT(seconds(equal(kRows, 1), rates()) / seconds(even, rates()), 0.8);
}

// Published steps of 8 cards over 2 of another kind (H20 with NVLink: 12.762 s on two, 6.547 s on four, 3.332 s and
// 3.314 s on eight): rates fitted to nothing but the first, with the exchange as on H200s, explain the others.
TEST(StepModel, PublishedStepsWithNvlink) {
  StepRates rates = *step_rates_of("H200");
  constexpr std::int64_t kRows = 38734;
  const double two = 12.762;
  const StepPrediction h200 = predict_step(released(), equal(kRows, 2), rates);
  const double slower = (two - h200.exchange) / h200.compute;
  rates.linear /= slower;
  rates.attention /= slower;
  EXPECT_NEAR(seconds(equal(kRows, 4), rates) / 6.547, 1, 0.03);
  EXPECT_NEAR(seconds(equal(kRows, 8), rates) / 3.323, 1, 0.05);
}

}  // namespace h3::test
