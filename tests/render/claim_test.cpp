#include "render/claim.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "base/error.h"
#include "base/log.h"
#include "support/temporary_folder.h"

namespace h3::test {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

template <typename F>
bool eventually(F&& f, int milliseconds = 5000) {
  for (int i = 0; i < milliseconds; ++i) {
    if (f()) return true;
    ::usleep(1000);
  }
  return false;
}

class Claims : public ::testing::Test {
 protected:
  Claims() { spdlog::set_level(spdlog::level::err); }
  ~Claims() override { spdlog::set_level(spdlog::level::info); }
  ClaimOptions options() {
    ClaimOptions o;
    o.heartbeat_seconds = 0.02;
    o.clock = [this] { return clock_; };
    return o;
  }
  ClaimRecord record() const { return *look_at_claim(path())->record; }
  fs::path path() const { return claim_path(folder_.path(), "x"); }
  // A claim file of a process somewhere else.
  void put_foreign(const std::function<void(ClaimOwner&)>& change) const {
    ClaimRecord r;
    r.owner = this_process();
    r.scene = "x";
    change(r.owner);
    std::ofstream(path()) << claim_text(r);
  }

  TemporaryFolder folder_;
  double clock_ = 1000;
};

TEST_F(Claims, one_holder_and_nothing_left_behind) {
  ClaimDesk first(folder_.path(), options()), second(folder_.path(), options());
  auto claim = first.try_claim("x");
  ASSERT_TRUE(claim);
  EXPECT_TRUE(claim->still_mine());
  EXPECT_FALSE(second.try_claim("x"));
  EXPECT_FALSE(first.try_claim("x"));
  EXPECT_NE(second.holder("x").find(fmt::format("process {}", ::getpid())), std::string::npos) << second.holder("x");
  EXPECT_TRUE(second.try_claim("y"));
  claim.reset();
  EXPECT_TRUE(names_in(folder_.path()).empty());
  EXPECT_TRUE(second.try_claim("x"));
}

TEST_F(Claims, the_heartbeat_refreshes_time_and_status_in_place) {
  ClaimOptions o = options();
  o.batch = {"x", "y"};
  ClaimDesk desk(folder_.path(), o);
  const auto claim = desk.try_claim("x");
  const auto first = look_at_claim(path());
  claim->set_status({"denoise", 3, 24, 1.5, 1 << 20, 4});
  ASSERT_TRUE(eventually([&] { return record().status.step == 3; }));
  EXPECT_EQ(record().status.stage, "denoise");
  EXPECT_EQ(record().status.ranks, 4);
  EXPECT_EQ(record().batch, o.batch);
  EXPECT_TRUE(eventually([&] { return record().beat >= 5; }));
  const auto later = look_at_claim(path());
  EXPECT_EQ(later->inode, first->inode);
  EXPECT_GT(later->mtime_ns, first->mtime_ns);
  EXPECT_EQ(later->text.size(), first->text.size());
}

TEST_F(Claims, a_long_batch_and_a_long_stage_fit) {
  ClaimOptions o = options();
  for (int i = 0; i < 300; ++i) o.batch.push_back(fmt::format("a rather long name of a scene {:04}", i));
  ClaimDesk desk(folder_.path(), o);
  const auto claim = desk.try_claim("x");
  claim->set_status({std::string(5000, 's'), INT64_MAX, INT64_MAX, 1.0 / 3, UINT64_MAX, INT32_MAX});
  EXPECT_TRUE(eventually([&] { return record().status.step == INT64_MAX; }));
  EXPECT_EQ(record().batch.size(), 300u);
}

TEST_F(Claims, a_dead_process_of_this_boot_is_replaced_at_once) {
  const pid_t child = ::fork();
  if (child == 0) {
    ClaimDesk desk(folder_.path(), options());
    const auto claim = desk.try_claim("x");
    ::kill(::getpid(), SIGKILL);
  }
  ASSERT_TRUE(eventually([&] {  // not waited for yet: a zombie is dead
    return fs::exists(path()) && record().owner.pid == child && state_of(record().owner) == OwnerState::gone;
  }));
  ClaimDesk desk(folder_.path(), options());
  EXPECT_TRUE(desk.try_claim("x"));
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(names_in(folder_.path()).empty());
}

TEST_F(Claims, a_process_number_that_was_used_again_is_another_process) {
  put_foreign([](ClaimOwner& o) { o.pid_start -= 1; });
  EXPECT_TRUE(ClaimDesk(folder_.path(), options()).try_claim("x"));
}

TEST_F(Claims, an_unseen_process_is_replaced_after_a_minute_of_our_own_clock) {
  for (const bool other_boot : {true, false}) {
    put_foreign([&](ClaimOwner& o) { (other_boot ? o.boot_id : o.pid_namespace) = "elsewhere"; });
    ClaimDesk desk(folder_.path(), options());
    EXPECT_FALSE(desk.try_claim("x"));
    clock_ += 59;
    EXPECT_FALSE(desk.try_claim("x"));
    clock_ += 2;
    EXPECT_TRUE(desk.try_claim("x"));
    EXPECT_TRUE(names_in(folder_.path()).empty());
  }
}

// The time of a file may move anywhere when clocks are set; only standing still means death.
TEST_F(Claims, any_change_of_the_file_is_life_also_a_clock_that_goes_backwards) {
  put_foreign([](ClaimOwner& o) { o.boot_id = "elsewhere"; });
  ClaimDesk desk(folder_.path(), options());
  EXPECT_FALSE(desk.try_claim("x"));
  for (int i = 1; i <= 5; ++i) {
    clock_ += 50;
    const timespec back[2] = {{1'000'000 - i * 1000, 0}, {1'000'000 - i * 1000, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path().c_str(), back, 0), 0);
    EXPECT_FALSE(desk.try_claim("x"));
  }
  clock_ += 61;
  EXPECT_TRUE(desk.try_claim("x"));
}

TEST_F(Claims, an_empty_or_broken_claim_is_respected_for_a_minute) {
  for (const char* text : {"", "{\"scene\": 5}", "garbage"}) {
    std::ofstream(path(), std::ios::trunc) << text;
    ClaimDesk desk(folder_.path(), options());
    EXPECT_FALSE(desk.try_claim("x"));
    EXPECT_EQ(desk.holder("x"), "an unknown process");
    clock_ += 61;
    EXPECT_TRUE(desk.try_claim("x"));
  }
}

TEST_F(Claims, a_stopped_owner_loses_its_claim_and_notices) {
  ClaimOptions slow = options();
  slow.heartbeat_seconds = 3600;  // as a stopped process
  ClaimDesk owner(folder_.path(), slow), other(folder_.path(), options());
  auto claim = owner.try_claim("x");
  EXPECT_FALSE(other.try_claim("x"));
  clock_ += 61;
  auto taken = other.try_claim("x");
  ASSERT_TRUE(taken);
  EXPECT_FALSE(claim->still_mine());
  EXPECT_TRUE(taken->still_mine());
  claim->set_status({"denoise", 1, 2, 0, 0, 1});  // goes to the old file
  claim.reset();                                  // and its end takes nothing away
  EXPECT_TRUE(taken->still_mine());
  EXPECT_EQ(record().owner.nonce, taken->owner().nonce);
  EXPECT_EQ(record().status.step, 0);
  taken.reset();
  EXPECT_TRUE(names_in(folder_.path()).empty());
}

TEST_F(Claims, a_folder_that_takes_no_files_is_an_error_of_the_scene) {
  ClaimDesk desk(folder_.path() / "missing", options());
  EXPECT_THROW(desk.try_claim("x"), SceneError);
}

// Eight processes at once want one scene, whose claim is free or left by a dead process: exactly one gets it.
class Race : public Claims, public ::testing::WithParamInterface<bool> {};  // true: left by a dead process

TEST_P(Race, exactly_one_of_eight_wins) {
  constexpr int kRounds = 50, kProcesses = 8;
  for (int round = 0; round < kRounds; ++round) {
    const TemporaryFolder folder;
    const fs::path claim_file = claim_path(folder.path(), "x");
    if (GetParam()) {
      ClaimRecord dead;
      dead.owner = this_process();
      dead.owner.pid_start -= 1;
      std::ofstream(claim_file) << claim_text(dead);
    }
    int go[2], done[2];
    ASSERT_EQ(::pipe(go) | ::pipe(done), 0);
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; ++i) {
      children.push_back(::fork());
      if (children.back() != 0) continue;
      ::close(go[1]);
      ::close(done[1]);
      char byte;
      (void)!::read(go[0], &byte, 1);  // all start when the parent closes its end
      ClaimDesk desk(folder.path(), options());
      const auto claim = desk.try_claim("x");
      ::close(go[0]);
      if (!claim) ::_exit(0);
      (void)!::read(done[0], &byte, 1);  // held until all have tried
      ::_exit(claim->still_mine() ? 1 : 2);
    }
    ::close(go[1]);
    int winners = 0, finished = 0, status = 0;
    while (finished < kProcesses - 1 && ::waitpid(-1, &status, 0) > 0) {
      ++finished;
      ASSERT_EQ(status, 0) << "round " << round;
    }
    ::close(done[1]);
    while (::waitpid(-1, &status, 0) > 0) winners += WEXITSTATUS(status) == 1;
    ::close(go[0]);
    ::close(done[0]);
    EXPECT_EQ(winners, 1) << "round " << round;
    EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"x.claim"});
  }
}

INSTANTIATE_TEST_SUITE_P(LeftByADeadProcess, Race, ::testing::Bool());

}  // namespace h3::test
