#include "weights/name_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace h3 {

using Parts = std::vector<std::string>;

static Parts split(const std::string& name) {
  Parts parts(1);
  for (char c : name) {
    if (c == '.')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

static bool is_number(const std::string& s) {
  return !s.empty() && s.size() < 7 && s.find_first_not_of("0123456789") == std::string::npos;
}

static std::string ranges_of(const std::set<int>& numbers) {
  Parts ranges;
  for (auto it = numbers.begin(); it != numbers.end();) {
    const int first = *it;
    int last = first;
    for (++it; it != numbers.end() && *it == last + 1; ++it) last = *it;
    ranges.push_back(last > first ? fmt::format("{}-{}", first, last) : fmt::format("{}", first));
  }
  if (numbers.size() == 1) return ranges[0];
  return fmt::format("{{{}}}", fmt::join(ranges, ","));
}

// Joins the names that are equal but for the number at `position`.
static std::vector<Parts> join_at(const std::vector<Parts>& names, std::size_t position) {
  std::map<Parts, std::set<int>> groups;
  std::vector<Parts> result, order;
  for (Parts name : names) {
    if (position >= name.size() || !is_number(name[position])) {
      result.push_back(std::move(name));
      continue;
    }
    const int number = std::stoi(name[position]);
    name[position].clear();
    const auto [it, added] = groups.try_emplace(name);
    if (added) order.push_back(name);
    it->second.insert(number);
  }
  for (Parts name : order) {
    const std::string numbers = ranges_of(groups.at(name));
    name[position] = numbers;
    result.push_back(std::move(name));
  }
  return result;
}

std::vector<std::string> name_ranges(const std::vector<std::string>& names) {
  std::vector<Parts> parts;
  std::size_t longest = 0;
  for (const std::string& name : names) {
    parts.push_back(split(name));
    longest = std::max(longest, parts.back().size());
  }
  for (std::size_t position = longest; position-- > 0;) parts = join_at(parts, position);
  std::vector<std::string> result;
  for (const Parts& p : parts) result.push_back(fmt::format("{}", fmt::join(p, ".")));
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace h3
