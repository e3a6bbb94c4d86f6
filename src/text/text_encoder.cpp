#include "text/text_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "text/host_tensor.h"
#include "text/text_layer.h"
#include "text/text_rope.h"

namespace h3 {
namespace {

constexpr const char* kEmbedding = "model.language_model.embed_tokens.weight";

void copy_row(const Tensor& from, std::int64_t from_row, const Tensor& to, std::int64_t to_row) {
  const std::size_t bytes = static_cast<std::size_t>(to.size(1)) * size_of(to.dtype);
  std::memcpy(to.as<char>() + static_cast<std::size_t>(to_row) * bytes,
              from.as<char>() + static_cast<std::size_t>(from_row) * bytes, bytes);
}

// Calls f(row of the sequence) for each own row, in order.
template <typename F>
void for_own_rows(const std::vector<Range>& tiles, F&& f) {
  for (const Range& tile : tiles) {
    for (std::int64_t row = tile.begin; row < tile.end; ++row) f(row);
  }
}

// A run of own rows that takes consecutive vision features.
struct FeatureRun {
  std::int64_t own_row = 0, feature = 0, rows = 0;
};

std::vector<FeatureRun> feature_runs(const Presentation& presentation, const std::vector<Range>& tiles) {
  std::vector<std::int64_t> feature_before(presentation.types.size() + 1);
  for (std::size_t i = 0; i < presentation.types.size(); ++i) {
    feature_before[i + 1] = feature_before[i] + (presentation.types[i] == RowType::text ? 0 : 1);
  }
  std::vector<FeatureRun> runs;
  std::int64_t own = 0;
  for_own_rows(tiles, [&](std::int64_t row) {
    const std::int64_t feature = feature_before[static_cast<std::size_t>(row)];
    if (presentation.types[static_cast<std::size_t>(row)] != RowType::text) {
      const bool follows = !runs.empty() && runs.back().own_row + runs.back().rows == own &&
                           runs.back().feature + runs.back().rows == feature;
      if (!follows) runs.push_back({own, feature, 0});
      ++runs.back().rows;
    }
    ++own;
  });
  return runs;
}

void check_features(const VisionFeatures* vision, std::int64_t rows, const TextConfig& config, DType dtype) {
  if (rows == 0) return;
  H3_CHECK(vision != nullptr, "vision features for a presentation with media");
  CHECK_EQ(vision->deepstack.size(), config.vision.deepstack.size());
  const auto check = [&](const Tensor& t) {
    H3_CHECK(t.shape == Shape({rows, config.hidden}) && t.dtype == dtype, t.shape.text());
  };
  check(vision->embeddings);
  for (const Tensor& t : vision->deepstack) check(t);
}

float value_at(const Tensor& t, std::int64_t i) {
  return t.dtype == DType::f32 ? t.as<float>()[i] : to_f32(t.as<bf16_t>()[i]);
}

void check_finite(const Tensor& hidden) {
  for (std::int64_t i = 0; i < hidden.elements(); ++i) {
    if (std::isfinite(value_at(hidden, i))) continue;
    throw SceneError(fmt::format("text encoder: value {} of row {} is {}", i % hidden.size(1), i / hidden.size(1),
                                 value_at(hidden, i)));
  }
}

void check_tokens(const Presentation& presentation, const TextConfig& config) {
  for (const std::int32_t id : presentation.ids) {
    if (id >= 0 && id < config.vocab) continue;
    throw UserError("text encoder", "token", fmt::format("{}", id),
                    fmt::format("tokenizer and embedding belong together; the embedding has {} rows", config.vocab));
  }
}

}  // namespace

// One request on one rank: its rows, their way in and the result's way out.
class TextEncoder::Session {
 public:
  Session(TextEncoder& encoder, Queue& q, const Presentation& presentation, const VisionFeatures* vision)
      : encoder_(encoder),
        machine_(encoder.machine_),
        q_(q),
        presentation_(presentation),
        vision_(vision),
        shards_(encoder.shards_for(presentation.rows())),
        tiles_(shards_.rows[static_cast<std::size_t>(encoder.communicator_.rank())]),
        runs_(feature_runs(presentation, tiles_)),
        arena_(machine_, activation_bytes(encoder, shards_)),
        buffers_(take_buffers(arena_, encoder, shards_)),
        layer_(machine_, encoder.communicator_, encoder.config_, shards_, buffers_.workspace) {}

  static std::size_t activation_bytes(const TextEncoder& encoder, const TextShards& shards) {
    Arena sizes;
    take_buffers(sizes, encoder, shards);
    return sizes.peak();
  }

  const TextShards& shards() const { return shards_; }
  const Tensor& x() const { return buffers_.x; }

  // Step 0: rotary tables, and embeddings with vision features in their places.
  void load() {
    const TextConfig& config = encoder_.config_;
    const HostTensor cos(machine_, {presentation_.rows(), config.head_dim / 2}, encoder_.dtype_);
    const HostTensor sin(machine_, cos.tensor().shape, encoder_.dtype_);
    fill_text_rope(config, presentation_.positions, cos.tensor(), sin.tensor());
    std::int64_t at = 0;
    for (const Range& tile : tiles_) {
      const std::int64_t end = at + tile.size();
      machine_.copy(q_, cos.tensor().rows(tile.begin, tile.end), workspace().cos.rows(at, end));
      machine_.copy(q_, sin.tensor().rows(tile.begin, tile.end), workspace().sin.rows(at, end));
      at = end;
    }
    const HostTensor rows(machine_, x().shape, encoder_.dtype_);
    at = 0;
    for_own_rows(tiles_, [&](std::int64_t row) {
      copy_row(encoder_.weights_.at(kEmbedding), presentation_.ids[static_cast<std::size_t>(row)], rows.tensor(), at++);
    });
    for (const FeatureRun& run : runs_) {
      for (std::int64_t i = 0; i < run.rows; ++i) {
        copy_row(vision_->embeddings, run.feature + i, rows.tensor(), run.own_row + i);
      }
    }
    machine_.copy(q_, rows.tensor(), x());
    q_.wait();
  }

  void run(std::int64_t layer, const WeightSet& weights) {
    layer_.run(q_, weights, x());
    add_deepstack(layer);
  }

  TextStates collect() {
    Tensor all = x();
    if (shards_.sharding == TextSharding::rows) {
      all = buffers_.all_rows;
      gather_row_tiles(q_, machine_.operators(), encoder_.communicator_, shards_.rows, x(), workspace().scratch, all);
    }
    HostTensor host(machine_, all.shape, all.dtype);
    machine_.copy(q_, all, host.tensor());
    q_.wait();
    check_finite(host.tensor());
    const Tensor hidden = host.tensor();
    return {host.take(), hidden, shards_.sharding, shards_.participants(), nullptr};
  }

 private:
  const TextWorkspace& workspace() const { return buffers_.workspace; }

  // Step 8 after layer `layer`.
  void add_deepstack(std::int64_t layer) {
    if (runs_.empty() || layer >= static_cast<std::int64_t>(vision_->deepstack.size())) return;
    const Tensor& features = vision_->deepstack[static_cast<std::size_t>(layer)];
    for (const FeatureRun& run : runs_) {
      const Range own{run.own_row, run.own_row + run.rows};
      // The layer is done with its buffer of own rows.
      const Tensor there = workspace().hidden.rows(own.begin, own.end);
      machine_.copy(q_, features.rows(run.feature, run.feature + run.rows), there);
      machine_.operators().add(q_, x().rows(own.begin, own.end), there);
    }
  }

  struct Buffers {
    Tensor x;         // own rows
    Tensor all_rows;  // sharded by rows: the gathered result
    TextWorkspace workspace;
  };
  static Buffers take_buffers(Arena& arena, const TextEncoder& encoder, const TextShards& shards) {
    const int rank = encoder.communicator_.rank();
    const std::int64_t width = encoder.config_.hidden;
    Buffers b;
    b.x = arena.take({shards.rows_of(rank), width}, encoder.dtype_);
    if (shards.sharding == TextSharding::rows) b.all_rows = arena.take({shards.total_rows, width}, encoder.dtype_);
    b.workspace = take_text_workspace(arena, encoder.config_, shards, rank, encoder.options_.row_chunk, encoder.dtype_);
    return b;
  }

  TextEncoder& encoder_;
  Machine& machine_;
  Queue& q_;
  const Presentation& presentation_;
  const VisionFeatures* vision_;
  TextShards shards_;
  const std::vector<Range>& tiles_;
  std::vector<FeatureRun> runs_;
  Arena arena_;
  Buffers buffers_;
  TextLayer layer_;
};

TextEncoder::TextEncoder(Machine& machine, Communicator& communicator, const TextConfig& config,
                         const WeightSet& weights, const TextEncoderOptions& options)
    : machine_(machine),
      communicator_(communicator),
      config_(config),
      weights_(weights),
      options_(options),
      dtype_(weights.at(kEmbedding).dtype) {
  H3_CHECK(dtype_ == DType::f32 || dtype_ == DType::bf16, std::string(name_of(dtype_)));
  CHECK_GE(options.row_chunk, 1);
}

TextEncoder::~TextEncoder() = default;

TextShards TextEncoder::shards_for(std::int64_t rows) const {
  // A world of one has no traffic to weigh.
  const bool alone = communicator_.size() == 1 && options_.sharding == TextSharding::automatic;
  return make_text_shards(config_, communicator_.size(), rows, alone ? TextSharding::outputs : options_.sharding,
                          options_.rows_from);
}

std::vector<WeightSet> TextEncoder::layer_slices(const TextShards& shards) const {
  std::vector<WeightSet> slices;
  for (std::int64_t i = 0; i < config_.state; ++i) {
    slices.push_back(text_layer_weights(weights_, i, shards, config_, communicator_.rank()));
  }
  return slices;
}

std::size_t TextEncoder::device_bytes(std::int64_t rows) const {
  const TextShards shards = shards_for(rows);
  return Session::activation_bytes(*this, shards) +
         WeightGroups::device_bytes(layer_slices(shards), options_.residency);
}

WeightGroups& TextEncoder::layers_for(Queue& q, const TextShards& shards) {
  if (!layers_ || layers_sharding_ != shards.sharding) {
    layers_.reset();
    layers_ = std::make_unique<WeightGroups>(machine_, q, layer_slices(shards), options_.residency);
    layers_sharding_ = shards.sharding;
  }
  return *layers_;
}

std::unique_ptr<TextEncoder::Session> TextEncoder::begin(Queue& q, const TextRequest& request) {
  const auto features = static_cast<std::int64_t>(request.presentation.vision_rows().size());
  CHECK_GE(request.presentation.rows(), 1);
  check_tokens(request.presentation, config_);
  check_features(request.vision, features, config_, dtype_);
  auto session = std::make_unique<Session>(*this, q, request.presentation, request.vision);
  session->load();
  return session;
}

void TextEncoder::go_through_layers(Queue& q, std::span<Session* const> sessions, const LayerObserver& observer) {
  if (sessions.empty()) return;
  WeightGroups& layers = layers_for(q, sessions.front()->shards());
  for (std::int64_t i = 0; i < config_.state; ++i) {
    const WeightSet& weights = layers.use(q, static_cast<std::size_t>(i));
    for (Session* session : sessions) {
      if (observer) observer(i, session->x());
      session->run(i, weights);
    }
  }
}

std::vector<TextStates> TextEncoder::encode_all(Queue& q, std::span<const TextRequest> requests,
                                                const LayerObserver& observer) {
  std::vector<TextStates> results(requests.size());
  std::vector<std::unique_ptr<Session>> sessions(requests.size());
  const auto attempt = [&](std::size_t i, auto&& work) {
    try {
      work();
    } catch (const UserError&) {
      results[i].error = std::current_exception();
    } catch (const SceneError&) {
      results[i].error = std::current_exception();
    }
  };
  for (std::size_t i = 0; i < requests.size(); ++i) attempt(i, [&] { sessions[i] = begin(q, requests[i]); });
  // Slices of the weights differ with the sharding.
  for (const TextSharding sharding : {TextSharding::outputs, TextSharding::rows}) {
    std::vector<Session*> alike;
    for (const auto& session : sessions)
      if (session && session->shards().sharding == sharding) alike.push_back(session.get());
    go_through_layers(q, alike, observer);
  }
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (sessions[i]) attempt(i, [&] { results[i] = sessions[i]->collect(); });
  return results;
}

TextStates TextEncoder::encode(Queue& q, const Presentation& presentation, const VisionFeatures* vision,
                               const LayerObserver& observer) {
  const TextRequest request{presentation, vision};
  TextStates states = std::move(encode_all(q, {&request, 1}, observer).front());
  if (states.error) std::rethrow_exception(states.error);
  return states;
}

}  // namespace h3
