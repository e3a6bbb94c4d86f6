// Configuration files: the numbers of both layouts, and each kind of wrong field.
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/goldens.h"
#include "weights/config_object.h"
#include "weights/config_writer.h"
#include "weights/model_files.h"
#include "weights/model_folder.h"

namespace h3 {
namespace {

using nlohmann::json;
using test::TemporaryFolder;
using test::user_error_of;

const OpenOptions kConfigOnly = {.partitions = {}, .weights = false};

void write_config(const std::filesystem::path& folder, const ModelConfig& config) {
  for (const auto& [file, content] : config_files(config)) test::write_text(folder / file, content.dump());
}

TEST(Config, Nano) {
  const ModelConfig c = open_model(test::nano_path(), kConfigOnly).config();
  EXPECT_EQ(c.transformer.hidden, 192);
  EXPECT_EQ(c.transformer.layers, 6);
  EXPECT_EQ(c.transformer.heads, 8);
  EXPECT_EQ(c.transformer.head_dim, 32);
  EXPECT_EQ(c.transformer.ffn, 512);
  EXPECT_EQ(c.transformer.rope_freqs, 4);
  EXPECT_EQ(c.transformer.time_embed, 64);
  EXPECT_EQ(c.transformer.video_row(), 96);
  EXPECT_EQ(c.text.layers, 6);
  EXPECT_EQ(c.text.state, 4);
  EXPECT_EQ(c.text.mrope_section, (std::array<std::int64_t, 3>{6, 5, 5}));
  EXPECT_EQ(c.text.image_token, 527);
  EXPECT_EQ(c.text.vision.deepstack, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(c.video_vae.widths, (std::vector<std::int64_t>{16, 32, 32, 48, 48, 64}));
  EXPECT_EQ(c.video_vae.ratio_s(), 16);
  EXPECT_EQ(c.video_vae.ratio_t(), 4);
  EXPECT_EQ(c.video_vae.norm_groups, 8);
  EXPECT_EQ(c.audio_vae.hop(), 800);
  EXPECT_EQ(c.audio_vae.decoder_kernels, (std::vector<std::int64_t>{9, 9, 8, 16}));
  EXPECT_EQ(c.video_shift, 6);
  EXPECT_EQ(c.audio_shift, 3);
  EXPECT_EQ(c.canvas_short_edge, 192);
  EXPECT_EQ(c.canvas_max_pixels, 49152);
  EXPECT_EQ(c.reference_short_edge, 192);
}

TEST(Config, ReleasedNumbersSurviveTheirFiles) {
  const TemporaryFolder folder;
  write_config(folder.path(), released_model_config());
  EXPECT_TRUE(open_model(folder.path().string(), kConfigOnly).config() == released_model_config());
  check_config(released_model_config(), "released");
}

TEST(Config, NanoNumbersSurviveTheirFiles) {
  const TemporaryFolder folder;
  const ModelConfig nano = open_model(test::nano_path(), kConfigOnly).config();
  write_config(folder.path(), nano);
  EXPECT_TRUE(open_model(folder.path().string(), kConfigOnly).config() == nano);
}

TEST(Config, NewerRopeParameters) {
  const TemporaryFolder folder;
  const auto path = test::copy_nano(folder / "model");
  test::edit_json(path / "text_encoder" / "config.json", [](json& j) {
    json& text = j["text_config"];
    text["rope_parameters"] = text["rope_scaling"];
    text["rope_parameters"]["rope_theta"] = text["rope_theta"];
    text.erase("rope_scaling");
    text.erase("rope_theta");
  });
  EXPECT_TRUE(open_model(path.string(), kConfigOnly).config() == open_model(test::nano_path(), kConfigOnly).config());
}

struct BadField {
  const char* file;
  std::function<void(json&)> change;
  std::vector<const char*> parts;  // of the message
};

void expect_refused(const std::function<std::filesystem::path(const std::filesystem::path&)>& make,
                    const std::vector<BadField>& cases) {
  const TemporaryFolder folder;
  const auto path = make(folder / "model");
  for (const BadField& bad : cases) {
    const std::string before = test::read_json(path / bad.file).dump();
    test::edit_json(path / bad.file, bad.change);
    const std::string error = user_error_of([&] { open_model(path.string(), kConfigOnly); });
    for (const char* part : bad.parts) EXPECT_NE(error.find(part), std::string::npos) << error << "\n  lacks: " << part;
    test::write_text(path / bad.file, before);
  }
  open_model(path.string(), kConfigOnly);
}

TEST(Config, WrongFieldsAreNamed) {
  const char* transformer = "transformer/config.json";
  const char* vae = "vae/config.json";
  const char* audio = "audio_vae/config.json";
  const char* text = "text_encoder/config.json";
  expect_refused(
      test::copy_nano,
      {
          {transformer,
           [](json& j) { j["num_layer"] = 6; },
           {transformer, "num_layer = 6", "did you mean num_layers?"}},
          {transformer, [](json& j) { j.erase("hidden_size"); }, {transformer, "hidden_size", "the field is missing"}},
          {transformer,
           [](json& j) { j["hidden_size"] = "192"; },
           {transformer, "hidden_size = \"192\"", "expected an integer"}},
          {transformer, [](json& j) { j["hidden_size"] = 192.5; }, {"hidden_size = 192.5", "expected an integer"}},
          {transformer, [](json& j) { j["hidden_size"] = 0; }, {"hidden_size = 0"}},
          {transformer,
           [](json& j) { j["hidden_size"] = 18446744073709551615u; },
           {"hidden_size = 18446744073709551615"}},
          {transformer, [](json& j) { j["norm_eps"] = -1; }, {"norm_eps = -1", "expected a positive number"}},
          {transformer,
           [](json& j) {
             j["patch_size"] = {1, 2};
           },
           {"patch_size", "has 2 entries, expected 3"}},
          {transformer,
           [](json& j) {
             j["patch_size"] = {1, 4, 4};
           },
           {"patch size = [1, 4, 4]"}},
          {transformer, [](json& j) { j["rope_freq_dim"] = 6; }, {"rotary frequencies per axis = 6"}},
          {transformer,
           [](json& j) { j["_class_name"] = "FluxTransformer2DModel"; },
           {"_class_name = \"FluxTransformer2DModel\""}},
          {transformer, [](json& j) { j["text_dim"] = 64; }, {"text width of the transformer"}},
          {vae, [](json& j) { j["clip_length"] = 16; }, {vae, "unsupported geometry: clip length = 16", "expected 17"}},
          {vae, [](json& j) { j["token_drop"] = 2; }, {"token drop = 2", "expected 3"}},
          {vae, [](json& j) { j["latents_mean"].erase(0); }, {"latents_mean = 23 entries", "expected 24"}},
          {vae, [](json& j) { j["latents_std"][3] = 0; }, {"latents_std = 0"}},
          {vae, [](json& j) { j["latents_std"][3] = "1"; }, {"latents_std"}},
          {vae, [](json& j) { j["decoder_attention_head_dim"] = 36; }, {"rotary width = 27"}},
          {vae,
           [](json& j) { j["spatial_padding_mode"] = "zeros"; },
           {"spatial_padding_mode = \"zeros\"", "\"reflect\""}},
          {vae,
           [](json& j) { j["spatial_downsample_factors"] = {2, 2, 2, 1, 1, 1}; },
           {"pixels per latent along a side = 8"}},
          {vae,
           [](json& j) {
             j["temporal_downsample_factors"] = {1, 2, 2, 1, 1};
           },
           {"number of levels = 5"}},
          {vae, [](json& j) { j["norm_num_groups"] = 7; }, {"encoder width = 16"}},
          {audio,
           [](json& j) { j["decoder_rates"] = {5, 5, 2, 2, 2, 2}; },
           {audio, "product of the decoder rates = 400", "expected 800"}},
          {audio, [](json& j) { j["sampling_rate"] = 16000; }, {"sample rate = 16000"}},
          {audio, [](json& j) { j["decoder_kernel_sizes"][0] = 8; }, {"decoder kernel = 8", "expected 9"}},
          {audio, [](json& j) { j["resblock_dilation_sizes"] = 3; }, {"resblock_dilation_sizes = 3"}},
          {audio, [](json& j) { j["latent_dim"] = 65; }, {"trunk width = 65"}},
          {text,
           [](json& j) { j["text_config"]["num_hidden_layers"] = 3; },
           {text, "decoder layers = 3", "expected at least 4"}},
          {text, [](json& j) { j["text_config"]["hidden_act"] = "gelu"; }, {"text_config.hidden_act = \"gelu\""}},
          {text,
           [](json& j) { j["text_config"]["sliding_window"] = 4096; },
           {"text_config.sliding_window = 4096", "unknown field"}},
          {text,
           [](json& j) { j["text_config"]["rope_scaling"]["rope_type"] = "yarn"; },
           {"text_config.rope_scaling.rope_type"}},
          {text, [](json& j) { j["vision_config"].erase("depth"); }, {"vision_config.depth"}},
          {text,
           [](json& j) {
             j["vision_config"]["deepstack_visual_indexes"] = {0, 1, 9};
           },
           {"deepstack block = 9"}},
          {text, [](json& j) { j.erase("text_config"); }, {"text_config", "missing"}},
          {"scheduler/scheduler_config.json", [](json& j) { j["shift"] = 0; }, {"shift = 0"}},
          {"modular_model_index.json",
           [](json& j) { j["text_encoder_layer"] = 7; },
           {"decoder layers = 6", "expected at least 7"}},
          {"modular_model_index.json", [](json& j) { j["canvas_short_edge"] = 1; }, {"canvas_short_edge"}},
          {"modular_model_index.json",
           [](json& j) { j["transformer"][2]["subfolder"] = "../x"; },
           {"transformer.subfolder"}},
      });
}

TEST(Config, WrongFieldsOfTheOriginalLayout) {
  const char* video = "FL2VA/video_vae/config.json";
  const char* source = "FL2VA/video_vae/source/config.json";
  const char* metadata = "FL2VA/audio_vae/metadata.json";
  expect_refused(
      test::write_original_nano,
      {
          {"FL2VA/transformer/config.json", [](json& j) { j["adaln_out_features"] = 5; }, {"adaln_out_features = 5"}},
          {"FL2VA/transformer/config.json",
           [](json& j) { j["num_refiner_layers"] = 2; },
           {"num_refiner_layers", "unknown field"}},
          {video, [](json& j) { j["vae_tile_size"] = 512; }, {"unsupported geometry: tile size = 512"}},
          {video, [](json& j) { j["vae_decoder_tiling"] = 0; }, {"vae_decoder_tiling = 0"}},
          {video, [](json& j) { j.erase("latents_std"); }, {"latents_std", "missing"}},
          {source, [](json& j) { j["z_channels"] = 16; }, {"z_channels = 16"}},
          {source, [](json& j) { j["padding_mode_t"] = "reflect"; }, {"padding_mode_t"}},
          {source,
           [](json& j) { j["vit_decoder_kwargs"]["qk_norm_affine"] = true; },
           {"vit_decoder_kwargs.qk_norm_affine"}},
          {metadata,
           [](json& j) { j["metadata"]["kwargs"]["decoder_type"] = "dac"; },
           {"metadata.kwargs.decoder_type = \"dac\""}},
          {metadata, [](json& j) { j["metadata"]["kwargs"]["attn_proj"] = false; }, {"attn_proj = false"}},
          {metadata,
           [](json& j) { j["metadata"]["kwargs"]["decoder_dim"] = 64; },
           {"config.yaml", "model_config.decoder_dim = 128"}},
          {"FL2VA/audio_vae/config.json", [](json& j) { j["sample_rate"] = 16000; }, {"sample_rate = 16000", "32000"}},
          {"FL2VA/model_index.json",
           [](json& j) { j["_minimax_h3"]["partition"] = "x"; },
           {"_minimax_h3.partition = \"x\""}},
      });
}

TEST(Config, DamagedFiles) {
  const TemporaryFolder folder;
  const auto path = test::copy_nano(folder / "model");
  const auto error = [&] { return user_error_of([&] { open_model(path.string(), kConfigOnly); }); };
  test::write_text(path / "vae/config.json", "{\"a\": 1, \"a\": 2}");
  EXPECT_NE(error().find("the key stands twice"), std::string::npos) << error();
  test::write_text(path / "vae/config.json", "{\"in_channels\": NaN}");
  EXPECT_NE(error().find("not valid JSON"), std::string::npos);
  test::write_text(path / "vae/config.json", "[]");
  EXPECT_NE(error().find("expected a JSON object"), std::string::npos);
  test::write_text(path / "vae/config.json", "");
  EXPECT_NE(error().find("not valid JSON"), std::string::npos);
  std::filesystem::remove(path / "vae/config.json");
  EXPECT_NE(error().find("vae/config.json"), std::string::npos);
}

}  // namespace
}  // namespace h3
