// What a model is, in 32 hex digits: equal for the same weights and numbers in either layout, in any shards, on any
// machine, and different otherwise (DESIGN 7, "Model identity"). Hashing reads every byte once; the digests of files
// that have not changed since are remembered.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "weights/load_stopped.h"
#include "weights/model_folder.h"
#include "weights/node_window.h"

namespace h3 {

struct IdentityOptions {
  // Where digests are remembered; empty: $XDG_CACHE_HOME/h3render, or ~/.cache/h3render. A folder that cannot be used
  // is no error, nothing is remembered then.
  std::filesystem::path cache{};
  int threads = 0;  // of this rank; 0: the node's cores over its ranks
  // Asked between tensors, by several threads: true gives up. Optional.
  std::function<bool()> stopped{};
};

// XXH3-128 over the sorted lines "name dtype shape digest" of a component's canonical tensors, where the digest is the
// XXH3-128 of the tensor's bytes in canonical row order and stored dtype. The ranks of a node share the hashing; all
// call it and get the same. Synthetic weights: of seed, generator version and plan, without making them. LoadStopped on
// every rank of the node when one of them was stopped.
std::string component_identity(const ModelFolder& model, Component component, Partition partition, WeightMemory& memory,
                               const IdentityOptions& options = {});

// Of all components that were opened, both transformers where the model has two, and of the configuration's numbers;
// and of the other components each for itself, for what depends on no more than one.
struct ModelIdentity {
  std::string whole;
  std::map<Component, std::string> components;
};
ModelIdentity identify_model(const ModelFolder& model, WeightMemory& memory, const IdentityOptions& options = {});
// The whole alone.
std::string model_identity(const ModelFolder& model, WeightMemory& memory, const IdentityOptions& options = {});
// The same for one rank alone.
std::string model_identity(const ModelFolder& model, const IdentityOptions& options = {});

// Every number of a configuration, one a line; equal configurations give equal text whichever files they came from.
std::string config_text(const ModelConfig& config);

}  // namespace h3
