// Models with two transformers: each scene is rendered by the one trained for it, and a model that has only one of them
// renders the others with a warning.
#include <gtest/gtest.h>

#include "cli/media_files.h"
#include "cli/nano_copy.h"
#include "media/png.h"

namespace h3::test {
namespace {

constexpr char kIndex[] = "modular_model_index.json";

// The nano model with a second transformer that gives other pictures.
class TwoTransformers : public NanoCopy {
 public:
  TwoTransformers() {
    for (const auto& entry : fs::directory_iterator(file("transformer")))
      copy("transformer/" + entry.path().filename().string(), "transformer_ref/" + entry.path().filename().string());
    edit_json(kIndex, [](Json& index) { index["transformer_ref"][2]["subfolder"] = "transformer_ref"; });
    for (const auto& entry : fs::directory_iterator(file("transformer_ref")))
      if (entry.path().string().ends_with("00001-of-00002.safetensors"))
        edit_tensor("transformer_ref/" + entry.path().filename().string(), "proj_out.bias", [](HeldTensor& t) {
          for (std::size_t i = 0; i < t.bytes.size() / sizeof(float); ++i)
            reinterpret_cast<float*>(t.bytes.data())[i] += 0.5f;
        });
  }

 private:
  void copy(const std::string& from, const std::string& to) {
    fs::create_directories(file(to).parent_path());
    fs::copy_file(file(from), file(to));
  }
};

Json scene_with(const std::string& name, const std::string& picture) {
  Json scene = tiny_scene();
  scene["name"] = name;
  scene["frames"] = 22;
  if (!picture.empty()) scene["references"] = Json::array({{{"image", picture}}});
  return scene;
}

class Partitions : public ::testing::Test {
 protected:
  Partitions() { write_png(folder_.path() / "picture.png", smooth_picture(96, 64)); }
  std::string picture() const { return (folder_.path() / "picture.png").string(); }
  TemporaryFolder folder_;
};

TEST_F(Partitions, EachSceneHasTheTransformerTrainedForIt) {
  const TwoTransformers model;
  const std::string scenes = write_scene(
      folder_.path(), Json::array({scene_with("a", picture()), scene_with("b", ""), scene_with("c", picture())}));
  for (const Words& options : {Words{}, Words{"--ranks-per-scene", "1"}}) {
    const fs::path output = folder_.path() / ("out" + std::to_string(options.size()));
    expect_done(h3render(render_words(scenes, output, options, model.path()), 2));
    const auto manifest = [&](const std::string& name) { return read_json(output / (name + ".manifest.json")); };
    EXPECT_EQ(manifest("a").at("model").at("partition"), "Ref2VA");
    EXPECT_EQ(manifest("b").at("model").at("partition"), "FL2VA");
    EXPECT_EQ(hashes_of(manifest("c")), hashes_of(manifest("a")));
    EXPECT_EQ(hashes_of(manifest("b")), hashes_of(Render(scene_with("b", "")).manifest()));
    EXPECT_NE(hashes_of(manifest("a")), hashes_of(Render(scene_with("a", picture())).manifest()));
  }
}

TEST_F(Partitions, OneAloneRendersTheOthersWithAWarning) {
  TwoTransformers model;
  model.remove("transformer_ref");
  const Render reference(scene_with("a", picture()), {}, 1, model.path());
  EXPECT_NE(reference.result().err.find("the model has the FL2VA transformer alone"), std::string::npos);
  EXPECT_EQ(reference.manifest().at("model").at("partition"), "FL2VA");
  const Render text(scene_with("b", ""), {}, 1, model.path());
  EXPECT_EQ(text.result().err.find("transformer alone"), std::string::npos);

  TwoTransformers other;
  other.remove("transformer");
  const std::string scene = write_scene(folder_.path(), scene_with("b", ""));
  const Result checked = h3render({"check", scene, "--model", other.path()});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_NE(checked.out.find("the model has the Ref2VA transformer alone"), std::string::npos) << checked.out;
  const Render rendered(scene_with("b", ""), {}, 2, other.path());
  EXPECT_EQ(rendered.manifest().at("model").at("partition"), "Ref2VA");
}

}  // namespace
}  // namespace h3::test
