#include "render/session.h"

#include <algorithm>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "render/agreement.h"
#include "render/asked_fault.h"
#include "render/cache_options.h"
#include "render/claim_record.h"
#include "render/host_reserve.h"
#include "render/linear_shapes.h"
#include "render/numerics.h"
#include "render/partition_use.h"
#include "render/progress.h"
#include "render/scene_jobs.h"
#include "weights/host_memory.h"
#include "weights/identity.h"
#include "weights/worker_threads.h"

namespace h3 {

namespace {

std::size_t bytes_of_blocks(const ModelConfig& config, Precision precision) {
  LoadOptions load;
  load.precision = precision;
  std::size_t bytes = 0;
  for (const LoadedTensor& tensor : plan_memory(plan_component(config, Component::transformer), load).tensors)
    if (tensor.name.starts_with("blocks.") && tensor.name.find(".adaln_proj.") == std::string::npos)
      bytes += tensor.bytes();
  return bytes;
}

}  // namespace

Residency fitting_residency(std::size_t blocks, std::size_t working, std::size_t free) {
  // Libraries, tables and fragments; little models need little of them.
  const std::size_t rest = std::min(std::size_t{6} << 30, blocks);
  return blocks + working + rest <= free ? Residency::resident : Residency::streamed;
}

Session::Session(Cluster& cluster, const RunOptions& options)
    : cluster_(cluster),
      options_(options),
      device_(make_rank_device(cluster, options)),
      queue_(machine().make_queue()),
      model_(std::make_unique<ModelFolder>(open_for_rendering(options.model))) {
  const bool on_gpu = machine().place() == Place::device;
  precision_ = precision_of(options, on_gpu);
  profile_ = vae_profile_of(options, on_gpu);
  const int ranks = group_size(cluster.size(), options.ranks_per_scene);
  row_shares_ = h3::row_shares(options, ranks);
  head_shares_ = h3::head_shares(options, ranks);
  const TransformerConfig& t = config().transformer;
  pattern_ = choose_exchange(options.exchange, ranks, t.hidden, t.inner());
  if (options.residency == "streamed") residency_ = Residency::streamed;
  if (!on_gpu) return;
  block_bytes_ = bytes_of_blocks(config(), precision_);
  device_bytes_ = machine().free_memory();
  constexpr std::size_t kWorking = std::size_t{8} << 30;  // until a scene says what it takes
  if (options.residency == "auto") residency_ = fitting_residency(block_bytes_, kWorking, device_bytes_);
}

const Tokenizer& Session::tokenizer() {
  if (!tokenizer_) tokenizer_ = load_tokenizer(*model_);
  return *tokenizer_;
}

void Session::connect() {
  weight_memory_ = make_node_memory(cluster_.node_comm(),
                                    {.scratch = options_.scratch, .reserve = host_reserve(options_, host_memory())});
  group_ = std::make_unique<RankGroup>(cluster_, static_cast<int>(row_shares_.size()));
  link_ = connect_ranks(cluster_, *group_, device_, options_);
  if (group_->count() > 1) log_for_group(group_->name(), first());
  if (first() && !group_->on_one_node()) spdlog::warn("the {} ranks of this group are not on one node", group_->size());
  if (first() && machine().place() == Place::device)
    spdlog::info("{}: {} free{}", machine().name(), bytes_text(static_cast<double>(machine().free_memory())),
                 device_.binding.empty() ? "" : "; bound to " + device_.binding);
  if (first() && group_->size() > 1) spdlog::info("transport {}: {}", link_.transport, link_.reason);
  if (first()) cache_ = open_run_cache(options_);
  run_id_ = world().broadcast_text(this_process().nonce);
  // Every rank takes the algorithms that rank 0's library proposes, so that equal layers are equal work everywhere.
  for (const LinearShape& shape : linear_shapes(config(), precision_, profile_))
    if (cluster_.rank() == 0) machine().operators().prepare_linear(*queue_, shape);
  machine().operators().adopt_algorithms(world().broadcast_text(machine().operators().algorithms()));
  kernels_ = machine().operators().algorithms();
}

void Session::make_room(std::size_t working_bytes) {
  if (options_.residency != "auto" || device_bytes_ == 0) return;
  const Residency wanted = fitting_residency(block_bytes_, working_bytes, device_bytes_);
  if (wanted != residency_) transformer_.reset();
  if (first() && (wanted != residency_ || !transformer_))
    spdlog::info("transformer blocks {}: they take {}, the scene {}", h3::name_of(wanted),
                 bytes_text(static_cast<double>(block_bytes_)), bytes_text(static_cast<double>(working_bytes)));
  residency_ = wanted;
}

void Session::check_alone(const std::string& what) const {
  if (group_->count() > 1 && parted_) throw RunError(what + " is needed after all groups of ranks began to render");
}

void Session::load_all(StageTimes& times, bool texts) {
  model_identity(times);
  if (texts) weights(Component::text_encoder, times);
  for (const Component c : {Component::video_vae, Component::audio_vae}) weights(c, times);
  for (const Partition partition : expected_) {
    use_partition(partition);
    weights(Component::transformer, times);
  }
}

const WeightSet& Session::weights(Component component, StageTimes& times) {
  const auto found = weights_.find(component);
  if (found != weights_.end()) return found->second;
  check_alone(std::string(name_of(component)));
  StageTimer timer(times, "load");
  fail_if_asked("load");
  make_host_room(component);
  LoadOptions load = load_options();
  load.stopped = interruption_.wanted;
  if (options_.page_lock == "on")
    load.filled = [&](const WeightBlock& block) {
      const auto lock = WeightLock::start(machine(), block, std::string(name_of(component)), cluster_.rank() == 0);
      locks_.push_back(lock);
      return lock;
    };
  interruptible("load", [&] { weights_[component] = load_component(*model_, component, load, *weight_memory_); });
  const WeightSet& set = weights_.at(component);
  const double seconds = timer.stop();
  if (cluster_.rank() == 0)
    spdlog::info("{}: {} in {} ({}/s)", name_of(component), bytes_text(static_cast<double>(set.bytes())),
                 duration_text(seconds), bytes_text(static_cast<double>(set.bytes()) / std::max(seconds, 1e-6)));
  return set;
}

// Too little on any node counts for all of them, since all read a component together.
bool Session::lacks_host_room(std::uint64_t bytes) {
  const HostMemory host = host_memory();
  std::uint64_t free = host.available - std::min(host.available, host_reserve(options_, host));
  if (cluster_.node_size() > 1) free = std::min(free, free_space("/dev/shm"));
  return world().agree_max(free < bytes ? 1 : 0) != 0;
}

void Session::make_host_room(Component component) {
  // With a scratch folder all stay where they are; of several groups each may need any of them at any time.
  if (group_->count() > 1 || !options_.scratch.empty()) return;
  const std::uint64_t bytes = plan_memory(plan_component(config(), component), load_options()).bytes;
  if (!lacks_host_room(bytes)) return;
  std::string dropped = other_transformer_ ? ", the other transformer" : "";
  other_transformer_.reset();
  for (const Component c : {Component::text_encoder, Component::transformer}) {
    if (c == component || !weights_.contains(c)) continue;
    if (c == Component::transformer) transformer_.reset();
    weights_.erase(c);
    dropped += fmt::format(", {}", name_of(c));
  }
  if (!dropped.empty() && cluster_.rank() == 0)
    spdlog::info("{} takes {} of host memory, which leave too little beside what was there: dropped{}",
                 name_of(component), bytes_in_words(bytes), dropped.substr(1));
}

LoadOptions Session::load_options() const {
  LoadOptions load;
  load.precision = precision_;
  load.vae_profile = profile_;
  load.partition = partition_;
  return load;
}

void Session::await_page_locks() {
  for (const std::weak_ptr<WeightLock>& held : locks_)
    if (const auto lock = held.lock()) lock->wait();
}

TransformerOptions Session::transformer_options() const {
  TransformerOptions t;
  t.precision = precision_;
  t.pattern = pattern_;
  t.exchange_chunks = static_cast<int>(options_.exchange_chunks);
  t.row_chunk = options_.row_chunk;
  t.residency = residency_;
  return t;
}

void Session::use_partition(Partition partition) {
  if (partition == partition_) return;
  transformer_.reset();
  auto in_use = weights_.extract(Component::transformer);
  if (other_transformer_) weights_[Component::transformer] = std::move(*other_transformer_);
  other_transformer_.reset();
  if (in_use) other_transformer_ = std::move(in_use.mapped());
  partition_ = partition;
}

Transformer& Session::transformer(Partition partition, StageTimes& times) {
  use_partition(partition);
  if (!transformer_) {
    const WeightSet& set = weights(Component::transformer, times);
    StageTimer timer(times, "load");
    const ShardPlan heads = make_shard_plan(1, config().transformer.heads, row_shares_, head_shares_);
    transformer_ = std::make_unique<Transformer>(machine(), *queue_, communicator(), config().transformer, set,
                                                 transformer_options(), heads);
    queue_->wait();
  }
  return *transformer_;
}

const std::string& Session::model_identity(StageTimes& times) {
  if (identity_.empty()) {
    check_alone("the model's identity");
    StageTimer timer(times, "identity");
    IdentityOptions options;
    options.stopped = interruption_.wanted;
    ModelIdentity identity;
    interruptible("identity", [&] { identity = identify_model(*model_, *weight_memory_, options); });
    require_agreement(world(), cluster_.host(), {{"model identity", identity.whole}});
    identity_ = identity.whole;
    component_identities_ = std::move(identity.components);
  }
  return identity_;
}

// Reads on every rank, between two boundaries; where a rank gave up, the second one throws on all.
void Session::interruptible(const std::string& where, const std::function<void()>& read) {
  if (interruption_.boundary) interruption_.boundary(where);
  bool stopped = false;
  try {
    read();
  } catch (const LoadStopped&) {
    stopped = true;
  }
  if (interruption_.boundary) interruption_.boundary(where);
  H3_CHECK(!stopped, "reading was stopped, the run was not");
}

// Header and the first bytes of every tensor, read by several threads since a network file system is slow to answer.
static std::string fingerprint_of(const SafetensorsFile& file) {
  constexpr std::uint64_t kSampled = 256;
  std::vector<std::string> marks(file.tensors().size());
  std::vector<decltype(file.tensors().begin())> tensors;
  for (auto it = file.tensors().begin(); it != file.tensors().end(); ++it) tensors.push_back(it);
  run_tasks(tensors.size(), 8, [&](std::size_t i) {
    const auto& [name, tensor] = *tensors[i];
    std::string values(std::min(kSampled, tensor.bytes), '\0');
    file.read(tensor, 0, values.size(), values.data());
    marks[i] = fmt::format("{} {} {} {} {}\n", name, h3::name_of(tensor.dtype), tensor.shape.text(), tensor.offset,
                           hash_hex(values));
  });
  Hasher hasher;
  hasher.add(fmt::format("{}:{}\n", file.path().filename().string(), file.stamp().size));
  for (const std::string& mark : marks) hasher.add(mark);
  return hasher.hex();
}

static std::string tokenizer_fingerprint(const std::filesystem::path& folder) {
  Hasher hasher;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt"})
    if (std::filesystem::exists(folder / name)) hasher.add(read_file(folder / name));
  return hasher.hex();
}

std::string Session::model_fingerprint() const {
  Hasher hasher;
  hasher.add(model_->layout_name());
  hasher.add(config_text(config()));
  if (!model_->paths().tokenizer.empty()) hasher.add(tokenizer_fingerprint(model_->paths().tokenizer));
  const auto add = [&](Component component, Partition partition) {
    if (const FileSource* files = model_->files(component, partition))
      for (const SafetensorsFile& file : files->files()) hasher.add(fingerprint_of(file));
  };
  for (const Partition partition : opened_partitions(*model_)) add(Component::transformer, partition);
  for (const Component c : {Component::text_encoder, Component::video_vae, Component::audio_vae})
    add(c, Partition::fl2va);
  return fmt::format("{} ({})", model_->name(), hasher.hex());
}

nlohmann::ordered_json Session::numerics() const {
  nlohmann::ordered_json j;
  j["stages"] = stage_versions();
  j["backend"] = machine().backend();
  j["capability"] = machine().capability();
  j["precision"] = precision_ == Precision::f32 ? "f32" : "bf16";
  j["vae_profile"] = profile_ == VaeProfile::F ? "F" : "R";
  j["kernels"] = kernels_;
  j["libraries"] = machine().library_versions();
  const std::string id = hash_hex(j.dump());
  j["id"] = id;
  return j;
}

void Session::fail_if_asked(const std::string& stage) const {
  parse_asked_fault(options_.fail, "--fail").happen(cluster_.rank(), stage);
}

}  // namespace h3
