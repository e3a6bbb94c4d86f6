// The AdaLN vectors of a whole schedule, computed once before the first step (spec/dit.md 4.4, 4.5, 4.9). A row of the
// packed sequence belongs to one of five modulation classes, which are all the (timestep, modality) pairs that occur;
// its class picks six vectors a block, and two in the final layer.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compute/operators.h"
#include "weights/model_config.h"
#include "weights/residency.h"

namespace h3 {

// (timestep of the step, modality): text rows; target video rows and the rows of vision blocks in the text; target
// audio; visual conditions; audio conditions (spec/dit.md 3.5).
enum class ModulationClass : std::int32_t { text, video, audio, visual_condition, audio_condition };
constexpr int kModulationClasses = 5;

// The timesteps of one step, by class.
using ClassTimesteps = std::array<float, kModulationClasses>;

// The sinusoid [m, freq_dim] of timesteps: cosines, then sines, float32 (spec/dit.md 4.4).
std::vector<float> time_sinusoid(std::span<const float> timesteps, std::int64_t freq_dim);

class ModulationTables {
 public:
  // Six vectors of a block in one step, each [classes, hidden].
  struct Block {
    Tensor shift_msa, scale_msa, gate_msa, shift_mlp, scale_mlp, gate_mlp;
  };
  struct Final {
    Tensor shift, scale;
  };

  // `weights` is the transformer's set in host memory; AdaLN weights pass through the machine block by block. Tables
  // have the dtype of `activations`.
  ModulationTables(Machine& machine, Queue& q, const TransformerConfig& config, const WeightSet& weights,
                   const std::vector<ClassTimesteps>& steps, DType activations);
  Block block(std::int64_t layer, std::int64_t step) const;
  Final final(std::int64_t step) const;
  // The time embedding [5 * steps, time_embed] f32, class-major, for tests.
  const Tensor& time_embedding() const { return embedding_; }

  static std::size_t table_bytes(const TransformerConfig& config, std::int64_t steps, DType activations);

 private:
  void embed_times(Queue& q, const WeightSet& weights, const std::vector<ClassTimesteps>& steps);

  Machine& machine_;
  TransformerConfig config_;
  std::int64_t steps_;
  Buffer table_buffer_, final_buffer_, embedding_buffer_, input_buffer_;
  Tensor table_;        // [layers, classes, steps, 6 * hidden]
  Tensor final_table_;  // [classes, steps, 2 * hidden]
  Tensor embedding_;    // [classes * steps, time_embed] f32
  Tensor input_;        // silu of it, in the activations' dtype
};

}  // namespace h3
