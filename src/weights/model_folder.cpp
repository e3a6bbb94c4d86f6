#include "weights/model_folder.h"

#include <charconv>

#include "base/error.h"
#include "weights/component_files.h"
#include "weights/synthetic.h"

namespace h3 {

constexpr Component kComponents[] = {Component::transformer, Component::text_encoder, Component::video_vae,
                                     Component::audio_vae};

std::string ModelFolder::layout_name() const {
  return synthetic_ ? "synthetic" : std::string(h3::name_of(paths_.layout));
}

ModelFolder::Key ModelFolder::key(Component component, Partition partition) {
  return {component, component == Component::transformer ? partition : Partition::fl2va};
}

bool ModelFolder::has(Partition partition) const {
  return sources_.contains(key(Component::transformer, partition));
}

const TensorSource& ModelFolder::source(Component component, Partition partition) const {
  const auto it = sources_.find(key(component, partition));
  H3_CHECK(it != sources_.end(), fmt::format("the {} was not opened", h3::name_of(component)));
  return *it->second;
}

const FileSource* ModelFolder::files(Component component, Partition partition) const {
  return dynamic_cast<const FileSource*>(&source(component, partition));
}

void ModelFolder::open_files(const OpenOptions& options) {
  Problems problems;
  // Both partitions may be one folder, as in the nano model; it is opened once.
  std::map<std::filesystem::path, std::shared_ptr<const TensorSource>> opened;
  const auto open = [&](Component component, Partition partition) {
    const std::filesystem::path& folder = paths_.folder(component, partition);
    if (folder.empty()) return problems.add(paths_.root, fmt::format("has no {} transformer", h3::name_of(partition)));
    const auto [it, added] = opened.try_emplace(folder);
    if (added) it->second = open_component(config_, plans_.at(component), paths_.layout, folder, problems, notes_);
    sources_[key(component, partition)] = it->second;
  };
  for (Partition partition : options.partitions) open(Component::transformer, partition);
  for (Component component : {Component::text_encoder, Component::video_vae, Component::audio_vae})
    open(component, Partition::fl2va);
  problems.throw_if_any(name_);
}

void ModelFolder::open_synthetic(const std::string& name) {
  const std::string rest = name.substr(name.find(':') + 1);
  const std::size_t colon = rest.find(':');
  const std::string seed = rest.substr(0, colon);
  const auto [end, error] = std::from_chars(seed.data(), seed.data() + seed.size(), seed_);
  if (error != std::errc() || end != seed.data() + seed.size())
    throw UserError("model", "", name, "expected synthetic:SEED or synthetic:SEED:FOLDER with a seed from 0 to 2^64-1");
  synthetic_ = true;
  if (colon == std::string::npos) {
    config_ = released_model_config();
  } else {
    const ModelFolder configured = open_model(rest.substr(colon + 1), {.partitions = {}, .weights = false});
    config_ = configured.config();
    paths_ = configured.paths();
  }
  paths_.transformer = {};
}

ModelFolder open_model(const std::string& name, const OpenOptions& options) {
  ModelFolder model;
  model.name_ = name;
  if (name.starts_with("synthetic:")) {
    model.open_synthetic(name);
  } else {
    model.paths_ = find_model(name);
    model.config_ = model.paths_.layout == Layout::diffusers ? read_diffusers_config(model.paths_)
                                                             : read_original_config(model.paths_);
  }
  for (Component component : kComponents) model.plans_[component] = plan_component(model.config_, component);
  if (!options.weights) return model;
  if (!model.synthetic_) {
    model.open_files(options);
    return model;
  }
  for (Component component : kComponents)
    for (Partition partition : {Partition::fl2va, Partition::ref2va})
      model.sources_[ModelFolder::key(component, partition)] =
          std::make_shared<SyntheticSource>(model.seed_, component);
  return model;
}

}  // namespace h3
