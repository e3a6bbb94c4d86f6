// Under mpirun: frames, latents and rows have the same bits on any number of ranks, with any shares, as on one.
#include <cstdio>
#include <numeric>

#include "base/hash.h"
#include "compute/operators.h"
#include "parallel/cluster.h"
#include "parallel/mpi_communicator.h"
#include "parallel/solo_communicator.h"
#include "vae/audio_encoder.h"
#include "vae/video_encode.h"
#include "vae_fixture.h"

using namespace h3;
using namespace h3::test;

namespace {

std::vector<std::vector<double>> share_vectors(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<double> even(n, 1.0), rising(n), last(n, 0.0), gap(n, 1.0), rest(n, 1.0);
  std::iota(rising.begin(), rising.end(), 1.0);
  last.back() = 1;  // all work away from the writer
  gap[n / 2] = n > 1 ? 0 : 1;
  rest[0] = n > 1 ? 0 : 1;
  return {even, rising, last, gap, rest};
}

std::string hash_of(const DecodedClip& clip) {
  return hash_hex(clip.u8.data(), clip.u8.size());
}

void check_decoding(Machine& machine, Communicator& ranks) {
  const VideoVaeConfig config = small_vae_config();
  const WeightSet weights = small_vae_weights(config);
  const auto q = machine.make_queue();
  VideoDecoder decoder(machine, *q, config, weights, VaeProfile::F);
  struct Clip {
    std::int64_t latent_frames, height, width, group;
  };
  // Chunks x units: 4 x 2, 1 x 1 (fewer units than ranks), 2 x 4, 3 x 1, 2 x 2 padded.
  for (const Clip& c :
       {Clip{22, 288, 32, 1}, Clip{2, 32, 64, 4}, Clip{12, 288, 288, 1}, Clip{17, 32, 480, 4}, Clip{9, 32, 576, 2}}) {
    VideoDecodeRequest request;
    request.latent_frames = c.latent_frames;
    request.height = c.height;
    request.width = c.width;
    request.tiles_per_unit = c.group;
    const Rows rows = random_rows(config, c.latent_frames, c.height / 16, c.width / 16);
    const DecodedClip expected = decode_alone(machine, decoder, rows, request);
    for (const auto& shares : share_vectors(ranks.size())) {
      request.shares = shares;
      const DecodedClip clip = decode(machine, ranks, decoder, rows, request);
      CHECK_EQ(clip.report.frames, expected.frames);
      CHECK_EQ(clip.frames, ranks.rank() == kWriterRank ? expected.frames : 0);
      if (ranks.rank() == kWriterRank) CHECK_EQ(hash_of(clip), hash_of(expected));
      for (const auto& [f, frame] : clip.raw) H3_CHECK(frame == expected.raw.at(f));
      CHECK_EQ(std::accumulate(clip.report.units_by_rank.begin(), clip.report.units_by_rank.end(), std::int64_t{0}),
               expected.report.units_by_rank[0]);
    }
  }
}

void check_failing_writer(Machine& machine, Communicator& ranks) {
  const VideoVaeConfig config = small_vae_config();
  const WeightSet weights = small_vae_weights(config);
  const auto q = machine.make_queue();
  VideoDecoder decoder(machine, *q, config, weights, VaeProfile::F);
  VideoDecodeRequest request;
  request.latent_frames = 17;
  request.height = request.width = 32;
  const Rows rows = random_rows(config, 17, 2, 2);
  VideoDecodeCalls calls;
  calls.frames = [](std::int64_t, const Tensor&) { throw SceneError("no space left"); };
  bool failed = false;
  try {
    decode_video(machine, *q, ranks, decoder, rows.tensor(), request, calls);
  } catch (const SceneError& error) {
    failed = std::string(error.what()) == "no space left";
  }
  H3_CHECK(failed, "every rank hears of the writer's failure");
}

void check_video_encoding(Machine& machine, Communicator& ranks) {
  const VideoVaeConfig config = small_vae_config();
  const WeightSet weights = small_vae_weights(config);
  const auto q = machine.make_queue();
  VideoEncoder encoder(machine, *q, config, weights);
  for (const auto& shape : {Shape{22, 32, 272, 3}, Shape{1, 288, 288, 3}, Shape{1, 32, 32, 3}}) {
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(shape.elements()));
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * i % 251);
    const Tensor frames(pixels.data(), shape, DType::u8);
    SoloCommunicator alone(machine);
    const LatentVolume expected = encode_video(machine, *q, alone, encoder, frames);
    for (const auto& shares : share_vectors(ranks.size())) {
      const LatentVolume latent = encode_video(machine, *q, ranks, encoder, frames, Posterior::sample42, shares);
      H3_CHECK(latent.shape == expected.shape);
      H3_CHECK(latent.values == expected.values);
    }
  }
}

void check_audio_encoding(Machine& machine, Communicator& ranks) {
  const auto q = machine.make_queue();
  AudioEncoder encoder(machine, *q, nano_config().audio_vae, nano_weights(Component::audio_vae));
  std::vector<float> wave(2 * 5000);
  for (std::size_t i = 0; i < wave.size(); ++i) wave[i] = static_cast<float>(i * i % 2003) / 2003.0f - 0.5f;
  const std::vector<Tensor> sounds{Tensor(wave.data(), {2, 5000}, DType::f32),
                                   Tensor(wave.data(), {2, 801}, DType::f32)};
  SoloCommunicator alone(machine);
  const auto expected = encode_sounds(machine, *q, alone, encoder, sounds);
  for (const auto& shares : share_vectors(ranks.size())) {
    const auto rows = encode_sounds(machine, *q, ranks, encoder, sounds, shares);
    CHECK_EQ(rows.size(), expected.size());
    for (std::size_t i = 0; i < rows.size(); ++i) H3_CHECK(rows[i].values == expected[i].values);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Cluster cluster(&argc, &argv);
  try {
    const auto machine = make_cpu_machine();
    MpiCommunicator ranks(MPI_COMM_WORLD, *machine);
    check_decoding(*machine, ranks);
    check_failing_writer(*machine, ranks);
    check_video_encoding(*machine, ranks);
    check_audio_encoding(*machine, ranks);
    if (ranks.rank() == 0) std::puts("vae: the same bits on every rank count");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rank %d: %s\n", cluster.rank(), e.what());
    Cluster::abort(1);
  }
  return 0;
}
