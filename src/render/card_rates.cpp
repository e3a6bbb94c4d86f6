#include "render/card_rates.h"

namespace h3 {

namespace {

struct CardPeak {
  std::string_view part;  // of the driver's name
  double teraflops;
};

// The first entry that is a part of the name counts, so longer names stand before the shorter ones they contain.
constexpr CardPeak kPeaks[] = {
    {"GH200", 989.4},    {"H200 NVL", 835.5}, {"H200", 989.4},    {"H100 NVL", 835.5},     {"H100 PCIe", 756.0},
    {"H100", 989.4},     {"H800", 989.4},     {"H20", 148.0},     {"A100", 312.0},         {"A800", 312.0},
    {"A40", 149.7},      {"A30", 165.0},      {"A10G", 70.0},     {"A10", 125.0},          {"L40S", 362.1},
    {"L40", 181.0},      {"L4", 121.0},       {"B200", 2250.0},   {"RTX 6000 Ada", 364.2}, {"RTX A6000", 154.8},
    {"RTX 5090", 209.5}, {"RTX 4090", 165.2}, {"RTX 3090", 71.0},
};

}  // namespace

std::optional<double> bf16_peak(std::string_view card_name) {
  for (const CardPeak& card : kPeaks) {
    const auto at = card_name.find(card.part);
    if (at == card_name.npos) continue;
    // "A40" is not "A4000", and "RTX 4090" not "RTX 4090 Laptop GPU".
    const std::string_view rest = card_name.substr(at + card.part.size());
    const bool whole = (at == 0 || card_name[at - 1] == ' ') && (rest.empty() || rest[0] == ' ' || rest[0] == '-');
    if (whole && rest.find("Laptop") == rest.npos && rest.find(" Ti") == rest.npos && rest.find(" D") == rest.npos)
      return card.teraflops * 1e12;
  }
  return std::nullopt;
}

}  // namespace h3
