#include "scene/scene_keys.h"

#include <limits>
#include <map>

#include "scene/choices.h"
#include "scene/helpers.h"

namespace h3::test {

static const std::string everything = R"({
  "name": "dawn", "prompt": "A red circle.\n\"$HOME\" -x 你好 שלום \ud83d\ude00 \u0000", "width": 256, "height": 192, "frames": 22,
  "frames_policy": "snap", "seed": 18446744073709551615, "evaluations": 3, "sampler": "res_multistep",
  "audio_correction": "own", "shift": 6.5, "audio_shift": 3, "noise": "comfy", "sigmas": [1, 0.75, 0.5, 0],
  "audio_sigmas": [1.0, 0.5, 0.25, 0.0], "layout": "comfy", "first_frame": "a.png", "last_frame": "/b/c.png",
  "references": [{"image": "i.png"}, {"video": "../v.mp4"}, {"audio": "s.wav"}, {"image": "i.png"},
                 {"video": "w.mp4", "soundtrack": false}],
  "guides": [{"image": "g.png", "audio": "g.wav", "frame": -3}, {"video": "h.mp4", "frame": 2}],
  "reference_size": "match", "posterior": "mean",
  "alpha": "white", "downmix": true, "quantize": "trunc", "audio_trim": "none", "max_prompt_tokens": 10, "max_rows": 1000,
  "output": {"mp4": false, "wav": true, "frames": true, "sheet": false, "crf": 0, "preset": "slow", "audio_bitrate": 128000}})";

TEST(SceneKeys, ReadsEveryKey) {
  const Scene s = scene_of(everything);
  EXPECT_EQ(s.name, "dawn");
  EXPECT_EQ(s.prompt, std::string("A red circle.\n\"$HOME\" -x 你好 שלום 😀 ") + '\0');
  EXPECT_EQ(s.seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(s.evaluations, 3);
  EXPECT_EQ(s.sampler, SamplerKind::res_multistep);
  EXPECT_EQ(s.audio_correction, AudioCorrection::own);
  EXPECT_EQ(s.noise, NoiseRecipe::comfy);
  EXPECT_EQ(s.sigmas, (std::vector<double>{1, 0.75, 0.5, 0}));
  EXPECT_EQ(s.first_frame->path, "/scenes/a.png");
  EXPECT_EQ(s.last_frame->path, "/b/c.png");
  ASSERT_EQ(s.references.size(), 5u);
  EXPECT_TRUE(s.references[1].soundtrack);
  EXPECT_FALSE(s.references[4].soundtrack);
  ASSERT_EQ(s.guides.size(), 2u);
  EXPECT_EQ(s.guides[0].image->path, "/scenes/g.png");
  EXPECT_EQ(s.guides[0].audio->given, "g.wav");
  EXPECT_EQ(s.guides[0].frame, -3);
  EXPECT_EQ(s.guides[1].video->given, "h.mp4");
  EXPECT_EQ(s.reference_size, ReferenceSize::match);
  EXPECT_EQ(s.posterior, Posterior::mean);
  EXPECT_EQ(s.references[1].kind, ReferenceKind::video);
  EXPECT_EQ(s.references[1].file.path, "/v.mp4");
  EXPECT_EQ(s.references[1].file.given, "../v.mp4");
  EXPECT_EQ(s.alpha, AlphaRule::white);
  EXPECT_TRUE(s.downmix);
  EXPECT_EQ(s.output, (OutputOptions{.mp4 = false,
                                     .wav = true,
                                     .frames = true,
                                     .sheet = false,
                                     .crf = 0,
                                     .preset = "slow",
                                     .audio_bitrate = 128000}));
  EXPECT_EQ(s.where, "a.json");
}

TEST(SceneKeys, WrittenScenesReadBackEqual) {
  for (const std::string& text : {everything, with("\"aspect\": 1.5, \"seconds\": 5.167"), with("\"seed\": 0")}) {
    const Scene s = scene_of(text);
    const Json written = to_json(s);
    const Scene again = scene_from_json(parse_json(written.dump(), "b.json"), "b.json", "/elsewhere");
    EXPECT_EQ(to_json(again), written);
    EXPECT_EQ(again.prompt, s.prompt);
    EXPECT_EQ(again.seed, s.seed);
    for (std::size_t i = 0; i < s.references.size(); ++i)
      EXPECT_EQ(again.references[i].file.path, s.references[i].file.path);
  }
}

TEST(SceneKeys, TheRecipeShowsFilesAsWritten) {
  const Json r = parse_json(recipe(scene_of(everything), "h3render 0.1.0"), "r");
  EXPECT_EQ(r["program"], "h3render 0.1.0");
  EXPECT_EQ(r["scene"]["seed"], std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(r["scene"]["first_frame"], "a.png");
  EXPECT_EQ(r["scene"]["references"][1]["video"], "../v.mp4");
}

TEST(SceneKeys, DefaultsAreThoseOfTheGuide) {
  const Scene s = scene_of("{\"prompt\": \"p\"}");
  EXPECT_EQ(s.evaluations, 49);
  EXPECT_EQ(s.seed, 0u);
  EXPECT_FALSE(s.shift || s.frames || s.width);
  std::map<std::string, std::string> values;
  for (const SceneKeyHelp& row : scene_key_help()) {
    EXPECT_EQ(values.count(row.name), 0u) << row.name;
    EXPECT_FALSE(row.type.empty() || row.help.empty()) << row.name;
    values[row.name] = row.default_value + " of " + row.type;
  }
  EXPECT_EQ(values["evaluations"], "49 of 1 to 4999");
  EXPECT_EQ(values["output.crf"], "18 of 0 to 51");
  EXPECT_EQ(values["noise"], "\"diffusers\" of diffusers, original or comfy");
  EXPECT_EQ(values["frames"], "124 of 17n + 5");
  const Json all = parse_json(everything, "e");
  for (const auto& [key, value] : all.items()) EXPECT_TRUE(values.count(key)) << key;
}

TEST(SceneKeys, UnknownKeysNameTheNearest) {
  EXPECT_EQ(refusal_of(with("\"widht\": 1")), "a.json: widht: is no key of a scene (did you mean width?)");
  expect_has(refusal_of(with("\"output\": {\"crv\": 1}")), "output.crv: is no key of a scene (did you mean crf?)");
  expect_has(refusal_of(with("\"xyzzyxyzzy\": 1")), "xyzzyxyzzy: is no key");
  expect_has(refusal_of(with("\"Seed\": 1")), "did you mean seed?");
}

TEST(SceneKeys, KeysOfOtherProgramsAreExplained) {
  const std::string steps = refusal_of(with("\"steps\": 8"));
  expect_has(steps, "8 steps elsewhere are 8");
  expect_has(steps, "diffusers' 50 are 49");
  expect_has(refusal_of(with("\"num_inference_steps\": 50")), "evaluations");
  expect_has(refusal_of(with("\"fps\": 30")), "24 frames a second");
  expect_has(refusal_of(with("\"negative_prompt\": \"x\"")), "guidance");
}

TEST(SceneKeys, WrongValuesNameFieldAndValue) {
  const struct {
    const char* keys;
    const char* message;
  } rows[] = {
      {"\"seed\": -1", "a.json: seed = -1: expected a whole number from 0 to 18446744073709551615"},
      {"\"seed\": 18446744073709551616", "seed = 1.844"},
      {"\"seed\": 1.0", "seed = 1.0: expected a whole number"},
      {"\"seed\": \"7\"", "seed = \"7\": expected a whole number"},
      {"\"frames\": 22.5", "frames = 22.5: expected a whole number, 17n + 5"},
      {"\"frames\": \"22\"", "frames = \"22\""},
      {"\"frames\": true", "frames = true"},
      {"\"width\": null, \"height\": 32", "width = null: expected a whole number, multiple of 32"},
      {"\"width\": 18446744073709551615, \"height\": 32", "width = 18446744073709551615: expected a whole number"},
      {"\"evaluations\": 0", "evaluations = 0: expected a whole number from 1 to 4999"},
      {"\"evaluations\": 5000", "evaluations = 5000"},
      {"\"shift\": 0", "shift = 0: expected a number above 0"},
      {"\"shift\": -1.5", "shift = -1.5"},
      {"\"shift\": [1]", "shift = [1]"},
      {"\"seconds\": 0", "seconds = 0: expected a number above 0"},
      {"\"sampler\": \"dpm\"", "sampler = \"dpm\": expected euler or res_multistep"},
      {"\"noise\": 1", "noise = 1: expected diffusers, original or comfy"},
      {"\"sigmas\": [1]", "sigmas = [1]: expected at least two numbers"},
      {"\"sigmas\": [1, 0.5]", "the last exactly 0"},
      {"\"sigmas\": [1, 1, 0]", "strictly decreasing"},
      {"\"sigmas\": [1, 0.99999999, 0]", "strictly decreasing"},
      {"\"sigmas\": [2, 1, 0]", "at most 1"},
      {"\"sigmas\": [1, \"x\", 0]", "sigmas"},
      {"\"aspect\": \"16/9\"", "aspect = \"16/9\": expected width:height from 1:4 to 4:1"},
      {"\"aspect\": \"5:1\"", "aspect = \"5:1\""},
      {"\"aspect\": -1", "aspect = -1"},
      {"\"first_frame\": \"\"", "first_frame = \"\": expected a file name"},
      {"\"first_frame\": \"a\\u0000b\"", "without zero bytes"},
      {"\"references\": {}", "references = {}: expected a list"},
      {"\"references\": [\"a.png\"]", "references[0] = \"a.png\": expected {\"image\": FILE}"},
      {"\"references\": [{\"image\": \"a\"}, {\"text\": \"b\"}]", "references[1]"},
      {"\"references\": [{\"image\": \"a\", \"video\": \"b\"}]", "references[0]"},
      {"\"references\": [{\"image\": 3}]", "references[0].image = 3"},
      {"\"name\": \"a/b\"", "name = \"a/b\": expected a file name without"},
      {"\"name\": \"\"", "name = \"\": expected a file name"},
      {"\"name\": \"-rf\"", "name = \"-rf\""},
      {"\"name\": \"..\"", "name = \"..\""},
      {"\"name\": 7", "name = 7: expected text in quotes"},
      {"\"output\": true", "output = true: expected an object"},
      {"\"output\": {\"wav\": 1}", "output.wav = 1: expected true or false"},
      {"\"output\": {\"crf\": 52}", "output.crf = 52"},
      {"\"output\": {\"preset\": \"warp\"}", "output.preset = \"warp\": expected one of ultrafast"},
  };
  for (const auto& row : rows) expect_has(refusal_of(with(row.keys)), row.message);
  EXPECT_THROW(scene_of(with("\"name\": \"" + std::string(201, 'n') + "\"")), UserError);
  expect_has(refusal_of("{\"prompt\": 5}"), "prompt = 5: expected text");
  expect_has(refusal_of("{\"prompt\": [\"a\"]}"), "expected text");
  expect_has(refusal_of("7"), "expected a scene");
}

static Scene overridden(const std::string& json, const std::vector<std::string>& arguments) {
  std::vector<Override> overrides;
  for (const std::string& a : arguments) overrides.push_back(parse_override(a));
  Json parsed = parse_json(json, "a.json");
  apply_overrides(parsed, overrides);
  return scene_from_json(parsed, "a.json", "/scenes");
}

TEST(Overrides, ValuesAreJsonOrText) {
  const Scene s = overridden(with("\"seed\": 1"),
                             {"seed=18446744073709551615", "prompt=a = \"b\"", "name=007", "sigmas=[1, 0.5, 0]",
                              "output.wav=true", "output.crf=20", "aspect=4:3", "noise=\"comfy\""});
  EXPECT_EQ(s.seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(s.prompt, "a = \"b\"");
  EXPECT_EQ(s.name, "007");
  EXPECT_EQ(s.evaluations, 2);
  EXPECT_TRUE(s.output.wav);
  EXPECT_EQ(s.output.crf, 20);
  EXPECT_EQ(s.aspect->text, "4:3");
  EXPECT_EQ(s.noise, NoiseRecipe::comfy);
  EXPECT_EQ(overridden("{}", {"prompt=true"}).prompt, "true");
  EXPECT_EQ(overridden("{}", {"prompt=\"quoted\""}).prompt, "quoted");
  EXPECT_EQ(overridden(with("\"output\": {\"crf\": 1, \"wav\": true}"), {"output.crf=2"}).output,
            (OutputOptions{.wav = true, .crf = 2}));
}

TEST(Overrides, ReplaceWhatTheyExclude) {
  const Scene sized = overridden(with("\"aspect\": \"1:1\""), {"width=256", "height=192"});
  EXPECT_FALSE(sized.aspect);
  EXPECT_EQ(*sized.width, 256);
  EXPECT_FALSE(overridden(with("\"width\": 256, \"height\": 192"), {"aspect=1:1"}).width);
  EXPECT_EQ(*overridden(with("\"seconds\": 5"), {"frames=22"}).frames, 22);
  EXPECT_TRUE(overridden(with("\"sigmas\": [1, 0]"), {"evaluations=8"}).sigmas.empty());
  EXPECT_EQ(overridden(with("\"evaluations\": 8"), {"sigmas=[1,0]"}).evaluations, 1);
  expect_has(refusal([] { overridden(with("\"seed\": 1"), {"frames=22", "seconds=5"}); }), "not both");
}

TEST(Overrides, FilesAreRelativeToTheCurrentFolder) {
  const Scene s = overridden(with("\"seed\": 1"), {"first_frame=x.png"});
  EXPECT_EQ(s.first_frame->path, std::filesystem::current_path() / "x.png");
  const Scene r = overridden(with("\"seed\": 1"), {"references=[{\"image\": \"/y.png\"}, {\"video\": \"z.mp4\"}]"});
  EXPECT_EQ(r.references[0].file.path, "/y.png");
  EXPECT_EQ(r.references[1].file.path, std::filesystem::current_path() / "z.mp4");
}

TEST(Overrides, BadOnesAreRefused) {
  expect_has(refusal([] { parse_override("seed"); }), "command line: seed: expected KEY=VALUE");
  expect_has(refusal([] { parse_override("=1"); }), "expected KEY=VALUE");
  expect_has(refusal([] { parse_override("sede=1"); }), "did you mean seed?");
  expect_has(refusal([] { parse_override("output.wave=1"); }), "did you mean wav?");
  expect_has(refusal([] { parse_override("steps=8"); }), "evaluations");
  expect_has(refusal([] { parse_override("prompt=\xff"); }), "command line, prompt: is not valid UTF-8");
  expect_has(refusal([] { overridden(with("\"seed\": 1"), {"seed=nan"}); }), "seed = \"nan\"");
  expect_has(refusal([] { overridden(with("\"seed\": 1"), {"output={\"wav\":true,\"wav\":true}"}); }), "twice");
}

}  // namespace h3::test
