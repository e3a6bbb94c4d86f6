// A checkpoint that a run must not touch is found before anything is loaded: exit code 2, and every file stays as it
// was. With --keep-going the scene counts as failed and the others are rendered.
#include <gtest/gtest.h>
#include <hdf5.h>

#include "base/file.h"
#include "checkpoint/resume.h"
#include "cli/nano_copy.h"
#include "cli/program.h"

namespace h3::test {
namespace {

class BadCheckpoint : public ::testing::Test {
 protected:
  // A scene "clip" stopped before its decode, and one called "other".
  static void SetUpTestSuite() {
    stopped_ = new TemporaryFolder;
    Json clip = tiny_scene();
    clip["name"] = "clip";
    clip["evaluations"] = 3;
    write_scene(stopped_->path(), clip, "clip.json");
    EXPECT_NE(h3render(render_words(stopped_->path() / "clip.json", stopped_->path() / "out", {"--fail", "0:decode"}))
                  .exit_code,
              0);
  }
  static void TearDownTestSuite() { delete stopped_; }

  void SetUp() override {
    fs::copy(stopped_->path(), folder_.path(), fs::copy_options::recursive);
    Json other = tiny_scene();
    other["name"] = "other";
    write_scene(folder_.path(), other, "other.json");
  }
  fs::path out() const { return folder_.path() / "out"; }
  fs::path newest() const { return out() / "clip.checkpoint.h5"; }
  Result render(const Words& options = {}, const std::string& model = "", int ranks = 1) const {
    Words words = render_words(folder_.path() / "clip.json", out(), options, model);
    words.insert(words.begin() + 2, folder_.path() / "other.json");
    return h3render(words, ranks);
  }
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(out()))
      all[entry.path().filename().string()] = read_file(entry.path());
    return all;
  }
  void expect_refused_untouched(const std::vector<std::string>& parts, const Words& options = {},
                                const std::string& model = "", int ranks = 1) const {
    const auto before = contents();
    expect_refused(render(options, model, ranks), parts);
    EXPECT_EQ(contents(), before);
    Words going_on = options;
    going_on.push_back("--keep-going");
    const Result result = render(going_on, model, ranks);
    EXPECT_EQ(result.exit_code, 3) << result.err;
    EXPECT_TRUE(fs::exists(out() / "other.mp4"));
    EXPECT_TRUE(fs::exists(out() / "clip.failed.json"));
    for (const auto& [name, content] : before) EXPECT_EQ(read_file(out() / name), content) << name;
  }
  // Sets a number attribute of the newest checkpoint, as another program might.
  void set_attribute(const char* name, std::int64_t value) const {
    const hid_t file = H5Fopen(newest().c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    const hid_t attribute = H5Aopen(file, name, H5P_DEFAULT);
    EXPECT_GE(H5Awrite(attribute, H5T_NATIVE_INT64, &value), 0);
    H5Aclose(attribute);
    H5Fclose(file);
  }

  TemporaryFolder folder_;
  static TemporaryFolder* stopped_;
};
TemporaryFolder* BadCheckpoint::stopped_ = nullptr;

TEST_F(BadCheckpoint, ASoundOneGoesOn) {
  const Result result = render();
  expect_done(result);
  EXPECT_NE(result.err.find("goes on after step 3 of 3"), std::string::npos) << result.err;
}

TEST_F(BadCheckpoint, OfAnotherModel) {
  NanoCopy model;
  model.edit_tensor("vae/diffusion_pytorch_model.safetensors", "encoder.conv_in.bias",
                    [](HeldTensor& t) { t.bytes[3] ^= std::byte{1}; });
  expect_refused_untouched({"clip.inputs.h5", "model"}, {}, model.path(), 2);
}

TEST_F(BadCheckpoint, OfAnotherScene) {
  expect_refused_untouched({"clip.inputs.h5", "scene.seed"}, {"seed=7"});
}

TEST_F(BadCheckpoint, NotWantedAtAll) {
  expect_refused_untouched({"clip.checkpoint.h5", "--resume refuse"}, {"--resume", "refuse"});
}

TEST_F(BadCheckpoint, OfOtherNumerics) {
  expect_refused_untouched({"clip.inputs.h5", "numerics.precision", "bf16"}, {"--precision", "bf16"});
}

TEST_F(BadCheckpoint, OfANewerSchema) {
  set_attribute("schema", 99);
  expect_refused_untouched({"clip.checkpoint.h5", "schema", "99"});
}

TEST_F(BadCheckpoint, NotHdf5) {
  write_text(newest(), "notes about this clip\n");
  expect_refused_untouched({"clip.checkpoint.h5", "is not an HDF5 file"});
}

TEST_F(BadCheckpoint, OfAnotherKind) {
  fs::copy_file(out() / "clip.inputs.h5", newest(), fs::copy_options::overwrite_existing);
  expect_refused_untouched({"clip.checkpoint.h5", "format"});
}

TEST_F(BadCheckpoint, WithAbsurdSizes) {
  set_attribute("steps", std::int64_t{1} << 40);
  expect_refused_untouched({"clip.checkpoint.h5", "steps"});
}

TEST_F(BadCheckpoint, WithAbsurdDatasets) {
  const hid_t file = H5Fopen(newest().c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  EXPECT_GE(H5Ldelete(file, "video_latents", H5P_DEFAULT), 0);
  const hsize_t dims[2] = {hsize_t{1} << 40, 1 << 20};
  const hid_t space = H5Screate_simple(2, dims, nullptr);
  const hid_t data = H5Dcreate2(file, "video_latents", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t text = H5Tcopy(H5T_C_S1), scalar = H5Screate(H5S_SCALAR);
  H5Tset_size(text, 3);
  const hid_t dtype = H5Acreate2(data, "dtype", text, scalar, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(dtype, text, "f32");
  H5Aclose(dtype), H5Tclose(text), H5Sclose(scalar), H5Dclose(data), H5Sclose(space), H5Fclose(file);
  expect_refused_untouched({"clip.checkpoint.h5", "video_latents"});
}

// Storage damaged both: whether the steps are given up is for a person to decide, so nothing is done unasked.
TEST_F(BadCheckpoint, BothDamaged) {
  for (const char* name : {"clip.checkpoint.h5", "clip.checkpoint.prev.h5"})
    fs::resize_file(out() / name, fs::file_size(out() / name) / 2);
  expect_refused_untouched({"clip.checkpoint.h5 is damaged", "clip.checkpoint.prev.h5 is damaged",
                            "no sound checkpoint is left", "--resume restart"},
                           {}, "", 2);
  expect_done(render({"--resume", "restart"}));
}

// What a killed run may leave beside a scene that is done is no reason to refuse anything.
TEST_F(BadCheckpoint, OfADoneSceneIsNotLookedAt) {
  for (const char* name : {"clip.checkpoint.h5", "clip.checkpoint.prev.h5"})
    fs::copy_file(out() / name, folder_.path() / name);
  expect_done(render());
  for (const char* name : {"clip.checkpoint.h5", "clip.checkpoint.prev.h5"}) {
    fs::copy_file(folder_.path() / name, out() / name);
    fs::resize_file(out() / name, 100);
  }
  expect_done(render());
}

TEST_F(BadCheckpoint, ANewestThatIsDamagedFallsBackAndSaysSo) {
  fs::resize_file(newest(), fs::file_size(newest()) - 100);
  const Result result = render({}, "", 2);
  expect_done(result);
  EXPECT_NE(result.err.find("is damaged and was passed over"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("clip.checkpoint.prev.h5\n"), std::string::npos) << result.err;
}

// The checkpoints of two scenes under each other's name.
TEST_F(BadCheckpoint, Swapped) {
  Json other = tiny_scene();
  other["name"] = "other";
  other["evaluations"] = 3;
  other["seed"] = 7;
  write_scene(folder_.path(), other, "other.json");
  EXPECT_NE(h3render(render_words(folder_.path() / "other.json", out(), {"--fail", "0:decode"})).exit_code, 0);
  for (const char* ending : {".checkpoint.h5", ".checkpoint.prev.h5"}) {
    fs::rename(out() / (std::string("clip") + ending), out() / "aside");
    fs::rename(out() / (std::string("other") + ending), out() / (std::string("clip") + ending));
    fs::rename(out() / "aside", out() / (std::string("other") + ending));
  }
  const auto before = contents();
  expect_refused(render(), {"inputs_hash", "clip.inputs.h5", "other.inputs.h5"});
  EXPECT_EQ(contents(), before);
}

TEST_F(BadCheckpoint, ScenesThatShareAnOutputName) {
  Json twin = tiny_scene();
  twin["name"] = "other";
  twin["seed"] = 7;
  write_scene(folder_.path(), twin, "twin.json");
  Words words = render_words(folder_.path() / "other.json", folder_.path() / "new");
  words.insert(words.begin() + 2, folder_.path() / "twin.json");
  expect_refused(h3render(words), {"other", "other.json", "twin.json"}, folder_.path() / "new");
}

}  // namespace
}  // namespace h3::test
