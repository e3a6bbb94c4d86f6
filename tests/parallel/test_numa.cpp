// Which NUMA node a GPU hangs on, read from a copy of what the kernel shows, and binding to it.
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "parallel/numa.h"
#include "support/temporary_folder.h"

namespace h3 {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text << "\n";
}

class Numa : public testing::Test {
 protected:
  Numa() {
    write(nodes() / "has_memory", "0-1");
    write(nodes() / "node0/cpulist", "0-3,8-11");
    write(nodes() / "node1/cpulist", "4-7,12");
    write(sys() / "bus/pci/devices/0000:5d:00.0/numa_node", "1");
  }
  fs::path sys() const { return folder_.path(); }
  fs::path nodes() const { return sys() / "devices/system/node"; }

  test::TemporaryFolder folder_;
};

TEST_F(Numa, NodeOfAGpu) {
  const auto node = numa_node_of("0000:5D:00.0", sys());
  ASSERT_TRUE(node);
  EXPECT_EQ(node->number, 1);
  EXPECT_EQ(node->cpus, (std::vector<int>{4, 5, 6, 7, 12}));
}

TEST_F(Numa, UnknownOrAlone) {
  EXPECT_FALSE(numa_node_of("", sys()));
  EXPECT_FALSE(numa_node_of("0000:5E:00.0", sys()));
  write(sys() / "bus/pci/devices/0000:5d:00.0/numa_node", "-1");
  EXPECT_FALSE(numa_node_of("0000:5d:00.0", sys()));
  write(sys() / "bus/pci/devices/0000:5d:00.0/numa_node", "0");
  EXPECT_TRUE(numa_node_of("0000:5d:00.0", sys()));
  write(nodes() / "has_memory", "0");
  EXPECT_FALSE(numa_node_of("0000:5d:00.0", sys()));
}

TEST_F(Numa, CpuLists) {
  EXPECT_EQ(parse_cpu_list("3"), std::vector<int>{3});
  EXPECT_EQ(parse_cpu_list("0-1,5"), (std::vector<int>{0, 1, 5}));
  for (const char* bad : {"", "a", "1-", "-1", "0-99999999", "1,,2"}) EXPECT_TRUE(parse_cpu_list(bad).empty()) << bad;
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

// In threads of their own, since a binding stays with its thread.
TEST_F(Numa, Binding) {
  const std::vector<int> before = allowed_cpus();
  std::thread([&] {
    const std::string done = bind_to({0, {before.front(), 1000}});
    EXPECT_TRUE(done.starts_with("NUMA node 0")) << done;
    EXPECT_EQ(done.find("CPUs"), std::string::npos) << done;
    EXPECT_EQ(allowed_cpus(), std::vector<int>{before.front()});
    std::thread([&] { EXPECT_EQ(allowed_cpus(), std::vector<int>{before.front()}); }).join();
  }).join();
  std::thread([&] {
    EXPECT_NE(bind_to({0, {1000}}).find("launcher"), std::string::npos);
    EXPECT_EQ(allowed_cpus(), before);
  }).join();
  EXPECT_EQ(allowed_cpus(), before);
}

}  // namespace
}  // namespace h3
