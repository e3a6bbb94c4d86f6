#include "base/error.h"

namespace h3 {

static std::string user_message(const std::string& where, const std::string& field, const std::string& value,
                                const std::string& expected) {
  std::string m = where;
  if (!field.empty()) m += (m.empty() ? "" : ": ") + field;
  if (!value.empty()) m += (field.empty() ? ": " : " = ") + value;
  if (!expected.empty()) m += (m.empty() ? "" : ": ") + expected;
  return m;
}

UserError::UserError(const std::string& where, const std::string& field, const std::string& value,
                     const std::string& expected)
    : std::runtime_error(user_message(where, field, value, expected)) {}

void check_failed(const char* file, int line, const char* what, const std::string& values) {
  throw RunError(fmt::format("internal check failed: {} ({}) at {}:{}", what, values, file, line));
}

}  // namespace h3
