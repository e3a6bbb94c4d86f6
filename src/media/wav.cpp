#include "media/wav.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"

namespace h3 {

static_assert(std::endian::native == std::endian::little, "WAV files are little endian");

static constexpr std::uint16_t format_float = 3, format_extensible = 0xfffe;
static constexpr std::uint16_t bytes_per_sample = 4;

template <typename T>
static void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
static T get(std::string_view bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// "RIFF" size "WAVE", then the chunks "fmt ", "fact" and the head of "data".
static std::string header(const Sound& sound, std::uint32_t data_bytes) {
  const auto channels = static_cast<std::uint16_t>(sound.channels);
  const auto rate = static_cast<std::uint32_t>(sound.rate);
  const auto block = static_cast<std::uint16_t>(channels * bytes_per_sample);
  std::string out = "RIFF";
  put(out, std::uint32_t{4 + (8 + 18) + (8 + 4) + 8} + data_bytes);
  out += "WAVEfmt ";
  put(out, std::uint32_t{18});
  put(out, format_float);
  put(out, channels);
  put(out, rate);
  put(out, rate * block);
  put(out, block);
  put(out, std::uint16_t{8 * bytes_per_sample});
  put(out, std::uint16_t{0});  // no extension
  out += "fact";
  put(out, std::uint32_t{4});
  put(out, static_cast<std::uint32_t>(sound.length()));
  out += "data";
  put(out, data_bytes);
  return out;
}

void write_wav(const std::filesystem::path& path, const Sound& sound) {
  const std::size_t data_bytes = sound.samples.size() * sizeof(float);
  if (data_bytes > std::numeric_limits<std::uint32_t>::max() - 1024)
    throw SceneError(fmt::format("{}: cannot be written: a WAV file holds at most 4 GB", path.string()));
  std::string out = header(sound, static_cast<std::uint32_t>(data_bytes));
  out.reserve(out.size() + data_bytes);
  for (std::size_t i = 0; i < sound.length(); ++i)
    for (int c = 0; c < sound.channels; ++c) put(out, sound.channel(c)[i]);
  write_file_atomically(path, out);
}

namespace {

struct WavFormat {
  std::uint16_t code = 0, channels = 0, bits = 0;
  std::uint32_t rate = 0;
};

WavFormat read_format(std::string_view chunk) {
  if (chunk.size() < 16) return {};
  WavFormat f{get<std::uint16_t>(chunk, 0), get<std::uint16_t>(chunk, 2), get<std::uint16_t>(chunk, 14),
              get<std::uint32_t>(chunk, 4)};
  if (f.code == format_extensible && chunk.size() >= 26) f.code = get<std::uint16_t>(chunk, 24);
  return f;
}

Sound planar(std::string_view data, const WavFormat& f) {
  const std::size_t channels = f.channels, length = data.size() / (channels * bytes_per_sample);
  Sound sound{static_cast<int>(f.rate), f.channels, std::vector<float>(channels * length)};
  for (std::size_t i = 0; i < length; ++i)
    for (std::size_t c = 0; c < channels; ++c)
      sound.samples[c * length + i] = get<float>(data, (i * channels + c) * bytes_per_sample);
  return sound;
}

}  // namespace

Sound read_wav(const std::filesystem::path& path) {
  const std::string content = read_file(path);
  const auto refuse = [&](const std::string& why) { throw UserError(path.string(), "", "", why); };
  std::string_view rest = content;
  if (!rest.starts_with("RIFF") || rest.size() < 12 || rest.substr(8, 4) != "WAVE") refuse("is not a WAV file");
  rest.remove_prefix(12);
  WavFormat format;
  while (rest.size() >= 8) {
    const std::string_view name = rest.substr(0, 4);
    const std::size_t size = get<std::uint32_t>(rest, 4);
    if (size > rest.size() - 8) refuse("is truncated");
    const std::string_view chunk = rest.substr(8, size);
    if (name == "fmt ") format = read_format(chunk);
    if (name == "data") {
      if (format.code != format_float || format.bits != 8 * bytes_per_sample || format.channels == 0 ||
          format.rate == 0)
        refuse(fmt::format("holds samples of format {} with {} bits, expected float32", format.code, format.bits));
      return planar(chunk, format);
    }
    rest.remove_prefix(std::min(rest.size(), 8 + size + size % 2));
  }
  refuse("holds no samples");
  return {};
}

}  // namespace h3
