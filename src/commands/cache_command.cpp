// h3render cache
#include <array>
#include <iostream>

#include "base/clock.h"
#include "base/error.h"
#include "base/names.h"
#include "cache/cache_store.h"
#include "checkpoint/hdf5_library.h"
#include "commands/command_line.h"
#include "commands/commands.h"
#include "render/cache_options.h"
#include "render/progress.h"

namespace h3 {

namespace po = boost::program_options;

static CommandHelp cache_help() {
  return {"cache",
          "lists or clears what renders keep of encoded prompts, pictures, clips and sounds",
          "list|clear [--folder DIR] [--json]",
          "list: each entry with its kind, rows, bytes, the seconds that encoding took and when it was last used.\n"
          "clear: removes all entries; those that a running job uses stay.",
          {"h3render cache list", "h3render cache list --folder /scratch/encodings --json", "h3render cache clear"},
          ""};
}

namespace {

struct Listed {
  CacheFile file;
  CacheFacts facts;
  bool used = false;
  std::string damage;
};

Listed look_at(const CacheFile& file) {
  Listed listed{file, {}, false, ""};
  try {
    listed.facts = parse_entry_facts(file.path);
  } catch (const Hdf5Failure& e) {
    listed.damage = e.what();
  } catch (const UserError& e) {
    listed.damage = e.what();
  }
  listed.used = is_used(file.path);
  return listed;
}

nlohmann::ordered_json to_json(const Listed& entry) {
  nlohmann::ordered_json j{{"file", entry.file.path.string()}, {"bytes", entry.file.bytes}};
  j["last_used"] = entry.file.last_used;
  j["in_use"] = entry.used;
  if (!entry.damage.empty()) {
    j["damage"] = entry.damage;
    return j;
  }
  j["kind"] = entry.facts.kind;
  j["rows"] = entry.facts.rows;
  j["seconds"] = entry.facts.seconds;
  return j;
}

std::string text_of(const Listed& entry) {
  const std::string name = entry.file.path.filename().string(),
                    bytes = bytes_text(static_cast<double>(entry.file.bytes)),
                    ago = duration_text(std::max(0.0, wall_seconds() - entry.file.last_used));
  const char* used = entry.used ? "  in use" : "";
  if (!entry.damage.empty()) return fmt::format("{}  damaged: {}{}\n", name, entry.damage, used);
  return fmt::format("{}  {:<8}  {:>6} rows  {:>10}  {:>9.2f} s to encode  used {} ago{}\n", name, entry.facts.kind,
                     entry.facts.rows, bytes, entry.facts.seconds, ago, used);
}

void list(const std::filesystem::path& folder, bool json) {
  std::vector<Listed> entries;
  std::uint64_t bytes = 0;
  for (const CacheFile& file : cache_files(folder)) {
    entries.push_back(look_at(file));
    bytes += file.bytes;
  }
  if (json) {
    nlohmann::ordered_json j{
        {"folder", folder.string()}, {"bytes", bytes}, {"entries", nlohmann::ordered_json::array()}};
    for (const Listed& entry : entries) j["entries"].push_back(to_json(entry));
    std::cout << j.dump(2) << "\n";
    return;
  }
  for (const Listed& entry : entries) std::cout << text_of(entry);
  std::cout << fmt::format("{}: {} entries, {}\n", folder.string(), entries.size(),
                           bytes_text(static_cast<double>(bytes)));
}

void clear(const std::filesystem::path& folder, bool json) {
  const Cleared cleared = clear_cache(folder);
  if (json) {
    const nlohmann::ordered_json j{
        {"folder", folder.string()}, {"removed", cleared.files}, {"bytes", cleared.bytes}, {"kept", cleared.kept}};
    std::cout << j.dump(2) << "\n";
    return;
  }
  std::cout << fmt::format("{}: {} entries removed, {}", folder.string(), cleared.files,
                           bytes_text(static_cast<double>(cleared.bytes)));
  std::cout << (cleared.kept > 0 ? fmt::format("; {} in use or not removable, left alone\n", cleared.kept) : "\n");
}

}  // namespace

int run_cache(const std::vector<std::string>& words) {
  po::options_description options;
  options.add_options()("folder", po::value<std::string>()->value_name("DIR"),
                        "the cache; without it the user's, h3render/encodings in $XDG_CACHE_HOME or ~/.cache");
  options.add_options()("json", "print JSON");
  const CommandLine line(cache_help(), options, words);
  if (line.help_asked()) {
    std::cout << line.help_text();
    return static_cast<int>(ExitCode::done);
  }
  start_log(line.log(), 0);
  static constexpr std::array<std::string_view, 2> kActions{"list", "clear"};
  const std::string what = line.words().size() == 1 ? line.words()[0] : "";
  if (what != "list" && what != "clear")
    throw UserError("h3render cache", "", what,
                    "expected list or clear" + (what.empty() ? "" : did_you_mean(what, kActions)));
  const std::filesystem::path folder = cache_folder(line.get_or<std::string>("folder", ""), "--folder");
  what == "list" ? list(folder, line.has("json")) : clear(folder, line.has("json"));
  return static_cast<int>(ExitCode::done);
}

}  // namespace h3
