// What a scene costs on a number of ranks, worked out without running it: rows and heads a rank, floating-point
// operations, bytes exchanged, memory a rank and a node. Printed before a run, and by the command `plan`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "parallel/exchange.h"
#include "render/scene_media.h"
#include "scene/geometry.h"
#include "transformer/transformer.h"
#include "vae/video_decode.h"
#include "weights/model_config.h"

namespace h3 {

struct PlanRequest {
  ModelConfig model;
  ClipGeometry geometry;
  std::int64_t text_rows = 0, condition_rows = 0, audio_condition_rows = 0;
  std::int64_t evaluations = 0;
  int ranks = 1;
  std::vector<double> row_shares, head_shares;  // one a rank
  std::string exchange = "auto";
  Precision precision = Precision::f32;
  VaeProfile profile = VaeProfile::F;
  std::int64_t row_chunk = 0;
};

struct RankPlan {
  std::int64_t rows = 0, heads = 0;
  double step_flops = 0;
  double step_bytes_received = 0;
  double activation_bytes = 0;       // while denoising, modulation tables and exchange buffers included
  double exchange_buffer_bytes = 0;  // of them: where rows wait to be sent or sorted by head
  double weight_bytes = 0;           // of the transformer's blocks and ends, where they are resident on a device
  double decode_bytes = 0;           // video decoder's buffers
  double decoder_weight_bytes = 0;   // of the video decoder
  double block_bytes = 0;            // of the largest block's weights, of which a streaming rank holds two
  // At most on the device during a render: the transformer stays there while frames are decoded. Context and libraries
  // come on top.
  double device_bytes(bool streamed) const {
    return (streamed ? 2 * block_bytes : weight_bytes) + activation_bytes + decoder_weight_bytes + decode_bytes;
  }
};

struct RunPlan {
  std::int64_t rows = 0, text_rows = 0, video_rows = 0, audio_rows = 0;
  std::int64_t condition_rows = 0, audio_condition_rows = 0;  // of keyframes, guides and references
  ExchangePattern pattern = ExchangePattern::all_gather;
  ShardPlan shards;
  std::vector<RankPlan> ranks;
  double step_flops = 0, total_flops = 0, decode_flops = 0;
  double node_weight_bytes = 0;   // all components in the node's one copy
  double node_passing_bytes = 0;  // the most of them at once, where they pass through memory (--host-reserve)
  double frames_bytes = 0;        // decoded frames, 8 bits
};

// Adds the rows that a scene's media take.
void add_conditions(PlanRequest& request, const std::vector<MediaItem>& media);
RunPlan make_run_plan(const PlanRequest& request);

// spec/dit.md 1.3: operations of one evaluation over `rows` rows, of which this rank owns `own_rows` and `own_heads`.
struct StepWork {
  double linear = 0, attention = 0;
};
StepWork step_work(const TransformerConfig& config, std::int64_t rows, std::int64_t own_rows, std::int64_t own_heads);
double step_flops(const TransformerConfig& config, std::int64_t rows, std::int64_t own_rows, std::int64_t own_heads);
// spec/text.md 6: operations of encoding a prompt of `rows` rows.
double text_flops(const TextConfig& config, std::int64_t rows);
// spec/vae.md 13: operations of decoding one tile of `tokens` latent tokens.
double tile_flops(const VideoVaeConfig& config, std::int64_t tokens);
// The same for all tiles of all chunks of a clip.
double decode_flops(const VideoVaeConfig& config, const ClipGeometry& clip);

std::string text_of(const RunPlan& plan);
nlohmann::ordered_json to_json(const RunPlan& plan);

}  // namespace h3
