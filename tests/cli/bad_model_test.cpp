// Damaged and mistaken model folders: refused by name, before anything is loaded or written, by `render` and `check`
// alike.
#include <gtest/gtest.h>

#include <cstring>

#include "cli/nano_copy.h"

namespace h3::test {

namespace {

const std::string transformer_shard = "transformer/diffusion_pytorch_model-00002-of-00002.safetensors";
const std::string text_file = "text_encoder/model.safetensors";
const std::string video_file = "vae/diffusion_pytorch_model.safetensors";
const std::string audio_file = "audio_vae/diffusion_pytorch_model.safetensors";

class BadModel : public testing::Test {
 protected:
  void expect_refused_model(const std::vector<std::string>& parts) { expect_refused_path(model.path(), parts); }
  void expect_refused_path(const std::string& path, const std::vector<std::string>& parts) {
    const TemporaryFolder folder;
    const std::string scene = write_scene(folder.path(), tiny_scene());
    const fs::path output = folder.path() / "out";
    expect_refused(h3render(render_words(scene, output, {}, path)), parts, output);
    expect_refused(h3render({"check", scene, "--model", path}), parts);
  }
  NanoCopy model;
};

// Overwrites element `at` of a float32 or bfloat16 tensor.
void set_element(HeldTensor& t, std::size_t at, float value) {
  if (t.dtype == DType::f32) {
    std::memcpy(t.bytes.data() + at * 4, &value, 4);
  } else {
    ASSERT_EQ(t.dtype, DType::bf16);
    std::memcpy(t.bytes.data() + at * 2, reinterpret_cast<const char*>(&value) + 2, 2);
  }
}

}  // namespace

// The copy itself is a good model, and damage does not reach the original.
TEST_F(BadModel, UndamagedCopyRenders) {
  const Render original(tiny_scene()), copy(tiny_scene(), {}, 1, model.path());
  EXPECT_EQ(hashes_of(copy.manifest()), hashes_of(original.manifest()));
  EXPECT_EQ(copy.manifest()["model"]["identity"], original.manifest()["model"]["identity"]);
}

TEST_F(BadModel, MissingFolder) {
  expect_refused_path("/there/is/no/model", {"/there/is/no/model"});
}

TEST_F(BadModel, MissingComponent) {
  model.remove("audio_vae");
  expect_refused_model({"audio_vae", "No such file"});
}

TEST_F(BadModel, MissingShard) {
  model.remove(transformer_shard);
  expect_refused_model({"diffusion_pytorch_model-00002-of-00002.safetensors"});
}

TEST_F(BadModel, MissingIndex) {
  model.remove("transformer/diffusion_pytorch_model.safetensors.index.json");
  expect_refused_model({"transformer", "index"});
}

TEST_F(BadModel, MissingConfiguration) {
  model.remove("vae/config.json");
  expect_refused_model({"vae/config.json"});
}

TEST_F(BadModel, MissingTokenizer) {
  model.remove("tokenizer");
  model.remove("processor");
  expect_refused_model({"tokenizer"});
}

TEST_F(BadModel, TruncatedByOneByte) {
  for (const std::string& file : {transformer_shard, text_file, video_file, audio_file}) {
    SCOPED_TRACE(file);
    NanoCopy damaged;
    damaged.resize(file, -1);
    expect_refused_path(damaged.path(), {fs::path(file).filename(), "bytes"});
  }
}

TEST_F(BadModel, TruncatedByOneMegabyte) {
  model.resize(video_file, -(1 << 20));
  expect_refused_model({video_file, "bytes"});
}

TEST_F(BadModel, Padded) {
  model.resize(text_file, 1);
  expect_refused_model({text_file, "bytes"});
}

TEST_F(BadModel, ZeroLength) {
  model.replace(audio_file, "");
  expect_refused_model({audio_file});
}

TEST_F(BadModel, SeveralFaultsInOneMessage) {
  model.resize(audio_file, -1);
  model.replace(video_file, "");
  model.remove(transformer_shard);
  expect_refused_model({audio_file, video_file, transformer_shard});
}

TEST_F(BadModel, WrongShape) {
  model.edit_tensor(transformer_shard, "transformer_blocks.5.ff.net.2.weight", [](HeldTensor& t) {
    t.shape = {t.shape[1], t.shape[0]};
  });
  expect_refused_model({"transformer_blocks.5.ff.net.2.weight", "[512, 192]", "[192, 512]"});
}

TEST_F(BadModel, WrongDtype) {
  model.edit_tensor(video_file, "decoder.norm_out.weight", [](HeldTensor& t) {
    t.dtype = DType::i64;
    t.bytes.resize(t.bytes.size() * 2);
  });
  expect_refused_model({"decoder.norm_out.weight", "I64", "F32"});
}

TEST_F(BadModel, NanInNorm) {
  model.edit_tensor(transformer_shard, "transformer_blocks.5.norm2.weight",
                    [](HeldTensor& t) { set_element(t, 17, std::numeric_limits<float>::quiet_NaN()); });
  expect_refused_model({"transformer", "blocks.5.norm2.weight", "NaN", "17"});
}

TEST_F(BadModel, InfinityInNorm) {
  model.edit_tensor(text_file, "model.language_model.layers.1.input_layernorm.weight",
                    [](HeldTensor& t) { set_element(t, 3, std::numeric_limits<float>::infinity()); });
  expect_refused_model({"layers.1.input_layernorm.weight", "infinite", "3"});
}

TEST_F(BadModel, AdapterAsModel) {
  const TemporaryFolder folder;
  const fs::path lora = folder.path() / "lora.safetensors";
  write_zeros(lora, {{"transformer.transformer_blocks.0.attn.to_q.lora_A.weight", {4, 192}},
                     {"transformer.transformer_blocks.0.attn.to_q.lora_B.weight", {192, 4}}});
  expect_refused_path(lora, {"lora.safetensors", "adapter (LoRA)"});
  model.replace("transformer/diffusion_pytorch_model.safetensors.index.json", "{}");
  model.remove("transformer/diffusion_pytorch_model.safetensors.index.json");
  model.remove("transformer/diffusion_pytorch_model-00001-of-00002.safetensors");
  model.remove(transformer_shard);
  fs::copy_file(lora, model.file("transformer/diffusion_pytorch_model.safetensors"));
  expect_refused_model({"transformer", "adapter (LoRA)"});
}

TEST_F(BadModel, ControlNetAsModel) {
  const TemporaryFolder folder;
  const fs::path patch = folder.path() / "control.safetensors";
  write_zeros(patch, {{"control_blocks.0.after_proj.weight", {192, 192}}, {"control_proj_in.weight", {192, 96}}});
  expect_refused_path(patch, {"control.safetensors", "ControlNet"});
}

TEST_F(BadModel, TooFewTextLayers) {
  model.edit_json("text_encoder/config.json", [](Json& config) {
    Json& text = config.contains("text_config") ? config["text_config"] : config;
    text["num_hidden_layers"] = 3;
  });
  expect_refused_model({"layers", "3", "4"});
}

TEST_F(BadModel, UnknownConfigurationKey) {
  model.edit_json("transformer/config.json", [](Json& config) { config["num_layrs"] = 6; });
  expect_refused_model({"transformer/config.json", "num_layrs"});
}

TEST_F(BadModel, ConfigurationThatIsNoJson) {
  model.replace("audio_vae/config.json", "{\"decoder_dim\": ");
  expect_refused_model({"audio_vae/config.json", "JSON"});
}

// The same on several ranks: told once, nobody waits.
TEST_F(BadModel, OnThreeRanks) {
  model.edit_tensor(video_file, "decoder.norm_out.weight",
                    [](HeldTensor& t) { set_element(t, 0, std::numeric_limits<float>::quiet_NaN()); });
  const TemporaryFolder folder;
  const fs::path output = folder.path() / "out";
  expect_refused(h3render(render_words(write_scene(folder.path(), tiny_scene()), output, {}, model.path()), 3),
                 {"decoder.norm_out.weight", "NaN"}, output);
}

TEST_F(BadModel, Synthetic) {
  expect_refused_path("synthetic:x", {"synthetic:x", "synthetic:SEED"});
  expect_refused_path("synthetic:1:/there/is/nothing", {"/there/is/nothing"});
  // The released configuration comes without a tokenizer.
  expect_refused_path("synthetic:1", {"synthetic:1", "tokenizer"});
}

}  // namespace h3::test
