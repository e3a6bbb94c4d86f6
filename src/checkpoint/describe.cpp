#include "checkpoint/describe.h"

#include "base/error.h"
#include "checkpoint/hdf5_reader.h"
#include "checkpoint/inputs.h"
#include "checkpoint/state.h"

namespace h3 {

static void verify(const std::filesystem::path& path, FileLocking locking, bool inputs) {
  if (inputs) {
    parse_inputs(path, locking);
  } else {
    parse_checkpoint(path, locking);
  }
}

nlohmann::ordered_json describe_checkpoint_file(const std::filesystem::path& path, FileLocking locking) {
  try {
    const Hdf5Reader file(path, locking);
    const std::string format = file.text_attribute("format");
    const bool inputs = format == "h3render inputs";
    nlohmann::ordered_json j{{"format", format},
                             {"schema", file.integer("schema")},
                             {"program_version", file.text_attribute("program_version")}};
    if (inputs) {
      j["content_hash"] = file.text_attribute("content_hash");
      j["model_identity"] = file.text_attribute("model_identity");
      j["scene"] = file.json("scene");
    } else {
      j["inputs_hash"] = file.text_attribute("inputs_hash");
      j["step"] = file.integer("step");
      j["steps"] = file.integer("steps");
    }
    j["datasets"] = file.description();
    j["damage"] = nullptr;
    try {
      verify(path, locking, inputs);
    } catch (const Hdf5Failure& e) {
      j["damage"] = e.what();
    }
    return j;
  } catch (const Hdf5Failure& e) {
    throw UserError(path.string(), "", "", fmt::format("cannot be read: {}", e.what()));
  }
}

}  // namespace h3
