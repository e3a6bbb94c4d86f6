#include "checkpoint/writer.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "base/error.h"
#include "checkpoint/durable_file.h"
#include "checkpoint/paths.h"
#include "checkpoint/resume.h"
#include "checkpoint/samples.h"
#include "support/temporary_folder.h"

namespace h3::test {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

TEST(Writer, writes_keeps_the_previous_and_leaves_nothing_else) {
  const TemporaryFolder folder;
  EXPECT_EQ(write_inputs(folder.path(), "x", sample_inputs(1)), sample_inputs(1).content_hash());
  CheckpointWriter writer(folder.path(), "x", {});
  for (const std::int64_t step : {1, 2, 3}) {
    EXPECT_EQ(writer.submit(sample_checkpoint(1, step)), "");
    EXPECT_EQ(writer.finish(), "");
  }
  EXPECT_EQ(names_in(folder.path()), (Names{"x.checkpoint.h5", "x.checkpoint.prev.h5", "x.inputs.h5"}));
  const CheckpointPaths paths = checkpoint_paths(folder.path(), "x");
  EXPECT_EQ(parse_checkpoint(paths.newest, FileLocking::on), sample_checkpoint(1, 3));
  EXPECT_EQ(parse_checkpoint(paths.previous, FileLocking::on), sample_checkpoint(1, 2));
  EXPECT_EQ(writer.totals().written, 3);
  EXPECT_EQ(writer.totals().last_step, 3);
}

TEST(Writer, a_slow_disk_delays_nobody_and_queues_one_snapshot) {
  const TemporaryFolder folder;
  const fs::path gate = folder.path() / "gate";
  put_bytes(gate, "");
  CheckpointOptions options;
  options.hooks = hold_at("half", gate);
  CheckpointWriter writer(folder.path(), "x", options);
  for (std::int64_t step = 1; step <= 20; ++step) EXPECT_EQ(writer.submit(sample_checkpoint(1, step)), "");
  EXPECT_GE(writer.totals().replaced, 18);
  fs::remove(gate);
  EXPECT_EQ(writer.finish(), "");
  EXPECT_EQ(writer.totals().last_step, 20);
  EXPECT_LE(writer.totals().written, 2);
  EXPECT_EQ(read_checkpoint(folder.path(), "x")->state.step, 20);
}

TEST(Writer, the_destructor_waits_for_the_last_snapshot) {
  const TemporaryFolder folder;
  {
    CheckpointWriter writer(folder.path(), "x", {});
    EXPECT_EQ(writer.submit(sample_checkpoint(1, 5)), "");
  }
  EXPECT_EQ(read_checkpoint(folder.path(), "x")->state.step, 5);
}

TEST(Writer, a_damaged_newest_does_not_replace_the_sound_previous) {
  const TemporaryFolder folder;
  const CheckpointPaths paths = checkpoint_paths(folder.path(), "x");
  put_bytes(paths.previous, compose_checkpoint(sample_checkpoint(1, 3)));
  put_bytes(paths.newest, compose_checkpoint(sample_checkpoint(1, 4)).substr(0, 1000));
  CheckpointWriter writer(folder.path(), "x", {});
  EXPECT_EQ(writer.submit(sample_checkpoint(1, 4)), "");
  EXPECT_EQ(writer.finish(), "");
  EXPECT_EQ(parse_checkpoint(paths.previous, FileLocking::on).step, 3);
  EXPECT_EQ(parse_checkpoint(paths.newest, FileLocking::on).step, 4);
}

TEST(Writer, foreign_files_are_not_overwritten) {
  const TemporaryFolder folder;
  const CheckpointPaths paths = checkpoint_paths(folder.path(), "x");
  for (const std::string& foreign : {std::string("my notes"), compose_checkpoint(sample_checkpoint(2, 4))}) {
    put_bytes(paths.newest, foreign);
    CheckpointWriter writer(folder.path(), "x", {});
    EXPECT_EQ(writer.submit(sample_checkpoint(1, 4)), "");
    EXPECT_NE(writer.finish().find("not overwritten"), std::string::npos);
    EXPECT_TRUE(bytes_of(paths.newest) == foreign);
    EXPECT_EQ(names_in(folder.path()), Names{"x.checkpoint.h5"});
  }
}

TEST(Writer, nothing_changes_after_the_claim_was_lost) {
  const TemporaryFolder folder;
  std::atomic<bool> mine = true;
  CheckpointOptions options;
  options.may_commit = [&] { return mine.load(); };
  CheckpointWriter writer(folder.path(), "x", options);
  EXPECT_EQ(writer.submit(sample_checkpoint(1, 1)), "");
  EXPECT_EQ(writer.finish(), "");
  mine = false;
  EXPECT_EQ(writer.submit(sample_checkpoint(1, 2)), "");
  EXPECT_NE(writer.finish().find("taken the scene over"), std::string::npos);
  EXPECT_EQ(read_checkpoint(folder.path(), "x")->state.step, 1);
  EXPECT_EQ(names_in(folder.path()), Names{"x.checkpoint.h5"});
}

TEST(Writer, errors_come_back_at_the_next_call_and_writing_goes_on) {
  const TemporaryFolder folder;
  const fs::path inner = folder.path() / "inner";
  CheckpointWriter writer(inner, "x", {});
  EXPECT_EQ(writer.submit(sample_checkpoint(1, 1)), "");
  while (writer.totals().written == 0) {
    const std::string error = writer.submit(sample_checkpoint(1, 2));
    if (error.empty()) continue;
    EXPECT_NE(error.find("x.checkpoint.h5: cannot be written: No such file or directory"), std::string::npos) << error;
    break;
  }
  fs::create_directory(inner);
  (void)writer.finish();
  EXPECT_EQ(writer.submit(sample_checkpoint(1, 3)), "");
  EXPECT_EQ(writer.finish(), "");
  EXPECT_EQ(read_checkpoint(inner, "x")->state.step, 3);
}

TEST(Writer, scratch_takes_every_checkpoint_and_the_output_folder_the_last) {
  const TemporaryFolder folder, scratch;
  CheckpointOptions options;
  options.scratch = scratch.path();
  options.flush_seconds = 3600;
  const fs::path mine = scratch_folder(scratch.path(), folder.path());
  {
    CheckpointWriter writer(folder.path(), "x", options);
    EXPECT_EQ(writer.submit(sample_checkpoint(1, 1)), "");
    while (writer.totals().written < 1) ::usleep(1000);
    EXPECT_TRUE(names_in(folder.path()).empty());
    struct stat info {};
    ASSERT_EQ(::stat(mine.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777u, 0700u);
    EXPECT_EQ(writer.finish(), "");
    EXPECT_EQ(read_checkpoint(folder.path(), "x")->state.step, 1);
    EXPECT_EQ(writer.submit(sample_checkpoint(1, 2)), "");
  }
  EXPECT_EQ(read_checkpoint(folder.path(), "x")->state.step, 2);
  options.flush_seconds = 0;
  CheckpointWriter writer(folder.path(), "x", options);
  EXPECT_EQ(writer.submit(sample_checkpoint(1, 3)), "");
  while (writer.totals().written < 1) ::usleep(1000);
  EXPECT_EQ(read_checkpoint(folder.path(), "x")->state.step, 3);
}

// A file system of its own for one test; ends up as a skip where mounting is not allowed.
class SmallDisk {
 public:
  explicit SmallDisk(const char* options) {
    if (::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, options) != 0) reason_ = std::strerror(errno);
  }
  ~SmallDisk() {
    if (reason_.empty()) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  const std::string& reason() const { return reason_; }
  const fs::path& path() const { return folder_.path(); }
  void read_only() { ASSERT_EQ(::mount("", path().c_str(), "", MS_REMOUNT | MS_RDONLY, ""), 0); }

 private:
  TemporaryFolder folder_;
  std::string reason_;
};

TEST(Writer, a_full_disk_is_reported_and_the_last_checkpoint_stays) {
  const SmallDisk disk("size=256k");
  if (!disk.reason().empty()) GTEST_SKIP() << "a tmpfs cannot be mounted: " << disk.reason();
  CheckpointWriter writer(disk.path(), "x", {});
  EXPECT_EQ(writer.submit(sample_checkpoint(1, 1)), "");
  EXPECT_EQ(writer.finish(), "");
  EXPECT_EQ(writer.submit(sample_checkpoint(1, 2, 16384)), "");
  const std::string error = writer.finish();
  EXPECT_NE(error.find("x.checkpoint.h5: cannot be written: No space left on device"), std::string::npos) << error;
  EXPECT_EQ(names_in(disk.path()), Names{"x.checkpoint.h5"});
  EXPECT_EQ(read_checkpoint(disk.path(), "x")->state.step, 1);
  // Space came back.
  EXPECT_EQ(writer.submit(sample_checkpoint(1, 3)), "");
  EXPECT_EQ(writer.finish(), "");
  EXPECT_EQ(read_checkpoint(disk.path(), "x")->state.step, 3);
}

TEST(Writer, a_read_only_disk_is_reported) {
  SmallDisk disk("size=1m");
  if (!disk.reason().empty()) GTEST_SKIP() << "a tmpfs cannot be mounted: " << disk.reason();
  CheckpointWriter writer(disk.path(), "x", {});
  EXPECT_EQ(writer.submit(sample_checkpoint(1, 1)), "");
  EXPECT_EQ(writer.finish(), "");
  disk.read_only();
  EXPECT_EQ(writer.submit(sample_checkpoint(1, 2)), "");
  const std::string error = writer.finish();
  EXPECT_NE(error.find("Read-only file system"), std::string::npos) << error;
  EXPECT_EQ(read_checkpoint(disk.path(), "x")->state.step, 1);
}

TEST(WriteHooks, text_forms) {
  EXPECT_FALSE(parse_write_hooks("", "--fail-write").at);
  EXPECT_TRUE(parse_write_hooks("half:hold=/tmp/gate", "--fail-write").at);
  EXPECT_TRUE(parse_write_hooks("kept:exit=9@3", "--fail-write").at);
  for (const char* bad : {"half", "half:", "half:hold=", "half:exit=x", "half:exit=1@", "half:burn=1"})
    EXPECT_THROW(parse_write_hooks(bad, "--fail-write"), UserError) << bad;
}

// The process ends at each point of the third write; what is left must be one of the last two checkpoints.
TEST(WriteHooks, ending_at_any_point_leaves_a_whole_checkpoint) {
  for (const char* point : {"opened", "half", "written", "synced", "kept", "renamed", "done"}) {
    const TemporaryFolder folder;
    const pid_t child = ::fork();
    if (child == 0) {
      for (std::int64_t step = 1; step <= 2; ++step)
        write_durably(
            {checkpoint_paths(folder.path(), "x").newest, checkpoint_paths(folder.path(), "x").previous, {}, {}},
            compose_checkpoint(sample_checkpoint(1, step)));
      write_durably({checkpoint_paths(folder.path(), "x").newest,
                     checkpoint_paths(folder.path(), "x").previous,
                     {},
                     parse_write_hooks(std::string(point) + ":exit=9", "--fail-write")},
                    compose_checkpoint(sample_checkpoint(1, 3)));
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_EQ(WEXITSTATUS(status), 9) << point;
    const bool renamed = std::string(point) == "renamed" || std::string(point) == "done";
    EXPECT_EQ(read_checkpoint(folder.path(), "x")->state, sample_checkpoint(1, renamed ? 3 : 2)) << point;
    { const CheckpointWriter next(folder.path(), "x", {}); }
    for (const std::string& name : names_in(folder.path())) EXPECT_NE(name[0], '.') << name << " after " << point;
  }
}

}  // namespace h3::test
