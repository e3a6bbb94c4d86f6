#include "scene/scene_rules.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "scene/choices.h"
#include "scene/prompt_rules.h"
#include "scene/utf8.h"

namespace h3 {

namespace fs = std::filesystem;

// Room for ".NAME.PID.tmp" and the longest of our endings within the 255 bytes of a file name.
static constexpr std::size_t longest_name = 200;

std::optional<std::string> name_complaint(const std::string& name) {
  if (name.empty()) return "a file name";
  if (name.size() > longest_name) return fmt::format("at most {} bytes", longest_name);
  if (first_invalid_utf8(name)) return "UTF-8";
  if (name.front() == '.' || name.front() == '-' || name.front() == ' ' || name.back() == ' ' || name.back() == '.')
    return "a file name that neither begins with a dot, dash or space nor ends with a dot or space";
  const bool bad = std::any_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || std::strchr("/\\:*?\"<>|", c) != nullptr;
  });
  if (bad) return "a file name without control characters and / \\ : * ? \" < > |";
  return std::nullopt;
}

static void check_size(const Scene& s) {
  if (s.width.has_value() != s.height.has_value())
    throw UserError(s.where, s.width ? "width" : "height", std::to_string(s.width.value_or(s.height.value_or(0))),
                    s.width ? "expected a height beside it" : "expected a width beside it");
  if (s.width && s.aspect)
    throw UserError(s.where, "aspect", s.aspect->text, "expected either aspect or width and height, not both");
  if (!s.width) return;
  if (const auto complaint = size_complaint(*s.width, *s.height))
    throw UserError(s.where, "width x height", fmt::format("{}x{}", *s.width, *s.height), *complaint);
}

static void check_length(const Scene& s) {
  if (s.frames && s.seconds)
    throw UserError(s.where, "seconds", fmt::format("{}", *s.seconds), "expected either frames or seconds, not both");
  if (s.seconds && *s.seconds * frames_per_second > static_cast<double>(most_frames))
    throw UserError(s.where, "seconds", fmt::format("{}", *s.seconds),
                    fmt::format("expected at most {}", most_frames / frames_per_second));
  if (!s.frames || is_legal_frame_count(*s.frames)) return;
  const bool can_snap = *s.frames >= 1 && *s.frames <= most_frames;
  if (can_snap && s.frames_policy == FramesPolicy::snap) return;
  const auto [below, above] = nearest_frame_counts(*s.frames);
  const std::string remedy =
      can_snap ? fmt::format(" (frames_policy=snap takes {})", snapped_frame_count(*s.frames)) : "";
  throw UserError(s.where, "frames", std::to_string(*s.frames),
                  fmt::format("expected 17n + 5; the nearest are {} and {}{}", below, above, remedy));
}

static void check_schedule(const Scene& s) {
  const auto points = static_cast<std::size_t>(s.evaluations) + 1;
  const auto check = [&](const char* field, const std::vector<double>& sigmas) {
    if (!sigmas.empty() && sigmas.size() != points)
      throw UserError(s.where, field, fmt::format("{} values", sigmas.size()),
                      fmt::format("expected {}: one more than the {} evaluations", points, s.evaluations));
  };
  check("sigmas", s.sigmas);
  check("audio_sigmas", s.audio_sigmas);
}

// spec/text.md 8.1
static void check_references(const Scene& s) {
  const auto limit = [&](std::size_t count, std::size_t most, const char* what) {
    if (count > most)
      throw UserError(s.where, "references", fmt::format("{} {}", count, what),
                      fmt::format("expected at most {}", most));
  };
  limit(s.count(ReferenceKind::image), 9, "images");
  limit(s.count(ReferenceKind::video), 3, "videos");
  limit(s.count(ReferenceKind::audio), 3, "sounds");
  limit(s.references.size(), 12, "files");
  if (!s.references.empty() && s.count(ReferenceKind::audio) == s.references.size())
    throw UserError(s.where, "references", "sounds alone", "expected at least one image or video beside them");
  if (!s.references.empty() && s.has_keyframes() && s.layout == SequenceLayout::diffusers)
    throw UserError(s.where, "references",
                    fmt::format("{} beside {}", s.references.size(), s.first_frame ? "first_frame" : "last_frame"),
                    "expected either keyframes or references; only layout=comfy has room for both");
  if (!s.guides.empty() && s.layout != SequenceLayout::comfy)
    throw UserError(s.where, "guides", fmt::format("{} with layout={}", s.guides.size(), name_of(s.layout)),
                    "expected layout=comfy, which alone has room for them");
}

void check_scene(const Scene& scene) {
  if (scene.prompt.empty()) throw UserError(scene.where, "prompt", "", "is empty or missing; expected text");
  check_size(scene);
  check_length(scene);
  check_schedule(scene);
  check_references(scene);
  check_prompt_labels(scene, most_sounds(scene));
}

static void check_file(const Scene& scene, const std::string& field, const MediaFile& file) {
  const auto refuse = [&](const std::string& reason) {
    throw UserError(scene.where, field, printable(file.given), reason);
  };
  std::error_code ec;
  const fs::file_status status = fs::status(file.path, ec);
  if (!fs::exists(status))
    refuse(file.given.find("://") != std::string::npos ? "is a URL; only local files are read"
                                                       : fmt::format("there is no file {}", file.path.string()));
  if (fs::is_directory(status)) refuse("is a folder, expected a file");
  if (!fs::is_regular_file(status)) refuse("is not a regular file");
  if (fs::file_size(file.path, ec) == 0 && !ec) refuse("is empty");
  if (::access(file.path.c_str(), R_OK) != 0) refuse(fmt::format("cannot be read: {}", std::strerror(errno)));
}

void check_files(const Scene& scene) {
  if (scene.first_frame && !scene.first_frame->of) check_file(scene, "first_frame", *scene.first_frame);
  if (scene.last_frame && !scene.last_frame->of) check_file(scene, "last_frame", *scene.last_frame);
  for (std::size_t i = 0; i < scene.references.size(); ++i)
    check_file(scene, fmt::format("references[{}].{}", i, name_of(scene.references[i].kind)), scene.references[i].file);
  for (std::size_t i = 0; i < scene.guides.size(); ++i) {
    const Guide& guide = scene.guides[i];
    const std::string field = fmt::format("guides[{}]", i);
    if (guide.image) check_file(scene, field + ".image", *guide.image);
    if (guide.video) check_file(scene, field + ".video", *guide.video);
    if (guide.audio) check_file(scene, field + ".audio", *guide.audio);
  }
}

static void resolve_canvas(Scene& scene, const CanvasRule& rule, std::optional<CanvasSize> keyframe, Resolved& result) {
  const std::string picture = scene.first_frame ? "first_frame" : "last_frame";
  const double shown_aspect =
      keyframe ? static_cast<double>(keyframe->width) / static_cast<double>(keyframe->height) : 16.0 / 9.0;
  if (!scene.width) {
    if (!scene.aspect && !is_legal_aspect(shown_aspect))
      throw UserError(scene.where, picture, fmt::format("{}x{}", keyframe->width, keyframe->height),
                      "expected an aspect from 1:4 to 4:1, or a scene with width and height");
    const CanvasSize canvas = canvas_for_aspect(scene.aspect ? scene.aspect->ratio : shown_aspect, rule);
    result.notes.push_back(fmt::format("canvas {}x{} from {}", canvas.width, canvas.height,
                                       scene.aspect ? "aspect " + scene.aspect->text
                                       : keyframe   ? "the shape of " + picture
                                                    : "the default aspect 16:9"));
    scene.width = canvas.width;
    scene.height = canvas.height;
    scene.aspect.reset();
  }
  const double aspect = static_cast<double>(*scene.width) / static_cast<double>(*scene.height);
  if (keyframe && std::abs(aspect / shown_aspect - 1) > 0.05)
    result.warnings.push_back(fmt::format("{} is {}x{} and is stretched to {}x{}", picture, keyframe->width,
                                          keyframe->height, *scene.width, *scene.height));
}

static void resolve_length(Scene& scene, Resolved& result) {
  if (scene.seconds) {
    scene.frames = frames_for_seconds(*scene.seconds);
    result.notes.push_back(
        fmt::format("seconds = {}: {} frames, the nearest legal count", *scene.seconds, *scene.frames));
    scene.seconds.reset();
  } else if (!scene.frames) {
    scene.frames = default_frames;
  } else if (!is_legal_frame_count(*scene.frames)) {
    const std::int64_t snapped = snapped_frame_count(*scene.frames);
    result.notes.push_back(fmt::format("frames = {}: raised to {}", *scene.frames, snapped));
    scene.frames = snapped;
  }
}

static void add_warnings(const Scene& scene, Resolved& result) {
  if (scene.evaluations < fewest_sensible_evaluations)
    result.warnings.push_back(fmt::format("evaluations = {}: fewer than {} give a poor picture", scene.evaluations,
                                          fewest_sensible_evaluations));
  if (*scene.frames < shortest_trained || *scene.frames > longest_trained)
    result.warnings.push_back(fmt::format("frames = {}: outside the trained range of {} to {}", *scene.frames,
                                          shortest_trained, longest_trained));
  for (std::string& warning : prompt_warnings(scene, result.geometry.seconds()))
    result.warnings.push_back(std::move(warning));
}

Resolved resolve(Scene& scene, const SceneDefaults& defaults, std::optional<CanvasSize> keyframe) {
  Resolved result;
  resolve_canvas(scene, defaults.canvas, keyframe, result);
  resolve_length(scene, result);
  if (!scene.shift) scene.shift = defaults.shift;
  if (!scene.audio_shift) scene.audio_shift = defaults.audio_shift;
  result.geometry = clip_geometry(*scene.width, *scene.height, *scene.frames);
  add_warnings(scene, result);
  return result;
}

}  // namespace h3
