#include <gtest/gtest.h>

#include "base/error.h"
#include "render/stop.h"

namespace h3::test {

TEST(Duration, all_forms) {
  EXPECT_EQ(parse_duration("90", "--max-time"), 90);
  EXPECT_EQ(parse_duration("2.5", "--max-time"), 2.5);
  EXPECT_EQ(parse_duration("10:30", "--max-time"), 630);
  EXPECT_EQ(parse_duration("1:30:00", "--max-time"), 5400);
  EXPECT_EQ(parse_duration("100:00:01", "--max-time"), 360001);
  EXPECT_EQ(parse_duration("2-01:00:00", "--max-time"), 2 * 86400 + 3600);
}

TEST(Duration, everything_else_is_refused_by_name) {
  for (const char* bad : {"", "x", "-5", "1:", ":1", "1:60", "1:61:00", "1:2:3:4", "1e3", "nan", "inf", "2-5", "2-1:00",
                          "1 h", "0", "00:00:00", "0x10", "1:-5"})
    EXPECT_THROW(parse_duration(bad, "--max-time"), UserError) << bad;
  try {
    parse_duration("1h", "--max-time");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "--max-time: 1h: seconds, MM:SS, HH:MM:SS or D-HH:MM:SS");
  }
}

}  // namespace h3::test
