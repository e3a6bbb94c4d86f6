// One value of a scene file on its way into the scene: knows its file and key, so that every message names them.
#pragma once

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "scene/choices.h"
#include "scene/json_text.h"

namespace h3 {

struct JsonField {
  const Json& value;
  const std::string& where;
  std::string name;
  const std::filesystem::path& folder;  // where relative file names start

  [[noreturn]] void refuse(const std::string& expected) const {
    throw UserError(where, name, shown(value), "expected " + expected);
  }

  bool flag() const {
    if (!value.is_boolean()) refuse("true or false");
    return value.get<bool>();
  }

  std::uint64_t natural(std::uint64_t low, std::uint64_t high) const {
    const bool below_zero = value.is_number_integer() && !value.is_number_unsigned() && value.get<std::int64_t>() < 0;
    const bool whole = value.is_number_integer() && !below_zero;
    if (!whole || value.get<std::uint64_t>() < low || value.get<std::uint64_t>() > high)
      refuse(fmt::format("a whole number from {} to {}", low, high));
    return value.get<std::uint64_t>();
  }

  std::int64_t count(std::int64_t low, std::int64_t high) const {
    return static_cast<std::int64_t>(natural(static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high)));
  }

  // A whole number of any sign: its range is judged by a rule that knows more and that `kind` states.
  std::int64_t whole(const std::string& kind) const {
    const bool too_large = value.is_number_unsigned() &&
                           value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()};
    if (!value.is_number_integer() || too_large) refuse("a whole number, " + kind);
    return value.get<std::int64_t>();
  }

  double positive() const {
    if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() <= 0)
      refuse("a number above 0");
    return value.get<double>();
  }

  std::string text() const {
    if (!value.is_string()) refuse("text in quotes");
    return value.get<std::string>();
  }

  template <typename E>
  E choice() const {
    const auto& names = Choices<E>::names;
    if (value.is_string())
      for (std::size_t i = 0; i < names.size(); ++i)
        if (value.get_ref<const std::string&>() == names[i]) return static_cast<E>(i);
    refuse(choice_list<E>());
  }

  MediaFile file() const {
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) refuse("a file name in quotes");
    const std::string given = value.get<std::string>();
    if (given.find('\0') != given.npos) refuse("a file name without zero bytes");
    std::error_code ec;
    const auto absolute = std::filesystem::absolute(folder / given, ec);
    return {given, (ec ? folder / given : absolute).lexically_normal()};
  }

  // A file, or a frame of another scene: {"scene": NAME, "frame": N}, of which the last is taken without "frame".
  MediaFile file_or_frame() const {
    if (!value.is_object()) return file();
    FrameOfScene of;
    for (const auto& [key, item] : value.items()) {
      const JsonField field{item, where, name + "." + key, folder};
      if (key == "scene")
        of.scene = field.text();
      else if (key == "frame")
        of.frame = field.whole("a frame of that scene; negative ones count from its end");
      else
        refuse("a file name in quotes, or {\"scene\": NAME, \"frame\": N}");
    }
    if (of.scene.empty()) refuse("a file name in quotes, or {\"scene\": NAME, \"frame\": N}");
    return {fmt::format("frame {} of {}", of.frame, of.scene), {}, of};
  }

  // A schedule for one stream: at least two values, strictly decreasing as float32, from at most 1 to exactly 0
  // (spec/dit.md 5.1).
  std::vector<double> sigmas() const {
    const std::string expected =
        "at least two numbers, strictly decreasing, the first at most 1 and the last exactly 0";
    if (!value.is_array() || value.size() < 2) refuse(expected);
    std::vector<double> list;
    for (const Json& v : value) {
      if (!v.is_number()) refuse(expected);
      const double sigma = v.get<double>();
      const bool falls = list.empty() ? sigma <= 1 : static_cast<float>(sigma) < static_cast<float>(list.back());
      if (!falls) refuse(expected);
      list.push_back(sigma);
    }
    if (list.back() != 0) refuse(expected);
    return list;
  }
};

}  // namespace h3
