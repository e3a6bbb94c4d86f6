#include "render/manifest.h"

#include "compute/operators.h"
#include "render/agreement.h"
#include "render/file_contents.h"
#include "render/version.h"

namespace h3 {

namespace {

nlohmann::ordered_json ranks_json(const RenderFacts& facts) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (std::size_t r = 0; r < facts.places.size(); ++r) {
    const RankPlace& place = facts.places[r];
    nlohmann::ordered_json rank{{"rank", r}, {"host", place.host}, {"device", place.device}};
    if (!place.address.empty()) rank["address"] = place.address;
    rank["free_bytes"] = place.free_memory;
    rank["rows"] = facts.plan.ranks[r].rows;
    rank["heads"] = facts.plan.ranks[r].heads;
    rank["decode_units"] = facts.decode.units_by_rank[r];
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

nlohmann::ordered_json geometry_json(const ClipGeometry& g, const RunPlan& plan) {
  return {{"width", g.width},
          {"height", g.height},
          {"frames", g.frames},
          {"seconds", g.seconds()},
          {"latent_frames", g.latent_frames},
          {"audio_latents", g.audio_latents},
          {"text_rows", plan.text_rows},
          {"rows", plan.rows}};
}

nlohmann::ordered_json media_json(const SceneJob& job) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const MediaItem& item : job.media) {
    nlohmann::ordered_json m{{"field", item.field}, {"kind", name_of(item.kind)}, {"summary", text_of(item)}};
    if (item.encoded_frames > 0) {
      m["width"] = item.size.width;
      m["height"] = item.size.height;
      m["frames"] = item.encoded_frames;
      m["latent_frames"] = item.latent_frames;
    }
    if (item.audio_latents > 0) m["audio_latents"] = item.audio_latents;
    m["rows"] = item.visual_rows() + item.audio_rows();
    list.push_back(std::move(m));
  }
  return list;
}

nlohmann::ordered_json stages_json(const Session& session, const RenderFacts& facts) {
  nlohmann::ordered_json stages;
  if (facts.vision_ranks > 0) stages["vision"] = {{"ranks", facts.vision_ranks}, {"scheme", "picture or clip block"}};
  stages["text"] = {{"ranks", facts.text_ranks}, {"scheme", facts.text_scheme}};
  if (facts.coming_texts > 0) stages["text"]["coming_scenes"] = facts.coming_texts;
  if (facts.encoded) stages["encode"] = {{"ranks", facts.places.size()}, {"scheme", "clip and tile; channel of sound"}};
  stages["denoise"] = {{"ranks", facts.places.size()},
                       {"exchange", std::string(name_of(facts.plan.pattern))},
                       {"transport", session.transport()},
                       {"chunks", session.options().exchange_chunks},
                       {"exchange_seconds", facts.exchange_seconds}};
  stages["video"] = {{"ranks", facts.decode.ranks_with_work},
                     {"scheme", "chunk and tile group"},
                     {"chunks", facts.decode.chunks},
                     {"tiles", facts.decode.tiles}};
  stages["audio"] = {{"ranks", 1}, {"scheme", "one rank"}};
  return stages;
}

}  // namespace

nlohmann::ordered_json manifest_identity(const nlohmann::ordered_json& manifest) {
  std::map<std::string, std::string> contents;
  if (const auto found = manifest.find("contents"); found != manifest.end())
    for (const auto& [file, content] : found->items()) contents[file] = content;
  return with_contents(manifest.at("scene"), contents);
}

std::filesystem::path manifest_path(const std::filesystem::path& folder, const std::string& name) {
  return folder / (name + ".manifest.json");
}

nlohmann::ordered_json make_manifest(const Session& session, const SceneJob& job, const RenderFacts& facts) {
  nlohmann::ordered_json m;
  m["program"] = {{"name", "h3render"}, {"version", program_version()}, {"build", build_id()}};
  m["run"] = session.run_id();
  m["scene"] = to_json(job.scene);
  m["geometry"] = geometry_json(job.geometry, facts.plan);
  if (!job.media.empty()) {
    m["media"] = media_json(job);
    m["contents"] = job.contents;
  }
  m["model"] = {{"name", session.model().name()},
                {"layout", session.model().layout_name()},
                {"identity", facts.model_identity},
                {"partition", std::string(name_of(job.partition))},
                {"notes", session.model().notes()}};
  m["libraries"] = library_versions(session.machine());
  m["numerics"] = session.numerics();
  // All by now, also those chosen on the way; nothing where a machine has no choice.
  if (const std::string kernels = session.machine().operators().algorithms(); !kernels.empty()) m["kernels"] = kernels;
  m["schedule"] = {{"evaluations", facts.video_sigmas.size() - 1},
                   {"video_sigmas", facts.video_sigmas},
                   {"audio_sigmas", facts.audio_sigmas}};
  m["ranks"] = ranks_json(facts);
  m["group"] = {{"number", session.group().index() + 1}, {"of", session.group().count()}};
  m["stages"] = stages_json(session, facts);
  if (!facts.cache.is_null()) m["cache"] = facts.cache;
  m["options"] = to_json(session.options());
  m["hashes"]["video_latents"] = facts.video_hash;
  m["hashes"]["audio_latents"] = facts.audio_hash;
  m["files"] = nlohmann::ordered_json::array();
  m["notes"] = job.notes;
  m["warnings"] = facts.warnings;
  m["idle_seconds"] = facts.idle_seconds;
  return m;
}

}  // namespace h3
