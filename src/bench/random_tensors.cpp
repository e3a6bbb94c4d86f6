#include "bench/random_tensors.h"

#include <algorithm>

namespace h3 {

Tensor RandomTensors::make(Shape shape, DType dtype) {
  constexpr std::int64_t kDrawn = std::int64_t{1} << 22;
  const std::int64_t count = shape.elements();
  buffers_.emplace_back(machine_, static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * size_of(dtype),
                        machine_.place());
  const Tensor all = buffers_.back().tensor({count}, dtype);
  const std::int64_t n = std::min(count, kDrawn);
  if (n == 0) return buffers_.back().tensor(shape, dtype);
  std::vector<float> values = random_values(n, words_());
  Buffer wide(machine_, values.size() * sizeof(float), machine_.place());
  const Tensor drawn = wide.tensor({1, n}, DType::f32), first = all.rows(0, n);
  machine_.copy(q_, Tensor(values.data(), {1, n}, DType::f32), drawn);
  machine_.operators().cast(q_, drawn, first.reshape({1, n}));
  for (std::int64_t at = n; at < count; at += n) {
    const std::int64_t part = std::min(n, count - at);
    machine_.copy(q_, first.rows(0, part), all.rows(at, at + part));
  }
  q_.wait();
  return buffers_.back().tensor(shape, dtype);
}

std::vector<float> random_values(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::mt19937 words(static_cast<std::mt19937::result_type>(seed));
  std::normal_distribution<float> normal;
  for (float& v : values) v = normal(words);
  return values;
}

}  // namespace h3
