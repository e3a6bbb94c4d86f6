// The H3 transformer over the rows one rank owns (spec/dit.md 4). `begin` prepares a clip: refined text, projected
// conditions, rotary table, the modulation of every step; `forward` is one evaluation. Latents and velocities are
// float32 rows of the targets, each rank holding its own.
#pragma once

#include <memory>
#include <optional>

#include "transformer/block.h"
#include "transformer/clip.h"
#include "transformer/refiner.h"

namespace h3 {

struct TransformerOptions {
  Precision precision = Precision::f32;
  ExchangePattern pattern = ExchangePattern::all_gather;
  int exchange_chunks = 1;
  std::int64_t row_chunk = 0;  // rows a linear layer takes at once; 0: automatic
  Residency residency = Residency::resident;
};

// Conditions as float32 rows in packed order: visual [n, video_row], audio [m, audio_channels]; host, may be empty.
struct ConditionRows {
  Tensor visual, audio;
};

class Transformer {
 public:
  // `weights`: the transformer's set in host memory, of the precision's dtypes (f32, or bf16 with its f32 islands).
  Transformer(Machine& machine, Queue& q, Communicator& communicator, const TransformerConfig& config,
              const WeightSet& weights, const TransformerOptions& options, ShardPlan heads_of_plan);
  ~Transformer();

  // Prepares a clip. states: the text encoder's rows [L, text_dim], host, f32 or bf16. `plan` covers clip.rows and has
  // the head ranges given at construction. `steps`: timesteps of the classes, one entry an evaluation.
  void begin(Queue& q, const Clip& clip, const ShardPlan& plan, const Tensor& states, const ConditionRows& conditions,
             const std::vector<ClassTimesteps>& steps, const Observer& observer = {});

  // The target rows this rank owns, counted from the first target row of their kind.
  Range video_rows() const;
  Range audio_rows() const;

  // One evaluation at `step`: latents -> data-ward velocities, [own rows, video_row] and [own rows, audio_channels] f32
  // at Machine::place(). The observer sees `blockI` (own rows) and `final_modulated`.
  void forward(Queue& q, std::int64_t step, const Tensor& video, const Tensor& audio, const Tensor& video_velocity,
               const Tensor& audio_velocity, const Observer& observer = {});

  double exchange_seconds() const;
  // Bytes of activations on the device for one rank of `plan` (weights and modulation tables not counted).
  static std::size_t activation_bytes(const TransformerConfig& config, const ShardPlan& plan, int rank,
                                      const TransformerOptions& options);

 private:
  struct Session;
  void embed(Queue& q, const Tensor& video, const Tensor& audio);
  void project_rows(Queue& q, SegmentKind kind, const Tensor& rows, const Tensor& x);
  void heads(Queue& q, std::int64_t step, const Tensor& video_velocity, const Tensor& audio_velocity,
             const Observer& observer);

  Machine& machine_;
  Communicator& communicator_;
  TransformerConfig config_;
  const WeightSet& weights_;
  TransformerOptions options_;
  DType dtype_;
  WeightGroups blocks_;
  WeightGroups ends_;
  std::unique_ptr<Session> session_;
};

}  // namespace h3
