// Loading: both layouts give the same canonical bits, dtypes follow the precision, and neither the number of ranks and
// threads nor the part asked for changes a bit.
#include "weights/load.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>

#include "support/goldens.h"
#include "weights/identity.h"
#include "weights/model_files.h"

namespace h3 {
namespace {

using test::HeldTensors;
using test::TemporaryFolder;

constexpr Component kComponents[] = {Component::transformer, Component::text_encoder, Component::video_vae,
                                     Component::audio_vae};

void expect_equal(const WeightSet& a, const WeightSet& b) {
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (const auto& [name, x] : a.tensors()) {
    ASSERT_TRUE(b.has(name)) << name;
    const Tensor& y = b.at(name);
    ASSERT_TRUE(x.shape == y.shape && x.dtype == y.dtype) << name;
    EXPECT_EQ(std::memcmp(x.data, y.data, x.bytes()), 0) << name;
  }
}

LoadOptions low_precision() {
  LoadOptions options;
  options.precision = Precision::bf16;
  options.vae_profile = VaeProfile::R;
  return options;
}

TEST(Load, BothLayoutsGiveTheSameTensors) {
  const TemporaryFolder folder;
  const ModelFolder diffusers = open_model(test::nano_path());
  const ModelFolder original = open_model(test::write_original_nano(folder / "model").string());
  EXPECT_EQ(diffusers.layout(), Layout::diffusers);
  EXPECT_EQ(original.layout(), Layout::original);
  EXPECT_TRUE(diffusers.config() == original.config());
  EXPECT_TRUE(original.notes().empty());
  for (Component component : kComponents)
    for (const LoadOptions& options : {LoadOptions{}, low_precision()})
      expect_equal(load_component(diffusers, component, options), load_component(original, component, options));
}

// Rows by the words of spec/dit.md 2.1 and 2.2, straight from the diffusers file.
TEST(Load, TransformerRowOrders) {
  const ModelFolder model = open_model(test::nano_path());
  const WeightSet w = load_component(model, Component::transformer, low_precision());
  HeldTensors stored;
  for (const char* shard : {"00001", "00002"})
    stored.merge(test::read_tensors(std::string(model.paths().transformer[0]) + "/diffusion_pytorch_model-" + shard +
                                    "-of-00002.safetensors"));
  const auto row = [&](const std::string& name, std::int64_t r) {
    return reinterpret_cast<const std::uint16_t*>(stored.at(name).bytes.data()) + r * stored.at(name).shape[1];
  };
  const TransformerConfig& c = model.config().transformer;
  const Tensor& qkv = w.at("blocks.2.attn.qkv_proj.weight");
  for (std::int64_t head = 0; head < c.heads; ++head)
    for (std::int64_t part = 0; part < 3; ++part)
      for (std::int64_t d = 0; d < c.head_dim; ++d) {
        const auto* expected =
            row(fmt::format("transformer_blocks.2.attn.to_{}.weight", "qkv"[part]), head * c.head_dim + d);
        const auto* found = qkv.as<std::uint16_t>() + ((head * 3 + part) * c.head_dim + d) * c.hidden;
        ASSERT_EQ(std::memcmp(found, expected, static_cast<std::size_t>(c.hidden) * 2), 0)
            << head << " " << part << " " << d;
      }
  const Tensor& fc1 = w.at("token_refiner.blocks.1.mlp.fc1.weight");
  const std::string name = "token_refiner.refiner_blocks.1.ff.net.0.proj.weight";
  EXPECT_EQ(std::memcmp(fc1.data, row(name, c.ffn), fc1.bytes() / 2), 0);
  EXPECT_EQ(std::memcmp(fc1.rows(c.ffn, 2 * c.ffn).data, row(name, 0), fc1.bytes() / 2), 0);
  EXPECT_EQ(w.linear("video_patch_proj").weight.dtype, DType::f32);
  EXPECT_EQ(w.linear("video_patch_proj").bias.size(0), c.hidden);
  EXPECT_EQ(w.linear("blocks.0.attn.out_proj").full_outputs, c.hidden);
  EXPECT_FALSE(w.linear("blocks.0.attn.out_proj").bias);
}

TEST(Load, WeightNormIsFolded) {
  const ModelFolder model = open_model(test::nano_path());
  const WeightSet w = load_component(model, Component::audio_vae);
  const HeldTensors stored = test::read_tensors(model.paths().audio_vae / "diffusion_pytorch_model.safetensors");
  std::size_t folded = 0;
  for (const auto& [name, v] : stored) {
    if (!name.ends_with(".weight_v")) continue;
    const std::string base = name.substr(0, name.size() - 9);
    const auto* g = reinterpret_cast<const float*>(stored.at(base + ".weight_g").bytes.data());
    const auto* x = reinterpret_cast<const float*>(v.bytes.data());
    const Tensor& weight = w.at(base + ".weight");
    ASSERT_EQ(weight.shape, v.shape);
    const std::int64_t n = v.shape.elements() / v.shape[0];
    for (std::int64_t r = 0; r < v.shape[0]; ++r) {
      double squares = 0, norm = 0;
      for (std::int64_t i = 0; i < n; ++i) squares += std::pow(static_cast<double>(x[r * n + i]), 2);
      for (std::int64_t i = 0; i < n; ++i) {
        const float found = weight.as<float>()[r * n + i];
        EXPECT_EQ(found, static_cast<float>(static_cast<double>(x[r * n + i]) *
                                            (static_cast<double>(g[r]) / std::sqrt(squares))));
        norm += std::pow(static_cast<double>(found), 2);
      }
      EXPECT_NEAR(std::sqrt(norm), std::abs(g[r]), 1e-5 * std::abs(g[r]));
    }
    EXPECT_FALSE(w.has(base + ".weight_g"));
    EXPECT_FALSE(w.has(base + ".weight_v"));
    ++folded;
  }
  EXPECT_GT(folded, 50u);
}

TEST(Load, WidenedValuesAreExact) {
  const ModelFolder model = open_model(test::nano_path());
  const WeightSet wide = load_component(model, Component::text_encoder);
  const WeightSet stored = load_component(model, Component::text_encoder, low_precision());
  for (const auto& [name, t] : stored.tensors()) {
    ASSERT_EQ(t.dtype, DType::bf16) << name;
    for (std::int64_t i = 0; i < t.elements(); ++i)
      ASSERT_EQ(wide.at(name).as<float>()[i], to_f32(t.as<bf16_t>()[i])) << name;
  }
  EXPECT_FALSE(stored.has("lm_head.weight"));
  EXPECT_FALSE(stored.has("model.language_model.norm.weight"));
  EXPECT_TRUE(stored.has("model.language_model.layers.3.mlp.up_proj.weight"));
  EXPECT_FALSE(stored.has("model.language_model.layers.4.mlp.up_proj.weight"));
}

TEST(Load, PartsAndThreads) {
  const ModelFolder model = open_model(test::nano_path());
  const WeightSet all = load_component(model, Component::transformer);
  LoadOptions options;
  options.threads = 3;
  options.wanted = [](std::string_view name) { return name.find("adaln_proj") != std::string_view::npos; };
  const WeightSet part = load_component(model, Component::transformer, options);
  EXPECT_EQ(part.tensors().size(), 14u);
  for (const auto& [name, t] : part.tensors()) EXPECT_EQ(std::memcmp(t.data, all.at(name).data, t.bytes()), 0) << name;
  options.wanted = [](std::string_view) { return false; };
  EXPECT_TRUE(load_component(model, Component::transformer, options).tensors().empty());
}

TEST(Load, MemoryPlanIsWhatIsLoaded) {
  const ModelFolder model = open_model(test::nano_path());
  for (Component component : kComponents) {
    const MemoryPlan plan = plan_memory(model.plan(component), low_precision());
    const WeightSet set = load_component(model, component, low_precision());
    ASSERT_EQ(plan.tensors.size(), set.tensors().size());
    const char* first = static_cast<const char*>(set.at(plan.tensors[0].name).data);
    for (const LoadedTensor& t : plan.tensors) {
      EXPECT_EQ(t.offset % 256, 0u);
      EXPECT_LE(t.offset + t.bytes(), plan.bytes);
      EXPECT_EQ(static_cast<const char*>(set.at(t.name).data) - first, static_cast<std::ptrdiff_t>(t.offset)) << t.name;
      EXPECT_TRUE(set.at(t.name).shape == t.shape && set.at(t.name).dtype == t.dtype);
    }
  }
}

TEST(Load, ConvertedDtypesAreNoted) {
  const TemporaryFolder folder;
  const auto path = test::copy_nano(folder / "model");
  test::edit_tensors(path / "text_encoder" / "model.safetensors", [](HeldTensors& tensors) {
    test::Held& t = tensors.at("model.language_model.embed_tokens.weight");
    std::vector<std::byte> wide(t.bytes.size() * 2);
    for (std::size_t i = 0; i < t.bytes.size() / 2; ++i)
      reinterpret_cast<float*>(wide.data())[i] =
          to_f32(reinterpret_cast<const bf16_t*>(t.bytes.data())[i]) * (1 + 0x1p-12f);
    t.bytes = wide;
    t.dtype = DType::f32;
  });
  const ModelFolder model = open_model(path.string());
  ASSERT_EQ(model.notes().size(), 1u);
  EXPECT_NE(model.notes()[0].find("1 tensors are stored as F32 and used as BF16"), std::string::npos)
      << model.notes()[0];
  // Rounded to the stored dtype first, whatever the precision.
  expect_equal(load_component(model, Component::text_encoder),
               load_component(open_model(test::nano_path()), Component::text_encoder));
}

TEST(Load, StoppedHalfWay) {
  const ModelFolder model = open_model(test::nano_path());
  LoadOptions options;
  std::atomic<int> asked = 0;
  options.stopped = [&] { return ++asked > 3; };
  EXPECT_THROW(load_component(model, Component::transformer, options), LoadStopped);
  IdentityOptions hashing{.cache = "/proc/nowhere"};
  hashing.stopped = options.stopped;
  EXPECT_THROW(model_identity(model, hashing), LoadStopped);
  options.stopped = [] { return false; };
  EXPECT_NO_THROW(load_component(model, Component::transformer, options));
}

// Whoever uses the filled memory is called when it is whole, and is gone before it.
TEST(Load, UsersOfTheMemoryGoFirst) {
  const ModelFolder model = open_model(test::nano_path());
  const WeightSet plain = load_component(model, Component::audio_vae);
  LoadOptions options;
  bool gone = false;
  options.filled = [&](const WeightBlock& block) -> std::shared_ptr<void> {
    const std::vector<std::byte> seen(block.data(), block.data() + block.bytes());
    return std::shared_ptr<void>(nullptr, [&block, seen, &gone](void*) {
      EXPECT_EQ(std::memcmp(block.data(), seen.data(), seen.size()), 0);
      gone = true;
    });
  };
  WeightSet used = load_component(model, Component::audio_vae, options);
  expect_equal(plain, used);
  EXPECT_FALSE(gone);
  used = WeightSet();
  EXPECT_TRUE(gone);
}

TEST(Load, ZeroDirectionIsRefused) {
  const TemporaryFolder folder;
  const auto path = test::copy_nano(folder / "model");
  test::edit_tensors(path / "audio_vae" / "diffusion_pytorch_model.safetensors", [](HeldTensors& tensors) {
    test::Held& v = tensors.at("decoder.conv_pre.weight_v");
    const std::size_t row = v.bytes.size() / static_cast<std::size_t>(v.shape[0]);
    std::memset(v.bytes.data() + 3 * row, 0, row);
  });
  const ModelFolder model = open_model(path.string());
  const std::string error = test::user_error_of([&] { load_component(model, Component::audio_vae); });
  EXPECT_NE(error.find("decoder.conv_pre.weight_v: the norm of row 3 is 0"), std::string::npos) << error;
}

TEST(Load, OtherFrequenciesOfTheFileAreUsed) {
  const TemporaryFolder folder;
  const auto path = test::write_original_nano(folder / "model");
  test::edit_tensors(path / "FL2VA" / "transformer" / "model-00002-of-00002.safetensors", [](HeldTensors& tensors) {
    reinterpret_cast<float*>(tensors.at("rope.inv_freq").bytes.data())[1] = 0.125f;
  });
  const ModelFolder model = open_model(path.string());
  ASSERT_EQ(model.notes().size(), 1u);
  EXPECT_NE(model.notes()[0].find("rope.inv_freq differs"), std::string::npos);
  EXPECT_EQ(load_component(model, Component::transformer).at("rope.inv_freq").as<float>()[1], 0.125f);
}

}  // namespace
}  // namespace h3
