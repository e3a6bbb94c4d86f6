// Synthetic weights: a function of seed and name alone, in the ranges of trained weights.
#include "weights/synthetic.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>

#include "support/goldens.h"
#include "weights/load.h"
#include "weights/model_files.h"
#include "weights/model_writer.h"
#include "weights/worker_threads.h"

namespace h3 {
namespace {

using test::TemporaryFolder;

std::string synthetic_nano(int seed) {
  return fmt::format("synthetic:{}:{}", seed, test::nano_path());
}

TEST(Synthetic, AnyRowsInAnyOrder) {
  const ModelFolder model = open_model(synthetic_nano(3));
  for (Component component : {Component::transformer, Component::audio_vae})
    for (const PlannedTensor& t : model.plan(component).tensors) {
      const std::vector<std::byte> whole = model.source(component).read(t);
      for (const auto& [begin, end] : {std::pair{t.rows() / 3, t.rows() / 3 + 1}, std::pair{t.rows() / 2, t.rows()}}) {
        std::vector<std::byte> rows(static_cast<std::size_t>(end - begin) * t.row_bytes());
        model.source(component).read_rows(t, begin, end, rows.data());
        ASSERT_EQ(std::memcmp(rows.data(), whole.data() + static_cast<std::size_t>(begin) * t.row_bytes(), rows.size()),
                  0)
            << t.name;
      }
    }
}

TEST(Synthetic, SeedAndNameDecide) {
  const ModelFolder one = open_model(synthetic_nano(1)), again = open_model(synthetic_nano(1)),
                    two = open_model(synthetic_nano(2));
  const auto& tensors = one.plan(Component::transformer).tensors;
  std::vector<std::byte> before;
  for (const PlannedTensor& t : tensors) {
    const auto a = one.source(Component::transformer).read(t);
    EXPECT_TRUE(a == again.source(Component::transformer).read(t)) << t.name;
    if (!t.values.empty()) continue;
    EXPECT_FALSE(a == two.source(Component::transformer).read(t)) << t.name;
    EXPECT_FALSE(a == before) << t.name;
    before = a;
  }
}

TEST(Synthetic, RangesOfTrainedWeights) {
  const ModelFolder model = open_model(synthetic_nano(5));
  for (Component component :
       {Component::transformer, Component::text_encoder, Component::video_vae, Component::audio_vae}) {
    const WeightSet w = load_component(model, component);
    for (const PlannedTensor& t : model.plan(component).tensors) {
      if (!w.has(t.name) || t.role == Role::zero) continue;
      double sum = 0, squares = 0;
      const auto n = static_cast<double>(t.shape.elements());
      for (std::int64_t i = 0; i < t.shape.elements(); ++i) {
        const double v = static_cast<double>(w.at(t.name).as<float>()[i]);
        ASSERT_TRUE(std::isfinite(v)) << t.name;
        ASSERT_NE(v, 0) << t.name;
        sum += v;
        squares += v * v;
      }
      const double mean = sum / n, deviation = std::sqrt(squares / n - mean * mean);
      EXPECT_NEAR(mean, t.role == Role::norm ? 1 : mean, 0.1 + 0.5 / std::sqrt(n)) << t.name;
      if (t.role != Role::weight || n < 4096) continue;
      EXPECT_NEAR(mean, 0, 5 * deviation / std::sqrt(n)) << t.name;
      EXPECT_NEAR(deviation, 1 / std::sqrt(static_cast<double>(t.row_elements())), 0.05 * deviation) << t.name;
    }
  }
}

// No two rows alike, and neighbours do not go together.
TEST(Synthetic, ValuesAreUnrelated) {
  const PlannedTensor t = PlanBuilder(Component::transformer, DType::f32).add("x", {512, 1024}, Role::weight);
  const std::vector<std::byte> data = SyntheticSource(1, Component::transformer).read(t);
  const auto* x = reinterpret_cast<const float*>(data.data());
  for (int lag : {1, 2, 256, 257, 512, 1024, 2048}) {
    double product = 0;
    const int n = 512 * 1024 - lag;
    for (int i = 0; i < n; ++i) product += static_cast<double>(x[i]) * static_cast<double>(x[i + lag]) * 1024;
    EXPECT_NEAR(product / n, 0, 5 / std::sqrt(n)) << lag;
  }
}

TEST(Synthetic, WrittenFolderHoldsTheSameWeights) {
  const TemporaryFolder folder;
  const ModelFolder model = open_model(synthetic_nano(9));
  write_model_folder(folder / "made", model, {.shard_bytes = 3 << 20, .threads = 2});
  const ModelFolder made = open_model((folder / "made").string());
  EXPECT_TRUE(made.config() == model.config());
  EXPECT_TRUE(std::filesystem::exists(made.paths().tokenizer / "merges.txt"));
  EXPECT_TRUE(std::filesystem::exists(folder / "made" / "processor" / "preprocessor_config.json"));
  for (Component component :
       {Component::transformer, Component::text_encoder, Component::video_vae, Component::audio_vae}) {
    const WeightSet a = load_component(model, component), b = load_component(made, component);
    ASSERT_EQ(a.tensors().size(), b.tensors().size());
    for (const auto& [name, t] : a.tensors()) ASSERT_EQ(std::memcmp(t.data, b.at(name).data, t.bytes()), 0) << name;
  }
  EXPECT_GT(made.files(Component::transformer)->files().size(), 2u);
  // Not over something that exists, and nothing left behind.
  const std::string error = test::user_error_of([&] { write_model_folder(folder / "made", model); });
  EXPECT_NE(error.find("exists already"), std::string::npos);
  EXPECT_THROW(write_model_folder("/proc/made", model), SceneError);
  std::size_t entries = 0;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator(folder.path())) ++entries;
  EXPECT_EQ(entries, 1u);
}

TEST(Synthetic, ReleasedConfiguration) {
  const ModelFolder model = open_model("synthetic:7");
  EXPECT_TRUE(model.config() == released_model_config());
  EXPECT_TRUE(model.paths().tokenizer.empty());
  EXPECT_EQ(model.layout_name(), "synthetic");
  EXPECT_TRUE(model.has(Partition::ref2va));
  // A part of it, at the speed that the whole would have.
  LoadOptions options;
  options.precision = Precision::bf16;
  options.wanted = [](std::string_view name) { return name == "blocks.17.mlp.fc1.weight"; };
  const auto start = std::chrono::steady_clock::now();
  const WeightSet w = load_component(model, Component::transformer, options);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("made %.1f MB of bf16 at %.2f GB/s with %d threads\n", static_cast<double>(w.bytes()) / 1e6,
              static_cast<double>(w.bytes()) / seconds / 1e9, default_threads(1));
  EXPECT_EQ(w.at("blocks.17.mlp.fc1.weight").dtype, DType::bf16);
}

}  // namespace
}  // namespace h3
