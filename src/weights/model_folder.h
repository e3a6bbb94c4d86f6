// A model that can be loaded: a folder of either layout, or seeded synthetic weights of any configuration. Opening
// reads configuration files and the headers of all weights and checks them strictly; values are read by load_component.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weights/model_paths.h"
#include "weights/tensor_source.h"

namespace h3 {

struct OpenOptions {
  // The transformers that are needed; a missing one that is not asked for is no error.
  std::vector<Partition> partitions{Partition::fl2va};
  // Whether weights are looked at. Without, only configuration files are read.
  bool weights = true;
};

class ModelFolder {
 public:
  const std::string& name() const { return name_; }  // as given
  const ModelConfig& config() const { return config_; }
  bool synthetic() const { return synthetic_; }
  // The seed of synthetic weights.
  std::uint64_t seed() const { return seed_; }
  Layout layout() const { return paths_.layout; }
  // Folders of the parts; empty paths for synthetic weights of the released configuration.
  const ModelPaths& paths() const { return paths_; }
  // "diffusers", "original" or "synthetic", for logs and manifests.
  std::string layout_name() const;
  // Whether the model has (and OpenOptions asked for) this transformer.
  bool has(Partition partition) const;
  // True when both partitions are the same files, so that loading one serves both.
  bool one_transformer() const { return paths_.transformer[0] == paths_.transformer[1]; }

  const ComponentPlan& plan(Component component) const { return plans_.at(component); }
  const TensorSource& source(Component component, Partition partition = Partition::fl2va) const;
  // The files of a component, with stamps for caches; null for synthetic weights.
  const FileSource* files(Component component, Partition partition = Partition::fl2va) const;
  // What a user should know: dtypes that are converted, values that differ from computed ones.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  friend ModelFolder open_model(const std::string& name, const OpenOptions& options);
  using Key = std::pair<Component, Partition>;
  static Key key(Component component, Partition partition);
  void open_files(const OpenOptions& options);
  void open_synthetic(const std::string& name);

  std::string name_;
  ModelConfig config_;
  ModelPaths paths_;
  bool synthetic_ = false;
  std::uint64_t seed_ = 0;
  std::map<Component, ComponentPlan> plans_;
  std::map<Key, std::shared_ptr<const TensorSource>> sources_;
  std::vector<std::string> notes_;
};

// `name` is a model folder, or "synthetic:SEED" for the released configuration, or "synthetic:SEED:FOLDER" for that of
// FOLDER. Needs neither MPI nor a GPU and takes well under a second for the released model. UserError with everything
// that is wrong in one message.
ModelFolder open_model(const std::string& name, const OpenOptions& options = {});

}  // namespace h3
