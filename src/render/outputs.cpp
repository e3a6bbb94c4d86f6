#include "render/outputs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "media/mp4.h"
#include "media/png.h"
#include "media/sheet.h"
#include "media/wav.h"
#include "render/chain.h"
#include "render/manifest.h"
#include "render/version.h"

namespace h3 {

namespace fs = std::filesystem;

namespace {

Mp4Options mp4_options(const Scene& scene, const ClipGeometry& geometry) {
  Mp4Options o;
  o.width = static_cast<int>(geometry.width);
  o.height = static_cast<int>(geometry.height);
  o.crf = scene.output.crf;
  o.preset = scene.output.preset;
  o.audio_bitrate = scene.output.audio_bitrate;
  o.trim_sound = scene.audio_trim == AudioTrim::frames;
  o.title = scene.name;
  o.comment = recipe(scene, "h3render " + program_version());
  return o;
}

// What the manifest of a former render of this name says it left; empty where there is none.
std::vector<std::string> files_of_former(const fs::path& folder, const std::string& name) {
  std::vector<std::string> files;
  std::error_code missing;
  const fs::path manifest = manifest_path(folder, name);
  if (!fs::exists(manifest, missing)) return files;
  const auto json = nlohmann::json::parse(read_file(manifest), nullptr, false);
  if (!json.is_object() || !json.contains("files") || !json["files"].is_array()) return files;
  for (const auto& file : json["files"])
    if (file.is_string() && file.get<std::string>().starts_with(name + ".") &&
        file.get<std::string>().find('/') == std::string::npos)
      files.push_back(file);
  return files;
}

// Frames that an earlier render left in the folder, whole (000000.png) or not (.000000.PID.tmp.png).
void remove_frames(const fs::path& folder) {
  std::vector<fs::path> ours;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) {
    const std::string file = entry.path().filename().string();
    const std::size_t from = file.starts_with(".") ? 1 : 0;
    const bool numbered = file.find_first_not_of("0123456789", from) == from + 6;
    if (numbered && file.ends_with(".png")) ours.push_back(entry.path());
  }
  for (const fs::path& file : ours) fs::remove(file, missing);
}

}  // namespace

struct SceneOutputs::Writers {
  std::optional<Mp4Writer> mp4;
  Hasher frames;
  std::optional<ContactSheet> sheet;
  Sound sound;
};

SceneOutputs::SceneOutputs(const fs::path& folder, const SceneJob& job)
    : folder_(folder),
      scene_(job.scene),
      geometry_(job.geometry),
      kept_(job.kept_frames),
      writers_(std::make_unique<Writers>()) {
  static constexpr std::array<std::string_view, 4> kMiddles{"manifest", "sheet", "failed", "preview"};
  remove_temporaries(folder_, scene_.name, kMiddles);
  former_files_ = files_of_former(folder_, scene_.name);
  writers_->sheet.emplace(static_cast<int>(geometry_.width), static_cast<int>(geometry_.height), geometry_.frames);
  guarded([&] {
    if (scene_.output.mp4) {
      writers_->mp4.emplace(folder_ / (scene_.name + ".mp4"), mp4_options(scene_, geometry_));
      if (!writers_->mp4->note().empty()) spdlog::warn("{}", writers_->mp4->note());
    }
    if (!scene_.output.frames) return;
    std::error_code error;
    fs::create_directories(folder_ / (scene_.name + ".frames"), error);
    if (error)
      throw SceneError((folder_ / (scene_.name + ".frames")).string() + ": cannot be made: " + error.message());
    remove_frames(folder_ / (scene_.name + ".frames"));
  });
}

SceneOutputs::~SceneOutputs() = default;

template <typename F>
void SceneOutputs::guarded(F&& write) {
  if (!error_.empty()) return;
  try {
    write();
  } catch (const SceneError& e) {
    error_ = e.what();
  }
}

void SceneOutputs::add_frames(std::int64_t first, const Tensor& frames) {
  const auto frame_bytes = static_cast<std::size_t>(geometry_.width * geometry_.height * 3);
  writers_->frames.add(frames.data, frames.bytes());
  for (std::int64_t i = 0; i < frames.size(0); ++i) {
    const std::span<const std::uint8_t> rgb(frames.as<std::uint8_t>() + static_cast<std::size_t>(i) * frame_bytes,
                                            frame_bytes);
    hashes_.each_frame.push_back(hash_hex(rgb.data(), rgb.size()));
    writers_->sheet->add(first + i, rgb);
    guarded([&] {
      if (writers_->mp4) writers_->mp4->add_frame(rgb);
      const Image picture(static_cast<int>(geometry_.width), static_cast<int>(geometry_.height), rgb);
      if (scene_.output.frames)
        write_png(folder_ / (scene_.name + ".frames") / fmt::format("{:06}.png", first + i), picture);
      if (kept_.contains(first + i)) {
        const fs::path kept = kept_frame_path(folder_, scene_.name, first + i);
        files_.push_back(kept.filename().string());
        write_png(kept, picture);
      }
    });
  }
}

void SceneOutputs::add_audio(const Tensor& pcm) {
  hashes_.audio = hash_hex(pcm.data, pcm.bytes());
  writers_->sound.channels = static_cast<int>(pcm.size(0));
  writers_->sound.samples.assign(pcm.as<float>(), pcm.as<float>() + pcm.elements());
  for (float& sample : writers_->sound.samples)
    if (!std::isfinite(sample)) sample = 0;  // reported by the decoder's health check
  guarded([&] {
    if (writers_->mp4) writers_->mp4->add_sound(writers_->sound);
  });
}

std::string SceneOutputs::finish() {
  hashes_.frames = writers_->frames.hex();
  guarded([&] {
    if (writers_->mp4) {
      writers_->mp4->finish();
      files_.push_back(scene_.name + ".mp4");
    }
    if (scene_.output.wav) {
      write_wav(folder_ / (scene_.name + ".wav"), writers_->sound);
      files_.push_back(scene_.name + ".wav");
    }
    if (scene_.output.sheet) {
      write_png(folder_ / (scene_.name + ".sheet.png"), writers_->sheet->draw(writers_->sound));
      files_.push_back(scene_.name + ".sheet.png");
    }
    if (scene_.output.frames) files_.push_back(scene_.name + ".frames");
  });
  if (!error_.empty()) {
    discard();
    return error_;
  }
  for (const std::string& file : former_files_) {
    std::error_code ignored;
    if (std::find(files_.begin(), files_.end(), file) == files_.end()) fs::remove_all(folder_ / file, ignored);
  }
  return "";
}

void SceneOutputs::discard() {
  std::error_code ignored;
  for (const std::string& file : files_) fs::remove_all(folder_ / file, ignored);
  if (scene_.output.frames) fs::remove_all(folder_ / (scene_.name + ".frames"), ignored);
  writers_->mp4.reset();  // and its unfinished file
  files_.clear();
}

}  // namespace h3
