#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/log.h"
#include "bench/attention_engines.h"
#include "bench/benches.h"
#include "bench/random_tensors.h"
#include "render/run_plan.h"
#include "vae/chunk_plan.h"
#include "vae/tile_plan.h"
#include "vae/video_decode.h"
#include "vae/work_plan.h"

namespace h3 {

namespace {

// Attention of one tile to itself.
BenchRow time_tile_attention(Bench& bench, std::int64_t rows, const VideoVaeConfig& c, DType dtype) {
  RandomTensors random(bench.machine(), bench.queue());
  const Tensor qkv = random.make({rows, 3 * c.decoder_width()}, dtype),
               o = random.make({rows, c.decoder_width()}, dtype);
  const QkvViews x = qkv_views(qkv, c.decoder_head_dim);
  Operators::Attention spec;
  spec.scale = 1.0f / std::sqrt(static_cast<float>(c.decoder_head_dim));
  BenchRow row = bench.time(
      fmt::format("attention {} rows, {} heads of {}, a tile", rows, c.decoder_heads, c.decoder_head_dim),
      [&] { bench.machine().operators().attention(bench.queue(), x.q, x.k, x.v, o.split(1, c.decoder_heads), spec); });
  row.flops = attention_flops(rows, c.decoder_heads, c.decoder_head_dim) * bench.ranks();
  return row;
}

// Seconds that the decoder's blocks take at least, on the rank with most units; its operators go into the table.
double decode_ceiling(Bench& bench, const ClipGeometry& clip, BenchTable& table) {
  Session& s = bench.session();
  const VideoVaeConfig& c = s.config().video_vae;
  const DType dtype = s.vae_profile() == VaeProfile::F ? DType::f32 : DType::f16;
  const TilePlan tiles = plan_tiles(c, clip.height, clip.width);
  const ChunkPlan chunks = plan_chunks(temporal_grid(c), clip.latent_frames);
  const WorkPlan work(chunks.chunks, tiles.count(), kTilesPerUnit, s.row_shares());
  const std::int64_t tokens = chunks.chunk_tokens * (tiles.y.tile / c.ratio_s()) * (tiles.x.tile / c.ratio_s());
  const std::int64_t rows = tokens + c.registers + 1, unit = std::min(kTilesPerUnit, tiles.count());
  const std::int64_t w = c.decoder_width(), m = c.decoder_ffn_mult;
  const struct {
    const char* name;
    std::int64_t n, k;
  } layers[] = {{"qkv", 3 * w, w}, {"out", w, w}, {"up", 2 * m * w, w}, {"down", w, m * w}};
  double seconds = 0;
  for (const auto& layer : layers) {
    table.add(time_linear(bench, layer.name, unit * rows, {layer.k, layer.n, dtype, dtype, dtype}, layer.n));
    seconds += table.rows().back().time.median;
  }
  table.add(time_tile_attention(bench, rows, c, dtype));
  seconds += table.rows().back().time.median * static_cast<double>(unit);
  std::int64_t most = 0;
  for (int r = 0; r < bench.ranks(); ++r) {
    std::int64_t mine = 0;
    const Range units = work.units_of_rank(r);
    for (std::int64_t u = units.begin; u < units.end; ++u) mine += work.unit(u).tiles.size();
    most = std::max(most, mine);
  }
  return seconds * static_cast<double>(c.decoder_layers) * static_cast<double>(most) / static_cast<double>(unit);
}

}  // namespace

void bench_video(Bench& bench, const ClipSize& clip, BenchTable& table) {
  Session& s = bench.session();
  StageTimes times;
  const ClipGeometry geometry = clip_geometry(clip.width, clip.height, clip.frames);
  const double ceiling = decode_ceiling(bench, geometry, table);
  VideoDecodeRequest request;
  request.height = clip.height;
  request.width = clip.width;
  request.latent_frames = geometry.latent_frames;
  request.shares = s.row_shares();
  VideoDecoder decoder(s.machine(), s.queue(), s.config().video_vae, s.weights(Component::video_vae, times),
                       s.vae_profile());
  const std::int64_t rows = request.latent_frames * (request.height / 32) * (request.width / 32);
  const std::int64_t width = s.config().transformer.video_row();
  std::vector<float> latents = random_values(rows * width, 3);
  const Tensor x(latents.data(), {rows, width}, DType::f32);
  VideoDecodeCalls calls;
  Hasher hasher;
  calls.frames = [&](std::int64_t, const Tensor& frames) { hasher.add(frames.data, frames.bytes()); };
  BenchRow row = bench.time(
      fmt::format("decode {} frames {}x{} on {}", clip.frames, clip.width, clip.height, ranks_text(bench.ranks())),
      [&] {
        hasher = Hasher();
        decode_video(s.machine(), s.queue(), s.communicator(), decoder, x, request, calls);
      });
  row.flops = decode_flops(s.config().video_vae, geometry);
  row.ceiling = ceiling;
  table.add(std::move(row));
  if (s.first()) table.note(fmt::format("frames {}", hasher.hex()));
}

}  // namespace h3
