// What the encoders made is kept between runs: a hit has the bits of a miss on any number of ranks and needs no
// encoder, anything that decides the bits makes another entry, and nothing that happens to the cache costs a render.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/file.h"
#include "cli/media_files.h"
#include "cli/nano_copy.h"
#include "media/png.h"
#include "media/wav.h"

namespace h3::test {

namespace {

class Cache : public testing::Test {
 protected:
  Cache() {
    write_png(folder() / "picture.png", smooth_picture(96, 64));
    write_png(folder() / "other.png", smooth_picture(96, 64, 90));
    write_wav(folder() / "sound.wav", {32000, 2, std::vector<float>(32000, 0.01f)});
  }
  fs::path folder() const { return folder_.path(); }
  fs::path cache() const { return folder() / "cache"; }
  Json scene() const {
    Json scene = tiny_scene();
    scene["name"] = "clip";
    scene["frames"] = 22;
    scene["references"] = {{{"image", "picture.png"}}, {{"audio", "sound.wav"}}};
    return scene;
  }
  Words words(const Json& scenes, const Words& options = {}, const std::string& model = "") {
    Words all = render_words(write_scene(folder(), scenes), folder() / "out",
                             {"--existing", "overwrite", "--cache-folder", cache()}, model);
    all.insert(all.end(), options.begin(), options.end());
    return all;
  }
  // Renders and returns the manifest.
  Json render(const Json& scene, const Words& options = {}, int ranks = 1, const std::string& model = "") {
    last_ = h3render(words(scene, options, model), ranks);
    expect_done(last_);
    return read_json(folder() / "out" / "clip.manifest.json");
  }
  // "text:hit references[0].image:miss ..."
  static std::string outcomes(const Json& manifest) {
    std::string text;
    if (!manifest.contains("cache")) return text;
    for (const Json& one : manifest["cache"])
      text += fmt::format("{}{}:{}", text.empty() ? "" : " ", one["what"].get<std::string>(),
                          one["outcome"].get<std::string>());
    return text;
  }
  static std::string all(const std::string& outcome) {
    return fmt::format("text:{0} references[0].image:{0} references[1].audio:{0}", outcome);
  }
  void expect_says(const std::string& part) const {
    EXPECT_NE(last_.err.find(part), std::string::npos) << "\"" << part << "\" is not in:\n" << last_.err;
  }

  TemporaryFolder folder_;
  Result last_;
};

}  // namespace

TEST_F(Cache, AHitHasTheBitsOfAMissOnAnyRanks) {
  const Json plain = render(scene(), {"cache=off"});
  EXPECT_EQ(outcomes(plain), "");
  EXPECT_FALSE(fs::exists(cache())) << "cache=off writes nothing";
  const Json miss = render(scene(), {}, 2);
  EXPECT_EQ(outcomes(miss), all("miss"));
  EXPECT_EQ(names_in(cache()).size(), 3u);
  for (const int ranks : {1, 3}) {
    const Json hit = render(scene(), {}, ranks);
    EXPECT_EQ(outcomes(hit), all("hit"));
    EXPECT_EQ(hashes_of(hit), hashes_of(plain));
    EXPECT_EQ(hit["stages"]["text"]["scheme"], "from the cache");
    for (const char* stage : {"text", "vision", "media", "encode"}) EXPECT_FALSE(hit["seconds"].contains(stage));
    EXPECT_LT(hit["seconds"]["cache"], 1.0);
    EXPECT_GT(hit["cache"][0]["rows"], 0);
    EXPECT_GT(hit["cache"][0]["seconds_saved"], 0.0);
    EXPECT_EQ(last_.err.find("text encoder:"), std::string::npos) << "its weights are not loaded:\n" << last_.err;
    expect_says("s of encoding saved");
  }
  EXPECT_EQ(hashes_of(miss), hashes_of(plain));
}

TEST_F(Cache, WhateverDecidesTheBitsMakesAnotherEntry) {
  render(scene());
  const auto after = [&](const std::function<void(Json&)>& change, const Words& options = {}) {
    Json changed = scene();
    change(changed);
    return outcomes(render(changed, options));
  };
  const auto nothing = [](Json&) {};
  EXPECT_EQ(after([](Json& s) { s["seed"] = 5; }), all("hit"));
  EXPECT_EQ(after([](Json& s) { s["prompt"] = "A blue square moves left on a black background."; }),
            "text:miss references[0].image:hit references[1].audio:hit");
  EXPECT_EQ(after([](Json& s) { s["references"][0]["image"] = "other.png"; }),
            "text:miss references[0].image:miss references[1].audio:hit");
  EXPECT_EQ(after([](Json& s) { s["posterior"] = "mean"; }),
            "text:hit references[0].image:miss references[1].audio:hit");
  EXPECT_EQ(after(nothing, {"--precision", "bf16"}), all("miss"));
  EXPECT_EQ(after(nothing, {"--vae-profile", "R"}), all("miss"));
  // Another picture under the same name, and the same one under another.
  fs::copy_file(folder() / "picture.png", folder() / "same.png");
  EXPECT_EQ(after([](Json& s) { s["references"][0]["image"] = "same.png"; }), all("hit"));
  write_png(folder() / "picture.png", smooth_picture(96, 64, 7));
  EXPECT_EQ(after(nothing), "text:miss references[0].image:miss references[1].audio:hit");
}

TEST_F(Cache, AnotherEncoderMakesAnotherEntry) {
  render(scene());
  NanoCopy model;
  EXPECT_EQ(outcomes(render(scene(), {}, 1, model.path())), all("hit")) << "a copy is the same model";
  model.edit_tensor("text_encoder/model.safetensors", "model.language_model.layers.0.self_attn.q_proj.weight",
                    [](HeldTensor& t) { t.bytes[1] ^= std::byte{1}; });
  EXPECT_EQ(outcomes(render(scene(), {}, 1, model.path())),
            "text:miss references[0].image:hit references[1].audio:hit");
}

TEST_F(Cache, DamagedEntriesAreMadeAgain) {
  const Json miss = render(scene());
  for (const std::string& name : names_in(cache())) fs::resize_file(cache() / name, fs::file_size(cache() / name) / 2);
  const Json again = render(scene(), {}, 2);
  EXPECT_EQ(outcomes(again), all("miss"));
  EXPECT_EQ(count_of(last_.err, "is damaged"), 3u) << last_.err;
  EXPECT_EQ(hashes_of(again), hashes_of(miss));
  EXPECT_EQ(outcomes(render(scene())), all("hit"));
}

TEST_F(Cache, AFolderThatCannotBeWrittenIsAWarning) {
  write_text(cache(), "no folder");
  const Json manifest = render(scene(), {}, 2);
  EXPECT_EQ(outcomes(manifest), all("miss"));
  EXPECT_EQ(count_of(last_.err, "the run goes on without"), 1u) << last_.err;
}

// Mounts a file system of its own over the cache ($1), with the options $OPTIONS.
TEST_F(Cache, AReadOnlyAndAFullFolderAreWarnings) {
  fs::create_directories(cache());
  for (const char* options : {"ro", "size=8k"}) {
    SCOPED_TRACE(options);
    Words arguments{cache()};
    for (const std::string& word : words(scene())) arguments.push_back(word);
    arguments.insert(arguments.begin() + 1, h3render_path());
    const Words all = in_mount_namespace(
        std::string("mount -t tmpfs -o ") + options + " tmpfs \"$1\"\nshift\nexec \"$@\"", arguments);
    if (all.empty()) GTEST_SKIP() << "this machine does not allow a mount namespace";
    last_ = run(all);
    expect_done(last_);
    expect_says(options == std::string("ro") ? "Read-only file system" : "No space left on device");
  }
}

TEST_F(Cache, APromptUsedTwiceInABatchIsEncodedOnce) {
  Json first = scene(), second = scene();
  second["name"] = "second";
  second["seed"] = 7;
  for (const char* mode : {"on", "memory"}) {
    SCOPED_TRACE(mode);
    last_ = h3render(words(Json::array({first, second}), {"--cache", mode}), 2);
    expect_done(last_);
    EXPECT_EQ(count_of(last_.err, "rows encoded by"), 1u) << last_.err;
    EXPECT_EQ(count_of(last_.err, "references encoded"), 1u) << last_.err;
    EXPECT_EQ(count_of(last_.err, "from this run"), 3u) << last_.err;
    fs::remove_all(cache());
  }
}

TEST_F(Cache, GroupsOfRanksLoadNoEncoderWhereAllPromptsAreKnown) {
  Json first = scene(), second = scene();
  second["name"] = "second";
  second["prompt"] = "A blue square moves left on a black background.";
  const Words words_of_groups = words(Json::array({first, second}), {"--ranks-per-scene", "1"});
  last_ = h3render(words_of_groups, 2);
  expect_done(last_);
  EXPECT_EQ(count_of(last_.err, "text encoder: "), 1u) << last_.err;
  const Json before = read_json(folder() / "out" / "second.manifest.json");
  last_ = h3render(words_of_groups, 2);
  expect_done(last_);
  EXPECT_EQ(count_of(last_.err, "text encoder: "), 0u) << last_.err;
  const Json after = read_json(folder() / "out" / "second.manifest.json");
  EXPECT_EQ(outcomes(after), all("hit"));
  EXPECT_EQ(hashes_of(after), hashes_of(before));
}

TEST_F(Cache, APictureUsedTwiceInASceneIsEncodedOnce) {
  Json twice = scene();
  twice["references"].push_back({{"image", "picture.png"}});
  const Json plain = render(twice, {"--cache", "off"}), manifest = render(twice, {}, 2);
  EXPECT_EQ(outcomes(manifest), "text:miss references[0].image:miss references[1].audio:miss references[2].image:hit");
  EXPECT_EQ(names_in(cache()).size(), 3u);
  EXPECT_EQ(hashes_of(manifest), hashes_of(plain));
}

TEST_F(Cache, IsBoundedInSize) {
  render(scene());
  std::uintmax_t bytes = 0;
  for (const std::string& name : names_in(cache())) bytes += fs::file_size(cache() / name);
  const std::string size = std::to_string(static_cast<double>(bytes) * 1.5 / (1 << 30));
  Json other = scene();
  other["prompt"] = "A blue square moves left on a black background.";
  other["references"][0]["image"] = "other.png";
  EXPECT_EQ(outcomes(render(other, {"--cache-size", size})),
            "text:miss references[0].image:miss references[1].audio:hit");
  std::uintmax_t after = 0;
  for (const std::string& name : names_in(cache())) after += fs::file_size(cache() / name);
  EXPECT_LE(static_cast<double>(after), static_cast<double>(bytes) * 1.5);
  EXPECT_EQ(outcomes(render(other)), all("hit"));
  EXPECT_EQ(outcomes(render(scene())), "text:miss references[0].image:hit references[1].audio:hit");
}

TEST_F(Cache, SeveralJobsShareAFolder) {
  const std::string file = write_scene(folder(), scene());
  const auto start = [&](const char* out) {
    Words all{h3render_path()};
    for (const std::string& word : render_words(file, folder() / out, {"--cache-folder", cache()})) all.push_back(word);
    return all;
  };
  Process a(start("a")), b(start("b"));
  expect_done(a.wait());
  expect_done(b.wait());
  EXPECT_EQ(hashes_of(read_json(folder() / "a" / "clip.manifest.json")),
            hashes_of(read_json(folder() / "b" / "clip.manifest.json")));
  EXPECT_EQ(outcomes(render(scene())), all("hit"));
}

TEST_F(Cache, IsListedAndCleared) {
  const auto command = [&](const char* what) {
    const Result result = h3render({"cache", what, "--folder", cache(), "--json"});
    expect_done(result);
    return Json::parse(result.out);
  };
  EXPECT_TRUE(command("list")["entries"].empty()) << "no folder, no entries";
  render(scene());
  const Json list = command("list");
  ASSERT_EQ(list["entries"].size(), 3u);
  std::set<std::string> kinds;
  for (const Json& entry : list["entries"]) {
    kinds.insert(entry["kind"].get<std::string>());
    EXPECT_GT(entry["rows"], 0);
    EXPECT_FALSE(entry["in_use"]);
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"text", "pictures", "sound"}));
  const Result text = h3render({"cache", "list", "--folder", cache()});
  EXPECT_NE(text.out.find("3 entries"), std::string::npos) << text.out;
  write_text(cache() / "notes.txt", "not an entry");
  EXPECT_EQ(command("clear")["removed"], 3);
  EXPECT_EQ(names_in(cache()), (std::set<std::string>{"notes.txt"}));
}

TEST_F(Cache, ClearingLeavesWhatARunningJobUses) {
  render(scene());
  Json other = scene();
  other["prompt"] = "A blue square moves left on a black background.";
  render(other);
  Words all{h3render_path()};
  for (const std::string& word : words(scene(), {"--fail", "0:step:60"})) all.push_back(word);
  Process process(all);
  ASSERT_TRUE(process.wait_for_err("plan: ")) << process.err();
  const Result result = h3render({"cache", "clear", "--folder", cache(), "--json"});
  expect_done(result);
  EXPECT_EQ(Json::parse(result.out)["removed"], 1) << "the text of the other scene";
  EXPECT_EQ(Json::parse(result.out)["kept"], 3);
  EXPECT_EQ(names_in(cache()).size(), 3u);
}

TEST_F(Cache, RefusesBadValues) {
  const std::string file = write_scene(folder(), scene());
  const auto refused = [&](const Words& options, const std::vector<std::string>& parts) {
    expect_refused(h3render(render_words(file, folder() / "out", options)), parts, folder() / "out");
  };
  refused({"cache=of"}, {"--cache", "of", "on|memory|off"});
  for (const char* size : {"0", "-1", "20GB", "", "nan", "inf"})
    refused({std::string("cache_size=") + size}, {"--cache-size", size, "GiB above 0"});
  expect_refused(h3render({"cache"}), {"h3render cache", "list or clear"});
  expect_refused(h3render({"cache", "lisst"}), {"lisst", "list or clear", "did you mean list"});
  write_text(cache(), "no folder");
  expect_refused(h3render({"cache", "list", "--folder", cache()}), {cache().string(), "cannot be read"});
}

}  // namespace h3::test
