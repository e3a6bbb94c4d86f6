// Several ranks that are not alike, or of which one fails: nothing hangs, one message tells what is wrong.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <map>

#include "base/file.h"
#include "cli/nano_copy.h"
#include "support/goldens.h"

namespace h3::test {

namespace {

constexpr double most_seconds = 10;  // from a failure to the end of every rank

// Two ranks in one world, each with a folder to start in and words of its own.
class TwoRanks {
 public:
  TwoRanks() {
    for (int r = 0; r < 2; ++r) {
      fs::create_directories(folder(r));
      write_scene(folder(r), tiny_scene());
      words[r] = {h3render_path(), "render", "scene.json", "--model", nano_path(), "--output", output()};
    }
  }
  fs::path folder(int rank) const { return folder_.path() / ("rank" + std::to_string(rank)); }
  fs::path output() const { return folder_.path() / "out"; }
  void add(int rank, const Words& more) { words[rank].insert(words[rank].end(), more.begin(), more.end()); }

  Result run() const {
    Words all{mpirun_path()};
    for (int r = 0; r < 2; ++r) {
      if (r > 0) all.push_back(":");
      all.insert(all.end(), {"-n", "1", "-wdir", folder(r)});
      all.insert(all.end(), words[r].begin(), words[r].end());
    }
    return test::run(all, {.environment = {}, .folder = ".", .limit = 60});
  }
  void expect_disagreement(const std::vector<std::string>& parts) const { expect_refused(run(), parts, output()); }

  Words words[2];

 private:
  TemporaryFolder folder_;
};

std::string in_words(const Words& words) {
  std::string all;
  for (const std::string& word : words) all += word + " ";
  return all;
}

}  // namespace

TEST(Disagreement, NoneWhereAllIsEqual) {
  TwoRanks ranks;
  const Result result = ranks.run();
  expect_done(result);
  EXPECT_TRUE(fs::exists(ranks.output() / "scene.mp4"));
}

TEST(Disagreement, Options) {
  for (const Words& more : {Words{"--exchange-chunks", "3"}, Words{"--precision", "bf16"}, Words{"--vae-profile", "R"},
                            Words{"--exchange", "all-to-all"}, Words{"--shares", "1,2"}, Words{"row_chunk=7"}}) {
    SCOPED_TRACE(in_words(more));
    TwoRanks ranks;
    ranks.add(1, more);
    ranks.expect_disagreement({"ranks disagree on options", "rank 0", "rank 1"});
  }
  TwoRanks ranks;
  ranks.add(0, {"--row-chunk", "5"});
  ranks.expect_disagreement({"ranks disagree on options", "row-chunk"});
}

TEST(Disagreement, OverriddenScene) {
  TwoRanks ranks;
  ranks.add(1, {"seed=43"});
  ranks.expect_disagreement({"ranks disagree on scenes", "rank 1"});
}

TEST(Disagreement, SceneFile) {
  TwoRanks ranks;
  Json other = tiny_scene();
  other["prompt"] = "A blue circle moves right on a black background. A high tone plays.";
  write_scene(ranks.folder(1), other);
  ranks.expect_disagreement({"ranks disagree on scenes", "rank 1"});
}

TEST(Disagreement, NumberOfScenes) {
  TwoRanks ranks;
  Json second = tiny_scene();
  second["name"] = "second";
  ranks.add(1, {write_scene(ranks.folder(1), second, "second.json")});
  ranks.expect_disagreement({"ranks disagree on scenes", "rank 1"});
}

TEST(Disagreement, Model) {
  TwoRanks ranks;
  ranks.words[1][4] = "synthetic:1:" + nano_path();
  ranks.expect_disagreement({"ranks disagree on ", "synthetic:1", "rank 1"});
}

// The same path on two hosts may hold two models; here two working folders take the place of the hosts.
class SamePath : public testing::Test {
 protected:
  SamePath() {
    for (int r = 0; r < 2; ++r) {
      ranks.words[r][4] = "model";
      fs::create_directory_symlink(r == 0 ? nano_path() : other.path(), ranks.folder(r) / "model");
    }
  }
  TwoRanks ranks;
  NanoCopy other;
};

TEST_F(SamePath, EqualModels) {
  expect_done(ranks.run());
}

TEST_F(SamePath, OtherWeights) {
  other.edit_tensor("transformer/diffusion_pytorch_model-00001-of-00002.safetensors",
                    "transformer_blocks.0.ff.net.2.weight", [](HeldTensor& t) { t.bytes[2] ^= std::byte{1}; });
  ranks.expect_disagreement({"ranks disagree on model", "rank 1"});
}

TEST_F(SamePath, OtherConfiguration) {
  other.edit_json("transformer/config.json", [](Json& config) { config["norm_eps"] = 1e-3; });
  ranks.expect_disagreement({"ranks disagree on ", "rank 1"});
}

TEST_F(SamePath, OtherTokenizer) {
  other.edit_json("tokenizer/tokenizer.json", [](Json& tokenizer) { tokenizer["model"]["merges"].erase(0); });
  const std::string merges = read_file(other.file("tokenizer/merges.txt"));
  const std::size_t first = merges.find('\n') + 1;
  other.replace("tokenizer/merges.txt", merges.substr(0, first) + merges.substr(merges.find('\n', first) + 1));
  ranks.expect_disagreement({"ranks disagree on ", "rank 1"});
}

TEST(Disagreement, Build) {
  TwoRanks ranks;
  const fs::path other = ranks.folder(1) / "h3render";
  write_text(other, read_file(h3render_path()) + "x");  // the same program, another file
  fs::permissions(other, fs::perms::owner_all);
  ranks.words[1][0] = other;
  ranks.expect_disagreement({"ranks disagree on build", "rank 1"});
}

// What is wrong on one rank alone.
TEST(BadInputOfOneRank, Scene) {
  int cases = 0;
  for (const auto& [key, value] : std::map<std::string, Json>{{"frames", 6}, {"seed", -1}, {"sedd", 1}}) {
    const int r = ++cases % 2;
    SCOPED_TRACE(key + " on rank " + std::to_string(r));
    TwoRanks ranks;
    Json bad = tiny_scene();
    bad[key] = value;
    write_scene(ranks.folder(r), bad);
    ranks.expect_disagreement({key, "rank " + std::to_string(r)});
  }
}

TEST(BadInputOfOneRank, CommandLine) {
  int cases = 0;
  for (const Words& more : {Words{"--exchnge", "auto"}, Words{"--exchange", "none"}, Words{"--log-level", "loud"},
                            Words{"--exchange-chunks", "0"}, Words{"sed=1"}, Words{"--shares", "1"}}) {
    const int r = ++cases % 2;
    SCOPED_TRACE(in_words(more) + "on rank " + std::to_string(r));
    TwoRanks ranks;
    ranks.add(r, more);
    ranks.expect_disagreement({more[0].substr(0, more[0].find('='))});
  }
}

TEST(BadInputOfOneRank, ModelFolder) {
  for (int r = 0; r < 2; ++r) {
    TwoRanks ranks;
    ranks.words[r][4] = "/there/is/nothing";
    ranks.expect_disagreement({"/there/is/nothing"});
  }
}

// Every rank has the same fault: it is told once.
TEST(BadInputOfAllRanks, ToldOnce) {
  const TemporaryFolder folder;
  Json bad = tiny_scene();
  bad["frames"] = 120;
  const fs::path output = folder.path() / "out";
  expect_refused(h3render(render_words(write_scene(folder.path(), bad), output), 5), {"frames", "120", "107", "124"},
                 output);
  expect_refused(h3render(render_words(write_scene(folder.path(), tiny_scene()), output, {"--exchnge", "x"}), 3),
                 {"--exchnge", "--exchange"}, output);
}

struct Failure {
  std::string stage;
  int rank;
};

class OneRankFails : public testing::TestWithParam<Failure> {};

static void expect_all_gone(const Process& process, double since) {
  while (!process.members().empty() && now() - since < most_seconds) usleep(20000);
  EXPECT_TRUE(process.members().empty());
}

// Files of the work may stay behind, to go on from; nothing that looks finished.
static void expect_nothing_final(const fs::path& output) {
  for (const std::string& name : names_in(output))
    EXPECT_TRUE(name.starts_with(".") || name.ends_with(".claim") || name.ends_with(".h5")) << name;
}

static const Hashes& tiny_hashes() {
  static const Hashes hashes = hashes_of(Render(tiny_scene()).manifest());
  return hashes;
}

TEST_P(OneRankFails, EndsAllRanks) {
  const auto& [stage, rank] = GetParam();
  const TemporaryFolder folder;
  const fs::path output = folder.path() / "out";
  const std::string scene = write_scene(folder.path(), tiny_scene());
  Words words{h3render_path()};
  for (const std::string& word : render_words(scene, output, {"--fail", std::to_string(rank) + ":" + stage}))
    words.push_back(word);
  Process process(on_ranks(3, words));
  ASSERT_TRUE(process.wait_for_err("because --fail asked for it")) << process.err();
  const double failed = now();
  const Result result = process.wait();
  EXPECT_LT(now() - failed, most_seconds);
  expect_all_gone(process, failed);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(count_of(result.err, "error: "), 1u) << result.err;
  EXPECT_NE(result.err.find("error: rank " + std::to_string(rank) + " on "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("stage " + stage), std::string::npos) << result.err;
  expect_nothing_final(output);
  // What a failed run leaves is no hindrance, and is gone after the next.
  expect_done(h3render(render_words(scene, output)));
  EXPECT_EQ(hashes_of(read_json(output / "scene.manifest.json")), tiny_hashes());
  EXPECT_EQ(names_in(output), (std::set<std::string>{"scene.manifest.json", "scene.mp4", "scene.sheet.png"}));
}

INSTANTIATE_TEST_SUITE_P(EveryStage, OneRankFails,
                         testing::Values(Failure{"validate", 0}, Failure{"validate", 2}, Failure{"load", 1},
                                         Failure{"text", 0}, Failure{"text", 2}, Failure{"step", 0}, Failure{"step", 1},
                                         Failure{"decode", 0}, Failure{"decode", 2}),
                         [](const auto& f) { return f.param.stage + "_rank" + std::to_string(f.param.rank); });

// Alone, without mpirun, the same switch gives the same exit code.
TEST(Failure, Alone) {
  const TemporaryFolder folder;
  const Result result =
      h3render(render_words(write_scene(folder.path(), tiny_scene()), folder.path() / "out", {"--fail", "0:step"}));
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(count_of(result.err, "error: "), 1u) << result.err;
}

TEST(Failure, KilledRankEndsAll) {
  for (const int victim : {0, 2}) {
    const TemporaryFolder folder;
    const fs::path output = folder.path() / "out";
    Json scene = tiny_scene();
    scene["evaluations"] = 1000;
    Words words{h3render_path()};
    for (const std::string& word : render_words(write_scene(folder.path(), scene), output)) words.push_back(word);
    Process process(on_ranks(3, words));
    ASSERT_TRUE(process.wait_for_err("step 3/1000")) << process.err();
    const pid_t pid = process.rank(victim);
    ASSERT_GT(pid, 0);
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    const double killed = now();
    const Result result = process.wait();
    EXPECT_LT(now() - killed, most_seconds);
    expect_all_gone(process, killed);
    EXPECT_NE(result.exit_code, 0);
    expect_nothing_final(output);
  }
}

// The manifest says who took part in what.
TEST(Participation, IsInTheManifest) {
  Json scene = nano_scene(1);
  scene["width"] = 160;
  scene["height"] = 96;
  scene["frames"] = 39;
  const Render render(scene, {"--shares", "1,0,2"}, 3);
  const Json& m = render.manifest();
  ASSERT_TRUE(m.is_object());
  std::int64_t rows = 0, heads = 0, units = 0;
  for (std::size_t r = 0; r < 3; ++r) {
    const Json& rank = m["ranks"][r];
    EXPECT_EQ(rank["rank"], r);
    EXPECT_FALSE(rank["host"].get<std::string>().empty());
    rows += rank["rows"].get<std::int64_t>();
    heads += rank["heads"].get<std::int64_t>();
    units += rank["decode_units"].get<std::int64_t>();
  }
  EXPECT_EQ(rows, m["geometry"]["rows"].get<std::int64_t>());
  EXPECT_EQ(heads, 8);
  EXPECT_EQ(m["ranks"][1]["rows"], 0);
  EXPECT_EQ(m["ranks"][1]["heads"], 0);
  EXPECT_EQ(m["ranks"][1]["decode_units"], 0);
  EXPECT_EQ(units, 2);  // two chunks of one tile
  EXPECT_EQ(m["stages"]["text"]["ranks"], 3);
  EXPECT_EQ(m["stages"]["text"]["scheme"], "by outputs");
  EXPECT_EQ(m["stages"]["denoise"]["ranks"], 3);
  EXPECT_EQ(m["stages"]["video"]["ranks"], 2);
  EXPECT_EQ(m["stages"]["video"]["chunks"], 2);
  EXPECT_EQ(m["stages"]["audio"]["ranks"], 1);
  // The log tells the same in words.
  EXPECT_NE(render.result().err.find("encoded by 3 of 3 ranks by outputs"), std::string::npos);
  EXPECT_NE(render.result().err.find("0 heads (idle: its share is 0)"), std::string::npos) << render.result().err;
  EXPECT_NE(render.result().err.find(" free): "), std::string::npos);
  EXPECT_NE(render.result().err.find("memory at most "), std::string::npos);
}

// The nano model has 8 heads.
TEST(Participation, RanksWithoutHeadsAreNamed) {
  const Render more(nano_scene(1), {}, 9);
  EXPECT_NE(more.result().err.find("0 heads (no heads: 8 for 9 ranks)"), std::string::npos) << more.result().err;
  const Render parts(nano_scene(1), {"--row-shares", "1,0", "--head-shares", "1,1"}, 2);
  EXPECT_NE(parts.result().err.find("4 heads (no rows: its share is 0)"), std::string::npos) << parts.result().err;
}

}  // namespace h3::test
