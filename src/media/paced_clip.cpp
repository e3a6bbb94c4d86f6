#include "media/paced_clip.h"

#include <algorithm>

#include "base/error.h"
#include "media/display.h"
#include "media/frame_rgb.h"
#include "media/packet_scan.h"
#include "media/resize.h"

namespace h3 {

namespace fs = std::filesystem;
using namespace ffmpeg;

class PacedClip::Pacer {
 public:
  Pacer(const fs::path& path, const ReadOptions& options)
      : scan_(scan_packets(Container(path))), video_(path, AVMEDIA_TYPE_VIDEO), converter_(path.string(), options) {
    if (!video_.has_stream()) throw UserError(path.string(), "", "", "holds no video");
    display_ = display_of(video_.stream(), path.string());
    check_colours(video_.stream(), path.string());
  }

  const DisplaySize& display() const { return display_; }

  bool next(Image& image, bool* repeated) {
    if (slot_ >= scan_.frames.slots()) return false;
    if (slot_ == 0) start();
    bool advanced = slot_ == 0;
    while (has_pending_ && scan_.frames.first_slot(pending_index_) <= slot_) {
      take_pending();
      advanced = true;
    }
    if (advanced) show(image);
    if (repeated) *repeated = !advanced;
    if (!advanced) image = shown_;
    ++slot_;
    return true;
  }

 private:
  void start() {
    read_pending();
    if (!has_pending_) throw UserError(video_.file().path(), "", "", "holds no frame that can be decoded");
    take_pending();
  }

  void take_pending() {
    std::swap(current_, pending_);
    read_pending();
  }

  // The next decoded frame and its place among the scanned ones; a frame without a time follows the one before.
  void read_pending() {
    const AVFrame* frame = video_.next();
    has_pending_ = frame != nullptr;
    if (!frame) return;
    av_frame_unref(pending_.get());
    video_.file().check(av_frame_ref(pending_.get(), frame), "av_frame_ref");
    const std::size_t following = decoded_ == 0 ? 0 : pending_index_ + 1;
    const auto& ticks = scan_.frame_ticks;
    const auto at = std::lower_bound(ticks.begin(), ticks.end(), frame->best_effort_timestamp);
    const bool known = at != ticks.end() && *at == frame->best_effort_timestamp;
    pending_index_ = known ? std::max(following, static_cast<std::size_t>(at - ticks.begin())) : following;
    pending_index_ = std::min(pending_index_, scan_.frames.size());
    ++decoded_;
  }

  void show(Image& image) {
    if (width_ != 0 && (current_->width != width_ || current_->height != height_))
      throw UserError(
          video_.file().path(), "", "",
          fmt::format("changes its size from {}x{} to {}x{}", width_, height_, current_->width, current_->height));
    width_ = current_->width;
    height_ = current_->height;
    converter_.convert(*current_, image);
    image = upright(image, display_.orientation);
    shown_ = image;
  }

  PacketScan scan_;
  StreamDecoder video_;
  FrameConverter converter_;
  DisplaySize display_;
  Frame current_ = new_frame(), pending_ = new_frame();
  bool has_pending_ = false;
  std::size_t pending_index_ = 0, decoded_ = 0;
  std::int64_t slot_ = 0;
  int width_ = 0, height_ = 0;
  Image shown_;
};

PacedClip::PacedClip(const fs::path& path, const ReadOptions& options)
    : pacer_(std::make_unique<Pacer>(path, options)) {}
PacedClip::~PacedClip() = default;
int PacedClip::width() const {
  return pacer_->display().width;
}
int PacedClip::height() const {
  return pacer_->display().height;
}
bool PacedClip::next(Image& frame, bool* repeated) {
  return pacer_->next(frame, repeated);
}

std::vector<Image> read_clip_frames(const fs::path& path, const ReadOptions& options, std::int64_t most, int width,
                                    int height) {
  PacedClip clip(path, options);
  std::vector<Image> frames;
  Image frame;
  for (bool repeated = false; static_cast<std::int64_t>(frames.size()) < most && clip.next(frame, &repeated);)
    frames.push_back(repeated ? frames.back() : resize_lanczos(frame, width, height));
  return frames;
}

}  // namespace h3
