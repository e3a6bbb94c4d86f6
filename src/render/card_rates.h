// What NVIDIA's data sheets promise of a card, by the name its driver gives: the peak that utilisation is measured
// against. A card that is not in the table has no known peak; nothing is guessed.
#pragma once

#include <optional>
#include <string_view>

namespace h3 {

// Dense bf16 operations a second with float32 accumulation, or none.
std::optional<double> bf16_peak(std::string_view card_name);

}  // namespace h3
