#include "render/session.h"

#include <algorithm>

#include "base/hash.h"
#include "base/log.h"
#include "parallel/mpi_communicator.h"
#include "parallel/solo_communicator.h"
#include "render/numerics.h"
#include "render/progress.h"
#include "weights/identity.h"

namespace h3 {

namespace {

std::unique_ptr<Machine> make_machine(const RunOptions& options) {
  if (options.device == "cuda")
    throw UserError("--device", "", "cuda", "this build has no CUDA backend; configure with -DH3RENDER_CUDA=ON");
  return make_cpu_machine();
}

std::unique_ptr<Communicator> make_communicator(const Cluster& cluster, Machine& machine, const RunOptions& options) {
  if (options.transport == "nccl" && machine.place() == Place::host)
    throw UserError("--transport", "", "nccl", "NCCL moves data between GPUs; use host or auto with --device cpu");
  if (cluster.size() == 1) return std::make_unique<SoloCommunicator>(machine);
  return std::make_unique<MpiCommunicator>(MPI_COMM_WORLD, machine);
}

std::vector<double> shares_of(const std::string& specific, const std::string& name, const std::string& common,
                              int ranks) {
  if (!specific.empty()) return parse_shares(specific, ranks, name);
  if (!common.empty()) return parse_shares(common, ranks, "--shares");
  return std::vector<double>(static_cast<std::size_t>(ranks), 1.0);
}

}  // namespace

Session::Session(Cluster& cluster, const RunOptions& options)
    : cluster_(cluster),
      options_(options),
      machine_(make_machine(options)),
      communicator_(make_communicator(cluster, *machine_, options)),
      queue_(machine_->make_queue()),
      model_(std::make_unique<ModelFolder>(open_model(options.model))),
      tokenizer_(Tokenizer::load(model_->paths().tokenizer)),
      weight_memory_(make_node_memory(cluster.node_comm(), options.scratch)) {
  const bool host = machine_->place() == Place::host;
  precision_ = options.precision == "f32" || (options.precision == "auto" && host) ? Precision::f32 : Precision::bf16;
  profile_ = options.vae_profile == "F" || (options.vae_profile == "auto" && host) ? VaeProfile::F : VaeProfile::R;
  row_shares_ = shares_of(options.row_shares, "--row-shares", options.shares, cluster.size());
  head_shares_ = shares_of(options.head_shares, "--head-shares", options.shares, cluster.size());
  const TransformerConfig& t = config().transformer;
  pattern_ = choose_exchange(options.exchange, cluster.size(), t.hidden, t.inner());
  residency_ = options.residency == "streamed" ? Residency::streamed : Residency::resident;
}

const WeightSet& Session::weights(Component component, StageTimes& times) {
  const auto found = weights_.find(component);
  if (found != weights_.end()) return found->second;
  StageTimer timer(times, "load");
  fail_if_asked("load");
  LoadOptions load;
  load.precision = precision_;
  load.vae_profile = profile_;
  const WeightSet& set = weights_[component] = load_component(*model_, component, load, *weight_memory_);
  const double seconds = timer.stop();
  if (first())
    spdlog::info("{}: {} in {} ({}/s)", name_of(component), bytes_text(static_cast<double>(set.bytes())),
                 duration_text(seconds), bytes_text(static_cast<double>(set.bytes()) / std::max(seconds, 1e-6)));
  return set;
}

Transformer& Session::transformer(StageTimes& times) {
  if (!transformer_) {
    const WeightSet& set = weights(Component::transformer, times);
    StageTimer timer(times, "load");
    TransformerOptions t;
    t.precision = precision_;
    t.pattern = pattern_;
    t.exchange_chunks = static_cast<int>(options_.exchange_chunks);
    t.row_chunk = options_.row_chunk;
    t.residency = residency_;
    const ShardPlan heads = make_shard_plan(1, config().transformer.heads, row_shares_, head_shares_);
    transformer_ =
        std::make_unique<Transformer>(*machine_, *queue_, *communicator_, config().transformer, set, t, heads);
    queue_->wait();
  }
  return *transformer_;
}

const std::string& Session::model_identity(StageTimes& times) {
  if (identity_.empty()) {
    StageTimer timer(times, "identity");
    identity_ = h3::model_identity(*model_, *weight_memory_);
  }
  return identity_;
}

std::string Session::model_fingerprint() const {
  if (model_->synthetic()) return model_->name();
  Hasher hasher;
  hasher.add(model_->layout_name());
  for (const Component c :
       {Component::transformer, Component::text_encoder, Component::video_vae, Component::audio_vae}) {
    const FileSource* files = model_->files(c);
    if (!files) continue;
    for (const SafetensorsFile& file : files->files()) {
      hasher.add(fmt::format("{}:{}\n", file.path().filename().string(), file.stamp().size));
      for (const auto& [name, tensor] : file.tensors())
        hasher.add(fmt::format("{} {} {} {}\n", name, h3::name_of(tensor.dtype), tensor.shape.text(), tensor.offset));
    }
  }
  return hasher.hex();
}

nlohmann::ordered_json Session::numerics() const {
  nlohmann::ordered_json j;
  j["stages"] = stage_versions();
  j["backend"] = machine_->backend();
  j["capability"] = machine_->capability();
  j["precision"] = precision_ == Precision::f32 ? "f32" : "bf16";
  j["vae_profile"] = profile_ == VaeProfile::F ? "F" : "R";
  j["kernels"] = machine_->operators().algorithms();
  j["libraries"] = machine_->library_versions();
  const std::string id = hash_hex(j.dump());
  j["id"] = id;
  return j;
}

void Session::fail_if_asked(const std::string& stage) const {
  if (options_.fail == fmt::format("{}:{}", cluster_.rank(), stage))
    throw RunError(fmt::format("failed in stage {} because --fail asked for it", stage));
}

}  // namespace h3
