// Lists of tensor names, short enough to read: names that differ in numbers alone become one with ranges,
// "blocks.{0-49}.attn.qkv_proj.weight".
#pragma once

#include <string>
#include <vector>

namespace h3 {

// Every given name is covered by the result and nothing else is.
std::vector<std::string> name_ranges(const std::vector<std::string>& names);

}  // namespace h3
