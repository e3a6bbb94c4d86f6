// A model's identity: the same for every layout and cut of the same weights, another for any other bit, and remembered.
#include "weights/identity.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>

#include "base/file.h"
#include "support/goldens.h"
#include "weights/model_files.h"
#include "weights/model_writer.h"

namespace h3 {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

// Files as old as those of an installed model, so that they may be remembered.
void make_old(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - std::chrono::hours(1));
}

TEST(Identity, SameForLayoutsAndShards) {
  const TemporaryFolder folder;
  const IdentityOptions options{.cache = folder / "cache"};
  const ModelFolder nano = open_model(test::nano_path());
  const std::string id = model_identity(nano, options);
  EXPECT_EQ(id.size(), 32u);
  EXPECT_EQ(model_identity(open_model(test::write_original_nano(folder / "original").string()), options), id);
  const auto joined = test::copy_nano(folder / "joined");
  test::join_transformer(joined);
  EXPECT_EQ(model_identity(open_model(joined.string()), options), id);
  // Written anew, in many shards.
  write_model_folder(folder / "written", nano, {.shard_bytes = 1 << 20});
  EXPECT_TRUE(fs::exists(folder / "written" / "vae" / "diffusion_pytorch_model.safetensors.index.json"));
  const ModelFolder written = open_model((folder / "written").string());
  EXPECT_TRUE(written.config() == nano.config());
  EXPECT_EQ(model_identity(written, options), id);
  // What is not used does not count.
  const auto truncated = test::copy_nano(folder / "truncated");
  test::edit_tensors(truncated / "text_encoder" / "model.safetensors",
                     [](test::HeldTensors& t) { t.erase("lm_head.weight"); });
  EXPECT_EQ(model_identity(open_model(truncated.string()), options), id);
}

TEST(Identity, OtherForAnyChange) {
  const TemporaryFolder folder;
  const IdentityOptions options{.cache = folder / "cache"};
  const std::string id = model_identity(open_model(test::nano_path()), options);
  const auto path = test::copy_nano(folder / "model");
  test::edit_tensors(path / "vae" / "diffusion_pytorch_model.safetensors",
                     [](test::HeldTensors& t) { t.at("encoder.conv_in.bias").bytes[3] ^= std::byte{1}; });
  const std::string other = model_identity(open_model(path.string()), options);
  EXPECT_NE(other, id);
  test::edit_json(path / "scheduler" / "scheduler_config.json", [](nlohmann::json& j) { j["shift"] = 7.0; });
  EXPECT_NE(model_identity(open_model(path.string()), options), other);
}

TEST(Identity, IsRemembered) {
  const TemporaryFolder folder;
  const IdentityOptions options{.cache = folder / "cache"};
  const auto path = test::copy_nano(folder / "model");
  // Files that have just been written could change again without a sign of it.
  model_identity(open_model(path.string()), options);
  EXPECT_FALSE(fs::exists(folder / "cache"));
  make_old(path);
  const ModelFolder model = open_model(path.string());
  const std::string id = model_identity(model, options);
  const fs::path memo = folder / "cache" / "digests.json";
  ASSERT_TRUE(fs::exists(memo));
  struct stat s {};
  ASSERT_EQ(::stat(memo.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0600u);
  EXPECT_EQ(test::read_json(memo).size(), 4u);
  EXPECT_EQ(model_identity(model, options), id);
  EXPECT_EQ(test::read_json(memo).size(), 4u);
  // A remembered digest is believed, which shows that nothing was read.
  test::edit_json(memo, [](nlohmann::json& entries) {
    for (auto& e : entries) e[1] = std::string(32, '0');
  });
  EXPECT_NE(model_identity(model, options), id);
  // A file that changed is hashed anew.
  make_old(path);
  EXPECT_EQ(model_identity(open_model(path.string()), options), id);
  // A damaged memo is an empty one.
  test::write_text(memo, "[[1,2],{},\"x\",[\"a\",\"b\"]");
  EXPECT_EQ(model_identity(open_model(path.string()), options), id);
  EXPECT_EQ(model_identity(model, {.cache = "/proc/nowhere"}), id);
}

TEST(Identity, OfSyntheticWeights) {
  const std::string config = test::nano_path();
  const std::string one = model_identity(open_model("synthetic:1:" + config));
  EXPECT_EQ(model_identity(open_model("synthetic:1:" + config)), one);
  EXPECT_NE(model_identity(open_model("synthetic:2:" + config)), one);
  // Of the released size, without making its weights.
  EXPECT_NE(model_identity(open_model("synthetic:1")), one);
}

}  // namespace
}  // namespace h3
