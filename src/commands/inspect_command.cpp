// h3render inspect
#include <filesystem>
#include <iostream>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/describe.h"
#include "commands/command_line.h"
#include "commands/commands.h"
#include "render/progress.h"
#include "weights/identity.h"
#include "weights/model_folder.h"
#include "weights/safetensors.h"

namespace h3 {

namespace {

CommandHelp inspect_help() {
  return {"inspect",
          "shows a safetensors file, a manifest, a checkpoint or a model folder",
          "PATH... [--json]",
          "A safetensors file: every tensor with dtype, shape and bytes. A manifest: scene, ranks, times and hashes. A "
          "model\n"
          "folder: layout, components and identity (reads all weights once, then remembers).",
          {"h3render inspect out/demo.manifest.json",
           "h3render inspect jobs/nano/vae/diffusion_pytorch_model.safetensors", "h3render inspect jobs/nano"},
          ""};
}

nlohmann::ordered_json inspect_safetensors(const std::string& path) {
  const SafetensorsFile file(path);
  nlohmann::ordered_json tensors = nlohmann::ordered_json::object();
  std::uint64_t bytes = 0;
  for (const auto& [name, t] : file.tensors()) {
    tensors[name] = {{"dtype", std::string(name_of(t.dtype))}, {"shape", t.shape.text()}, {"bytes", t.bytes}};
    bytes += t.bytes;
  }
  return {{"file", path}, {"bytes", bytes}, {"metadata", file.metadata()}, {"tensors", tensors}};
}

void print_safetensors(const nlohmann::ordered_json& j) {
  for (const auto& [name, t] : j["tensors"].items())
    std::cout << fmt::format("{:6} {:24} {:>12}  {}\n", t["dtype"].get<std::string>(), t["shape"].get<std::string>(),
                             t["bytes"].get<std::uint64_t>(), name);
  for (const auto& [key, value] : j["metadata"].items())
    std::cout << fmt::format("metadata {} = {}\n", key, value.get<std::string>());
  std::cout << fmt::format("{} tensors, {}\n", j["tensors"].size(), bytes_text(j["bytes"].get<double>()));
}

void print_manifest(const nlohmann::ordered_json& m) {
  const auto& g = m.at("geometry");
  std::cout << fmt::format("scene {} by h3render {}: {}x{}, {} frames, seed {}, {} evaluations\n",
                           m["scene"]["name"].get<std::string>(), m["program"]["version"].get<std::string>(),
                           g["width"].get<std::int64_t>(), g["height"].get<std::int64_t>(),
                           g["frames"].get<std::int64_t>(), m["scene"]["seed"].get<std::uint64_t>(),
                           m["schedule"]["evaluations"].get<std::int64_t>());
  std::cout << fmt::format("prompt: {}\nmodel {} ({}), numerics {}\n", m["scene"]["prompt"].get<std::string>(),
                           m["model"]["identity"].get<std::string>(), m["model"]["layout"].get<std::string>(),
                           m["numerics"]["id"].get<std::string>());
  for (const auto& rank : m["ranks"])
    std::cout << fmt::format("rank {} on {} ({}): {} rows, {} heads, {} decode units\n", rank["rank"].get<int>(),
                             rank["host"].get<std::string>(), rank.value("device", "device not recorded"),
                             rank["rows"].get<std::int64_t>(), rank["heads"].get<std::int64_t>(),
                             rank["decode_units"].get<std::int64_t>());
  for (const auto& [stage, seconds] : m["seconds"].items())
    std::cout << fmt::format("{:>10} {:9.3f} s\n", stage, seconds.get<double>());
  for (const char* hash : {"video_latents", "audio_latents", "frames", "audio"})
    std::cout << fmt::format("{:>14} {}\n", hash, m["hashes"][hash].get<std::string>());
}

nlohmann::ordered_json inspect_model(const std::string& path) {
  const ModelFolder model = open_model(path);
  const auto memory = make_private_memory();
  nlohmann::ordered_json components = nlohmann::ordered_json::object();
  for (const Component c :
       {Component::transformer, Component::text_encoder, Component::video_vae, Component::audio_vae})
    components[std::string(name_of(c))] = {{"tensors", model.plan(c).tensors.size()},
                                           {"identity", component_identity(model, c, Partition::fl2va, *memory)}};
  return {{"model", path},
          {"layout", model.layout_name()},
          {"identity", model_identity(model)},
          {"components", components}};
}

}  // namespace

int run_inspect(const std::vector<std::string>& words) {
  boost::program_options::options_description options;
  options.add_options()("json", "print JSON");
  const CommandLine line(inspect_help(), options, words);
  if (line.help_asked()) {
    std::cout << line.help_text();
    return static_cast<int>(ExitCode::done);
  }
  start_log(line.log(), 0);
  if (line.words().empty()) throw UserError("h3render inspect", "", "", "no path was given");
  for (const std::string& path : line.words()) {
    const bool folder = std::filesystem::is_directory(path) || path.starts_with("synthetic:");
    const bool manifest = path.ends_with(".json"), checkpoint = path.ends_with(".h5");
    nlohmann::ordered_json j;
    try {
      j = folder       ? inspect_model(path)
          : checkpoint ? describe_checkpoint_file(path, FileLocking::automatic)
          : manifest   ? nlohmann::ordered_json::parse(read_file(path))
                       : inspect_safetensors(path);
      if (line.has("json") || folder || checkpoint)
        std::cout << j.dump(2) << "\n";
      else
        manifest ? print_manifest(j) : print_safetensors(j);
    } catch (const nlohmann::json::exception& e) {
      throw UserError(path, "", "", std::string("is not a manifest of this program: ") + e.what());
    }
  }
  return static_cast<int>(ExitCode::done);
}

}  // namespace h3
