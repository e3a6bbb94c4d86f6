// For fault tests alone: a function called at named points of writing a file, so that a test can hold a write open
// there or end the process. Nothing is set in a normal run.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace h3 {

struct WriteHooks {
  // Points, in order: "opened" (the temporary file is there, empty), "half" (half of it is written), "written",
  // "synced", "kept" (the last file became the previous one), "renamed" (the new one has its name), "done".
  std::function<void(std::string_view point)> at;
  void reach(std::string_view point) const {
    if (at) at(point);
  }
};

// Waits at `point` while `file` exists.
WriteHooks hold_at(const std::string& point, const std::filesystem::path& file);
// Ends the process at the `count`th time that `point` is reached, without any cleaning up.
WriteHooks exit_at(const std::string& point, int exit_code, int count = 1);

// "POINT:hold=FILE" or "POINT:exit=CODE" or "POINT:exit=CODE@COUNT"; "" is no hook. Throws UserError naming `option`.
WriteHooks parse_write_hooks(const std::string& text, const std::string& option);

}  // namespace h3
