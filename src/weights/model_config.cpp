#include "weights/model_config.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/error.h"

namespace h3 {

static std::int64_t product(const std::vector<std::int64_t>& v) {
  return std::accumulate(v.begin(), v.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t VideoVaeConfig::ratio_s() const {
  return product(spatial_down);
}
std::int64_t VideoVaeConfig::ratio_t() const {
  return product(temporal_down);
}
std::int64_t AudioVaeConfig::hop() const {
  return product(encoder_rates);
}

static void expect(bool holds, const std::string& where, const std::string& what, const std::string& value,
                   const std::string& expected) {
  if (!holds) throw UserError(where, what, value, expected);
}

template <typename T>
static void expect_equal(const T& value, const T& wanted, const std::string& where, const std::string& what) {
  expect(value == wanted, where, what, fmt::format("{}", value), fmt::format("expected {}", wanted));
}

static void expect_multiple(std::int64_t value, std::int64_t of, const std::string& where, const std::string& what,
                            const std::string& of_what) {
  expect(of > 0 && value % of == 0, where, what, std::to_string(value),
         fmt::format("expected a multiple of {}, {}", of_what, of));
}

void check_config(const TransformerConfig& c, const std::string& where) {
  expect(c.patch == std::array<std::int64_t, 3>{1, 2, 2}, where, "patch size",
         fmt::format("[{}, {}, {}]", c.patch[0], c.patch[1], c.patch[2]), "expected [1, 2, 2]");
  expect(6 * c.rope_freqs <= c.head_dim, where, "rotary frequencies per axis", std::to_string(c.rope_freqs),
         fmt::format("three axes of pairs must fit the head width {}", c.head_dim));
  expect_multiple(c.freq_dim, 2, where, "sinusoid width", "two");
}

void check_config(const TextConfig& c, const std::string& where) {
  expect(c.layers >= c.state, where, "decoder layers", std::to_string(c.layers),
         fmt::format("expected at least {}, the layers whose output is the conditioning", c.state));
  expect_multiple(c.heads, c.kv_heads, where, "attention heads", "the key and value heads");
  expect_multiple(c.head_dim, 2, where, "head width", "two");
  expect_equal(c.mrope_section[0] + c.mrope_section[1] + c.mrope_section[2], c.head_dim / 2, where,
               "sum of the rotary sections");
  const VisionConfig& v = c.vision;
  expect_multiple(v.hidden, v.heads, where, "width of the vision tower", "its heads");
  const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(v.positions))));
  expect(side * side == v.positions, where, "vision positions", std::to_string(v.positions), "expected a square");
  expect_equal(v.out_hidden, c.hidden, where, "output width of the vision tower");
  expect(std::is_sorted(v.deepstack.begin(), v.deepstack.end(), std::less_equal<>()), where, "deepstack blocks", "",
         "expected rising block numbers");
  for (std::int64_t block : v.deepstack)
    expect(block < v.depth, where, "deepstack block", std::to_string(block),
           fmt::format("the vision tower has {} blocks", v.depth));
  expect(static_cast<std::int64_t>(v.deepstack.size()) <= c.state, where, "deepstack blocks",
         std::to_string(v.deepstack.size()), fmt::format("expected at most {}, the layers that take them", c.state));
  for (std::int64_t token : {c.image_token, c.video_token, c.vision_start, c.vision_end})
    expect(token < c.vocab, where, "vision token id", std::to_string(token), fmt::format("expected below {}", c.vocab));
}

static void check_statistics(const std::vector<float>& mean, const std::vector<float>& std, std::int64_t channels,
                             const std::string& where) {
  expect_equal(static_cast<std::int64_t>(mean.size()), channels, where, "latents_mean, number of entries");
  expect_equal(static_cast<std::int64_t>(std.size()), channels, where, "latents_std, number of entries");
  for (float s : std) expect(s > 0, where, "latents_std", fmt::format("{}", s), "expected positive numbers");
}

void check_config(const VideoVaeConfig& c, const std::string& where) {
  expect_equal(c.spatial_down.size(), c.widths.size(), where, "spatial factors, number of levels");
  expect_equal(c.temporal_down.size(), c.widths.size(), where, "temporal factors, number of levels");
  for (std::size_t level = 0; level < c.widths.size(); ++level) {
    const std::int64_t s = c.spatial_down[level], t = c.temporal_down[level];
    expect(s == 2 || (s == 1 && t == 1), where, "spatial factor", std::to_string(s),
           "expected 1 or 2, 2 where time is halved");
    expect(t == 1 || t == 2, where, "temporal factor", std::to_string(t), "expected 1 or 2");
    expect_multiple(c.widths[level], c.norm_groups, where, "encoder width", "the norm's groups");
  }
  const std::string geometry = "unsupported geometry: ";
  expect_equal<std::int64_t>(c.ratio_s(), 16, where, geometry + "pixels per latent along a side");
  expect_equal<std::int64_t>(c.ratio_t(), 4, where, geometry + "frames per latent frame");
  expect_equal<std::int64_t>(c.clip_length, 17, where, geometry + "clip length");
  expect_equal<std::int64_t>(c.token_drop, 3, where, geometry + "token drop");
  expect_equal<std::int64_t>(c.tile, 256, where, geometry + "tile size");
  expect_equal<std::int64_t>(c.tile_overlap, 64, where, geometry + "tile overlap");
  expect_equal<std::int64_t>(c.in_channels, 3, where, "pixel channels in");
  expect_equal<std::int64_t>(c.out_channels, 3, where, "pixel channels out");
  const double rotary = static_cast<double>(c.decoder_head_dim) * c.rope_ratio;
  expect(rotary == std::floor(rotary) && std::fmod(rotary, 6) == 0 && c.rope_ratio <= 1, where, "rotary width",
         fmt::format("{}", rotary), "expected a multiple of 6 within the head (48 of 64 in the release)");
  check_statistics(c.latents_mean, c.latents_std, c.latent_channels, where);
}

void check_config(const AudioVaeConfig& c, const std::string& where) {
  expect_equal<std::int64_t>(c.sample_rate, 32000, where, "sample rate");
  expect_equal<std::int64_t>(c.hop(), 800, where, "product of the encoder rates");
  expect_equal<std::int64_t>(product(c.decoder_rates), c.hop(), where, "product of the decoder rates");
  expect_equal(c.decoder_kernels.size(), c.decoder_rates.size(), where, "decoder kernels, number of entries");
  for (std::size_t i = 0; i < c.decoder_rates.size(); ++i)
    expect_equal(c.decoder_kernels[i], 2 * c.decoder_rates[i] - c.decoder_rates[i] % 2, where, "decoder kernel");
  expect_multiple(c.decoder_dim, std::int64_t{1} << c.decoder_rates.size(), where, "first width of the decoder",
                  "two to the number of its stages");
  expect_multiple(c.latent_dim, c.latent_channels, where, "trunk width", "the latent channels");
  expect_multiple(c.latent_dim, c.attention_heads, where, "trunk width", "the attention heads");
  expect_multiple(c.latent_dim / c.attention_heads, c.latent_channels, where, "attention head width",
                  "the latent channels");
  expect_equal(c.resblock_dilations.size(), c.resblock_kernels.size(), where, "residual dilations, number of entries");
  for (std::int64_t k : c.resblock_kernels)
    expect(k % 2 == 1, where, "residual kernel", std::to_string(k), "expected odd kernels");
  for (const auto& dilations : c.resblock_dilations)
    expect_equal(dilations.size(), c.resblock_dilations[0].size(), where, "dilations of a residual block");
  check_statistics(c.latents_mean, c.latents_std, c.latent_channels, where);
}

void check_config(const ModelConfig& c, const std::string& where) {
  expect_equal(c.transformer.text_dim, c.text.hidden, where,
               "text width of the transformer, width of the text encoder");
  expect_equal(c.transformer.video_channels, c.video_vae.latent_channels, where,
               "video channels of transformer and VAE");
  expect_equal(c.transformer.audio_channels, c.audio_vae.latent_channels, where,
               "audio channels of transformer and VAE");
  expect(c.canvas_short_edge >= 32 && c.canvas_max_pixels >= 32 * 32, where, "canvas_short_edge, canvas_max_pixels",
         fmt::format("{}, {}", c.canvas_short_edge, c.canvas_max_pixels), "expected at least 32 and 1024");
  expect(c.reference_short_edge >= 32, where, "reference_image_short_edge", std::to_string(c.reference_short_edge),
         "expected at least 32");
}

static TransformerConfig released_transformer() {
  TransformerConfig c;
  c.hidden = 5376, c.layers = 50, c.refiner_layers = 2, c.heads = 56, c.head_dim = 128, c.ffn = 14336;
  c.video_channels = 24, c.audio_channels = 32, c.text_dim = 5120, c.freq_dim = 256;
  c.time_hidden = 5376, c.time_embed = 2688, c.rope_freqs = 16;
  return c;
}

static TextConfig released_text() {
  TextConfig c;
  c.hidden = 5120, c.layers = 64, c.heads = 64, c.kv_heads = 8, c.head_dim = 128, c.ffn = 25600, c.vocab = 151936;
  c.mrope_section = {24, 20, 20};
  c.image_token = 151655, c.video_token = 151656, c.vision_start = 151652, c.vision_end = 151653;
  c.vision.depth = 27, c.vision.hidden = 1152, c.vision.heads = 16, c.vision.ffn = 4304;
  c.vision.out_hidden = 5120, c.vision.positions = 2304, c.vision.deepstack = {8, 16, 24};
  return c;
}

static VideoVaeConfig released_video_vae() {
  VideoVaeConfig c;
  c.widths = {128, 256, 256, 512, 512, 1024};
  c.spatial_down = {2, 2, 2, 2, 1, 1};
  c.temporal_down = {1, 2, 2, 1, 1, 1};
  c.decoder_layers = 36, c.decoder_heads = 32, c.decoder_head_dim = 64;
  c.latents_mean = {0.858090341f,  -0.960659146f, 1.06616402f,    -0.509032547f,  -0.272758186f, -1.36754143f,
                    -0.255325496f, -0.269075543f, -0.537684083f,  -0.0464097299f, 0.665737033f,  0.196901277f,
                    -0.546060801f, -0.403534204f, -0.236830249f,  0.259284526f,   -0.301339447f, 0.211341992f,
                    -1.12068486f,  0.358193338f,  -0.0422514379f, 0.260482997f,   0.228640929f,  0.705603182f};
  c.latents_std = {1.22237742f,  1.27672637f,  1.68317747f,  1.75494552f,  1.56362164f, 2.19414353f,
                   0.965313792f, 1.0569886f,   0.841948926f, 0.772995293f, 1.89559376f, 0.946841836f,
                   0.799680948f, 0.449889004f, 0.719739974f, 0.693629324f, 2.96109509f, 2.76941991f,
                   3.04961848f,  2.10880542f,  3.27622628f,  3.1627357f,   2.2816813f,  2.61278439f};
  return c;
}

static AudioVaeConfig released_audio_vae() {
  AudioVaeConfig c;
  c.encoder_dim = 64, c.latent_dim = 2048, c.decoder_dim = 1024;
  c.encoder_rates = {2, 4, 4, 5, 5};
  c.decoder_rates = {5, 5, 2, 2, 2, 2, 2};
  c.decoder_kernels = {9, 9, 4, 4, 4, 4, 4};
  c.resblock_kernels = {3, 7, 11};
  c.resblock_dilations = {{1, 3, 5}, {1, 3, 5}, {1, 3, 5}};
  c.latents_mean = {-0.0202116873f, 0.387646645f,   -0.0439827964f, -0.285915136f, 0.0817968622f,  -0.357826412f,
                    0.0406238101f,  -0.0155253448f, -0.223362476f,  0.182100683f,  0.29417789f,    -0.0790116787f,
                    -0.0568150729f, -0.369902819f,  -0.316163152f,  0.590595126f,  -0.0521395691f, 0.0136731602f,
                    -0.0369164795f, 0.0973266065f,  -0.339466244f,  -0.306856781f, -0.24504599f,   -0.0346985236f,
                    0.0286803227f,  -0.212177798f,  -0.16782631f,   0.322128803f,  -0.122305587f,  0.435660481f,
                    -0.0502599217f, 0.397925824f};
  c.latents_std = {1.68955243f, 2.76263738f, 1.79453444f, 1.68016815f, 1.63902271f, 2.77882981f, 1.76590896f,
                   1.61997581f, 2.63365245f, 1.85393572f, 2.50564981f, 1.81101918f, 1.95796573f, 1.66854978f,
                   1.49224699f, 3.29867029f, 1.94918048f, 1.87200034f, 1.833408f,   1.64880705f, 1.61769581f,
                   1.91314495f, 1.56952453f, 1.69436598f, 1.83184206f, 1.5540638f,  1.93449306f, 1.59919822f,
                   1.71804595f, 1.63072193f, 1.8661226f,  1.56137681f};
  return c;
}

ModelConfig released_model_config() {
  ModelConfig c;
  c.transformer = released_transformer();
  c.text = released_text();
  c.video_vae = released_video_vae();
  c.audio_vae = released_audio_vae();
  return c;
}

}  // namespace h3
