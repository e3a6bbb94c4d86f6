#include "checkpoint/inputs.h"

#include "base/error.h"
#include "base/hash.h"
#include "checkpoint/hdf5_composer.h"
#include "checkpoint/hdf5_reader.h"

namespace h3 {

namespace {

constexpr char kKind[] = "h3render inputs";

constexpr DatasetNote kText{"text", "row, feature", "1", "hidden states of the text encoder that condition the scene"};
constexpr DatasetNote kTags{"tags", "row", "1", "modality of each text row: 1 text, 0 vision"};
constexpr DatasetNote kVisual{"condition_video", "row, feature", "1",
                              "rows of given pictures and clips as the transformer takes them, in packed order"};
constexpr DatasetNote kAudio{"condition_audio", "row, channel", "1", "latents of given sounds, in packed order"};
constexpr DatasetNote kLayout{"layout", "none", "none", "JSON: what packing the sequence needs beside the rows"};
constexpr DatasetNote kScene{"scene", "none", "none", "JSON: the scene with every setting resolved"};
constexpr DatasetNote kAdapters{"adapters", "none", "none", "JSON: the adapters bound to the model"};
constexpr DatasetNote kNumerics{"numerics", "none", "none", "JSON: everything else that decides the bits"};

void put(Hdf5Composer& file, const DatasetNote& note, const HostArray& array) {
  file.dataset(note, array.dtype, array.shape, array.bytes.data());
}

void add(Hasher& hasher, std::string_view name, const HostArray& array) {
  std::string head = fmt::format("{} {}", name, name_of(array.dtype));
  for (const std::int64_t n : array.shape) head += fmt::format(" {}", n);
  hasher.add(head + "\n");
  hasher.add(array.bytes.data(), array.bytes.size());
}

void require_shapes(const std::filesystem::path& path, const CheckpointInputs& inputs) {
  const auto bad = [&](const char* field, const std::string& expected) {
    throw UserError(path.string(), field, "", expected);
  };
  const HostArray& text = inputs.text;
  if (text.dtype != DType::f32 && text.dtype != DType::bf16 && text.dtype != DType::f16)
    bad("text", "must be f32, bf16 or f16");
  if (text.count() < 1) bad("text", "is empty");
  if (inputs.tags.dtype != DType::u8 || inputs.tags.shape.at(0) != text.shape.at(0))
    bad("tags", "must be one byte a text row");
  if (inputs.visual_rows.dtype != DType::f32) bad("condition_video", "must be f32");
  if (inputs.audio_rows.dtype != DType::f32) bad("condition_audio", "must be f32");
}

}  // namespace

nlohmann::ordered_json CheckpointInputs::identity() const {
  return {{"scene", scene}, {"model", model_identity}, {"adapters", adapters}, {"numerics", numerics}};
}

std::string CheckpointInputs::content_hash() const {
  Hasher hasher;
  add(hasher, "text", text);
  add(hasher, "tags", tags);
  add(hasher, "visual_rows", visual_rows);
  add(hasher, "audio_rows", audio_rows);
  // Plain JSON sorts its keys, so that their order does not matter.
  hasher.add(nlohmann::json(layout).dump() + "\n");
  hasher.add(nlohmann::json(identity()).dump());
  return hasher.hex();
}

std::string compose_inputs(const CheckpointInputs& inputs) {
  Hdf5Composer file(kKind, kInputsSchema);
  file.attribute("content_hash", inputs.content_hash());
  file.attribute("model_identity", inputs.model_identity);
  put(file, kText, inputs.text);
  put(file, kTags, inputs.tags);
  put(file, kVisual, inputs.visual_rows);
  put(file, kAudio, inputs.audio_rows);
  file.text(kLayout, inputs.layout.dump());
  file.text(kScene, inputs.scene.dump());
  file.text(kAdapters, inputs.adapters.dump());
  file.text(kNumerics, inputs.numerics.dump());
  return file.finish();
}

CheckpointInputs parse_inputs(const std::filesystem::path& path, FileLocking locking) {
  const Hdf5Reader file(path, locking);
  file.require(kKind, kInputsSchema);
  CheckpointInputs inputs;
  inputs.model_identity = file.text_attribute("model_identity");
  inputs.text = file.array("text", 2);
  inputs.tags = file.array("tags", 1);
  inputs.visual_rows = file.array("condition_video", 2);
  inputs.audio_rows = file.array("condition_audio", 2);
  inputs.layout = file.json("layout");
  inputs.scene = file.json("scene");
  inputs.adapters = file.json("adapters");
  inputs.numerics = file.json("numerics");
  require_shapes(path, inputs);
  if (file.text_attribute("content_hash") != inputs.content_hash())
    throw Hdf5Failure("the hash of its content does not match");
  return inputs;
}

}  // namespace h3
