// What a render leaves in its output folder: the files and nothing else, what they hold, and what happens where files
// stand there already, a scene is bad, or the disk is full.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "base/file.h"
#include "base/hash.h"
#include "cli/program.h"
#include "media/clip_reader.h"
#include "media/png.h"
#include "media/wav.h"
#include "support/goldens.h"

namespace h3::test {

namespace {

std::set<std::string> files_of(const std::string& name) {
  return {name + ".manifest.json", name + ".mp4", name + ".sheet.png"};
}

// An output folder that several renders share, and a scene for it.
class Output : public testing::Test {
 protected:
  Result render(const Json& scene, const Words& options = {}, int ranks = 1) const {
    return h3render(render_words(write_scene(folder(), scene), output(), options), ranks);
  }
  const fs::path& folder() const { return folder_.path(); }
  fs::path output() const { return folder() / "out"; }
  Json manifest(const std::string& name) const { return read_json(output() / (name + ".manifest.json")); }

 private:
  TemporaryFolder folder_;
};

Json named(const std::string& name) {
  Json scene = tiny_scene();
  scene["name"] = name;
  return scene;
}

}  // namespace

TEST_F(Output, FilesAndNothingElse) {
  expect_done(render(named("a")));
  EXPECT_EQ(names_in(output()), files_of("a"));
}

TEST_F(Output, OnRequest) {
  expect_done(render(named("a"), {"output.wav=true", "output.frames=true", "output.sheet=false"}, 2));
  std::set<std::string> expected{"a.manifest.json", "a.mp4", "a.wav", "a.frames"};
  for (int f = 0; f < 5; ++f) expected.insert("a.frames/00000" + std::to_string(f) + ".png");
  EXPECT_EQ(names_in(output()), expected);
  const Json m = manifest("a");
  EXPECT_EQ(m["files"], Json::array({"a.mp4", "a.wav", "a.frames"}));

  // The hashes are those of the raw frames and samples.
  Hasher all;
  for (std::size_t f = 0; f < 5; ++f) {
    const Image image = read_png(output() / "a.frames" / ("00000" + std::to_string(f) + ".png"));
    all.add(image.rgb.data(), image.rgb.size());
    EXPECT_EQ(m["hashes"]["each_frame"][f], hash_hex(image.rgb.data(), image.rgb.size())) << f;
  }
  EXPECT_EQ(m["hashes"]["frames"], all.hex());
  const Sound sound = read_wav(output() / "a.wav");
  EXPECT_EQ(sound.rate, 32000);
  EXPECT_EQ(sound.channels, 2);
  EXPECT_EQ(m["hashes"]["audio"], hash_hex(sound.samples.data(), sound.samples.size() * sizeof(float)));
}

TEST_F(Output, Manifest) {
  Json scene = nano_scene(2);
  scene["name"] = "a";
  scene["width"] = 160;
  scene["height"] = 96;
  expect_done(render(scene, {}, 2));
  const Json m = manifest("a");
  for (const auto& [key, value] : scene.items()) EXPECT_EQ(m["scene"][key], value) << key;
  EXPECT_EQ(m["scene"]["shift"], 6.0);
  EXPECT_EQ(m["scene"]["audio_shift"], 3.0);
  EXPECT_EQ(m["program"]["name"], "h3render");
  EXPECT_EQ(m["program"]["build"], hash_hex(read_file(h3render_path())));
  EXPECT_EQ(m["geometry"]["latent_frames"], 7);
  EXPECT_EQ(m["geometry"]["audio_latents"], 37);
  EXPECT_EQ(m["geometry"]["rows"], 15 + 74 + 7 * 15);
  EXPECT_EQ(m["model"]["layout"], "diffusers");
  EXPECT_EQ(m["model"]["identity"].get<std::string>().size(), 32u);
  for (const char* key : {"stages", "backend", "capability", "precision", "vae_profile", "libraries", "id"})
    EXPECT_TRUE(m["numerics"].contains(key)) << key;
  EXPECT_EQ(m["numerics"]["backend"], "cpu");
  EXPECT_EQ(m["numerics"]["precision"], "f32");
  EXPECT_EQ(m["numerics"]["vae_profile"], "F");
  EXPECT_EQ(m["schedule"]["video_sigmas"].size(), 3u);
  ASSERT_EQ(m["ranks"].size(), 2u);
  for (const Json& rank : m["ranks"]) {
    EXPECT_FALSE(rank["device"].get<std::string>().empty());
    EXPECT_GT(rank["free_bytes"].get<double>(), 1e6);
  }
  for (const char* library : {"compute", "mpi", "hdf5", "ffmpeg"})
    EXPECT_NE(m["libraries"][library].get<std::string>().find('.'), std::string::npos) << library;
  EXPECT_EQ(m["options"]["exchange"], "auto");
  EXPECT_EQ(m["hashes"]["each_frame"].size(), 22u);
  EXPECT_EQ(m["files"], Json::array({"a.mp4", "a.sheet.png"}));
  EXPECT_GE(m["warnings"].size(), 2u);  // few evaluations, a short clip

  double sum = 0;
  for (const auto& [stage, seconds] : m["seconds"].items()) {
    EXPECT_GE(seconds.get<double>(), 0) << stage;
    if (stage != "total") sum += seconds.get<double>();
  }
  EXPECT_NEAR(sum, m["seconds"]["total"].get<double>(), 1e-6);
  EXPECT_LT(m["seconds"]["other"].get<double>(), 0.2 * m["seconds"]["total"].get<double>() + 0.1);
  for (const char* stage : {"text", "load", "denoise", "video", "audio", "write"})
    EXPECT_TRUE(m["seconds"].contains(stage)) << stage;
}

// What a manifest holds is a scene that can be rendered again.
TEST_F(Output, SceneOfManifestRendersTheSame) {
  expect_done(render(named("a"), {"seed=7", "noise=original"}));
  const Render again(manifest("a")["scene"]);
  EXPECT_EQ(hashes_of(again.manifest()), hashes_of(manifest("a")));
}

TEST_F(Output, Mp4) {
  Json scene = nano_scene(1);
  scene["name"] = "a";
  scene["seed"] = 18446744073709551615u;
  expect_done(render(scene));
  const VideoFile clip = read_clip(output() / "a.mp4");
  EXPECT_EQ(clip.info.video_codec, "h264");
  EXPECT_EQ(clip.info.pixel_format, "yuv420p");
  EXPECT_EQ(clip.info.width, 256);
  EXPECT_EQ(clip.info.height, 192);
  EXPECT_DOUBLE_EQ(clip.info.frame_rate, 24);
  EXPECT_EQ(clip.frames.size(), 22u);
  EXPECT_EQ(clip.info.audio_codec, "aac");
  EXPECT_EQ(clip.info.sample_rate, 32000);
  EXPECT_EQ(clip.info.channels, 2);
  EXPECT_NEAR(clip.info.video_seconds, 22 / 24.0, 1e-3);
  EXPECT_LT(std::abs(clip.info.audio_seconds - clip.info.video_seconds), 1 / 24.0);
  EXPECT_LT(std::abs(clip.sound.seconds() - 22 / 24.0), 1 / 24.0);
  ASSERT_EQ(clip.info.tags.count("comment"), 1u);
  const Json recipe = Json::parse(clip.info.tags.at("comment"));
  EXPECT_EQ(recipe["scene"]["seed"], 18446744073709551615u);
  EXPECT_EQ(recipe["scene"]["prompt"], scene["prompt"]);

  // The tag survives a remux, and is a scene file by itself.
  const fs::path remuxed = folder() / "remuxed.mp4";
  const Result remux = run({"ffmpeg", "-v", "error", "-i", output() / "a.mp4", "-c", "copy", remuxed});
  ASSERT_EQ(remux.exit_code, 0) << remux.err;
  EXPECT_EQ(ClipReader(remuxed).info().tags.at("comment"), clip.info.tags.at("comment"));
  const Render again(recipe["scene"]);
  EXPECT_EQ(hashes_of(again.manifest()), hashes_of(manifest("a")));
}

TEST_F(Output, WithoutTrimTheSoundIsWhole) {
  Json scene = named("a");
  scene["audio_trim"] = "none";
  expect_done(render(scene));
  // 5 frames have 8 latents of 800 samples, and end after ceil(32000 * 5 / 24) = 6667 of them where trimmed.
  EXPECT_NEAR(ClipReader(output() / "a.mp4").info().audio_seconds, 6400 / 32000.0, 1e-3);
}

TEST_F(Output, ExistingSkipOverwriteRefuse) {
  expect_done(render(named("a")));
  const auto first = fs::last_write_time(output() / "a.mp4");
  const std::string bytes = read_file(output() / "a.manifest.json");

  const Result skipped = render(named("a"));
  expect_done(skipped);
  EXPECT_NE(skipped.err.find("skipped"), std::string::npos) << skipped.err;
  EXPECT_EQ(fs::last_write_time(output() / "a.mp4"), first);

  const Result refused = render(named("a"), {"--existing", "refuse"});
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_EQ(read_file(output() / "a.manifest.json"), bytes);

  // Another scene under the same name is not rendered over the first.
  const Result other = render(named("a"), {"seed=1"});
  EXPECT_EQ(other.exit_code, 3) << other.err;
  EXPECT_NE(other.err.find("differs in seed"), std::string::npos) << other.err;
  EXPECT_EQ(read_file(output() / "a.manifest.json"), bytes);

  // Nor one of the same scene by another model or in another precision.
  for (const auto& [options, difference] :
       std::map<Words, std::string>{{{"--precision", "bf16"}, "differs in numerics.precision"},
                                    {{"--vae-profile", "R"}, "differs in numerics.vae_profile"},
                                    {{"--model", "synthetic:1:" + nano_path()}, "differs in model.identity"}}) {
    Words words = render_words(folder() / "scene.json", output(), options);
    if (options[0] == "--model") words.erase(words.begin() + 2, words.begin() + 4);
    write_scene(folder(), named("a"));
    const Result by_other = h3render(words, 2);
    EXPECT_EQ(by_other.exit_code, 3) << by_other.err;
    EXPECT_NE(by_other.err.find(difference), std::string::npos) << by_other.err;
    EXPECT_EQ(read_file(output() / "a.manifest.json"), bytes);
  }

  expect_done(render(named("a"), {"--existing", "overwrite", "seed=1"}, 2));
  EXPECT_NE(fs::last_write_time(output() / "a.mp4"), first);
  EXPECT_EQ(manifest("a")["scene"]["seed"], 1);
  EXPECT_EQ(names_in(output()), files_of("a"));
}

// What an overwritten render had on request does not stay beside the new one.
TEST_F(Output, OverwrittenRenderLeavesNothing) {
  expect_done(render(named("a"), {"frames=22", "output.wav=true", "output.frames=true"}));
  EXPECT_EQ(names_in(output()).size(), 5u + 22u);
  write_text(output() / "a.notes.txt", "somebody else's");
  expect_done(render(named("a"), {"--existing", "overwrite", "output.frames=true"}));
  std::set<std::string> expected = files_of("a");
  expected.insert({"a.notes.txt", "a.frames"});
  for (int f = 0; f < 5; ++f) expected.insert("a.frames/00000" + std::to_string(f) + ".png");
  EXPECT_EQ(names_in(output()), expected);
  expect_done(render(named("a"), {"--existing", "overwrite"}));
  expected = files_of("a");
  expected.insert("a.notes.txt");
  EXPECT_EQ(names_in(output()), expected);
}

TEST_F(Output, MissingVideoIsRenderedAgain) {
  expect_done(render(named("a")));
  fs::remove(output() / "a.mp4");
  expect_done(render(named("a")));
  EXPECT_EQ(names_in(output()), files_of("a"));
}

TEST_F(Output, ArraysLinesAndFolders) {
  write_text(folder() / "list.json", Json::array({named("one"), tiny_scene()}).dump());
  write_text(folder() / "lines.jsonl", tiny_scene().dump() + "\n\n" + named("three").dump());
  write_scene(folder() / "many", tiny_scene(), "b.json");
  write_scene(folder() / "many", tiny_scene(), "a.json");
  Words words = render_words(folder() / "list.json", output());
  words.insert(words.end(), {folder() / "lines.jsonl", folder() / "many"});
  const Result result = h3render(words, 2);
  expect_done(result);
  std::set<std::string> expected;
  for (const std::string name : {"one", "list-2", "lines-1", "three", "a", "b"}) {
    expected.merge(files_of(name));
    EXPECT_EQ(hashes_of(manifest(name)), hashes_of(manifest("one"))) << name;
  }
  EXPECT_EQ(names_in(output()), expected);
}

TEST_F(Output, Overrides) {
  expect_done(render(named("a"), {"seed=5", "evaluations=2", "frames=22", "output.crf=30",
                                  "prompt=Red circle moves "
                                  "left, navy background, "
                                  "low tone.",
                                  "exchange_chunks=2", "row_chunk=9"}));
  const Json m = manifest("a");
  EXPECT_EQ(m["scene"]["seed"], 5);
  EXPECT_EQ(m["scene"]["evaluations"], 2);
  EXPECT_EQ(m["geometry"]["frames"], 22);
  EXPECT_EQ(m["scene"]["output"]["crf"], 30);
  EXPECT_EQ(m["scene"]["prompt"], "Red circle moves left, navy background, low tone.");
  EXPECT_EQ(m["options"]["exchange-chunks"], 2);
  EXPECT_EQ(m["options"]["row-chunk"], 9);
}

TEST_F(Output, KeepGoing) {
  Json scenes = Json::array({named("good"), named("bad"), named("fine")});
  scenes[1]["frames"] = 120;
  const Result result = render(scenes, {"--keep-going"}, 2);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  std::set<std::string> expected = files_of("good");
  expected.merge(files_of("fine"));
  expected.insert("bad.failed.json");
  EXPECT_EQ(names_in(output()), expected);
  const Json failed = read_json(output() / "bad.failed.json");
  EXPECT_EQ(failed["scene"], "bad");
  EXPECT_NE(failed["error"].get<std::string>().find("107 and 124"), std::string::npos) << failed;
  EXPECT_NE(result.err.find("1 of 3 scenes failed"), std::string::npos) << result.err;

  // The record of the failure goes when the scene is rendered at last.
  scenes[1]["frames"] = 5;
  expect_done(render(scenes));
  EXPECT_FALSE(fs::exists(output() / "bad.failed.json"));
  EXPECT_EQ(hashes_of(manifest("bad")), hashes_of(manifest("good")));
}

// A full disk fails the scene that does not fit; its latents stay, nothing that looks finished does, and the other
// scenes are rendered.
class DiskFull : public Output {
 protected:
  // Renders a small, a large and a small scene into a file system of `size`.
  Result render_into(const std::string& size, Json large) const {
    large["name"] = "large";
    const Json scenes = Json::array({named("small"), large, named("little")});
    Words words{output(), kept(), size, h3render_path()};
    for (const std::string& word : render_words(write_scene(folder(), scenes), output())) words.push_back(word);
    const Words mounted = in_mount_namespace(
        "out=$1; kept=$2; size=$3; shift 3; mkdir \"$out\" \"$kept\"; mount -t tmpfs -o size=$size tmpfs \"$out\"; "
        "code=0; \"$@\" || code=$?; cp -a \"$out\"/. \"$kept\"; exit $code",
        words);
    return mounted.empty() ? Result() : run(mounted);
  }
  fs::path kept() const { return folder() / "kept"; }

  void expect_failed(const Result& result, const std::string& file) const {
    EXPECT_EQ(result.exit_code, 3) << result.err;
    EXPECT_NE(result.err.find(file + ": "), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("No space left on device"), std::string::npos) << result.err;
    std::set<std::string> expected{"large.checkpoint.h5", "large.inputs.h5", "large.failed.json"};
    expected.merge(files_of("small"));
    expected.merge(files_of("little"));
    EXPECT_EQ(names_in(kept()), expected);
    EXPECT_NE(read_file(kept() / "large.failed.json").find(file), std::string::npos);
  }
};

TEST_F(DiskFull, WhileTheVideoIsWritten) {
  Json large = nano_scene(1);
  large["width"] = large["height"] = 320;
  large["output"]["crf"] = 0;
  const Result result = render_into("1m", large);
  if (result.exit_code == -1) GTEST_SKIP() << "this machine does not allow a mount namespace";
  expect_failed(result, "large.mp4");
}

TEST_F(DiskFull, WhileOtherFilesAreWritten) {
  Json large = nano_scene(1);
  const Result result = render_into("768k", large);
  if (result.exit_code == -1) GTEST_SKIP() << "this machine does not allow a mount namespace";
  expect_failed(result, "large.sheet.png");
}

TEST_F(DiskFull, WhileFramesAreWritten) {
  Json large = nano_scene(1);
  large["output"]["frames"] = true;
  const Result result = render_into("900k", large);
  if (result.exit_code == -1) GTEST_SKIP() << "this machine does not allow a mount namespace";
  expect_failed(result, ".png");
}

// What is certain not to fit is refused before anything is rendered.
TEST_F(DiskFull, SoundsThatCannotFit) {
  Json large = nano_scene(1);
  large["frames"] = 124;
  large["output"]["wav"] = true;
  const Result result = render_into("900k", large);
  if (result.exit_code == -1) GTEST_SKIP() << "this machine does not allow a mount namespace";
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_NE(result.err.find("largest scene = large: the WAV files need 1.3 MiB"), std::string::npos) << result.err;
  EXPECT_EQ(names_in(kept()), std::set<std::string>{});
}

TEST_F(Output, ContactSheet) {
  expect_done(render(named("a")));
  const Image sheet = read_png(output() / "a.sheet.png");
  EXPECT_GT(sheet.width, 64);
  EXPECT_GT(sheet.height, 64);
}

// Plain lines where standard error is no terminal.
TEST_F(Output, LogOnStandardError) {
  Json scene = named("a");
  scene["evaluations"] = 4;
  const fs::path log = folder() / "log.jsonl";
  const Result result = render(scene, {"--json-log", log}, 3);
  expect_done(result);
  for (int step = 1; step <= 4; ++step)
    EXPECT_EQ(count_of(result.err, "step " + std::to_string(step) + "/4: "), 1u) << result.err;
  EXPECT_EQ(count_of(result.err, "info: plan: "), 1u) << result.err;
  EXPECT_EQ(count_of(result.err, "\r"), 0u);
  EXPECT_EQ(result.out, "");
  std::size_t lines = 0;
  std::string text = read_file(log);
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != text.npos; at = end + 1, ++lines)
    EXPECT_TRUE(Json::accept(text.substr(at, end - at))) << text.substr(at, end - at);
  EXPECT_GT(lines, 8u);

  const Result quiet = render(named("b"), {"--quiet"});
  expect_done(quiet);
  EXPECT_EQ(count_of(quiet.err, "info"), 0u) << quiet.err;
}

}  // namespace h3::test
