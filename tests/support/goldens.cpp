#include "support/goldens.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/file.h"

namespace h3::test {

std::string source_path(const std::string& relative) {
  return std::string(H3RENDER_SOURCE_DIR) + "/" + relative;
}

Goldens::Goldens(const std::string& topic) : bytes_(read_file(source_path("tests/goldens/" + topic + ".safetensors"))) {
  json_ = nlohmann::json::parse(read_file(source_path("tests/goldens/" + topic + ".json")));
  std::uint64_t header = 0;
  std::memcpy(&header, bytes_.data(), 8);
  const auto index = nlohmann::json::parse(bytes_.substr(8, header));
  for (const auto& [name, entry] : index.items()) {
    if (name == "__metadata__") continue;
    const auto sizes = entry["shape"].get<std::vector<std::int64_t>>();
    char* data = bytes_.data() + 8 + header + entry["data_offsets"][0].get<std::size_t>();
    tensors_[name] = Tensor(data, Shape(sizes), dtype_from_safetensors(entry["dtype"].get<std::string>()));
  }
}

Tensor Goldens::at(const std::string& name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) throw std::runtime_error("no golden tensor " + name);
  return it->second;
}

static float value_at(const Tensor& t, std::int64_t offset) {
  switch (t.dtype) {
    case DType::f32:
      return t.as<float>()[offset];
    case DType::bf16:
      return to_f32(t.as<bf16_t>()[offset]);
    case DType::f16:
      return to_f32(t.as<f16_t>()[offset]);
    case DType::f64:
      return static_cast<float>(t.as<double>()[offset]);
    default:
      throw std::runtime_error("not a float tensor");
  }
}

std::vector<float> values_of(const Tensor& t) {
  std::vector<float> values(static_cast<std::size_t>(t.elements()));
  std::vector<std::int64_t> index(static_cast<std::size_t>(t.rank()));
  for (float& v : values) {
    std::int64_t offset = 0;
    for (int i = 0; i < t.rank(); ++i) offset += index[static_cast<std::size_t>(i)] * t.stride(i);
    v = value_at(t, offset);
    for (int i = t.rank() - 1; i >= 0; --i) {
      if (++index[static_cast<std::size_t>(i)] < t.size(i)) break;
      index[static_cast<std::size_t>(i)] = 0;
    }
  }
  return values;
}

Distance distance(const std::vector<float>& actual, const std::vector<float>& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  Distance d;
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    const double e = static_cast<double>(actual[i]) - static_cast<double>(expected[i]);
    d.largest = std::isnan(e) ? INFINITY : std::max(d.largest, std::abs(e));
    difference += e * e;
    norm += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  d.relative_l2 = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
  return d;
}

void Goldens::expect_close(const std::string& name, const Tensor& actual) const {
  const Tensor expected = at(name);
  const auto& tolerance = json_.at("tensors").at(name);
  ASSERT_EQ(actual.elements(), expected.elements()) << name;
  const Distance d = distance(values_of(actual), values_of(expected));
  EXPECT_LE(d.largest, tolerance.at("atol").get<double>()) << name;
  EXPECT_LE(d.relative_l2, tolerance.at("rtol_l2").get<double>()) << name;
}

}  // namespace h3::test
