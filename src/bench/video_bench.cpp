#include "base/hash.h"
#include "base/log.h"
#include "bench/benches.h"
#include "bench/random_tensors.h"
#include "render/run_plan.h"
#include "vae/video_decode.h"

namespace h3 {

void bench_video(Bench& bench, const ClipSize& clip, BenchTable& table) {
  Session& s = bench.session();
  StageTimes times;
  const ClipGeometry geometry = clip_geometry(clip.width, clip.height, clip.frames);
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
  table.add(std::move(row));
  if (s.first()) table.note(fmt::format("frames {}", hasher.hex()));
}

}  // namespace h3
