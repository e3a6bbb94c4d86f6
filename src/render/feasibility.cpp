#include "render/feasibility.h"

#include <algorithm>

#include "render/job_plan.h"
#include "render/manifest.h"
#include "weights/host_memory.h"

namespace h3 {

namespace fs = std::filesystem;

namespace {

std::uint64_t whole(double bytes) {
  return static_cast<std::uint64_t>(bytes);
}

std::string against(const std::string& what, std::uint64_t needed, const std::string& where, std::uint64_t there) {
  return fmt::format("{} need {}, {} has {}", what, bytes_in_words(needed), where, bytes_in_words(there));
}

// Latents of a state, in float32, with what res_multistep remembers.
std::uint64_t state_bytes(const Session& s, const SceneJob& job) {
  const TransformerConfig& t = s.config().transformer;
  const std::int64_t values = job.geometry.video_rows() * t.video_row() + job.geometry.audio_rows() * t.audio_channels;
  return static_cast<std::uint64_t>(values) * 4 * (job.scene.sampler == SamplerKind::res_multistep ? 2 : 1);
}

BatchNeeds needs_of(Session& s, const SceneJobs& jobs) {
  BatchNeeds needs;
  const SceneJob* largest = nullptr;
  std::int64_t most = 0;
  std::uint64_t state = 0;
  for (const SceneJob& job : jobs.good) {
    std::error_code ignored;
    if (fs::exists(manifest_path(s.options().output, job.scene.name), ignored)) continue;
    std::int64_t rows =
        present_scene(job, s.config(), s.tokenizer()).rows() + job.geometry.video_rows() + job.geometry.audio_rows();
    for (const MediaItem& item : job.media) rows += item.visual_rows() + item.audio_rows();
    if (rows > most) largest = &job;
    most = std::max(most, rows);
    state = std::max(state, state_bytes(s, job));
    if (job.scene.output.wav) needs.sounds += static_cast<std::uint64_t>(job.geometry.decoded_samples()) * 2 * 4;
  }
  if (!largest) return needs;
  needs.largest = largest->scene.name;
  const RunPlan plan = plan_job(s, *largest, present_scene(*largest, s.config(), s.tokenizer()).rows());
  std::uint64_t rank = 0;
  for (const RankPlan& p : plan.ranks) rank = std::max(rank, whole(p.activation_bytes + p.decode_bytes));
  const auto node_ranks = static_cast<std::uint64_t>(s.cluster().node_size());
  const bool grouped = static_cast<std::size_t>(s.cluster().size()) > s.row_shares().size();
  needs.weights = whole(grouped ? plan.node_weight_bytes : plan.node_passing_bytes);
  needs.shared = node_ranks > 1;
  const bool on_gpu = s.machine().place() == Place::device;
  needs.host = on_gpu ? 0 : rank * node_ranks;
  needs.device = on_gpu ? rank : 0;
  // The newest, the one before, and one that is being written.
  const auto groups = static_cast<std::uint64_t>(s.cluster().size()) / s.row_shares().size();
  if (s.options().checkpoint_steps > 0) needs.checkpoints = 3 * state * groups;
  return needs;
}

}  // namespace

Verdict judge(const BatchNeeds& needs, const NodeRoom& room) {
  Verdict verdict;
  if (needs.largest.empty()) return verdict;
  const auto refuse = [&](const std::string& text) { verdict.refusal += (verdict.refusal.empty() ? "" : "; ") + text; };
  // With a scratch folder weights may lie in a file.
  const std::uint64_t host = needs.host + (room.scratch > 0 ? 0 : needs.weights);
  if (host > room.host) refuse(against("its weights and activations", host, room.host_limit, room.host));
  if (needs.shared && needs.weights > room.shared + room.scratch)
    refuse(against("the weights that the node's ranks share", needs.weights, "/dev/shm with --scratch",
                   room.shared + room.scratch));
  if (needs.device > room.device) refuse(against("its activations", needs.device, "the GPU", room.device));
  if (needs.sounds > room.disk) refuse(against("the WAV files", needs.sounds, "the output folder", room.disk));
  if (needs.sounds + needs.checkpoints > room.disk)
    verdict.warning =
        against("checkpoints and WAV files", needs.sounds + needs.checkpoints, "the output folder", room.disk);
  return verdict;
}

std::string check_feasible(Session& session, const SceneJobs& jobs) {
  const RunOptions& o = session.options();
  const BatchNeeds needs = needs_of(session, jobs);
  const HostMemory host = host_memory();
  NodeRoom room;
  room.host = host.available;
  room.host_limit = host.limit;
  room.shared = free_space("/dev/shm");
  room.scratch = o.scratch.empty() ? 0 : free_space(o.scratch);
  room.device = session.machine().free_memory();
  room.disk = free_space(o.output);
  const Verdict verdict = judge(needs, room);
  if (verdict.refusal.empty()) return verdict.warning;
  throw UserError(session.cluster().host(), "largest scene", needs.largest, verdict.refusal);
}

}  // namespace h3
