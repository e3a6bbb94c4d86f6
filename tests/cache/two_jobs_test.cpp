// Several processes at one folder that is far too small for what they keep: every entry that is found is whole and
// right, and nobody fails.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <vector>

#include "cache/samples.h"
#include "support/temporary_folder.h"

namespace h3::test {

namespace {

constexpr int kEntries = 12, kRounds = 150;

// The exit code of a process that reads, writes and now and then clears.
int job(const std::filesystem::path& folder, unsigned seed) {
  const CacheStore store(folder, 60'000);
  std::mt19937 random(seed);
  for (int round = 0; round < kRounds; ++round) {
    const int wanted = static_cast<int>(random() % kEntries) + 1;
    std::string damage;
    const auto held = store.find(sample_key(wanted), damage);
    if (!damage.empty()) {
      std::fprintf(stderr, "%s\n", damage.c_str());
      return 2;
    }
    if (held && !(held->entry == sample_entry(wanted))) return 3;
    if (!held) store.keep(sample_entry(wanted));
    if (round % 40 == 39) clear_cache(folder);
  }
  return 0;
}

}  // namespace

TEST(TwoJobs, ShareAFolder) {
  const TemporaryFolder folder;
  std::vector<pid_t> jobs;
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      int code = 9;
      try {
        code = job(folder.path() / "cache", seed);
      } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
      }
      ::_exit(code);
    }
    jobs.push_back(pid);
  }
  for (const pid_t pid : jobs) {
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  std::uint64_t bytes = 0;
  for (const CacheFile& file : cache_files(folder.path() / "cache")) bytes += file.bytes;
  EXPECT_LE(bytes, 3 * 60'000u) << "each job alone holds the bound";
}

}  // namespace h3::test
