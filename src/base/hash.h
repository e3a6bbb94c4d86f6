// XXH3-128, the one hash of the program: of latents, frames, samples, files, options. 32 lower-case hex digits.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace h3 {

std::string hash_hex(const void* data, std::size_t bytes);
inline std::string hash_hex(std::string_view s) {
  return hash_hex(s.data(), s.size());
}

// The same hash over data that arrives in pieces.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  void add(const void* data, std::size_t bytes);
  void add(std::string_view s) { add(s.data(), s.size()); }
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace h3
