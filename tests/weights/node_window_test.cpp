// Memory that several ranks share, with threads in the place of ranks: same bits for any number, errors on all.
#include "weights/node_window.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "support/goldens.h"
#include "weights/host_memory.h"
#include "weights/identity.h"
#include "weights/load.h"
#include "weights/model_files.h"

namespace h3 {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

// What the ranks of one group have in common.
class Meeting {
 public:
  explicit Meeting(int size) : size_(size), texts_(static_cast<std::size_t>(size)) {}
  std::vector<std::string> gather(int rank, std::string_view text) {
    std::unique_lock lock(mutex_);
    texts_[static_cast<std::size_t>(rank)] = text;
    const int turn = turn_;
    if (++arrived_ == size_) {
      result_ = texts_;
      arrived_ = 0;
      ++turn_;
      all_.notify_all();
    } else {
      all_.wait(lock, [&] { return turn_ != turn; });
    }
    return result_;
  }

 private:
  int size_, arrived_ = 0, turn_ = 0;
  std::mutex mutex_;
  std::condition_variable all_;
  std::vector<std::string> texts_, result_;
};

class ThreadGroup : public NodeGroup {
 public:
  ThreadGroup(Meeting& meeting, int rank, int size) : meeting_(meeting), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::vector<std::string> gather(std::string_view text) override { return meeting_.gather(rank_, text); }

 private:
  Meeting& meeting_;
  int rank_, size_;
};

void on_ranks(int ranks, const std::function<void(std::unique_ptr<NodeGroup>)>& work) {
  Meeting meeting(ranks);
  std::vector<std::jthread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] { work(std::make_unique<ThreadGroup>(meeting, r, ranks)); });
}

TEST(NodeWindow, RanksFillOneMemory) {
  const ModelFolder model = open_model(test::nano_path());
  const WeightSet alone = load_component(model, Component::video_vae);
  const std::string id = model_identity(model, {.cache = "/proc/nowhere"});
  for (int ranks : {1, 2, 3, 7}) {
    const TemporaryFolder folder;
    on_ranks(ranks, [&](std::unique_ptr<NodeGroup> group) {
      const auto memory = make_node_memory(std::move(group), {.shm = folder.path()});
      const WeightSet set = load_component(model, Component::video_vae, {}, *memory);
      for (const auto& [name, t] : alone.tensors())
        EXPECT_EQ(std::memcmp(set.at(name).data, t.data, t.bytes()), 0) << name << " on " << memory->rank();
      // The name is gone, the memory stays.
      memory->join("");
      EXPECT_TRUE(fs::is_empty(folder.path()));
      EXPECT_EQ(model_identity(model, *memory, {.cache = "/proc/nowhere"}), id);
    });
  }
}

TEST(NodeWindow, WritesOfOneRankReachAll) {
  const TemporaryFolder folder;
  on_ranks(3, [&](std::unique_ptr<NodeGroup> group) {
    const auto memory = make_node_memory(std::move(group), {.shm = folder.path()});
    const auto block = memory->allocate(100'000, "test");
    EXPECT_EQ(block->bytes(), 100'000u);
    EXPECT_EQ(block->place(), folder.path().string());
    EXPECT_FALSE(block->on_disk());
    for (std::size_t i = 0; i < block->bytes(); i += 4096) EXPECT_EQ(block->data()[i], std::byte{0});
    memory->join("");
    block->data()[memory->rank()] = static_cast<std::byte>(memory->rank() + 1);
    memory->join("");
    for (int r = 0; r < 3; ++r) EXPECT_EQ(block->data()[r], static_cast<std::byte>(r + 1));
    EXPECT_EQ(memory->join(std::to_string(memory->rank())), "012");
    EXPECT_EQ(memory->allocate(0, "nothing")->bytes(), 0u);
  });
}

TEST(NodeWindow, SegmentsOfKilledRunsAreRemoved) {
  const TemporaryFolder folder;
  const fs::path abandoned = folder / "h3render.123.00000000deadbeef", held = folder / "h3render.124.00000000deadbeef";
  test::write_text(abandoned, "left behind");
  test::write_text(held, "another run is attaching to it");
  test::write_text(folder / "other", "");
  const int fd = ::open(held.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  on_ranks(2, [&](std::unique_ptr<NodeGroup> group) {
    make_node_memory(std::move(group), {.shm = folder.path()})->allocate(10'000, "test");
  });
  EXPECT_FALSE(fs::exists(abandoned));
  EXPECT_TRUE(fs::exists(held));
  EXPECT_TRUE(fs::exists(folder / "other"));
  ::close(fd);
}

// /proc has no room at all.
TEST(NodeWindow, ScratchWhereSharedMemoryIsTooSmall) {
  const TemporaryFolder folder;
  on_ranks(2, [&](std::unique_ptr<NodeGroup> group) {
    const auto memory = make_node_memory(std::move(group), {.scratch = folder.path(), .shm = "/proc"});
    const auto block = memory->allocate(10'000, "test");
    EXPECT_EQ(block->place(), folder.path().string());
    EXPECT_TRUE(block->on_disk());
    memory->join("");
    EXPECT_TRUE(fs::is_empty(folder.path()));
  });
}

TEST(NodeWindow, NoRoomIsAnErrorOnEveryRank) {
  on_ranks(3, [&](std::unique_ptr<NodeGroup> group) {
    const auto memory = make_node_memory(std::move(group), {.shm = "/proc"});
    const std::string error = test::user_error_of([&] { memory->allocate(10'000, "transformer"); });
    for (const char* part :
         {"the transformer needs 10000 bytes of host memory", "/proc: only 0 bytes free", "--scratch"})
      EXPECT_NE(error.find(part), std::string::npos) << error;
  });
  on_ranks(2, [&](std::unique_ptr<NodeGroup> group) {
    const auto memory = make_node_memory(std::move(group), {.scratch = "/nowhere", .shm = "/proc"});
    const std::string error = test::user_error_of([&] { memory->allocate(10'000, "transformer"); });
    EXPECT_NE(error.find("/nowhere: No such file"), std::string::npos) << error;
  });
}

TEST(NodeWindow, MoreThanTheHostHas) {
  const HostMemory host = host_memory();
  EXPECT_GT(host.available, 0u);
  EXPECT_LE(host.available, host.total);
  const std::string error =
      test::user_error_of([&] { make_private_memory()->allocate(host.total * 2, "transformer"); });
  EXPECT_NE(error.find("of host memory"), std::string::npos) << error;
  EXPECT_NE(error.find("available"), std::string::npos) << error;
}

TEST(NodeWindow, ErrorsOfOneRankReachAll) {
  const TemporaryFolder folder;
  const auto path = test::copy_nano(folder / "model");
  test::edit_tensors(path / "audio_vae" / "diffusion_pytorch_model.safetensors", [](test::HeldTensors& tensors) {
    std::vector<std::byte>& v = tensors.at("decoder.conv_pre.weight_v").bytes;
    std::fill(v.begin(), v.end(), std::byte{0});
  });
  const ModelFolder model = open_model(path.string());
  on_ranks(4, [&](std::unique_ptr<NodeGroup> group) {
    const auto memory = make_node_memory(std::move(group), {.shm = folder.path()});
    const std::string error = test::user_error_of([&] { load_component(model, Component::audio_vae, {}, *memory); });
    EXPECT_NE(error.find("decoder.conv_pre.weight_v"), std::string::npos) << error;
  });
}

}  // namespace
}  // namespace h3
