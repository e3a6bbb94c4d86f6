// JSON as people write it into scene files, read strictly: UTF-8 only, no key given twice, no comments, no numbers
// that do not fit. A byte order mark and any line ending are accepted. Keys keep their order, whole numbers their
// 64 bits.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace h3 {

using Json = nlohmann::ordered_json;

// Parses one JSON text. `where` (file, or file and line) opens the message of the UserError thrown for invalid UTF-8
// (with the byte offset), invalid JSON (with line and column) and duplicate keys (with their path).
Json parse_json(std::string_view text, const std::string& where);

// The text without a UTF-8 byte order mark. Throws UserError for UTF-16 and for invalid UTF-8.
std::string_view checked_utf8(std::string_view text, const std::string& where);

// A value for messages, short and in one line.
std::string shown(const Json& value);

}  // namespace h3
