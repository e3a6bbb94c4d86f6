#include "render/stop.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "parallel/solo_communicator.h"
#include "support/temporary_folder.h"

namespace h3::test {

StopOptions plain() {
  StopOptions options;
  options.slurm_limit = false;
  return options;
}

TEST(Stop, nothing_asks_at_first) {
  const StopControl stop(plain());
  EXPECT_EQ(stop.requested(), StopReason::none);
  EXPECT_FALSE(stop.seconds_left());
}

TEST(Stop, each_signal_is_a_request_and_handlers_go_with_the_object) {
  struct sigaction before {};
  ::sigaction(SIGTERM, nullptr, &before);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) {
    StopControl stop(plain());
    ::raise(signal);
    EXPECT_EQ(stop.requested(), StopReason::signal);
    ::raise(signal);  // at once again: the same request, sent by launcher and batch system
    const auto machine = make_cpu_machine();
    SoloCommunicator solo(*machine);
    EXPECT_EQ(stop.agree(solo), StopReason::signal);
  }
  struct sigaction after {};
  ::sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
  const StopControl next(plain());
  EXPECT_EQ(next.requested(), StopReason::none);
}

TEST(Stop, a_second_signal_leaves_at_once_with_75) {
  const pid_t child = ::fork();
  if (child == 0) {
    const StopControl stop(plain());
    ::raise(SIGTERM);
    ::usleep(300'000);
    ::raise(SIGINT);
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 75);
}

TEST(Stop, a_halt_file) {
  const TemporaryFolder folder;
  StopOptions options = plain();
  options.halt_file = folder.path() / "halt";
  const StopControl stop(options);
  EXPECT_EQ(stop.requested(), StopReason::none);
  std::ofstream(options.halt_file) << "";
  EXPECT_EQ(stop.requested(), StopReason::halt_file);
}

TEST(Stop, a_reason_that_was_acted_upon_is_remembered) {
  const TemporaryFolder folder;
  StopOptions options = plain();
  options.halt_file = folder.path() / "halt";
  StopControl stop(options);
  std::ofstream(options.halt_file) << "";
  EXPECT_TRUE(stop.wanted());
  std::filesystem::remove(options.halt_file);
  const auto machine = make_cpu_machine();
  SoloCommunicator solo(*machine);
  EXPECT_EQ(stop.agree(solo), StopReason::halt_file);
}

TEST(Stop, a_signal_before_the_run_counts) {
  const StopSignals signals;
  ::raise(SIGUSR1);
  const StopControl stop(plain());
  EXPECT_EQ(stop.requested(), StopReason::signal);
}

TEST(Stop, the_time_limit_looks_one_step_ahead) {
  StopOptions options = plain();
  options.max_seconds = 100;
  StopControl stop(options);
  EXPECT_NEAR(*stop.seconds_left(), 100, 1);
  EXPECT_EQ(stop.requested(), StopReason::none);
  stop.step_took(40);
  stop.step_took(20);
  EXPECT_EQ(stop.requested(), StopReason::none);
  stop.step_took(98);
  EXPECT_EQ(stop.requested(), StopReason::time_limit);
  stop.forget_steps();
  EXPECT_EQ(stop.requested(), StopReason::none);
}

TEST(Stop, slurm_tells_the_end_of_the_job) {
  const auto set = [](long offset) {
    ::setenv("SLURM_JOB_END_TIME", std::to_string(::time(nullptr) + offset).c_str(), 1);
  };
  set(500);
  StopOptions options;
  options.max_seconds = 1000;
  {
    const StopControl stop(options);
    EXPECT_NEAR(*stop.seconds_left(), 500, 2);
  }
  options.max_seconds = 100;
  {
    const StopControl stop(options);
    EXPECT_NEAR(*stop.seconds_left(), 100, 2);
  }
  set(-500);  // of some other job
  EXPECT_FALSE(slurm_seconds_left());
  ::setenv("SLURM_JOB_END_TIME", "soon", 1);
  EXPECT_FALSE(slurm_seconds_left());
  ::unsetenv("SLURM_JOB_END_TIME");
  EXPECT_FALSE(slurm_seconds_left());
}

// What the watching thread says before it would end the process, or "" after `milliseconds`.
std::string left_within(int milliseconds, double max_seconds, double step, bool begin) {
  std::atomic<bool> left = false;
  std::string why;
  StopOptions options = plain();
  options.max_seconds = max_seconds;
  options.reserve_seconds = 1;
  options.leave = [&](const std::string& text) {
    if (!left) why = text;
    left = true;
  };
  StopControl stop(options);
  stop.step_took(step);
  if (begin) stop.step_begins();
  for (int i = 0; i < milliseconds / 10 && !left; ++i) ::usleep(10'000);
  return left ? why : "";
}

TEST(Stop, a_step_that_cannot_end_in_time_is_left_at_once) {
  EXPECT_NE(left_within(3000, 60, 300, true).find("this step needs 300 more"), std::string::npos);
  EXPECT_NE(left_within(3000, 0.5, 0, false).find("s are left"), std::string::npos);
  EXPECT_EQ(left_within(500, 60, 10, true), "");
  EXPECT_EQ(left_within(500, 60, 300, false), "");  // no step runs
}

TEST(Stop, leaving_ends_the_process_with_75) {
  const pid_t child = ::fork();
  if (child == 0) {
    StopOptions options = plain();
    options.max_seconds = 10;
    StopControl stop(options);
    stop.step_took(1000);
    stop.step_begins();
    ::sleep(20);
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 75);
}

}  // namespace h3::test
