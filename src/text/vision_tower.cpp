#include "text/vision_tower.h"
#include "parallel/shards.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "text/host_tensor.h"
#include "text/vision_position.h"

namespace h3 {
namespace {

constexpr float kNormEps = 1e-6f;
constexpr const char* kPositions = "model.visual.pos_embed.weight";

// The tower in the order in which its weights are used.
struct Step {
  enum class Kind : std::uint8_t { patches, block, deepstack, merger };
  Kind kind = Kind::patches;
  std::int64_t index = 0;

  std::string prefix() const {
    switch (kind) {
      case Kind::patches:
        return "model.visual.patch_embed.";
      case Kind::block:
        return fmt::format("model.visual.blocks.{}.", index);
      case Kind::deepstack:
        return fmt::format("model.visual.deepstack_merger_list.{}.", index);
      case Kind::merger:
        return "model.visual.merger.";
    }
    return "";
  }
};

std::vector<Step> steps_of(const VisionConfig& config) {
  std::vector<Step> steps = {{Step::Kind::patches, 0}};
  for (std::int64_t block = 0; block < config.depth; ++block) {
    steps.push_back({Step::Kind::block, block});
    const auto at = std::find(config.deepstack.begin(), config.deepstack.end(), block);
    if (at != config.deepstack.end()) steps.push_back({Step::Kind::deepstack, at - config.deepstack.begin()});
  }
  steps.push_back({Step::Kind::merger, 0});
  return steps;
}

std::vector<VisionGrid> grids_of(std::span<const VisionPixels> items) {
  std::vector<VisionGrid> grids;
  for (const VisionPixels& item : items) grids.push_back(item.grid);
  return grids;
}

template <typename F>
void for_chunks(std::int64_t rows, std::int64_t chunk, F&& f) {
  for (std::int64_t at = 0; at < rows; at += chunk) f(at, std::min(rows, at + chunk));
}

}  // namespace

// One request on one rank: its segments' patches and the buffers they pass through.
class VisionTower::Pass {
 public:
  Pass(VisionTower& tower, Queue& q, std::span<const VisionPixels> items)
      : t_(tower),
        q_(q),
        ops_(tower.machine_.operators()),
        items_(items),
        segments_(segments_of(grids_of(items))),
        dealt_(deal_segments(tower.config_, segments_, tower.communicator_.size())),
        own_(dealt_[static_cast<std::size_t>(tower.communicator_.rank())]),
        arena_(tower.machine_, activation_bytes(tower, segments_, own_)),
        b_(take_buffers(arena_, tower, segments_, own_)) {}

  static std::size_t activation_bytes(const VisionTower& tower, const std::vector<VisionSegment>& segments,
                                      const std::vector<std::size_t>& own) {
    Arena sizes;
    take_buffers(sizes, tower, segments, own);
    return sizes.peak();
  }

  bool idle() const { return own_.empty(); }
  const Tensor& x() const { return b_.x; }

  // Steps 1 and 2 and the rotary table, chunk by chunk: the host prepares one while nothing else runs.
  void embed(const WeightSet& w, const VisionObserver& observer) {
    LinearWeights patch = w.linear("proj");
    patch.weight = patch.weight.reshape({t_.config_.hidden, kPatchValues});
    const HostTensor pixels(t_.machine_, b_.patches.shape, t_.dtype_);
    for_own([&](const VisionSegment& s, std::int64_t first) {
      for_chunks(s.patches(), b_.chunk, [&](std::int64_t begin, std::int64_t end) {
        const Tensor host = pixels.tensor().rows(0, end - begin), there = b_.patches.rows(0, end - begin);
        normalize(s, begin, host);
        t_.machine_.copy(q_, host, there);
        ops_.linear(q_, there, patch, x().rows(first + begin, first + end));
        q_.wait();
      });
    });
    if (observer) observer("patch_embed", x());
    add_positions();
    fill_rope();
  }

  // Step 3.
  void block(const WeightSet& w) {
    for_own([&](const VisionSegment& s, std::int64_t first) { attend(w, first, first + s.patches()); });
    for_chunks(x().size(0), b_.chunk, [&](std::int64_t begin, std::int64_t end) {
      const Tensor rows = x().rows(begin, end), hidden = b_.hidden.rows(0, end - begin);
      const Tensor wide = b_.wide.rows(0, end - begin);
      ops_.layer_norm(q_, rows, w.at("norm2.weight"), w.at("norm2.bias"), kNormEps, hidden);
      ops_.linear(q_, hidden, w.linear("mlp.linear_fc1"), wide);
      ops_.activate(q_, Activation::gelu_tanh, wide, wide);
      ops_.linear(q_, wide, w.linear("mlp.linear_fc2"), hidden);
      ops_.add(q_, rows, hidden);
    });
  }

  // Steps 4 and 5: this rank's tokens. `grouped_norm` normalises the four patches of a token together.
  void merge(const WeightSet& w, bool grouped_norm) {
    const std::int64_t width = t_.config_.hidden, merged = 4 * width;
    const Range own = token_range(t_.communicator_.rank());
    for_chunks(own.size(), b_.chunk / 4, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t tokens = end - begin;
      const Tensor patches = x().rows(4 * begin, 4 * end), normed = b_.merged[0].rows(0, tokens);
      const Tensor hidden = b_.merged[1].rows(0, tokens);
      const Shape shape = grouped_norm ? Shape{tokens, merged} : Shape{4 * tokens, width};
      ops_.layer_norm(q_, patches.reshape(shape), w.at("norm.weight"), w.at("norm.bias"), kNormEps,
                      normed.reshape(shape));
      ops_.linear(q_, normed, w.linear("linear_fc1"), hidden);
      ops_.activate(q_, Activation::gelu_erf, hidden, hidden);
      ops_.linear(q_, hidden, w.linear("linear_fc2"), b_.tokens.rows(own.begin + begin, own.begin + end));
    });
  }

  // What all ranks merged last, in the order of the segments, in host memory.
  HostTensor collect() {
    std::vector<Tensor> blocks;
    for (int r = 0; r < t_.communicator_.size(); ++r) {
      const Range range = token_range(r);
      blocks.push_back(b_.tokens.rows(range.begin, range.end));
    }
    t_.communicator_.all_gather(q_, blocks);
    const HostTensor dealt(t_.machine_, b_.tokens.shape, t_.dtype_);
    t_.machine_.copy(q_, b_.tokens, dealt.tensor());
    q_.wait();
    HostTensor out(t_.machine_, b_.tokens.shape, t_.dtype_);
    std::int64_t at = 0;
    for (const auto& list : dealt_) {
      for (const std::size_t i : list) {
        const VisionSegment& s = segments_[i];
        const Tensor from = dealt.tensor().rows(at, at + s.tokens());
        std::memcpy(out.tensor().rows(s.first_token, s.first_token + s.tokens()).data, from.data, from.bytes());
        at += s.tokens();
      }
    }
    return out;
  }

 private:
  struct Buffers {
    std::int64_t chunk = 0;     // patches, a multiple of 4
    Tensor x, cos, sin;         // own patches
    Tensor tokens;              // of all segments, by rank
    Tensor patches, positions;  // one chunk
    Tensor qkv, attended;       // the largest own segment
    Tensor hidden;              // the same or one chunk
    Tensor wide;                // one chunk [chunk, ffn]
    Tensor merged[2];           // one chunk [chunk / 4, 4 hidden]
  };

  static Buffers take_buffers(Arena& arena, const VisionTower& t, const std::vector<VisionSegment>& segments,
                              const std::vector<std::size_t>& own) {
    std::int64_t patches = 0, largest = 0, tokens = 0;
    for (const std::size_t i : own) {
      patches += segments[i].patches();
      largest = std::max(largest, segments[i].patches());
    }
    for (const VisionSegment& s : segments) tokens += s.tokens();
    const std::int64_t width = t.config_.hidden, half = width / t.config_.heads / 2;
    Buffers b;
    b.chunk = std::max<std::int64_t>(4, std::min(t.options_.row_chunk / 4 * 4, patches));
    b.x = arena.take({patches, width}, t.dtype_);
    b.cos = arena.take({patches, half}, DType::f32);
    b.sin = arena.take({patches, half}, DType::f32);
    b.tokens = arena.take({tokens, t.config_.out_hidden}, t.dtype_);
    b.hidden = arena.take({std::max(largest, b.chunk), width}, t.dtype_);
    const std::size_t start = arena.mark();
    b.patches = arena.take({b.chunk, kPatchValues}, t.dtype_);
    b.positions = arena.take({b.chunk, width}, t.dtype_);
    arena.rewind(start);
    b.qkv = arena.take({largest, 3 * width}, t.dtype_);
    b.attended = arena.take({largest, width}, t.dtype_);
    arena.rewind(start);
    b.wide = arena.take({b.chunk, t.config_.ffn}, t.dtype_);
    arena.rewind(start);
    for (Tensor& m : b.merged) m = arena.take({b.chunk / 4, 4 * width}, t.dtype_);
    return b;
  }

  // Calls f(segment, its first row of x) for each own segment.
  template <typename F>
  void for_own(F&& f) const {
    std::int64_t first = 0;
    for (const std::size_t i : own_) {
      f(segments_[i], first);
      first += segments_[i].patches();
    }
  }

  Range token_range(int rank) const {
    std::int64_t at = 0;
    for (int r = 0;; ++r) {
      std::int64_t tokens = 0;
      for (const std::size_t i : dealt_[static_cast<std::size_t>(r)]) tokens += segments_[i].tokens();
      if (r == rank) return {at, at + tokens};
      at += tokens;
    }
  }

  // Patches [first, first + to.size(0)) of a segment as numbers.
  void normalize(const VisionSegment& s, std::int64_t first, const Tensor& to) const {
    const std::uint8_t* from =
        items_[static_cast<std::size_t>(s.item)].patches.data() + (s.block * s.patches() + first) * kPatchValues;
    const auto& levels = normalized_levels();
    if (to.dtype == DType::f32) {
      std::transform(from, from + to.elements(), to.as<float>(), [&](std::uint8_t u) { return levels[u]; });
    } else {
      std::transform(from, from + to.elements(), to.as<bf16_t>(), [&](std::uint8_t u) { return to_bf16(levels[u]); });
    }
  }

  void add_positions() {
    const HostTensor positions(t_.machine_, b_.positions.shape, t_.dtype_);
    for_own([&](const VisionSegment& s, std::int64_t first) {
      for_chunks(s.patches(), b_.chunk, [&](std::int64_t begin, std::int64_t end) {
        const Tensor host = positions.tensor().rows(0, end - begin), there = b_.positions.rows(0, end - begin);
        fill_vision_positions(t_.weights_.at(kPositions), s.rows, s.columns, begin, host);
        t_.machine_.copy(q_, host, there);
        ops_.add(q_, x().rows(first + begin, first + end), there);
        q_.wait();
      });
    });
  }

  void fill_rope() {
    for_own([&](const VisionSegment& s, std::int64_t first) {
      const HostTensor cos(t_.machine_, {s.patches(), b_.cos.size(1)}, DType::f32);
      const HostTensor sin(t_.machine_, cos.tensor().shape, DType::f32);
      fill_vision_rope(t_.config_, s.rows, s.columns, cos.tensor(), sin.tensor());
      t_.machine_.copy(q_, cos.tensor(), b_.cos.rows(first, first + s.patches()));
      t_.machine_.copy(q_, sin.tensor(), b_.sin.rows(first, first + s.patches()));
      q_.wait();
    });
  }

  // The attention half of a block for the rows of one segment.
  void attend(const WeightSet& w, std::int64_t begin, std::int64_t end) {
    const std::int64_t n = end - begin, width = t_.config_.hidden, heads = t_.config_.heads;
    const Tensor rows = x().rows(begin, end), hidden = b_.hidden.rows(0, n), qkv = b_.qkv.rows(0, n);
    ops_.layer_norm(q_, rows, w.at("norm1.weight"), w.at("norm1.bias"), kNormEps, hidden);
    ops_.linear(q_, hidden, w.linear("attn.qkv"), qkv);
    const auto part = [&](std::int64_t i) { return qkv.slice(1, i * width, (i + 1) * width).split(1, heads); };
    Operators::HeadNormRope rope;
    rope.norm = false;
    rope.cos = b_.cos.rows(begin, end);
    rope.sin = b_.sin.rows(begin, end);
    ops_.head_norm_rope(q_, part(0), rope);
    ops_.head_norm_rope(q_, part(1), rope);
    Operators::Attention spec;
    spec.scale = 1.0f / std::sqrt(static_cast<float>(width / heads));
    const Tensor attended = b_.attended.rows(0, n);
    ops_.attention(q_, part(0), part(1), part(2), attended.split(1, heads), spec);
    ops_.linear(q_, attended, w.linear("attn.proj"), hidden);
    ops_.add(q_, rows, hidden);
  }

  VisionTower& t_;
  Queue& q_;
  Operators& ops_;
  std::span<const VisionPixels> items_;
  std::vector<VisionSegment> segments_;
  std::vector<std::vector<std::size_t>> dealt_;  // by rank
  const std::vector<std::size_t>& own_;
  Arena arena_;
  Buffers b_;
};

VisionTower::VisionTower(Machine& machine, Communicator& communicator, const VisionConfig& config,
                         const WeightSet& weights, const VisionTowerOptions& options)
    : machine_(machine),
      communicator_(communicator),
      config_(config),
      weights_(weights),
      options_(options),
      dtype_(weights.at(kPositions).dtype) {
  CHECK_GE(options.row_chunk, 4);
  CHECK_EQ(config.in_channels * config.temporal_patch * config.patch * config.patch, kPatchValues);
  CHECK_EQ(config.merge, 2);
}

VisionTower::~VisionTower() = default;

std::vector<WeightSet> VisionTower::groups() const {
  std::vector<WeightSet> groups;
  for (const Step& step : steps_of(config_)) groups.push_back(below(weights_, step.prefix()));
  return groups;
}

int VisionTower::participants(std::span<const VisionGrid> grids) const {
  const auto dealt = deal_segments(config_, segments_of(grids), communicator_.size());
  return static_cast<int>(std::count_if(dealt.begin(), dealt.end(), [](const auto& list) { return !list.empty(); }));
}

std::size_t VisionTower::device_bytes(std::span<const VisionGrid> grids) const {
  const std::vector<VisionSegment> segments = segments_of(grids);
  const auto dealt = deal_segments(config_, segments, communicator_.size());
  return Pass::activation_bytes(*this, segments, dealt[static_cast<std::size_t>(communicator_.rank())]) +
         WeightGroups::device_bytes(groups(), options_.residency);
}

VisionFeatures VisionTower::encode(Queue& q, std::span<const VisionPixels> items, const VisionObserver& observer) {
  VisionFeatures features;
  if (items.empty()) return features;
  Pass pass(*this, q, items);
  if (!pass.idle() && !steps_) steps_ = std::make_unique<WeightGroups>(machine_, q, groups(), options_.residency);
  const auto collect = [&] {
    HostTensor rows = pass.collect();
    const Tensor tensor = rows.tensor();
    features.memory.push_back(rows.take());
    return tensor;
  };
  features.deepstack.resize(config_.deepstack.size());
  const std::vector<Step> steps = steps_of(config_);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const bool merges = step.kind == Step::Kind::deepstack || step.kind == Step::Kind::merger;
    if (!pass.idle()) {
      const WeightSet& w = steps_->use(q, i);
      if (step.kind == Step::Kind::patches) pass.embed(w, observer);
      if (step.kind == Step::Kind::block) pass.block(w);
      if (merges) pass.merge(w, step.kind == Step::Kind::deepstack);
      if (observer && step.kind == Step::Kind::block) observer(fmt::format("block{}", step.index), pass.x());
    }
    if (step.kind == Step::Kind::deepstack) features.deepstack[static_cast<std::size_t>(step.index)] = collect();
    if (step.kind == Step::Kind::merger) features.embeddings = collect();
  }
  return features;
}

}  // namespace h3
