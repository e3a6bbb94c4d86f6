#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "parallel/exchange.h"
#include "parallel/shards.h"

using namespace h3;

static std::vector<std::int64_t> sizes(const std::vector<Range>& ranges) {
  std::vector<std::int64_t> s;
  for (const Range& r : ranges) s.push_back(r.size());
  return s;
}

static std::vector<double> equal(std::size_t n) {
  return std::vector<double>(n, 1.0);
}

TEST(Shards, LargestRemainderTiesToTheLowerRank) {
  // Head splits of the released model's 56 heads (spec/dit.md 7.2).
  EXPECT_EQ(sizes(deal(56, equal(3))), (std::vector<std::int64_t>{19, 19, 18}));
  EXPECT_EQ(sizes(deal(56, equal(5))), (std::vector<std::int64_t>{12, 11, 11, 11, 11}));
  EXPECT_EQ(sizes(deal(56, equal(6))), (std::vector<std::int64_t>{10, 10, 9, 9, 9, 9}));
  EXPECT_EQ(sizes(deal(56, std::vector<double>{3, 2, 1})), (std::vector<std::int64_t>{28, 19, 9}));
}

TEST(Shards, CoverEverythingInOrderForAnyCount) {
  for (std::size_t ranks = 1; ranks < 20; ++ranks) {
    for (std::int64_t units = 0; units < 40; ++units) {
      std::int64_t at = 0;
      for (const Range& r : deal(units, equal(ranks))) {
        EXPECT_EQ(r.begin, at);
        EXPECT_GE(r.size(), 0);
        at = r.end;
      }
      EXPECT_EQ(at, units);
    }
  }
}

TEST(Shards, ShareZeroIsIdle) {
  EXPECT_EQ(sizes(deal(7, std::vector<double>{1, 0, 1})), (std::vector<std::int64_t>{4, 0, 3}));
  EXPECT_EQ(sizes(deal(2, std::vector<double>{0, 0, 5})), (std::vector<std::int64_t>{0, 0, 2}));
}

TEST(Shards, WholeUnitsAndAShortLastOne) {
  EXPECT_EQ(sizes(deal_units(300, 128, equal(2))), (std::vector<std::int64_t>{256, 44}));
  EXPECT_EQ(sizes(deal_units(100, 128, equal(3))), (std::vector<std::int64_t>{100, 0, 0}));
}

TEST(Shards, SharesAreParsedStrictly) {
  EXPECT_EQ(parse_shares("3,2.5,0", 3, "--shares"), (std::vector<double>{3, 2.5, 0}));
  for (const char* bad : {"", "1", "1,2,3", "1,-1", "nan,1", "inf,1", "0,0", "1,2,", "1;2", "a,b", "1, 2"}) {
    try {
      parse_shares(bad, 2, "--shares");
      FAIL() << bad;
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find("--shares"), std::string::npos) << e.what();
    }
  }
}

TEST(Exchange, PatternByTraffic) {
  EXPECT_EQ(choose_exchange("auto", 2, 5376, 7168), ExchangePattern::all_gather);
  EXPECT_EQ(choose_exchange("auto", 4, 5376, 7168), ExchangePattern::all_gather);
  EXPECT_EQ(choose_exchange("auto", 5, 5376, 7168), ExchangePattern::all_to_all);
  EXPECT_THROW(choose_exchange("ring", 2, 5376, 7168), UserError);
}

TEST(Exchange, BytesOfTheSpecification) {
  // spec/dit.md 7.2: S = 73,898 on 8 equal ranks sends 348 MB and 116 MB a block (received: the same by symmetry).
  const ShardPlan plan = make_shard_plan(73898, 56, equal(8), equal(8));
  const double bytes = exchange_bytes(ExchangePattern::all_to_all, plan, 0, 5376, 128, 2);
  EXPECT_NEAR(bytes, 348e6 + 116e6, 1e6);
}
