#include "scene/scene_keys.h"

#include <algorithm>

#include "scene/geometry.h"
#include "scene/key_table.h"
#include "scene/scene_rules.h"
#include "scene/utf8.h"

namespace h3 {

static constexpr std::int64_t most_evaluations = 4999;  // the grid has no equal neighbours up to here (spec/dit.md 5.1)

static void read_preset(OutputOptions& o, const JsonField& f) {
  static constexpr std::array<std::string_view, 9> presets{"ultrafast", "superfast", "veryfast", "faster",  "fast",
                                                           "medium",    "slow",      "slower",   "veryslow"};
  o.preset = f.text();
  if (std::find(presets.begin(), presets.end(), o.preset) == presets.end())
    f.refuse(fmt::format("one of {}", fmt::join(presets, ", ")));
}

static const std::vector<Key<OutputOptions>>& output_keys() {
  using O = OutputOptions;
  static const std::vector<Key<O>> keys{
      flag_key("mp4", &O::mp4, "write NAME.mp4; without it a render leaves hashes, and what else is asked for"),
      flag_key("wav", &O::wav, "also write NAME.wav: the samples as float32"),
      flag_key("frames", &O::frames, "also write NAME.frames/000000.png and so on: the frames before encoding"),
      flag_key("sheet", &O::sheet, "write NAME.sheet.png: frames over time and the waveform"),
      count_key("crf", &O::crf, 0, 51, "quality of the H.264 stream; lower is better and larger"),
      {"preset", "ultrafast to veryslow", "how long the H.264 encoder (libx264) searches", read_preset,
       [](const O& o, Json& j, FileNames) { j = o.preset; }, "", true},
      count_key("audio_bitrate", &O::audio_bitrate, 32000, 384000, "bits per second of the AAC stream"),
  };
  return keys;
}

static std::string name_in(const MediaFile& file, FileNames names) {
  return names == FileNames::absolute ? file.path.string() : file.given;
}

static Key<Scene> keyframe_key(std::string_view name, std::optional<MediaFile> Scene::*member, std::string help) {
  return {name,
          "file or {\"scene\": NAME, \"frame\": N}",
          std::move(help),
          [=](Scene& s, const JsonField& f) { s.*member = f.file_or_frame(); },
          [=](const Scene& s, Json& j, FileNames names) {
            const std::optional<MediaFile>& file = s.*member;
            if (file && file->of)
              j = Json{{"scene", file->of->scene}, {"frame", file->of->frame}};
            else if (file)
              j = name_in(*file, names);
          },
          "none",
          true};
}

static Key<Scene> sigmas_key(std::string_view name, std::vector<double> Scene::*member, std::string unset,
                             std::string help) {
  return {name,
          "list of numbers",
          std::move(help),
          [=](Scene& s, const JsonField& f) { s.*member = f.sigmas(); },
          [=](const Scene& s, Json& j, FileNames) {
            if (!(s.*member).empty()) j = s.*member;
          },
          std::move(unset),
          false};
}

static void read_name(Scene& s, const JsonField& f) {
  s.name = f.text();
  if (const auto complaint = name_complaint(s.name)) f.refuse(*complaint);
}

static void read_aspect(Scene& s, const JsonField& f) {
  const std::string text = f.value.is_string() ? f.value.get<std::string>() : f.value.is_number() ? f.value.dump() : "";
  const auto ratio = parse_aspect(text);
  if (!ratio || !is_legal_aspect(*ratio)) f.refuse("width:height from 1:4 to 4:1, such as \"16:9\"");
  s.aspect = Aspect{text, *ratio};
}

static Reference read_reference(const JsonField& entry, const std::string& form) {
  if (!entry.value.is_object()) entry.refuse(form);
  Reference reference;
  bool named = false;
  for (const auto& [key, value] : entry.value.items()) {
    const JsonField field{value, entry.where, entry.name + "." + key, entry.folder};
    const auto& kinds = Choices<ReferenceKind>::names;
    const auto kind = std::find(kinds.begin(), kinds.end(), key);
    if (kind != kinds.end() && !named) {
      reference.kind = static_cast<ReferenceKind>(kind - kinds.begin());
      reference.file = field.file();
      named = true;
    } else if (key == "soundtrack") {
      reference.soundtrack = field.flag();
    } else {
      entry.refuse(form);
    }
  }
  if (!named || (!reference.soundtrack && reference.kind != ReferenceKind::video)) entry.refuse(form);
  return reference;
}

static void read_references(Scene& s, const JsonField& f) {
  const std::string form =
      "{\"image\": FILE}, {\"video\": FILE} (with \"soundtrack\": false for its frames alone) or {\"audio\": FILE}";
  if (!f.value.is_array()) f.refuse("a list of " + form);
  s.references.clear();
  for (const Json& item : f.value) {
    const JsonField entry{item, f.where, fmt::format("{}[{}]", f.name, s.references.size()), f.folder};
    s.references.push_back(read_reference(entry, form));
  }
}

static void write_references(const Scene& s, Json& j, FileNames names) {
  for (const Reference& r : s.references) {
    j.push_back(Json::object({{std::string(name_of(r.kind)), name_in(r.file, names)}}));
    if (!r.soundtrack) j.back()["soundtrack"] = false;
  }
}

static Guide read_guide(const JsonField& entry, const std::string& form) {
  if (!entry.value.is_object()) entry.refuse(form);
  Guide guide;
  for (const auto& [key, value] : entry.value.items()) {
    const JsonField field{value, entry.where, entry.name + "." + key, entry.folder};
    if (key == "image") {
      guide.image = field.file();
    } else if (key == "video") {
      guide.video = field.file();
    } else if (key == "audio") {
      guide.audio = field.file();
    } else if (key == "frame") {
      guide.frame = field.whole("a frame of the clip; negative ones count from its end");
    } else {
      entry.refuse(form);
    }
  }
  const bool something = guide.image || guide.video || guide.audio;
  if (!something || (guide.image && guide.video)) entry.refuse(form);
  return guide;
}

static void read_guides(Scene& s, const JsonField& f) {
  const std::string form =
      "{\"image\": FILE, \"frame\": N} or {\"video\": FILE, \"frame\": N}, with or without \"audio\": FILE, or "
      "{\"audio\": FILE, \"frame\": N}";
  if (!f.value.is_array()) f.refuse("a list of " + form);
  s.guides.clear();
  for (const Json& item : f.value)
    s.guides.push_back(read_guide({item, f.where, fmt::format("{}[{}]", f.name, s.guides.size()), f.folder}, form));
}

static void write_guides(const Scene& s, Json& j, FileNames names) {
  for (const Guide& g : s.guides) {
    Json guide = Json::object();
    if (g.image) guide["image"] = name_in(*g.image, names);
    if (g.video) guide["video"] = name_in(*g.video, names);
    if (g.audio) guide["audio"] = name_in(*g.audio, names);
    guide["frame"] = g.frame;
    j.push_back(std::move(guide));
  }
}

template <typename T>
static void read_object(T& record, const std::vector<Key<T>>& keys, const JsonField& object);

static const std::vector<Key<Scene>>& scene_keys() {
  using S = Scene;
  const std::string by_model = "the model's";
  static const std::vector<Key<S>> keys{
      {"name", "text", "stem of the output files", read_name,
       [](const S& s, Json& j, FileNames) {
         if (!s.name.empty()) j = s.name;
       },
       "stem of the scene file", true},
      text_key("prompt", &S::prompt, "what is to be seen and heard; used byte for byte", "must be given"),
      whole_key("width", &S::width, "multiple of 32", by_model, "pixels; together with height"),
      whole_key("height", &S::height, "multiple of 32", by_model, "pixels; together with width"),
      {"aspect", "\"W:H\", 1:4 to 4:1", "shape of a canvas of the model's size, instead of width and height",
       read_aspect,
       [](const S& s, Json& j, FileNames) {
         if (s.aspect) j = s.aspect->text;
       },
       "that of the first picture given, else 16:9", true},
      whole_key("frames", &S::frames, "17n + 5", std::to_string(default_frames), "frames at 24 a second"),
      positive_key("seconds", &S::seconds, "", "length, instead of frames: the nearest legal frame count is taken"),
      choice_key("frames_policy", &S::frames_policy, "snap: an illegal frame count is raised to the next legal one"),
      {"seed", "0 to 2^64 - 1", "seed of the initial noise",
       [](S& s, const JsonField& f) { s.seed = f.natural(0, std::numeric_limits<std::uint64_t>::max()); },
       [](const S& s, Json& j, FileNames) { j = s.seed; }, "", false},
      count_key("evaluations", &S::evaluations, 1, most_evaluations,
                "how often the transformer runs: 8 \"steps\" elsewhere are 8 here, diffusers' 50 are 49"),
      choice_key("sampler", &S::sampler, "how a step is taken"),
      choice_key("audio_correction", &S::audio_correction,
                 "with res_multistep: the audio correction over the video's sigmas, or over its own"),
      positive_key("shift", &S::shift, by_model, "shift of the video schedule"),
      positive_key("audio_shift", &S::audio_shift, by_model, "shift of the audio schedule"),
      choice_key("noise", &S::noise, "whose order of draws the initial noise follows"),
      sigmas_key("sigmas", &S::sigmas, "from evaluations and shift",
                 "the video schedule itself, used as it is; falls from at most 1 to 0, one more than evaluations"),
      sigmas_key("audio_sigmas", &S::audio_sigmas, "from evaluations and audio_shift",
                 "the audio schedule itself; as long as sigmas"),
      choice_key("layout", &S::layout, "which layout of keyframes and references in the sequence"),
      keyframe_key("first_frame", &S::first_frame,
                   "picture that the clip starts with; a frame of another scene makes a chain"),
      keyframe_key("last_frame", &S::last_frame, "picture that the clip ends with; or a frame of another scene"),
      {"references", "list of {\"image\"|\"video\"|\"audio\": FILE}",
       "pictures, clips and sounds that the prompt names <Picture 1>, <Video 1>, <Audio 1>; order is meaning",
       read_references, write_references, "none", false},
      {"guides", "list of {\"image\"|\"video\", \"audio\": FILE, \"frame\": N}",
       "with layout=comfy: pictures, clips and sounds that the clip shows and plays from any frame on; the prompt does "
       "not see them",
       read_guides, write_guides, "none", false},
      choice_key("reference_size", &S::reference_size,
                 "of reference pictures: full, the short edge is the model's (2048); match, at most the canvas' area; "
                 "max, at most the model's short edge"),
      choice_key(
          "posterior", &S::posterior,
          "what becomes of an encoded picture or clip: the release's sample (seed 42), or the mean as in ComfyUI"),
      choice_key("alpha", &S::alpha, "transparent pixels of the files given: their colour as stored, or over white"),
      flag_key("downmix", &S::downmix, "mix sounds of more than two channels to stereo; otherwise they are refused"),
      choice_key("quantize", &S::quantize, "how pixels become 8 bits"),
      choice_key("audio_trim", &S::audio_trim,
                 "frames: sound ends with the last frame; none: all decoded samples are kept"),
      count_key("max_prompt_tokens", &S::max_prompt_tokens, 1, 262144, "a longer prompt is refused"),
      count_key("max_rows", &S::max_rows, 1, std::int64_t{1} << 24, "a longer packed sequence is refused"),
      {"output", "object", "what is written and how",
       [](S& s, const JsonField& f) { read_object(s.output, output_keys(), f); },
       [](const S& s, Json& j, FileNames names) { j = write_keys(output_keys(), s.output, names); }, "", false},
  };
  return keys;
}

// Names that other programs use for something this one has under another name, or does not have.
static std::string explanation(std::string_view key) {
  if (key == "steps" || key == "num_steps" || key == "num_inference_steps")
    return "is called evaluations here and counts model evaluations: 8 steps elsewhere are 8, diffusers' 50 are 49";
  if (key == "num_frames" || key == "length") return "is called frames here";
  if (key == "duration" || key == "duration_seconds") return "is called seconds here";
  if (key == "aspect_ratio") return "is called aspect here";
  if (key == "scheduler") return "is called sampler here";
  if (key == "image") return "is called first_frame here, or references";
  if (key == "fps" || key == "frame_rate") return "cannot be chosen: the model makes 24 frames a second";
  if (key == "cache") return "is an option of a run, not of a scene: --cache, or cache=off on the command line";
  if (key == "negative_prompt" || key == "guidance_scale" || key == "cfg")
    return "has no meaning: the model is distilled and runs without guidance";
  return "";
}

[[noreturn]] static void refuse_key(const std::string& where, const std::string& path, std::string_view name,
                                    const std::vector<std::string_view>& known) {
  const std::string reason = explanation(name);
  throw UserError(where, printable(path), "",
                  reason.empty() ? "is no key of a scene" + did_you_mean(name, known) : reason);
}

template <typename T>
static void read_object(T& record, const std::vector<Key<T>>& keys, const JsonField& object) {
  const std::string prefix = object.name.empty() ? "" : object.name + ".";
  if (!object.value.is_object()) object.refuse("an object {...}");
  for (const auto& [name, value] : object.value.items()) {
    const Key<T>* key = find_key(keys, name);
    if (!key) refuse_key(object.where, prefix + name, name, key_names(keys));
    key->read(record, {value, object.where, prefix + name, object.folder});
  }
}

Json to_json(const Scene& scene, FileNames names) {
  return write_keys(scene_keys(), scene, names);
}

Scene scene_from_json(const Json& json, const std::string& where, const std::filesystem::path& folder) {
  if (!json.is_object()) throw UserError(where, "", shown(json), "expected a scene: an object {\"prompt\": ..., ...}");
  Scene scene;
  scene.where = where;
  read_object(scene, scene_keys(), {json, where, "", folder});
  if (!scene.sigmas.empty() && !json.contains("evaluations"))
    scene.evaluations = static_cast<std::int64_t>(scene.sigmas.size()) - 1;
  check_scene(scene);
  return scene;
}

template <typename T>
static void add_help(std::vector<SceneKeyHelp>& list, const std::string& prefix, const std::vector<Key<T>>& keys) {
  for (const Key<T>& key : keys) {
    Json value;
    key.write(T{}, value, FileNames::as_written);
    const bool has_default = key.unset.empty() && !value.is_null() && !value.is_object();
    list.push_back({prefix + std::string(key.name), key.type, has_default ? value.dump() : key.unset, key.help});
  }
}

std::vector<SceneKeyHelp> scene_key_help() {
  std::vector<SceneKeyHelp> list;
  add_help(list, "", scene_keys());
  add_help(list, "output.", output_keys());
  return list;
}

static const std::string command_line = "command line";

// The value of an override for a key: text as it is, anything else as JSON where it is JSON.
static Json override_value(const Override& o, bool is_text) {
  const Json parsed = Json::parse(o.value, nullptr, false);
  if (parsed.is_discarded() || (is_text && !parsed.is_string())) return o.value;
  return parse_json(o.value, command_line + ", " + o.key);
}

template <typename T>
static bool is_text_key(const std::vector<Key<T>>& keys, const std::string& path, std::string_view name) {
  const Key<T>* key = find_key(keys, name);
  if (!key) refuse_key(command_line, path, name, key_names(keys));
  return key->is_text;
}

static const std::string output_prefix = "output.";

static bool is_text_override(const std::string& key) {
  if (key.starts_with(output_prefix)) return is_text_key(output_keys(), key, key.substr(output_prefix.size()));
  return is_text_key(scene_keys(), key, key);
}

Override parse_override(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos || equals == 0) throw UserError(command_line, "", printable(text), "expected KEY=VALUE");
  Override o{text.substr(0, equals), text.substr(equals + 1)};
  is_text_override(o.key);
  checked_utf8(o.value, command_line + ", " + o.key);
  return o;
}

// File names of the command line are relative to the current folder, not to a scene file's.
static Json anchored(const std::string& key, Json value) {
  const auto absolute = [](Json& name) {
    if (!name.is_string() || name.get_ref<const std::string&>().empty()) return;
    std::error_code ec;
    const auto path = std::filesystem::absolute(name.get<std::string>(), ec);
    if (!ec) name = path.string();
  };
  if (key == "first_frame" || key == "last_frame") absolute(value);
  if ((key == "references" || key == "guides") && value.is_array())
    for (Json& item : value)
      if (item.is_object())
        for (auto& [kind, name] : item.items()) absolute(name);
  return value;
}

// Keys that an override of `key` puts out of force.
static std::vector<std::string> excluded_by(const std::string& key) {
  if (key == "width" || key == "height") return {"aspect"};
  if (key == "aspect") return {"width", "height"};
  if (key == "frames") return {"seconds"};
  if (key == "seconds") return {"frames"};
  if (key == "evaluations") return {"sigmas", "audio_sigmas"};
  if (key == "sigmas") return {"evaluations", "audio_sigmas"};
  return {};
}

void apply_overrides(Json& scene, const std::vector<Override>& overrides) {
  if (!scene.is_object()) return;
  for (const Override& o : overrides)
    for (const std::string& other : excluded_by(o.key)) scene.erase(other);
  for (const Override& o : overrides) {
    const Json value = anchored(o.key, override_value(o, is_text_override(o.key)));
    if (o.key.starts_with(output_prefix)) {
      Json& output = scene[output_prefix.substr(0, output_prefix.size() - 1)];
      if (output.is_null()) output = Json::object();
      if (output.is_object()) output[o.key.substr(output_prefix.size())] = value;
    } else {
      scene[o.key] = value;
    }
  }
}

}  // namespace h3
