// Writes a model as a folder of the diffusers layout: synthetic weights for tests and measurements, or another layout's
// weights under the names and row orders of this one.
#pragma once

#include <cstdint>
#include <filesystem>

#include "weights/model_folder.h"

namespace h3 {

struct WriteModelOptions {
  std::uint64_t shard_bytes = std::uint64_t{5} << 30;  // a component with more is cut into shards with an index
  // A model folder whose tokenizer/ and processor/ are copied; empty: those of the model that is written, if it has
  // any.
  std::filesystem::path tokenizer_from{};
  int threads = 0;  // 0: all cores
};

// Writes under a temporary name beside `folder`, which must not exist, and renames when all is written. UserError for a
// folder that exists, SceneError when the disk is full or cannot be written; nothing is left behind then.
void write_model_folder(const std::filesystem::path& folder, const ModelFolder& model,
                        const WriteModelOptions& options = {});

}  // namespace h3
