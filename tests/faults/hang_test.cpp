// A rank that hangs ends the run instead of holding its nodes until the job's limit, and two runs in one folder share
// the work without getting in each other's way.
#include <gtest/gtest.h>
#include <unistd.h>

#include "faults/batch.h"

namespace h3::test {
namespace {

TEST(Hang, AnyRankInAnyStageEndsTheRun) {
  const Batch batch(1, 3);
  for (const char* fault : {"0:step:hang", "1:step:hang", "1:text:hang", "1:decode:hang"}) {
    SCOPED_TRACE(fault);
    const Result result = batch.render(2, {"--fail", fault, "--hang-timeout", "4"});
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_NE(result.err.find("no progress for 4 s"), std::string::npos) << result.err;
    EXPECT_LT(result.seconds, 40);
    expect_done(batch.render(2));
    batch.expect_complete();
    fs::remove_all(batch.out());
  }
}

TEST(TwoRuns, InOneFolderRenderEachSceneOnce) {
  const Batch batch(6, 2);
  Process first(batch.words(1)), second(batch.words(2));
  const Result a = first.wait(), b = second.wait();
  expect_done(a);
  expect_done(b);
  EXPECT_EQ(count_of(a.err, ": done in ") + count_of(b.err, ": done in "), 6u) << a.err << b.err;
  batch.expect_complete();
}

TEST(TwoRuns, TheSecondLeavesOrWaitsForWhatTheFirstHolds) {
  const Batch batch(1, 3);
  Process first(batch.words(1, {"--fail", "0:step:2"}));
  ASSERT_TRUE(first.wait_for_err("loses 2 s in stage step")) << first.err();
  const Result second = batch.render(1, {"--claimed", "leave"});
  expect_done(second);
  EXPECT_NE(second.err.find("s0: left to host"), std::string::npos) << second.err;
  const Result third = batch.render(2);
  expect_done(third);
  EXPECT_NE(third.err.find("rendered already, skipped"), std::string::npos) << third.err;
  expect_done(first.wait());
  batch.expect_complete();
}

}  // namespace
}  // namespace h3::test
