#include "transformer/modulation.h"

#include <cmath>
#include <string>

namespace h3 {

namespace {

// The modality whose AdaLN rows a class takes: 0 video, 1 text, 2 audio (spec/dit.md 2.1).
constexpr std::array<std::int64_t, kModulationClasses> kModality{1, 0, 2, 0, 2};

std::string block_name(std::int64_t layer) {
  return "blocks." + std::to_string(layer) + ".adaln_proj.linear";
}

WeightSet named(const WeightSet& weights, const std::vector<std::string>& names) {
  WeightSet part;
  for (const std::string& name : names)
    for (const char* suffix : {".weight", ".bias"}) part.add(name + suffix, weights.at(name + suffix));
  return part;
}

// Vector `i` of every class at one step, [classes, hidden], of a table [classes, steps, n * hidden].
Tensor step_vectors(const Tensor& table, std::int64_t step, std::int64_t i, std::int64_t hidden) {
  Tensor t = table.slice(1, step, step + 1).slice(2, i * hidden, (i + 1) * hidden);
  const std::int64_t class_stride = t.stride(0);
  t.shape = Shape{kModulationClasses, hidden};
  t.strides = Shape{class_stride, 1};
  return t;
}

}  // namespace

std::vector<float> time_sinusoid(std::span<const float> timesteps, std::int64_t freq_dim) {
  const auto half = static_cast<std::size_t>(freq_dim / 2);
  std::vector<float> rows(timesteps.size() * half * 2);
  for (std::size_t m = 0; m < timesteps.size(); ++m) {
    for (std::size_t i = 0; i < half; ++i) {
      const float exponent = static_cast<float>(-std::log(10000.0)) * static_cast<float>(i) / static_cast<float>(half);
      const float angle = timesteps[m] * std::exp(exponent);
      rows[m * half * 2 + i] = std::cos(angle);
      rows[m * half * 2 + half + i] = std::sin(angle);
    }
  }
  return rows;
}

std::size_t ModulationTables::table_bytes(const TransformerConfig& config, std::int64_t steps, DType activations) {
  return static_cast<std::size_t>((config.layers * 6 + 2) * kModulationClasses * steps * config.hidden) *
         size_of(activations);
}

ModulationTables::ModulationTables(Machine& machine, Queue& q, const TransformerConfig& config,
                                   const WeightSet& weights, const std::vector<ClassTimesteps>& steps,
                                   DType activations)
    : machine_(machine), config_(config), steps_(static_cast<std::int64_t>(steps.size())) {
  const std::int64_t h = config.hidden, rows = kModulationClasses * steps_;
  const auto buffer = [&](std::int64_t elements, DType dtype) {
    return Buffer(machine_, static_cast<std::size_t>(elements) * size_of(dtype), machine_.place());
  };
  table_buffer_ = buffer(config.layers * rows * 6 * h, activations);
  table_ = table_buffer_.tensor({config.layers, kModulationClasses, steps_, 6 * h}, activations);
  final_buffer_ = buffer(rows * 2 * h, activations);
  final_table_ = final_buffer_.tensor({kModulationClasses, steps_, 2 * h}, activations);
  embedding_buffer_ = buffer(rows * config.time_embed, DType::f32);
  embedding_ = embedding_buffer_.tensor({rows, config.time_embed}, DType::f32);
  input_buffer_ = buffer(rows * config.time_embed, activations);
  input_ = input_buffer_.tensor({rows, config.time_embed}, activations);
  embed_times(q, weights, steps);

  Operators& ops = machine_.operators();
  std::vector<WeightSet> groups;
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    groups.push_back(below(named(weights, {block_name(layer)}), block_name(layer) + "."));
  groups.push_back(below(named(weights, {"final_layer.adaln_proj.linear"}), "final_layer.adaln_proj.linear."));
  WeightGroups stream(machine_, q, std::move(groups), Residency::streamed);
  for (std::int64_t layer = 0; layer <= config.layers; ++layer) {
    const WeightSet& group = stream.use(q, static_cast<std::size_t>(layer));
    const Tensor& weight = group.at("weight");
    const LinearWeights full{weight, group.at("bias"), weight.size(0)};
    for (std::int64_t c = 0; c < kModulationClasses; ++c) {
      const Tensor x = input_.rows(c * steps_, (c + 1) * steps_);
      const std::int64_t modality = kModality[static_cast<std::size_t>(c)];
      if (layer < config.layers)
        ops.linear(q, x, full.outputs(modality * 6 * h, (modality + 1) * 6 * h), table_.at(layer).at(c));
      else
        ops.linear(q, x, full, final_table_.at(c));
    }
  }
  q.wait();
}

void ModulationTables::embed_times(Queue& q, const WeightSet& weights, const std::vector<ClassTimesteps>& steps) {
  Operators& ops = machine_.operators();
  const std::int64_t rows = embedding_.size(0);
  std::vector<float> timesteps;
  for (std::size_t c = 0; c < kModulationClasses; ++c)
    for (const ClassTimesteps& step : steps) timesteps.push_back(step[c]);
  std::vector<float> sinusoid = time_sinusoid(timesteps, config_.freq_dim);

  const std::string in = "time_embedder.proj_in", out = "time_embedder.proj_out";
  WeightGroups embedder(machine_, q, {named(weights, {in, out})}, Residency::resident);
  const WeightSet& w = embedder.use(q, 0);
  Arena arena(
      machine_,
      static_cast<std::size_t>(rows * (config_.freq_dim + config_.time_hidden + config_.time_embed)) * 4 + 1024);
  const Tensor e = arena.take({rows, config_.freq_dim}, DType::f32);
  const Tensor hidden = arena.take({rows, config_.time_hidden}, DType::f32);
  machine_.copy(q, Tensor(sinusoid.data(), e.shape, DType::f32), e);
  ops.linear(q, e, w.linear(in), hidden);
  ops.activate(q, Activation::silu, hidden, hidden);
  ops.linear(q, hidden, w.linear(out), embedding_);
  // The activation runs in float32 and only then is rounded (spec/dit.md 4.5).
  const Tensor activated = arena.take(embedding_.shape, DType::f32);
  ops.activate(q, Activation::silu, embedding_, activated);
  ops.cast(q, activated, input_);
  q.wait();
}

ModulationTables::Block ModulationTables::block(std::int64_t layer, std::int64_t step) const {
  const auto vector = [&](std::int64_t i) { return step_vectors(table_.at(layer), step, i, config_.hidden); };
  return {vector(0), vector(1), vector(2), vector(3), vector(4), vector(5)};
}

ModulationTables::Final ModulationTables::final(std::int64_t step) const {
  return {step_vectors(final_table_, step, 0, config_.hidden), step_vectors(final_table_, step, 1, config_.hidden)};
}

}  // namespace h3
