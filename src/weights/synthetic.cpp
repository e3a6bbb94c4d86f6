#include "weights/synthetic.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"

namespace h3 {

namespace {

// Values are centre + half_width * u with u uniform in (-1, 1), never 0.
struct Range {
  float centre = 0, half_width = 0;
};

// Uniform values of a standard deviation.
Range spread(double deviation, float centre = 0) {
  return {centre, static_cast<float>(std::sqrt(3.0) * deviation)};
}

Range range_of(const PlannedTensor& t) {
  const double inputs = static_cast<double>(std::max<std::int64_t>(1, t.row_elements()));
  switch (t.role) {
    case Role::weight:
      return spread(1 / std::sqrt(inputs));
    case Role::adaln:
      return spread(0.5 / std::sqrt(inputs));
    case Role::direction:
      return spread(1 / std::sqrt(inputs));
    case Role::bias:
    case Role::norm_bias:
      return spread(0.02);
    case Role::adaln_bias:
      return spread(0.1);
    case Role::norm:
      return {1.0f, 0.2f};
    case Role::magnitude:
      return {1.0f, 0.3f};
    case Role::snake:
      return {1.0f, 0.5f};
    case Role::snake_log:
      return {0.0f, 0.4f};
    case Role::layer_scale:
      return {0.3f, 0.1f};
    case Role::embedding:
      return spread(0.5);
    case Role::zero:
    case Role::filter:
    case Role::frequencies:
      return {};
  }
  throw RunError("unknown role");
}

// Two keys of a tensor's stream.
struct Stream {
  std::uint32_t first = 0, second = 0;
};

Stream stream_of(std::uint64_t seed, Component component, const std::string& name) {
  const std::string hex = hash_hex(fmt::format("{}:{}:{}", seed, h3::name_of(component), name));
  return {static_cast<std::uint32_t>(std::stoul(hex.substr(0, 8), nullptr, 16)),
          static_cast<std::uint32_t>(std::stoul(hex.substr(8, 8), nullptr, 16))};
}

// A 32-bit mixing function of the counter; each call gives the two elements of a pair 16 bits each.
inline std::uint32_t mix(std::uint32_t x, Stream s) {
  x += s.first;
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= s.second;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  x ^= x >> 16;
  return x;
}

// An odd integer in (-2^16, 2^16), so that no value is the centre; exact in float32.
inline float odd(std::uint32_t bits) {
  return static_cast<float>(2 * static_cast<std::int32_t>(bits) - 65535);
}

constexpr std::int64_t kBlock = 512;  // elements made at once, of which a vector unit makes many together

void make_block(Stream s, Range r, std::uint32_t first_pair, float* out) {
  const float scale = r.half_width * 0x1p-16f;
  for (std::uint32_t i = 0; i < kBlock / 2; ++i) {
    const std::uint32_t x = mix(first_pair + i, s);
    out[i] = r.centre + scale * odd(x & 0xffffu);
    out[i + kBlock / 2] = r.centre + scale * odd(x >> 16);
  }
}

void store(DType dtype, const float* values, std::int64_t count, char* to) {
  if (dtype == DType::f32) {
    std::memcpy(to, values, static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  CHECK_EQ(static_cast<int>(dtype), static_cast<int>(DType::bf16));
  auto* out = reinterpret_cast<bf16_t*>(to);
  for (std::int64_t i = 0; i < count; ++i) {
    // The values are finite, so rounding needs no test for NaN and vectorises.
    const auto u = std::bit_cast<std::uint32_t>(values[i]);
    out[i].bits = static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
}

}  // namespace

void SyntheticSource::read_rows(const PlannedTensor& t, std::int64_t begin, std::int64_t end, void* to) const {
  const std::int64_t from = begin * t.row_elements(), until = end * t.row_elements();
  const std::size_t element = size_of(t.dtype);
  auto* out = static_cast<char*>(to);
  if (!t.values.empty()) {
    std::memcpy(out, t.values.data() + from, static_cast<std::size_t>(until - from) * element);
    return;
  }
  const Stream stream = stream_of(seed_, component_, t.name);
  const Range range = range_of(t);
  float block[kBlock];
  for (std::int64_t first = from - from % kBlock; first < until; first += kBlock) {
    make_block(stream, range, static_cast<std::uint32_t>(first / 2), block);
    const std::int64_t low = std::max(from, first), high = std::min(until, first + kBlock);
    store(t.dtype, block + (low - first), high - low, out + static_cast<std::size_t>(low - from) * element);
  }
}

}  // namespace h3
