// Kills a program that writes checkpoints, at random moments: afterwards there is always a whole checkpoint, and never
// an older one than the program knew to be safe.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>

#include "base/error.h"
#include "checkpoint/resume.h"
#include "checkpoint/samples.h"
#include "support/temporary_folder.h"

namespace h3::test {

namespace fs = std::filesystem;

// Runs the writer until it called `steps` more steps safe and `microseconds` passed, kills it, and returns the last
// step that it called safe, or `before`.
std::int64_t run_and_kill(const fs::path& folder, int steps, unsigned microseconds, std::int64_t before) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::execl(CRASH_WRITER, CRASH_WRITER, folder.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string told;
  const auto listen = [&] {
    char part[64];
    const ssize_t n = ::read(ends[0], part, sizeof part);
    if (n > 0) told.append(part, static_cast<std::size_t>(n));
    return n > 0;
  };
  while (std::count(told.begin(), told.end(), '\n') < steps && listen()) continue;
  ::usleep(microseconds);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "exit code " << WEXITSTATUS(status);
  while (listen()) continue;
  ::close(ends[0]);
  const std::size_t end = told.rfind('\n');
  if (end == std::string::npos || end == 0) return before;
  const std::size_t start = told.rfind('\n', end - 1);
  return std::atoll(told.c_str() + (start == std::string::npos ? 0 : start + 1));
}

TEST(Crash, a_kill_at_any_moment_leaves_a_whole_checkpoint) {
  std::mt19937 random(20240607);
  std::int64_t safe = 0;
  int resumed = 0;
  auto folder = std::make_unique<TemporaryFolder>();
  for (int round = 0; round < 60; ++round) {
    // Also while it starts, when it has called nothing safe yet.
    const int steps = static_cast<int>(random() % 6);
    safe = run_and_kill(folder->path(), steps, static_cast<unsigned>(random() % 8000), safe);
    const auto point = read_checkpoint(folder->path(), "x");
    ASSERT_TRUE(point || safe == 0) << "round " << round;
    if (!point) continue;
    ++resumed;
    ASSERT_TRUE(point->notes.empty()) << point->notes[0];
    ASSERT_GE(point->state.step, safe) << "round " << round;
    ASSERT_EQ(point->state, sample_checkpoint(1, point->state.step, 2000)) << "round " << round;
    ASSERT_TRUE(point->inputs);
    safe = point->state.step;
    if (safe < kSampleSteps - 300) continue;
    folder = std::make_unique<TemporaryFolder>();  // from the beginning again
    safe = 0;
  }
  EXPECT_GT(resumed, 20);
}

}  // namespace h3::test
