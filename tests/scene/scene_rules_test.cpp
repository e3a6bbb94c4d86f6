#include "scene/scene_rules.h"

#include "scene/helpers.h"
#include "scene/prompt_rules.h"

namespace h3::test {

TEST(SceneRules, ThePromptMustBeThere) {
  expect_has(refusal_of("{}"), "a.json: prompt: is empty or missing");
  expect_has(refusal_of("{\"prompt\": \"\"}"), "a.json: prompt: is empty or missing");
  EXPECT_EQ(scene_of("{\"prompt\": \" \"}").prompt, " ");
}

TEST(SceneRules, FrameCounts) {
  for (const int frames : {5, 22, 73, 90, 124, 362, 719})
    EXPECT_EQ(*scene_of(with(fmt::format("\"frames\": {}", frames))).frames, frames);
  expect_has(refusal_of(with("\"frames\": 120")),
             "frames = 120: expected 17n + 5; the nearest are 107 and 124 (frames_policy=snap takes 124)");
  for (const int frames : {0, 1, -5})
    expect_has(refusal_of(with(fmt::format("\"frames\": {}", frames))), "the nearest are 5 and 22");
  EXPECT_EQ(*scene_of(with("\"frames\": 120, \"frames_policy\": \"snap\"")).frames, 120);
  for (const int frames : {0, -5})
    expect_has(refusal_of(with(fmt::format("\"frames_policy\": \"snap\", \"frames\": {}", frames))),
               "expected 17n + 5");
  expect_has(refusal_of(with("\"frames\": 9223372036854775807, \"frames_policy\": \"snap\"")), "expected 17n + 5");
  expect_has(refusal_of(with("\"frames\": 22, \"seconds\": 1")), "not both");
  expect_has(refusal_of(with("\"seconds\": 1e300")), "expected at most");
}

TEST(SceneRules, Sizes) {
  expect_has(refusal_of(with("\"width\": 720, \"height\": 400")), "width x height = 720x400: expected multiples of 32");
  expect_has(refusal_of(with("\"width\": 256")), "width = 256: expected a height");
  expect_has(refusal_of(with("\"height\": 256")), "height = 256: expected a width");
  expect_has(refusal_of(with("\"width\": 256, \"height\": 192, \"aspect\": \"4:3\"")), "not both");
  expect_has(refusal_of(with("\"width\": 1024, \"height\": 192")), "1024x256");
}

TEST(SceneRules, ScheduleLengths) {
  expect_has(refusal_of(with("\"sigmas\": [1, 0], \"evaluations\": 8")), "sigmas = 2 values: expected 9");
  expect_has(refusal_of(with("\"sigmas\": [1, 0.5, 0], \"audio_sigmas\": [1, 0]")),
             "audio_sigmas = 2 values: expected 3");
  EXPECT_EQ(scene_of(with("\"audio_sigmas\": [1, 0], \"evaluations\": 1")).evaluations, 1);
}

TEST(SceneRules, ReferenceCounts) {
  const auto list = [](int images, int videos, int sounds) {
    std::string text = "\"references\": [";
    for (int i = 0; i < images + videos + sounds; ++i)
      text += fmt::format("{}{{\"{}\": \"f\"}}", i ? "," : "",
                          i < images            ? "image"
                          : i < images + videos ? "video"
                                                : "audio");
    return with(text + "]");
  };
  EXPECT_EQ(scene_of(list(6, 3, 3)).references.size(), 12u);
  expect_has(refusal_of(list(10, 0, 0)), "10 images: expected at most 9");
  expect_has(refusal_of(list(0, 4, 0)), "4 videos: expected at most 3");
  expect_has(refusal_of(list(1, 0, 4)), "4 sounds: expected at most 3");
  expect_has(refusal_of(list(7, 3, 3)), "13 files: expected at most 12");
  expect_has(refusal_of(list(0, 0, 1)), "sounds alone");
  expect_has(refusal_of(with("\"first_frame\": \"a\", \"references\": [{\"image\": \"f\"}]")), "layout=comfy");
  EXPECT_NO_THROW(
      scene_of(with("\"layout\": \"comfy\", \"first_frame\": \"a\", \"references\": [{\"image\": \"f\"}]")));
}

TEST(SceneRules, LabelsOfThePrompt) {
  const auto prompt = [](const std::string& text, const std::string& more) {
    return "{\"prompt\": \"" + text + "\", " + more + "}";
  };
  const std::string two = "\"references\": [{\"image\": \"a\"}, {\"video\": \"b\"}, {\"image\": \"c\"}]";
  expect_has(refusal_of(prompt("<Picture 3> moves", two)),
             "prompt = <Picture 3>: names what is not there: the scene gives 2");
  expect_has(refusal_of(prompt("<Picture 0>", two)), "<Picture 0>");
  expect_has(refusal_of(prompt("<Video 2>", two)), "<Video 2>");
  EXPECT_NO_THROW(scene_of(prompt("<Picture 1> <Picture 2> <Video 1> <Audio 1> <picture 9> <Picture x>", two)));
  expect_has(refusal_of(prompt("<Audio 2>", two)), "<Audio 2>");
  expect_has(refusal_of(prompt("<Picture 2>", "\"last_frame\": \"a\"")), "the scene gives 1");
  EXPECT_NO_THROW(scene_of(prompt("<Picture 2>", "\"last_frame\": \"a\", \"first_frame\": \"b\"")));
  expect_has(prompt_warnings(scene_of(prompt("<Picture 1>", "\"seed\": 1")), 5).at(0), "plain text");
}

TEST(SceneRules, TimesPastTheEndWarn) {
  const auto warnings = [](const std::string& text) {
    return prompt_warnings(scene_of("{\"prompt\": \"" + text + "\"}"), 5);
  };
  expect_has(warnings("[00:00] a [00:07] b").at(0), "the time 00:07 lies past the end of the clip (5.00 s)");
  EXPECT_EQ(warnings("01:00").size(), 1u);
  for (const char* text : {"at 00:04", "16:9 and 16:99", "100:07", "12:30:45", "a:b", ":", "00:07:", "00:075"})
    EXPECT_LE(warnings(text).size(), 1u) << text;
  EXPECT_TRUE(warnings("at 00:04, 16:9, 00:99, 00:075").empty());
}

TEST(Resolve, FillsInWhatTheModelDecides) {
  Scene s = scene_of(with("\"seconds\": 5.167"));
  const Resolved r = resolve(s, {});
  EXPECT_EQ(r.geometry, clip_geometry(1344, 768, 124));
  EXPECT_EQ(*s.width, 1344);
  EXPECT_EQ(*s.shift, 12);
  EXPECT_EQ(*s.audio_shift, 3);
  EXPECT_FALSE(s.seconds);
  ASSERT_EQ(r.notes.size(), 2u);
  EXPECT_EQ(r.notes[0], "canvas 1344x768 from the default aspect 16:9");
  EXPECT_EQ(r.notes[1], "seconds = 5.167: 124 frames, the nearest legal count");
  EXPECT_TRUE(r.warnings.empty());
  const Json first = to_json(s);
  const Resolved again = resolve(s, {{192, 49152}, 6, 3});
  EXPECT_EQ(to_json(s), first);
  EXPECT_EQ(again.geometry, r.geometry);
  EXPECT_TRUE(again.notes.empty());
  EXPECT_EQ(to_json(scene_from_json(first, "a.json", "/scenes")), first);
}

TEST(Resolve, ScenesKeepWhatTheySay) {
  Scene s =
      scene_of(with("\"width\": 256, \"height\": 192, \"shift\": 5, \"frames\": 120, \"frames_policy\": \"snap\""));
  const Resolved r = resolve(s, {});
  EXPECT_EQ(*s.frames, 124);
  EXPECT_EQ(*s.shift, 5);
  EXPECT_EQ(r.notes.at(0), "frames = 120: raised to 124");
}

TEST(Resolve, TheFirstPictureDecidesTheCanvas) {
  Scene portrait = scene_of(with("\"first_frame\": \"a\""));
  resolve(portrait, {{192, 49152}, 6, 3}, CanvasSize{90, 120});
  EXPECT_EQ(*portrait.width, 192);
  EXPECT_EQ(*portrait.height, 256);
  Scene stretched = scene_of(with("\"last_frame\": \"a\", \"width\": 256, \"height\": 192"));
  expect_has(resolve(stretched, {}, CanvasSize{100, 200}).warnings.at(0),
             "last_frame is 100x200 and is stretched to 256x192");
  Scene wide = scene_of(with("\"first_frame\": \"a\""));
  expect_has(refusal([&] { resolve(wide, {}, CanvasSize{1000, 100}); }), "first_frame = 1000x100: expected an aspect");
}

TEST(Resolve, Warns) {
  Scene few = scene_of(with("\"evaluations\": 3, \"frames\": 124"));
  expect_has(resolve(few, {}).warnings.at(0), "evaluations = 3: fewer than 4");
  for (const int frames : {22, 107, 379, 719}) {
    Scene s = scene_of(with(fmt::format("\"frames\": {}", frames)));
    expect_has(resolve(s, {}).warnings.at(0), "outside the trained range of 124 to 362");
  }
  Scene longest = scene_of(with("\"seconds\": 15"));
  EXPECT_TRUE(resolve(longest, {}).warnings.empty());
}

TEST(SceneRules, FilesMustBeThere) {
  const TemporaryFolder folder;
  write_into(folder, "good.png", "x");
  write_into(folder, "empty.png", "");
  std::filesystem::create_directory(folder.path() / "sub");
  const auto refused = [&](const std::string& keys) {
    return refusal([&] { check_files(scene_from_json(parse_json(with(keys), "a"), "a.json", folder.path())); });
  };
  EXPECT_NO_THROW(
      check_files(scene_from_json(parse_json(with("\"first_frame\": \"good.png\""), "a"), "a.json", folder.path())));
  expect_has(refused("\"first_frame\": \"gone.png\""), "a.json: first_frame = gone.png: there is no file");
  expect_has(refused("\"first_frame\": \"empty.png\""), "is empty");
  expect_has(refused("\"last_frame\": \"sub\""), "last_frame = sub: is a folder");
  expect_has(refused("\"last_frame\": \"/dev/null\""), "is not a regular file");
  expect_has(refused("\"references\": [{\"image\": \"good.png\"}, {\"video\": \"https://x.org/a.mp4\"}]"),
             "references[1].video = https://x.org/a.mp4: is a URL");
}

}  // namespace h3::test
