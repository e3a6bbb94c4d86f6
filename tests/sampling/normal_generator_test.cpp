#include "sampling/normal_generator.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "sampling/equal_bits.h"
#include "support/goldens.h"

namespace h3 {
namespace {

std::vector<float> draw(NormalGenerator& generator, std::size_t count) {
  std::vector<float> values(count, 1e30f);
  generator.fill(values);
  return values;
}

TEST(NormalGenerator, RepeatsPlainDrawsOfTheReference) {
  const test::Goldens goldens("noise");
  for (const std::size_t n : {1u, 5u, 15u, 16u, 17u, 37u, 100u}) {
    const std::string name = "plain.n" + std::to_string(n);
    NormalGenerator generator(42);
    std::vector<float> both = draw(generator, n);
    const std::vector<float> second = draw(generator, n);
    both.insert(both.end(), second.begin(), second.end());
    test::expect_equal_bits(both, test::floats_of(goldens.at(name)), name);
  }
}

TEST(NormalGenerator, GoesOnAfterALargeDraw) {
  NormalGenerator generator(0);
  const std::vector<float> first = draw(generator, 1 * 24 * 7 * 48 * 84);
  EXPECT_FLOAT_EQ(first[0], -1.1258398f);
  EXPECT_FLOAT_EQ(first[3], -0.4338788f);
  const std::vector<float> second = draw(generator, 74 * 32);
  EXPECT_FLOAT_EQ(second[0], -0.41136536f);
  EXPECT_FLOAT_EQ(second[1], -0.2868503f);
  EXPECT_FLOAT_EQ(second[2], 0.21516919f);
  EXPECT_FLOAT_EQ(second[3], 0.25479245f);
}

TEST(NormalGenerator, TakesTheLow32BitsOfTheSeed) {
  NormalGenerator low(5), high(0x8000000000000005u), other(6);
  const std::vector<float> a = draw(low, 33);
  EXPECT_EQ(a, draw(high, 33));
  EXPECT_NE(a, draw(other, 33));
}

TEST(NormalGenerator, AnEmptyDrawChangesNothing) {
  NormalGenerator a(7), b(7);
  draw(a, 0);
  EXPECT_EQ(draw(a, 20), draw(b, 20));
}

TEST(NormalGenerator, StateRestoresEveryLaterDraw) {
  for (const std::size_t before : {0u, 3u, 16u, 37u, 2000u}) {
    NormalGenerator generator(11);
    draw(generator, before);  // an odd short draw keeps the second value of a pair
    NormalGenerator restored = NormalGenerator::from_state(generator.state(), "test");
    EXPECT_EQ(generator.state(), restored.state());
    for (const std::size_t n : {1u, 2u, 50u, 1u}) EXPECT_EQ(draw(generator, n), draw(restored, n));
  }
}

TEST(NormalGenerator, RefusesTextThatIsNoState) {
  const std::string good = NormalGenerator(3).state();
  const std::string texts[] = {"",
                               "mt19937",
                               "philox" + good.substr(7),
                               good + " 1",
                               good.substr(0, good.size() / 2),
                               "mt19937 2" + good.substr(9),
                               "mt19937 0 x 1 2 3"};
  for (const std::string& text : texts) {
    EXPECT_THROW(NormalGenerator::from_state(text, "X.checkpoint.h5"), UserError) << text.substr(0, 60);
  }
}

}  // namespace
}  // namespace h3
