// The benches of the program at nano size on CPUs: each runs, alone and over ranks, and reports what it should.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "cli/program.h"
#include "support/checks.h"
#include "support/goldens.h"

namespace h3::test {

namespace {

Json json_of(const Result& result) {
  expect_done(result);
  return Json::parse(result.out, nullptr, false);
}

Json bench(const std::string& name, Words more, int ranks = 1) {
  Words words{"bench", name, "--model", nano_path(), "--device", "cpu", "--repeats", "1", "--json", "-", "--quiet"};
  words.insert(words.end(), more.begin(), more.end());
  return json_of(h3render(words, ranks));
}

// The first row whose name begins so.
Json row_of(const Json& table, const std::string& beginning) {
  for (const Json& row : table["rows"])
    if (row["what"].get<std::string>().starts_with(beginning)) return row;
  ADD_FAILURE() << "no row \"" << beginning << "\" in " << table.dump();
  return {};
}

void expect_timed(const Json& table) {
  for (const Json& row : table["rows"]) EXPECT_GT(row["median_seconds"], 0.0) << row;
}

}  // namespace

TEST(Bench, Ceiling) {
  const Json table = bench("ceiling", {"--rows", "64,33"});
  expect_timed(table);
  for (const char* what :
       {"linear qkv 64x768x192", "linear out", "linear fc1", "linear fc2", "attention 64 rows, 8 heads of 32",
        "ceiling of a step of 64 rows", "linear qkv 33x768x192", "ceiling of a step of 33 rows", "host to host"})
    row_of(table, what);
  EXPECT_EQ(row_of(table, "linear qkv 64")["flops"], 2.0 * 64 * 768 * 192);
  EXPECT_TRUE(table["peak_flops"].is_null());
}

TEST(Bench, CeilingOfRanksHoldsTheExchange) {
  const Json table = bench("ceiling", {"--rows", "64"}, 2);
  EXPECT_EQ(table["ranks"], 2);
  // A rank receives the other's 32 rows: all 192 hidden values, or outputs of its own 4 heads of 32.
  EXPECT_EQ(row_of(table, "all-gather")["bytes"], 32 * 192 * 4.0);
  EXPECT_EQ(row_of(table, "all-to-all of 64 rows of outputs")["bytes"], 32 * 128 * 4.0);
  EXPECT_EQ(row_of(table, "all-to-all of 64 rows of q, k, v")["bytes"], 32 * 3 * 128 * 4.0);
  EXPECT_EQ(row_of(table, "linear qkv 64x384x192")["flops"], 2.0 * 64 * 768 * 192);
}

TEST(Bench, CeilingWithAnIdleRank) {
  expect_timed(bench("ceiling", {"--rows", "64", "--shares", "1,0"}, 2));
}

TEST(Bench, StepBesideItsCeiling) {
  for (const int ranks : {1, 2}) {
    const Json table = bench("step", {"--rows", "65"}, ranks);
    const Json step = row_of(table, "step 65 rows");
    EXPECT_GT(step["of_ceiling"], 0.0);
    EXPECT_EQ(step["ceiling_seconds"], row_of(table, "ceiling of a step")["median_seconds"]);
    EXPECT_EQ(step["exposed_seconds"].is_null(), ranks == 1);
  }
}

TEST(Bench, VideoByBothNames) {
  const Words clip{"--frames", "5", "--width", "64", "--height", "64"};
  const Json video = bench("video", clip), vae = bench("vae", clip, 2);
  expect_timed(video);
  // 64 x 64 is one tile: its operators and what they leave of the decode's time.
  row_of(video, "linear qkv");
  row_of(video, "attention");
  EXPECT_GT(row_of(video, "decode")["of_ceiling"], 0.0);
  EXPECT_EQ(video["bench"], vae["bench"]);
  EXPECT_EQ(video["notes"], vae["notes"]);  // the hash of the frames
}

TEST(Bench, AttentionOfThisMachine) {
  const Json f32 = bench("attention", {"--rows", "65", "--heads", "3,1"});
  const Json row = row_of(f32, "attention 65 rows, 3 heads of 32, cpu");
  row_of(f32, "attention 65 rows, 1 heads of 32, cpu");
  EXPECT_EQ(row["repeats"], 3);
  EXPECT_EQ(row["relative error"], 0.0);
  const Json bf16 = bench("attention", {"--rows", "65", "--precision", "bf16", "--rounds", "1"});
  const double error = row_of(bf16, "attention 65 rows, 8 heads")["relative error"].get<double>();
  EXPECT_GT(error, 1e-4);
  EXPECT_LT(error, 4e-3);
}

TEST(Bench, Text) {
  const Json row = row_of(bench("text", {"--text-rows", "33"}, 2), "text of 33 rows on 2 ranks");
  EXPECT_GT(row["median_seconds"], 0.0);
  EXPECT_GT(row["flops"], 0.0);
}

// Runs on one and two ranks fill one record; its table has speed-ups, predictions and the crossover, and `plan`
// predicts by it.
TEST(Bench, WeightsColdAndWarm) {
  const Json files = bench("weights", {"--components", "video,audio"}, 2);
  expect_timed(files);
  for (const char* what : {"video VAE from files, cold", "video VAE from files, warm", "audio VAE from files, cold"})
    EXPECT_GT(row_of(files, what)["bytes"], 1e5);
  const Json made = json_of(h3render(
      {"bench", "weights", "--model", "synthetic:1:" + nano_path(), "--device", "cpu", "--json", "-", "--quiet"}));
  row_of(made, "transformer from a seed into private memory");
}

TEST(Bench, ScalingGrowsOneRecord) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "scaling.json";
  const auto scaling = [&](int ranks, const Words& more = {}) {
    Words words{"bench",  "scaling", "--model",  nano_path(), "--device", "cpu", "--repeats", "1",  "--rows", "64,100",
                "--json", file,      "--frames", "5",         "--width",  "64",  "--height",  "64", "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return h3render(words, ranks);
  };
  expect_done(scaling(1));
  EXPECT_EQ(read_json(file)["points"].size(), 4u);  // two steps, text, decode
  const Result two = scaling(2);
  expect_done(two);
  for (const char* part : {"speed-up", "efficiency", "predicted s", "fitted to the steps that one and two ranks",
                           "weak", "throughput", "64 rows on 2 ranks", "a clip a rank"})
    expect_has(two.out, part);
  const Json record = read_json(file);
  EXPECT_EQ(record["points"].size(), 11u);  // and two steps, two alone, one of equal work, text, decode
  expect_done(scaling(2, {"--stages", "step"}));
  EXPECT_EQ(read_json(file)["points"].size(), 11u);

  const Json plan = json_of(h3render({"plan", write_scene(folder.path(), tiny_scene()), "--model", nano_path(),
                                      "--ranks", "1,4", "--predict", file, "--json"}));
  EXPECT_GT(plan[0]["predicted"]["step_seconds"], plan[1]["predicted"]["compute_seconds"]);
  expect_has(plan[0]["predicted"]["rates"]["source"].get<std::string>(), "fitted");

  expect_refused(scaling(1, {"--precision", "bf16"}), {file, "precision", "f32"});
  write_text(file, "{}");
  expect_refused(scaling(2), {file, "bench scaling wrote"});
}

// The job script goes through rank counts; a stand-in for srun starts them here.
TEST(Bench, ScalingJob) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "scaling.json";
  write_text(folder.path() / "srun",
             "#!/usr/bin/env bash\n"
             "while [[ $1 == --* ]]; do [[ $1 == --ntasks=* ]] && ranks=${1#*=}; shift; done\n"
             "exec mpirun -n \"$ranks\" \"$@\"\n");
  fs::permissions(folder.path() / "srun", fs::perms::owner_all);
  Surroundings surroundings;
  surroundings.environment = {{"SLURM_NTASKS", "3"},
                              {"SLURM_JOB_NUM_NODES", "1"},
                              {"H3RENDER", h3render_path()},
                              {"PATH", folder.path().string() + ":" + std::getenv("PATH")}};
  expect_done(run({"bash", source_path("slurm/scaling.sbatch"), nano_path(), file, "--device", "cpu", "--rows", "40",
                   "--repeats", "1", "--stages", "step"},
                  surroundings));
  const Json record = read_json(file);
  std::set<int> ranks;
  for (const Json& point : record["points"]) ranks.insert(point["ranks"].get<int>());
  EXPECT_EQ(ranks, (std::set<int>{1, 2, 3}));
}

TEST(Bench, RenderAgainstItsCeilings) {
  const TemporaryFolder folder;
  const std::string output = folder.path() / "out";
  const Json table = bench("render",
                           {"--frames", "5", "--width", "64", "--height", "64", "--text-rows", "20", "--evaluations",
                            "1", "--output", output, "output.sheet=false"},
                           2);
  double stages = 0;
  for (const char* stage : {"text", "denoise", "video"}) {
    EXPECT_GT(row_of(table, stage)["ceiling_seconds"], 0.0) << stage;
    stages += row_of(table, stage)["ceiling_seconds"].get<double>();
  }
  EXPECT_NEAR(row_of(table, "total")["ceiling_seconds"].get<double>(), stages, 1e-9);
  EXPECT_EQ(row_of(table, "total")["median_seconds"],
            read_json(fs::path(output) / "bench.manifest.json")["seconds"]["total"]);
  EXPECT_TRUE(fs::exists(fs::path(output) / "bench.mp4"));
  EXPECT_FALSE(fs::exists(fs::path(output) / "bench.sheet.png"));
  expect_refused(h3render({"bench", "render", "--model", nano_path(), "--output", output, "evaluations=2"}),
                 {"evaluations=2"});
  expect_refused(h3render({"bench", "render", "--model", nano_path()}), {"--output"});
  expect_refused(h3render({"bench", "render", "--model", nano_path(), "--output", output, "--tokenizer", nano_path()}),
                 {"--tokenizer"});
  expect_refused(h3render({"bench", "render", "--model", "synthetic:1", "--output", output}), {"tokenizer"});
}

TEST(Bench, RenderWithALentTokenizer) {
  const TemporaryFolder folder;
  const fs::path mute = folder.path() / "mute";
  fs::copy(nano_path(), mute, fs::copy_options::recursive);
  fs::remove_all(mute / "tokenizer");
  fs::remove_all(mute / "processor");
  const std::string output = folder.path() / "out";
  Words words{"bench",       "render", "--model",       "synthetic:1:" + mute.string(),
              "--device",    "cpu",    "--repeats",     "1",
              "--text-rows", "20",     "--evaluations", "1",
              "--frames",    "5",      "--width",       "64",
              "--height",    "64",     "--output",      output};
  expect_refused(h3render(words), {"tokenizer"});
  words.insert(words.end(), {"--tokenizer", nano_path()});
  expect_done(h3render(words));
  EXPECT_TRUE(fs::exists(fs::path(output) / "bench.manifest.json"));
}

TEST(Bench, TableAndJsonFile) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "table.json";
  const Result result = h3render({"bench", "step", "--model", nano_path(), "--rows", "40", "--json", file}, 2);
  expect_done(result);
  for (const char* part : {"bench step: 2 ranks", "median ms", "of ceiling", "exposed ms"})
    expect_has(result.out, part);
  EXPECT_EQ(read_json(file)["bench"], "step");
}

TEST(Bench, Refusals) {
  const auto refused = [](Words words, const std::vector<std::string>& parts, int ranks = 1) {
    words.insert(words.begin(), "bench");
    expect_refused(h3render(words, ranks), parts);
  };
  const std::string nano = nano_path();
  refused({"nothing", "--model", nano}, {"nothing", "ceiling"});
  refused({"step"}, {"--model"});
  refused({"step", "--model", "/there/is/nothing"}, {"/there/is/nothing"}, 2);
  refused({"step", "--model", nano, "--repeats", "0"}, {"--repeats"});
  refused({"video", "--model", nano, "--frames", "6"}, {"--frames", "17n + 5"});
  refused({"scaling", "--model", nano, "--stages", "step,sound"}, {"--stages", "sound"});
  refused({"weights", "--model", nano, "--components", "video,words"}, {"--components", "words", "transformer"});
  refused({"text", "--model", nano, "--text-rows", "0"}, {"--text-rows"});
  refused({"attention", "--model", nano}, {"2 ranks", "one rank"}, 2);
}

}  // namespace h3::test
