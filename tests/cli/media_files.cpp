#include "cli/media_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"
#include "media/png.h"
#include "media/wav.h"
#include "support/goldens.h"
#include "weights/safetensors.h"

namespace h3::test {

namespace {

void write_raw(const fs::path& file, const void* data, std::size_t bytes) {
  std::ofstream out(file, std::ios::binary | std::ios::app);
  out.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
}

}  // namespace

std::string write_clip(const fs::path& file, const std::vector<Image>& frames, const Sound& sound) {
  const TemporaryFolder folder;
  const fs::path video = folder.path() / "video", audio = folder.path() / "audio";
  for (const Image& frame : frames) write_raw(video, frame.rgb.data(), frame.rgb.size());
  Words words{"ffmpeg",   "-v",
              "error",    "-y",
              "-f",       "rawvideo",
              "-pix_fmt", "rgb24",
              "-s",       std::to_string(frames.front().width) + "x" + std::to_string(frames.front().height),
              "-r",       "24",
              "-i",       video.string()};
  if (sound.length() > 0) {
    std::vector<float> interleaved;
    for (std::size_t i = 0; i < sound.length(); ++i)
      for (int c = 0; c < sound.channels; ++c) interleaved.push_back(sound.channel(c)[i]);
    write_raw(audio, interleaved.data(), interleaved.size() * sizeof(float));
    const Words more{
        "-f",           "f32le", "-ar",      std::to_string(sound.rate), "-ac", std::to_string(sound.channels), "-i",
        audio.string(), "-c:a",  "pcm_f32le"};
    words.insert(words.end(), more.begin(), more.end());
  }
  const Words last{"-c:v", "ffv1", "-pix_fmt", "gbrp", file.string()};
  words.insert(words.end(), last.begin(), last.end());
  const Result result = run(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return file.string();
}

static const Goldens& goldens() {
  static const Goldens renders("renders");
  return renders;
}

std::vector<Image> golden_media(const std::string& name) {
  const auto& entry = goldens().json().at("frames").at(name);
  const auto shape = entry.at("shape").get<std::vector<int>>();
  const Image stacked = read_png(source_path("tests/goldens/" + entry.at("file").get<std::string>()));
  std::vector<Image> frames;
  for (int i = 0; i < shape[0]; ++i)
    frames.emplace_back(shape[2], shape[1],
                        std::span(stacked.pixel(0, i * shape[1]), static_cast<std::size_t>(shape[1] * shape[2] * 3)));
  return frames;
}

Sound golden_sound(const std::string& name) {
  const SafetensorsFile file(source_path("tests/goldens/sounds.safetensors"));
  const TensorEntry& entry = file.tensors().at(name);
  const std::vector<std::byte> bytes = file.read(entry);
  Sound sound{32000, static_cast<int>(entry.shape[0]), std::vector<float>(bytes.size() / sizeof(float))};
  std::memcpy(sound.samples.data(), bytes.data(), bytes.size());
  return sound;
}

void write_golden_media(const fs::path& folder) {
  write_png(folder / "first.png", golden_media("png:first")[0]);
  write_png(folder / "last.png", golden_media("png:last")[0]);
  write_png(folder / "image.png", golden_media("png:portrait")[0]);
  write_png(folder / "shape.png", golden_media("png:shape")[0]);
  write_clip(folder / "clip.mkv", golden_media("png:clip"), golden_sound("clip.sound"));
  write_clip(folder / "silent.mkv", golden_media("png:silent"));
  write_wav(folder / "sound.wav", golden_sound("sound"));
}

Image smooth_picture(int width, int height, int shade) {
  Image image(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      image.pixel(x, y)[0] = static_cast<std::uint8_t>((shade + 255 * x / width) % 256);
      image.pixel(x, y)[1] = static_cast<std::uint8_t>(255 * y / height);
      image.pixel(x, y)[2] = static_cast<std::uint8_t>((2 * shade + 128) % 256);
    }
  return image;
}

}  // namespace h3::test
