#include "render/run_plan.h"

#include <algorithm>

#include "render/progress.h"
#include "transformer/block.h"
#include "vae/chunk_plan.h"
#include "vae/tile_plan.h"
#include "weights/load.h"
#include "weights/tensor_plan.h"

namespace h3 {

StepWork step_work(const TransformerConfig& c, std::int64_t rows, std::int64_t own_rows, std::int64_t own_heads) {
  const double h = static_cast<double>(c.hidden), inner = static_cast<double>(c.inner()),
               f = static_cast<double>(c.ffn);
  const double heads = static_cast<double>(own_heads) / static_cast<double>(c.heads);
  const double s = static_cast<double>(rows), r = static_cast<double>(own_rows);
  const double layers = static_cast<double>(c.layers);
  const double qkv = 2 * h * 3 * inner * heads * s;  // with all-gather; with all-to-all the same sum over ranks
  const double row_local = 2 * (inner * h + h * 2 * f + f * h) * r;
  return {layers * (qkv + row_local), layers * (4 * s * s * inner * heads)};
}

double step_flops(const TransformerConfig& c, std::int64_t rows, std::int64_t own_rows, std::int64_t own_heads) {
  const StepWork work = step_work(c, rows, own_rows, own_heads);
  return work.linear + work.attention;
}

double text_flops(const TextConfig& c, std::int64_t rows) {
  const double h = static_cast<double>(c.hidden), q = static_cast<double>(c.heads * c.head_dim),
               kv = static_cast<double>(c.kv_heads * c.head_dim), f = static_cast<double>(c.ffn),
               n = static_cast<double>(rows);
  const double linear = 2 * n * h * (2 * q + 2 * kv + 3 * f);
  return static_cast<double>(c.state) * (linear + 2 * n * n * q);  // of causal attention half the pairs
}

double tile_flops(const VideoVaeConfig& c, std::int64_t tokens) {
  const double w = static_cast<double>(c.decoder_width()), s = static_cast<double>(tokens + c.registers + 1);
  const double patch = static_cast<double>(c.ratio_t() * c.ratio_s() * c.ratio_s() * c.out_channels);
  const double linears = 2 * s * w * w * static_cast<double>(3 + 1 + 3 * c.decoder_ffn_mult);
  return static_cast<double>(c.decoder_layers) * (linears + 4 * s * s * w) +
         2 * static_cast<double>(tokens) * w * (static_cast<double>(c.latent_channels) + patch);
}

double decode_flops(const VideoVaeConfig& c, const ClipGeometry& clip) {
  const TilePlan tiles = plan_tiles(c, clip.height, clip.width);
  const ChunkPlan chunks = plan_chunks(temporal_grid(c), clip.latent_frames);
  const std::int64_t side = c.ratio_s();
  const std::int64_t tokens = chunks.chunk_tokens * (tiles.y.tile / side) * (tiles.x.tile / side);
  return static_cast<double>(chunks.chunks * tiles.count()) * tile_flops(c, tokens);
}

namespace {

RankPlan plan_rank(const PlanRequest& q, const RunPlan& run, int rank, const TransformerOptions& options) {
  const TransformerConfig& t = q.model.transformer;
  const auto r = static_cast<std::size_t>(rank);
  const DType dtype = q.precision == Precision::f32 ? DType::f32 : DType::bf16;
  const std::size_t element = size_of(dtype);
  RankPlan p;
  p.rows = run.shards.rows[r].size();
  p.heads = run.shards.heads[r].size();
  p.step_flops = step_flops(t, run.rows, p.rows, p.heads);
  if (q.ranks > 1)
    p.step_bytes_received =
        static_cast<double>(t.layers) * exchange_bytes(run.pattern, run.shards, rank, t.hidden, t.head_dim, element);
  Arena planner;
  const Tensor staging = take_block_workspace(planner, t, run.shards, rank, run.pattern, q.row_chunk, dtype).staging;
  if (staging.rank() > 0) p.exchange_buffer_bytes = static_cast<double>(staging.bytes());
  p.activation_bytes = static_cast<double>(Transformer::activation_bytes(t, run.shards, rank, options) +
                                           ModulationTables::table_bytes(t, q.evaluations, dtype));
  const double heads = q.ranks > 1 && run.pattern == ExchangePattern::all_gather
                           ? static_cast<double>(p.heads) / static_cast<double>(t.heads)
                           : 1.0;
  const double h = static_cast<double>(t.hidden), inner = static_cast<double>(t.inner()),
               f = static_cast<double>(t.ffn);
  p.weight_bytes =
      static_cast<double>(t.layers) * (h * 3 * inner * heads + inner * h + 3 * h * f) * static_cast<double>(element);
  p.block_bytes = p.weight_bytes / static_cast<double>(t.layers);
  return p;
}

double decoder_weights(const ModelConfig& model, const LoadOptions& load) {
  double bytes = 0;
  for (const LoadedTensor& tensor : plan_memory(plan_component(model, Component::video_vae), load).tensors)
    if (tensor.name.starts_with("decoder.")) bytes += static_cast<double>(tensor.bytes());
  return bytes;
}

// "12.3 GiB", of the rank that takes most.
std::string most_device_bytes(const RunPlan& run, bool streamed) {
  double most = 0;
  for (const RankPlan& rank : run.ranks) most = std::max(most, rank.device_bytes(streamed));
  return bytes_text(most);
}

}  // namespace

void add_conditions(PlanRequest& request, const std::vector<MediaItem>& media) {
  for (const MediaItem& item : media) {
    request.condition_rows += item.visual_rows();
    request.audio_condition_rows += item.audio_rows();
  }
}

RunPlan make_run_plan(const PlanRequest& q) {
  RunPlan run;
  const TransformerConfig& t = q.model.transformer;
  run.text_rows = q.text_rows;
  run.video_rows = q.geometry.video_rows();
  run.audio_rows = q.geometry.audio_rows();
  run.condition_rows = q.condition_rows;
  run.audio_condition_rows = q.audio_condition_rows;
  run.rows = run.text_rows + run.video_rows + run.audio_rows + run.condition_rows + run.audio_condition_rows;
  run.pattern = choose_exchange(q.exchange, q.ranks, t.hidden, t.inner());
  run.shards = make_shard_plan(run.rows, t.heads, q.row_shares, q.head_shares);
  TransformerOptions options;
  options.precision = q.precision;
  options.pattern = run.pattern;
  options.row_chunk = q.row_chunk;
  VideoDecodeRequest decode;
  decode.latent_frames = q.geometry.latent_frames;
  decode.height = q.geometry.height;
  decode.width = q.geometry.width;
  const VideoDecodeMemory decoding = video_decode_memory(q.model.video_vae, q.profile, decode, q.ranks);
  LoadOptions load;
  load.precision = q.precision;
  load.vae_profile = q.profile;
  for (int rank = 0; rank < q.ranks; ++rank) {
    run.ranks.push_back(plan_rank(q, run, rank, options));
    run.ranks.back().decode_bytes = static_cast<double>(decoding.device);
    run.ranks.back().decoder_weight_bytes = decoder_weights(q.model, load);
    run.step_flops += run.ranks.back().step_flops;
  }
  run.total_flops = run.step_flops * static_cast<double>(q.evaluations);
  run.decode_flops = decode_flops(q.model.video_vae, q.geometry);
  const auto bytes_of = [&](Component c) {
    return static_cast<double>(plan_memory(plan_component(q.model, c), load).bytes);
  };
  const double transformer = bytes_of(Component::transformer), text_encoder = bytes_of(Component::text_encoder);
  const double decoders = bytes_of(Component::video_vae) + bytes_of(Component::audio_vae);
  run.node_weight_bytes = transformer + text_encoder + decoders;
  run.node_passing_bytes = std::max(transformer, text_encoder) + decoders;
  run.frames_bytes = static_cast<double>(q.geometry.frames * q.geometry.width * q.geometry.height * 3);
  return run;
}

std::string text_of(const RunPlan& run) {
  std::string s = fmt::format("rows {} = text {} + audio {} + video {} + conditions {}\n", run.rows, run.text_rows,
                              run.audio_rows, run.video_rows, run.condition_rows + run.audio_condition_rows);
  s += fmt::format("exchange {}; {:.3f} TFLOP an evaluation, {:.3f} TFLOP in all, {:.3f} TFLOP to decode\n",
                   name_of(run.pattern), run.step_flops / 1e12, run.total_flops / 1e12, run.decode_flops / 1e12);
  s += fmt::format("host memory a node: weights {} (at least {}), decoded frames {}\n",
                   bytes_text(run.node_weight_bytes), bytes_text(run.node_passing_bytes), bytes_text(run.frames_bytes));
  s += fmt::format("{:>4} {:>9} {:>6} {:>14} {:>14} {:>13} {:>13} {:>13} {:>13}\n", "rank", "rows", "heads",
                   "TFLOP/step", "received/step", "activations", "(exchange)", "weights", "decoding");
  for (std::size_t r = 0; r < run.ranks.size(); ++r) {
    const RankPlan& p = run.ranks[r];
    s += fmt::format("{:>4} {:>9} {:>6} {:>14.3f} {:>14} {:>13} {:>13} {:>13} {:>13}\n", r, p.rows, p.heads,
                     p.step_flops / 1e12, bytes_text(p.step_bytes_received), bytes_text(p.activation_bytes),
                     bytes_text(p.exchange_buffer_bytes), bytes_text(p.weight_bytes), bytes_text(p.decode_bytes));
  }
  s += fmt::format("memory of a rank's device at most: {} with resident blocks, {} with streamed ones\n",
                   most_device_bytes(run, false), most_device_bytes(run, true));
  return s;
}

nlohmann::ordered_json to_json(const RunPlan& run) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (std::size_t r = 0; r < run.ranks.size(); ++r) {
    const RankPlan& p = run.ranks[r];
    ranks.push_back({{"rank", r},
                     {"rows", p.rows},
                     {"heads", p.heads},
                     {"step_flops", p.step_flops},
                     {"step_bytes_received", p.step_bytes_received},
                     {"activation_bytes", p.activation_bytes},
                     {"exchange_buffer_bytes", p.exchange_buffer_bytes},
                     {"weight_bytes", p.weight_bytes},
                     {"decode_bytes", p.decode_bytes},
                     {"decoder_weight_bytes", p.decoder_weight_bytes},
                     {"device_bytes_resident", p.device_bytes(false)},
                     {"device_bytes_streamed", p.device_bytes(true)}});
  }
  return {{"rows", run.rows},
          {"text_rows", run.text_rows},
          {"audio_rows", run.audio_rows},
          {"video_rows", run.video_rows},
          {"condition_rows", run.condition_rows},
          {"audio_condition_rows", run.audio_condition_rows},
          {"exchange", std::string(name_of(run.pattern))},
          {"step_flops", run.step_flops},
          {"total_flops", run.total_flops},
          {"decode_flops", run.decode_flops},
          {"node_weight_bytes", run.node_weight_bytes},
          {"node_passing_bytes", run.node_passing_bytes},
          {"frames_bytes", run.frames_bytes},
          {"ranks", ranks}};
}

}  // namespace h3
