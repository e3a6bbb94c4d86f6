// Many scenes in one run: memory, file descriptors, shared memory and the time a scene takes stay as they are after the
// first scenes. 24 scenes, 300 with H3RENDER_FULL. The figures are printed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/error.h"
#include "faults/batch.h"

namespace h3::test {
namespace {

// What a rank holds, read from /proc.
struct Holdings {
  double resident_mib = 0;
  std::size_t descriptors = 0, segments = 0;
};

Holdings holdings_of(pid_t pid) {
  Holdings holdings;
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) holdings.resident_mib = std::atof(line.c_str() + 8) / 1024;
  std::error_code error;
  for (fs::directory_iterator it(fmt::format("/proc/{}/fd", pid), error), end; !error && it != end; it.increment(error))
    ++holdings.descriptors;
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);)
    if (line.find("/dev/shm/h3render.") != line.npos) ++holdings.segments;
  return holdings;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

TEST(Soak, EverythingStaysFlat) {
  const int count = full_run() ? 300 : 24, warm = count / 4;
  TemporaryFolder folder;
  Json scenes = Json::array();
  for (int i = 0; i < count; ++i) {
    Json scene = tiny_scene();
    scene["name"] = fmt::format("s{:03}", i);
    scene["seed"] = i;
    scenes.push_back(scene);
  }
  Words words{h3render_path()};
  const fs::path out = folder.path() / "out";
  for (const std::string& word : render_words(write_scene(folder.path(), scenes), out, {"--quiet"}))
    words.push_back(word);
  constexpr int kRanks = 2;
  Surroundings surroundings;
  surroundings.limit = 3000;  // seconds
  Process process(on_ranks(kRanks, words), surroundings);
  const auto done = [&](int i) { return fs::exists(out / fmt::format("s{:03}.manifest.json", i)); };
  const auto wait_until = [&](int i) {
    while (process.running() && !done(i)) ::usleep(5000);
  };
  wait_until(warm);
  std::vector<Holdings> early, late;
  for (int r = 0; r < kRanks; ++r) early.push_back(holdings_of(process.rank(r)));
  wait_until(count - 4);
  for (int r = 0; r < kRanks; ++r) late.push_back(holdings_of(process.rank(r)));
  const Result result = process.wait();
  expect_done(result);

  std::vector<double> first, last;
  for (int i = 0; i < count; ++i) {
    const double seconds = read_json(out / fmt::format("s{:03}.manifest.json", i))["seconds"]["total"];
    if (i >= warm && i < 2 * warm) first.push_back(seconds);
    if (i >= count - warm) last.push_back(seconds);
  }
  for (int r = 0; r < kRanks; ++r) {
    const Holdings &a = early[static_cast<std::size_t>(r)], &b = late[static_cast<std::size_t>(r)];
    std::printf(
        "rank %d: private memory %.1f MiB after scene %d, %.1f MiB after scene %d; descriptors %zu, %zu; "
        "segments %zu, %zu\n",
        r, a.resident_mib, warm, b.resident_mib, count - 4, a.descriptors, b.descriptors, a.segments, b.segments);
    // Allocators settle; what leaks once a scene would be a hundred times this.
    EXPECT_LT(b.resident_mib, a.resident_mib * 1.05 + 4);
    // A file may be open at the moment of the look: the checkpoint, the video.
    EXPECT_LE(b.descriptors, a.descriptors + 4);
    EXPECT_EQ(b.segments, a.segments);
  }
  std::printf("%d scenes in %.1f s; a scene: median %.4f s early, %.4f s late\n", count, result.seconds, median(first),
              median(last));
  EXPECT_LT(median(last), 1.5 * median(first) + 0.02);
  EXPECT_EQ(names_in(out).size(), 3 * static_cast<std::size_t>(count));
}

}  // namespace
}  // namespace h3::test
