// Standard normals with the bits of PyTorch's CPU generator, so that a seed names the same noise here and there.
// MT19937 gives the words; draws of 16 values and more go through single-precision Box-Muller in blocks of 16 with
// polynomial log, sine and cosine (plain float arithmetic and std::fma alone, so no C library can change a bit);
// shorter draws take a double-precision path that keeps its second value for the next one (spec/dit.md 5.7).
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>

namespace h3 {

class NormalGenerator {
 public:
  // Only the low 32 bits of the seed count.
  explicit NormalGenerator(std::uint64_t seed) : words_(static_cast<std::uint32_t>(seed)) {}

  // Fills `out` with the next normals. One call is one draw: the bits depend on how a sequence is cut into draws.
  void fill(std::span<float> out);

  // The whole state as one line of text, and back. `from_state` throws UserError naming `where` for anything else.
  std::string state() const;
  static NormalGenerator from_state(const std::string& text, const std::string& where);

 private:
  float uniform();
  double uniform_double();
  double next_double_normal();
  void fill_uniform(std::span<float> out);

  std::mt19937 words_;
  std::optional<double> kept_;  // the second value of a pair of the double-precision path
};

}  // namespace h3
