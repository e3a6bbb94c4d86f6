// Which of a model's two transformers renders a scene (spec/dit.md 0.3): FL2VA was trained for text and keyframes,
// Ref2VA for references. A model with one of them renders every scene with it, and scenes of the other kind with a
// warning.
#pragma once

#include <string>
#include <vector>

#include "scene/scene.h"
#include "weights/model_folder.h"

namespace h3 {

// Opens a model with the transformers that it has. `weights` false: only configuration files are read.
ModelFolder open_for_rendering(const std::string& name, bool weights = true);

// The transformer that renders a scene.
Partition partition_for(const Scene& scene, const ModelFolder& model);

// What to say where that is not the one trained for it; else empty.
std::string partition_warning(const Scene& scene, const ModelFolder& model);

// The transformers that were opened, one where both are the same files.
std::vector<Partition> opened_partitions(const ModelFolder& model);

}  // namespace h3
