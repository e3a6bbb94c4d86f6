// Renders judged by what they show: captions drawn at random from the nano model's vocabulary, and every fact of them
// looked for in the decoded MP4. H3RENDER_SEED repeats a draw.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

#include "cli/program.h"
#include "media/clip_reader.h"
#include "media/png.h"
#include "media/wav.h"
#include "support/drawing.h"
#include "support/goldens.h"

namespace h3::test {

static unsigned drawn_seed() {
  const char* given = std::getenv("H3RENDER_SEED");
  return given ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : std::random_device{}() % 1000000;
}

namespace {

// What a scene is given beside its prompt.
enum class Given { nothing, first, last, both, picture, picture_and_sound };

// One request: its caption, its scene, and what the first and last frame are to be.
struct Request {
  Caption caption;
  Json scene;
  Image first, last;
};

std::string reference_prompt(const Caption& c, bool sound, int form) {
  const std::string tone = sound ? "the tone of <Audio 1>" : "a " + c.tone + " tone";
  if (form % 2 == 1) return "<Picture 1> " + c.motion + " over a " + c.ground + " background with " + tone;
  return "The shape of <Picture 1> " + c.motion + " on a " + c.ground + " background. " +
         (sound ? "The tone of <Audio 1>" : "A " + c.tone + " tone") + " plays.";
}

Request draw_request(Given given, int number, std::mt19937& random, const fs::path& folder) {
  Request r{random_caption(random), nano_scene(24), {}, {}};
  Caption& c = r.caption;
  const bool keyframes = given == Given::first || given == Given::last || given == Given::both;
  while (keyframes && c.motion == "bounces") c = random_caption(random);  // its places are anybody's guess
  r.scene["name"] = "request" + std::to_string(number);
  r.scene["seed"] = random();
  r.scene["prompt"] = text_of(c, number % 4);
  r.scene["output"]["frames"] = keyframes;
  const auto file = [&](const std::string& ending) {
    return (folder / (std::to_string(number) + "." + ending)).string();
  };
  const auto keyframe = [&](const char* key, Image& picture, const Place& place) {
    picture = drawn(c, place);
    write_png(file(std::string(key) + ".png"), picture);
    r.scene[key] = file(std::string(key) + ".png");
  };
  if (given == Given::first || given == Given::both) keyframe("first_frame", r.first, first_place(c));
  if (given == Given::last || given == Given::both) keyframe("last_frame", r.last, last_place(c));
  if (given != Given::picture && given != Given::picture_and_sound) return r;
  Caption picture = c;  // colour and shape count, the ground does not
  picture.ground = random_caption(random).ground;
  write_png(file("png"), drawn(picture, middle_place(picture)));
  r.scene["references"].push_back({{"image", file("png")}});
  r.scene["prompt"] = reference_prompt(c, given == Given::picture_and_sound, number);
  if (given == Given::picture_and_sound) {
    write_wav(file("wav"), tone_of(c, 0.925));
    r.scene["references"].push_back({{"audio", file("wav")}});
  }
  return r;
}

// Renders `count` random requests of a kind and judges each by what it shows; at most four ranks.
void expect_obeyed(Given given, int count, int ranks) {
  const unsigned seed = drawn_seed();
  std::printf("requests of H3RENDER_SEED=%u\n", seed);
  std::mt19937 random(seed);
  const TemporaryFolder folder;
  std::vector<Request> requests;
  Json scenes = Json::array();
  for (int i = 0; i < count; ++i) {
    requests.push_back(draw_request(given, i, random, folder.path()));
    scenes.push_back(requests.back().scene);
  }
  const fs::path output = folder.path() / "out";
  expect_done(h3render(render_words(write_scene(folder.path(), scenes), output), ranks,
                       {.environment = {}, .folder = ".", .limit = 900}));
  std::vector<double> all;  // PSNR of keyframes
  for (const Request& r : requests) {
    const std::string text = "H3RENDER_SEED=" + std::to_string(seed) + ": " + r.scene.dump();
    const VideoFile clip = read_clip(output / (r.scene["name"].get<std::string>() + ".mp4"));
    ASSERT_EQ(clip.frames.size(), 22u);
    expect_shows(judge(clip.frames, clip.sound), r.caption, text);
    const auto closeness = [&](const Image& picture, const char* frame) {
      if (picture.rgb.empty()) return;
      const double db = psnr(read_png(output / (r.scene["name"].get<std::string>() + ".frames") / frame), picture);
      std::printf("%s %s: %.1f dB\n", r.scene["name"].get<std::string>().c_str(), frame, db);
      EXPECT_GE(db, 22) << text;
      all.push_back(db);
    };
    closeness(r.first, "000000.png");
    closeness(r.last, "000021.png");
  }
  if (all.empty()) return;
  // A rare request is harder for the nano model: of the second of seed 561571 the reference pipeline's last frame is
  // 23.9 dB away too.
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
  EXPECT_GE(all[all.size() / 2], 25) << "H3RENDER_SEED=" << seed;
}

int requests_of_a_kind() {
  return full_run() ? 12 : 3;
}

}  // namespace

TEST(JudgedRender, StartsWithThePictureGiven) {
  expect_obeyed(Given::first, requests_of_a_kind(), 1);
}
TEST(JudgedRender, EndsWithThePictureGiven) {
  expect_obeyed(Given::last, requests_of_a_kind(), 1);
}
TEST(JudgedRender, GoesFromOnePictureToTheOther) {
  expect_obeyed(Given::both, requests_of_a_kind(), 2);
}
TEST(JudgedRender, ShowsWhatAReferenceShows) {
  expect_obeyed(Given::picture, requests_of_a_kind(), 1);
}
TEST(JudgedRender, SoundsLikeAReference) {
  expect_obeyed(Given::picture_and_sound, requests_of_a_kind(), 2);
}

// The scenes to copy show what their prompts and pictures say.
TEST(JudgedRender, ScenesOfTheJobsFolder) {
  const std::map<std::string, Caption> jobs{{"demo", {"red", "circle", "moves right", "black", "high"}},
                                            {"first-and-last-frame", {"red", "circle", "moves right", "black", "high"}},
                                            {"picture", {"green", "ring", "moves up", "navy", "high"}},
                                            {"picture-and-sound", {"green", "ring", "moves right", "black", "low"}},
                                            {"guides", {"red", "circle", "moves right", "black", "high"}}};
  const TemporaryFolder folder;
  for (const auto& [name, caption] : jobs) {
    expect_done(h3render(render_words(source_path("jobs/" + name + ".json"), folder.path())));
    const VideoFile clip = read_clip(folder.path() / (name + ".mp4"));
    expect_shows(judge(clip.frames, clip.sound), caption, name);
  }
  // The nano model was not trained on clips; that one renders.
  expect_done(h3render(render_words(source_path("jobs/picture-and-clip.json"), folder.path(), {"evaluations=2"})));
}

TEST(JudgedRender, ObeysItsCaption) {
  const unsigned seed = drawn_seed();
  std::printf("captions of H3RENDER_SEED=%u\n", seed);
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937 random(seed);
  std::vector<Caption> captions;
  Json scenes = Json::array();
  for (int i = 0; i < (full_run() ? 24 : 6); ++i) {
    captions.push_back(random_caption(random));
    Json scene = nano_scene(24);
    scene["name"] = "caption" + std::to_string(i);
    scene["prompt"] = text_of(captions.back(), i % 4);
    scene["seed"] = random();
    scenes.push_back(scene);
  }
  const TemporaryFolder folder;
  const fs::path output = folder.path() / "out";
  expect_done(h3render(render_words(write_scene(folder.path(), scenes), output), 1,
                       {.environment = {}, .folder = ".", .limit = 900}));
  for (std::size_t i = 0; i < captions.size(); ++i) {
    const std::string text = scenes[i]["prompt"];
    const std::string where = "H3RENDER_SEED=" + std::to_string(seed) + ", seed " + scenes[i]["seed"].dump() + ": ";
    const VideoFile clip = read_clip(output / (scenes[i]["name"].get<std::string>() + ".mp4"));
    ASSERT_EQ(clip.frames.size(), 22u);
    expect_shows(judge(clip.frames, clip.sound), captions[i], where + text);
  }
}

}  // namespace h3::test
