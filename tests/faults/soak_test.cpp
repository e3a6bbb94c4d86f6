// Many scenes in one run: memory, file descriptors, shared memory and the time a scene takes stay as they are after the
// first scenes. 60 scenes, 300 with H3RENDER_FULL. The figures are printed. Files of a scene are written beside the
// next one, so what a rank holds goes up and down within a scene: compared is the most of several scenes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>

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

// The most that each rank holds from now until `done`.
std::vector<Holdings> most_until(Process& process, int ranks, const std::function<bool()>& done) {
  std::vector<Holdings> most(static_cast<std::size_t>(ranks));
  while (process.running() && !done()) {
    for (int r = 0; r < ranks; ++r) {
      Holdings& m = most[static_cast<std::size_t>(r)];
      const Holdings now = holdings_of(process.rank(r));
      m.resident_mib = std::max(m.resident_mib, now.resident_mib);
      m.descriptors = std::max(m.descriptors, now.descriptors);
      m.segments = std::max(m.segments, now.segments);
    }
    ::usleep(2000);
  }
  return most;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

TEST(Soak, EverythingStaysFlat) {
  const int count = full_run() ? 300 : 60, warm = count / 4;
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
  surroundings.limit = 3000;                           // seconds
  surroundings.environment["MALLOC_ARENA_MAX"] = "1";  // what the program holds, not what is spread over arenas
  Process process(on_ranks(kRanks, words), surroundings);
  const auto done = [&](int i) { return fs::exists(out / fmt::format("s{:03}.manifest.json", i)); };
  const auto wait_until = [&](int i) {
    while (process.running() && !done(i)) ::usleep(5000);
  };
  wait_until(warm);
  const std::vector<Holdings> early = most_until(process, kRanks, [&] { return done(2 * warm); });
  wait_until(count - warm);
  const std::vector<Holdings> late = most_until(process, kRanks, [&] { return done(count - 2); });
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
        "rank %d: private memory at most %.1f MiB in scenes %d to %d, %.1f MiB in scenes %d to %d; "
        "descriptors %zu, %zu; segments %zu, %zu\n",
        r, a.resident_mib, warm, 2 * warm, b.resident_mib, count - warm, count - 2, a.descriptors, b.descriptors,
        a.segments, b.segments);
    // How the encoder's threads overlap a render moves it by a few MiB; a leak of a quarter of a MiB a scene passes
    // this.
    EXPECT_LT(b.resident_mib, a.resident_mib * 1.05 + 4);
    EXPECT_LE(b.descriptors, a.descriptors + 2);
    EXPECT_EQ(b.segments, a.segments);
  }
  std::printf("%d scenes in %.1f s; a scene: median %.4f s early, %.4f s late\n", count, result.seconds, median(first),
              median(last));
  EXPECT_LT(median(last), 1.5 * median(first) + 0.02);
  EXPECT_EQ(names_in(out).size(), 3 * static_cast<std::size_t>(count));
}

}  // namespace
}  // namespace h3::test
