// What a run has of encodings: memory before disk, and no error whatever happens to the disk.
#include "cache/run_cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cache/samples.h"
#include "support/temporary_folder.h"

namespace h3::test {

namespace fs = std::filesystem;

namespace {

RunCache cache_in(const fs::path& folder) {
  return RunCache(std::make_unique<CacheStore>(folder, std::uint64_t{1} << 30));
}

}  // namespace

TEST(RunCache, RemembersWithoutADisk) {
  RunCache cache(nullptr);
  EXPECT_FALSE(cache.find(sample_key(1)));
  cache.keep(sample_entry(1));
  const auto found = cache.find(sample_key(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(*found->entry, sample_entry(1));
  EXPECT_EQ(found->from, "this run");
}

TEST(RunCache, FindsOnDiskWhatAnEarlierRunKept) {
  const TemporaryFolder folder;
  cache_in(folder.path() / "c").keep(sample_entry(1));
  RunCache cache = cache_in(folder.path() / "c");
  const auto first = cache.find(sample_key(1));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->from, "disk");
  EXPECT_EQ(*first->entry, sample_entry(1));
  EXPECT_TRUE(first->lock);
  const auto second = cache.find(sample_key(1));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->from, "this run");
}

TEST(RunCache, HoldsWhatItWasAskedTo) {
  const TemporaryFolder folder;
  cache_in(folder.path() / "c").keep(sample_entry(1));
  RunCache cache = cache_in(folder.path() / "c");
  EXPECT_FALSE(cache.hold(sample_key(2)));
  EXPECT_TRUE(cache.hold(sample_key(1)));
  EXPECT_TRUE(cache.hold(sample_key(1)));
  EXPECT_EQ(clear_cache(folder.path() / "c").files, 1u) << "its file is not needed any more";
  constexpr std::int64_t kFloats = 50'000'000;
  for (const int seed : {2, 3}) cache.keep(sample_entry(seed, kFloats));
  const auto found = cache.find(sample_key(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(*found->entry, sample_entry(1));
  EXPECT_EQ(found->from, "disk");
  EXPECT_TRUE(cache.hold(sample_key(3)));
  cache.keep(sample_entry(4, kFloats));
  EXPECT_FALSE(cache.hold(sample_key(4))) << "no more room";
}

TEST(RunCache, GoesOnWithoutAFolder) {
  const TemporaryFolder folder;
  put_bytes(folder.path() / "c", "no folder");
  RunCache cache = cache_in(folder.path() / "c");
  cache.keep(sample_entry(1));
  cache.keep(sample_entry(2));
  EXPECT_TRUE(cache.find(sample_key(1)));
  EXPECT_TRUE(cache.find(sample_key(2)));
}

TEST(RunCache, KeepsNothingThatIsNotFinite) {
  const TemporaryFolder folder;
  RunCache cache = cache_in(folder.path() / "c");
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    CacheEntry entry = sample_entry(1);
    std::memcpy(entry.value.bytes.data() + 40, &bad, sizeof bad);
    cache.keep(entry);
    EXPECT_FALSE(cache.find(sample_key(1)));
  }
  EXPECT_FALSE(fs::exists(folder.path() / "c"));
}

// Entries of 80 MB each: the limit is 256 MiB.
TEST(RunCache, ForgetsWhatWasNotUsedForTheLongestTime) {
  RunCache cache(nullptr);
  constexpr std::int64_t kFloats = 20'000'000;
  for (const int seed : {1, 2, 3}) cache.keep(sample_entry(seed, kFloats));
  EXPECT_TRUE(cache.find(sample_key(1)));
  cache.keep(sample_entry(4, kFloats));
  EXPECT_FALSE(cache.find(sample_key(2)));
  for (const int seed : {1, 3, 4}) EXPECT_TRUE(cache.find(sample_key(seed)));
}

}  // namespace h3::test
