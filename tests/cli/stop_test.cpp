// However and whenever a run is told to stop, it ends with exit code 75 and loses at most a step: the next run goes on
// to the bits of an undisturbed one.
#include <gtest/gtest.h>
#include <signal.h>

#include "checkpoint/resume.h"
#include "cli/program.h"

namespace h3::test {
namespace {

constexpr int kSteps = 5;

class Stopping : public ::testing::Test {
 protected:
  void SetUp() override {
    Json scene = nano_scene(kSteps);
    scene["width"] = scene["height"] = 64;
    scene["name"] = "clip";
    file_ = write_scene(folder_.path(), scene);
    scene_ = scene;
  }
  fs::path out() const { return folder_.path() / "out"; }
  Words words(int ranks, const Words& options) const {
    Words all{h3render_path()};
    for (const std::string& word : render_words(file_, out(), options)) all.push_back(word);
    return on_ranks(ranks, all);
  }
  Result render(int ranks, const Words& options = {}) const { return run(words(ranks, options)); }
  std::int64_t step_on_disk() const {
    const auto mark = peek_checkpoint(out(), "clip");
    return mark ? mark->step : -1;
  }
  // Sends `signal` to one rank once standard error holds `text`, and returns how the run ended.
  Result stop_at(const std::string& text, int ranks, int rank, int signal, const Words& options) const {
    Process process(words(ranks, options));
    EXPECT_TRUE(process.wait_for_err(text)) << process.err();
    EXPECT_EQ(::kill(process.rank(rank), signal), 0);
    return process.wait();
  }
  // A later run, on another number of ranks, gives the bits that an undisturbed one gives, and leaves nothing behind.
  void expect_finished_by(int ranks, const Words& options = {}) {
    const Result result = render(ranks, options);
    expect_done(result);
    static const Hashes straight = hashes_of(Render(scene_).manifest());
    EXPECT_EQ(hashes_of(read_json(out() / "clip.manifest.json")), straight);
    EXPECT_EQ(names_in(out()), (std::set<std::string>{"clip.manifest.json", "clip.mp4", "clip.sheet.png"}));
  }

  TemporaryFolder folder_;
  Json scene_;
  std::string file_;
};

TEST_F(Stopping, EachSignalToAnyOneRank) {
  int rank = 0;
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) {
    SCOPED_TRACE(signal);
    const Result result = stop_at("loses 1.5 s in stage step", 3, rank++ % 3, signal, {"--fail", "0:step:1.5"});
    EXPECT_EQ(result.exit_code, 75) << result.err;
    EXPECT_NE(result.err.find("stopped: a signal asked for it"), std::string::npos) << result.err;
    EXPECT_GE(step_on_disk(), 1);
    EXPECT_LT(step_on_disk(), kSteps);
    EXPECT_FALSE(fs::exists(out() / "clip.claim"));
    expect_finished_by(2);
    fs::remove_all(out());
  }
}

// Where checkpoints are rare, the step that was done is kept when the run stops.
TEST_F(Stopping, KeepsTheStepThatWasDone) {
  const Result result =
      stop_at("loses 1.5 s in stage step", 2, 1, SIGUSR1, {"--fail", "0:step:1.5", "--checkpoint-steps", "100"});
  EXPECT_EQ(result.exit_code, 75) << result.err;
  EXPECT_GE(step_on_disk(), 1);
  expect_finished_by(1);
}

TEST_F(Stopping, CheckpointsByTimeAlone) {
  Process process(words(1, {"--fail", "0:step:0.4", "--checkpoint-steps", "0", "--checkpoint-seconds", "1"}));
  while (step_on_disk() < 0 && process.running()) ::usleep(20'000);
  EXPECT_GE(step_on_disk(), 2);
  EXPECT_EQ(process.wait().exit_code, 0);
  const Result none = render(1, {"--checkpoint-steps", "0", "--existing", "overwrite"});
  expect_done(none);
}

TEST_F(Stopping, WhileLoadingEncodingAndDecoding) {
  for (const std::string stage : {"validate", "load", "text", "decode"}) {
    SCOPED_TRACE(stage);
    const Result result = stop_at("loses 2 s in stage " + stage, 2, 1, SIGUSR1, {"--fail", "0:" + stage + ":2"});
    EXPECT_EQ(result.exit_code, 75) << result.err;
    EXPECT_EQ(step_on_disk(), stage == "decode" ? kSteps : -1);
    EXPECT_FALSE(fs::exists(out() / "clip.mp4"));
    expect_finished_by(3);
    fs::remove_all(out());
  }
}

TEST_F(Stopping, ASecondSignalLeavesAtOnce) {
  Process process(words(2, {"--fail", "0:step:60"}));
  ASSERT_TRUE(process.wait_for_err("loses 60 s in stage step"));
  const pid_t rank = process.rank(1);
  ::kill(rank, SIGUSR1);
  ::usleep(500'000);
  const double second = now();
  ::kill(rank, SIGUSR1);
  const Result result = process.wait();
  EXPECT_EQ(result.exit_code, 75) << result.err;
  EXPECT_NE(result.err.find("second signal: leaving at once"), std::string::npos) << result.err;
  EXPECT_LT(now() - second, 10);
  expect_finished_by(2);
}

// A step that outlasts the time is left in the middle.
TEST_F(Stopping, AtOnceWhereTheTimeIsUp) {
  const Result result = render(2, {"--fail", "0:step:60", "--max-time", "5"});
  EXPECT_EQ(result.exit_code, 75) << result.err;
  EXPECT_NE(result.err.find("leaving on the last checkpoint"), std::string::npos) << result.err;
  EXPECT_LT(result.seconds, 20);
  // Slurm's limit counts by itself.
  const std::string end = std::to_string(::time(nullptr) + 5);
  const Result slurm = run(words(2, {"--fail", "0:step:60"}), {.environment = {{"SLURM_JOB_END_TIME", end}}});
  EXPECT_EQ(slurm.exit_code, 75) << slurm.err;
  EXPECT_LT(slurm.seconds, 20);
  expect_finished_by(2);
}

TEST_F(Stopping, BeforeAStepThatWouldNotEndInTime) {
  const Result result = render(2, {"--fail", "0:step:2", "--max-time", "9"});
  EXPECT_EQ(result.exit_code, 75) << result.err;
  EXPECT_GE(step_on_disk(), 1);
  expect_finished_by(1);
}

TEST_F(Stopping, ScratchOfTheNodeIsFlushedAtTheStop) {
  const fs::path scratch = folder_.path() / "scratch";
  const Words options{"--fail", "0:step:1.5", "--checkpoint-scratch", scratch.string(), "--checkpoint-flush", "3600"};
  const Result result = stop_at("loses 1.5 s in stage step", 2, 0, SIGTERM, options);
  EXPECT_EQ(result.exit_code, 75) << result.err;
  EXPECT_GE(step_on_disk(), 1) << "not flushed";
  fs::remove_all(scratch);  // the next run is on another node
  expect_finished_by(2);
}

// A node that dies keeps what its scratch disk holds, and the output folder what was flushed.
TEST_F(Stopping, ScratchOfTheNodeIsAheadAfterAKill) {
  const std::string scratch = (folder_.path() / "scratch").string();
  const Words options{"--checkpoint-scratch", scratch, "--checkpoint-flush", "3600"};
  Words failing = options;
  failing.insert(failing.end(), {"--write-fault", "done:exit=9@4"});
  EXPECT_EQ(render(1, failing).exit_code, 9);
  EXPECT_EQ(step_on_disk(), -1);
  const Result resumed = render(2, options);
  expect_done(resumed);
  EXPECT_NE(resumed.err.find("goes on after step 3"), std::string::npos) << resumed.err;
  EXPECT_TRUE(names_in(scratch).empty());
}

}  // namespace
}  // namespace h3::test
