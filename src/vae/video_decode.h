// Decodes a clip's latents to frames on all ranks (spec/vae.md 9 to 12). Each rank decodes its block of work units
// without talking to others; then the tiles of chunks that were cut between ranks go to the owner of the chunk's first
// unit, tails go to the owner of the next chunk, and finished frames go to the writer, which gets them in order.
// Every transfer is a point in one list that all ranks walk in the same order, so blocking sends cannot wait in a
// circle, and ranks without work take no part. The device never waits for the host: units are queued ahead, and frames
// leave through page-locked memory beside them (vae/frame_handover.h). Memory does not grow with the clip, except for
// the 8-bit frames that a rank other than the writer keeps until they are asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "compute/machine.h"
#include "parallel/communicator.h"
#include "vae/video_decoder.h"

namespace h3 {

// Tiles that are decoded together. A constant: more fill the device better, and a tile's bits do not depend on it.
inline constexpr std::int64_t kTilesPerUnit = 7;
// The rank that gets the frames.
inline constexpr int kWriterRank = 0;

struct VideoDecodeRequest {
  std::int64_t latent_frames = 0;
  std::int64_t height = 0, width = 0;  // pixels, multiples of 32
  std::vector<double> shares;          // one a rank; empty: equal
  bool truncate = false;               // to 8 bits by rounding down instead of half to even (spec/vae.md 11)
  std::int64_t tiles_per_unit = kTilesPerUnit;
};

struct VideoDecodeCalls {
  // On the writer: frames [n, height, width, 3] u8 on the host, valid during the call, in order and without gaps. It is
  // called on a thread of its own, one call at a time, the last before decode_video returns; it must not communicate.
  // A SceneError that it throws (disk full) is thrown again on every rank when the decode has ended.
  std::function<void(std::int64_t first_frame, const Tensor& frames)> frames;
  // On the rank that made them, in any order: frames [3, n, height, width] f32 at Machine::place() before
  // denormalisation, plane stride free. Optional.
  std::function<void(Queue& q, std::int64_t first_frame, const Tensor& frames)> raw;
  // After each of this rank's units. Optional.
  std::function<void(std::int64_t done, std::int64_t units)> progress;
  // Asked on each rank before each of its units: true leaves out the rest; then `together` must throw. Optional.
  std::function<bool()> stopped;
  // Called once where all ranks are together, when their units are done or left out. It may throw on every rank alike.
  std::function<void()> together;
};

struct VideoDecodeReport {
  std::int64_t frames = 0, chunks = 0, tiles = 0;  // tiles of a chunk
  std::vector<std::int64_t> units_by_rank;
  int ranks_with_work = 0;
  std::int64_t nan_values = 0;  // pixel values that were not a number and became 0, over all ranks
};

// Collective. `rows` [latent_frames * height / 32 * width / 32, 4 * channels] f32, the transformer's video rows (the
// final latents, normalised), contiguous, anywhere, equal on every rank. Throws UserError for a canvas or a model
// geometry that cannot be decoded. Prepares `decoder` for the canvas.
VideoDecodeReport decode_video(Machine& machine, Queue& q, Communicator& ranks, VideoDecoder& decoder,
                               const Tensor& rows, const VideoDecodeRequest& request, const VideoDecodeCalls& calls);

// What decode_video takes beside the weights on the rank of `ranks` that takes most, for plans: bytes at
// Machine::place() and in host memory.
struct VideoDecodeMemory {
  std::size_t device = 0, host = 0;
};
VideoDecodeMemory video_decode_memory(const VideoVaeConfig& config, VaeProfile profile,
                                      const VideoDecodeRequest& request, int ranks);

}  // namespace h3
