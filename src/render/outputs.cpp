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

}  // namespace

struct SceneOutputs::Writers {
  std::optional<Mp4Writer> mp4;
  Hasher frames;
  std::optional<ContactSheet> sheet;
  Sound sound;
};

SceneOutputs::SceneOutputs(const fs::path& folder, const Scene& scene, const ClipGeometry& geometry)
    : folder_(folder), scene_(scene), geometry_(geometry), writers_(std::make_unique<Writers>()) {
  static constexpr std::array<std::string_view, 3> kMiddles{"manifest", "sheet", "failed"};
  remove_temporaries(folder_, scene_.name, kMiddles);
  writers_->sheet.emplace(static_cast<int>(geometry.width), static_cast<int>(geometry.height), geometry.frames);
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
      if (scene_.output.frames)
        write_png(folder_ / (scene_.name + ".frames") / fmt::format("{:06}.png", first + i),
                  Image(static_cast<int>(geometry_.width), static_cast<int>(geometry_.height), rgb));
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
  return error_;
}

}  // namespace h3
