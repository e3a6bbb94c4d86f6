// The language model as the text encoder uses it (spec/text.md 5): embeddings with vision features in their places, the
// layers up to the wanted state, no final norm. Layers are visited one after another, so that their weights can be
// streamed, and each is computed by all ranks together; every rank ends with the whole result, and the bits do not
// depend on how many ranks took part.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "parallel/communicator.h"
#include "text/presentation.h"
#include "text/text_shards.h"
#include "text/vision_features.h"
#include "weights/model_config.h"
#include "weights/residency.h"
#include "weights/weight_set.h"

namespace h3 {

struct TextEncoderOptions {
  Residency residency = Residency::streamed;
  TextSharding sharding = TextSharding::automatic;
  std::int64_t rows_from = 11000;  // automatic: sequences of so many rows are sharded by rows
  std::int64_t row_chunk = 4096;   // rows that the MLP takes at once
};

// A text to encode; `vision` is needed where it has rows that take features. Both outlive the encoding.
struct TextRequest {
  const Presentation& presentation;
  const VisionFeatures* vision = nullptr;
};

// The conditioning of one request: hidden [L, hidden] in host memory, f32 or bf16 as the weights are.
struct TextStates {
  Buffer memory;
  Tensor hidden;
  TextSharding sharding = TextSharding::outputs;
  int participants = 0;      // ranks that computed part of it
  std::exception_ptr error;  // instead of all that, where several texts are encoded and this one cannot be
};

// Called with the input of each layer (own rows, at Machine::place()).
using LayerObserver = std::function<void(std::int64_t layer, const Tensor& x)>;

class TextEncoder {
 public:
  // `weights`: canonical names, host memory, all f32 or all bf16; it outlives the encoder.
  TextEncoder(Machine& machine, Communicator& communicator, const TextConfig& config, const WeightSet& weights,
              const TextEncoderOptions& options = {});
  ~TextEncoder();

  // Every rank calls with the same presentation; `vision` is needed where it has rows that take features. Throws
  // UserError for a token beyond the embedding, SceneError where the result is not finite.
  TextStates encode(Queue& q, const Presentation& presentation, const VisionFeatures* vision = nullptr,
                    const LayerObserver& observer = {});

  // Several texts at one visit of the weights: each layer is brought in once and goes over one text after another, each
  // by itself and with the bits of encode(). What encode() throws about a text stands in its place, the same on every
  // rank, and the others are encoded. The observer is called for each text.
  std::vector<TextStates> encode_all(Queue& q, std::span<const TextRequest> requests,
                                     const LayerObserver& observer = {});

  // Bytes that encoding `rows` rows takes at Machine::place() on one rank, weights included.
  std::size_t device_bytes(std::int64_t rows) const;

 private:
  class Session;
  TextShards shards_for(std::int64_t rows) const;
  std::vector<WeightSet> layer_slices(const TextShards& shards) const;
  WeightGroups& layers_for(Queue& q, const TextShards& shards);
  std::unique_ptr<Session> begin(Queue& q, const TextRequest& request);
  void go_through_layers(Queue& q, std::span<Session* const> sessions, const LayerObserver& observer);

  Machine& machine_;
  Communicator& communicator_;
  TextConfig config_;
  const WeightSet& weights_;
  TextEncoderOptions options_;
  DType dtype_;
  std::unique_ptr<WeightGroups> layers_;
  TextSharding layers_sharding_ = TextSharding::automatic;
};

}  // namespace h3
