#include "weights/model_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "support/goldens.h"
#include "weights/safetensors.h"

namespace h3::test {

namespace fs = std::filesystem;
using nlohmann::json;

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "h3render.test.XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = fs::canonical(name);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ec;
  fs::remove_all(path_, ec);
}

HeldTensors read_tensors(const fs::path& file) {
  const SafetensorsFile f(file);
  HeldTensors tensors;
  for (const auto& [name, t] : f.tensors()) tensors[name] = {t.dtype, t.shape, f.read(t)};
  return tensors;
}

// A writer of its own: plain, without syncs, and in order of names.
void write_tensors(const fs::path& file, const HeldTensors& tensors) {
  json header = json::object();
  std::size_t end = 0;
  for (const auto& [name, t] : tensors) {
    std::vector<std::int64_t> sizes;
    for (int i = 0; i < t.shape.rank(); ++i) sizes.push_back(t.shape[i]);
    header[name] = {
        {"dtype", safetensors_name(t.dtype)}, {"shape", sizes}, {"data_offsets", {end, end + t.bytes.size()}}};
    end += t.bytes.size();
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  fs::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(&length), 8);
  out << text;
  for (const auto& [name, t] : tensors)
    out.write(reinterpret_cast<const char*>(t.bytes.data()), static_cast<std::streamsize>(t.bytes.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

void edit_tensors(const fs::path& file, const std::function<void(HeldTensors&)>& change) {
  HeldTensors tensors = read_tensors(file);
  change(tensors);
  write_tensors(file, tensors);
}

json read_json(const fs::path& file) {
  return json::parse(read_file(file));
}

void write_text(const fs::path& file, const std::string& text) {
  // Plainly, without the syncs of the program's own writes.
  fs::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

void edit_json(const fs::path& file, const std::function<void(json&)>& change) {
  json j = read_json(file);
  change(j);
  write_text(file, j.dump());
}

fs::path copy_nano(const fs::path& to) {
  fs::copy(nano_path(), to, fs::copy_options::recursive);
  return to;
}

void join_transformer(const fs::path& model) {
  HeldTensors all;
  for (const char* shard : {"00001", "00002"}) {
    const fs::path file = model / "transformer" / fmt::format("diffusion_pytorch_model-{}-of-00002.safetensors", shard);
    all.merge(read_tensors(file));
    fs::remove(file);
  }
  fs::remove(model / "transformer" / "diffusion_pytorch_model.safetensors.index.json");
  write_tensors(model / "transformer" / "diffusion_pytorch_model.safetensors", all);
}

namespace {

std::size_t row_bytes(const Held& t) {
  return t.bytes.size() / static_cast<std::size_t>(t.shape[0]);
}

// Row r of part p of head h goes to row (h * 3 + p) * head_dim + r.
Held interleave(const Held& q, const Held& k, const Held& v, std::int64_t head_dim) {
  Held out = q;
  out.shape[0] = 3 * q.shape[0];
  out.bytes.resize(3 * q.bytes.size());
  const std::size_t n = row_bytes(q);
  for (std::int64_t row = 0; row < q.shape[0]; ++row)
    for (std::int64_t part = 0; part < 3; ++part) {
      const Held& from = part == 0 ? q : part == 1 ? k : v;
      const std::int64_t to = (row / head_dim * 3 + part) * head_dim + row % head_dim;
      std::memcpy(out.bytes.data() + static_cast<std::size_t>(to) * n,
                  from.bytes.data() + static_cast<std::size_t>(row) * n, n);
    }
  return out;
}

Held swap_halves(const Held& t) {
  Held out = t;
  const std::size_t half = t.bytes.size() / 2;
  std::memcpy(out.bytes.data(), t.bytes.data() + half, half);
  std::memcpy(out.bytes.data() + half, t.bytes.data(), half);
  return out;
}

std::string replace(std::string s, const std::string& from, const std::string& to) {
  const std::size_t at = s.find(from);
  return at == std::string::npos ? s : s.replace(at, from.size(), to);
}

std::string rename(std::string name, const std::vector<std::pair<std::string, std::string>>& table) {
  for (const auto& [from, to] : table) name = replace(name, from, to);
  return name;
}

HeldTensors original_transformer(const HeldTensors& in, std::int64_t head_dim) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"audio_proj_in.", "audio_patch_proj."},
      {"audio_proj_out.", "final_layer.audio_out."},
      {"context_embedder.", "condition_proj."},
      {"time_embedder.linear_1.", "time_embedder.proj_in."},
      {"time_embedder.linear_2.", "time_embedder.proj_out."},
      {"refiner_blocks.", "blocks."},
      {"transformer_blocks.", "blocks."},
      {"norm_out.norm.", "final_layer.norm."},
      {"norm_out.linear.", "final_layer.adaln_proj.linear."},
      {".attn.norm_q.", ".attn.q_norm."},
      {".attn.norm_k.", ".attn.k_norm."},
      {".attn.to_out.0.", ".attn.out_proj."},
      {".ff.net.0.proj.", ".mlp.fc1."},
      {".ff.net.2.", ".mlp.fc2."}};
  HeldTensors out;
  for (const auto& [name, t] : in) {
    if (name.find(".to_k.") != std::string::npos || name.find(".to_v.") != std::string::npos) continue;
    if (name.find(".to_q.") != std::string::npos) {
      out[rename(replace(name, ".to_q.", ".qkv_proj."), table)] =
          interleave(t, in.at(replace(name, ".to_q.", ".to_k.")), in.at(replace(name, ".to_q.", ".to_v.")), head_dim);
      continue;
    }
    std::string other = rename(name, table);
    if (name.starts_with("proj_in.")) other = "video_patch_proj." + name.substr(8);
    if (name.starts_with("proj_out.")) other = "final_layer.video_out." + name.substr(9);
    out[other] = name.find(".ff.net.0.proj.") != std::string::npos ? swap_halves(t) : t;
  }
  return out;
}

HeldTensors original_video(const HeldTensors& in, std::int64_t head_dim) {
  const std::vector<std::pair<std::string, std::string>> table = {{"encoder.down_blocks.", "encoder.down."},
                                                                  {".resnets.", ".block."},
                                                                  {".conv_shortcut.", ".nin_shortcut."},
                                                                  {".downsamplers.0.", ".downsample."},
                                                                  {"decoder.proj_in.", "decoder.x_embedder."},
                                                                  {".attn.to_out.0.", ".attn.to_out."},
                                                                  {".ff.net.0.proj.", ".ff.w1."},
                                                                  {".ff.net.2.", ".ff.w2."}};
  HeldTensors out;
  for (const auto& [name, t] : in) {
    if (name.find(".to_k.") != std::string::npos || name.find(".to_v.") != std::string::npos) continue;
    if (name.find(".to_q.") != std::string::npos)
      out[replace(name, ".to_q.", ".to_qkv.")] =
          interleave(t, in.at(replace(name, ".to_q.", ".to_k.")), in.at(replace(name, ".to_q.", ".to_v.")), head_dim);
    else
      out[rename(name, table)] = name.find(".ff.net.0.proj.") != std::string::npos ? swap_halves(t) : t;
  }
  const std::int64_t width = in.at("decoder.norm_out.weight").shape[0];
  out["decoder.mask_token"] = {DType::f32, {1, 1, width}, std::vector<std::byte>(static_cast<std::size_t>(width) * 4)};
  return out;
}

json renamed_keys(const json& from, const std::vector<std::pair<std::string, std::string>>& table) {
  json to = json::object();
  for (const auto& [a, b] : table) to[b] = from.at(a);
  return to;
}

void write_original_transformer(const fs::path& nano, const fs::path& folder) {
  const json config = read_json(nano / "transformer" / "config.json");
  json other = renamed_keys(config, {{"hidden_size", "hidden_size"},
                                     {"num_layers", "num_layers"},
                                     {"num_refiner_layers", "token_refiner_num_layers"},
                                     {"num_attention_heads", "num_attention_heads"},
                                     {"attention_head_dim", "attention_head_dim"},
                                     {"ffn_dim", "ffn_hidden_size"},
                                     {"in_channels", "latents_dim"},
                                     {"audio_in_channels", "audio_latents_dim"},
                                     {"patch_size", "patch_size"},
                                     {"text_dim", "text_dim"},
                                     {"freq_dim", "timestep_input_dim"},
                                     {"time_embed_hidden_dim", "time_embed_hidden_size"},
                                     {"time_embed_dim", "time_embed_dim"},
                                     {"rope_freq_dim", "rope_inv_freq_len"},
                                     {"norm_eps", "norm_eps"},
                                     {"qk_norm_eps", "qk_norm_eps"},
                                     {"final_norm_eps", "final_norm_eps"}});
  other["_class_name"] = "MiniMaxH3DiTModel";
  other["adaln_out_features"] = 18 * config["hidden_size"].get<int>();
  other["final_adaln_out_features"] = 2 * config["hidden_size"].get<int>();
  write_text(folder / "config.json", other.dump());
  HeldTensors tensors;
  for (const char* shard : {"00001", "00002"})
    tensors.merge(
        read_tensors(nano / "transformer" / fmt::format("diffusion_pytorch_model-{}-of-00002.safetensors", shard)));
  HeldTensors out = original_transformer(tensors, config["attention_head_dim"].get<std::int64_t>());
  const std::vector<float> inv = {1.0f, 0.1f, 0.01f, 0.001f};
  Held frequencies{DType::f32, {4}, std::vector<std::byte>(16)};
  std::memcpy(frequencies.bytes.data(), inv.data(), 16);
  out["rope.inv_freq"] = frequencies;
  // Two shards, cut by name.
  HeldTensors halves[2];
  json map = json::object();
  for (auto& [name, t] : out) {
    const int half = name < "blocks.3" ? 0 : 1;
    map[name] = fmt::format("model-0000{}-of-00002.safetensors", half + 1);
    halves[half][name] = std::move(t);
  }
  for (int i = 0; i < 2; ++i)
    write_tensors(folder / fmt::format("model-0000{}-of-00002.safetensors", i + 1), halves[i]);
  write_text(folder / "model.safetensors.index.json",
             json{{"metadata", {{"total_size", 1}}}, {"weight_map", map}}.dump());
}

void write_original_video(const fs::path& nano, const fs::path& folder) {
  const json c = read_json(nano / "vae" / "config.json");
  json wrapper = {{"_class_name", "MiniMaxH3VideoVAE"},
                  {"mode", "standalone"},
                  {"source_path", "source"},
                  {"vae_clip_length", 17},
                  {"vae_token_drop", 3},
                  {"vae_encoder_tiling", 1},
                  {"vae_decoder_tiling", 1},
                  {"vae_parallel_tiling", 1},
                  {"vae_tile_size", 256},
                  {"vae_tile_overlap_min", 64},
                  {"vae_chunk_dim", -1},
                  {"latent_channels", 24},
                  {"latents_mean", c["latents_mean"]},
                  {"latents_std", c["latents_std"]}};
  write_text(folder / "config.json", wrapper.dump());
  const json vit = {{"dim_head", c["decoder_attention_head_dim"]},
                    {"heads", c["decoder_num_attention_heads"]},
                    {"num_layers", c["decoder_num_layers"]},
                    {"rope_dim_ratio", 0.75},
                    {"rope_theta", 100.0},
                    {"ffn_activation_fn", "silu"},
                    {"ffn_use_gated", true},
                    {"norm_affine", true},
                    {"norm_type", "rms_norm"},
                    {"qk_norm_affine", false},
                    {"qk_norm_type", "rms_norm"}};
  const json source = {{"_class_name", "AutoencoderKLLegacy"},
                       {"causal_decoder", false},
                       {"causal_encoder", true},
                       {"ch", 16},
                       {"ch_mult", {1, 2, 2, 3, 3, 4}},
                       {"embed_dim", 24},
                       {"z_channels", 24},
                       {"in_channels", 3},
                       {"out_ch", 3},
                       {"num_res_blocks", 1},
                       {"num_res_blocks_decoder", nullptr},
                       {"norm_num_groups", c["norm_num_groups"]},
                       {"padding_mode", "reflect"},
                       {"padding_mode_t", nullptr},
                       {"pixel_norm_type", "imagenet"},
                       {"scaling_factor", 1.0},
                       {"shift_factor", 0.0},
                       {"space_down", c["spatial_downsample_factors"]},
                       {"time_down", c["temporal_downsample_factors"]},
                       {"time_up", nullptr},
                       {"use_3d_conv", true},
                       {"use_t_isolated_gn", true},
                       {"use_vit_decoder", true},
                       {"vae_ratio", 16},
                       {"vae_ratio_t", 4},
                       {"vit_decoder_kwargs", vit}};
  write_text(folder / "source" / "config.json", source.dump());
  HeldTensors out = original_video(read_tensors(nano / "vae" / "diffusion_pytorch_model.safetensors"),
                                   c["decoder_attention_head_dim"].get<std::int64_t>());
  write_tensors(folder / "source" / "model.safetensors", out);
}

void write_original_audio(const fs::path& nano, const fs::path& folder) {
  const json c = read_json(nano / "audio_vae" / "config.json");
  const json config = {{"_class_name", "MiniMaxH3AudioVAE"},
                       {"output_channel", 2},
                       {"sample_rate", 32000},
                       {"latent_channels", 32},
                       {"latents_mean", c["latents_mean"]},
                       {"latents_std", c["latents_std"]}};
  write_text(folder / "config.json", config.dump());
  const json kwargs = {{"attn_proj", true},
                       {"decoder_type", "bigvgan"},
                       {"decoder_dim", c["decoder_dim"]},
                       {"decoder_rates", c["decoder_rates"]},
                       {"encoder_dim", c["encoder_dim"]},
                       {"encoder_rates", c["encoder_rates"]},
                       {"latent_dim", c["latent_dim"]},
                       {"sample_rate", 32000},
                       {"vae_latent_channels", 32},
                       {"num_attention_heads", c["num_attention_heads"]},
                       {"resblock_kernel_sizes", c["resblock_kernel_sizes"]},
                       {"resblock_dilation_sizes", c["resblock_dilation_sizes"]}};
  write_text(folder / "metadata.json", json{{"metadata", {{"kwargs", kwargs}}}}.dump());
  write_text(folder / "config.yaml", fmt::format("model_config:\n  sr: 32000\n  decoder_dim: {}\n  audio_channel: 1\n  "
                                                 "vae_latent_channels: 32\n",
                                                 c["decoder_dim"].get<int>()));
  fs::copy(nano / "audio_vae" / "diffusion_pytorch_model.safetensors", folder / "model.safetensors");
}

}  // namespace

fs::path write_original_nano(const fs::path& to) {
  const fs::path nano = nano_path(), bundle = to / "FL2VA";
  write_original_transformer(nano, bundle / "transformer");
  write_original_video(nano, bundle / "video_vae");
  write_original_audio(nano, bundle / "audio_vae");
  for (const char* part : {"text_encoder", "tokenizer", "processor"})
    fs::copy(nano / part, to / part, fs::copy_options::recursive);
  const json index = {
      {"_class_name", "MiniMaxH3Pipeline"},
      {"_minimax_h3", {{"partition", "fl2va"}, {"sigma_shift_scales", {{"video", 6.0}, {"audio", 3.0}}}}},
      {"canvas_short_edge", 192},
      {"canvas_max_pixels", 49152},
      {"reference_image_short_edge", 192},
      {"text_encoder_layer", 4}};
  write_text(bundle / "model_index.json", index.dump());
  return to;
}

std::string user_error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const UserError& e) {
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "expected a UserError, got: " << e.what();
    return "";
  }
  ADD_FAILURE() << "expected a UserError, nothing was thrown";
  return "";
}

}  // namespace h3::test
