// Bad scenes, options and folders: met before anything is loaded or written, with exit code 2 and one message that
// names the field, its value and what would be right.
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/program.h"
#include "support/goldens.h"

namespace h3::test {

namespace {

const std::string invalid_utf8 = "A red \xc3\x28 circle";

// A scene file and an output folder that must stay empty.
class BadInput : public testing::Test {
 protected:
  fs::path output() const { return folder_.path() / "out"; }
  const fs::path& folder() const { return folder_.path(); }

  Result render(const Json& scene, const Words& options = {}) const {
    return h3render(render_words(write_scene(folder(), scene), output(), options));
  }
  // A change of one key, in the file and as an override.
  void expect_refused_key(const std::string& key, const Json& value, std::vector<std::string> parts) const {
    SCOPED_TRACE(key + " = " + value.dump());
    Json scene = tiny_scene();
    const std::size_t dot = key.find('.');
    (dot == key.npos ? scene[key] : scene[key.substr(0, dot)][key.substr(dot + 1)]) = value;
    parts.push_back(key);
    expect_refused(render(scene), parts, output());
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    expect_refused(render(tiny_scene(), {key + "=" + text}), parts, output());
  }
  void expect_refused_text(const std::string& text, const std::vector<std::string>& parts) const {
    SCOPED_TRACE(text);
    write_text(folder() / "scene.json", text);
    expect_refused(h3render(render_words(folder() / "scene.json", output())), parts, output());
  }
  void expect_refused_options(const Words& options, const std::vector<std::string>& parts) const {
    SCOPED_TRACE(options.at(0) + " " + options.back());
    expect_refused(render(tiny_scene(), options), parts, output());
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_F(BadInput, Frames) {
  expect_refused_key("frames", 0, {"= 0", "5 and 22"});
  expect_refused_key("frames", 1, {"= 1", "5 and 22"});
  expect_refused_key("frames", 120, {"= 120", "107 and 124", "frames_policy=snap"});
  expect_refused_key("frames", -5, {"= -5", "5 and 22"});
  expect_refused_key("frames", 22.5, {"= 22.5", "whole number", "17n + 5"});
  expect_refused_key("frames", "many", {"many", "whole number"});
  expect_refused_key("seconds", -1, {"= -1", "above 0"});
  expect_refused_key("frames", 363, {"= 363", "362 and 379"});
}

// spec/dit.md 3.1: multiples of 32, aspect from 1:4 to 4:1.
TEST_F(BadInput, Sizes) {
  const auto sized = [](std::int64_t width, std::int64_t height) {
    Json scene = tiny_scene();
    scene["width"] = width;
    scene["height"] = height;
    return scene;
  };
  expect_refused(render(sized(250, 192)), {"250x192", "multiples of 32", "256x192"}, output());
  expect_refused(render(sized(256, 193)), {"256x193", "256x192"}, output());
  expect_refused(render(sized(256, 32)), {"256x32", "1:4 to 4:1", "256x64"}, output());
  expect_refused(render(sized(64, 512)), {"64x512", "1:4 to 4:1", "128x512"}, output());
  expect_refused(render(sized(0, 0)), {"0x0", "32x32"}, output());
  expect_refused(render(sized(-256, 192)), {"-256x192"}, output());
  Json narrow = tiny_scene();
  narrow.erase("height");
  expect_refused(render(narrow), {"width", "height"}, output());
  expect_refused(render(tiny_scene(), {"aspect=5:1"}), {"aspect", "5:1", "1:4 to 4:1"}, output());
}

TEST_F(BadInput, Seeds) {
  for (const char* seed : {"-1", "18446744073709551616", "1.5", "\"7\"", "true", "1e3"})
    expect_refused_text(R"({"prompt": "p", "seed": )" + std::string(seed) + "}", {"seed", "18446744073709551615"});
  expect_refused_options({"seed=-1"}, {"seed", "-1"});
  expect_refused_options({"seed=18446744073709551616"}, {"seed", "18446744073709551615"});
}

TEST_F(BadInput, Prompts) {
  expect_refused_key("prompt", "", {"empty"});
  Json scene = tiny_scene();
  scene.erase("prompt");
  expect_refused(render(scene), {"prompt", "missing"}, output());
  expect_refused_text("{\"prompt\": \"" + invalid_utf8 + "\"}", {"UTF-8", "0xc3", "offset 18"});
  expect_refused_options({"prompt=" + invalid_utf8}, {"prompt", "UTF-8"});
  expect_refused_text("\xff\xfe{\0", {"UTF-16"});
  expect_refused_text("{\"prompt\": 5}", {"prompt", "= 5", "text in quotes"});
  expect_refused_options({"max_prompt_tokens=3"}, {"prompt", "15 tokens", "3"});
}

TEST_F(BadInput, Keys) {
  expect_refused_key("evaluation", 4, {"did you mean evaluations?"});
  expect_refused_key("heigth", 64, {"did you mean height?"});
  expect_refused_key("entirely_unknown", 1, {"is no key of a scene"});
  expect_refused_key("steps", 8, {"evaluations", "49"});
  expect_refused_key("negative_prompt", "blur", {"no meaning"});
  expect_refused_key("output.waw", true, {"did you mean wav?"});
  expect_refused_text(R"({"prompt": "p", "seed": 1, "seed": 2})", {"seed", "twice"});
  expect_refused_text(R"({"prompt": "p", "output": {"crf": 1, "crf": 2}})", {"output.crf", "twice"});
}

TEST_F(BadInput, Values) {
  for (const Json& evaluations : {Json(0), Json(-3), Json(2.5), Json("few"), Json(5000)})
    expect_refused_key("evaluations", evaluations, {"1 to 4999"});
  expect_refused_key("sampler", "eulr", {"eulr", "euler or res_multistep"});
  expect_refused_key("noise", "white", {"diffusers, original or comfy"});
  expect_refused_key("shift", 0, {"above 0"});
  expect_refused_key("name", "../../etc", {"file name"});
  expect_refused_key("sigmas", Json::array({1, 0.5, 0.7, 0}), {"decreasing"});
  expect_refused_key("output.crf", 99, {"0 to 51"});
  expect_refused_key("output.preset", "hasty", {"ultrafast"});
}

TEST_F(BadInput, Files) {
  expect_refused_text("", {"scene.json", "JSON"});
  expect_refused_text("{\"prompt\": \"p\"", {"scene.json", "JSON", "line 1"});
  expect_refused_text("{\"prompt\": \"p\",}", {"scene.json", "JSON"});
  expect_refused_text("[]", {"scene.json", "empty"});
  expect_refused_text("[{\"prompt\": \"p\"}, 7]", {"scene 2", "7"});
  expect_refused(h3render(render_words("/there/is/nothing.json", output())), {"/there/is/nothing.json"}, output());
  fs::create_directories(folder() / "none");
  expect_refused(h3render(render_words(folder() / "none", output())), {"no .json files"}, output());
  Json twice = Json::array({tiny_scene(), tiny_scene()});
  twice[0]["name"] = twice[1]["name"] = "same";
  expect_refused(render(twice), {"same", "collide"}, output());
}

// All scenes are checked before the first one starts, and all faults are told.
TEST_F(BadInput, OneOfSeveralScenes) {
  Json scenes = Json::array({tiny_scene(), tiny_scene(), tiny_scene()});
  scenes[1]["frames"] = 6;
  scenes[2]["seed"] = -1;
  expect_refused(render(scenes), {"scene 2", "frames", "scene 3", "seed"}, output());
}

TEST_F(BadInput, Shares) {
  expect_refused_options({"--shares", "1,2"}, {"--shares", "1,2", "2 given, 1 ranks"});
  expect_refused_options({"--shares", "-1"}, {"--shares", "-1", "not negative"});
  expect_refused_options({"--shares", "nan"}, {"--shares", "nan", "finite"});
  expect_refused_options({"--shares", "inf"}, {"--shares", "inf", "finite"});
  expect_refused_options({"--shares", "0"}, {"--shares", "above 0"});
  expect_refused_options({"--shares", "one"}, {"--shares", "one", "numbers"});
  expect_refused_options({"--row-shares", "1,"}, {"--row-shares", "1,"});
  expect_refused_options({"--head-shares", "1;2"}, {"--head-shares", "1;2"});
  const auto on_three = [&](const std::string& shares, const std::vector<std::string>& parts) {
    SCOPED_TRACE(shares);
    expect_refused(h3render(render_words(write_scene(folder(), tiny_scene()), output(), {"--shares", shares}), 3),
                   parts, output());
  };
  on_three("1,2", {"--shares", "2 given, 3 ranks"});
  on_three("1,2,3,4", {"--shares", "4 given, 3 ranks"});
  on_three("0,0,0", {"--shares", "above 0"});
  on_three("1,-2,1", {"--shares", "1,-2,1"});
  on_three("1,nan,1", {"--shares", "1,nan,1"});
}

TEST_F(BadInput, Options) {
  expect_refused_options({"--exchnge", "auto"}, {"--exchnge", "did you mean --exchange?"});
  expect_refused_options({"--exchange", "gather"}, {"--exchange", "gather", "all-gather"});
  expect_refused_options({"--precision", "f16"}, {"--precision", "f16", "f32"});
  expect_refused_options({"--exchange-chunks", "0"}, {"--exchange-chunks", "0"});
  expect_refused_options({"--exchange-chunks", "two"}, {"--exchange-chunks", "two"});
  expect_refused_options({"--row-chunk", "-1"}, {"--row-chunk", "-1"});
  expect_refused_options({"--existing", "keep"}, {"--existing", "keep", "skip"});
  expect_refused_options({"--log-level", "loud"}, {"--log-level", "loud", "debug"});
  expect_refused_options({"--device"}, {"--device"});
  expect_refused_options({"--transport", "nccl"}, {"--transport", "nccl"});
  expect_refused(run({h3render_path(), "rendr"}), {"rendr", "did you mean render?"});
  expect_refused(run({h3render_path(), "render", "--output", output()}), {"--model", "missing"}, output());
  expect_refused(run({h3render_path(), "render", "--model", nano_path(), "--output", output()}), {"scene"}, output());
  EXPECT_EQ(run({h3render_path()}).exit_code, 2);
}

TEST_F(BadInput, OutputFolder) {
  const std::string scene = write_scene(folder(), tiny_scene());
  write_text(folder() / "file", "not a folder");
  expect_refused(h3render(render_words(scene, folder() / "file")), {"--output", "file"});
  expect_refused(h3render(render_words(scene, folder() / "file" / "below")), {"--output", "below"});
  expect_refused(h3render(render_words(scene, "/proc/h3render")), {"--output", "/proc/h3render"});
  expect_refused(h3render(render_words(scene, folder() / "file"), 3), {"--output", "file"});
}

TEST_F(BadInput, ReadOnlyOutputFolder) {
  const std::string scene = write_scene(folder(), tiny_scene());
  fs::create_directories(output());
  Words words{output(), h3render_path()};
  for (const std::string& word : render_words(scene, output())) words.push_back(word);
  const Words mounted =
      in_mount_namespace("mount --bind \"$1\" \"$1\"; mount -o remount,bind,ro \"$1\"; shift; exec \"$@\"", words);
  if (mounted.empty()) GTEST_SKIP() << "this machine does not allow a mount namespace";
  expect_refused(run(mounted), {"--output", output(), "Read-only file system"}, output());
}

TEST_F(BadInput, FolderOfAnotherUser) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write and read everywhere";
  const std::string scene = write_scene(folder(), tiny_scene());
  expect_refused(h3render(render_words(scene, "/usr/share/h3render")), {"--output", "/usr/share/h3render"});
  fs::permissions(scene, fs::perms::none);
  expect_refused(h3render(render_words(scene, output())), {scene}, output());
}

// A byte order mark and line endings are not part of a prompt.
TEST(GoodInput, ByteOrderMarkAndLineEndings) {
  const TemporaryFolder folder;
  const std::string plain = tiny_scene().dump(2);
  std::string windows = "\xef\xbb\xbf";
  for (const char c : plain) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const std::map<std::string, std::string> files{
      {"plain.json", plain}, {"windows.json", windows}, {"mark.jsonl", "\xef\xbb\xbf" + tiny_scene().dump() + "\r\n"}};
  std::map<std::string, Hashes> hashes;
  for (const auto& [name, text] : files) {
    SCOPED_TRACE(name);
    write_text(folder.path() / name, text);
    const fs::path output = folder.path() / ("out." + name);
    expect_done(h3render(render_words(folder.path() / name, output, {"name=clip"})));
    const Json manifest = read_json(output / "clip.manifest.json");
    EXPECT_EQ(manifest["geometry"]["text_rows"], 15);
    hashes[name] = hashes_of(manifest);
  }
  EXPECT_EQ(hashes["windows.json"], hashes["plain.json"]);
  EXPECT_EQ(hashes["mark.jsonl"], hashes["plain.json"]);
}

TEST(GoodInput, LargestSeed) {
  const TemporaryFolder folder;
  const std::string scene = write_scene(folder.path(), tiny_scene());
  const Result result = h3render({"check", scene, "--model", nano_path(), "seed=18446744073709551615"});
  expect_done(result);
  EXPECT_NE(result.out.find("seed 18446744073709551615"), std::string::npos) << result.out;
}

// Legal, but worth a warning.
TEST(GoodInput, Warnings) {
  const TemporaryFolder folder;
  Json scene = tiny_scene();
  scene["evaluations"] = 3;
  const Result few = h3render({"check", write_scene(folder.path(), scene), "--model", nano_path()});
  expect_done(few);
  EXPECT_NE(few.out.find("evaluations = 3"), std::string::npos) << few.out;
  EXPECT_NE(few.out.find("frames = 5: outside the trained range of 124 to 362"), std::string::npos) << few.out;
  for (const int frames : {124, 362}) {
    scene["frames"] = frames;
    scene["evaluations"] = 4;
    const Result none = h3render({"check", write_scene(folder.path(), scene), "--model", nano_path()});
    expect_done(none);
    EXPECT_EQ(none.out.find("warning"), std::string::npos) << none.out;
  }
  scene["frames"] = 379;
  const Result longer = h3render({"check", write_scene(folder.path(), scene), "--model", nano_path()});
  EXPECT_NE(longer.out.find("frames = 379: outside"), std::string::npos) << longer.out;
}

}  // namespace h3::test
