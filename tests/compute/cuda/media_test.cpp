// Operators of the video and audio autoencoders.
#include "twins.h"

namespace h3::test {
namespace {

class CudaMedia : public CudaTest {};

TEST_F(CudaMedia, Conv3dCausal) {
  struct Case {
    std::int64_t in, out, t, h, w, kt, kh, kw;
    Conv3dShape stride;
  };
  for (const Case& c : {Case{3, 16, 5, 10, 11, 3, 3, 3, {}}, Case{16, 40, 5, 9, 9, 3, 3, 3, {2, 2, 2}},
                        Case{33, 130, 1, 12, 8, 3, 3, 3, {}}, Case{8, 8, 2, 7, 7, 3, 3, 3, {1, 2, 2}},
                        Case{24, 24, 7, 16, 16, 1, 1, 1, {}}, Case{5, 7, 4, 20, 20, 3, 3, 3, {2, 1, 1}}})
    for (const bool biased : {true, false}) {
      SCOPED_TRACE(fmt::format("{}->{} {}x{}x{}", c.in, c.out, c.t, c.h, c.w));
      const Twin x = random({c.in, c.t, c.h, c.w}, DType::f32);
      const Twin weight = random({c.out, c.in, c.kt, c.kh, c.kw}, DType::f32, 0.1), bias = random({c.out}, DType::f32);
      const Twin y = poisoned({c.out, (c.t - 1) / c.stride.stride_t + 1, (c.h - c.kh) / c.stride.stride_h + 1,
                               (c.w - c.kw) / c.stride.stride_w + 1},
                              DType::f32);
      both([&](Operators& ops, Queue& q, Side at) {
        ops.conv3d_causal(q, at(x), at(weight), biased ? at(bias) : Tensor(), c.stride, at(y));
      });
      expect_close(y, 2e-6, 3e-5);
    }
}

// The frames that a longer clip begins with have the bits of the shorter clip (spec/vae.md 6.1).
TEST_F(CudaMedia, ConvolutionsOfAPrefixGiveTheSameBits) {
  const Twin x = random({20, 17, 10, 10}, DType::f32), weight = random({64, 20, 3, 3, 3}, DType::f32, 0.1),
             bias = random({64}, DType::f32), full = poisoned({64, 17, 8, 8}, DType::f32);
  on_gpu([&](Operators& ops, Queue& q, Side at) { ops.conv3d_causal(q, at(x), at(weight), at(bias), {}, at(full)); });
  for (const std::int64_t frames : {1, 2, 5}) {
    const Twin some = poisoned({64, frames, 8, 8}, DType::f32);
    on_gpu([&](Operators& ops, Queue& q, Side at) {
      ops.conv3d_causal(q, at(x.slice(1, 0, frames)), at(weight), at(bias), {}, at(some));
    });
    EXPECT_EQ(bytes_of(some), bytes_of(full.slice(1, 0, frames))) << frames;
  }
}

TEST_F(CudaMedia, PadReflect) {
  for (const DType dtype : kFloatTypes) {
    const Twin x = random({3, 2, 5, 7}, dtype), y = poisoned({3, 2, 8, 11}, dtype), z = poisoned({3, 2, 6, 8}, dtype);
    both([&](Operators& ops, Queue& q, Side at) {
      ops.pad_reflect(q, at(x), 1, 2, at(y));
      ops.pad_reflect(q, at(x), 0, 0, at(z));
    });
    expect_same(y);
    expect_same(z);
  }
}

TEST_F(CudaMedia, Unpatchify) {
  for (const DType dtype : kFloatTypes) {
    const Twin tokens = random({2 * 3 * 5, 3 * 4 * 16 * 16}, dtype, 1.0, 8), y = poisoned({3, 8, 48, 80}, dtype);
    const Twin small = random({2 * 2 * 3, 2 * 2 * 3 * 5}, dtype), z = poisoned({2, 4, 6, 15}, dtype, 2);
    both([&](Operators& ops, Queue& q, Side at) {
      ops.unpatchify(q, at(tokens), {2, 3, 5}, at(y));
      ops.unpatchify(q, at(small), {2, 2, 3, 2, 3, 5}, at(z));
    });
    expect_same(y);
    expect_same(z);
  }
}

TEST_F(CudaMedia, CrossFade) {
  for (const DType dtype : kFloatTypes)
    for (int axis = 0; axis < 3; ++axis) {
      const Twin older = random({7, 13, 18}, dtype, 1.0, 3), y = random({7, 13, 18}, dtype);
      const Twin part = y.slice(1, 2, 12).slice(2, 1, 17), from = older.slice(1, 3, 13).slice(2, 0, 16);
      both([&](Operators& ops, Queue& q, Side at) { ops.cross_fade(q, at(from), axis, at(part)); });
      expect_same(y);
    }
}

TEST_F(CudaMedia, FramesToBytes) {
  constexpr std::array<float, 3> kMean{0.485f, 0.456f, 0.406f}, kStd{0.229f, 0.224f, 0.225f};
  for (const bool truncate : {false, true}) {
    const Twin x = random({3, 2, 37, 53}, DType::f32, 2.0), y = poisoned({2, 37, 53, 3}, DType::u8);
    Twin nans = poisoned({1}, DType::i32);
    *nans.cpu.as<std::int32_t>() = 4;
    upload(nans);
    for (const std::int64_t i : {0, 77, 2 * 37 * 53, 3 * 2 * 37 * 53 - 1}) x.cpu.as<float>()[i] = NAN;
    x.cpu.as<float>()[5] = INFINITY;
    x.cpu.as<float>()[6] = -INFINITY;
    upload(x);
    both(
        [&](Operators& ops, Queue& q, Side at) { ops.frames_to_u8(q, at(x), kMean, kStd, truncate, at(y), at(nans)); });
    expect_same(y);
    expect_same(nans);
  }
}

TEST_F(CudaMedia, Conv1d) {
  struct Case {
    std::int64_t batch, in, out, length, k;
    Conv1dShape shape;
  };
  for (const Case& c :
       {Case{2, 32, 48, 77, 1, {1, 1, 0}}, Case{2, 40, 130, 301, 7, {1, 1, 3}}, Case{1, 8, 1, 1000, 7, {1, 1, 3}},
        Case{2, 16, 16, 500, 11, {1, 5, 25}}, Case{2, 6, 12, 200, 4, {2, 1, 1}}, Case{1, 16, 32, 505, 10, {5, 1, 3}}})
    for (const bool biased : {true, false}) {
      SCOPED_TRACE(fmt::format("{}->{} length {} k {}", c.in, c.out, c.length, c.k));
      const Twin x = random({c.batch, c.in, c.length}, DType::f32), w = random({c.out, c.in, c.k}, DType::f32, 0.1),
                 b = random({c.out}, DType::f32);
      const std::int64_t reach = c.length + 2 * c.shape.padding - c.shape.dilation * (c.k - 1) - 1;
      const Twin y = poisoned({c.batch, c.out, reach / c.shape.stride + 1}, DType::f32);
      both([&](Operators& ops, Queue& q, Side at) {
        ops.conv1d(q, at(x), at(w), biased ? at(b) : Tensor(), c.shape, at(y));
      });
      expect_close(y, 2e-6, 3e-5);
    }
}

TEST_F(CudaMedia, Conv1dTransposed) {
  struct Case {
    std::int64_t batch, in, out, length, k, stride, padding;
  };
  for (const Case& c : {Case{2, 48, 24, 50, 9, 5, 2}, Case{2, 130, 65, 33, 4, 2, 1}, Case{1, 16, 8, 77, 16, 8, 4},
                        Case{2, 10, 5, 1, 9, 5, 2}, Case{1, 12, 6, 20, 8, 4, 2}, Case{1, 4, 3, 9, 3, 5, 0}}) {
    SCOPED_TRACE(fmt::format("{}->{} length {} k {} stride {}", c.in, c.out, c.length, c.k, c.stride));
    const Twin x = random({c.batch, c.in, c.length}, DType::f32), w = random({c.in, c.out, c.k}, DType::f32, 0.1),
               b = random({c.out}, DType::f32);
    const Twin y = poisoned({c.batch, c.out, (c.length - 1) * c.stride - 2 * c.padding + c.k}, DType::f32);
    both([&](Operators& ops, Queue& q, Side at) {
      ops.conv1d_transposed(q, at(x), at(w), at(b), {c.stride, 1, c.padding}, at(y));
    });
    expect_close(y, 2e-6, 3e-5);
  }
}

TEST_F(CudaMedia, Snakes) {
  const Twin filter =
      values({0.00202896645f, 0.00938946394f, -0.02554346407f, -0.05765737548f, 0.12857260908f, 0.44320980007f,
              0.44320980007f, 0.12857260908f, -0.05765737548f, -0.02554346407f, 0.00938946394f, 0.00202896645f});
  for (const std::int64_t length : {1, 3, 7, 1000, 1024, 1025, 5000}) {
    SCOPED_TRACE(length);
    const Twin x = random({2, 5, length}, DType::f32, 2.0), alpha = random({5}, DType::f32, 0.5),
               beta = random({5}, DType::f32, 0.5), y = poisoned({2, 5, length}, DType::f32),
               z = poisoned({2, 5, length}, DType::f32);
    both([&](Operators& ops, Queue& q, Side at) {
      ops.snake_beta(q, at(x), at(alpha), at(beta), at(filter), at(y));
      ops.snake(q, at(x), at(alpha), at(z));
    });
    expect_close(y, 2e-6, 1e-4);
    expect_close(z, 2e-6, 1e-3);
  }
}

}  // namespace
}  // namespace h3::test
