// A scene: everything that was asked of one clip, as data. It comes from a file and `key=value` overrides
// (scene_files.h, scene_keys.h), is checked by rules (scene_rules.h), goes into the manifest as JSON and can be read
// back from there. What a scene leaves open, the model settles: see resolve() in scene_rules.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "scene/json_text.h"

namespace h3 {

enum class FramesPolicy : std::uint8_t { strict, snap };
enum class SamplerKind : std::uint8_t { euler, res_multistep };        // spec/dit.md 5.3, 5.4
enum class AudioCorrection : std::uint8_t { carried, own };            // of res_multistep (spec/dit.md 5.4)
enum class NoiseRecipe : std::uint8_t { diffusers, original, comfy };  // spec/dit.md 5.5
enum class SequenceLayout : std::uint8_t { diffusers, comfy };         // spec/dit.md 3.2
enum class Quantize : std::uint8_t { round, trunc };                   // frames to uint8 (spec/vae.md 11)
enum class AudioTrim : std::uint8_t { frames, none };                  // at the muxer (spec/vae.md 18.2)
enum class AlphaRule : std::uint8_t { drop, white };                   // transparency of pictures and clips given
enum class ReferenceKind : std::uint8_t { image, video, audio };
enum class ReferenceSize : std::uint8_t { full, match, max };  // of reference pictures (spec/text.md 3.1)
// What becomes a latent of a picture or clip: the official sample (seed 42, rounded to f16), or the mean (ComfyUI),
// spec/vae.md 6.3.
enum class Posterior : std::uint8_t { sample42, mean };

// A shape as it was written ("16:9") and as width over height.
struct Aspect {
  std::string text;
  double ratio = 0;
  bool operator==(const Aspect&) const = default;
};

// A frame of another scene's render; negative ones count from its end.
struct FrameOfScene {
  std::string scene;
  std::int64_t frame = -1;
  bool operator==(const FrameOfScene&) const = default;
};

// A file that a scene names: as written, and where it is (relative names start at the scene file's folder).
struct MediaFile {
  std::string given;
  std::filesystem::path path;
  std::optional<FrameOfScene> of = std::nullopt;  // keyframes: instead of a file; then `path` is empty
  bool operator==(const MediaFile&) const = default;
};

struct Reference {
  ReferenceKind kind = ReferenceKind::image;
  MediaFile file;
  bool soundtrack = true;  // clips: whether their sound, where they have one, is a reference too
  bool operator==(const Reference&) const = default;
};

// What the clip shows and plays from a frame on: a picture or the frames of a clip, a sound, or both (layout=comfy,
// spec/dit.md 3.4).
struct Guide {
  std::optional<MediaFile> image, video, audio;
  std::int64_t frame = 0;  // negative ones count from the end
  bool operator==(const Guide&) const = default;
};

// What is written next to the MP4, and how it is encoded. Nothing here changes latents, frames or samples.
struct OutputOptions {
  bool mp4 = true;      // NAME.mp4
  bool wav = false;     // NAME.wav, float32
  bool frames = false;  // NAME.frames/000000.png, ...
  bool sheet = true;    // NAME.sheet.png
  std::int64_t crf = 18;
  std::string preset = "medium";
  std::int64_t audio_bitrate = 192000;  // bits per second
  bool operator==(const OutputOptions&) const = default;
};

struct Scene {
  std::string name;
  std::string prompt;  // UTF-8, byte for byte as written
  std::optional<std::int64_t> width, height;
  std::optional<Aspect> aspect;
  std::optional<std::int64_t> frames;
  std::optional<double> seconds;
  FramesPolicy frames_policy = FramesPolicy::strict;
  std::uint64_t seed = 0;
  std::int64_t evaluations = 49;  // model evaluations; diffusers' 50 steps are 49 (spec/dit.md 5.2)
  SamplerKind sampler = SamplerKind::euler;
  AudioCorrection audio_correction = AudioCorrection::carried;
  std::optional<double> shift, audio_shift;
  NoiseRecipe noise = NoiseRecipe::diffusers;
  std::vector<double> sigmas, audio_sigmas;  // empty, or strictly decreasing from at most 1 to 0
  SequenceLayout layout = SequenceLayout::diffusers;
  std::optional<MediaFile> first_frame, last_frame;
  std::vector<Reference> references;
  std::vector<Guide> guides;
  ReferenceSize reference_size = ReferenceSize::full;
  Posterior posterior = Posterior::sample42;
  AlphaRule alpha = AlphaRule::drop;
  bool downmix = false;  // more than two channels to stereo
  Quantize quantize = Quantize::round;
  AudioTrim audio_trim = AudioTrim::frames;
  std::int64_t max_prompt_tokens = 32768;
  std::int64_t max_rows = 262144;
  OutputOptions output;

  std::string where;  // "FILE", "FILE, scene 2" or "FILE, line 2": opens every message about this scene

  // What it takes from the renders of other scenes.
  std::vector<FrameOfScene> frames_taken() const;
  bool has_keyframes() const { return first_frame.has_value() || last_frame.has_value(); }
  bool has_media() const { return has_keyframes() || !references.empty() || !guides.empty(); }
  std::size_t count(ReferenceKind kind) const;
};

// How files appear in a scene's JSON: where they are (manifest: can be read back from any folder), or as they were
// written (the MP4's comment: says nothing about the machine).
enum class FileNames : std::uint8_t { absolute, as_written };

// The scene as JSON, all keys in the order of scene_keys(), left out where they are unset. scene_from_json() reads it
// back to an equal scene.
Json to_json(const Scene& scene, FileNames names = FileNames::absolute);

// What stands in the MP4's comment tag: {"program": ..., "scene": ...} in one line.
std::string recipe(const Scene& scene, const std::string& program);

}  // namespace h3
