// What a component consists of, derived from its configuration alone: every tensor by its canonical name (that of the
// original release), its shape and stored dtype, and under which names and row orders the other layout stores it. The
// readers, the header check, the synthetic weights and the memory plan all follow this one list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compute/tensor.h"
#include "weights/model_config.h"
#include "weights/weight_set.h"

namespace h3 {

// The folder layouts of spec/dit.md 2.1 and 2.2, vae.md 1.
enum class Layout : std::uint8_t { diffusers, original };
std::string_view name_of(Layout layout);

// What a tensor is for: decides which values synthetic weights take, which values are checked when loading, and which
// tensors a low-precision profile rounds.
enum class Role : std::uint8_t {
  weight,  // of a linear layer or convolution
  bias,
  norm,  // multiplies a normalised value, near 1
  norm_bias,
  embedding,  // a table of rows: tokens, positions, registers
  adaln,      // AdaLN projection
  adaln_bias,
  layer_scale,  // multiplies a branch before it joins the residual stream
  snake,        // alpha of a Snake, linear
  snake_log,    // alpha or beta of a SnakeBeta, logarithm
  filter,       // the 12 taps of spec/vae.md 17
  magnitude,    // weight norm: weight_g
  direction,    // weight norm: weight_v
  zero,         // a buffer of zeros
  frequencies,  // rope.inv_freq, a function of the configuration
};

// How the rows of a stored tensor map to the rows of the canonical one.
enum class RowOrder : std::uint8_t {
  same,
  head_part,  // rows of q, k or v alone, head by head: one of three tensors that make a [q k v of head 0; ...] tensor
  swapped_halves,  // [value; gate] of a canonical [gate; value]
};

// One stored tensor that holds all or part of a canonical tensor.
struct StoredPart {
  std::string name;
  Shape shape;
  RowOrder order = RowOrder::same;
  std::int64_t part = 0;      // head_part: 0 q, 1 k, 2 v
  std::int64_t head_dim = 0;  // head_part: rows of one head
};

struct PlannedTensor {
  std::string name;  // canonical
  Shape shape;
  DType dtype = DType::f32;  // stored, in both layouts
  Role role = Role::weight;
  bool block_linear = false;          // rounded to f16 in VAE profile R (spec/vae.md 8.2)
  std::vector<StoredPart> diffusers;  // empty: the layout does not store it
  std::vector<float> values;          // what the configuration determines: frequencies, filter taps
  std::int64_t rows() const { return shape.rank() == 0 ? 1 : shape[0]; }
  std::int64_t row_elements() const { return rows() == 0 ? 0 : shape.elements() / rows(); }
  std::size_t row_bytes() const { return static_cast<std::size_t>(row_elements()) * size_of(dtype); }
  std::size_t bytes() const { return static_cast<std::size_t>(shape.elements()) * size_of(dtype); }
};

struct ComponentPlan {
  Component component = Component::transformer;
  std::vector<PlannedTensor> tensors;

  // Of the tensors that a complete set of files of this layout holds.
  std::size_t stored_count(Layout layout) const;
  std::size_t stored_bytes(Layout layout) const;
};

// The tensors under which a layout stores this one.
std::vector<StoredPart> stored_parts(const PlannedTensor& tensor, Layout layout);

// spec/dit.md 2.1 and 2.2. `rope.inv_freq` is stored by the original layout alone.
ComponentPlan plan_transformer(const TransformerConfig& c);
// spec/text.md 4.1 and 5.1: what the wanted state needs (no layers above it, no final norm, no head).
ComponentPlan plan_text_encoder(const TextConfig& c);
// spec/vae.md 3, without the unused `decoder.mask_token`.
ComponentPlan plan_video_vae(const VideoVaeConfig& c);
// spec/vae.md 15, weight norm as stored.
ComponentPlan plan_audio_vae(const AudioVaeConfig& c);
ComponentPlan plan_component(const ModelConfig& c, Component component);

// True for tensors that the files of a component may hold or lack, whatever they are (DESIGN 7, Strictness of loading).
bool ignorable(const ModelConfig& c, Component component, Layout layout, std::string_view stored_name);

// rope.inv_freq of spec/dit.md 4.3, computed in float32.
std::vector<float> rope_frequencies(const TransformerConfig& c);
// The 12 taps of spec/vae.md 17.
std::vector<float> audio_filter();

// A stretch of rows that lies in one piece both in a stored tensor and in the canonical one.
struct RowPiece {
  std::int64_t stored = 0, canonical = 0, rows = 0;
};
// The pieces of `part` that fall into canonical rows [begin, end), in canonical order.
std::vector<RowPiece> row_pieces(const PlannedTensor& tensor, const StoredPart& part, std::int64_t begin,
                                 std::int64_t end);

// Collects the tensors of a plan; the names of the two layouts differ by prefix and by what `diffusers` says.
class PlanBuilder {
 public:
  PlanBuilder(Component component, DType dtype) : dtype_(dtype) { plan_.component = component; }
  // Adds a tensor that the diffusers layout stores as it is, under `diffusers` (empty: the same name).
  PlannedTensor& add(const std::string& name, Shape shape, Role role, const std::string& diffusers = "");
  // `weight` [out, in...] and, with `bias`, `bias` [out].
  void linear(const std::string& name, Shape weight, bool bias, const std::string& diffusers = "");
  void norm(const std::string& name, std::int64_t width, bool bias, const std::string& diffusers = "");
  // A fused [q k v of head 0; q k v of head 1; ...] weight [3 heads head_dim, in] (or bias, in = 0) that diffusers
  // keeps as PREFIX.to_q, to_k and to_v.
  PlannedTensor& qkv(const std::string& name, std::int64_t heads, std::int64_t head_dim, std::int64_t in,
                     const std::string& prefix, const std::string& suffix);
  // A [gate; value] tensor that diffusers keeps as [value; gate].
  PlannedTensor& gated(const std::string& name, Shape shape, Role role, const std::string& diffusers);
  void use_dtype(DType dtype) { dtype_ = dtype; }
  ComponentPlan take() { return std::move(plan_); }

 private:
  DType dtype_;
  ComponentPlan plan_;
};

}  // namespace h3
