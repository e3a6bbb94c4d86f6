#include "base/hash.h"

#include <xxhash.h>

#include "base/error.h"

namespace h3 {

static std::string hex_of(XXH128_hash_t h) {
  return fmt::format("{:016x}{:016x}", h.high64, h.low64);
}

std::string hash_hex(const void* data, std::size_t bytes) {
  return hex_of(XXH3_128bits(data, bytes));
}

struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(state_->xxh);
}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;
void Hasher::add(const void* data, std::size_t bytes) {
  XXH3_128bits_update(state_->xxh, data, bytes);
}
std::string Hasher::hex() const {
  return hex_of(XXH3_128bits_digest(state_->xxh));
}

}  // namespace h3
