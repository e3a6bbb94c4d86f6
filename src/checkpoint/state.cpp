#include "checkpoint/state.h"

#include "base/error.h"
#include "checkpoint/hdf5_composer.h"
#include "checkpoint/hdf5_reader.h"

namespace h3 {

namespace {

constexpr char kKind[] = "h3render checkpoint";
constexpr std::int64_t kMostSteps = 100000;

constexpr DatasetNote kVideo{"video_latents", "row, feature", "1",
                             "video latents after `step` evaluations: latent frame, patch row, patch column slowest "
                             "to fastest; features channel-major within a 2 x 2 patch"};
constexpr DatasetNote kAudio{"audio_latents", "row, channel", "1",
                             "audio latents after `step` evaluations: all of the left channel, then all of the right"};
constexpr DatasetNote kVideoSigmas{"video_sigmas", "grid point", "noise level, 1 is pure noise",
                                   "schedule of the video; evaluation k goes from value k to value k + 1"};
constexpr DatasetNote kAudioSigmas{"audio_sigmas", "grid point", "noise level, 1 is pure noise",
                                   "schedule of the audio; evaluation k goes from value k to value k + 1"};
constexpr DatasetNote kPreviousVideo{"previous_video", "row, feature", "1",
                                     "res_multistep: clean estimate of the video at the last evaluation"};
constexpr DatasetNote kPreviousAudio{"previous_audio", "row, channel", "1",
                                     "res_multistep: clean estimate of the audio at the last evaluation"};
constexpr DatasetNote kGenerator{"generator", "none", "none", "state of the noise generator"};

void put_rows(Hdf5Composer& file, const DatasetNote& note, const std::vector<float>& values, std::int64_t width) {
  const std::int64_t shape[] = {static_cast<std::int64_t>(values.size()) / width, width};
  file.dataset(note, DType::f32, shape, values.data());
}

void put_list(Hdf5Composer& file, const DatasetNote& note, const std::vector<float>& values) {
  const std::int64_t shape[] = {static_cast<std::int64_t>(values.size())};
  file.dataset(note, DType::f32, shape, values.data());
}

std::vector<float> rows_of(const Hdf5Reader& file, const DatasetNote& note, std::int64_t& width) {
  Hdf5Reader::Floats found = file.floats(std::string(note.name), 2);
  width = found.shape[1];
  return std::move(found.values);
}

std::vector<float> list_of(const Hdf5Reader& file, const DatasetNote& note) {
  return file.floats(std::string(note.name), 1).values;
}

// Values that fit together; what does not was put together by somebody else.
void require_sense(const std::filesystem::path& path, const Checkpoint& c) {
  const auto require = [&](bool good, const char* field, std::int64_t value, const std::string& expected) {
    if (!good) throw UserError(path.string(), field, std::to_string(value), expected);
  };
  const auto points = static_cast<std::size_t>(c.steps) + 1;
  require(!c.video.empty(), "video_latents", 0, "holds no rows");
  require(!c.audio.empty(), "audio_latents", 0, "holds no rows");
  require(c.video_sigmas.size() == points, "video_sigmas", std::ssize(c.video_sigmas), "must be steps + 1 values");
  require(c.audio_sigmas.size() == points, "audio_sigmas", std::ssize(c.audio_sigmas), "must be steps + 1 values");
  const bool history = !c.previous_video.empty() || !c.previous_audio.empty();
  require(!history || c.previous_video.size() == c.video.size(), "previous_video", std::ssize(c.previous_video),
          "must have the size of video_latents");
  require(!history || c.previous_audio.size() == c.audio.size(), "previous_audio", std::ssize(c.previous_audio),
          "must have the size of audio_latents");
}

CheckpointMark mark_of(const Hdf5Reader& file) {
  file.require(kKind, kCheckpointSchema);
  CheckpointMark mark{file.integer("step"), file.integer("steps"), file.text_attribute("inputs_hash")};
  const std::string path = file.path().string();
  if (mark.steps < 1 || mark.steps > kMostSteps)
    throw UserError(path, "steps", std::to_string(mark.steps), fmt::format("must be 1 to {}", kMostSteps));
  if (mark.step < 0 || mark.step > mark.steps)
    throw UserError(path, "step", std::to_string(mark.step), fmt::format("must be 0 to {}", mark.steps));
  return mark;
}

}  // namespace

std::string compose_checkpoint(const Checkpoint& c) {
  Hdf5Composer file(kKind, kCheckpointSchema);
  file.attribute("inputs_hash", c.inputs_hash);
  file.attribute("step", c.step);
  file.attribute("steps", c.steps);
  put_rows(file, kVideo, c.video, c.video_width);
  put_rows(file, kAudio, c.audio, c.audio_width);
  put_list(file, kVideoSigmas, c.video_sigmas);
  put_list(file, kAudioSigmas, c.audio_sigmas);
  if (!c.previous_video.empty()) put_rows(file, kPreviousVideo, c.previous_video, c.video_width);
  if (!c.previous_audio.empty()) put_rows(file, kPreviousAudio, c.previous_audio, c.audio_width);
  if (!c.generator.empty()) file.text(kGenerator, c.generator);
  return file.finish();
}

CheckpointMark parse_checkpoint_mark(const std::filesystem::path& path, FileLocking locking) {
  return mark_of(Hdf5Reader(path, locking));
}

Checkpoint parse_checkpoint(const std::filesystem::path& path, FileLocking locking) {
  const Hdf5Reader file(path, locking);
  const CheckpointMark mark = mark_of(file);
  Checkpoint c;
  c.step = mark.step;
  c.steps = mark.steps;
  c.inputs_hash = mark.inputs_hash;
  c.video = rows_of(file, kVideo, c.video_width);
  c.audio = rows_of(file, kAudio, c.audio_width);
  c.video_sigmas = list_of(file, kVideoSigmas);
  c.audio_sigmas = list_of(file, kAudioSigmas);
  std::int64_t width = 0;
  if (file.has("previous_video")) c.previous_video = rows_of(file, kPreviousVideo, width);
  if (file.has("previous_audio")) c.previous_audio = rows_of(file, kPreviousAudio, width);
  if (file.has("generator")) c.generator = file.text("generator");
  require_sense(path, c);
  return c;
}

}  // namespace h3
