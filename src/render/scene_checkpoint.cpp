#include "render/scene_checkpoint.h"

#include <cstring>

#include "base/clock.h"
#include "base/log.h"
#include "checkpoint/paths.h"
#include "checkpoint/require_same.h"
#include "render/scene_jobs.h"

namespace h3 {

namespace {

FileLocking locking_of(const Session& session) {
  return parse_file_locking(session.options().file_locking, "--file-locking");
}

void broadcast_values(Session& s, std::vector<float>& values, std::int64_t count) {
  values.resize(static_cast<std::size_t>(count));
  if (count == 0) return;
  s.communicator().broadcast(s.queue(), Tensor(values.data(), {count}, DType::f32), 0);
}

std::vector<float> values_of(const HostArray& array) {
  std::vector<float> values(static_cast<std::size_t>(array.count()));
  if (!values.empty()) std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

HostArray array_of(const std::vector<float>& values, std::int64_t width) {
  return HostArray::copy_of(values.data(), DType::f32, {static_cast<std::int64_t>(values.size()) / width, width});
}

}  // namespace

nlohmann::ordered_json checkpoint_identity(Session& session, const SceneJob& job, StageTimes& times) {
  CheckpointInputs inputs;
  inputs.scene = scene_identity(job);
  inputs.scene.erase("output");
  inputs.model_identity = session.model_identity(times);
  inputs.numerics = session.numerics();
  return inputs.identity();
}

bool has_checkpoint(const Session& session, const std::string& scene) {
  const CheckpointPaths paths = checkpoint_paths(session.options().output, scene);
  return !session.options().checkpoint_scratch.empty() || is_there(paths.newest) || is_there(paths.previous);
}

std::optional<ResumePoint> read_resumable(const Session& session, const SceneJob& job,
                                          const nlohmann::ordered_json& identity) {
  const RunOptions& run = session.options();
  const CheckpointPaths paths = checkpoint_paths(run.output, job.scene.name);
  if (run.resume == "refuse" && (is_there(paths.newest) || is_there(paths.previous)))
    throw UserError(paths.newest.string(), "", "",
                    "stands there (--resume refuse); remove it, or use --resume resume or restart");
  ResumeOptions options;
  options.locking = locking_of(session);
  options.scratch = run.checkpoint_scratch;
  auto found = read_checkpoint(run.output, job.scene.name, options);
  const std::vector<std::string> ignored{"scene.output", "scene.name"};
  if (found && found->inputs) require_same(identity, found->inputs->identity(), paths.inputs.string(), ignored);
  return found;
}

std::optional<ResumePoint> find_checkpoint(const Session& session, const SceneJob& job,
                                           const nlohmann::ordered_json& identity) {
  const RunOptions& run = session.options();
  if (!has_checkpoint(session, job.scene.name)) return std::nullopt;
  if (run.resume == "restart") {
    spdlog::info("{}: its checkpoint is discarded (--resume restart)", job.scene.name);
    remove_checkpoints(run.output, job.scene.name, run.checkpoint_scratch);
    return std::nullopt;
  }
  auto found = read_resumable(session, job, identity);
  if (!found) return found;
  for (const std::string& note : found->notes) spdlog::warn("{}: {}", job.scene.name, note);
  if (!found->inputs) {
    spdlog::warn("{}: {} is lost, so the scene starts again", job.scene.name,
                 checkpoint_paths(run.output, job.scene.name).inputs.string());
    return std::nullopt;
  }
  spdlog::info("{}: goes on after step {} of {} from {}", job.scene.name, found->state.step, found->state.steps,
               found->file.string());
  return found;
}

std::optional<ResumedScene> share_checkpoint(Session& s, const std::optional<ResumePoint>& found) {
  nlohmann::json sizes = nlohmann::json::object();
  if (found) {
    const Checkpoint& c = found->state;
    sizes = {{"step", c.step},
             {"video", c.video.size()},
             {"audio", c.audio.size()},
             {"history", !c.previous_video.empty()},
             {"condition_video", found->inputs->visual_rows.count()},
             {"condition_audio", found->inputs->audio_rows.count()},
             {"text_shape", found->inputs->text.shape},
             {"text_dtype", static_cast<int>(found->inputs->text.dtype)}};
  }
  sizes = nlohmann::json::parse(s.communicator().broadcast_text(sizes.dump()));
  if (sizes.empty()) return std::nullopt;
  ResumedScene scene;
  if (found)
    scene.state = {found->state.video, found->state.audio, 0, found->state.previous_video, found->state.previous_audio};
  scene.state.step = sizes["step"];
  const std::int64_t video = sizes["video"], audio = sizes["audio"];
  broadcast_values(s, scene.state.video, video);
  broadcast_values(s, scene.state.audio, audio);
  if (sizes["history"].get<bool>()) {
    broadcast_values(s, scene.state.previous_video, video);
    broadcast_values(s, scene.state.previous_audio, audio);
  }
  const TransformerConfig& t = s.config().transformer;
  scene.conditions = {t.video_row(), t.audio_channels, {}, {}};
  if (found) {
    scene.conditions.visual = values_of(found->inputs->visual_rows);
    scene.conditions.audio = values_of(found->inputs->audio_rows);
  }
  broadcast_values(s, scene.conditions.visual, sizes["condition_video"]);
  broadcast_values(s, scene.conditions.audio, sizes["condition_audio"]);
  const auto shape = sizes["text_shape"].get<std::vector<std::int64_t>>();
  const auto dtype = static_cast<DType>(sizes["text_dtype"].get<int>());
  const Shape text_shape{std::span<const std::int64_t>(shape)};
  scene.text_memory =
      Buffer(s.machine(), static_cast<std::size_t>(text_shape.elements()) * size_of(dtype), Place::host);
  scene.text = scene.text_memory.tensor(text_shape, dtype);
  if (found) std::memcpy(scene.text.data, found->inputs->text.bytes.data(), scene.text.bytes());
  s.communicator().broadcast(s.queue(), scene.text, 0);
  return scene;
}

SceneCheckpoints::SceneCheckpoints(Session& session, const SceneJob& job, const nlohmann::ordered_json& identity,
                                   const Tensor& text, const std::vector<std::uint8_t>& tags,
                                   const ConditionValues& conditions, const SchedulePair& schedules, const Claim* claim)
    : session_(session), name_(job.scene.name), schedules_(schedules), last_(steady_seconds()) {
  const RunOptions& run = session.options();
  if (!session.first() || (run.checkpoint_steps == 0 && run.checkpoint_seconds == 0)) return;
  CheckpointInputs inputs;
  inputs.scene = identity.at("scene");
  inputs.model_identity = identity.at("model");
  inputs.numerics = identity.at("numerics");
  inputs.text = HostArray::copy_of(text.data, text.dtype, {text.size(0), text.size(1)});
  inputs.tags = HostArray::copy_of(tags.data(), DType::u8, {static_cast<std::int64_t>(tags.size())});
  const TransformerConfig& t = session.config().transformer;
  inputs.visual_rows = array_of(conditions.visual, t.video_row());
  inputs.audio_rows = array_of(conditions.audio, t.audio_channels);
  CheckpointOptions options;
  options.locking = locking_of(session);
  options.scratch = run.checkpoint_scratch;
  options.flush_seconds = static_cast<double>(run.checkpoint_flush);
  options.hooks = parse_write_hooks(run.write_fault, "--write-fault");
  if (claim) options.may_commit = [claim] { return claim->still_mine(); };
  try {
    inputs_hash_ = write_inputs(session.options().output, name_, inputs, options);
    writer_ = std::make_unique<CheckpointWriter>(session.options().output, name_, options);
  } catch (const SceneError& e) {
    report(e.what());
  }
}

bool SceneCheckpoints::due(std::int64_t step, std::int64_t steps) {
  const RunOptions& o = session_.options();
  if (o.checkpoint_steps == 0 && o.checkpoint_seconds == 0) return false;
  if (step == steps || (o.checkpoint_steps > 0 && step % o.checkpoint_steps == 0)) return true;
  if (o.checkpoint_seconds == 0) return false;
  // Clocks differ between ranks; rank 0's decides.
  const bool late = session_.first() && steady_seconds() - last_ >= static_cast<double>(o.checkpoint_seconds);
  return session_.communicator().agree_max(late ? 1 : 0) != 0;
}

void SceneCheckpoints::keep(const LatentState& state) {
  last_ = steady_seconds();
  if (!writer_) return;
  const TransformerConfig& t = session_.config().transformer;
  Checkpoint c;
  c.step = state.step;
  c.steps = schedules_.video.evaluations();
  c.video_width = t.video_row();
  c.audio_width = t.audio_channels;
  c.video = state.video;
  c.audio = state.audio;
  c.previous_video = state.previous_video;
  c.previous_audio = state.previous_audio;
  c.video_sigmas = schedules_.video.sigmas;
  c.audio_sigmas = schedules_.audio.sigmas;
  c.inputs_hash = inputs_hash_;
  report(writer_->submit(std::move(c)));
}

void SceneCheckpoints::finish() {
  if (writer_) report(writer_->finish());
}

void SceneCheckpoints::remove() {
  if (!session_.first()) return;
  writer_.reset();
  try {
    remove_checkpoints(session_.options().output, name_, session_.options().checkpoint_scratch);
  } catch (const SceneError& e) {
    report(e.what());
  }
}

void SceneCheckpoints::report(const std::string& error) {
  if (!error.empty()) spdlog::warn("{}: checkpoint: {}", name_, error);
}

}  // namespace h3
