#include "render/partition_use.h"

#include "base/error.h"

namespace h3 {

static const std::filesystem::path& folder_of(const ModelPaths& paths, Partition partition) {
  return paths.transformer[static_cast<std::size_t>(partition)];
}

static Partition trained_for(const Scene& scene) {
  return scene.references.empty() ? Partition::fl2va : Partition::ref2va;
}

ModelFolder open_for_rendering(const std::string& name, bool weights) {
  OpenOptions options;
  options.weights = weights;
  if (!name.starts_with("synthetic:")) {
    const ModelPaths paths = find_model(name);
    const bool one = paths.transformer[0] == paths.transformer[1];
    const bool both = !folder_of(paths, Partition::ref2va).empty() && !folder_of(paths, Partition::fl2va).empty();
    if (both && !one) options.partitions = {Partition::fl2va, Partition::ref2va};
    if (folder_of(paths, Partition::fl2va).empty()) options.partitions = {Partition::ref2va};
  }
  return open_model(name, options);
}

Partition partition_for(const Scene& scene, const ModelFolder& model) {
  const Partition wanted = trained_for(scene);
  if (model.synthetic() || model.one_transformer()) return Partition::fl2va;
  if (!folder_of(model.paths(), wanted).empty()) return wanted;
  return wanted == Partition::fl2va ? Partition::ref2va : Partition::fl2va;
}

std::string partition_warning(const Scene& scene, const ModelFolder& model) {
  const Partition wanted = trained_for(scene), used = partition_for(scene, model);
  if (model.synthetic() || model.one_transformer() || used == wanted) return "";
  return fmt::format("the model has the {} transformer alone, which was trained for {}; {} has what this scene needs",
                     name_of(used), used == Partition::fl2va ? "text and keyframes" : "references", name_of(wanted));
}

std::vector<Partition> opened_partitions(const ModelFolder& model) {
  if (model.synthetic()) return {Partition::fl2va};
  std::vector<Partition> list;
  for (const Partition partition : {Partition::fl2va, Partition::ref2va})
    if (model.has(partition)) list.push_back(partition);
  return list;
}

}  // namespace h3
