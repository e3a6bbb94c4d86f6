#include "render/run_prediction.h"

#include "render/progress.h"
#include "vae/chunk_plan.h"
#include "vae/tile_plan.h"

namespace h3 {

// Groups of tiles that the decoder deals to ranks.
static std::int64_t decode_units(const PlanRequest& q) {
  const std::int64_t tiles = plan_tiles(q.model.video_vae, q.geometry.height, q.geometry.width).count();
  const std::int64_t chunks = plan_chunks(temporal_grid(q.model.video_vae), q.geometry.latent_frames).chunks;
  return chunks * ((tiles + kTilesPerUnit - 1) / kTilesPerUnit);
}

RunPrediction predict_run(const PlanRequest& q, const RunPlan& plan, const PredictionRequest& prediction) {
  StepRanks ranks;
  ranks.plan = plan.shards;
  ranks.pattern = plan.pattern;
  ranks.element = q.precision == Precision::f32 ? 4 : 2;
  ranks.ranks_per_node = prediction.ranks_per_node;
  if (prediction.streamed)
    for (const RankPlan& rank : plan.ranks) ranks.streamed_bytes = std::max(ranks.streamed_bytes, rank.weight_bytes);
  RunPrediction p;
  p.rates = prediction.rates;
  p.streamed = prediction.streamed;
  p.nodes = prediction.ranks_per_node > 0 ? (q.ranks + prediction.ranks_per_node - 1) / prediction.ranks_per_node : 1;
  p.step = predict_step(q.model.transformer, ranks, prediction.rates);
  p.denoise = p.step.seconds() * static_cast<double>(q.evaluations);
  p.decode = predict_decode(plan.decode_flops, decode_units(q), q.ranks, prediction.rates);
  return p;
}

std::string text_of(const RunPrediction& p) {
  std::string text = fmt::format(
      "predicted: step {:.3f} s (compute {:.3f}, then exchange {:.3f}{}; bound by {}), denoising {}, decoding {}\n",
      p.step.seconds(), p.step.compute, p.step.exchange,
      p.streamed ? fmt::format("; beside them weights {:.3f}", p.step.streaming) : "", p.step.bound(),
      duration_text(p.denoise), duration_text(p.decode));
  const StepRates& r = p.rates;
  text += fmt::format(
      "  by rates {}: linear {:.0f} and attention {:.0f} TFLOP/s, {:.0f} GB/s received from the node's ranks and "
      "{:.2f} ms "
      "a layer",
      r.source, r.linear / 1e12, r.attention / 1e12, r.link / 1e9, r.exchange_delay * 1e3);
  if (p.nodes > 1) text += fmt::format(", {:.0f} GB/s from the other ranks of {} nodes", r.node_link / 1e9, p.nodes);
  if (p.streamed) text += fmt::format(", weights {:.0f} GB/s from host memory", r.host_link / 1e9);
  return text +
         fmt::format(", decoder {:.0f} TFLOP/s; text, sound, loading and writing are left out\n", r.decode / 1e12);
}

nlohmann::ordered_json to_json(const RunPrediction& p) {
  return {{"step_seconds", p.step.seconds()},
          {"compute_seconds", p.step.compute},
          {"exchange_seconds", p.step.exchange},
          {"weights_seconds", p.step.streaming},
          {"bound_by", std::string(p.step.bound())},
          {"denoise_seconds", p.denoise},
          {"decode_seconds", p.decode},
          {"nodes", p.nodes},
          {"rates", to_json(p.rates)}};
}

}  // namespace h3
