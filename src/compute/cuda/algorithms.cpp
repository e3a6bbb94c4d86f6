#include <algorithm>

#include "compute/cuda/cuda_operators.h"

namespace h3 {

std::string CudaOperators::algorithms() const {
  constexpr const char* kEngines[] = {"automatic", "cudnn", "own"};
  std::string text =
      fmt::format("attention-engine {} {}\n", kEngines[static_cast<int>(options_.attention)], capability_);
  for (const auto& lines : {gemms_.lines(), cudnn_.lines()})
    for (const std::string& line : lines) text += line + "\n";
  return text;
}

void CudaOperators::adopt_algorithms(const std::string& text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (line.starts_with("gemm ")) gemms_.adopt(line);
    if (line.starts_with("attention ")) cudnn_.adopt(line);
    begin = end + 1;
  }
}

}  // namespace h3
