#include "media/frame_source.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "media/clip_reader.h"
#include "media/png.h"
#include "media/wav.h"

namespace h3 {

namespace fs = std::filesystem;

namespace {

class ClipFrames final : public FrameSource {
 public:
  explicit ClipFrames(const fs::path& path) : path_(path), reader_(path) {}
  bool next(Image& frame) override { return reader_.next(frame); }
  Sound sound() const override { return read_clip_sound(path_); }

 private:
  fs::path path_;
  ClipReader reader_;
};

class PngFrames final : public FrameSource {
 public:
  PngFrames(std::vector<fs::path> files, fs::path wav) : files_(std::move(files)), wav_(std::move(wav)) {}
  bool next(Image& frame) override {
    if (at_ == files_.size()) return false;
    frame = read_png(files_[at_++]);
    return true;
  }
  Sound sound() const override {
    std::error_code ec;
    return fs::exists(wav_, ec) ? read_wav(wav_) : Sound{};
  }

 private:
  std::vector<fs::path> files_;
  fs::path wav_;
  std::size_t at_ = 0;
};

std::unique_ptr<FrameSource> open_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ec;
  for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec))
    if (it->path().extension() == ".png" && it->path().filename().string().front() != '.') files.push_back(it->path());
  if (ec) throw UserError(folder.string(), "", "", "cannot be listed: " + ec.message());
  if (files.empty()) throw UserError(folder.string(), "", "", "holds no .png frames");
  std::sort(files.begin(), files.end());
  const fs::path named = folder.has_filename() ? folder : folder.parent_path();  // "X.frames/" is "X.frames"
  return std::make_unique<PngFrames>(std::move(files), fs::path(named).replace_extension(".wav"));
}

}  // namespace

std::unique_ptr<FrameSource> open_frames(const fs::path& path) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) return open_folder(path);
  if (!fs::exists(path, ec)) throw UserError(path.string(), "", "", "is not there");
  if (path.extension() == ".png") return std::make_unique<PngFrames>(std::vector{path}, fs::path());
  return std::make_unique<ClipFrames>(path);
}

}  // namespace h3
