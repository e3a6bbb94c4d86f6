// Whole renders of the nano model against the reference pipeline, step by step from text states to frames and samples,
// read from --dump, on one rank and on two.
#include <gtest/gtest.h>

#include <cstring>

#include "cli/media_files.h"
#include "media/png.h"
#include "support/goldens.h"
#include "weights/safetensors.h"

namespace h3::test {

namespace {

struct Case {
  std::string name;
  int ranks;
};

class GoldenRender : public testing::TestWithParam<Case> {};

// A tensor of a dump, whole or every 16th row of it.
class DumpedTensor {
 public:
  DumpedTensor(const SafetensorsFile& file, const std::string& name, std::int64_t row_step = 1) {
    const auto entry = file.tensors().find(name);
    if (entry == file.tensors().end()) throw std::runtime_error("the dump has no " + name);
    const TensorEntry& e = entry->second;
    bytes_ = file.read(e);
    tensor_ = Tensor(bytes_.data(), e.shape, e.dtype);
    if (row_step == 1) return;
    const std::size_t row = tensor_.bytes() / static_cast<std::size_t>(e.shape[0]);
    Shape shape = e.shape;
    shape[0] = (e.shape[0] + row_step - 1) / row_step;
    for (std::int64_t r = 0; r < shape[0]; ++r)
      std::memmove(bytes_.data() + static_cast<std::size_t>(r) * row,
                   bytes_.data() + static_cast<std::size_t>(r * row_step) * row, row);
    tensor_ = Tensor(bytes_.data(), shape, e.dtype);
  }
  const Tensor& tensor() const { return tensor_; }

 private:
  std::vector<std::byte> bytes_;
  Tensor tensor_;
};

const Goldens& goldens() {
  static const Goldens all("renders");
  return all;
}

// Every stored tensor of the render that a dump has: text, rows, pcm.
void compare_tensors(const std::string& render, const SafetensorsFile& dump) {
  int compared = 0;
  for (const auto& [name, facts] : goldens().json().at("tensors").items()) {
    if (!name.starts_with(render + ".")) continue;
    std::string own = name.substr(render.size() + 1);
    if (own == "text_tags" || own == "latents" || own == "audio_latents") continue;  // the last step's rows, unpacked
    const bool sub = own.ends_with("_sub");
    if (sub) own.resize(own.size() - std::string("_sub").size());
    const DumpedTensor dumped(dump, own, sub ? 16 : 1);
    ASSERT_EQ(dumped.tensor().shape.text(), goldens().at(name).shape.text()) << name;
    goldens().expect_close(name, dumped.tensor());
    ++compared;
  }
  EXPECT_GE(compared, 5);
}

// The target's rows, which follow those of the conditions, have equal bits.
void compare_noise(const std::string& render, const SafetensorsFile& dump) {
  for (const std::string stream : {"video", "audio"}) {
    const DumpedTensor dumped(dump, "rows.initial." + stream);
    const Tensor stored = goldens().at(render + ".rows.initial." + stream);
    ASSERT_EQ(dumped.tensor().bytes(), stored.bytes());
    const auto& results = goldens().json().at("meta").at("results").at(render);
    const auto conditions = results.at("condition_" + stream + "_rows").get<std::int64_t>();
    const Tensor ours = dumped.tensor().rows(conditions, stored.size(0)),
                 theirs = stored.rows(conditions, stored.size(0));
    EXPECT_EQ(std::memcmp(ours.data, theirs.data, theirs.bytes()), 0) << stream;
  }
}

// One level on at most 0.05 % of the values.
void compare_frames(const std::string& render, const SafetensorsFile& dump, std::int64_t frames) {
  const auto& stored = goldens().json().at("frames").at("png:" + render);
  std::vector<std::int64_t> shown;
  const auto& lists = goldens().json().at("meta").at("shown_frames");
  if (lists.contains(render)) shown = lists.at(render).get<std::vector<std::int64_t>>();
  for (std::int64_t f = 0; !lists.contains(render) && f < frames; ++f) shown.push_back(f);
  ASSERT_EQ(static_cast<std::int64_t>(shown.size()), stored.at("shape")[0].get<std::int64_t>());

  const Image image = read_png(source_path("tests/goldens/" + stored.at("file").get<std::string>()));
  const DumpedTensor dumped(dump, "frames");
  ASSERT_EQ(dumped.tensor().shape.text(), Shape({frames, 192, 256, 3}).text());
  const std::size_t frame_bytes = 192 * 256 * 3;
  ASSERT_EQ(image.rgb.size(), shown.size() * frame_bytes);
  std::size_t off_by_one = 0, worse = 0;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const auto* ours = dumped.tensor().as<std::uint8_t>() + static_cast<std::size_t>(shown[i]) * frame_bytes;
    for (std::size_t b = 0; b < frame_bytes; ++b) {
      const int difference = std::abs(int(ours[b]) - int(image.rgb[i * frame_bytes + b]));
      off_by_one += difference == 1;
      worse += difference > 1;
    }
  }
  EXPECT_EQ(worse, 0u);
  EXPECT_LE(static_cast<double>(off_by_one), 0.0005 * static_cast<double>(image.rgb.size()));
}

// The media of a request, as scene keys.
void add_media(Json& scene, const nlohmann::json& request, const fs::path& folder) {
  if (request.at("task") == "t2va") return;
  write_golden_media(folder);
  const auto file = [&](const std::string& name) { return (folder / name).string(); };
  if (request.contains("first")) scene["first_frame"] = file("first.png");
  if (request.contains("last")) scene["last_frame"] = file("last.png");
  const std::map<std::string, Json> references{{"image", {{"image", file("image.png")}}},
                                               {"shape", {{"image", file("shape.png")}}},
                                               {"clip", {{"video", file("clip.mkv")}}},
                                               {"sound", {{"audio", file("sound.wav")}}}};
  if (request.contains("refs"))
    for (const auto& name : request.at("refs")) scene["references"].push_back(references.at(name));
}

}  // namespace

TEST_P(GoldenRender, AgreesStepByStep) {
  const Case& c = GetParam();
  const auto& request = goldens().json().at("meta").at("cases").at(c.name);
  Json scene = nano_scene(request.at("evaluations").get<int>());
  scene["prompt"] = request.at("prompt").get<std::string>();
  scene["frames"] = request.at("frames").get<int>();
  scene["seed"] = request.at("seed").get<int>();
  const TemporaryFolder folder;
  add_media(scene, request, folder.path());
  const fs::path file = folder.path() / "dump.safetensors";
  const Render render(scene, {"--dump", file, "--precision", "f32", "--vae-profile", "F"}, c.ranks);
  ASSERT_TRUE(fs::exists(file));
  const SafetensorsFile dump(file);
  compare_noise(c.name, dump);
  compare_tensors(c.name, dump);
  compare_frames(c.name, dump, scene["frames"].get<std::int64_t>());
  EXPECT_EQ(render.manifest().at("ranks").size(), static_cast<std::size_t>(c.ranks));
}

INSTANTIATE_TEST_SUITE_P(Media, GoldenRender,
                         testing::Values(Case{"fl2va_22", 1}, Case{"fl2va_22", 3}, Case{"ref2va_22", 1},
                                         Case{"ref2va_22", 3}, Case{"ref2va_picture_22", 1},
                                         Case{"ref2va_picture_22", 2}),
                         [](const auto& c) { return c.param.name + "_n" + std::to_string(c.param.ranks); });

INSTANTIATE_TEST_SUITE_P(Text, GoldenRender,
                         testing::Values(Case{"t2va_22", 1}, Case{"t2va_22", 2}, Case{"t2va_39", 1},
                                         Case{"t2va_39", 2}),
                         [](const auto& c) { return c.param.name + "_n" + std::to_string(c.param.ranks); });

}  // namespace h3::test
