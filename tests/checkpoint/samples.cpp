#include "checkpoint/samples.h"

#include <algorithm>
#include <fstream>

#include "base/file.h"

// HDF5 1.10 forgets some bytes whenever a file cannot be opened; the leak sanitizer looks here.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libhdf5";
}

namespace h3::test {

namespace {

std::vector<float> values(std::int64_t count, std::int64_t start) {
  std::vector<float> v(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(start) + static_cast<float>(i) * 0.25f;
  return v;
}

HostArray floats(std::int64_t rows, std::int64_t width, int seed) {
  return HostArray::copy_of(values(rows * width, seed).data(), DType::f32, {rows, width});
}

}  // namespace

CheckpointInputs sample_inputs(int seed) {
  CheckpointInputs inputs;
  inputs.text = HostArray::copy_of(values(10, seed).data(), DType::bf16, {5, 4});
  const std::vector<std::uint8_t> tags{1, 0, 0, 1, 1};
  inputs.tags = HostArray::copy_of(tags.data(), DType::u8, {5});
  inputs.visual_rows = floats(0, 8, seed);
  inputs.audio_rows = floats(3, 2, seed);
  inputs.layout = {{"audio_latents", {3}}};
  inputs.scene = {{"name", "sample"}, {"prompt", "a red circle, größer"}, {"seed", seed}, {"shift", 6.5}};
  inputs.model_identity = "0123456789abcdef0123456789abcdef";
  inputs.numerics = {{"precision", "bf16"}, {"stages", {{"text", 1}}}};
  return inputs;
}

Checkpoint sample_checkpoint(int seed, std::int64_t step, std::int64_t rows) {
  Checkpoint c;
  c.step = step;
  c.steps = kSampleSteps;
  c.video_width = 8;
  c.audio_width = 2;
  c.video = values(rows * 8, step);
  c.audio = values(6, step + 1);
  c.video_sigmas = values(kSampleSteps + 1, 0);
  c.audio_sigmas = values(kSampleSteps + 1, 1);
  c.previous_video = values(rows * 8, step + 2);
  c.previous_audio = values(6, step + 3);
  c.generator = "mt19937 1 2 3";
  c.inputs_hash = sample_inputs(seed).content_hash();
  return c;
}

std::string bytes_of(const std::filesystem::path& path) {
  return read_file(path);
}

void put_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::remove(path);  // a new file: some file systems sync one that is cut and written again
  std::ofstream(path, std::ios::binary) << bytes;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace h3::test
