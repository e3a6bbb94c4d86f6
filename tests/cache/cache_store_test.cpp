// The folder of a cache: what is kept comes back in full or not at all, the least recently used goes first, and nothing
// that is in use goes.
#include "cache/cache_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/error.h"
#include "cache/samples.h"
#include "support/temporary_folder.h"

namespace h3::test {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMuch = std::uint64_t{1} << 30;

class CacheStoreTest : public testing::Test {
 protected:
  fs::path folder() const { return folder_.path() / "below" / "cache"; }
  // What the store has under a key; "damage" receives the reason where a file cannot serve.
  std::optional<CacheEntry> found(const CacheStore& store, int seed) {
    damage.clear();
    auto held = store.find(sample_key(seed), damage);
    return held ? std::optional(held->entry) : std::nullopt;
  }
  void expect_damaged(const std::string& bytes, const std::string& reason) {
    const CacheStore store(folder(), kMuch);
    store.keep(sample_entry(1));
    const fs::path file = store.path_of(sample_key(1));
    put_bytes(file, bytes);
    EXPECT_FALSE(found(store, 1)) << reason;
    EXPECT_NE(damage.find(file.string()), damage.npos) << damage;
    EXPECT_NE(damage.find(reason), damage.npos) << damage;
    EXPECT_FALSE(fs::exists(file)) << "what cannot serve is removed";
    EXPECT_FALSE(found(store, 1));
    EXPECT_EQ(damage, "") << "and is then no more than missing";
    store.keep(sample_entry(1));
    EXPECT_EQ(found(store, 1), sample_entry(1));
  }
  std::string whole() const {
    const CacheStore store(folder(), kMuch);
    store.keep(sample_entry(1));
    return bytes_of(store.path_of(sample_key(1)));
  }

  TemporaryFolder folder_;
  std::string damage;
};

}  // namespace

TEST_F(CacheStoreTest, GivesBackWhatWasKept) {
  const CacheStore store(folder(), kMuch);
  EXPECT_FALSE(found(store, 1));
  EXPECT_EQ(damage, "");
  EXPECT_FALSE(fs::exists(folder())) << "looking makes no folder";
  store.keep(sample_entry(1));
  store.keep(sample_entry(2));
  EXPECT_EQ(found(store, 1), sample_entry(1));
  EXPECT_EQ(found(store, 2), sample_entry(2));
  EXPECT_FALSE(found(store, 3));
  EXPECT_EQ(parse_entry_facts(store.path_of(sample_key(2))), sample_entry(2).facts);
}

TEST_F(CacheStoreTest, KeepsEveryKindOfValue) {
  const CacheStore store(folder(), kMuch);
  CacheEntry entry = sample_entry(7);
  const std::vector<std::uint16_t> bits{0x0000, 0x8000, 0x7fc1, 0x3f80, 0xff80, 0x0001};
  entry.value = HostArray::copy_of(bits.data(), DType::bf16, {1, 3, 2, 1});
  store.keep(entry);
  EXPECT_EQ(found(store, 7), entry);
}

TEST_F(CacheStoreTest, IsPrivateToTheUser) {
  const CacheStore store(folder(), kMuch);
  store.keep(sample_entry(1));
  struct stat info {};
  ASSERT_EQ(::stat(folder().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0700u);
  ASSERT_EQ(::stat(store.path_of(sample_key(1)).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
}

TEST_F(CacheStoreTest, RefusesTruncatedEntries) {
  const std::string bytes = whole();
  for (const std::size_t left : {std::size_t{0}, std::size_t{7}, std::size_t{100}, bytes.size() / 2, bytes.size() - 1})
    expect_damaged(bytes.substr(0, left), "damaged");
}

TEST_F(CacheStoreTest, RefusesEveryFlippedBitThatMatters) {
  const std::string bytes = whole();
  const CacheStore store(folder(), kMuch);
  const fs::path file = store.path_of(sample_key(1));
  int noticed = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 61) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    put_bytes(file, changed);
    const auto entry = found(store, 1);
    EXPECT_TRUE(!entry || entry->value == sample_entry(1).value) << "a flipped bit at " << at;
    noticed += !entry;
  }
  EXPECT_GT(noticed, static_cast<int>(bytes.size() / 61 / 2)) << "values take most of the file";
}

TEST_F(CacheStoreTest, RefusesForeignFiles) {
  expect_damaged("This is a text and no entry of a cache, whatever it is called.", "is not an HDF5 file");
  const CacheStore store(folder(), kMuch);
  store.keep(sample_entry(2));
  expect_damaged(bytes_of(store.path_of(sample_key(2))), "holds another entry");
}

TEST_F(CacheStoreTest, RemovesWhatWasNotUsedForTheLongestTime) {
  const std::uint64_t bytes = whole().size();
  clear_cache(folder());
  const CacheStore store(folder(), 3 * bytes + bytes / 2);
  for (const int seed : {1, 2, 3}) {
    store.keep(sample_entry(seed));
    age(store.path_of(sample_key(seed)), 100 - seed);
  }
  EXPECT_TRUE(found(store, 1)) << "now used last";
  store.keep(sample_entry(4));
  EXPECT_TRUE(found(store, 1));
  EXPECT_FALSE(found(store, 2));
  EXPECT_TRUE(found(store, 3));
  EXPECT_TRUE(found(store, 4));
}

TEST_F(CacheStoreTest, RefusesAnEntryBeyondItsSize) {
  const CacheStore store(folder(), 1000);
  EXPECT_THROW(store.keep(sample_entry(1)), SceneError);
  EXPECT_FALSE(found(store, 1));
}

TEST_F(CacheStoreTest, LeavesEntriesInUseAlone) {
  const std::uint64_t bytes = whole().size();
  const CacheStore store(folder(), 2 * bytes + bytes / 2);
  {
    const auto held = store.find(sample_key(1), damage);
    ASSERT_TRUE(held);
    EXPECT_TRUE(is_used(store.path_of(sample_key(1))));
    age(store.path_of(sample_key(1)), 1000);
    for (const int seed : {2, 3, 4}) store.keep(sample_entry(seed));
    EXPECT_TRUE(found(store, 1)) << "the oldest, but in use";
    EXPECT_FALSE(found(store, 2));
    put_bytes(folder() / "notes.txt", "not an entry");
    const Cleared cleared = clear_cache(folder());
    EXPECT_EQ(cleared.kept, 1u);
    EXPECT_GE(cleared.files, 1u);
    EXPECT_TRUE(found(store, 1));
    EXPECT_TRUE(fs::exists(folder() / "notes.txt"));
  }
  EXPECT_FALSE(is_used(store.path_of(sample_key(1))));
  EXPECT_EQ(clear_cache(folder()).files, 1u);
  EXPECT_FALSE(found(store, 1));
}

TEST_F(CacheStoreTest, RemovesWhatKilledWritersLeft) {
  const CacheStore store(folder(), kMuch);
  store.keep(sample_entry(1));
  const std::string stem = store.path_of(sample_key(1)).stem().string();
  const fs::path old = folder() / ("." + stem + ".0123456789abcdef.tmp.h5"),
                 young = folder() / ("." + stem + ".fedcba9876543210.tmp.h5");
  put_bytes(old, "half");
  put_bytes(young, "half");
  age(old, 4000);
  store.keep(sample_entry(2));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young)) << "somebody may be writing it";
}

TEST_F(CacheStoreTest, TellsWhyNothingCanBeKept) {
  fs::create_directories(folder_.path() / "below");
  put_bytes(folder(), "a file where the folder should be");
  const CacheStore store(folder(), kMuch);
  EXPECT_FALSE(found(store, 1));
  EXPECT_THROW(store.keep(sample_entry(1)), SceneError);
  EXPECT_THROW(cache_files(folder()), UserError);
  EXPECT_TRUE(cache_files(folder_.path() / "nowhere").empty());
}

}  // namespace h3::test
