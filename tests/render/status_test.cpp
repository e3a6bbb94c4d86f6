#include "render/status.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "base/error.h"
#include "checkpoint/paths.h"
#include "checkpoint/state.h"
#include "render/claim_record.h"
#include "support/temporary_folder.h"

namespace h3::test {

namespace fs = std::filesystem;

class Status : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) const { std::ofstream(folder_.path() / name) << text; }
  void put_done(const std::string& name, double seconds) const {
    put(name + ".manifest.json", nlohmann::json{{"seconds", {{"total", seconds}}}}.dump());
  }
  void put_claim(const std::string& name, const ClaimStatus& status, const std::vector<std::string>& batch = {},
                 const std::function<void(ClaimOwner&)>& change = {}) const {
    ClaimRecord record;
    record.owner = this_process();
    record.owner.job = "55_3";
    if (change) change(record.owner);
    record.scene = name;
    record.batch = batch;
    record.started = static_cast<double>(::time(nullptr)) - 30;
    record.status = status;
    put(name + ".claim", claim_text(record));
  }
  void put_checkpoint(const std::string& name) const {
    Checkpoint c;
    c.step = 3;
    c.steps = 4;
    c.video_width = c.audio_width = 1;
    c.video = c.audio = {1, 2};
    c.video_sigmas = c.audio_sigmas = {1, 0.7f, 0.5f, 0.2f, 0};
    c.inputs_hash = std::string(32, '0');
    put(name + ".checkpoint.h5", compose_checkpoint(c));
  }
  void age(const std::string& name, long seconds) const {
    const long now = ::time(nullptr);
    const timespec times[2] = {{now - seconds, 0}, {now - seconds, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (folder_.path() / name).c_str(), times, 0), 0);
  }
  SceneStatus of(const std::string& name) const {
    for (const SceneStatus& s : collect_status(folder_.path()).scenes)
      if (s.name == name) return s;
    SceneStatus missing;
    missing.name = "(missing)";
    return missing;
  }

  TemporaryFolder folder_;
};

TEST_F(Status, every_state_in_one_folder) {
  put_done("a", 100);
  put("b.failed.json", R"({"scene": "b", "error": "disk full"})");
  put_claim("c", {"denoise", 3, 24, 2.0, 5 << 20, 4}, {"a", "b", "c", "d"});
  put_checkpoint("e");
  put("unrelated.txt", "x");
  put(".a.123.tmp.mp4", "x");
  const StatusReport report = collect_status(folder_.path(), {"c", "a"});
  std::vector<std::string> names;
  for (const SceneStatus& s : report.scenes) names.push_back(s.name);
  EXPECT_EQ(names, (std::vector<std::string>{"c", "a", "b", "e", "d"}));
  EXPECT_EQ(report.count(SceneState::done), 1u);
  EXPECT_EQ(report.count(SceneState::running), 1u);
  EXPECT_EQ(report.count(SceneState::failed), 1u);
  EXPECT_EQ(report.count(SceneState::waiting), 2u);

  const SceneStatus c = of("c"), e = of("e");
  EXPECT_EQ(c.stage, "denoise");
  EXPECT_EQ(*c.seconds_left, 42);
  EXPECT_NEAR(*c.seconds, 30, 5);
  EXPECT_EQ(c.job, "55_3");
  EXPECT_EQ(of("a").seconds, 100);
  EXPECT_EQ(of("b").note, "disk full");
  EXPECT_EQ(of("d").state, SceneState::waiting);
  EXPECT_EQ(e.step, 3);
  EXPECT_EQ(e.note, "stopped at step 3 of 4");
  // 42 s of c, and two waiting scenes at the mean of 100 s and 24 steps of 2 s.
  EXPECT_EQ(report.seconds_left, 42 + 2 * (100.0 + 48.0) / 2);

  const auto j = to_json(report);
  EXPECT_EQ(j["running"], 1);
  EXPECT_EQ(j["scenes"][0]["step"], 3);
  EXPECT_EQ(j["scenes"][0]["memory_bytes"], 5 << 20);
  EXPECT_EQ(j["scenes"][2]["error"], "disk full");
  const std::string text = text_of(report);
  EXPECT_NE(text.find("c     running  denoise step 3/24, 2.00 s a step, 42.0 s left, 5.0 MiB, 4 ranks on "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("1 done, 1 running, 1 failed, 2 waiting; about 3 min 10 s left\n"), std::string::npos) << text;
}

TEST_F(Status, a_claim_of_a_gone_process_does_not_run) {
  put_claim("x", {}, {"x", "y"}, [](ClaimOwner& o) { o.pid_start -= 1; });
  put_checkpoint("x");
  EXPECT_EQ(of("x").state, SceneState::waiting);
  EXPECT_NE(of("x").note.find("stopped at step 3 of 4; its run is gone"), std::string::npos) << of("x").note;
  EXPECT_EQ(of("y").name, "(missing)");  // nobody will render it
}

TEST_F(Status, a_claim_of_another_node_runs_while_it_is_refreshed) {
  const auto elsewhere = [](ClaimOwner& o) { o.boot_id = "elsewhere"; };
  put_claim("x", {"decode", 0, 0, 0, 0, 1}, {}, elsewhere);
  EXPECT_EQ(of("x").state, SceneState::running);
  age("x.claim", 90);
  EXPECT_EQ(of("x").state, SceneState::waiting);
  age("x.claim", -90);  // the clock here is behind
  EXPECT_EQ(of("x").state, SceneState::running);
}

TEST_F(Status, a_scene_that_is_rendered_again_runs) {
  put_done("x", 10);
  age("x.manifest.json", 3600);
  put_claim("x", {});
  EXPECT_EQ(of("x").state, SceneState::running);
  put_done("x", 10);  // just finished, the claim goes next
  age("x.manifest.json", 0);
  EXPECT_EQ(of("x").state, SceneState::done);
}

TEST_F(Status, unknown_times_give_no_estimate) {
  put_claim("x", {"load", 0, 0, 0, 0, 1}, {"x", "y"});
  EXPECT_FALSE(collect_status(folder_.path()).seconds_left);
  EXPECT_TRUE(to_json(collect_status(folder_.path()))["seconds_left"].is_null());
}

TEST_F(Status, broken_files_and_folders) {
  put("x.manifest.json", "{");
  put("y.failed.json", "5");
  put("z.claim", "");
  put("w.checkpoint.h5", "no");
  put("v.manifest.json", R"({"seconds": "none"})");
  const StatusReport report = collect_status(folder_.path());
  EXPECT_EQ(report.scenes.size(), 5u);
  EXPECT_EQ(of("x").state, SceneState::waiting);
  EXPECT_EQ(of("z").state, SceneState::running);  // being created
  EXPECT_EQ(of("v").state, SceneState::done);
  EXPECT_FALSE(text_of(report).empty());
  EXPECT_THROW(collect_status(folder_.path() / "missing"), UserError);
}

TEST_F(Status, an_empty_folder) {
  const StatusReport report = collect_status(folder_.path());
  EXPECT_TRUE(report.scenes.empty());
  EXPECT_EQ(text_of(report), "0 done, 0 running, 0 failed, 0 waiting\n");
  EXPECT_EQ(report.seconds_left, 0);
}

}  // namespace h3::test
