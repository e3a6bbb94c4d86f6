// Small inputs and checkpoints whose every value follows from a seed and a step, and help to break files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/inputs.h"
#include "checkpoint/state.h"

namespace h3::test {

inline constexpr std::int64_t kSampleSteps = 1000;

CheckpointInputs sample_inputs(int seed);
// After `step` steps of the scene with sample_inputs(seed). `rows`: of video.
Checkpoint sample_checkpoint(int seed, std::int64_t step, std::int64_t rows = 12);

std::string bytes_of(const std::filesystem::path& path);
void put_bytes(const std::filesystem::path& path, const std::string& bytes);
// Names of all entries of a folder, sorted.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace h3::test
