// The operators that models are written against, once, for every backend. An operator takes tensors and returns
// nothing; outputs are written whole, may lie in a larger buffer (row strides), and never alias inputs unless the
// comment says "in place". Arithmetic is float32 inside; `->T` says where a result is rounded to a tensor's dtype.
// Every result depends on its own row (and head) alone, so any split of rows, heads or output features gives the same
// bits (spec/dit.md 7.4). compute/cpu is the oracle; compute/cuda is tested against it.
//
// Dtypes: "half" is bf16 or f16. Unless stated, all tensors of a call have one dtype, f32, bf16 or f16. Tables of
// modulation vectors, rotary tables and positions lie where the operators work (Machine::place()).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "compute/machine.h"
#include "compute/tensor.h"

namespace h3 {

// A linear layer's parameters. `weight` [n, k] may be a slice of whole rows of the full layer; `full_outputs` is the
// row count of the full layer, by which the GEMM algorithm is chosen, never by the slice or the number of input rows.
struct LinearWeights {
  Tensor weight;
  Tensor bias;  // [n] or empty; same dtype as the weight, or f32
  std::int64_t full_outputs = 0;
  // The same layer cut to outputs [begin, end).
  LinearWeights outputs(std::int64_t begin, std::int64_t end) const {
    return {weight.rows(begin, end), bias ? bias.rows(begin, end) : bias, full_outputs};
  }
};

// What decides which algorithm computes a linear layer, on every rank and for every slice.
struct LinearShape {
  std::int64_t k = 0, full_outputs = 0;
  DType x = DType::f32, y = DType::f32;
  std::optional<DType> bias;
};

// Where an RMSNorm rounds: once at the end (spec/dit.md 4.7), or also before the weight (spec/text.md 5.3).
enum class NormRounding : std::uint8_t { once, before_weight };
enum class Activation : std::uint8_t { silu, gelu_tanh, gelu_erf };

// A stride-1 or strided convolution over [channels, time, height, width] with weight [out, in, kt, kh, kw].
struct Conv3dShape {
  std::int64_t stride_t = 1, stride_h = 1, stride_w = 1;
};

struct Conv1dShape {
  std::int64_t stride = 1, dilation = 1, padding = 0;
};

class Operators {
 public:
  virtual ~Operators() = default;

  // ---- algorithms ---------------------------------------------------------------------------------------------
  // The library algorithms pinned so far, one a line in a fixed order; empty where there are none to choose. Part of
  // the numerics id. `adopt_algorithms` takes another rank's text in place of choices of its own; `prepare_linear`
  // makes the choice for a kind of layer before its first use.
  virtual std::string algorithms() const { return {}; }
  virtual void adopt_algorithms(const std::string&) {}
  virtual void prepare_linear(Queue&, const LinearShape&) {}

  // ---- linear layers ------------------------------------------------------------------------------------------
  // y[m, n] = x[m, k] . weight^T + bias, float32 accumulation, bias added before the one rounding ->y.
  // x and weight share a dtype; y has that dtype or f32. Rows of x and y may be strided.
  virtual void linear(Queue& q, const Tensor& x, const LinearWeights& w, const Tensor& y) = 0;

  // y[m, f] = (silu(gate) ->y) * value ->y of [gate | value] = x . weight^T + bias ->y: `linear` and `swiglu` in one
  // call, rounded where they round. All of one dtype; weight [2 f, k] whole, its own gates and values, with a bias.
  // Rows of x, weight and y start at multiples of 16 bytes. `wide` [m, 2 f] is memory that the call may use; what it
  // holds afterwards is not said.
  virtual void linear_swiglu(Queue& q, const Tensor& x, const LinearWeights& w, const Tensor& wide,
                             const Tensor& y) = 0;

  // ---- norms --------------------------------------------------------------------------------------------------
  // y = x * rsqrt(mean(x^2) + eps) [->y first where `before_weight`] * weight ->y, over the last axis. x, y: [m, h];
  // weight [h] or empty. x may be f32 with a half y (spec/vae.md 8); rows may be strided.
  virtual void rms_norm(Queue& q, const Tensor& x, const Tensor& weight, float eps, NormRounding rounding,
                        const Tensor& y) = 0;
  // Layer norm over the last axis with weight and bias, population variance, one rounding ->y.
  virtual void layer_norm(Queue& q, const Tensor& x, const Tensor& weight, const Tensor& bias, float eps,
                          const Tensor& y) = 0;
  // Group norm of each frame on its own: x, y [channels, frames, h, w] f32; biased variance; then SiLU where asked
  // (spec/vae.md 5).
  virtual void group_norm(Queue& q, const Tensor& x, const Tensor& weight, const Tensor& bias, std::int64_t groups,
                          float eps, bool silu, const Tensor& y) = 0;

  // ---- modulation (spec/dit.md 4.7) -----------------------------------------------------------------------------
  // y = (x * (1 + scale) ->y) + shift ->y with 1 + scale rounded ->y too. Row r takes table row index[r] (int32);
  // scale and shift are [rows of the table, h] views (row stride free).
  virtual void modulate(Queue& q, const Tensor& x, const Tensor& scale, const Tensor& shift, const Tensor& index,
                        const Tensor& y) = 0;
  // rms_norm (rounding once) and modulate in one pass; the same bits.
  virtual void norm_modulate(Queue& q, const Tensor& x, const Tensor& weight, float eps, const Tensor& scale,
                             const Tensor& shift, const Tensor& index, const Tensor& y) = 0;
  // x = x + (gate * a ->x) ->x in place, row r with gate row index[r].
  virtual void gated_add(Queue& q, const Tensor& x, const Tensor& gate, const Tensor& index, const Tensor& a) = 0;

  // ---- attention ------------------------------------------------------------------------------------------------
  // In place on x [m, heads, d] (strides free, d contiguous): RMS norm over d with weight [d] (or empty) ->x, then
  // rotation of the first 2*p channels, p = cos.size(1): x'[j] = x[j] c - x[j+p] s, x'[j+p] = x[j+p] c + x[j] s, with
  // cos, sin [m, p]. `round_products`: each product is rounded before the sum, and the sum after it (spec/text.md
  // 5.3, spec/vae.md 8); otherwise one rounding (spec/dit.md 4.7). Empty cos: norm alone. `norm` false: rotation
  // alone. `rounding` as in rms_norm.
  struct HeadNormRope {
    Tensor weight;
    float eps = 0;
    bool norm = true;
    NormRounding rounding = NormRounding::once;
    Tensor cos, sin;  // dtype f32 or that of x
    bool round_products = false;
  };
  virtual void head_norm_rope(Queue& q, const Tensor& x, const HeadNormRope& spec) = 0;
  // o[i, h, :] = softmax_j(scale * query[i, h] . key[j, h / group]) . value[j, h / group], each tensor [rows, heads, d]
  // with free row and head strides. Causal: query row i sees keys 0..i + first_query_row. Keys are taken in row order
  // and never cut. Softmax in float32, ->o. With several `sequences` the rows are that many equal parts, one behind the
  // other, each of which attends to itself alone, with the bits of a call of its own; not causal then.
  struct Attention {
    float scale = 0;
    bool causal = false;
    std::int64_t first_query_row = 0;
    std::int64_t sequences = 1;
    bool sanitize = false;  // o as `sanitize` would leave it
  };
  virtual void attention(Queue& q, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& o,
                         const Attention& spec) = 0;

  // ---- element-wise ---------------------------------------------------------------------------------------------
  // y[m, f] = (silu(gate) ->y) * value ->y with u = [gate | value] [m, 2 f].
  virtual void swiglu(Queue& q, const Tensor& u, const Tensor& y) = 0;
  virtual void activate(Queue& q, Activation kind, const Tensor& x, const Tensor& y) = 0;  // may be in place
  virtual void add(Queue& q, const Tensor& x, const Tensor& a) = 0;  // x = x + a ->x, in place, [m, n]
  // x = x + (f32(a) * scale) in place; x f32 [m, n], a f32 or half [m, n], scale f32 [n]; separate roundings.
  virtual void scaled_add(Queue& q, const Tensor& x, const Tensor& a, const Tensor& scale) = 0;
  // scaled_add, then y = rms_norm of x (rounding once), in one pass; the same bits.
  virtual void scaled_add_norm(Queue& q, const Tensor& x, const Tensor& a, const Tensor& scale, const Tensor& weight,
                               float eps, const Tensor& y) = 0;
  virtual void cast(Queue& q, const Tensor& x, const Tensor& y) = 0;  // [m, n], rows may be strided
  // y[m, 3 n] f16 = [high | high | low] of x [m, n] f32, high = x ->f16, low = (x - high) ->f16. Against weights
  // [high | low | high] a linear layer adds up all products of halves but low x low, which is below f32's rounding: a
  // float32 product on half operands, to about 1e-5.
  virtual void split_halves(Queue& q, const Tensor& x, const Tensor& y) = 0;
  // Copies between strided views of equal shape and dtype, of any rank.
  virtual void copy_rows(Queue& q, const Tensor& x, const Tensor& y) = 0;
  // y[i, :] = x[index[i], :]; index int32 at Machine::place().
  virtual void gather(Queue& q, const Tensor& x, const Tensor& index, const Tensor& y) = 0;
  // NaN -> 0 and +-Inf -> the largest finite value of the dtype, in place (spec/vae.md 7).
  virtual void sanitize(Queue& q, const Tensor& x) = 0;
  virtual void fill_zero(Queue& q, const Tensor& x) = 0;

  // ---- sampling (spec/dit.md 5.3), f32 --------------------------------------------------------------------------
  // x0 = x + one_minus_t * v; x = r * x + (1 - r) * x0, each operation rounded; x0 is kept in `clean` if given.
  virtual void euler_step(Queue& q, const Tensor& x, const Tensor& v, float one_minus_t, float r,
                          const Tensor& clean) = 0;
  // x = x + weight * (previous - clean), the second-order correction of res_multistep (spec/dit.md 5.4).
  virtual void multistep_correction(Queue& q, const Tensor& x, const Tensor& clean, const Tensor& previous,
                                    float weight) = 0;

  // ---- video (spec/vae.md), f32 unless stated -----------------------------------------------------------------------
  // Causal 3-D convolution: x [ci, t, h, w], y [co, t', h', w'], weight [co, ci, kt, kh, kw], bias [co]. x is already
  // padded in h and w; kt - 1 zero frames stand before x (not stored).
  virtual void conv3d_causal(Queue& q, const Tensor& x, const Tensor& weight, const Tensor& bias,
                             const Conv3dShape& shape, const Tensor& y) = 0;
  // Reflect padding of the last two axes: x [c, t, h, w] -> y [c, t, h + top + bottom, w + left + right].
  virtual void pad_reflect(Queue& q, const Tensor& x, std::int64_t top, std::int64_t left, const Tensor& y) = 0;
  // Decoder tokens [t*h*w, channels*4*16*16] -> pixels [channels, 4t, 16h, 16w], spec/vae.md 7 step 8.
  struct Patch {
    std::int64_t t = 0, h = 0, w = 0;  // tokens
    std::int64_t patch_t = 4, patch_h = 16, patch_w = 16;
  };
  virtual void unpatchify(Queue& q, const Tensor& tokens, const Patch& patch, const Tensor& pixels) = 0;
  // Cross-fade along one axis of a region: y[p] = (older[p] * a_p) + (y[p] * b_p) in place, b_p = p / length,
  // a_p = 1 - b_p, products rounded (spec/vae.md 9.2, 10.3). Tensors [planes, rows, cols], strides free; `axis` is 0, 1
  // or 2 and `length` its size there.
  virtual void cross_fade(Queue& q, const Tensor& older, int axis, const Tensor& y) = 0;
  // Denormalize, clamp to [0, 1], times 255, half to even (or down with `truncate`): x [3, frames, h, w] f32 ->
  // y [frames, h, w, 3] u8. NaN gives 0 and is added to `nans` [1] int32. spec/vae.md 11.
  virtual void frames_to_u8(Queue& q, const Tensor& x, std::span<const float, 3> mean, std::span<const float, 3> std,
                            bool truncate, const Tensor& y, const Tensor& nans) = 0;

  // ---- audio (spec/vae.md 16, 17), f32, x [batch, channels, length]
  // ----------------------------------------------------
  virtual void conv1d(Queue& q, const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dShape& shape,
                      const Tensor& y) = 0;
  // Transposed convolution, weight [in, out, k], output padding 0.
  virtual void conv1d_transposed(Queue& q, const Tensor& x, const Tensor& weight, const Tensor& bias,
                                 const Conv1dShape& shape, const Tensor& y) = 0;
  // The anti-aliased SnakeBeta of spec/vae.md 17: up x2, snake, down x2; alpha, beta [c] as stored (logarithms);
  // filter [12].
  virtual void snake_beta(Queue& q, const Tensor& x, const Tensor& alpha, const Tensor& beta, const Tensor& filter,
                          const Tensor& y) = 0;
  // x + sin^2(alpha x) / (alpha + 1e-9), alpha [c] linear (spec/vae.md 16).
  virtual void snake(Queue& q, const Tensor& x, const Tensor& alpha, const Tensor& y) = 0;
  // y = ((b0 + b1) + b2 ...) / count, element-wise over equal shapes (spec/vae.md 17).
  virtual void mean_of(Queue& q, std::span<const Tensor> x, const Tensor& y) = 0;
  virtual void clamp(Queue& q, const Tensor& x, float low, float high) = 0;  // in place
};

}  // namespace h3
