// The operators on the CPU: the oracle that other backends are tested against, and what the demonstration and the tests
// run on. Plain float32 arithmetic in one fixed order; threads (OpenMP) share out outputs only. The contracts are
// those of compute/operators.h; every method runs at once and ignores its queue.
#pragma once

#include "compute/operators.h"

namespace h3 {

class CpuOperators : public Operators {
 public:
  // linear.cpp
  void linear(Queue& q, const Tensor& x, const LinearWeights& w, const Tensor& y) override;
  void linear_swiglu(Queue& q, const Tensor& x, const LinearWeights& w, const Tensor& wide, const Tensor& y) override;

  // norm.cpp
  void rms_norm(Queue& q, const Tensor& x, const Tensor& weight, float eps, NormRounding rounding,
                const Tensor& y) override;
  void layer_norm(Queue& q, const Tensor& x, const Tensor& weight, const Tensor& bias, float eps,
                  const Tensor& y) override;
  void group_norm(Queue& q, const Tensor& x, const Tensor& weight, const Tensor& bias, std::int64_t groups, float eps,
                  bool silu, const Tensor& y) override;

  // modulation.cpp
  void modulate(Queue& q, const Tensor& x, const Tensor& scale, const Tensor& shift, const Tensor& index,
                const Tensor& y) override;
  void norm_modulate(Queue& q, const Tensor& x, const Tensor& weight, float eps, const Tensor& scale,
                     const Tensor& shift, const Tensor& index, const Tensor& y) override;
  void gated_add(Queue& q, const Tensor& x, const Tensor& gate, const Tensor& index, const Tensor& a) override;

  // head_norm.cpp, attention.cpp
  void head_norm_rope(Queue& q, const Tensor& x, const HeadNormRope& spec) override;
  void attention(Queue& q, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& o,
                 const Attention& spec) override;

  // elementwise.cpp
  void swiglu(Queue& q, const Tensor& u, const Tensor& y) override;
  void activate(Queue& q, Activation kind, const Tensor& x, const Tensor& y) override;
  void add(Queue& q, const Tensor& x, const Tensor& a) override;
  void scaled_add(Queue& q, const Tensor& x, const Tensor& a, const Tensor& scale) override;
  void scaled_add_norm(Queue& q, const Tensor& x, const Tensor& a, const Tensor& scale, const Tensor& weight, float eps,
                       const Tensor& y) override;
  void split_halves(Queue& q, const Tensor& x, const Tensor& y) override;
  void sanitize(Queue& q, const Tensor& x) override;
  void clamp(Queue& q, const Tensor& x, float low, float high) override;
  void mean_of(Queue& q, std::span<const Tensor> x, const Tensor& y) override;
  void euler_step(Queue& q, const Tensor& x, const Tensor& v, float one_minus_t, float r, const Tensor& clean) override;
  void multistep_correction(Queue& q, const Tensor& x, const Tensor& clean, const Tensor& previous,
                            float weight) override;

  // movement.cpp
  void cast(Queue& q, const Tensor& x, const Tensor& y) override;
  void copy_rows(Queue& q, const Tensor& x, const Tensor& y) override;
  void gather(Queue& q, const Tensor& x, const Tensor& index, const Tensor& y) override;
  void fill_zero(Queue& q, const Tensor& x) override;

  // video.cpp
  void pad_reflect(Queue& q, const Tensor& x, std::int64_t top, std::int64_t left, const Tensor& y) override;
  void unpatchify(Queue& q, const Tensor& tokens, const Patch& patch, const Tensor& pixels) override;
  void cross_fade(Queue& q, const Tensor& older, int axis, const Tensor& y) override;
  void frames_to_u8(Queue& q, const Tensor& x, std::span<const float, 3> mean, std::span<const float, 3> std,
                    bool truncate, const Tensor& y, const Tensor& nans) override;

  // convolution.cpp
  void conv3d_causal(Queue& q, const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv3dShape& shape,
                     const Tensor& y) override;
  void conv1d(Queue& q, const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dShape& shape,
              const Tensor& y) override;
  void conv1d_transposed(Queue& q, const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dShape& shape,
                         const Tensor& y) override;

  // audio.cpp
  void snake_beta(Queue& q, const Tensor& x, const Tensor& alpha, const Tensor& beta, const Tensor& filter,
                  const Tensor& y) override;
  void snake(Queue& q, const Tensor& x, const Tensor& alpha, const Tensor& y) override;
};

}  // namespace h3
