// Help with names that people type: the nearest of a list by edit distance.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace h3 {

// The candidate nearest to `name`, or "" when none is near (more than a third of its letters differ, at least 2).
std::string nearest_name(std::string_view name, std::span<const std::string_view> candidates);

// " (did you mean NEAREST?)" or "".
std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace h3
