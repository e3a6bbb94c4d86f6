// The texts of a batch are encoded at one visit of the text encoder, with the bits that each has alone; what goes wrong
// with one of them is its own scene's.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "cli/nano_copy.h"
#include "cli/program.h"
#include "text/tokenizer.h"

namespace h3::test {
namespace {

constexpr const char* kPrompts[] = {"A red circle moves right on a black background. A high tone plays.",
                                    "A blue square moves left on a black background.",
                                    "A green triangle moves down on a white background.", "A red circle"};

class TextAhead : public testing::Test {
 protected:
  // Scenes a, b, c and d with a prompt each.
  TextAhead() {
    for (const char* prompt : kPrompts) {
      Json scene = tiny_scene();
      scene["name"] = std::string(1, static_cast<char>('a' + scenes_.size()));
      scene["prompt"] = prompt;
      scenes_.push_back(scene);
    }
    cache_ = folder_.path() / "cache";
  }
  Words words(Words options = {}, const std::string& model = "") const {
    options.insert(options.end(), {"--existing", "overwrite", "--cache-folder", cache_});
    return render_words(write_scene(folder_.path(), scenes_), out(), options, model);
  }
  Result render(const Words& options = {}, int ranks = 2, const std::string& model = "") const {
    return h3render(words(options, model), ranks);
  }
  fs::path out() const { return folder_.path() / "out"; }
  Json manifest(const Json& scene) const {
    return read_json(out() / (scene["name"].get<std::string>() + ".manifest.json"));
  }
  // With the hashes of scenes rendered one at a time.
  void expect_bits_of_single_renders() const {
    for (const Json& scene : scenes_)
      EXPECT_EQ(hashes_of(manifest(scene)), hashes_of(Render(scene, {"--cache", "off"}).manifest())) << scene["name"];
  }
  // Starts the batch on two ranks, stops it with a signal once it says `text`, and expects that it obeys.
  void stop_at(const std::string& text, const Words& options) {
    Words all{h3render_path()};
    const Words rest = words(options);
    all.insert(all.end(), rest.begin(), rest.end());
    Process process(on_ranks(2, all));
    ASSERT_TRUE(process.wait_for_err(text)) << process.err();
    ASSERT_EQ(::kill(process.rank(1), SIGUSR1), 0);
    const Result stopped = process.wait();
    EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  }

  TemporaryFolder folder_;
  fs::path cache_;
  Json scenes_ = Json::array();
};

std::size_t visits(const Result& result) {
  return count_of(result.err, "rows encoded by");
}

TEST_F(TextAhead, ABatchTakesOneVisit) {
  for (const char* mode : {"memory", "on"}) {
    SCOPED_TRACE(mode);
    const Result result = render({"--cache", mode});
    expect_done(result);
    EXPECT_EQ(visits(result), 1u) << result.err;
    EXPECT_EQ(count_of(result.err, "text of 3 coming scenes encoded in the same visit: b, c, d"), 1u) << result.err;
    const Json first = manifest(scenes_[0]);
    EXPECT_EQ(first["stages"]["text"]["coming_scenes"], 3);
    EXPECT_GT(first["seconds"]["text_ahead"], 0.0);
    double sum = 0;
    for (const auto& [stage, seconds] : first["seconds"].items())
      if (stage != "total") sum += seconds.get<double>();
    EXPECT_NEAR(sum, first["seconds"]["total"].get<double>(), 1e-3);
    for (std::size_t i = 1; i < scenes_.size(); ++i) {
      const Json later = manifest(scenes_[i]);
      EXPECT_EQ(later["stages"]["text"]["scheme"], "from the cache");
      EXPECT_EQ(later["cache"][0]["from"], "this run");
      EXPECT_FALSE(later["stages"]["text"].contains("coming_scenes") || later["seconds"].contains("text_ahead"));
    }
    expect_bits_of_single_renders();
  }
}

TEST_F(TextAhead, WeightsThatLeaveHostMemoryAreReadOnce) {
  const Result result = render({"--host-reserve", "100000"});
  expect_done(result);
  EXPECT_NE(result.err.find("dropped text encoder"), std::string::npos) << result.err;
  EXPECT_EQ(count_of(result.err, "info: text encoder: "), 1u) << result.err;
}

TEST_F(TextAhead, WithoutACacheOrInGroupsEachSceneEncodesItsOwn) {
  for (const Words& options : {Words{"--cache", "off"}, Words{"--cache", "memory", "--ranks-per-scene", "1"}}) {
    const Result result = render(options);
    expect_done(result);
    EXPECT_EQ(visits(result), scenes_.size()) << result.err;
    EXPECT_EQ(count_of(result.err, "in the same visit"), 0u) << result.err;
    expect_bits_of_single_renders();
  }
}

TEST_F(TextAhead, ATextIsEncodedOnce) {
  scenes_[2]["prompt"] = scenes_[3]["prompt"] = scenes_[1]["prompt"];
  const Result result = render();
  expect_done(result);
  EXPECT_EQ(visits(result), 1u) << result.err;
  EXPECT_EQ(count_of(result.err, "text of 1 coming scene encoded in the same visit: b"), 1u) << result.err;
  // Of those that are there, nothing is encoded again.
  scenes_[2]["prompt"] = kPrompts[2];
  scenes_[0]["prompt"] = kPrompts[3];
  const Result more = render();
  expect_done(more);
  EXPECT_EQ(count_of(more.err, "text of 1 coming scene encoded in the same visit: c"), 1u) << more.err;
}

// The embedding of a word that only one of them has is not a number.
TEST_F(TextAhead, ATextThatCannotBeEncodedFailsItsOwnScene) {
  NanoCopy model;
  const Tokenizer tokenizer = Tokenizer::load(model.file("tokenizer"));
  std::vector<std::int32_t> ids = tokenizer.encode(kPrompts[2]);
  for (const std::size_t other : {0, 1, 3})
    for (const std::int32_t id : tokenizer.encode(kPrompts[other])) std::erase(ids, id);
  ASSERT_FALSE(ids.empty());
  model.edit_tensor("text_encoder/model.safetensors", "model.language_model.embed_tokens.weight", [&](HeldTensor& t) {
    const std::size_t row = t.bytes.size() / static_cast<std::size_t>(t.shape[0]);
    std::fill_n(t.bytes.begin() + static_cast<std::ptrdiff_t>(row * static_cast<std::size_t>(ids[0])), row,
                std::byte{0xff});
  });
  const Result result = render({}, 2, model.path());
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_EQ(count_of(result.err, "c: its text is left to its turn"), 1u) << result.err;
  EXPECT_EQ(visits(result), 1u) << result.err;
  EXPECT_TRUE(fs::exists(out() / "c.failed.json"));
  for (const char* name : {"a", "b", "d"}) EXPECT_TRUE(fs::exists(out() / (std::string(name) + ".manifest.json")));
}

TEST_F(TextAhead, ABadSceneIsPassedOver) {
  scenes_[1]["prompt"] = 5;
  const Result result = render({"--keep-going"});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_EQ(count_of(result.err, "text of 2 coming scenes encoded in the same visit: c, d"), 1u) << result.err;
  EXPECT_EQ(visits(result), 1u) << result.err;
}

TEST_F(TextAhead, AResumedBatchTakesTheTextsThatAreThere) {
  scenes_[0]["evaluations"] = 200;
  stop_at("plan: ", {});
  const Result resumed = render();
  expect_done(resumed);
  EXPECT_EQ(visits(resumed), 0u) << resumed.err;
  EXPECT_EQ(manifest(scenes_[1])["cache"][0]["from"], "disk");
}

TEST_F(TextAhead, AStopIsHeededAmongTexts) {
  stop_at("in stage text because", {"--fail", "0:text:2"});
  for (const Json& scene : scenes_) EXPECT_FALSE(fs::exists(out() / (scene["name"].get<std::string>() + ".mp4")));
  EXPECT_EQ(names_in(cache_), std::set<std::string>{});
}

}  // namespace
}  // namespace h3::test
