// The commands beside `render`: what they print, for people and as JSON, and their exit codes.
#include <gtest/gtest.h>

#include <regex>

#include "base/file.h"
#include "cli/program.h"
#include "support/goldens.h"
#include "weights/safetensors.h"

namespace h3::test {

namespace {

const std::vector<std::string> commands{"render",  "check",      "plan",  "status", "inspect",
                                        "compare", "make-model", "cache", "bench"};

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in:\n" << text;
}

Json json_of(const Result& result) {
  expect_done(result);
  return Json::parse(result.out);
}

}  // namespace

TEST(Help, OfTheProgram) {
  for (const std::string word : {"--help", "-h", "help"}) {
    const Result result = h3render({word});
    expect_done(result);
    for (const std::string& command : commands) expect_has(result.out, "  " + command + " ");
  }
  const Result version = h3render({"--version"});
  expect_done(version);
  expect_has(version.out, "h3render " H3RENDER_TEST_VERSION "\n");
  for (const char* library : {"MPI", "HDF5", "FFmpeg", "glibc"}) expect_has(version.out, library);
}

// Complete: every option that an example uses is explained; no example is left out.
TEST(Help, OfEachCommand) {
  for (const std::string& command : commands) {
    SCOPED_TRACE(command);
    const Result result = h3render({command, "--help"});
    expect_done(result);
    EXPECT_EQ(result.err, "");
    expect_has(result.out, "Usage: h3render " + command + " ");
    expect_has(result.out, "\nOptions:\n");
    const std::size_t options = result.out.find("\nOptions:\n"), examples = result.out.find("\nExamples:\n");
    ASSERT_NE(examples, std::string::npos);
    const std::string shown = result.out.substr(examples), explained = result.out.substr(options, examples - options);
    expect_has(shown, "h3render " + command);
    const std::regex option("--[a-z-]+");
    for (std::sregex_iterator it(shown.begin(), shown.end(), option), end; it != end; ++it)
      expect_has(explained, it->str());
    EXPECT_EQ(h3render({command, "--no-such-option"}).exit_code, 2);
  }
}

TEST(Check, ModelAndScenes) {
  const TemporaryFolder folder;
  const std::string scene = write_scene(folder.path(), tiny_scene());
  const Result model = h3render({"check", "--model", nano_path()});
  expect_done(model);
  expect_has(model.out, "layout diffusers");
  expect_has(model.out, "transformer");
  const Result both = h3render({"check", scene, "--model", nano_path(), "seed=9"});
  expect_done(both);
  expect_has(both.out, "scene scene: 64x64, 5 frames");
  expect_has(both.out, "seed 9");
  Json bad = tiny_scene();
  bad["frames"] = 6;
  expect_refused(h3render({"check", write_scene(folder.path(), bad, "bad.json"), scene, "--model", nano_path()}),
                 {"bad.json", "frames", "5 and 22"});
}

// What the test finds on CPUs is in tests/bench/device_check_test.cpp.
TEST(Check, DeviceNeedsAGpu) {
  Surroundings none;
  none.environment["CUDA_VISIBLE_DEVICES"] = "";
  expect_refused(h3render({"check", "--device"}, 1, none), {"--device", "no GPU", "nvidia-smi"});
  expect_refused(h3render({"check", "--device", "scene.json"}, 1, none), {"--device", "scene.json", "no scenes"});
}

// spec/dit.md 1.2, 1.3 and vae.md 13: the released model at 1344 x 768, 124 frames.
TEST(Plan, ReleasedModel) {
  const TemporaryFolder folder;
  Json scene = nano_scene(49);
  scene["width"] = 1344;
  scene["height"] = 768;
  scene["frames"] = 124;
  const Words words{"plan",          write_scene(folder.path(), scene),
                    "--model",       "synthetic:1",
                    "--text-rows",   "512",
                    "--ranks",       "1,2,8",
                    "--precision",   "bf16",
                    "--vae-profile", "R",
                    "--json"};
  const Json plans = json_of(h3render(words));
  ASSERT_EQ(plans.size(), 3u);
  const double rows = 512 + 2 * 207 + 37 * 24 * 42;
  const double flops = 38535168000.0 * rows + 1433600.0 * rows * rows;
  for (const Json& plan : plans) {
    SCOPED_TRACE(plan["ranks_planned"].dump());
    const std::size_t ranks = plan["ranks_planned"];
    ASSERT_EQ(plan["ranks"].size(), ranks);
    EXPECT_EQ(plan["rows"], rows);
    EXPECT_EQ(plan["video_rows"], 37 * 24 * 42);
    EXPECT_EQ(plan["audio_rows"], 2 * 207);
    EXPECT_NEAR(plan["step_flops"].get<double>() / flops, 1, 1e-3);
    EXPECT_NEAR(plan["total_flops"].get<double>() / (49 * flops), 1, 1e-3);
    EXPECT_NEAR(plan["decode_flops"].get<double>() / 1.89e15, 1, 0.01);
    EXPECT_EQ(plan["frames_bytes"], 124.0 * 1344 * 768 * 3);
    // Transformer 66.28 GB, text states up to the wanted one, both decoders: more than the first, less than all files.
    EXPECT_GT(plan["node_weight_bytes"].get<double>(), 66.2e9);
    EXPECT_LT(plan["node_weight_bytes"].get<double>(), 66.3e9 + 66.8e9 + 10.5e9 + 0.7e9);
    double own_rows = 0, heads = 0, own_flops = 0;
    for (const Json& rank : plan["ranks"]) {
      own_rows += rank["rows"].get<double>();
      heads += rank["heads"].get<double>();
      own_flops += rank["step_flops"].get<double>();
      EXPECT_EQ(rank["step_bytes_received"].get<double>() > 0, ranks > 1);
      EXPECT_GT(rank["activation_bytes"].get<double>(), 0);
      EXPECT_GT(rank["decode_bytes"].get<double>(), 0);
    }
    EXPECT_EQ(own_rows, rows);
    EXPECT_EQ(heads, 56);
    EXPECT_NEAR(own_flops / plan["step_flops"].get<double>(), 1, 1e-9);
  }
  EXPECT_EQ(plans[1]["exchange"], "all-gather");
  EXPECT_EQ(plans[2]["exchange"], "all-to-all");
}

// spec/dit.md 9: bytes a rank receives in a step, by the two patterns.
TEST(Plan, BytesExchanged) {
  const Json plans = json_of(h3render({"plan", source_path("jobs/demo.json"), "--model", nano_path(), "--ranks", "4",
                                       "--json", "--exchange", "all-gather", "--precision", "f32"}));
  const Json& rank = plans[0]["ranks"][0];
  const double rows = 425, own = rank["rows"], heads = rank["heads"];
  EXPECT_EQ(own, 107);
  EXPECT_EQ(heads, 2);
  // Hidden states of the other ranks' rows, and the attention output of the own rows from the other ranks' heads.
  EXPECT_EQ(rank["step_bytes_received"].get<double>(), 6 * 4 * ((rows - own) * 192 + own * (8 - heads) * 32));
  // Attention's output of the own rows, sorted by the ranks it comes from.
  EXPECT_EQ(rank["exchange_buffer_bytes"].get<double>(), 4 * own * 8 * 32);
  EXPECT_GT(rank["activation_bytes"].get<double>(), rank["exchange_buffer_bytes"].get<double>());
}

TEST(Plan, ForPeople) {
  const Result result =
      h3render({"plan", source_path("jobs/demo.json"), "--model", nano_path(), "--ranks", "1,3", "--shares", ""});
  expect_done(result);
  expect_has(result.out, "scene demo on 1 rank\n");
  expect_has(result.out, "scene demo on 3 ranks\n");
  expect_has(result.out, "rows 425 = text 15 + audio 74 + video 336");
  expect_refused(h3render({"plan", source_path("jobs/demo.json"), "--model", nano_path(), "--ranks", "0"}),
                 {"--ranks", "0"});
  expect_refused(h3render({"plan", source_path("jobs/demo.json"), "--model", nano_path(), "--ranks", "two"}),
                 {"--ranks", "two"});
}

TEST(Plan, PredictsAndSaysByWhat) {
  const Words scene{"plan", source_path("jobs/demo.json"), "--model", "synthetic:1", "--text-rows", "1024", "--device",
                    "cuda"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), scene.begin(), scene.end());
    return h3render(more);
  };
  const Result text = with({"--ranks", "16", "--predict", "H200", "--ranks-per-node", "8"});
  expect_done(text);
  for (const std::string part : {"predicted: step", "bound by", "H200s", "assumed", "2 nodes", "are left out"})
    expect_has(text.out, part);
  const Json h200 = json_of(with({"--ranks", "1,8", "--predict", "H200", "--json"}));
  EXPECT_GT(h200[0]["predicted"]["step_seconds"], h200[1]["predicted"]["step_seconds"]);
  EXPECT_EQ(h200[0]["predicted"]["exchange_seconds"], 0.0);
  const Json slow = json_of(with({"--ranks", "8", "--predict", "H200", "--link", "10", "--json"}));
  EXPECT_GT(slow[0]["predicted"]["exchange_seconds"], h200[1]["predicted"]["exchange_seconds"]);
  const Json streamed =
      json_of(with({"--predict", "RTX 4090", "--residency", "streamed", "--host-link", "1", "--json"}));
  EXPECT_EQ(streamed[0]["predicted"]["bound_by"], "weights");
  const Json plain = json_of(with({"--json"}))[0];
  EXPECT_FALSE(plain.contains("predicted"));
  const Json rank = plain["ranks"][0];
  EXPECT_LT(rank["device_bytes_streamed"], rank["device_bytes_resident"]);
  EXPECT_EQ(rank["device_bytes_resident"].get<double>(),
            rank["weight_bytes"].get<double>() + rank["activation_bytes"].get<double>() +
                rank["decoder_weight_bytes"].get<double>() + rank["decode_bytes"].get<double>());

  expect_refused(with({"--predict", "Abacus"}), {"--predict", "Abacus"});
  expect_refused(with({"--predict", "/there/is/none.json"}), {"/there/is/none.json"});
  expect_refused(with({"--link", "10"}), {"--link", "--predict"});
  expect_refused(with({"--predict", "H200", "--link", "-1"}), {"--link"});
}

TEST(Plan, AgreesWithTheRender) {
  const Render render(nano_scene(1), {"--shares", "3,1,2"}, 3);
  const TemporaryFolder folder;
  const Json plans = json_of(h3render({"plan", write_scene(folder.path(), nano_scene(1)), "--model", nano_path(),
                                       "--ranks", "3", "--shares", "3,1,2", "--json"}));
  for (std::size_t r = 0; r < 3; ++r)
    for (const char* key : {"rows", "heads"})
      EXPECT_EQ(plans[0]["ranks"][r][key], render.manifest()["ranks"][r][key]) << r << key;
}

TEST(Plan, TellsWhenAJobHasToBeStopped) {
  const TemporaryFolder folder;
  const std::string small = write_scene(folder.path(), nano_scene(8), "small.json");
  Words words{"plan", small, "--model", nano_path(), "--ranks", "4", "--step-seconds", "95"};
  expect_has(h3render(words).out, "with steps of 95.0 s: sbatch --signal=B:USR1@134\n");
  words.push_back("--json");
  EXPECT_EQ(json_of(h3render(words))[0]["stop"]["signal_seconds"], 134);
  words[7] = "0";
  EXPECT_EQ(h3render(words).exit_code, 2);
  // The released model at full length: a checkpoint of 42 MB.
  const std::string full = write_scene(folder.path(), {{"prompt", "A red circle."}, {"frames", 362}});
  const Json plan = json_of(
      h3render({"plan", full, "--model", "synthetic:1", "--text-rows", "512", "--json", "--step-seconds", "60"}));
  EXPECT_NEAR(plan[0]["stop"]["checkpoint_bytes"].get<double>(), 42e6, 2e6);
}

TEST(Inspect, ManifestSafetensorsModel) {
  const TemporaryFolder folder;
  const fs::path dump = folder.path() / "dump.safetensors";
  const Render render(tiny_scene(), {"--dump", dump});
  const Result manifest = h3render({"inspect", render.file(".manifest.json")});
  expect_done(manifest);
  expect_has(manifest.out, "scene clip by h3render");
  for (const std::string& hash : hashes_of(render.manifest())) expect_has(manifest.out, hash);
  EXPECT_EQ(json_of(h3render({"inspect", render.file(".manifest.json"), "--json"})), render.manifest());

  const Result tensors = h3render({"inspect", dump});
  expect_done(tensors);
  expect_has(tensors.out, "rows.step1.video");
  const Json listed = json_of(h3render({"inspect", dump, "--json"}));
  const SafetensorsFile file(dump);
  EXPECT_EQ(listed["tensors"].size(), file.tensors().size());
  EXPECT_EQ(listed["tensors"]["frames"]["shape"], "[5, 64, 64, 3]");

  const Json model = json_of(h3render({"inspect", nano_path(), "--json"}));
  EXPECT_EQ(model["identity"], render.manifest()["model"]["identity"]);
  EXPECT_EQ(model["layout"], "diffusers");

  expect_refused(h3render({"inspect", "/there/is/nothing"}), {"/there/is/nothing"});
  write_text(folder.path() / "text.safetensors", "no tensors");
  expect_refused(h3render({"inspect", folder.path() / "text.safetensors"}), {"text.safetensors"});
  write_text(folder.path() / "other.json", "{}");
  expect_refused(h3render({"inspect", folder.path() / "other.json"}), {"other.json"});
}

TEST(Compare, EqualAndDifferent) {
  const Json scene = nano_scene(1);
  Json other = scene;
  other["seed"] = 43;
  const Words frames{"output.frames=true"};
  const Render a(scene, frames), b(scene, frames, 2), c(other, frames);
  for (const std::string ending : {".mp4", ".frames"}) {
    SCOPED_TRACE(ending);
    const Json same = json_of(h3render({"compare", a.file(ending), b.file(ending), "--json"}));
    EXPECT_EQ(same["equal"], true);
    EXPECT_EQ(same["frames_equal"], 22);
    EXPECT_EQ(same["largest_difference"], 0);
    EXPECT_TRUE(same["psnr_db"].is_null());
    EXPECT_EQ(same["ssim"], 1.0);
    const Json different = json_of(h3render({"compare", a.file(ending), c.file(ending), "--json"}));
    EXPECT_EQ(different["equal"], false);
    EXPECT_LT(different["frames_equal"], 22);
    EXPECT_GT(different["largest_difference"], 0);
    EXPECT_GT(different["psnr_db"], 0.0);
    EXPECT_LT(different["ssim"], 1.0);
    EXPECT_EQ(different["by_frame"].size(), 22u);
  }
  const Json sound = json_of(h3render({"compare", a.file(".mp4"), c.file(".mp4"), "--json"}))["sound"];
  EXPECT_EQ(sound["comparable"], true);
  EXPECT_EQ(sound["equal"], false);
  const Result table = h3render({"compare", a.file(".mp4"), c.file(".mp4")});
  expect_done(table);
  for (const std::string word : {"PSNR", "SSIM", "SNR", "frame  equal"}) expect_has(table.out, word);
  expect_refused(h3render({"compare", a.file(".mp4")}), {"two renders"});
  expect_refused(h3render({"compare", a.file(".mp4"), "/there/is/nothing"}), {"/there/is/nothing"});
}

// A folder written from a seed is the model that the seed names.
TEST(MakeModel, Synthetic) {
  const TemporaryFolder folder;
  const std::string made = folder.path() / "made", source = "synthetic:7:" + nano_path();
  expect_done(h3render({"make-model", made, "--model", source, "--shard-bytes", "3000000"}));
  expect_done(h3render({"check", "--model", made}));
  const Render from_folder(tiny_scene(), {}, 2, made), from_seed(tiny_scene(), {}, 1, source);
  EXPECT_EQ(hashes_of(from_folder.manifest()), hashes_of(from_seed.manifest()));
  const Render other(tiny_scene(), {}, 1, "synthetic:8:" + nano_path());
  EXPECT_NE(hashes_of(other.manifest()), hashes_of(from_seed.manifest()));
}

TEST(MakeModel, CopyHasTheSameIdentity) {
  const TemporaryFolder folder;
  const std::string made = folder.path() / "made";
  expect_done(h3render({"make-model", made, "--model", nano_path(), "--shard-bytes", "1000000"}));
  EXPECT_EQ(json_of(h3render({"inspect", made, "--json"}))["identity"],
            json_of(h3render({"inspect", nano_path(), "--json"}))["identity"]);
  EXPECT_EQ(h3render({"make-model", made}).exit_code, 2);
}

TEST(Status, OfAnOutputFolder) {
  const Render render(tiny_scene());
  const Json status = json_of(h3render({"status", render.output(), "--json"}));
  EXPECT_EQ(status["done"], 1);
  EXPECT_EQ(status["failed"], 0);
  EXPECT_EQ(status["scenes"][0]["name"], "clip");
}

}  // namespace h3::test
