// Opening model folders: how they may be named, and what must be refused before anything is loaded.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <ctime>

#include "base/error.h"
#include "base/file.h"
#include "support/goldens.h"
#include "weights/config_writer.h"
#include "weights/load.h"
#include "weights/model_files.h"
#include "weights/model_folder.h"
#include "weights/safetensors.h"

namespace h3 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Held;
using test::HeldTensors;
using test::TemporaryFolder;
using test::user_error_of;

constexpr const char* kTextFile = "text_encoder/model.safetensors";
constexpr const char* kVideoFile = "vae/diffusion_pytorch_model.safetensors";
constexpr const char* kAudioFile = "audio_vae/diffusion_pytorch_model.safetensors";
constexpr const char* kShard2 = "transformer/diffusion_pytorch_model-00002-of-00002.safetensors";
constexpr const char* kIndex = "transformer/diffusion_pytorch_model.safetensors.index.json";

class FolderTest : public testing::Test {
 protected:
  FolderTest() : model_(test::copy_nano(folder_ / "model")) {}
  std::string error() const {
    return user_error_of([&] { open_model(model_.string()); });
  }
  void expect_error(const std::vector<std::string>& parts) const {
    const std::string text = error();
    for (const std::string& part : parts)
      EXPECT_NE(text.find(part), std::string::npos) << text << "\n  lacks: " << part;
  }
  void resize(const std::string& file, std::intmax_t change) const {
    fs::resize_file(model_ / file,
                    static_cast<std::uintmax_t>(static_cast<std::intmax_t>(fs::file_size(model_ / file)) + change));
  }
  TemporaryFolder folder_;
  fs::path model_;
};

TEST_F(FolderTest, PathsMayBeAnything) {
  const auto opens = [](const std::string& name) {
    EXPECT_EQ(open_model(name).config().transformer.hidden, 192) << name;
  };
  opens(model_.string());
  opens(model_.string() + "/");
  opens((model_ / "." / "vae" / "..").string());
  fs::create_directory_symlink(model_, folder_ / "link");
  opens((folder_ / "link").string());
  opens((folder_ / "link").string() + "/");
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  opens("model");
  opens("./link/");
  fs::current_path(model_);
  opens(".");
  fs::current_path(before);
  // Components may be links too, as in a hub's cache.
  fs::rename(model_ / "vae", folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "elsewhere", model_ / "vae");
  fs::rename(model_ / kAudioFile, folder_ / "blob");
  fs::create_symlink(folder_ / "blob", model_ / kAudioFile);
  opens(model_.string());
}

TEST_F(FolderTest, OtherThingsThanModels) {
  const auto expect = [&](const fs::path& path, const std::string& part) {
    const std::string text = user_error_of([&] { open_model(path.string()); });
    EXPECT_NE(text.find(part), std::string::npos) << text << "\n  lacks: " << part;
  };
  expect(folder_ / "none", "No such file");
  expect("", "cannot be opened");
  fs::create_directory(folder_ / "empty");
  expect(folder_ / "empty", "is not a model folder");
  expect(model_ / "transformer", "holds one component, expected the model folder, perhaps " + model_.string());
  expect(model_ / "transformer" / "config.json", "unsupported format");
  expect(folder_.path(), "perhaps " + model_.string() + " is meant");
  expect(model_ / kVideoFile, "is a single file, expected a model folder");
  expect(test::source_path("tests/goldens/adapters/peft.safetensors"), "is an adapter (LoRA), not a base model");
  expect(test::source_path("tests/goldens/adapters/comfy.safetensors"), "is an adapter (LoRA), not a base model");
  expect(test::source_path("tests/goldens/adapters/kohya_alpha2.safetensors"),
         "is an adapter (LoRA), not a base model");
  expect("synthetic:", "expected synthetic:SEED");
  expect("synthetic:-1", "expected synthetic:SEED");
  expect("synthetic:18446744073709551616", "expected synthetic:SEED");
  expect("synthetic:1x", "expected synthetic:SEED");
  expect("synthetic:1:/nowhere", "No such file");
}

TEST_F(FolderTest, WrongFilesAsBaseModel) {
  test::join_transformer(model_);
  const fs::path file = model_ / "transformer" / "diffusion_pytorch_model.safetensors";
  EXPECT_EQ(open_model(model_.string()).config().transformer.layers, 6);
  const HeldTensors whole = test::read_tensors(file);
  const auto expect = [&](const std::string& name, const std::string& part) {
    HeldTensors tensors = whole;
    tensors[name] = tensors.at("proj_in.bias");
    test::write_tensors(file, tensors);
    const std::string text = error();
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find("1 problem\n"), std::string::npos) << text;
  };
  expect("control_blocks.0.after_proj.weight", "is a ControlNet patch, not a base model");
  expect("control_proj_in.weight", "is a ControlNet patch");
  expect("transformer_blocks.0.attn.to_q.lora_A.weight", "is an adapter (LoRA)");
  expect("transformer_blocks.0.attn.to_q.lora_down", "is an adapter (LoRA)");
  expect("blocks.0.attn.qkv_proj.comfy_quant", "is a quantized checkpoint");
  expect("blocks.0.attn.qkv_proj.weight_scale", "is a quantized checkpoint");
  expect("adaln_t_table", "is a pruned checkpoint");
  fs::copy_file(test::source_path("tests/goldens/adapters/peft.safetensors"), file,
                fs::copy_options::overwrite_existing);
  expect_error({"transformer: is an adapter (LoRA), not a base model", "1 problem\n"});
}

TEST_F(FolderTest, DamagedFiles) {
  resize(kShard2, -1);
  expect_error({kShard2, "truncated", "1 problem\n"});
  resize(kShard2, 2);
  expect_error({kShard2, "1 trailing bytes"});
  fs::resize_file(model_ / kShard2, 0);
  expect_error({kShard2, "the file is empty"});
  fs::remove(model_ / kShard2);
  expect_error({kShard2, "No such file"});
}

TEST_F(FolderTest, TruncatedByAMegabyte) {
  resize(kVideoFile, -(1 << 20));
  expect_error({kVideoFile, "truncated"});
}

// Everything at once, in one message.
TEST_F(FolderTest, AllProblemsAreReportedTogether) {
  test::edit_tensors(model_ / kTextFile, [](HeldTensors& t) {
    for (int layer = 0; layer < 4; ++layer)
      t.erase(fmt::format("model.language_model.layers.{}.mlp.up_proj.weight", layer));
    t.at("model.visual.pos_embed.weight").shape = {32, 128};
    t["model.surprise.weight"] = t.at("model.language_model.norm.weight");
  });
  test::edit_tensors(model_ / kAudioFile, [](HeldTensors& t) {
    t.at("mean_proj.bias").dtype = DType::f16;
    t.at("mean_proj.bias").bytes.resize(64);
  });
  resize(kShard2, -7);
  expect_error({"5 problems", "missing 4 tensors: model.language_model.layers.{0-3}.mlp.up_proj.weight",
                "tensor model.visual.pos_embed.weight: shape [32, 128], expected [64, 64]",
                "tensor model.surprise.weight: unexpected", "tensor mean_proj.bias: dtype F16, expected F32",
                "diffusion_pytorch_model-00002-of-00002.safetensors"});
}

// A configuration of another width: one line a fault, not one a tensor.
TEST_F(FolderTest, ManyTensorsWithOneFault) {
  test::edit_json(model_ / "transformer" / "config.json", [](json& j) { j["ffn_dim"] = 256; });
  expect_error({"4 problems", "transformer_blocks.{2-5}.ff.net.2.weight: shape [192, 512], expected [192, 256]",
                "token_refiner.refiner_blocks.{0-1}.ff.net.0.proj.weight"});
}

TEST_F(FolderTest, DtypesOfTheTransformer) {
  const auto widen = [](Held& t) {
    std::vector<std::byte> wide(t.bytes.size() * 2);
    for (std::size_t i = 0; i < t.bytes.size() / 2; ++i)
      reinterpret_cast<float*>(wide.data())[i] = to_f32(reinterpret_cast<const bf16_t*>(t.bytes.data())[i]);
    t = {DType::f32, t.shape, wide};
  };
  test::join_transformer(model_);
  const fs::path file = model_ / "transformer" / "diffusion_pytorch_model.safetensors";
  test::edit_tensors(file, [&](HeldTensors& t) { widen(t.at("transformer_blocks.0.attn.to_q.weight")); });
  ModelFolder opened = open_model(model_.string());
  ASSERT_EQ(opened.notes().size(), 1u);
  EXPECT_NE(opened.notes()[0].find("stored as F32 and used as BF16"), std::string::npos);
  test::edit_tensors(file, [](HeldTensors& t) {
    Held& bias = t.at("proj_in.bias");
    for (std::size_t i = 0; i < bias.bytes.size() / 4; ++i)
      reinterpret_cast<bf16_t*>(bias.bytes.data())[i] = to_bf16(reinterpret_cast<const float*>(bias.bytes.data())[i]);
    bias.bytes.resize(bias.bytes.size() / 2);
    bias.dtype = DType::bf16;
  });
  opened = open_model(model_.string());
  EXPECT_EQ(opened.notes().size(), 2u);
  EXPECT_EQ(load_component(opened, Component::transformer).at("video_patch_proj.bias").dtype, DType::f32);
  test::edit_tensors(file, [](HeldTensors& t) { t.at("transformer_blocks.0.attn.to_k.weight").dtype = DType::f16; });
  expect_error({"tensor transformer_blocks.0.attn.to_k.weight: dtype F16, expected BF16"});
}

TEST_F(FolderTest, NonFiniteNorms) {
  const auto poison = [](Held& t, std::size_t at, float value) {
    if (t.dtype == DType::f32)
      reinterpret_cast<float*>(t.bytes.data())[at] = value;
    else
      reinterpret_cast<bf16_t*>(t.bytes.data())[at] = to_bf16(value);
  };
  test::edit_tensors(model_ / kTextFile, [&](HeldTensors& t) {
    poison(t.at("model.language_model.layers.2.self_attn.k_norm.weight"), 5, NAN);
    poison(t.at("model.language_model.layers.5.input_layernorm.weight"), 0, NAN);  // not needed
  });
  test::edit_tensors(model_ / kVideoFile,
                     [&](HeldTensors& t) { poison(t.at("decoder.transformer_blocks.1.scale2"), 1, -INFINITY); });
  test::edit_tensors(model_ / kAudioFile,
                     [&](HeldTensors& t) { poison(t.at("decoder.activation_post.upsample.filter"), 2, 0.5f); });
  expect_error({"3 problems",
                "model.language_model.layers.2.self_attn.k_norm.weight holds a NaN or infinite value at 5",
                "decoder.transformer_blocks.1.scale2 holds a NaN or infinite value at 1",
                "tensor decoder.activation_post.upsample.filter holds 0.5 at 2"});
}

TEST_F(FolderTest, IndexMustBeRight) {
  const std::string before = read_file(model_ / kIndex);
  const auto expect = [&](const std::function<void(json&)>& change, const std::string& part) {
    test::edit_json(model_ / kIndex, change);
    const std::string text = error();
    EXPECT_NE(text.find(part), std::string::npos) << text << "\n  lacks: " << part;
    test::write_text(model_ / kIndex, before);
  };
  expect([](json& j) { j["weight_map"].erase("proj_in.bias"); }, "tensor proj_in.bias: not in the index");
  expect([](json& j) { j["weight_map"]["proj_in.bias"] = "diffusion_pytorch_model-00002-of-00002.safetensors"; },
         "tensor proj_in.bias: the index says diffusion_pytorch_model-00002");
  expect([](json& j) { j["weight_map"]["x"] = "../../secret.safetensors"; }, "weight_map.x");
  expect([](json& j) { j["weight_map"]["x"] = 7; }, "weight_map.x");
  expect([](json& j) { j["weight_map"] = json::object(); }, "weight_map");
  expect([](json& j) { j.erase("weight_map"); }, "weight_map");
  expect([](json& j) { j["weight_map"]["x"] = "more.safetensors"; }, "more.safetensors");
  fs::remove(model_ / kIndex);
  expect_error({"the index of the shards is missing"});
}

TEST_F(FolderTest, TensorInTwoShards) {
  test::edit_tensors(model_ / kShard2, [&](HeldTensors& t) {
    t["proj_in.bias"] = test::read_tensors(model_ / "transformer/diffusion_pytorch_model-00001-of-00002.safetensors")
                            .at("proj_in.bias");
  });
  expect_error({"tensor proj_in.bias: also in diffusion_pytorch_model-00001-of-00002.safetensors"});
}

// Layers above the state, the final norm and the head need not be there, nor the shards that hold nothing else.
TEST_F(FolderTest, TextEncoderNeedsOnlyItsLayers) {
  HeldTensors all = test::read_tensors(model_ / kTextFile), needed, rest;
  for (auto& [name, t] : all) {
    const bool above = name.find("layers.4.") != std::string::npos || name.find("layers.5.") != std::string::npos;
    (above || name == "lm_head.weight" || name == "model.language_model.norm.weight" ? rest : needed)[name] = t;
  }
  fs::remove(model_ / kTextFile);
  test::write_tensors(model_ / "text_encoder" / "model-00001-of-00002.safetensors", needed);
  json map = json::object();
  for (const auto& [name, t] : needed) map[name] = "model-00001-of-00002.safetensors";
  for (const auto& [name, t] : rest) map[name] = "model-00002-of-00002.safetensors";
  test::write_text(model_ / "text_encoder" / "model.safetensors.index.json", json{{"weight_map", map}}.dump());
  EXPECT_GT(load_component(open_model(model_.string()), Component::text_encoder).bytes(), 0u);
  // One layer less is too few.
  HeldTensors fewer;
  for (auto& [name, t] : needed)
    if (name.find("layers.3.") == std::string::npos) fewer[name] = t;
  test::write_tensors(model_ / "text_encoder" / "model-00001-of-00002.safetensors", fewer);
  expect_error({"missing 11 tensors", "model.language_model.layers.3.self_attn.q_norm.weight"});
}

TEST_F(FolderTest, NewerWeightNormNames) {
  test::edit_tensors(model_ / kAudioFile, [](HeldTensors& tensors) {
    HeldTensors renamed;
    for (auto& [name, t] : tensors) {
      std::string other = name;
      if (name.ends_with(".weight_g")) other = name.substr(0, name.size() - 8) + "parametrizations.weight.original0";
      if (name.ends_with(".weight_v")) other = name.substr(0, name.size() - 8) + "parametrizations.weight.original1";
      renamed[other] = std::move(t);
    }
    tensors = std::move(renamed);
  });
  const WeightSet w = load_component(open_model(model_.string()), Component::audio_vae);
  const WeightSet expected = load_component(open_model(test::nano_path()), Component::audio_vae);
  EXPECT_EQ(std::memcmp(w.at("decoder.conv_pre.weight").data, expected.at("decoder.conv_pre.weight").data,
                        expected.at("decoder.conv_pre.weight").bytes()),
            0);
}

TEST_F(FolderTest, MissingParts) {
  fs::remove_all(model_ / "audio_vae");
  expect_error({"audio_vae/config.json"});
  fs::remove_all(model_ / "transformer");
  expect_error({"transformer/config.json"});
}

TEST_F(FolderTest, UnreadableFile) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads everything";
  fs::permissions(model_ / kAudioFile, fs::perms::none);
  expect_error({kAudioFile, "Permission denied"});
}

TEST_F(FolderTest, Partitions) {
  // The nano model has one transformer for both.
  OpenOptions both{.partitions = {Partition::fl2va, Partition::ref2va}};
  const ModelFolder nano = open_model(model_.string(), both);
  EXPECT_TRUE(nano.one_transformer());
  EXPECT_TRUE(nano.has(Partition::ref2va));
  EXPECT_EQ(&nano.source(Component::transformer, Partition::fl2va),
            &nano.source(Component::transformer, Partition::ref2va));
  EXPECT_FALSE(open_model(model_.string()).has(Partition::ref2va));
  // A folder of its own, as released.
  test::edit_json(model_ / "modular_model_index.json",
                  [](json& j) { j["transformer_ref"][2]["subfolder"] = "transformer_ref"; });
  const std::string text = user_error_of([&] { open_model(model_.string(), both); });
  EXPECT_NE(text.find("has no Ref2VA transformer"), std::string::npos) << text;
  fs::copy(model_ / "transformer", model_ / "transformer_ref");
  const ModelFolder two = open_model(model_.string(), both);
  EXPECT_FALSE(two.one_transformer());
  EXPECT_EQ(two.paths().transformer[1], model_ / "transformer_ref");
}

TEST_F(FolderTest, OriginalPartitions) {
  const fs::path root = test::write_original_nano(folder_ / "original");
  // The bundle itself may be named; the text encoder lies beside it.
  EXPECT_TRUE(open_model((root / "FL2VA").string()).has(Partition::fl2va));
  // Renamed, its index still says what it is.
  fs::rename(root / "FL2VA", root / "Ref2VA");
  EXPECT_TRUE(open_model(root.string()).has(Partition::fl2va));
  test::edit_json(root / "Ref2VA" / "model_index.json", [](json& j) { j["_minimax_h3"]["partition"] = "ref2va"; });
  EXPECT_TRUE(open_model(root.string(), {.partitions = {Partition::ref2va}}).has(Partition::ref2va));
  const std::string text = user_error_of([&] { open_model(root.string()); });
  EXPECT_NE(text.find("has no FL2VA transformer"), std::string::npos) << text;
  // Without an index the folder's name decides.
  test::edit_json(root / "Ref2VA" / "model_index.json", [](json& j) { j.erase("_minimax_h3"); });
  EXPECT_TRUE(open_model(root.string(), {.partitions = {Partition::ref2va}}).has(Partition::ref2va));
}

// A folder with every header of the released model, its data left as holes.
void write_released_headers(const fs::path& folder) {
  const ModelConfig config = released_model_config();
  for (const auto& [file, content] : config_files(config)) test::write_text(folder / file, content.dump());
  for (Component component :
       {Component::transformer, Component::text_encoder, Component::video_vae, Component::audio_vae}) {
    json header = json::object();
    std::vector<std::uint64_t> filters;
    std::uint64_t end = 0;
    for (const PlannedTensor& t : plan_component(config, component).tensors)
      for (const StoredPart& part : t.diffusers) {
        const std::uint64_t begin = end;
        end += static_cast<std::uint64_t>(part.shape.elements()) * size_of(t.dtype);
        std::vector<std::int64_t> sizes;
        for (int i = 0; i < part.shape.rank(); ++i) sizes.push_back(part.shape[i]);
        header[part.name] = {{"dtype", safetensors_name(t.dtype)}, {"shape", sizes}, {"data_offsets", {begin, end}}};
        if (t.role == Role::filter) filters.push_back(begin);
      }
    const std::string text = header.dump();
    const std::uint64_t length = text.size();
    const char* name = component == Component::transformer    ? "transformer/diffusion_pytorch_model.safetensors"
                       : component == Component::text_encoder ? "text_encoder/model.safetensors"
                       : component == Component::video_vae    ? "vae/diffusion_pytorch_model.safetensors"
                                                              : "audio_vae/diffusion_pytorch_model.safetensors";
    std::FILE* f = std::fopen((folder / name).c_str(), "wb");
    ASSERT_NE(f, nullptr);
    std::fwrite(&length, 8, 1, f);
    std::fwrite(text.data(), 1, length, f);
    const std::vector<float> taps = audio_filter();
    for (std::uint64_t at : filters) {
      std::fseek(f, static_cast<long>(8 + length + at), SEEK_SET);
      std::fwrite(taps.data(), 4, taps.size(), f);
    }
    std::fclose(f);
    fs::resize_file(folder / name, 8 + length + end);
  }
}

TEST(ReleasedFolder, HeadersAreCheckedInAMoment) {
  const TemporaryFolder folder;
  write_released_headers(folder / "model");
  // Processor time of all threads, so that a busy machine does not matter.
  const std::clock_t start = std::clock();
  const ModelFolder model = open_model((folder / "model").string());
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf("opened the released headers in %.3f s\n", seconds);
#ifdef NDEBUG
  EXPECT_LT(seconds, 1);
#endif
  EXPECT_EQ(model.files(Component::transformer)->files().at(0).tensors().size(), 638u);
  EXPECT_EQ(model.files(Component::video_vae)->files().at(0).tensors().size(), 703u);
  EXPECT_EQ(model.files(Component::audio_vae)->files().at(0).tensors().size(), 1087u);
}

}  // namespace
}  // namespace h3
