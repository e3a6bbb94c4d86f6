// Fills memory with the weights of a component: canonical row orders, the dtypes that the precision asks for, weight
// norm folded. The ranks of a node share the work; the bytes do not depend on how many there are.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weights/load_stopped.h"
#include "weights/model_folder.h"
#include "weights/node_window.h"
#include "weights/weight_set.h"

namespace h3 {

struct LoadOptions {
  Precision precision = Precision::f32;    // transformer and text encoder
  VaeProfile vae_profile = VaeProfile::F;  // video VAE
  Partition partition = Partition::fl2va;  // transformer
  // The tensors to load, by name in the WeightSet ("blocks.3.adaln_proj.linear.weight"); empty: all.
  std::function<bool(std::string_view)> wanted;
  int threads = 0;  // of this rank; 0: the node's cores over its ranks
  // Asked between reads, by several threads: true gives up. Optional.
  std::function<bool()> stopped{};
  // Called with the memory once it is filled, on every rank; what it returns goes before the memory does. Optional.
  std::function<std::shared_ptr<void>(const WeightBlock&)> filled{};
};

// A tensor as it will lie in memory.
struct LoadedTensor {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
  std::size_t offset = 0;  // from the start of the block, a multiple of 256
  std::size_t bytes() const { return static_cast<std::size_t>(shape.elements()) * size_of(dtype); }
};

struct MemoryPlan {
  std::vector<LoadedTensor> tensors;
  std::size_t bytes = 0;  // of the block
};

// What load_component will need and make, from the configuration alone.
// Dtypes: transformer f32 (Precision::f32) or as stored (bf16 with float32 patch projections, time embedder and heads);
// text encoder f32 or bf16; video VAE f32, with profile R the linears of the decoder blocks and their biases f16; audio
// VAE f32, `NAME.weight` for each pair of weight_g and weight_v (spec/dit.md 4.1, text.md 5.5, vae.md 8.2 and 15).
MemoryPlan plan_memory(const ComponentPlan& plan, const LoadOptions& options);

// Loads a component into `memory`; all ranks of the node call it. The set keeps its memory alive. UserError on every
// rank of the node, naming all tensors, for values that no model can have; RunError when reading fails; LoadStopped on
// every rank of the node when one of them was stopped.
WeightSet load_component(const ModelFolder& model, Component component, const LoadOptions& options,
                         WeightMemory& memory);
// The same for one rank, in memory of its own.
WeightSet load_component(const ModelFolder& model, Component component, const LoadOptions& options = {});

}  // namespace h3
