#include "weights/identity.h"

#include <algorithm>
#include <atomic>
#include <sstream>

#include "base/error.h"
#include "base/hash.h"
#include "weights/config_writer.h"
#include "weights/digest_memo.h"
#include "weights/synthetic.h"
#include "weights/worker_threads.h"

namespace h3 {

constexpr int kIdentityVersion = 1;
constexpr std::int64_t kHashBytes = 16 << 20;  // read and hashed at once

static std::string tensor_line(const PlannedTensor& t, const std::string& digest) {
  return fmt::format("{} {} {} {}\n", t.name, name_of(t.dtype), t.shape.text(), digest);
}

static std::string tensor_digest(const PlannedTensor& t, const TensorSource& source) {
  Hasher hasher;
  const std::int64_t step = std::max<std::int64_t>(1, kHashBytes / std::max<std::int64_t>(1, t.row_bytes()));
  std::vector<std::byte> rows(static_cast<std::size_t>(std::min(step, t.rows())) * t.row_bytes());
  for (std::int64_t begin = 0; begin < t.rows(); begin += step) {
    const std::int64_t end = std::min(begin + step, t.rows());
    source.read_rows(t, begin, end, rows.data());
    hasher.add(rows.data(), static_cast<std::size_t>(end - begin) * t.row_bytes());
  }
  return hasher.hex();
}

// The hash of lines in sorted order.
static std::string sorted_hash(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  Hasher hasher;
  for (const std::string& line : lines) hasher.add(line + "\n");
  return hasher.hex();
}

// This rank's share of the tensors, the largest first, so that shares and threads end together.
static std::string hash_share(const ComponentPlan& plan, const TensorSource& source, const WeightMemory& memory,
                              const IdentityOptions& options, std::atomic<bool>& stopped) {
  std::vector<const PlannedTensor*> order;
  for (const PlannedTensor& t : plan.tensors) order.push_back(&t);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->bytes() > b->bytes(); });
  const auto ranks = static_cast<std::size_t>(memory.size()), rank = static_cast<std::size_t>(memory.rank());
  const std::size_t own = (order.size() + ranks - 1 - rank) / ranks;
  std::vector<std::string> lines(own);
  run_tasks(own, options.threads > 0 ? options.threads : default_threads(memory.size()), [&](std::size_t i) {
    if (stopped || (options.stopped && options.stopped())) {
      stopped = true;
      return;
    }
    const PlannedTensor& t = *order[i * ranks + rank];
    lines[i] = tensor_line(t, tensor_digest(t, source));
  });
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

static std::string plan_hash(const ComponentPlan& plan) {
  std::string text;
  for (const PlannedTensor& t : plan.tensors) text += tensor_line(t, "");
  return sorted_hash(text);
}

std::string component_identity(const ModelFolder& model, Component component, Partition partition, WeightMemory& memory,
                               const IdentityOptions& options) {
  const ComponentPlan& plan = model.plan(component);
  const std::string base = fmt::format("{} {} {}", kIdentityVersion, name_of(component), plan_hash(plan));
  const FileSource* files = model.files(component, partition);
  if (files == nullptr) return hash_hex(fmt::format("{} synthetic {} seed {}", base, kSyntheticVersion, model.seed()));
  const DigestMemo memo(options.cache);
  const std::string key = DigestMemo::key(fmt::format("{} {}", base, name_of(model.layout())), files->files());
  // Rank 0 alone looks: the ranks of a node might find different files or a memo that is just being replaced.
  const std::string known = memory.join(memory.rank() == 0 ? memo.find(key) : "");
  if (!known.empty()) return known;
  std::string lines, failure;
  std::atomic<bool> stopped = false;
  try {
    lines = hash_share(plan, model.source(component, partition), memory, options, stopped);
  } catch (const std::exception& e) {
    failure = e.what();
  }
  lines = memory.join(lines);
  failure = memory.join(failure);
  const bool any_stopped = !memory.join(stopped ? "stopped" : "").empty();
  if (!failure.empty()) throw RunError(failure);
  if (any_stopped) throw LoadStopped();
  const std::string digest = sorted_hash(lines);
  if (memory.rank() == 0) memo.remember(key, digest);
  return digest;
}

ModelIdentity identify_model(const ModelFolder& model, WeightMemory& memory, const IdentityOptions& options) {
  ModelIdentity identity;
  std::string text = config_text(model.config());
  for (Partition partition : {Partition::fl2va, Partition::ref2va})
    if (model.has(partition))
      text += fmt::format("{} {}\n", name_of(partition),
                          component_identity(model, Component::transformer, partition, memory, options));
  for (Component component : {Component::text_encoder, Component::video_vae, Component::audio_vae}) {
    std::string& own = identity.components[component];
    own = component_identity(model, component, Partition::fl2va, memory, options);
    text += fmt::format("{} {}\n", name_of(component), own);
  }
  identity.whole = hash_hex(text);
  return identity;
}

std::string model_identity(const ModelFolder& model, WeightMemory& memory, const IdentityOptions& options) {
  return identify_model(model, memory, options).whole;
}

std::string model_identity(const ModelFolder& model, const IdentityOptions& options) {
  return model_identity(model, *make_private_memory(), options);
}

std::string config_text(const ModelConfig& config) {
  ModelConfig used = config;
  used.text.layers = used.text.state;  // a file cut to the layers that are needed is the same model
  std::string text;
  for (const auto& [file, object] : config_files(used)) text += file + " " + object.dump() + "\n";
  return text;
}

}  // namespace h3
