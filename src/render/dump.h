// The tensors of one render for parity checks (--dump): text states, rows of every step, frames and samples, in one
// safetensors file. Rows and names are those of the reference data.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compute/tensor.h"

namespace h3 {

class Dump {
 public:
  // "" collects nothing.
  explicit Dump(std::string file) : file_(std::move(file)) {}
  // Copies a host tensor.
  void add(const std::string& name, const Tensor& tensor);
  // More of `frames` [n, h, w, 3] u8.
  void append_frames(const Tensor& frames);
  // Throws SceneError when the file cannot be written.
  void write();

 private:
  struct Kept {
    std::vector<char> bytes;
    Shape shape;
    DType dtype = DType::f32;
  };
  std::string file_;
  std::map<std::string, Kept> kept_;
};

}  // namespace h3
