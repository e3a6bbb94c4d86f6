#include "render/watchdog.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "base/error.h"

namespace h3::test {

class Dog : public ::testing::Test {
 protected:
  WatchdogOptions options(double timeout) {
    WatchdogOptions o;
    o.timeout_seconds = timeout;
    o.who = "rank 3 on node7";
    o.end = [this](const std::string& text) {
      message_ = text;
      ++ended_;
    };
    return o;
  }
  bool ends_within(int milliseconds) {
    for (int i = 0; i < milliseconds / 5 && ended_ == 0; ++i) ::usleep(5000);
    return ended_ > 0;
  }

  std::string message_;
  std::atomic<int> ended_ = 0;
};

TEST_F(Dog, ends_when_nothing_moves_and_says_where) {
  Watchdog dog(options(0.1));
  dog.progress("step 5");
  ASSERT_TRUE(ends_within(5000));
  EXPECT_EQ(message_.find("rank 3 on node7: no progress for 0 s (last: step 5)"), 0u) << message_;
  ::usleep(300'000);
  EXPECT_EQ(ended_, 1);
}

TEST_F(Dog, loading_and_pauses_do_not_count) {
  Watchdog dog(options(0.1));
  EXPECT_FALSE(ends_within(400));
  dog.progress("step 1");
  dog.pause();
  EXPECT_FALSE(ends_within(400));
}

TEST_F(Dog, progress_keeps_it_quiet) {
  Watchdog dog(options(1.0));
  for (int i = 0; i < 30; ++i) {
    dog.progress("step");
    ::usleep(50'000);
  }
  EXPECT_EQ(ended_, 0);
}

TEST_F(Dog, the_default_is_ten_steps_and_two_minutes_at_least) {
  Watchdog dog(options(0));
  EXPECT_EQ(dog.allowed_seconds(), 1800);
  dog.step_took(2);
  EXPECT_EQ(dog.allowed_seconds(), 120);
  dog.step_took(300);
  dog.step_took(100);
  EXPECT_EQ(dog.allowed_seconds(), 3000);
  dog.forget_steps();
  EXPECT_EQ(dog.allowed_seconds(), 1800);
}

TEST_F(Dog, ends_the_process_with_exit_code_1) {
  const pid_t child = ::fork();
  if (child == 0) {
    WatchdogOptions o;
    o.timeout_seconds = 0.05;
    Watchdog dog(o);
    dog.progress("step 1");
    ::sleep(20);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ExitCode::failure));
}

}  // namespace h3::test
