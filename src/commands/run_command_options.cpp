#include "commands/run_command_options.h"

#include <algorithm>

#include "scene/scene_keys.h"

namespace h3 {

namespace po = boost::program_options;

void add_run_options(po::options_description& description, const std::vector<std::string>& only) {
  for (const RunOptionHelp& o : run_option_help()) {
    if (!only.empty() && std::find(only.begin(), only.end(), o.name) == only.end()) continue;
    std::string help = o.help;
    if (!o.default_value.empty() && !o.value.empty()) help += " (default " + o.default_value + ")";
    if (o.value.empty())
      description.add_options()(o.name.c_str(), help.c_str());
    else
      description.add_options()(o.name.c_str(), po::value<std::string>()->value_name(o.value), help.c_str());
  }
}

RunOptions run_options_from(const CommandLine& line, std::vector<std::string>& scene_overrides) {
  RunOptions options;
  for (const std::string& text : line.overrides()) {
    const auto equals = text.find('=');
    std::string key = text.substr(0, equals);
    std::string dashed = key;
    std::replace(dashed.begin(), dashed.end(), '_', '-');
    // `output` alone is an object of the scene; as an option it is spelled --output.
    if (is_run_option(dashed) && dashed != "output")
      set_run_option(options, dashed, text.substr(equals + 1));
    else
      scene_overrides.push_back(text);
  }
  for (const RunOptionHelp& o : run_option_help())
    if (line.has(o.name)) set_run_option(options, o.name, o.value.empty() ? "" : line.get<std::string>(o.name));
  return options;
}

std::string scene_keys_text() {
  std::string text = "Keys of a scene (in its file, or as KEY=VALUE):\n";
  for (const SceneKeyHelp& key : scene_key_help()) {
    text += fmt::format("  {} ({}{})\n      {}\n", key.name, key.type,
                        key.default_value.empty() ? "" : ", default " + key.default_value, key.help);
  }
  return text;
}

}  // namespace h3
