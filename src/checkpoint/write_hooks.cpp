#include "checkpoint/write_hooks.h"

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <memory>
#include <thread>

#include "base/error.h"

namespace h3 {

WriteHooks hold_at(const std::string& point, const std::filesystem::path& file) {
  return {[=](std::string_view reached) {
    std::error_code error;
    while (reached == point && std::filesystem::exists(file, error))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }};
}

WriteHooks exit_at(const std::string& point, int exit_code, int count) {
  return {[=, left = std::make_shared<int>(count)](std::string_view reached) {
    if (reached == point && --*left == 0) ::_exit(exit_code);
  }};
}

WriteHooks parse_write_hooks(const std::string& text, const std::string& option) {
  if (text.empty()) return {};
  const auto wrong = [&] { return UserError(option, "", text, "POINT:hold=FILE or POINT:exit=CODE[@COUNT]"); };
  const std::size_t colon = text.find(':'), equals = text.find('=');
  if (colon == std::string::npos || equals == std::string::npos || equals < colon) throw wrong();
  const std::string point = text.substr(0, colon), action = text.substr(colon + 1, equals - colon - 1);
  const std::string value = text.substr(equals + 1);
  if (action == "hold" && !value.empty()) return hold_at(point, value);
  int code = 0, count = 1;
  const char* end = value.data() + value.size();
  auto parsed = std::from_chars(value.data(), end, code);
  if (parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == '@')
    parsed = std::from_chars(parsed.ptr + 1, end, count);
  if (action != "exit" || parsed.ec != std::errc() || parsed.ptr != end) throw wrong();
  return exit_at(point, code, count);
}

}  // namespace h3
