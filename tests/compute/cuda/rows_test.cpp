// Norms, modulation, rotation and the element-wise operators.
#include "twins.h"

namespace h3::test {
namespace {

class CudaRows : public CudaTest {};

struct Case {
  std::int64_t rows, width, gap;
};
const std::vector<Case> kCases = {{1, 8, 0},    {5, 33, 0},    {130, 192, 0}, {37, 1000, 8}, {3, 1024, 0},
                                  {4, 1025, 3}, {19, 5376, 0}, {7, 5376, 16}, {2, 9000, 0},  {9, 5, 1}};

TEST_F(CudaRows, RmsNorm) {
  for (const DType dtype : kFloatTypes)
    for (const Case& c : kCases)
      for (const NormRounding rounding : {NormRounding::once, NormRounding::before_weight})
        for (const bool weighted : {true, false}) {
          SCOPED_TRACE(fmt::format("{} {}x{}+{}", name_of(dtype), c.rows, c.width, c.gap));
          const Twin x = random({c.rows, c.width}, dtype, 2.0, c.gap), w = random({c.width}, dtype);
          const Twin y = poisoned({c.rows, c.width}, dtype, c.gap);
          both([&](Operators& ops, Queue& q, Side at) {
            ops.rms_norm(q, at(x), weighted ? at(w) : Tensor(), 1e-5f, rounding, at(y));
          });
          expect_close(y, 2 * flips(dtype), 8 * unit(dtype));
        }
}

TEST_F(CudaRows, NormsOfFloatRowsRoundOnce) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const Twin x = random({31, 2048}, DType::f32), w = random({2048}, DType::f32), b = random({2048}, DType::f32);
    const Twin y = poisoned({31, 2048}, dtype), z = poisoned({31, 2048}, dtype);
    both([&](Operators& ops, Queue& q, Side at) {
      ops.rms_norm(q, at(x), at(w), 1e-5f, NormRounding::once, at(y));
      ops.layer_norm(q, at(x), at(w), at(b), 1e-5f, at(z));
    });
    expect_close(y, flips(dtype), 8 * unit(dtype));
    expect_close(z, flips(dtype), 8 * unit(dtype));
  }
}

TEST_F(CudaRows, LayerNorm) {
  for (const DType dtype : kFloatTypes)
    for (const Case& c : kCases) {
      SCOPED_TRACE(fmt::format("{} {}x{}+{}", name_of(dtype), c.rows, c.width, c.gap));
      const Twin x = random({c.rows, c.width}, dtype, 2.0, c.gap), w = random({c.width}, dtype),
                 b = random({c.width}, dtype);
      const Twin y = poisoned({c.rows, c.width}, dtype, c.gap);
      both([&](Operators& ops, Queue& q, Side at) { ops.layer_norm(q, at(x), at(w), at(b), 1e-5f, at(y)); });
      expect_close(y, 4 * flips(dtype), 8 * unit(dtype));
    }
}

TEST_F(CudaRows, ModulationEqualsTheOracleAndItsFusedTwin) {
  for (const DType dtype : kFloatTypes)
    for (const Case& c : kCases) {
      SCOPED_TRACE(fmt::format("{} {}x{}+{}", name_of(dtype), c.rows, c.width, c.gap));
      constexpr std::int64_t kTable = 5;
      const Twin x = random({c.rows, c.width}, dtype, 2.0, c.gap), w = random({c.width}, dtype);
      const Twin table = random({kTable, 2 * c.width}, dtype, 0.3), index = indices(c.rows, kTable);
      const Twin scale = table.slice(1, 0, c.width), shift = table.slice(1, c.width, 2 * c.width);
      const Twin modulated = poisoned({c.rows, c.width}, dtype, c.gap);
      both([&](Operators& ops, Queue& q, Side at) {
        ops.modulate(q, at(x), at(scale), at(shift), at(index), at(modulated));
      });
      expect_same(modulated);

      const Twin normed = poisoned({c.rows, c.width}, dtype), steps = poisoned({c.rows, c.width}, dtype);
      const Twin fused = poisoned({c.rows, c.width}, dtype);
      on_gpu([&](Operators& ops, Queue& q, Side at) {
        ops.rms_norm(q, at(x), at(w), 1e-5f, NormRounding::once, at(normed));
        ops.modulate(q, at(normed), at(scale), at(shift), at(index), at(steps));
        ops.norm_modulate(q, at(x), at(w), 1e-5f, at(scale), at(shift), at(index), at(fused));
      });
      EXPECT_EQ(download(fused), download(steps));
    }
}

TEST_F(CudaRows, NormsOfSlicesGiveTheSameBits) {
  for (const DType dtype : kFloatTypes) {
    const Twin x = random({300, 5376}, dtype), w = random({5376}, dtype);
    const Twin full = poisoned({300, 5376}, dtype), cut = poisoned({300, 5376}, dtype);
    on_gpu([&](Operators& ops, Queue& q, Side at) {
      ops.rms_norm(q, at(x), at(w), 1e-5f, NormRounding::once, at(full));
      for (const auto& [a, b] : {std::pair{0, 1}, std::pair{1, 130}, std::pair{130, 133}, std::pair{133, 300}})
        ops.rms_norm(q, at(x.rows(a, b)), at(w), 1e-5f, NormRounding::once, at(cut.rows(a, b)));
    });
    EXPECT_EQ(download(full), download(cut));
  }
}

TEST_F(CudaRows, GatedAdd) {
  for (const DType dtype : kFloatTypes)
    for (const Case& c : kCases) {
      SCOPED_TRACE(fmt::format("{} {}x{}+{}", name_of(dtype), c.rows, c.width, c.gap));
      const Twin x = random({c.rows, c.width}, dtype, 1.0, c.gap), a = random({c.rows, c.width}, dtype);
      const Twin gate = random({4, c.width}, dtype, 1.0, 8), index = indices(c.rows, 4);
      both([&](Operators& ops, Queue& q, Side at) { ops.gated_add(q, at(x), at(gate), at(index), at(a)); });
      expect_same(x);
    }
}

TEST_F(CudaRows, GroupNorm) {
  for (const bool silu : {false, true})
    for (const auto& [channels, frames, height, width, groups] :
         {std::array<std::int64_t, 5>{64, 3, 9, 11, 32}, std::array<std::int64_t, 5>{32, 1, 64, 64, 8},
          std::array<std::int64_t, 5>{48, 2, 1, 3, 16}}) {
      const Twin x = random({channels, frames, height, width}, DType::f32, 3.0), w = random({channels}, DType::f32),
                 b = random({channels}, DType::f32);
      const Twin y = poisoned({channels, frames, height, width}, DType::f32);
      both([&](Operators& ops, Queue& q, Side at) {
        ops.group_norm(q, at(x), at(w), at(b), groups, 1e-6f, silu, at(y));
      });
      expect_close(y, 2e-6, 1e-5);
    }
}

struct Rope {
  std::int64_t rows, heads, d, pairs;
  bool fused;  // x is a third of a fused buffer
};
const std::vector<Rope> kRopes = {{13, 3, 128, 48, true}, {9, 4, 64, 24, false},  {21, 2, 32, 12, true},
                                  {5, 8, 128, 64, false}, {7, 2, 256, 100, true}, {4, 3, 20, 5, false},
                                  {6, 2, 72, 36, false},  {3, 1, 128, 0, true},   {11, 56, 128, 48, true}};

TEST_F(CudaRows, HeadNormRope) {
  for (const DType dtype : kFloatTypes)
    for (const Rope& r : kRopes)
      for (const bool round_products : {false, true})
        for (const bool weighted : {true, false})
          for (const bool float_table : {true, false}) {
            SCOPED_TRACE(fmt::format("{} {}x{}x{} pairs {}", name_of(dtype), r.rows, r.heads, r.d, r.pairs));
            const Twin buffer = random({r.rows, r.heads * (r.fused ? 3 : 1) * r.d}, dtype, 2.0).split(1, r.heads);
            const Twin x = r.fused ? buffer.slice(2, r.d, 2 * r.d) : buffer, w = random({r.d}, dtype);
            const DType table = float_table ? DType::f32 : dtype;
            const Twin cos = r.pairs ? random({r.rows, r.pairs}, table, 0.5) : Twin(),
                       sin = r.pairs ? random({r.rows, r.pairs}, table, 0.5) : Twin();
            both([&](Operators& ops, Queue& q, Side at) {
              ops.head_norm_rope(q, at(x),
                                 {weighted ? at(w) : Tensor(), 1e-5f, true, NormRounding::before_weight,
                                  r.pairs ? at(cos) : Tensor(), r.pairs ? at(sin) : Tensor(), round_products});
            });
            expect_close(x, 3 * flips(dtype), 8 * unit(dtype));
          }
}

TEST_F(CudaRows, RotationAloneHasTheOraclesBits) {
  for (const DType dtype : kFloatTypes)
    for (const Rope& r : kRopes) {
      if (!r.pairs) continue;
      SCOPED_TRACE(fmt::format("{} {}x{}x{} pairs {}", name_of(dtype), r.rows, r.heads, r.d, r.pairs));
      const Twin x = random({r.rows, r.heads * r.d}, dtype).split(1, r.heads);
      const Twin cos = random({r.rows, r.pairs}, DType::f32, 0.5), sin = random({r.rows, r.pairs}, DType::f32, 0.5);
      both([&](Operators& ops, Queue& q, Side at) {
        ops.head_norm_rope(q, at(x), {{}, 0, false, NormRounding::once, at(cos), at(sin), true});
        ops.head_norm_rope(q, at(x), {{}, 0, false, NormRounding::once, at(cos), at(sin), false});
      });
      expect_same(x);
    }
}

TEST_F(CudaRows, FusedNormAndRotationHaveTheBitsOfTwoSteps) {
  for (const DType dtype : kFloatTypes)
    for (const Rope& r : kRopes) {
      if (!r.pairs) continue;
      const Twin x = random({r.rows, r.heads * r.d}, dtype), y = copy_of(x), w = random({r.d}, dtype);
      const Twin cos = random({r.rows, r.pairs}, dtype, 0.5), sin = random({r.rows, r.pairs}, dtype, 0.5);
      on_gpu([&](Operators& ops, Queue& q, Side at) {
        const Twin a = x.split(1, r.heads), b = y.split(1, r.heads);
        ops.head_norm_rope(q, at(a), {at(w), 1e-5f, true, NormRounding::once, at(cos), at(sin), false});
        ops.head_norm_rope(q, at(b), {at(w), 1e-5f, true, NormRounding::once, {}, {}, false});
        ops.head_norm_rope(q, at(b), {{}, 0, false, NormRounding::once, at(cos), at(sin), false});
      });
      EXPECT_EQ(download(x), download(y));
    }
}

TEST_F(CudaRows, SwigluAndActivations) {
  for (const DType dtype : kFloatTypes)
    for (const Case& c : kCases) {
      SCOPED_TRACE(fmt::format("{} {}x{}+{}", name_of(dtype), c.rows, c.width, c.gap));
      const Twin u = random({c.rows, 2 * c.width}, dtype, 3.0, c.gap), y = poisoned({c.rows, c.width}, dtype, c.gap);
      both([&](Operators& ops, Queue& q, Side at) { ops.swiglu(q, at(u), at(y)); });
      expect_close(y, 2 * flips(dtype), 64 * unit(dtype));
      for (const Activation kind : {Activation::silu, Activation::gelu_tanh, Activation::gelu_erf}) {
        const Twin x = random({c.rows, c.width}, dtype, 3.0, c.gap), z = poisoned({c.rows, c.width}, dtype, c.gap);
        both([&](Operators& ops, Queue& q, Side at) {
          ops.activate(q, kind, at(x), at(z));
          ops.activate(q, kind, at(x), at(x));
        });
        expect_close(z, 2 * flips(dtype), 8 * unit(dtype));
        expect_close(x, 2 * flips(dtype), 8 * unit(dtype));
      }
    }
}

TEST_F(CudaRows, SiluSurvivesLargeValues) {
  const Twin x = values({-1e4f, -100.0f, -89.0f, -88.0f, -20.0f, -0.0f, 0.0f, 20.0f, 88.0f, 100.0f, 1e4f, 3e38f});
  const Twin y = poisoned({12}, DType::f32), half = poisoned({12}, DType::bf16), z = poisoned({12}, DType::bf16);
  both([&](Operators& ops, Queue& q, Side at) {
    ops.activate(q, Activation::silu, at(x), at(y));
    ops.cast(q, at(x), at(half));
    ops.activate(q, Activation::silu, at(half), at(z));
  });
  expect_close(y, 1e-6, 1e32);
  expect_close(z, 1e-3, 1e36);
}

TEST_F(CudaRows, SumsAndCasts) {
  for (const DType dtype : kFloatTypes)
    for (const Case& c : kCases) {
      SCOPED_TRACE(fmt::format("{} {}x{}+{}", name_of(dtype), c.rows, c.width, c.gap));
      const Twin x = random({c.rows, c.width}, dtype, 1.0, c.gap), a = random({c.rows, c.width}, dtype);
      const Twin wide = random({c.rows, c.width}, DType::f32, 1.0, c.gap), scale = random({c.width}, DType::f32);
      both([&](Operators& ops, Queue& q, Side at) {
        ops.add(q, at(x), at(a));
        ops.scaled_add(q, at(wide), at(a), at(scale));
      });
      expect_same(x);
      expect_same(wide);
      for (const DType to : kFloatTypes) {
        const Twin y = poisoned({c.rows, c.width}, to, c.gap);
        both([&](Operators& ops, Queue& q, Side at) { ops.cast(q, at(x), at(y)); });
        expect_same(y);
      }
    }
}

// In one pass: the bits of a sum and a norm apart, on any width and alignment.
TEST_F(CudaRows, ScaledAddAndNormEqualTheirTwins) {
  for (const DType a_type : kFloatTypes)
    for (const DType y_type : {a_type, DType::f16}) {
      if (a_type == DType::bf16 && y_type == DType::f16) continue;  // no such pair
      for (const Case& c : kCases) {
        SCOPED_TRACE(fmt::format("{} {} {}x{}+{}", name_of(a_type), name_of(y_type), c.rows, c.width, c.gap));
        const Twin x = random({c.rows, c.width}, DType::f32, 1.0, c.gap), a = random({c.rows, c.width}, a_type);
        const Twin scale = random({c.width}, DType::f32), weight = random({c.width}, DType::f32);
        const Twin y = poisoned({c.rows, c.width}, y_type, c.gap), z = poisoned({c.rows, c.width}, y_type, c.gap);
        const Twin apart = poisoned({c.rows, c.width}, DType::f32, c.gap);
        on_gpu([&](Operators& ops, Queue& q, Side at) {
          ops.copy_rows(q, at(x), at(apart));
          ops.scaled_add(q, at(apart), at(a), at(scale));
          ops.rms_norm(q, at(apart), at(weight), 1e-5f, NormRounding::once, at(z));
        });
        both([&](Operators& ops, Queue& q, Side at) {
          ops.scaled_add_norm(q, at(x), at(a), at(scale), at(weight), 1e-5f, at(y));
        });
        expect_same(x);
        EXPECT_TRUE(bytes_of(x) == bytes_of(apart));
        EXPECT_TRUE(bytes_of(y) == bytes_of(z));
        expect_close(y, flips(y_type), 8 * unit(y_type));
      }
    }
}

TEST_F(CudaRows, CopiesAndGathers) {
  for (const DType dtype : kFloatTypes)
    for (const Case& c : kCases) {
      const Twin x = random({c.rows, c.width}, dtype, 1.0, c.gap), y = poisoned({c.rows, c.width}, dtype, 5);
      const Twin index = indices(3 * c.rows, static_cast<std::int32_t>(c.rows));
      const Twin z = poisoned({3 * c.rows, c.width}, dtype, c.gap), zero = random({c.rows, c.width}, dtype, 1.0, c.gap);
      both([&](Operators& ops, Queue& q, Side at) {
        ops.copy_rows(q, at(x), at(y));
        ops.gather(q, at(x), at(index), at(z));
        ops.fill_zero(q, at(zero));
      });
      expect_same(y);
      expect_same(z);
      expect_same(zero);
    }
  // A corner of a volume, which is no matrix.
  const Twin x = random({5, 6, 7}, DType::f32), y = poisoned({5, 6, 7}, DType::f32);
  const auto corner = [](const Twin& t) { return t.slice(0, 1, 4).slice(1, 2, 5).slice(2, 3, 7); };
  both([&](Operators& ops, Queue& q, Side at) {
    ops.copy_rows(q, at(corner(x)), at(corner(y)));
    ops.fill_zero(q, at(corner(x)));
    ops.clamp(q, at(corner(y)), -0.5f, 0.5f);
  });
  expect_same(x);
  expect_same(y);
  // The same, aligned.
  const Twin from = random({5, 6, 16}, DType::f32), to = poisoned({5, 8, 24}, DType::f32);
  both([&](Operators& ops, Queue& q, Side at) {
    ops.copy_rows(q, at(from.slice(1, 1, 6).slice(2, 4, 12)), at(to.slice(1, 2, 7).slice(2, 8, 16)));
  });
  expect_same(to);
}

TEST_F(CudaRows, SplitHalves) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(fmt::format("{}x{}+{}", c.rows, c.width, c.gap));
    const Twin x = random({c.rows, c.width}, DType::f32, 3.0, c.gap);
    const Twin y = poisoned({c.rows, 3 * c.width}, DType::f16, c.gap);
    both([&](Operators& ops, Queue& q, Side at) { ops.split_halves(q, at(x), at(y)); });
    expect_same(y);
  }
}

TEST_F(CudaRows, SanitizeAndClamp) {
  const Twin x = values({NAN, -NAN, INFINITY, -INFINITY, 1.5f, -0.0f, 3e38f, 70000.0f, -1e-42f});
  for (const DType dtype : kFloatTypes) {
    const Twin y = poisoned({9}, dtype);
    both([&](Operators& ops, Queue& q, Side at) {
      ops.cast(q, at(x), at(y));
      ops.sanitize(q, at(y));
    });
    expect_same(y);
  }
  both([&](Operators& ops, Queue& q, Side at) { ops.clamp(q, at(x), -1.0f, 1.0f); });
  expect_same(x);
}

TEST_F(CudaRows, SamplerSteps) {
  for (const Case& c : kCases) {
    const Twin x = random({c.rows, c.width}, DType::f32, 1.0, c.gap), v = random({c.rows, c.width}, DType::f32);
    const Twin clean = poisoned({c.rows, c.width}, DType::f32), before = random({c.rows, c.width}, DType::f32);
    both([&](Operators& ops, Queue& q, Side at) {
      ops.euler_step(q, at(x), at(v), 0.7312f, 0.8831f, at(clean));
      ops.euler_step(q, at(x), at(v), 0.3f, 0.0f, Tensor());
      ops.multistep_correction(q, at(x), at(clean), at(before), -0.0394f);
    });
    expect_same(x);
    expect_same(clean);
  }
}

TEST_F(CudaRows, MeanOf) {
  const Twin a = random({2, 3, 1001}, DType::f32), b = random({2, 3, 1001}, DType::f32),
             c = random({2, 3, 1001}, DType::f32), y = poisoned({2, 3, 1001}, DType::f32);
  both([&](Operators& ops, Queue& q, Side at) {
    const std::array<Tensor, 3> inputs{at(a), at(b), at(c)};
    ops.mean_of(q, inputs, at(y));
  });
  expect_same(y);
}

}  // namespace
}  // namespace h3::test
