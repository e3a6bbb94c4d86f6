// The weights of one component, by canonical name, in host memory (one copy a node). Canonical names and layouts are
// those of the original release: qkv rows interleaved per head (q, k, v of head 0, then of head 1, ...), fc1 and w1
// as [gate; value] (spec/dit.md 2.1, vae.md 3.2, text.md 5.1, vae.md 15 with weight norm folded into `weight`).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "compute/operators.h"
#include "compute/tensor.h"

namespace h3 {

enum class Component : std::uint8_t { transformer, text_encoder, video_vae, audio_vae };
std::string_view name_of(Component component);

class WeightSet {
 public:
  // The tensor; CHECK fails when the name is not part of the component.
  const Tensor& at(std::string_view name) const;
  bool has(std::string_view name) const { return tensors_.find(name) != tensors_.end(); }
  // `NAME.weight` and, where it exists, `NAME.bias`.
  LinearWeights linear(std::string_view name) const;
  const std::map<std::string, Tensor, std::less<>>& tensors() const { return tensors_; }
  std::size_t bytes() const;

  void add(std::string name, const Tensor& tensor) { tensors_[std::move(name)] = tensor; }
  // Keeps the memory behind the tensors alive.
  void own(std::shared_ptr<const void> memory) { memory_ = std::move(memory); }
  // The same for one block in which all tensors lie, so that it can be page-locked as a whole.
  void own_block(std::shared_ptr<const void> memory, std::span<std::byte> block) {
    memory_ = std::move(memory);
    block_ = block;
  }
  // Empty where the tensors do not lie in one block.
  std::span<std::byte> block() const { return block_; }

 private:
  std::map<std::string, Tensor, std::less<>> tensors_;
  std::shared_ptr<const void> memory_;
  std::span<std::byte> block_;
};

// Which dtypes a component's tensors get in memory (spec/dit.md 4.1, text.md 5.5, vae.md 8.2).
enum class Precision : std::uint8_t { f32, bf16 };
enum class VaeProfile : std::uint8_t { F, R };

}  // namespace h3
