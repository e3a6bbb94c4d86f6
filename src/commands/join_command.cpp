// h3render join
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "commands/command_line.h"
#include "commands/commands.h"
#include "media/join.h"
#include "render/version.h"
#include "scene/scene_files.h"

namespace h3 {

namespace po = boost::program_options;
namespace fs = std::filesystem;

static CommandHelp join_help() {
  return {"join",
          "puts renders one after another into one MP4",
          "FILE.mp4 PART... [options]",
          "A PART is a clip, a folder of PNG frames (X.frames, with X.wav or X.mp4 beside it for the sound), or scene\n"
          "files (.json, .jsonl, .ndjson) whose renders lie in the folder --output: their frames and WAV where they "
          "were kept,\n"
          "else their MP4. All parts have one size. Frames and sound are encoded again; each part's sound is cut or\n"
          "filled up with silence to the length of its frames.",
          {"h3render join film.mp4 out/a.mp4 out/b.mp4", "h3render join film.mp4 scenes.json --output out --crf 14"},
          ""};
}

static std::int64_t number(const CommandLine& line, const std::string& name, std::int64_t least, std::int64_t most,
                           std::int64_t otherwise) {
  if (!line.has(name)) return otherwise;
  const std::string text = line.get<std::string>(name);
  const auto values = counts_of(text, "--" + name, least);
  if (values.size() != 1 || values[0] > most)
    throw UserError("--" + name, "", text, fmt::format("a whole number from {} to {}", least, most));
  return values[0];
}

static std::vector<JoinPart> parts_of(const CommandLine& line) {
  std::vector<JoinPart> parts;
  for (std::size_t i = 1; i < line.words().size(); ++i) {
    const fs::path word = line.words()[i];
    const std::string ending = word.extension().string();
    if (ending != ".json" && ending != ".jsonl" && ending != ".ndjson") {
      parts.push_back(part_of(word));
      continue;
    }
    const SceneList list = load_scenes({word});
    list.require_all_good();
    for (const Scene& scene : list.scenes)
      parts.push_back(find_part(line.get_or<std::string>("output", "."), scene.name));
  }
  if (parts.size() < 2)
    throw UserError("h3render join", "", "", fmt::format("takes two parts or more, {} given", parts.size()));
  return parts;
}

int run_join(const std::vector<std::string>& words) {
  po::options_description options;
  const auto text = [&](const char* name, const char* value, const char* help) {
    options.add_options()(name, po::value<std::string>()->value_name(value), help);
  };
  text("output", "DIR", "folder with the renders of scene files (default .)");
  text("crf", "N", "quality of the H.264 stream, 0 to 51; lower is better and larger (default 18)");
  text("preset", "NAME", "of libx264, ultrafast to veryslow (default medium)");
  text("audio-bitrate", "N", "bits per second of the AAC stream (default 192000)");
  options.add_options()("overwrite", "replace FILE.mp4 where it is there");
  const CommandLine line(join_help(), options, words);
  if (line.help_asked()) {
    std::cout << line.help_text();
    return static_cast<int>(ExitCode::done);
  }
  start_log(line.log(), 0);
  if (line.words().empty() || fs::path(line.words()[0]).extension() != ".mp4")
    throw UserError("h3render join", "", line.words().empty() ? "" : line.words()[0], "the file to write, FILE.mp4");
  const fs::path file = line.words()[0];
  std::error_code error;
  if (fs::exists(file, error) && !line.has("overwrite"))
    throw UserError(file.string(), "", "", "is there already; --overwrite replaces it");
  const std::vector<JoinPart> parts = parts_of(line);
  nlohmann::ordered_json joined = nlohmann::ordered_json::array();
  for (const JoinPart& part : parts) joined.push_back(part.name);
  Mp4Options mp4;
  mp4.crf = number(line, "crf", 0, 51, mp4.crf);
  mp4.audio_bitrate = number(line, "audio-bitrate", 32000, 384000, mp4.audio_bitrate);
  mp4.preset = line.get_or("preset", mp4.preset);
  mp4.title = file.stem().string();
  mp4.comment = nlohmann::ordered_json{{"program", "h3render " + program_version()}, {"joined", joined}}.dump();
  const JoinReport report = join(parts, file, mp4);
  std::cout << fmt::format("{}: {} parts, {}x{}, {} frames, {:.3f} s\n", file.string(), parts.size(), report.width,
                           report.height, report.frames, static_cast<double>(report.frames) / 24);
  return static_cast<int>(ExitCode::done);
}

}  // namespace h3
