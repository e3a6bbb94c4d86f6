#include "weights/tensor_plan.h"

#include <algorithm>

#include "base/error.h"

namespace h3 {

std::string_view name_of(Layout layout) {
  return layout == Layout::diffusers ? "diffusers" : "original";
}

std::vector<StoredPart> stored_parts(const PlannedTensor& tensor, Layout layout) {
  if (layout == Layout::diffusers) return tensor.diffusers;
  return {{tensor.name, tensor.shape}};
}

std::size_t ComponentPlan::stored_count(Layout layout) const {
  std::size_t n = 0;
  for (const PlannedTensor& t : tensors) n += stored_parts(t, layout).size();
  return n;
}

std::size_t ComponentPlan::stored_bytes(Layout layout) const {
  std::size_t n = 0;
  for (const PlannedTensor& t : tensors)
    if (!stored_parts(t, layout).empty()) n += t.bytes();
  return n;
}

ComponentPlan plan_component(const ModelConfig& c, Component component) {
  switch (component) {
    case Component::transformer:
      return plan_transformer(c.transformer);
    case Component::text_encoder:
      return plan_text_encoder(c.text);
    case Component::video_vae:
      return plan_video_vae(c.video_vae);
    case Component::audio_vae:
      return plan_audio_vae(c.audio_vae);
  }
  throw RunError("unknown component");
}

static bool ignorable_text(const TextConfig& c, std::string_view name) {
  if (name == "lm_head.weight" || name == "model.language_model.norm.weight") return true;
  if (name.ends_with("rotary_emb.inv_freq") || name.ends_with("rotary_pos_emb.inv_freq")) return true;
  constexpr std::string_view prefix = "model.language_model.layers.";
  if (!name.starts_with(prefix)) return false;
  const std::string_view rest = name.substr(prefix.size());
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  return digits > 0 && digits < 9 && digits < rest.size() && rest[digits] == '.' &&
         std::stoll(std::string(rest.substr(0, digits))) >= c.state;
}

bool ignorable(const ModelConfig& c, Component component, Layout layout, std::string_view stored_name) {
  if (component == Component::text_encoder) return ignorable_text(c.text, stored_name);
  if (component == Component::video_vae) return layout == Layout::original && stored_name == "decoder.mask_token";
  return false;
}

std::vector<RowPiece> row_pieces(const PlannedTensor& tensor, const StoredPart& part, std::int64_t begin,
                                 std::int64_t end) {
  std::vector<RowPiece> pieces;
  const auto clip = [&](std::int64_t canonical, std::int64_t stored, std::int64_t rows) {
    const std::int64_t from = std::max(canonical, begin), to = std::min(canonical + rows, end);
    if (from < to) pieces.push_back({stored + (from - canonical), from, to - from});
  };
  const std::int64_t rows = tensor.rows();
  if (part.order == RowOrder::same) {
    clip(0, 0, rows);
  } else if (part.order == RowOrder::swapped_halves) {
    clip(0, rows / 2, rows / 2);
    clip(rows / 2, 0, rows / 2);
  } else {
    const std::int64_t group = 3 * part.head_dim;
    for (std::int64_t head = begin / group; head * group < end; ++head)
      clip(head * group + part.part * part.head_dim, head * part.head_dim, part.head_dim);
  }
  return pieces;
}

PlannedTensor& PlanBuilder::add(const std::string& name, Shape shape, Role role, const std::string& diffusers) {
  PlannedTensor t;
  t.name = name;
  t.shape = shape;
  t.dtype = dtype_;
  t.role = role;
  t.diffusers = {{diffusers.empty() ? name : diffusers, shape}};
  return plan_.tensors.emplace_back(std::move(t));
}

static std::string join(const std::string& name, const char* suffix) {
  return name.empty() ? name : name + suffix;
}

void PlanBuilder::linear(const std::string& name, Shape weight, bool bias, const std::string& diffusers) {
  add(name + ".weight", weight, Role::weight, join(diffusers, ".weight"));
  if (bias) add(name + ".bias", {weight[0]}, Role::bias, join(diffusers, ".bias"));
}

void PlanBuilder::norm(const std::string& name, std::int64_t width, bool bias, const std::string& diffusers) {
  add(name + ".weight", {width}, Role::norm, join(diffusers, ".weight"));
  if (bias) add(name + ".bias", {width}, Role::norm_bias, join(diffusers, ".bias"));
}

PlannedTensor& PlanBuilder::qkv(const std::string& name, std::int64_t heads, std::int64_t head_dim, std::int64_t in,
                                const std::string& prefix, const std::string& suffix) {
  const std::int64_t width = heads * head_dim;
  PlannedTensor& t = add(name, in > 0 ? Shape{3 * width, in} : Shape{3 * width}, in > 0 ? Role::weight : Role::bias);
  t.diffusers.clear();
  for (int part = 0; part < 3; ++part)
    t.diffusers.push_back({prefix + ".to_" + "qkv"[part] + suffix, in > 0 ? Shape{width, in} : Shape{width},
                           RowOrder::head_part, part, head_dim});
  return t;
}

PlannedTensor& PlanBuilder::gated(const std::string& name, Shape shape, Role role, const std::string& diffusers) {
  PlannedTensor& t = add(name, shape, role, diffusers);
  t.diffusers[0].order = RowOrder::swapped_halves;
  return t;
}

}  // namespace h3
