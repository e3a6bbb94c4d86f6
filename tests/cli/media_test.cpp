// Keyframes, guides and references as scenes give them: what is refused before anything is loaded and what is warned
// of, with its field; what is told of them; and that a scene is what its files hold, wherever they lie.
#include <gtest/gtest.h>

#include "base/file.h"
#include "cli/media_files.h"
#include "media/png.h"
#include "media/wav.h"
#include "support/goldens.h"

namespace h3::test {
namespace {

Sound silence(double seconds, int channels = 2) {
  const auto length = static_cast<std::size_t>(seconds * 32000);
  return {32000, channels, std::vector<float>(static_cast<std::size_t>(channels) * length, 0.01f)};
}

class Media : public ::testing::Test {
 protected:
  Media() {
    write_png(folder() / "picture.png", smooth_picture(96, 64));
    write_png(folder() / "other.png", smooth_picture(64, 64, 90));
    write_png(folder() / "wide.png", smooth_picture(410, 100));
    write_wav(folder() / "sound.wav", silence(0.5));
  }
  const fs::path& folder() const { return folder_.path(); }
  fs::path output() const { return folder_.path() / "out"; }
  std::string clip(const std::string& name, int frames, const Sound& soundtrack = silence(0)) const {
    return write_clip(folder() / name, std::vector<Image>(static_cast<std::size_t>(frames), smooth_picture(64, 48)),
                      soundtrack);
  }
  static Json scene(const Json& keys) {
    Json scene = tiny_scene();
    scene["frames"] = 22;
    scene.update(keys);
    return scene;
  }
  Result render(const Json& keys, const Words& options = {}, int ranks = 1) const {
    return h3render(render_words(write_scene(folder(), scene(keys)), output(), options), ranks);
  }
  void refused(const Json& keys, const std::vector<std::string>& parts) const {
    SCOPED_TRACE(keys.dump());
    expect_refused(render(keys), parts, output());
  }
  // The answer of `check`.
  std::string checked(const Json& keys) const {
    const Result result = h3render({"check", write_scene(folder(), scene(keys)), "--model", nano_path()});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }

  static Json list(std::size_t count, const Json& item) { return Json(std::vector<Json>(count, item)); }
  const Json picture{{"image", "picture.png"}}, sound{{"audio", "sound.wav"}};

 private:
  TemporaryFolder folder_;
};

void expect_says(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
}

TEST_F(Media, CountsAndKinds) {
  refused({{"references", list(10, picture)}}, {"references", "10 images", "at most 9"});
  refused({{"references", list(4, {{"video", "clip.mkv"}})}}, {"references", "4 videos", "at most 3"});
  Json four = list(4, sound);
  four.push_back(picture);
  refused({{"references", four}}, {"references", "4 sounds", "at most 3"});
  refused({{"references", list(2, sound)}}, {"references", "sounds alone", "image or video"});
  refused({{"references", {{{"picture", "picture.png"}}}}}, {"references[0]", "\"image\": FILE"});
  refused({{"references", {{{"image", "sound.wav"}}}}}, {"references[0].image", "is a sound", "expected a picture"});
  refused({{"references", {{{"video", "picture.png"}}}}}, {"references[0].video", "is a picture", "expected a clip"});
  refused({{"references", {picture, {{"audio", "picture.png"}}}}}, {"references[1].audio", "is a picture"});
  refused({{"first_frame", "sound.wav"}}, {"first_frame", "is a sound", "expected a picture"});
}

TEST_F(Media, Files) {
  refused({{"first_frame", "missing.png"}}, {"first_frame", "missing.png", "there is no file"});
  refused({{"last_frame", "https://example.org/a.png"}}, {"last_frame", "is a URL"});
  refused({{"references", {{{"image", folder().string()}}}}}, {"references[0].image", "folder"});
  write_text(folder() / "empty.png", "");
  refused({{"first_frame", "empty.png"}}, {"first_frame", "empty.png", "is empty"});
  write_text(folder() / "text.png", "not a picture at all");
  refused({{"first_frame", "text.png"}}, {"first_frame", "text.png"});
  write_wav(folder() / "none.wav", silence(0));
  refused({{"references", {picture, {{"audio", "none.wav"}}}}}, {"references[1].audio", "none.wav"});
}

TEST_F(Media, Lengths) {
  clip("short.mkv", 21);
  refused({{"references", {{{"video", "short.mkv"}}}}}, {"references[0].video", "21 frames", "at least 22"});
  clip("enough.mkv", 22);
  refused({{"frames", 5}, {"references", {{{"video", "enough.mkv"}}}}}, {"references[0].video", "frames = 5", "22"});
  clip("long.mkv", 372);
  refused({{"references", {{{"video", "long.mkv"}}}}}, {"references[0].video", "15.50 s", "2 to 15 s"});
  clip("half.mkv", 190);
  refused({{"references", {{{"video", "half.mkv"}}, {{"video", "half.mkv"}}}}},
          {"references", "15.83 s of clips", "15 s"});
  write_wav(folder() / "long.wav", silence(16));
  refused({{"references", {picture, {{"audio", "long.wav"}}}}}, {"references[1].audio", "16.00 s", "2 to 15 s"});
  write_wav(folder() / "half.wav", silence(8));
  refused({{"references", {picture, {{"audio", "half.wav"}}, {{"audio", "half.wav"}}}}},
          {"references", "16.00 s of sounds"});
  expect_says(checked({{"references", {{{"video", "enough.mkv"}}, {{"audio", "half.wav"}}}}}),
              {"references[0].video: lasts 0.92 s; references of 2 to 15 s were trained",
               "references[1].audio: its first 0.92 of 8.00 s are taken"});
}

TEST_F(Media, Shapes) {
  refused({{"references", {{{"image", "wide.png"}}}}}, {"references[0].image", "410x100", "1:4 to 4:1"});
  Json open = scene({{"first_frame", "wide.png"}});
  open.erase("width");
  open.erase("height");
  expect_refused(h3render(render_words(write_scene(folder(), open), output())),
                 {"first_frame", "410x100", "1:4 to 4:1"}, output());
  write_png(folder() / "portrait.png", smooth_picture(90, 160));
  open["first_frame"] = "portrait.png";
  const Result portrait = h3render({"check", write_scene(folder(), open), "--model", nano_path()});
  expect_says(portrait.out, {"160x288", "canvas 160x288 from the shape of first_frame"});
  expect_says(checked({{"first_frame", "wide.png"}}), {"warning: first_frame is 410x100 and is stretched to 64x64"});
}

TEST_F(Media, PromptsNameWhatIsThere) {
  const Json two = list(2, picture);
  refused({{"references", two}, {"prompt", "<Picture 3> moves."}}, {"prompt", "<Picture 3>", "gives 2"});
  refused({{"references", two}, {"prompt", "<Video 1> moves."}}, {"prompt", "<Video 1>", "gives 0"});
  refused({{"references", {picture, sound}}, {"prompt", "<Audio 2> plays."}}, {"prompt", "<Audio 2>", "gives 1"});
  refused({{"first_frame", "picture.png"}, {"prompt", "<Picture 2> moves."}}, {"prompt", "<Picture 2>", "gives 1"});
  // Whether a clip has a soundtrack its file tells.
  clip("silent.mkv", 22);
  clip("sounding.mkv", 22, silence(0.9));
  const std::string prompt = "<Video 1> with <Audio 1>.";
  refused({{"references", {{{"video", "silent.mkv"}}}}, {"prompt", prompt}}, {"prompt", "<Audio 1>", "gives 0"});
  refused({{"references", {{{"video", "sounding.mkv"}, {"soundtrack", false}}}}, {"prompt", prompt}},
          {"prompt", "<Audio 1>", "gives 0"});
  expect_says(checked({{"references", {{{"video", "sounding.mkv"}}}}, {"prompt", prompt}}),
              {"references[0].video: clip, 22 frames of 256x192 (336 rows) with sound, 0.90 s (72 rows)"});
  expect_says(checked({{"first_frame", "picture.png"}, {"prompt", "At 00:05 it moves."}}),
              {"warning: prompt: the time 00:05 lies past the end of the clip"});
}

TEST_F(Media, LayoutsWithoutRoom) {
  refused({{"first_frame", "picture.png"}, {"references", {picture}}}, {"references", "first_frame", "layout=comfy"});
  refused({{"guides", {{{"image", "picture.png"}, {"frame", 3}}}}}, {"guides", "layout=diffusers", "layout=comfy"});
  const auto guide = [&](const Json& g, const std::vector<std::string>& parts) {
    refused({{"layout", "comfy"}, {"guides", {g}}}, parts);
  };
  guide({{"image", "picture.png"}, {"frame", 22}}, {"guides[0].frame", "22", "within the 22 frames"});
  guide({{"image", "picture.png"}, {"frame", -23}}, {"guides[0].frame", "-23"});
  guide({{"image", "picture.png"}, {"video", "x.mkv"}}, {"guides[0]", "\"frame\": N"});
  guide({{"frame", 3}}, {"guides[0]", "\"frame\": N"});
  clip("clip.mkv", 24);
  guide({{"video", "clip.mkv"}, {"frame", 1}}, {"guides[0].frame", "22 frames", "within"});
  guide({{"image", "sound.wav"}, {"frame", 0}}, {"guides[0].image", "is a sound"});
}

TEST_F(Media, SizesOfReferencePictures) {
  const auto line = [&](const std::string& size) {
    return checked({{"references", {picture}}, {"reference_size", size}});
  };
  expect_says(line("full"), {"references[0].image: picture, 288x192 (54 rows)"});  // the nano model's short edge is 192
  expect_says(line("match"), {"references[0].image: picture, 64x64 (4 rows)"});    // 96x64 shrunk to 64x64 pixels' area
  expect_says(line("max"), {"references[0].image: picture, 96x64 (6 rows)"});
}

// Made by other programs, at rates and in formats that are not the model's.
TEST_F(Media, FilesThatPeopleHave) {
  const auto make = [&](const Words& words, const std::string& name) {
    Words all{"ffmpeg", "-v", "error", "-y"};
    all.insert(all.end(), words.begin(), words.end());
    all.push_back((folder() / name).string());
    const Result made = run(all);
    ASSERT_EQ(made.exit_code, 0) << made.err;
  };
  make({"-f", "lavfi", "-i", "testsrc=s=320x180:r=30:d=1.5", "-f", "lavfi", "-i", "sine=440:r=44100:d=1.5", "-c:v",
        "libx264", "-pix_fmt", "yuv420p", "-c:a", "aac", "-shortest"},
       "thirty.mp4");
  make({"-f", "lavfi", "-i", "testsrc2=s=150x200", "-frames:v", "1"}, "portrait.jpg");
  make({"-f", "lavfi", "-i", "sine=220:r=48000:d=0.7", "-ac", "1"}, "mono.mp3");
  const Json keys{{"references", {{{"image", "portrait.jpg"}}, {{"video", "thirty.mp4"}}, {{"audio", "mono.mp3"}}}}};
  expect_done(render(keys, {}, 2));
  const Json media = read_json(output() / "scene.manifest.json").at("media");
  EXPECT_EQ(media[0].at("width"), 192);
  EXPECT_EQ(media[0].at("height"), 256);
  EXPECT_EQ(media[1].at("frames"), 22);  // of 36 at 24 a second, cut to the scene
  EXPECT_EQ(media[1].at("audio_latents"), 37);
  EXPECT_EQ(media[2].at("audio_latents"), 28);
}

TEST_F(Media, RowsAltogether) {
  expect_says(checked({{"references", list(9, picture)}}), {"scene scene: 64x64"});
  refused({{"references", list(9, picture)}, {"max_rows", 1000}}, {"max_rows", "= 1000", "rows with all its media"});
}

TEST_F(Media, ADamagedClipFailsItsSceneAlone) {
  clip("clip.mkv", 22);
  const Json good = scene({{"name", "good"}, {"first_frame", "picture.png"}});
  Json bad = scene({{"name", "bad"}, {"references", {{{"video", "clip.mkv"}}}}});
  const std::string scenes = write_scene(folder(), Json::array({bad, good}));
  // The headers stay; the frames turn into noise.
  std::string bytes = read_file(folder() / "clip.mkv");
  for (std::size_t i = bytes.size() / 2; i < bytes.size() * 3 / 4; ++i) bytes[i] = static_cast<char>(i * 151);
  write_text(folder() / "clip.mkv", bytes);
  const Result result = h3render(render_words(scenes, output()), 2);
  EXPECT_TRUE(result.exit_code == 3 || result.exit_code == 2) << result.err;
  EXPECT_NE(result.err.find("clip.mkv"), std::string::npos) << result.err;
}

TEST_F(Media, TheManifestTellsWhatWasEncoded) {
  clip("clip.mkv", 30, silence(1));
  const Json keys = scene({{"references", {picture, {{"video", "clip.mkv"}}, sound}}});
  Json moved = keys;
  for (Json& item : moved["references"])
    for (auto& [kind, name] : item.items()) name = (folder() / name.get<std::string>()).string();
  const Render render(moved, {}, 2);
  expect_says(render.result().err, {"references encoded: 1 picture, 1 clip, 1 sound"});
  const Json& media = render.manifest().at("media");
  ASSERT_EQ(media.size(), 3u);
  EXPECT_EQ(media[0].at("field"), "references[0].image");
  EXPECT_EQ(media[1].at("frames"), 22);
  EXPECT_EQ(media[1].at("latent_frames"), 7);
  EXPECT_EQ(media[1].at("audio_latents"), 37);
  EXPECT_EQ(media[2].at("audio_latents"), 20);
  EXPECT_EQ(render.manifest().at("contents").size(), 3u);
  const Json& stages = render.manifest().at("stages");
  EXPECT_EQ(stages.at("vision").at("ranks"), 2);
  EXPECT_EQ(stages.at("encode").at("ranks"), 2);
  for (const char* stage : {"media", "vision", "encode"}) EXPECT_TRUE(render.manifest().at("seconds").contains(stage));
}

TEST_F(Media, ASceneIsWhatItsFilesHold) {
  const Json keys{{"first_frame", "picture.png"}};
  expect_done(render(keys));
  // The same picture elsewhere is the same scene; another picture under the same name is not.
  fs::copy_file(folder() / "picture.png", folder() / "copy.png");
  const Result same = render({{"first_frame", "copy.png"}});
  expect_done(same);
  expect_says(same.err, {"rendered already"});
  write_png(folder() / "picture.png", smooth_picture(96, 64, 50));
  const Result other = render(keys);
  EXPECT_EQ(other.exit_code, 3);
  expect_says(other.err, {"another render", "first_frame"});
}

TEST_F(Media, ResumesWithoutItsFiles) {
  write_golden_media(folder());
  const Json keys{{"evaluations", 3},
                  {"references", {{{"image", "image.png"}}, {{"video", "clip.mkv"}}, {{"audio", "sound.wav"}}}}};
  const Result whole = render(keys, {"name=whole"});
  expect_done(whole);
  EXPECT_NE(render(keys, {"--fail", "1:decode"}, 2).exit_code, 0);
  const Result resumed = render(keys, {}, 3);
  expect_done(resumed);
  expect_says(resumed.err, {"goes on after step 3 of 3"});
  EXPECT_EQ(resumed.err.find("references encoded"), std::string::npos);
  EXPECT_EQ(hashes_of(read_json(output() / "scene.manifest.json")),
            hashes_of(read_json(output() / "whole.manifest.json")));
  // A picture that changed since is another scene.
  fs::remove(output() / "scene.manifest.json");
  EXPECT_NE(render(keys, {"--fail", "1:decode"}, 2).exit_code, 0);
  write_png(folder() / "image.png", smooth_picture(96, 64, 10));
  const Result changed = render(keys, {});
  EXPECT_EQ(changed.exit_code, 2);
  expect_says(changed.err, {"scene.references[0].image"});
}

}  // namespace
}  // namespace h3::test
