// The promise of the program under a real mpirun: latents, frames and samples are the same bits for any number of
// ranks, any shares, any exchange, however the work is cut.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "cli/media_files.h"

namespace h3::test {

namespace {

enum class Shares { even, uneven, one_empty };

// "3,1,2.5,..." for some ranks; empty for even shares.
std::string share_list(Shares kind, int ranks) {
  std::string list;
  for (int r = 0; r < ranks && kind != Shares::even; ++r) {
    const double share = kind == Shares::uneven ? 0.5 + (7 * r + 5) % 4 : (r == ranks / 2 && ranks > 1 ? 0 : 1);
    list += fmt::format("{}{}", r > 0 ? "," : "", share);
  }
  return list;
}

struct Cut {
  int ranks = 1;
  Shares shares = Shares::even;
  std::string exchange = "auto";
  int exchange_chunks = 1;
  int row_chunk = 0;
  Words more = {};

  Words options() const {
    Words words{"--cache",           "off",
                "--exchange",        exchange,
                "--exchange-chunks", std::to_string(exchange_chunks),
                "--row-chunk",       std::to_string(row_chunk)};
    if (shares != Shares::even) words.insert(words.end(), {"--shares", share_list(shares, ranks)});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string text() const { return fmt::format("{} ranks {}", ranks, fmt::join(options(), " ")); }
};

// Renders with each cut and expects the hashes of a single rank.
void expect_equal_bits(const Json& scene, const std::vector<Cut>& cuts, const Words& options = {}) {
  Words plain = options;
  plain.insert(plain.end(), {"--cache", "off"});
  const Render alone(scene, plain);
  const Hashes expected = hashes_of(alone.manifest());
  for (const Cut& cut : cuts) {
    SCOPED_TRACE(cut.text());
    Words all = options;
    for (const std::string& word : cut.options()) all.push_back(word);
    const Render render(scene, all, cut.ranks);
    EXPECT_EQ(hashes_of(render.manifest()), expected);
    ASSERT_TRUE(render.manifest().is_object());
    EXPECT_EQ(render.manifest().at("ranks").size(), static_cast<std::size_t>(cut.ranks));
  }
}

Json short_scene() {
  Json scene = nano_scene(2);
  scene["width"] = 160;
  scene["height"] = 96;
  return scene;
}

// The media of the reference data, written once.
std::string medium(const std::string& name) {
  static const TemporaryFolder folder;
  static const bool written = (write_golden_media(folder.path()), true);
  EXPECT_TRUE(written);
  return (folder.path() / name).string();
}

Json keyframe_scene() {
  Json scene = short_scene();
  scene["first_frame"] = medium("first.png");
  scene["last_frame"] = medium("last.png");
  return scene;
}

Json reference_scene() {
  Json scene = short_scene();
  scene["references"] = {
      {{"image", medium("image.png")}}, {{"video", medium("clip.mkv")}}, {{"audio", medium("sound.wav")}}};
  return scene;
}

constexpr auto even = Shares::even, uneven = Shares::uneven, one_empty = Shares::one_empty;
const std::string gather = "all-gather", to_all = "all-to-all", automatic = "auto";

}  // namespace

// Every pair of ranks and shares, and of each other two settings, occurs.
TEST(Invariance, RanksSharesExchangesAndChunks) {
  expect_equal_bits(nano_scene(2), {{1, even, to_all, 3, 50},
                                    {2, even, gather, 1, 50},
                                    {2, uneven, to_all, 3, 0},
                                    {2, one_empty, automatic, 3, 50},
                                    {3, even, to_all, 1, 0},
                                    {3, uneven, automatic, 1, 50},
                                    {3, one_empty, gather, 3, 0},
                                    {5, even, automatic, 3, 0},
                                    {5, uneven, gather, 3, 50},
                                    {5, one_empty, to_all, 1, 50},
                                    {8, even, to_all, 3, 50},
                                    {8, uneven, gather, 1, 0},
                                    {8, one_empty, automatic, 1, 0},
                                    {11, even, gather, 3, 0},
                                    {11, uneven, to_all, 1, 50},
                                    {11, one_empty, automatic, 3, 0}});
}

TEST(Invariance, RowAndHeadSharesOfTheirOwn) {
  expect_equal_bits(short_scene(), {{3, even, to_all, 1, 0, {"--row-shares", "0,1,5", "--head-shares", "3,0,1"}},
                                    {3, even, gather, 2, 7, {"--row-shares", "1,0,1", "--head-shares", "0,0,1"}},
                                    {2, even, to_all, 4, 1, {"--shares", "1,3", "--head-shares", "1,0"}}});
}

TEST(Invariance, Keyframes) {
  expect_equal_bits(keyframe_scene(), {{2, uneven, to_all, 3, 0},
                                       {3, one_empty, gather, 1, 50},
                                       {5, even, automatic, 3, 50},
                                       {8, uneven, gather, 1, 0},
                                       {11, one_empty, to_all, 1, 50}});
}

TEST(Invariance, References) {
  expect_equal_bits(reference_scene(), {{2, even, gather, 1, 50},
                                        {3, uneven, to_all, 3, 0},
                                        {5, one_empty, automatic, 1, 50},
                                        {8, even, to_all, 3, 0},
                                        {11, uneven, gather, 1, 0}});
}

// Keyframes, guides and references in one sequence, means instead of samples, four tiles to encode.
TEST(Invariance, ComfyLayout) {
  Json scene = reference_scene();
  scene["width"] = scene["height"] = 288;
  scene["evaluations"] = 1;
  scene["layout"] = scene["noise"] = "comfy";
  scene["posterior"] = "mean";
  scene["reference_size"] = "match";
  scene["first_frame"] = medium("first.png");
  scene["guides"] = {{{"image", medium("last.png")}, {"frame", 11}}, {{"audio", medium("sound.wav")}, {"frame", -8}}};
  expect_equal_bits(scene, {{2, uneven, to_all, 1, 0}, {3, one_empty, gather, 3, 50}, {5, even, automatic, 1, 0}});
}

TEST(Invariance, MediaInBfloat16) {
  expect_equal_bits(reference_scene(), {{2, uneven, to_all, 3, 0}, {3, even, gather, 1, 50}},
                    {"--precision", "bf16", "--vae-profile", "R"});
}

// What must not be equal: order, soundtrack and place of media are meaning.
TEST(Invariance, HashesSeeTheMedia) {
  std::vector<Json> scenes{reference_scene(), keyframe_scene()};
  const auto change = [&](Json scene, const std::function<void(Json&)>& edit) {
    edit(scene);
    scenes.push_back(scene);
  };
  change(reference_scene(), [](Json& s) { std::swap(s["references"][0], s["references"][1]); });
  change(reference_scene(), [](Json& s) { s["references"][1]["soundtrack"] = false; });
  change(reference_scene(), [](Json& s) { s["posterior"] = "mean"; });
  change(reference_scene(), [](Json& s) { s["reference_size"] = "max"; });
  change(keyframe_scene(), [](Json& s) { s.erase("first_frame"); });
  change(keyframe_scene(), [](Json& s) { s.erase("last_frame"); });
  change(keyframe_scene(), [](Json& s) { std::swap(s["first_frame"], s["last_frame"]); });
  std::map<Hashes, std::string> seen;
  for (const Json& scene : scenes) {
    const auto [it, is_new] = seen.emplace(hashes_of(Render(scene).manifest()), scene.dump());
    EXPECT_TRUE(is_new) << scene.dump() << " and " << it->second;
  }
}

TEST(Invariance, FullProduct) {
  if (!full_run()) GTEST_SKIP() << "set H3RENDER_FULL for all combinations";
  // With media, which only make the sequence longer, chunks alternate from one combination to the next.
  std::vector<Cut> cuts, with_media;
  for (const int ranks : {1, 2, 3, 5, 8, 11})
    for (const Shares shares : {even, uneven, one_empty})
      for (const std::string& exchange : {gather, to_all, automatic}) {
        for (const int chunks : {1, 3})
          for (const int row_chunk : {0, 50}) cuts.push_back({ranks, shares, exchange, chunks, row_chunk});
        with_media.push_back(cuts[cuts.size() - 1 - with_media.size() % 4]);
      }
  expect_equal_bits(nano_scene(2), cuts);
  expect_equal_bits(keyframe_scene(), with_media);
  expect_equal_bits(reference_scene(), with_media);
}

TEST(Invariance, Threads) {
  const Render one(short_scene());
  const TemporaryFolder folder;
  const std::string scene = write_scene(folder.path(), short_scene());
  for (const std::string threads : {"2", "5"}) {
    const fs::path output = folder.path() / threads;
    expect_done(h3render(render_words(scene, output), 1, {.environment = {{"OMP_NUM_THREADS", threads}}}));
    EXPECT_EQ(hashes_of(read_json(output / "scene.manifest.json")), hashes_of(one.manifest())) << threads;
  }
}

TEST(Invariance, Bfloat16AndReleasedDecoder) {
  expect_equal_bits(
      nano_scene(2),
      {{2, even, to_all, 3, 0}, {3, uneven, gather, 1, 50}, {5, one_empty, to_all, 1, 0}, {8, even, automatic, 3, 50}},
      {"--precision", "bf16", "--vae-profile", "R"});
}

// The shortest clip: two latent frames.
TEST(Invariance, FiveFrames) {
  Json scene = short_scene();
  scene["frames"] = 5;
  expect_equal_bits(scene, {{2, uneven, gather, 3, 0}, {5, one_empty, to_all, 1, 50}, {11, even, automatic, 1, 0}});
}

// One row a latent frame, fewer rows than some ranks would like.
TEST(Invariance, SmallestCanvas) {
  Json scene = tiny_scene();
  scene["width"] = scene["height"] = 32;
  expect_equal_bits(scene, {{3, uneven, to_all, 3, 1}, {11, one_empty, gather, 3, 0}});
}

// Four tiles of one chunk go to any ranks.
TEST(Invariance, SeveralTiles) {
  Json scene = nano_scene(1);
  scene["width"] = scene["height"] = 288;
  expect_equal_bits(scene, {{2, uneven, to_all, 1, 0}, {3, one_empty, gather, 3, 0}, {5, even, automatic, 1, 50}});
}

// Two chunks that overlap; fewer units of decoding than ranks.
TEST(Invariance, TwoChunks) {
  Json scene = short_scene();
  scene["frames"] = 39;
  expect_equal_bits(scene, {{2, even, gather, 1, 0}, {3, uneven, to_all, 3, 0}, {5, one_empty, automatic, 1, 50}});
}

TEST(Invariance, MultistepSampler) {
  Json scene = short_scene();
  scene["sampler"] = "res_multistep";
  scene["evaluations"] = 4;
  expect_equal_bits(scene, {{2, uneven, to_all, 3, 0}, {5, one_empty, gather, 1, 50}});
  scene["audio_correction"] = "own";
  expect_equal_bits(scene, {{3, uneven, automatic, 1, 0}});
}

// What must not be equal: the hashes see every thing that the scene says.
TEST(Invariance, HashesSeeTheScene) {
  std::map<std::string, Hashes> renders;
  Json scene = tiny_scene();
  scene["evaluations"] = 2;  // one step alone goes from 1 to 0 with any shift
  renders["as it is"] = hashes_of(Render(scene).manifest());
  const std::map<std::string, Json> changes{{"seed", 43},
                                            {"evaluations", 3},
                                            {"shift", 5.5},
                                            {"audio_shift", 2.5},
                                            {"noise", "original"},
                                            {"prompt",
                                             "A red circle moves left on a black background. A high tone "
                                             "plays."}};
  for (const auto& [key, value] : changes) {
    Json other = scene;
    other[key] = value;
    renders[key] = hashes_of(Render(other).manifest());
  }
  for (const auto& [a, hashes_a] : renders)
    for (const auto& [b, hashes_b] : renders) {
      if (a >= b) continue;
      EXPECT_NE(hashes_a, hashes_b) << a << " and " << b;
    }
}

}  // namespace h3::test
