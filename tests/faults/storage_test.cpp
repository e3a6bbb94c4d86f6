// A disk that fills up or takes no more files while a batch runs: the scene fails with the system's reason, and once
// there is room again the same command completes it. Needs root, for small file systems of the test's own.
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "checkpoint/resume.h"
#include "faults/batch.h"

namespace h3::test {
namespace {

// In a small tmpfs: $1 its mount point, $2 a log, then the program's words.
constexpr const char* kFullDisk = R"(
out=$1 log=$2; shift 2
mount -t tmpfs -o size=1m tmpfs "$out"
head -c 1020k /dev/zero > "$out/filler" 2>/dev/null || true
truncate -s -"$ROOM" "$out/filler"
code=0; "$@" 2> "$log" || code=$?
echo "first $code"
rm "$out/filler"
code=0; "$@" 2> "$log.2" || code=$?
echo "second $code"
ls -A "$out"
)";

class FullDisk : public ::testing::TestWithParam<const char*> {};

TEST_P(FullDisk, IsReportedAndGotOver) {
  const Batch batch(1, 3);
  fs::create_directories(batch.out());
  const fs::path log = batch.folder() / "log";
  Words arguments{batch.out(), log};
  for (const std::string& word : batch.words(2)) arguments.push_back(word);
  const Words words = in_mount_namespace(std::string("ROOM=") + GetParam() + "\n" + kFullDisk, arguments);
  if (words.empty()) GTEST_SKIP() << "this machine does not allow a mount namespace";
  const Result result = run(words);
  const std::string messages = read_file(log);
  EXPECT_NE(result.out.find("first 3"), std::string::npos) << result.out << messages;
  EXPECT_NE(messages.find("No space left on device"), std::string::npos) << messages;
  EXPECT_NE(result.out.find("second 0\ns0.manifest.json\ns0.mp4\ns0.sheet.png\n"), std::string::npos)
      << result.out << read_file(log.string() + ".2");
}

// Room for the claim alone, so that checkpoints fail too; and for checkpoints, but not for the video.
INSTANTIATE_TEST_SUITE_P(Room, FullDisk, ::testing::Values("8k", "64k"));

// A folder that takes no new files from some step on, as a file system that an error made read-only.
TEST(ReadOnlyDisk, InTheMiddleOfARun) {
  const Batch batch(1, 5);
  Process process(batch.words(2, {"--fail", "0:step:1"}));
  while (!peek_checkpoint(batch.out(), "s0") && process.running()) ::usleep(10'000);
  const auto attribute = [&](const char* change) {
    try {
      return run({"chattr", change, batch.out()}).exit_code == 0;
    } catch (const std::runtime_error&) {
      return false;
    }
  };
  if (!attribute("+i")) {
    process.wait();
    GTEST_SKIP() << "this machine does not allow to make a folder immutable";
  }
  const Result result = process.wait();
  EXPECT_TRUE(attribute("-i"));
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_NE(result.err.find("s0: checkpoint: "), std::string::npos) << result.err;
  EXPECT_TRUE(peek_checkpoint(batch.out(), "s0")) << "the last checkpoint is gone";
  const Result next = batch.render(2);
  expect_done(next);
  EXPECT_NE(next.err.find("goes on after step"), std::string::npos) << next.err;
  batch.expect_complete();
}

}  // namespace
}  // namespace h3::test
