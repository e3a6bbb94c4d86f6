// Kills one rank or all of them at random moments of a batch, also while a checkpoint is being written: the next run
// goes on, and in the end no scene is lost and every hash is that of an undisturbed run. 6 kills, 50 with
// H3RENDER_FULL; the seed is printed, H3RENDER_SEED repeats it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <random>

#include "base/error.h"
#include "faults/batch.h"

namespace h3::test {
namespace {

unsigned seed_of_this_run() {
  const char* asked = std::getenv("H3RENDER_SEED");
  return asked ? static_cast<unsigned>(std::atoll(asked)) : std::random_device{}();
}

class Killer {
 public:
  explicit Killer(unsigned seed) : random_(seed) {}

  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  double seconds(double most) { return std::uniform_real_distribution<double>(0, most)(random_); }

  // One rank, or mpirun and all of its ranks. A run may have ended by itself meanwhile. One rank alone is killed only
  // when the ranks have met: mpirun of Open MPI 4.1 can wait for ever on a rank that dies while it connects to it.
  void kill(Process& process, int ranks) {
    const int victim = below(ranks + 1);
    if (victim == ranks) {
      for (const pid_t pid : process.members()) ::kill(pid, SIGKILL);
      return;
    }
    process.wait_for_err(": options: ");
    try {
      ::kill(process.rank(victim), SIGKILL);
    } catch (const std::runtime_error&) {
    }
  }

 private:
  std::mt19937 random_;
};

TEST(Kill, AtRandomMomentsNoSceneIsLost) {
  const unsigned seed = seed_of_this_run();
  std::printf("H3RENDER_SEED=%u\n", seed);
  Killer killer(seed);
  const Batch batch(4, 3);
  const int kills = full_run() ? 50 : 6;
  const char* points[] = {"opened", "half", "written", "synced", "kept", "renamed"};
  const fs::path hold = batch.folder() / "hold";
  for (int i = 0; i < kills; ++i) {
    SCOPED_TRACE(fmt::format("kill {} of seed {}", i, seed));
    if (batch.is_done()) fs::remove_all(batch.out());
    const int ranks = 1 + killer.below(3);
    Words options;
    // Every other kill meets rank 0 in the middle of writing a file, at a random point of it.
    const bool writing = i % 2 == 1;
    if (writing) {
      write_text(hold, "");
      options = {"--write-fault", fmt::format("{}:hold={}", points[killer.below(6)], hold.string())};
    }
    Process process(batch.words(ranks, options));
    if (writing) process.wait_for_err(": begins");
    const double end = now() + killer.seconds(writing ? 0.6 : batch.undisturbed_seconds());
    while (process.running() && now() < end) ::usleep(2000);
    killer.kill(process, ranks);
    fs::remove(hold);
    const Result result = process.wait();
    EXPECT_NE(result.exit_code, 2) << result.err;
    EXPECT_NE(result.exit_code, 3) << result.err;
    batch.expect_right_so_far();
  }
  expect_done(batch.render(2));
  batch.expect_complete();
}

// Each point of writing, met for certain: the process ends there, at the inputs or at the first checkpoint. A file is
// kept as the previous one first when the second checkpoint is written.
TEST(Kill, AtEachPointOfWritingACheckpoint) {
  const Batch batch(1, 3);
  for (const std::string point : {"opened", "half", "written", "synced", "kept", "renamed", "done"}) {
    for (const int count : {1, 2}) {
      if (point == "kept" && count > 1) continue;
      SCOPED_TRACE(fmt::format("{} {}", point, count));
      const Result result = batch.render(1, {"--write-fault", fmt::format("{}:exit=9@{}", point, count)});
      EXPECT_EQ(result.exit_code, 9) << result.err;
      expect_done(batch.render(2));
      batch.expect_complete();
      fs::remove_all(batch.out());
    }
  }
}

TEST(Kill, SegmentsAndClaimsOfKilledRunsAreReclaimed) {
  const Batch batch(1, 2);
  // A segment that a run left between making and attaching: nobody holds its lock.
  const fs::path segment = fmt::format("/dev/shm/h3render.{}.0000000000000000", ::getpid());
  write_text(segment, "left behind");
  Process process(batch.words(2, {"--fail", "0:step:60"}));
  ASSERT_TRUE(process.wait_for_err("loses 60 s in stage step")) << process.err();
  EXPECT_FALSE(fs::exists(segment));
  for (const pid_t pid : process.members()) ::kill(pid, SIGKILL);
  process.wait();
  ASSERT_TRUE(fs::exists(batch.out() / "s0.claim"));
  const Result next = batch.render(2);
  expect_done(next);
  EXPECT_NE(next.err.find("is taken over: that process is gone"), std::string::npos) << next.err;
  EXPECT_LT(next.seconds, 30);
  batch.expect_complete();
}

// Killed when the manifest was there but the checkpoint was not yet gone: the next run puts the folder in order.
TEST(Kill, WhatAFinishedSceneLeftBehindGoes) {
  const Batch batch(1, 2);
  Process process(batch.words(1, {"--fail", "0:step:60"}));
  ASSERT_TRUE(process.wait_for_err("loses 60 s in stage step")) << process.err();
  for (const pid_t pid : process.members()) ::kill(pid, SIGKILL);
  process.wait();
  const fs::path kept = batch.folder() / "kept";
  fs::create_directory(kept);
  for (const char* left : {"s0.claim", "s0.inputs.h5"}) fs::copy_file(batch.out() / left, kept / left);
  expect_done(batch.render(2));
  for (const char* left : {"s0.claim", "s0.inputs.h5"}) fs::copy_file(kept / left, batch.out() / left);
  expect_done(batch.render(2));
  batch.expect_complete();
}

}  // namespace
}  // namespace h3::test
