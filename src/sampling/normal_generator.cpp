#include "sampling/normal_generator.h"

#include <array>
#include <bit>
#include <cmath>
#include <numbers>
#include <sstream>

#include "base/error.h"

namespace h3 {

namespace {

constexpr std::size_t kBlock = 16;
constexpr std::size_t kPairs = kBlock / 2;

// The fused chain ((c0 x + c1) x + c2) x ...
template <std::size_t N>
float polynomial(const std::array<float, N>& c, float x) {
  float y = c[0];
  for (std::size_t i = 1; i < N; ++i) y = std::fma(y, x, c[i]);
  return y;
}

// Natural logarithm of a normal float in (0, 1].
float log_of(float v) {
  static constexpr std::array<float, 9> kLog{7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                                             -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                                             2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  const auto bits = std::bit_cast<std::uint32_t>(v);
  const float m = std::bit_cast<float>((bits & 0x007fffffu) | 0x3f000000u);  // in [0.5, 1)
  const bool low = m < 0.70710678118654752440f;
  const float e = static_cast<float>(static_cast<std::int32_t>(bits >> 23) - 126 - (low ? 1 : 0));
  float x = (m - 1.0f) + (low ? m : 0.0f);
  const float z = x * x;
  float y = polynomial(kLog, x) * x;
  y = std::fma(y, z, e * -2.12194440e-4f);
  y = std::fma(-z, 0.5f, y);
  x += y;
  return std::fma(e, 0.693359375f, x);
}

struct SineCosine {
  float sine, cosine;
};

// Sine and cosine of an angle in [0, 2 pi].
SineCosine sine_cosine_of(float angle) {
  static constexpr std::array<float, 3> kCosine{2.443315711809948e-5f, -1.388731625493765e-3f, 4.166664568298827e-2f};
  static constexpr std::array<float, 3> kSine{-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f};
  const std::int32_t j = (static_cast<std::int32_t>(angle * 1.27323954473516f) + 1) & ~1;
  const auto octant = static_cast<float>(j);
  float x = std::fma(octant, -0.78515625f, angle);
  x = std::fma(octant, -2.4187564849853515625e-4f, x);
  x = std::fma(octant, -3.77489497744594108e-8f, x);
  const float z = x * x;
  float c = polynomial(kCosine, z) * z;
  c = std::fma(c, z, -(z * 0.5f)) + 1.0f;
  float s = polynomial(kSine, z) * z;
  s = std::fma(s, x, x);
  const bool straight = (j & 2) == 0;
  const float sine = straight ? s : c;
  const float cosine = straight ? c : s;
  return {(j & 4) != 0 ? -sine : sine, ((j - 2) & 4) == 0 ? -cosine : cosine};
}

// Turns 16 uniforms of [0, 1) into 16 normals, in place: value j pairs with value j + 8.
void box_muller(std::span<float, kBlock> d) {
  constexpr float kTwoPi = 2.0f * std::numbers::pi_v<float>;
  for (std::size_t j = 0; j < kPairs; ++j) {
    const float rho = std::sqrt(-2.0f * log_of(1.0f - d[j]));
    const SineCosine turn = sine_cosine_of(kTwoPi * d[j + kPairs]);
    d[j] = rho * turn.cosine;
    d[j + kPairs] = rho * turn.sine;
  }
}

}  // namespace

float NormalGenerator::uniform() {
  return static_cast<float>(words_() & 0xffffffu) * 0x1p-24f;
}

double NormalGenerator::uniform_double() {
  const std::uint64_t high = words_();
  const std::uint64_t word = (high << 32) | words_();
  return static_cast<double>(word & ((std::uint64_t{1} << 53) - 1)) * 0x1p-53;
}

double NormalGenerator::next_double_normal() {
  if (kept_) {
    const double kept = *kept_;
    kept_.reset();
    return kept;
  }
  const double turn = 2.0 * std::numbers::pi * uniform_double();
  const double radius = std::sqrt(-2.0 * std::log1p(-uniform_double()));
  kept_ = radius * std::sin(turn);
  return radius * std::cos(turn);
}

void NormalGenerator::fill_uniform(std::span<float> out) {
  for (float& v : out) v = uniform();
}

void NormalGenerator::fill(std::span<float> out) {
  if (out.size() < kBlock) {
    for (float& v : out) v = static_cast<float>(next_double_normal());
    return;
  }
  fill_uniform(out);
  for (std::size_t i = 0; i + kBlock <= out.size(); i += kBlock) box_muller(out.subspan(i).first<kBlock>());
  if (out.size() % kBlock != 0) {
    const auto tail = out.last<kBlock>();
    fill_uniform(tail);
    box_muller(tail);
  }
}

std::string NormalGenerator::state() const {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << "mt19937 " << (kept_ ? 1 : 0) << ' ' << std::bit_cast<std::uint64_t>(kept_.value_or(0.0)) << ' ' << words_;
  return text.str();
}

NormalGenerator NormalGenerator::from_state(const std::string& text, const std::string& where) {
  std::istringstream in(text);
  in.imbue(std::locale::classic());
  std::string kind, rest;
  int has_kept = 0;
  std::uint64_t kept = 0;
  NormalGenerator generator(0);
  const bool whole = static_cast<bool>(in >> kind >> has_kept >> kept >> generator.words_) && !(in >> rest);
  if (!whole || kind != "mt19937" || (has_kept != 0 && has_kept != 1)) {
    throw UserError(where, "generator state", text.substr(0, 40), "the state of an mt19937 generator");
  }
  if (has_kept == 1) generator.kept_ = std::bit_cast<double>(kept);
  return generator;
}

}  // namespace h3
