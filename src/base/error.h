// Errors by who can cause them. UserError: the user can, so it names what, where and what would be right (exit 2).
// SceneError: one scene cannot be rendered, the others can (exit 3). RunError: the run cannot go on (exit 1).
// CHECK: only we can cause it, so it prints both values and the place.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace h3 {

// Exit codes of the program; job scripts decide by them.
enum class ExitCode : int { done = 0, failure = 1, bad_input = 2, scenes_failed = 3, stopped = 75 };

// Bad input. `where` is a file or an option group, `field` the key, tensor or option, `value` what was found and
// `expected` what would be right; empty parts are left out of the message.
class UserError : public std::runtime_error {
 public:
  UserError(const std::string& where, const std::string& field, const std::string& value, const std::string& expected);
  explicit UserError(const std::string& message) : std::runtime_error(message) {}
};

class SceneError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void check_failed(const char* file, int line, const char* what, const std::string& values);

}  // namespace h3

#define H3_CHECK(condition, ...)                                                                    \
  do {                                                                                              \
    if (!(condition)) ::h3::check_failed(__FILE__, __LINE__, #condition, std::string{__VA_ARGS__}); \
  } while (0)

#define H3_CHECK_OP(a, op, b)                                                                              \
  do {                                                                                                     \
    const auto& h3_a = (a);                                                                                \
    const auto& h3_b = (b);                                                                                \
    if (!(h3_a op h3_b))                                                                                   \
      ::h3::check_failed(__FILE__, __LINE__, #a " " #op " " #b, fmt::format("{} against {}", h3_a, h3_b)); \
  } while (0)
#define CHECK_EQ(a, b) H3_CHECK_OP(a, ==, b)
#define CHECK_LE(a, b) H3_CHECK_OP(a, <=, b)
#define CHECK_LT(a, b) H3_CHECK_OP(a, <, b)
#define CHECK_GE(a, b) H3_CHECK_OP(a, >=, b)
