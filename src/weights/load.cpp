#include "weights/load.h"

#include <atomic>
#include <cmath>
#include <mutex>

#include "base/error.h"
#include "weights/convert.h"
#include "weights/worker_threads.h"

namespace h3 {

namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kTaskBytes = 16 << 20;  // stored bytes that one task reads at once

DType loaded_dtype(const PlannedTensor& t, Component component, const LoadOptions& options) {
  switch (component) {
    case Component::transformer:
    case Component::text_encoder:
      return options.precision == Precision::f32 ? DType::f32 : t.dtype;
    case Component::video_vae:
      return options.vae_profile == VaeProfile::R && t.block_linear ? DType::f16 : DType::f32;
    case Component::audio_vae:
      return DType::f32;
  }
  throw RunError("unknown component");
}

std::string folded_name(const std::string& direction) {
  return direction.substr(0, direction.size() - std::string_view("_v").size());
}

// A tensor to load with where it comes from.
struct Target {
  LoadedTensor loaded;
  const PlannedTensor* source = nullptr;     // or the direction of a weight norm
  const PlannedTensor* magnitude = nullptr;  // the magnitude of a weight norm
};

std::vector<Target> targets_of(const ComponentPlan& plan, const LoadOptions& options) {
  std::vector<Target> targets;
  const PlannedTensor* magnitude = nullptr;
  std::size_t offset = 0;
  for (const PlannedTensor& t : plan.tensors) {
    if (t.role == Role::magnitude) {
      magnitude = &t;  // its direction follows
      continue;
    }
    Target target{{t.name, t.shape, loaded_dtype(t, plan.component, options), offset}, &t, nullptr};
    if (t.role == Role::direction) {
      target.loaded.name = folded_name(t.name);
      target.magnitude = magnitude;
    }
    if (options.wanted && !options.wanted(target.loaded.name)) continue;
    offset += (target.loaded.bytes() + kAlignment - 1) / kAlignment * kAlignment;
    targets.push_back(std::move(target));
  }
  return targets;
}

std::size_t block_bytes(const std::vector<Target>& targets) {
  if (targets.empty()) return 0;
  const LoadedTensor& last = targets.back().loaded;
  return (last.offset + last.bytes() + kAlignment - 1) / kAlignment * kAlignment;
}

// Some rows of one target: what a thread makes at once.
struct Task {
  const Target* target = nullptr;
  std::int64_t begin = 0, end = 0;
};

// The tasks of one rank: all tasks in order are cut by bytes into one stretch a rank.
std::vector<Task> tasks_of(const std::vector<Target>& targets, int rank, int ranks) {
  std::size_t total = 0, before = 0;
  for (const Target& t : targets) total += t.source->bytes();
  std::vector<Task> tasks;
  for (const Target& t : targets) {
    const std::size_t row_bytes = std::max<std::size_t>(1, t.source->row_bytes());
    const auto rows = std::max<std::int64_t>(1, static_cast<std::int64_t>(kTaskBytes / row_bytes));
    for (std::int64_t begin = 0; begin < t.source->rows(); begin += rows) {
      const std::int64_t end = std::min(begin + rows, t.source->rows());
      const auto owner = before * static_cast<std::size_t>(ranks) / std::max<std::size_t>(1, total);
      if (static_cast<int>(owner) == rank) tasks.push_back({&t, begin, end});
      before += static_cast<std::size_t>(end - begin) * row_bytes;
    }
  }
  return tasks;
}

// w[r] = v[r] * (g[r] / |v[r]|), the norm summed in double, one rounding (spec/vae.md 15).
std::string fold(const Task& task, const TensorSource& source, float* to) {
  const PlannedTensor& v = *task.target->source;
  const std::int64_t n = v.row_elements();
  source.read_rows(v, task.begin, task.end, to);
  std::vector<float> g(static_cast<std::size_t>(task.end - task.begin));
  source.read_rows(*task.target->magnitude, task.begin, task.end, g.data());
  for (std::size_t r = 0; r < g.size(); ++r) {
    float* row = to + static_cast<std::int64_t>(r) * n;
    double squares = 0;
    for (std::int64_t i = 0; i < n; ++i) squares += static_cast<double>(row[i]) * static_cast<double>(row[i]);
    if (!(squares > 0) || !std::isfinite(squares))
      return fmt::format("tensor {}: the norm of row {} is {}", v.name, task.begin + static_cast<std::int64_t>(r),
                         std::sqrt(squares));
    const double factor = static_cast<double>(g[r]) / std::sqrt(squares);
    for (std::int64_t i = 0; i < n; ++i) row[i] = static_cast<float>(static_cast<double>(row[i]) * factor);
  }
  return "";
}

std::string run_task(const Task& task, const TensorSource& source, std::byte* block) {
  const LoadedTensor& loaded = task.target->loaded;
  const PlannedTensor& t = *task.target->source;
  std::byte* to =
      block + loaded.offset + static_cast<std::size_t>(task.begin * t.row_elements()) * size_of(loaded.dtype);
  if (task.target->magnitude != nullptr) return fold(task, source, reinterpret_cast<float*>(to));
  if (loaded.dtype == t.dtype) {
    source.read_rows(t, task.begin, task.end, to);
    return "";
  }
  std::vector<std::byte> stored(static_cast<std::size_t>(task.end - task.begin) * t.row_bytes());
  source.read_rows(t, task.begin, task.end, stored.data());
  convert(stored.data(), t.dtype, to, loaded.dtype, (task.end - task.begin) * t.row_elements());
  return "";
}

}  // namespace

MemoryPlan plan_memory(const ComponentPlan& plan, const LoadOptions& options) {
  const std::vector<Target> targets = targets_of(plan, options);
  MemoryPlan memory;
  for (const Target& t : targets) memory.tensors.push_back(t.loaded);
  memory.bytes = block_bytes(targets);
  return memory;
}

WeightSet load_component(const ModelFolder& model, Component component, const LoadOptions& options,
                         WeightMemory& memory) {
  const std::vector<Target> targets = targets_of(model.plan(component), options);
  const TensorSource& source = model.source(component, options.partition);
  const std::shared_ptr<WeightBlock> block = memory.allocate(block_bytes(targets), name_of(component));
  const std::vector<Task> tasks = tasks_of(targets, memory.rank(), memory.size());
  std::mutex mutex;
  std::string wrong, failure;
  std::atomic<bool> stopped = false;
  try {
    run_tasks(tasks.size(), options.threads > 0 ? options.threads : default_threads(memory.size()), [&](std::size_t i) {
      if (stopped || (options.stopped && options.stopped())) {
        stopped = true;
        return;
      }
      const std::string problem = run_task(tasks[i], source, block->data());
      if (problem.empty()) return;
      const std::lock_guard lock(mutex);
      wrong += "\n  " + problem;
    });
  } catch (const std::exception& e) {
    failure = e.what();
  }
  // Every rank learns of every rank's troubles before any leaves, so that none waits for one that has gone.
  wrong = memory.join(wrong);
  failure = memory.join(failure);
  const bool any_stopped = !memory.join(stopped ? "stopped" : "").empty();
  if (!failure.empty()) throw RunError(failure);
  if (any_stopped) throw LoadStopped();
  if (!wrong.empty()) throw UserError(fmt::format("{}: {}:{}", model.name(), name_of(component), wrong));
  WeightSet set;
  for (const Target& t : targets)
    set.add(t.loaded.name, Tensor(block->data() + t.loaded.offset, t.loaded.shape, t.loaded.dtype));
  const auto use = options.filled ? options.filled(*block) : nullptr;
  // Of a pair the second goes first.
  set.own_block(std::make_shared<std::pair<std::shared_ptr<WeightBlock>, std::shared_ptr<void>>>(block, use),
                {block->data(), block->bytes()});
  return set;
}

WeightSet load_component(const ModelFolder& model, Component component, const LoadOptions& options) {
  return load_component(model, component, options, *make_private_memory());
}

}  // namespace h3
