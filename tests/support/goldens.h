// Reads the reference data of tests/goldens: TOPIC.safetensors with its TOPIC.json (inputs, meta, tolerances). A reader
// of its own, so that tests of the program's safetensors reader do not rest on that reader.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compute/tensor.h"

namespace h3::test {

std::string source_path(const std::string& relative);  // a file of the source tree
inline std::string nano_path() {
  return source_path("jobs/nano");
}

class Goldens {
 public:
  explicit Goldens(const std::string& topic);
  const nlohmann::json& json() const { return json_; }
  // A stored tensor, in host memory that lives as long as this object.
  Tensor at(const std::string& name) const;
  bool has(const std::string& name) const { return tensors_.count(name) != 0; }
  // Compares f32 values with the stored tensor by its own tolerance: largest difference <= atol and relative L2
  // distance <= rtol_l2. Reports both with the name.
  void expect_close(const std::string& name, const Tensor& actual) const;

 private:
  std::string bytes_;
  nlohmann::json json_;
  std::map<std::string, Tensor> tensors_;
};

// The f32 values of a host tensor of any float dtype and strides, in row-major order.
std::vector<float> values_of(const Tensor& t);

struct Distance {
  double largest = 0;      // max |a - b|
  double relative_l2 = 0;  // |a - b| / |b|
};
Distance distance(const std::vector<float>& actual, const std::vector<float>& expected);

}  // namespace h3::test
