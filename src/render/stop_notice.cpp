#include "render/stop_notice.h"

#include <cmath>

#include "base/error.h"
#include "render/progress.h"

namespace h3 {

namespace {

constexpr double kWriteRate = 50e6;  // bytes a second of a shared file system under load
constexpr double kLeave = 15;        // seconds to pass the signal on, agree, and leave
constexpr double kMargin = 1.25;     // steps are not all equal

}  // namespace

StopNotice advise_stop(double step_seconds, double checkpoint_bytes) {
  const double seconds = kMargin * step_seconds + checkpoint_bytes / kWriteRate + kLeave;
  return {step_seconds, checkpoint_bytes, static_cast<std::int64_t>(std::ceil(seconds))};
}

double checkpoint_bytes(const PlanRequest& request, SamplerKind sampler) {
  const TransformerConfig& t = request.model.transformer;
  const std::int64_t values =
      request.geometry.video_rows() * t.video_row() + request.geometry.audio_rows() * t.audio_channels;
  return static_cast<double>(values) * sizeof(float) * (sampler == SamplerKind::res_multistep ? 2 : 1);
}

std::string text_of(const StopNotice& notice) {
  return fmt::format("with steps of {:.1f} s: sbatch --signal=B:USR1@{}\n", notice.step_seconds, notice.seconds);
}

nlohmann::ordered_json to_json(const StopNotice& notice) {
  return {{"step_seconds", notice.step_seconds},
          {"checkpoint_bytes", notice.checkpoint_bytes},
          {"signal_seconds", notice.seconds}};
}

}  // namespace h3
