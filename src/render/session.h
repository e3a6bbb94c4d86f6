// A run's standing parts: ranks, machine, model and its weights (read once, kept for all scenes), and the choices that
// hold for every scene of the run. Scenes are rendered by groups of ranks (RankGroup); what concerns a scene is
// collective over its group, what concerns the machine over the world.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/run_cache.h"
#include "parallel/cluster.h"
#include "parallel/communicator.h"
#include "parallel/exchange.h"
#include "parallel/rank_group.h"
#include "render/devices.h"
#include "render/run_options.h"
#include "render/stage_times.h"
#include "render/weight_lock.h"
#include "text/tokenizer.h"
#include "transformer/transformer.h"
#include "weights/load.h"
#include "weights/model_folder.h"
#include "weights/node_window.h"

namespace h3 {

// Whether blocks of so many bytes stay on a device that has `free` beside a scene that takes `working` at once.
Residency fitting_residency(std::size_t blocks, std::size_t working, std::size_t free);

class Session {
 public:
  // Opens the model and settles the options. Every check that needs no other rank happens here; throws UserError.
  Session(Cluster& cluster, const RunOptions& options);
  // Makes the groups, connects their ranks and has all ranks choose the same library algorithms. Collective over the
  // world; call once, before anything below.
  void connect();

  const Cluster& cluster() const { return cluster_; }
  // The ranks that render a scene together with this one.
  const RankGroup& group() const { return *group_; }
  Machine& machine() const { return *device_.machine; }
  // Of the group, and of the world for decisions that concern all groups.
  Communicator& communicator() const { return *link_.communicator; }
  Communicator& world() const { return link_.world ? *link_.world : *link_.communicator; }
  const std::string& transport() const { return link_.transport; }
  Queue& queue() { return *queue_; }
  // PCI address of the GPU; "" on the CPU.
  const std::string& device_address() const { return device_.address; }
  const RunOptions& options() const { return options_; }
  // One text for all ranks of this run, and for no other run.
  const std::string& run_id() const { return run_id_; }
  const ModelFolder& model() const { return *model_; }
  const ModelConfig& config() const { return model_->config(); }
  // The model's tokenizer, read when first asked for. Throws UserError where the model has none.
  const Tokenizer& tokenizer();
  Precision precision() const { return precision_; }
  VaeProfile vae_profile() const { return profile_; }
  const std::vector<double>& row_shares() const { return row_shares_; }
  const std::vector<double>& head_shares() const { return head_shares_; }
  ExchangePattern pattern() const { return pattern_; }
  Residency residency() const { return residency_; }
  // Chooses where the transformer's blocks are while a scene that takes so many bytes of this rank's device is
  // rendered, unless --residency did.
  void make_room(std::size_t working_bytes);
  // The rank of the group that writes its files.
  bool first() const { return group_->first(); }

  // What reading weights and hashing them asks whether to go on, and where all ranks of the world meet after it (it
  // throws where the run has to stop).
  struct Interruption {
    std::function<bool()> wanted;
    std::function<void(const std::string& where)> boundary;
  };
  void set_interruption(Interruption interruption) { interruption_ = std::move(interruption); }

  // Reads everything that a scene can need, the text encoder's weights only where `texts` are to be encoded. Collective
  // over the world; with several groups the one place where weights are read, since groups go through different scenes
  // and a node's ranks fill its memory together.
  void load_all(StageTimes& times, bool texts);
  // From here on groups of ranks go through different scenes, and nothing is collective over the world any more.
  void groups_part() { parted_ = true; }
  // A component's weights, read by the node's ranks together when first asked for. Collective over the world.
  const WeightSet& weights(Component component, StageTimes& times);
  // Returns when the weights read so far are page-locked, as far as they will be; a render does not wait.
  void await_page_locks();
  // The transformers that scenes of this run will need; set before load_all.
  void expect(std::vector<Partition> partitions) { expected_ = std::move(partitions); }
  // How this session's transformers work.
  TransformerOptions transformer_options() const;
  // The transformer of a partition, made when first asked for; the other's weights stay in host memory. Collective.
  Transformer& transformer(Partition partition, StageTimes& times);

  // Identity of the model's components (DESIGN "Model identity"), hashed when first asked for and compared between the
  // ranks, since nodes may have copies of their own. Collective over the world; throws UserError on every rank where
  // they differ.
  const std::string& model_identity(StageTimes& times);

  // Of one component but the transformer, once the model's is known.
  const std::string& component_identity(Component component) const { return component_identities_.at(component); }

  // Encodings of this run and earlier ones; null on other ranks than the group's first, and with --cache off.
  RunCache* cache() const { return cache_.get(); }

  // A quick mark of the model for the agreement of ranks: layout, configuration, tokenizer, file sizes and headers, and
  // the beginning of every tensor, since two trainings of one architecture differ in nothing else.
  std::string model_fingerprint() const;

  // What decides the bits besides scene and weights: versions of the stages, backend, precision, kernels, libraries.
  // The same all through a run: kernels are those that were agreed on at its start, by which libraries choose all
  // others.
  nlohmann::ordered_json numerics() const;

  // Tests: what --fail asks of this rank and stage (asked_fault.h).
  void fail_if_asked(const std::string& stage) const;

 private:
  void check_alone(const std::string& what) const;
  // Drops what can be read again from host memory where `component` would take its reserve. Collective over the world.
  void make_host_room(Component component);
  bool lacks_host_room(std::uint64_t bytes);
  LoadOptions load_options() const;
  void use_partition(Partition partition);

  Cluster& cluster_;
  RunOptions options_;
  RankDevice device_;
  std::unique_ptr<RankGroup> group_;
  Link link_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<ModelFolder> model_;
  std::optional<Tokenizer> tokenizer_;
  Precision precision_ = Precision::f32;
  VaeProfile profile_ = VaeProfile::F;
  std::vector<double> row_shares_, head_shares_;
  ExchangePattern pattern_ = ExchangePattern::all_gather;
  Residency residency_ = Residency::resident;
  std::size_t block_bytes_ = 0, device_bytes_ = 0;  // on a device: of the transformer's blocks; free at the start
  std::unique_ptr<WeightMemory> weight_memory_;
  std::map<Component, WeightSet> weights_;
  std::vector<std::weak_ptr<WeightLock>> locks_;  // of the weights in memory, which hold them
  std::vector<Partition> expected_{Partition::fl2va};
  Partition partition_ = Partition::fl2va;      // of the transformer in use
  std::optional<WeightSet> other_transformer_;  // of the other partition
  std::unique_ptr<Transformer> transformer_;
  std::string identity_;
  std::map<Component, std::string> component_identities_;
  std::unique_ptr<RunCache> cache_;
  std::string run_id_;
  std::string kernels_;  // agreed on at the start
  bool parted_ = false;
  Interruption interruption_;

  void interruptible(const std::string& where, const std::function<void()>& read);
};

}  // namespace h3
