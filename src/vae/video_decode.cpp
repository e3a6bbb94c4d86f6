#include "vae/video_decode.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "vae/chunk_plan.h"
#include "vae/frame_join.h"
#include "vae/frame_output.h"
#include "vae/latent_grid.h"
#include "vae/tile_plan.h"
#include "vae/tile_stitch.h"
#include "vae/work_plan.h"

namespace h3 {

namespace {

constexpr int kTilesTag = 1;
constexpr int kTailTag = 2;

// What the request means: everything that follows from shapes, the same on every rank.
struct Plan {
  ChunkPlan chunks;
  TilePlan tiles;  // in pixels
  TokenGrid grid;  // of one tile
  WorkPlan work;
  std::int64_t ratio, latent_channels, channels, height, width;

  static Plan make(const VideoVaeConfig& config, const VideoDecodeRequest& request, int ranks) {
    const TemporalGrid temporal = temporal_grid(config);
    // Rows of the transformer hold 2 x 2 latents.
    const std::int64_t unit = 2 * config.ratio_s();
    if (request.height <= 0 || request.width <= 0 || request.height % unit != 0 || request.width % unit != 0)
      throw UserError("canvas", "width x height", fmt::format("{} x {}", request.width, request.height),
                      fmt::format("positive multiples of {}", unit));
    const ChunkPlan chunks = plan_chunks(temporal, request.latent_frames);
    const TilePlan tiles = plan_tiles(config, request.height, request.width);
    const TokenGrid grid{chunks.chunk_tokens, tiles.y.tile / config.ratio_s(), tiles.x.tile / config.ratio_s()};
    std::vector<double> shares = request.shares;
    if (shares.empty()) shares.assign(static_cast<std::size_t>(ranks), 1.0);
    CHECK_EQ(shares.size(), static_cast<std::size_t>(ranks));
    return {chunks,
            tiles,
            grid,
            WorkPlan(chunks.chunks, tiles.count(), request.tiles_per_unit, shares),
            config.ratio_s(),
            config.latent_channels,
            config.out_channels,
            request.height,
            request.width};
  }

  Shape tile_shape() const { return {channels, chunks.decoded, tiles.y.tile, tiles.x.tile}; }
  Shape canvas_shape() const { return {channels, chunks.decoded, height, width}; }
  std::int64_t planes() const { return channels * chunks.decoded; }
  // Latents of a chunk, one row a token.
  Shape chunk_latents_shape() const {
    return {chunks.chunk_tokens * (height / ratio) * (width / ratio), latent_channels};
  }
  std::size_t tile_rows_bytes() const {
    return static_cast<std::size_t>(tiles.count() * grid.tokens()) * size_of(DType::i32);
  }
  // Clip frames that a rank makes: those of its chunks, and the last chunk's tail.
  Range frames_of(int rank) const {
    const Range own = work.pieces_of_owner(rank);
    if (own.size() == 0) return {};
    const std::int64_t end = own.end == chunks.chunks ? chunks.tail_frames().end : chunks.head_frames(own.end - 1).end;
    return {chunks.head_frames(own.begin).begin, end};
  }
};

std::size_t f32_bytes(const Shape& shape) {
  return static_cast<std::size_t>(shape.elements()) * size_of(DType::f32);
}

// One rank's part in decoding a clip.
class DecodeRun {
 public:
  DecodeRun(Machine& machine, Queue& q, Communicator& ranks, VideoDecoder& decoder, const Plan& plan,
            const VideoDecodeRequest& request, const VideoDecodeCalls& calls)
      : machine_(machine),
        q_(q),
        ranks_(ranks),
        decoder_(decoder),
        plan_(plan),
        calls_(calls),
        units_(plan.work.units_of_rank(ranks.rank())),
        own_(plan.work.pieces_of_owner(ranks.rank())),
        group_(std::min(request.tiles_per_unit, plan.tiles.count())),
        output_(machine, ranks.rank() == kWriterRank, plan.frames_of(ranks.rank()), plan.chunks.head.size(),
                plan.height, plan.width, request.truncate, calls.frames) {
    const std::int64_t tiles = units_.size() > 0 ? group_ : 0;
    if (tiles == 0) return;
    const Shape tile = plan.tile_shape();
    const Shape latents{tiles * plan.grid.tokens(), plan.latent_channels};
    decoder_.prepare(q, plan.grid, tiles);
    pixels_buffer_ = Buffer(machine, static_cast<std::size_t>(tiles) * f32_bytes(tile), machine.place());
    latents_buffer_ = Buffer(machine, f32_bytes(latents), machine.place());
    chunk_latents_ = Buffer(machine, f32_bytes(plan.chunk_latents_shape()), machine.place());
    tile_rows_ = Buffer(machine, plan.tile_rows_bytes(), machine.place());
    if (own_.size() == 0) return;
    canvas_ = Buffer(machine, f32_bytes(plan.canvas_shape()), machine.place());
    stitcher_.emplace(machine, plan.tiles, plan.planes());
    joiner_.emplace(machine, plan.chunks, plan.channels, plan.height, plan.width,
                    [this](Queue& queue, std::int64_t first, const Tensor& frames) {
                      if (calls_.raw) calls_.raw(queue, first, frames);
                      output_.take(queue, first, frames);
                    });
  }

  // The host only gives work to queues here, so that the device never waits for it.
  void decode_own_units(const LatentGrid& latents) {
    if (units_.size() == 0) return;
    const std::vector<std::int32_t> tile_rows = upload_tile_rows(latents);
    for (std::int64_t u = units_.begin; u < units_.end; ++u) {
      if (calls_.stopped && calls_.stopped()) break;
      const WorkUnit unit = plan_.work.unit(u);
      const Tensor pixels = decode_unit(latents, unit);
      for (std::int64_t i = 0; i < unit.tiles.size(); ++i) {
        if (own(unit.piece))
          stitch(unit.piece, unit.tiles.begin + i, pixels.at(i));
        else
          machine_.copy(q_, pixels.at(i), foreign_tile(foreign_count_++));
      }
      if (calls_.progress) calls_.progress(u + 1 - units_.begin, units_.size());
    }
    q_.wait();
  }

  // Tiles first and tails after them: a chunk's tail exists once its tiles are together.
  void exchange() {
    for (std::int64_t c = 0; c < plan_.work.pieces(); ++c) exchange_tiles(c);
    for (std::int64_t c = 1; c < plan_.work.pieces(); ++c) exchange_tail(c);
  }

  void deliver() {
    for (int r = 0; r < ranks_.size(); ++r) {
      if (r == kWriterRank) continue;
      const Range frames = plan_.frames_of(r);
      if (ranks_.rank() == r && frames.size() > 0) output_.send(q_, ranks_, kWriterRank);
      if (ranks_.rank() == kWriterRank && frames.size() > 0) output_.receive(q_, ranks_, frames, r);
    }
    output_.finish();
  }

  VideoDecodeReport report() {
    VideoDecodeReport report;
    report.frames = plan_.chunks.frames;
    report.chunks = plan_.chunks.chunks;
    report.tiles = plan_.tiles.count();
    report.ranks_with_work = plan_.work.ranks_with_work();
    for (int r = 0; r < ranks_.size(); ++r) report.units_by_rank.push_back(plan_.work.units_of_rank(r).size());
    const auto over_ranks = [&](std::int64_t value) {
      std::int64_t sum = 0;
      for (const double v : ranks_.gather_value(static_cast<double>(value))) sum += static_cast<std::int64_t>(v);
      return sum;
    };
    report.nan_values = over_ranks(output_.nan_values(q_));
    CHECK_EQ(over_ranks(joiner_ ? joiner_->made() : 0), plan_.chunks.frames + plan_.chunks.dropped);
    CHECK_EQ(over_ranks(joiner_ ? joiner_->dropped() : 0), plan_.chunks.dropped);
    CHECK_EQ(over_ranks(output_.written()), plan_.chunks.frames);
    const std::string failure = ranks_.broadcast_text(output_.failure(), kWriterRank);
    if (!failure.empty()) throw SceneError(failure);
    return report;
  }

 private:
  bool own(std::int64_t chunk) const { return plan_.work.owner_of(chunk) == ranks_.rank(); }
  Tensor tiles_on_device(std::int64_t count) const {
    return pixels_buffer_.tensor({count, plan_.channels, plan_.chunks.decoded, plan_.tiles.y.tile, plan_.tiles.x.tile},
                                 DType::f32);
  }
  // The memory is taken at the first use, when the device has work: page-locking it takes a while.
  Tensor foreign_tile(std::int64_t i) {
    const Shape tile = plan_.tile_shape();
    const auto tiles = static_cast<std::size_t>(plan_.work.foreign_tiles(ranks_.rank()));
    if (!foreign_tiles_.data()) foreign_tiles_ = Buffer(machine_, tiles * f32_bytes(tile), Place::host);
    auto* at = static_cast<char*>(foreign_tiles_.data()) + static_cast<std::size_t>(i) * f32_bytes(tile);
    return Tensor(at, tile, DType::f32, Place::host);
  }

  // [tiles * tokens of a tile]: which rows of a chunk's latents make up its tiles. What is returned must live until the
  // queue is past.
  std::vector<std::int32_t> upload_tile_rows(const LatentGrid& latents) {
    std::vector<std::int32_t> rows;
    for (std::int64_t tile = 0; tile < plan_.tiles.count(); ++tile) {
      const auto one = latents.tile_rows(plan_.grid, plan_.tiles.y.start(plan_.tiles.row(tile)) / plan_.ratio,
                                         plan_.tiles.x.start(plan_.tiles.column(tile)) / plan_.ratio);
      rows.insert(rows.end(), one.begin(), one.end());
    }
    const Tensor there = all_tile_rows();
    machine_.copy(q_, Tensor(rows.data(), there.shape, DType::i32), there);
    return rows;
  }
  Tensor all_tile_rows() const { return tile_rows_.tensor({plan_.tiles.count() * plan_.grid.tokens()}, DType::i32); }

  Tensor decode_unit(const LatentGrid& latents, const WorkUnit& unit) {
    const std::int64_t count = unit.tiles.size(), tokens = plan_.grid.tokens();
    const Tensor chunk = chunk_latents_.tensor(plan_.chunk_latents_shape(), DType::f32);
    const Tensor there = latents_buffer_.tensor({count * tokens, plan_.latent_channels}, DType::f32);
    if (latents_of_ != unit.piece) latents.copy_chunk(machine_, q_, plan_.chunks, unit.piece, chunk);
    latents_of_ = unit.piece;
    machine_.operators().gather(q_, chunk, all_tile_rows().rows(unit.tiles.begin * tokens, unit.tiles.end * tokens),
                                there);
    const Tensor pixels = tiles_on_device(count);
    decoder_.decode(q_, there, pixels);
    return pixels;
  }

  // Adds a raw tile of an own chunk, and finishes the chunk with its last one.
  void stitch(std::int64_t chunk, std::int64_t tile, const Tensor& pixels) {
    const Tensor canvas = canvas_.tensor(plan_.canvas_shape(), DType::f32);
    if (tile == 0) stitcher_->start(canvas);
    CHECK_EQ(stitcher_->added(), tile);
    stitcher_->add(q_, pixels);
    if (stitcher_->complete()) joiner_->add(q_, chunk, canvas);
  }

  void exchange_tiles(std::int64_t chunk) {
    const Range units = plan_.work.units_of_piece(chunk);
    for (std::int64_t u = units.begin; u < units.end; ++u) {
      const int from = plan_.work.rank_of(u), to = plan_.work.owner_of(chunk);
      if (from == to) continue;
      const Range tiles = plan_.work.unit(u).tiles;
      for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
        if (ranks_.rank() == from) {
          const Tensor staged = tiles_on_device(1).at(0);
          machine_.copy(q_, foreign_tile(foreign_sent_++), staged);
          ranks_.send(q_, staged, to, kTilesTag);
        } else if (ranks_.rank() == to) {
          const Tensor staged = tiles_on_device(1).at(0);
          ranks_.receive(q_, staged, from, kTilesTag);
          stitch(chunk, tile, staged);
        }
      }
    }
  }

  void exchange_tail(std::int64_t chunk) {
    const int from = plan_.work.owner_of(chunk - 1), to = plan_.work.owner_of(chunk);
    if (from == to) return;
    if (ranks_.rank() == from) {
      ranks_.send(q_, joiner_->tail(), to, kTailTag);
    } else if (ranks_.rank() == to) {
      ranks_.receive(q_, joiner_->earlier_tail(), from, kTailTag);
      joiner_->join(q_);
    }
  }

  Machine& machine_;
  Queue& q_;
  Communicator& ranks_;
  VideoDecoder& decoder_;
  const Plan& plan_;
  const VideoDecodeCalls& calls_;
  Range units_, own_;
  std::int64_t group_;
  FrameOutput output_;
  Buffer pixels_buffer_, latents_buffer_, chunk_latents_, tile_rows_, foreign_tiles_, canvas_;
  std::optional<TileStitcher> stitcher_;
  std::optional<FrameJoiner> joiner_;
  std::int64_t latents_of_ = -1;  // the chunk in chunk_latents_
  std::int64_t foreign_count_ = 0, foreign_sent_ = 0;
};

}  // namespace

VideoDecodeReport decode_video(Machine& machine, Queue& q, Communicator& ranks, VideoDecoder& decoder,
                               const Tensor& rows, const VideoDecodeRequest& request, const VideoDecodeCalls& calls) {
  const VideoVaeConfig& config = decoder.config();
  const Plan plan = Plan::make(config, request, ranks.size());
  DecodeRun run(machine, q, ranks, decoder, plan, request, calls);
  {
    const Buffer host(machine, rows.bytes(), Place::host);
    const Tensor on_host = host.tensor(rows.shape, DType::f32);
    machine.copy(q, rows, on_host);
    q.wait();
    const LatentGrid latents(machine, config, on_host, plan.chunks.tokens, plan.height / plan.ratio,
                             plan.width / plan.ratio);
    run.decode_own_units(latents);
  }
  if (calls.together) calls.together();
  run.exchange();
  run.deliver();
  return run.report();
}

VideoDecodeMemory video_decode_memory(const VideoVaeConfig& config, VaeProfile profile,
                                      const VideoDecodeRequest& request, int ranks) {
  const Plan plan = Plan::make(config, request, ranks);
  const std::int64_t group = std::min(request.tiles_per_unit, plan.tiles.count());
  const std::int64_t batch = plan.chunks.head.size(), overlap = plan.chunks.tail.size();
  const std::size_t tile = f32_bytes(plan.tile_shape());
  const Shape latents{group * plan.grid.tokens(), plan.latent_channels};
  VideoDecodeMemory memory;
  memory.device = VideoDecoder::working_bytes(config, profile, plan.grid, group) +
                  static_cast<std::size_t>(group) * tile + f32_bytes(latents) + f32_bytes(plan.chunk_latents_shape()) +
                  plan.tile_rows_bytes() + f32_bytes(plan.canvas_shape()) +
                  TileStitcher::strip_bytes(plan.tiles, plan.planes()) +
                  3 * f32_bytes({plan.channels, overlap, plan.height, plan.width}) +
                  FrameOutput::device_bytes(batch, plan.height, plan.width);
  const std::size_t rows =
      f32_bytes({plan.chunks.tokens, plan.latent_channels, plan.height / plan.ratio, plan.width / plan.ratio});
  for (int r = 0; r < ranks; ++r) {
    const std::size_t frames =
        FrameOutput::host_bytes(r == kWriterRank, plan.frames_of(r).size(), batch, plan.height, plan.width);
    const std::size_t foreign = static_cast<std::size_t>(plan.work.foreign_tiles(r)) * tile;
    memory.host = std::max(memory.host, 2 * rows + frames + foreign);
  }
  return memory;
}

}  // namespace h3
