#include "text/tokenizer_files.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_set>

#include "base/error.h"
#include "base/file.h"

namespace h3 {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

json read_json(const fs::path& path) {
  try {
    return json::parse(read_file(path));
  } catch (const json::parse_error& e) {
    throw UserError(path.string(), "", "", fmt::format("not JSON (byte {})", e.byte));
  }
}

const json& member(const json& object, const char* key, json::value_t kind, const fs::path& path) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  if (it == object.end() || it->type() != kind) {
    throw UserError(path.string(), key, "", std::string("a tokenizer file has this as ") + json(kind).type_name());
  }
  return *it;
}

std::unordered_map<std::string, std::int32_t> read_vocabulary(const json& object, const fs::path& path) {
  const auto size = static_cast<std::int64_t>(object.size());
  std::vector<bool> seen(object.size());
  std::unordered_map<std::string, std::int32_t> vocabulary;
  vocabulary.reserve(object.size());
  for (const auto& [entry, id] : object.items()) {
    const std::int64_t value = id.is_number_integer() ? id.get<std::int64_t>() : -1;
    if (value < 0 || value >= size || seen[static_cast<std::size_t>(value)]) {
      throw UserError(path.string(), entry, id.dump(), fmt::format("ids are 0 to {} without gaps", size - 1));
    }
    seen[static_cast<std::size_t>(value)] = true;
    vocabulary.emplace(entry, static_cast<std::int32_t>(value));
  }
  return vocabulary;
}

std::pair<std::string, std::string> split_rule(std::string_view rule, const fs::path& path, std::size_t line) {
  const std::size_t space = rule.find(' ');
  const bool two = space != std::string_view::npos && space > 0 && space + 1 < rule.size();
  if (!two || rule.find(' ', space + 1) != std::string_view::npos || rule.back() == '\r') {
    throw UserError(path.string(), fmt::format("line {}", line), std::string(rule),
                    "a merge rule is two symbols and one space between them");
  }
  return {std::string(rule.substr(0, space)), std::string(rule.substr(space + 1))};
}

std::vector<std::pair<std::string, std::string>> read_merges(const std::string& text, const fs::path& path) {
  std::vector<std::pair<std::string, std::string>> merges;
  std::size_t line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const auto rule = std::string_view(text).substr(begin, end - begin);
    if (!(line == 1 && rule.starts_with("#version"))) merges.push_back(split_rule(rule, path, line));
    begin = end + 1;
  }
  return merges;
}

// The merges of tokenizer.json: "a b" in older files, ["a", "b"] in newer ones.
std::vector<std::pair<std::string, std::string>> read_merges(const json& list, const fs::path& path) {
  std::vector<std::pair<std::string, std::string>> merges;
  for (const json& rule : list) {
    if (rule.is_string()) {
      merges.push_back(split_rule(rule.get_ref<const std::string&>(), path, merges.size() + 1));
    } else if (rule.is_array() && rule.size() == 2 && rule[0].is_string() && rule[1].is_string()) {
      merges.emplace_back(rule[0].get<std::string>(), rule[1].get<std::string>());
    } else {
      throw UserError(path.string(), "model.merges", rule.dump(), "a merge rule is two symbols");
    }
  }
  return merges;
}

void read_model(const fs::path& folder, TokenizerFiles& files) {
  const fs::path vocab = folder / "vocab.json", merges = folder / "merges.txt", both = folder / "tokenizer.json";
  const bool pair = fs::exists(vocab) && fs::exists(merges);
  if (!pair && !fs::exists(both)) {
    throw UserError(folder.string(), "", "", "a tokenizer folder holds vocab.json and merges.txt, or tokenizer.json");
  }
  if (pair) {
    const json object = read_json(vocab);
    if (!object.is_object()) throw UserError(vocab.string(), "", "", "a vocabulary is one object of entries and ids");
    files.vocabulary = read_vocabulary(object, vocab);
    files.merges = read_merges(read_file(merges), merges);
    return;
  }
  const json object = read_json(both);
  const json& model = member(object, "model", json::value_t::object, both);
  if (model.value("type", json("BPE")) != "BPE") {
    throw UserError(both.string(), "model.type", model["type"].dump(), "the tokenizer is byte-level BPE");
  }
  files.vocabulary = read_vocabulary(member(model, "vocab", json::value_t::object, both), both);
  files.merges = read_merges(member(model, "merges", json::value_t::array, both), both);
}

// Added tokens are cut out literally; a file that asks for more means another tokenizer.
std::string added_content(const json& token, const fs::path& path, const std::string& field) {
  if (token.is_string() && !token.get_ref<const std::string&>().empty()) return token.get<std::string>();
  const auto content = token.is_object() ? token.find("content") : token.end();
  if (!token.is_object() || content == token.end() || !content->is_string() || content->get<std::string>().empty()) {
    throw UserError(path.string(), field, token.dump(), "an added token is a text or an object with its content");
  }
  for (const char* flag : {"normalized", "lstrip", "rstrip", "single_word"}) {
    if (token.value(flag, json(false)) != false) {
      throw UserError(path.string(), field + "." + flag, token[flag].dump(), "false");
    }
  }
  return content->get<std::string>();
}

std::int32_t added_id(const std::string& key, const fs::path& path) {
  constexpr std::int32_t kLimit = 1 << 20;
  std::int32_t id = -1;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error != std::errc{} || end != key.data() + key.size() || id < 0 || id >= kLimit) {
    throw UserError(path.string(), "added_tokens_decoder", key, fmt::format("keys are token ids below {}", kLimit));
  }
  return id;
}

void read_added(const fs::path& folder, TokenizerFiles& files) {
  const fs::path path = folder / "tokenizer_config.json";
  const json config = read_json(path);
  std::unordered_set<std::string> known;
  std::unordered_set<std::int32_t> ids;
  const auto add = [&](const std::string& content, std::int32_t id) {
    const auto entry = files.vocabulary.find(content);
    const bool in_vocabulary = id < static_cast<std::int32_t>(files.vocabulary.size());
    const bool fits = entry == files.vocabulary.end() ? !in_vocabulary : entry->second == id;
    if (!fits || !known.insert(content).second || !ids.insert(id).second) {
      throw UserError(path.string(), content, fmt::format("{}", id), "every added token has an id of its own");
    }
    files.added.emplace_back(content, id);
  };
  const auto listed = config.find("added_tokens_decoder");
  if (listed != config.end()) {
    for (const auto& [key, token] : member(config, "added_tokens_decoder", json::value_t::object, path).items()) {
      add(added_content(token, path, "added_tokens_decoder." + key), added_id(key, path));
    }
  }
  if (!config.contains("additional_special_tokens")) return;
  auto next = static_cast<std::int32_t>(files.vocabulary.size());
  for (const auto& [content, id] : files.added) next = std::max(next, id + 1);
  for (const json& token : member(config, "additional_special_tokens", json::value_t::array, path)) {
    const std::string content = added_content(token, path, "additional_special_tokens");
    if (known.contains(content)) continue;
    const auto entry = files.vocabulary.find(content);
    add(content, entry == files.vocabulary.end() ? next++ : entry->second);
  }
}

}  // namespace

TokenizerFiles read_tokenizer_files(const fs::path& folder) {
  TokenizerFiles files;
  read_model(folder, files);
  read_added(folder, files);
  return files;
}

}  // namespace h3
