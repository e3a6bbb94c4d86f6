#include "bench/device_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <set>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "bench/random_tensors.h"
#include "render/linear_shapes.h"
#include "transformer/block.h"

namespace h3 {

namespace {

// Values of one pool, so that a shape costs a few casts.
class ValuePool {
 public:
  ValuePool(Machine& machine, Queue& q)
      : machine_(machine), q_(q), random_(machine, q), values_(random_.make({kValues}, DType::f32)) {}
  Tensor make(Shape shape, DType dtype) {
    const std::int64_t count = shape.elements();
    const Tensor all = take({count}, dtype);
    // Each tensor begins elsewhere in the pool.
    for (std::int64_t at = 0, from = next_ = (next_ + 1009 * 64) % (kValues / 2); at < count; from = 0) {
      const std::int64_t n = std::min(count - at, kValues - from);
      machine_.operators().cast(q_, values_.rows(from, from + n).reshape({1, n}), all.rows(at, at + n).reshape({1, n}));
      at += n;
    }
    return all.reshape(shape);
  }
  // Every byte is written by the operator, or shows.
  Tensor take(Shape shape, DType dtype) {
    buffers_.emplace_back(machine_,
                          static_cast<std::size_t>(std::max<std::int64_t>(shape.elements(), 1)) * size_of(dtype),
                          machine_.place());
    return buffers_.back().tensor(shape, dtype);
  }
  void clear() { buffers_.clear(); }

 private:
  static constexpr std::int64_t kValues = (std::int64_t{1} << 20) + 4099;
  Machine& machine_;
  Queue& q_;
  RandomTensors random_;
  Tensor values_;
  std::deque<Buffer> buffers_;
  std::int64_t next_ = 0;
};

class DeviceCheck {
 public:
  DeviceCheck(Machine& machine, const DeviceCheckSizes& sizes, const std::function<void(const SliceComparison&)>& found)
      : machine_(machine), sizes_(sizes), found_(found), queue_(machine.make_queue()), pool_(machine, *queue_) {}

  void linear(const LinearShape& shape);
  void linear_swiglu(std::int64_t k, std::int64_t outputs, DType dtype);
  struct AttentionKind {
    const char* name;
    DType dtype;
    std::int64_t head_dim, query_heads, key_heads;
    bool causal;
  };
  void attention(const AttentionKind& kind);
  void sequences(const AttentionKind& kind);
  void conv3d(std::int64_t in, std::int64_t out);
  void conv1d(std::int64_t in, std::int64_t out, std::int64_t taps);

 private:
  Operators& operators() { return machine_.operators(); }
  // [a, b) of a number of rows: all, one, odd counts, most.
  std::vector<Range> row_ranges() const {
    const std::int64_t n = sizes_.rows;
    return {{0, n}, {0, 1}, {n - 1, n}, {n / 3, n / 3 + 17}, {n / 5, n - 3}};
  }
  // A contiguous host copy of any view.
  std::vector<char> host_copy(const Tensor& t);
  void begin(std::string what) {
    comparison_ = {std::move(what), 0, 0, 0};
    start_ = steady_seconds();
  }
  void compare(const Tensor& whole, const Tensor& slice) {
    ++comparison_.slices;
    comparison_.different += host_copy(whole) == host_copy(slice) ? 0 : 1;
  }
  void end() {
    comparison_.seconds = steady_seconds() - start_;
    pool_.clear();
    found_(comparison_);
  }

  Machine& machine_;
  DeviceCheckSizes sizes_;
  const std::function<void(const SliceComparison&)>& found_;
  std::unique_ptr<Queue> queue_;
  ValuePool pool_;
  SliceComparison comparison_;
  double start_ = 0;
};

std::vector<char> DeviceCheck::host_copy(const Tensor& t) {
  Buffer packed;
  Tensor from = t;
  if (!t.contiguous()) {
    packed = Buffer(machine_, t.bytes(), machine_.place());
    from = packed.tensor(t.shape, t.dtype);
    operators().copy_rows(*queue_, t, from);
  }
  std::vector<char> bytes(t.bytes());
  machine_.copy(*queue_, from, Tensor(bytes.data(), t.shape, t.dtype));
  queue_->wait();
  return bytes;
}

void DeviceCheck::linear(const LinearShape& shape) {
  const std::int64_t n = shape.full_outputs;
  begin(fmt::format("linear {} -> {} {}{}", shape.k, n, name_of(shape.x), shape.bias ? " with bias" : ""));
  const Tensor x = pool_.make({sizes_.rows, shape.k}, shape.x);
  const LinearWeights w{pool_.make({n, shape.k}, shape.x), shape.bias ? pool_.make({n}, *shape.bias) : Tensor(), n};
  const Tensor whole = pool_.take({sizes_.rows, n}, shape.y), part = pool_.take({sizes_.rows, n}, shape.y);
  operators().linear(*queue_, x, w, whole);
  const auto check = [&](const Range& rows, const Range& outputs) {
    const Tensor y(part.data, {rows.size(), outputs.size()}, part.dtype, part.place);
    operators().fill_zero(*queue_, y);
    operators().linear(*queue_, x.rows(rows.begin, rows.end), w.outputs(outputs.begin, outputs.end), y);
    compare(whole.rows(rows.begin, rows.end).slice(1, outputs.begin, outputs.end), y);
  };
  for (const Range& rows : row_ranges()) check(rows, {0, n});
  for (const Range& outputs : {Range{0, std::min<std::int64_t>(n, 128)}, Range{n / 2, n}, Range{n - 1, n}}) {
    check({0, sizes_.rows}, outputs);
    check({77, 80}, outputs);
  }
  end();
}

void DeviceCheck::linear_swiglu(std::int64_t k, std::int64_t outputs, DType dtype) {
  begin(fmt::format("linear {} -> {} {} with SwiGLU behind it", k, outputs, name_of(dtype)));
  const Tensor x = pool_.make({sizes_.rows, k}, dtype), wide = pool_.take({sizes_.rows, 2 * outputs}, dtype);
  const LinearWeights w{pool_.make({2 * outputs, k}, dtype), pool_.make({2 * outputs}, dtype), 2 * outputs};
  const Tensor whole = pool_.take({sizes_.rows, outputs}, dtype), part = pool_.take({sizes_.rows, outputs}, dtype);
  operators().linear_swiglu(*queue_, x, w, wide, whole);
  for (const Range& rows : row_ranges()) {
    const auto cut = [&](const Tensor& t) { return t.rows(rows.begin, rows.end); };
    operators().fill_zero(*queue_, part);
    operators().linear_swiglu(*queue_, cut(x), w, cut(wide), cut(part));
    compare(cut(whole), cut(part));
  }
  end();
}

void DeviceCheck::attention(const AttentionKind& kind) {
  const std::int64_t d = kind.head_dim, q = kind.query_heads, kv = kind.key_heads, group = q / kv, n = sizes_.rows;
  begin(fmt::format("attention of the {}, {} {}, heads of {}{}", kind.name, q, name_of(kind.dtype), d,
                    kind.causal ? ", causal" : ""));
  Tensor query, key, value;
  if (q == kv) {
    const QkvViews views = qkv_views(pool_.make({n, q * 3 * d}, kind.dtype), d);
    query = views.q, key = views.k, value = views.v;
  } else {
    query = pool_.make({n, q, d}, kind.dtype);
    key = pool_.make({n, kv, d}, kind.dtype);
    value = pool_.make({n, kv, d}, kind.dtype);
  }
  Operators::Attention spec{1 / std::sqrt(static_cast<float>(d)), kind.causal, 0, 1, false};
  const Tensor whole = pool_.take({n, q, d}, kind.dtype), part = pool_.take({n, q, d}, kind.dtype);
  operators().attention(*queue_, query, key, value, whole, spec);
  for (const Range& heads : {Range{0, kv}, Range{0, 1}, Range{kv / 2, kv}})
    for (const Range& rows : row_ranges()) {
      const auto cut = [&](const Tensor& t) {
        return t.rows(rows.begin, rows.end).slice(1, heads.begin * group, heads.end * group);
      };
      const auto of_heads = [&](const Tensor& t) { return t.slice(1, heads.begin, heads.end); };
      const Tensor o = cut(part);
      spec.first_query_row = kind.causal ? rows.begin : 0;
      operators().fill_zero(*queue_, part);
      operators().attention(*queue_, cut(query), of_heads(key), of_heads(value), o, spec);
      compare(cut(whole), o);
    }
  end();
}

// Tiles that are decoded together against each alone.
void DeviceCheck::sequences(const AttentionKind& kind) {
  const std::int64_t d = kind.head_dim, heads = kind.query_heads, count = 7, each = sizes_.rows / count;
  begin(fmt::format("attention of the {}, {} {}, heads of {}, {} tiles", kind.name, heads, name_of(kind.dtype), d,
                    count));
  const QkvViews views = qkv_views(pool_.make({count * each, heads * 3 * d}, kind.dtype), d);
  const Shape shape{count * each, heads, d};
  const Tensor whole = pool_.take(shape, kind.dtype), part = pool_.take(shape, kind.dtype);
  Operators::Attention spec{1 / std::sqrt(static_cast<float>(d)), false, 0, count, false};
  operators().attention(*queue_, views.q, views.k, views.v, whole, spec);
  spec.sequences = 1;
  operators().fill_zero(*queue_, part);
  for (std::int64_t at = 0; at < count * each; at += each) {
    const auto one = [&](const Tensor& t) { return t.rows(at, at + each); };
    operators().attention(*queue_, one(views.q), one(views.k), one(views.v), one(part), spec);
    compare(one(whole), one(part));
  }
  end();
}

// The frames that a longer clip begins with (spec/vae.md 6.1).
void DeviceCheck::conv3d(std::int64_t in, std::int64_t out) {
  constexpr std::int64_t kFrames = 9, kTaps = 3;
  begin(fmt::format("convolution 3x3x3 of {} -> {} channels", in, out));
  const std::int64_t inner = sizes_.side - kTaps + 1;
  const Tensor x = pool_.make({in, kFrames, sizes_.side, sizes_.side}, DType::f32),
               w = pool_.make({out, in, kTaps, kTaps, kTaps}, DType::f32), b = pool_.make({out}, DType::f32),
               whole = pool_.take({out, kFrames, inner, inner}, DType::f32);
  operators().conv3d_causal(*queue_, x, w, b, {}, whole);
  for (const std::int64_t frames : {1, 2, 5}) {
    const Tensor some = pool_.take({out, frames, inner, inner}, DType::f32);
    operators().conv3d_causal(*queue_, x.slice(1, 0, frames), w, b, {}, some);
    compare(whole.slice(1, 0, frames), some);
  }
  end();
}

// The samples whose taps all lie within a slice.
void DeviceCheck::conv1d(std::int64_t in, std::int64_t out, std::int64_t taps) {
  begin(fmt::format("convolution of {} taps, {} -> {} channels", taps, in, out));
  const std::int64_t length = sizes_.rows, inner = length - taps + 1;
  const Tensor x = pool_.make({2, in, length}, DType::f32), w = pool_.make({out, in, taps}, DType::f32),
               b = pool_.make({out}, DType::f32), whole = pool_.take({2, out, inner}, DType::f32);
  operators().conv1d(*queue_, x, w, b, {}, whole);
  for (std::int64_t channel = 0; channel < 2; ++channel) {
    const Tensor one = pool_.take({1, out, inner}, DType::f32);
    operators().conv1d(*queue_, x.rows(channel, channel + 1), w, b, {}, one);
    compare(whole.rows(channel, channel + 1), one);
  }
  end();
}

// Every kind of layer once, whichever precisions have it.
std::vector<LinearShape> layers_of(const ModelConfig& config) {
  std::vector<LinearShape> layers;
  const auto same = [](const LinearShape& a, const LinearShape& b) {
    return a.k == b.k && a.full_outputs == b.full_outputs && a.x == b.x && a.y == b.y && a.bias == b.bias;
  };
  const auto add = [&](Precision precision, VaeProfile profile) {
    for (const LinearShape& shape : linear_shapes(config, precision, profile))
      if (std::none_of(layers.begin(), layers.end(), [&](const LinearShape& l) { return same(l, shape); }))
        layers.push_back(shape);
  };
  add(Precision::bf16, VaeProfile::R);
  add(Precision::f32, VaeProfile::F);
  return layers;
}

}  // namespace

void check_device(Machine& machine, const ModelConfig& config, const DeviceCheckSizes& sizes,
                  const std::function<void(const SliceComparison&)>& found) {
  DeviceCheck check(machine, sizes, found);
  for (const LinearShape& shape : layers_of(config)) check.linear(shape);
  const auto few = [&](std::int64_t heads) { return std::min(heads, sizes.most_heads); };
  const TransformerConfig& t = config.transformer;
  const TextConfig& text = config.text;
  const VideoVaeConfig& video = config.video_vae;
  const std::int64_t group = text.heads / text.kv_heads, groups = std::max<std::int64_t>(few(text.heads) / group, 1);
  for (const DType dtype : {DType::bf16, DType::f32}) {
    check.attention({"transformer", dtype, t.head_dim, few(t.heads), few(t.heads), false});
    check.attention({"text encoder", dtype, text.head_dim, groups * group, groups, true});
  }
  for (const DType dtype : {DType::f16, DType::f32}) {
    check.linear_swiglu(video.decoder_width(), video.decoder_ffn_mult * video.decoder_width(), dtype);
    check.attention(
        {"video decoder", dtype, video.decoder_head_dim, few(video.decoder_heads), few(video.decoder_heads), false});
    check.sequences(
        {"video decoder", dtype, video.decoder_head_dim, few(video.decoder_heads), few(video.decoder_heads), false});
  }
  const auto thin = [&](std::int64_t channels) { return std::min(channels, sizes.most_channels); };
  std::set<std::int64_t> widths;
  for (const std::int64_t width : video.widths) widths.insert(thin(width));
  for (const std::int64_t width : widths) check.conv3d(width, width);
  for (const std::int64_t taps : config.audio_vae.resblock_kernels)
    check.conv1d(thin(config.audio_vae.decoder_dim), thin(config.audio_vae.decoder_dim), taps);
}

}  // namespace h3
