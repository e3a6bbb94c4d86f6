// The job scripts under a real Slurm: arrays, stops, requeues, kills and cancellations end with every scene rendered,
// each with the bits of an undisturbed run.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/resume.h"
#include "cli/program.h"
#include "render/claim_record.h"
#include "slurm/slurm_cluster.h"
#include "support/goldens.h"

namespace h3::test {
namespace {

const std::string script_folder = H3RENDER_SOURCE_DIR "/slurm/";
const std::string slow = "0:step:0.5";  // what makes a step last long enough to be met in the middle

class Slurm : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = new SlurmCluster; }
  static void TearDownTestSuite() { delete cluster_; }
  void SetUp() override {
    if (!cluster_->reason().empty()) GTEST_SKIP() << "Slurm cannot be started here: " << cluster_->reason();
    if (!cluster_->has_mpi("pmix")) GTEST_SKIP() << "this Slurm has no srun --mpi=pmix";
  }

  // A small scene with a seed of its own in a file of its own.
  std::string scene(const std::string& name, int evaluations) {
    Json scene = tiny_scene();
    scene["name"] = name;
    scene["seed"] = scenes_.size();
    scene["evaluations"] = evaluations;
    scenes_.push_back(scene);
    return write_scene(folder_.path(), scene, name + ".json");
  }
  fs::path out() const { return folder_.path() / "out"; }
  std::string submit(const Words& options_and_script, const std::map<std::string, std::string>& environment = {}) {
    return cluster_->submit(folder_.path(), options_and_script, environment);
  }
  // sbatch's words for render.sbatch on two ranks.
  Words render_job(const std::string& scene_file, const Words& options) const {
    Words words{"--ntasks=2", script_folder + "render.sbatch", nano_path(), out(), scene_file};
    words.insert(words.end(), options.begin(), options.end());
    return words;
  }
  // What all jobs wrote.
  std::string log() const {
    std::string all;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      if (entry.path().extension() == ".out") all += entry.path().filename().string() + "\n" + read_file(entry.path());
    return all;
  }
  std::int64_t step_of(const std::string& name) const {
    const auto mark = peek_checkpoint(out(), name);
    return mark ? mark->step : 0;
  }
  // Waits until a scene's checkpoint is this far.
  bool reaches(const std::string& name, std::int64_t step) const {
    const double started = now();
    while (step_of(name) < step && now() - started < 60) ::usleep(20'000);
    return step_of(name) >= step;
  }
  // Every scene is there, equal to a render without Slurm, and nothing else is.
  void expect_all_rendered() const {
    std::set<std::string> files;
    for (const Json& scene : scenes_) {
      const std::string name = scene["name"];
      SCOPED_TRACE(name);
      ASSERT_TRUE(fs::exists(out() / (name + ".manifest.json"))) << log();
      EXPECT_EQ(hashes_of(read_json(out() / (name + ".manifest.json"))), hashes_of(Render(scene).manifest()));
      for (const char* ending : {".manifest.json", ".mp4", ".sheet.png"}) files.insert(name + ending);
    }
    EXPECT_EQ(names_in(out()), files);
  }

  static SlurmCluster* cluster_;
  TemporaryFolder folder_;
  std::vector<Json> scenes_;
};
SlurmCluster* Slurm::cluster_ = nullptr;

TEST_F(Slurm, ArrayOfSixScenesOverThreeTasks) {
  Words words{"--array=0-2%2", "--ntasks=2", script_folder + "array.sbatch", nano_path(), out()};
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) words.push_back(scene(name, 2));
  const std::string job = submit(words);
  EXPECT_EQ(cluster_->wait(job), std::vector<std::string>(3, "COMPLETED")) << log();
  expect_all_rendered();
  for (int task = 0; task < 3; ++task) {
    const std::string text = read_file(folder_.path() / fmt::format("job-{}_{}.out", job, task));
    EXPECT_EQ(count_of(text, ": done in "), 2u) << text;
  }
}

TEST_F(Slurm, SignalledJobRequeuesItselfAndFinishes) {
  for (const std::string launcher : {"srun --mpi=pmix --kill-on-bad-exit=1", "mpirun"}) {
    SCOPED_TRACE(launcher);
    const std::string name = launcher == "mpirun" ? "by-mpirun" : "by-srun";
    const std::string job = submit(render_job(scene(name, 6), {"--fail", slow}), {{"LAUNCHER", launcher}});
    ASSERT_TRUE(reaches(name, 2)) << log();
    cluster_->command({"scancel", "--batch", "--signal=USR1", job});
    EXPECT_EQ(cluster_->wait(job), std::vector<std::string>{"COMPLETED"}) << log();
    EXPECT_EQ(cluster_->restarts(job), 1);
    EXPECT_NE(log().find("restart 1"), std::string::npos) << log();
    EXPECT_NE(log().find("goes on after step"), std::string::npos) << log();
  }
  expect_all_rendered();
}

// Slurm itself sends the signal, a while before the limit of a minute; it looks at limits every half minute.
TEST_F(Slurm, SignalBeforeTheTimeLimit) {
  Words words = render_job(scene("long", 16), {"--fail", "0:step:3"});
  words.insert(words.begin(), {"--time=1", "--signal=B:USR1@52"});
  const std::string job = submit(words);
  EXPECT_EQ(cluster_->wait(job), std::vector<std::string>{"COMPLETED"}) << log();
  EXPECT_GE(cluster_->restarts(job), 1) << log();
  expect_all_rendered();
}

TEST_F(Slurm, ArrayTaskRequeuesItself) {
  const Words words{"--array=3-5:2",
                    "--ntasks=1",
                    script_folder + "array.sbatch",
                    nano_path(),
                    out(),
                    scene("a", 6),
                    scene("b", 2),
                    "--",
                    "--fail",
                    slow};
  const std::string job = submit(words);
  ASSERT_TRUE(reaches("a", 2)) << log();
  cluster_->command({"scancel", "--batch", "--signal=USR1", job + "_3"});
  EXPECT_EQ(cluster_->wait(job), std::vector<std::string>(2, "COMPLETED")) << log();
  EXPECT_EQ(cluster_->restarts(job + "_3"), 1);
  EXPECT_EQ(cluster_->restarts(job + "_5"), 0);
  expect_all_rendered();
}

TEST_F(Slurm, SceneOfAKilledTaskIsFinishedByAnother) {
  Words words{"--array=0-1", "--ntasks=2", script_folder + "array.sbatch", nano_path(), out()};
  for (const char* name : {"a", "b"}) words.push_back(scene(name, 8));
  words.insert(words.end(), {"--", "--fail", slow});
  const std::string job = submit(words, {{"HELP", "yes"}});
  ASSERT_TRUE(reaches("a", 2)) << log();
  const auto claim = look_at_claim(claim_path(out(), "a"));
  ASSERT_TRUE(claim && claim->record) << log();
  EXPECT_EQ(claim->record->owner.job, job + "_0");
  ASSERT_GT(claim->record->owner.pid, 1);
  ASSERT_EQ(::kill(static_cast<pid_t>(claim->record->owner.pid), SIGKILL), 0);
  std::vector<std::string> states = cluster_->wait(job);
  std::sort(states.begin(), states.end());
  EXPECT_EQ(states, (std::vector<std::string>{"COMPLETED", "FAILED"})) << log();
  EXPECT_NE(log().find("a: the claim of host"), std::string::npos) << log();
  expect_all_rendered();
}

TEST_F(Slurm, ResubmissionOfACancelledJobCompletes) {
  const std::string file = scene("clip", 8);
  const std::string job = submit(render_job(file, {"--fail", slow}));
  ASSERT_TRUE(reaches("clip", 2)) << log();
  cluster_->command({"scancel", job});
  EXPECT_EQ(cluster_->wait(job), std::vector<std::string>{"CANCELLED"}) << log();
  EXPECT_EQ(cluster_->restarts(job), 0) << "a cancelled job put itself back\n" << log();
  EXPECT_GE(step_of("clip"), 2);
  const std::string again = submit(render_job(file, {}));
  EXPECT_EQ(cluster_->wait(again), std::vector<std::string>{"COMPLETED"}) << log();
  EXPECT_NE(log().find("goes on after step"), std::string::npos) << log();
  expect_all_rendered();
}

// The exit code is the job's, so that scripts and dependencies decide without reading logs.
TEST_F(Slurm, ExitCodesReachSlurm) {
  const std::string bad = submit(render_job(scene("clip", 2), {"frames=7"}));
  EXPECT_EQ(cluster_->wait(bad), std::vector<std::string>{"FAILED"});
  EXPECT_NE(cluster_->command({"scontrol", "show", "job", bad}).out.find("ExitCode=2:0"), std::string::npos) << log();
  EXPECT_EQ(cluster_->restarts(bad), 0);
}

// srun without a launch interface that this MPI knows starts every task as a world of its own: refused by the MPI or by
// the program, not rendered twice. Where Open MPI has PMI-2, it works.
TEST_F(Slurm, OtherLaunchInterfaces) {
  const std::string file = scene("clip", 2);
  for (const std::string kind : {"none", "pmi2"}) {
    if (!cluster_->has_mpi(kind)) continue;
    SCOPED_TRACE(kind);
    Words words{"srun", "--ntasks=2", "--mpi=" + kind, h3render_path()};
    for (const std::string& word : render_words(file, out())) words.push_back(word);
    const Result result = cluster_->command(words);
    if (kind == "pmi2" && result.exit_code == 0) {
      expect_all_rendered();
      continue;
    }
    EXPECT_NE(result.exit_code, 0) << result.err;
    EXPECT_TRUE(result.err.find("start with srun --mpi=pmix") != std::string::npos ||
                result.err.find("OMPI was not built with SLURM's PMI support") != std::string::npos)
        << result.err;
    EXPECT_TRUE(names_in(out()).empty());
  }
}

}  // namespace
}  // namespace h3::test
