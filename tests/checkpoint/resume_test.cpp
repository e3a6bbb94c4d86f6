#include "checkpoint/resume.h"

#include <gtest/gtest.h>

#include "checkpoint/paths.h"
#include "checkpoint/samples.h"
#include "checkpoint/writer.h"
#include "support/temporary_folder.h"

namespace h3::test {

namespace fs = std::filesystem;

class Resume : public ::testing::Test {
 protected:
  Resume() : paths_(checkpoint_paths(folder_.path(), "x")) {}
  // Inputs, and checkpoints of steps 3 (previous) and 4 (newest).
  void put_all() {
    put_bytes(paths_.inputs, compose_inputs(sample_inputs(1)));
    put_bytes(paths_.previous, compose_checkpoint(sample_checkpoint(1, 3)));
    put_bytes(paths_.newest, compose_checkpoint(sample_checkpoint(1, 4)));
  }
  std::optional<ResumePoint> read() { return read_checkpoint(folder_.path(), "x"); }
  std::string refusal() {
    const auto before = contents();
    try {
      read();
    } catch (const UserError& e) {
      EXPECT_TRUE(contents() == before);  // looking changes nothing
      return e.what();
    }
    return "";
  }
  void damage(const fs::path& path) {
    std::string bytes = bytes_of(path);
    bytes.resize(bytes.size() / 2);
    put_bytes(path, bytes);
  }

  TemporaryFolder folder_;
  CheckpointPaths paths_;

 private:
  std::vector<std::pair<std::string, std::string>> contents() {
    std::vector<std::pair<std::string, std::string>> all;
    for (const std::string& name : names_in(folder_.path())) all.emplace_back(name, bytes_of(folder_.path() / name));
    return all;
  }
};

TEST_F(Resume, nothing_where_there_is_no_checkpoint) {
  EXPECT_FALSE(read());
  put_bytes(paths_.inputs, compose_inputs(sample_inputs(1)));
  EXPECT_FALSE(read());
  EXPECT_FALSE(peek_checkpoint(folder_.path(), "x"));
}

TEST_F(Resume, the_newest_is_taken) {
  put_all();
  const auto point = read();
  ASSERT_TRUE(point);
  EXPECT_EQ(point->state, sample_checkpoint(1, 4));
  EXPECT_EQ(point->file, paths_.newest);
  ASSERT_TRUE(point->inputs);
  EXPECT_EQ(point->inputs->identity(), sample_inputs(1).identity());
  EXPECT_TRUE(point->notes.empty());
  EXPECT_EQ(peek_checkpoint(folder_.path(), "x")->step, 4);
}

TEST_F(Resume, a_kill_between_the_renames_leaves_the_previous) {
  put_all();
  fs::remove(paths_.newest);
  const auto point = read();
  EXPECT_EQ(point->state.step, 3);
  EXPECT_TRUE(point->notes.empty());
}

TEST_F(Resume, a_damaged_newest_falls_back_and_says_so) {
  put_all();
  damage(paths_.newest);
  const auto point = read();
  EXPECT_EQ(point->state, sample_checkpoint(1, 3));
  ASSERT_EQ(point->notes.size(), 1u);
  EXPECT_NE(point->notes[0].find("x.checkpoint.h5 is damaged"), std::string::npos) << point->notes[0];
  EXPECT_EQ(peek_checkpoint(folder_.path(), "x")->step, 3);
}

TEST_F(Resume, all_damaged_is_an_error_of_its_own) {
  put_all();
  damage(paths_.newest);
  damage(paths_.previous);
  EXPECT_THROW(read(), DamagedCheckpoint);
  EXPECT_NE(refusal().find("no sound checkpoint is left"), std::string::npos);
}

TEST_F(Resume, foreign_files_are_refused_even_with_a_sound_previous) {
  put_all();
  put_bytes(paths_.newest, "hello");
  EXPECT_NE(refusal().find("is not an HDF5 file"), std::string::npos);
  put_bytes(paths_.newest, compose_inputs(sample_inputs(1)));
  EXPECT_NE(refusal().find("format"), std::string::npos);
}

TEST_F(Resume, a_checkpoint_of_another_scene_is_refused) {
  put_all();
  put_bytes(paths_.newest, compose_checkpoint(sample_checkpoint(2, 4)));
  EXPECT_NE(refusal().find("belongs to another scene or model"), std::string::npos);
}

TEST_F(Resume, lost_inputs_are_told_and_can_be_made_again) {
  put_all();
  for (const bool missing : {false, true}) {
    missing ? (void)fs::remove(paths_.inputs) : damage(paths_.inputs);
    const auto point = read();
    EXPECT_EQ(point->state.step, 4);
    EXPECT_FALSE(point->inputs);
    EXPECT_EQ(point->notes.size(), 1u);
    EXPECT_EQ(point->state.inputs_hash, sample_inputs(1).content_hash());
  }
}

TEST_F(Resume, the_scratch_disk_is_used_when_it_is_ahead) {
  put_all();
  const TemporaryFolder scratch;
  const fs::path mine = scratch_folder(scratch.path(), folder_.path());
  make_scratch_folder(mine);
  const ResumeOptions options{FileLocking::automatic, scratch.path()};
  put_bytes(checkpoint_paths(mine, "x").newest, compose_checkpoint(sample_checkpoint(1, 9)));
  EXPECT_EQ(read_checkpoint(folder_.path(), "x", options)->state.step, 9);
  put_bytes(checkpoint_paths(mine, "x").newest, compose_checkpoint(sample_checkpoint(1, 2)));
  EXPECT_EQ(read_checkpoint(folder_.path(), "x", options)->state.step, 4);
  // What is wrong there is told, and no reason to stop.
  put_bytes(checkpoint_paths(mine, "x").newest, compose_checkpoint(sample_checkpoint(2, 9)));
  EXPECT_EQ(read_checkpoint(folder_.path(), "x", options)->state.step, 4);
  put_bytes(checkpoint_paths(mine, "x").newest, "hello");
  const auto point = read_checkpoint(folder_.path(), "x", options);
  EXPECT_EQ(point->state.step, 4);
  EXPECT_EQ(point->notes.size(), 1u);
}

TEST_F(Resume, removal_takes_all_of_this_scene_and_nothing_else) {
  put_all();
  const TemporaryFolder scratch;
  const fs::path mine = scratch_folder(scratch.path(), folder_.path());
  make_scratch_folder(mine);
  put_bytes(checkpoint_paths(mine, "x").newest, "old");
  put_bytes(unique_temporary_path(paths_.newest), "left by a kill");
  put_bytes(unique_temporary_path(paths_.inputs), "left by a kill");
  const std::vector<std::string> others{".x.checkpoint.checkpoint.0123456789abcdef.tmp.h5", "x.checkpoint.old.h5",
                                        "x.mp4", "y.checkpoint.h5"};
  for (const std::string& name : others) put_bytes(folder_.path() / name, "keep");
  remove_checkpoints(folder_.path(), "x", scratch.path());
  EXPECT_EQ(names_in(folder_.path()), others);
  EXPECT_TRUE(names_in(scratch.path()).empty());
}

}  // namespace h3::test
