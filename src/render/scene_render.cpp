#include "render/scene_render.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "media/png.h"
#include "render/agreement.h"
#include "render/coming_texts.h"
#include "render/denoise.h"
#include "render/dump.h"
#include "render/job_plan.h"
#include "render/manifest.h"
#include "render/media_latents.h"
#include "render/memory_use.h"
#include "render/preview.h"
#include "render/scene_checkpoint.h"
#include "render/scene_encodings.h"
#include "render/scene_jobs.h"
#include "render/scene_writer.h"
#include "sampling/noise.h"
#include "text/text_encoder.h"
#include "text/vision_tower.h"
#include "transformer/packed_sequence.h"
#include "vae/audio_decoder.h"
#include "vae/video_decode.h"

namespace h3 {

namespace {

// The stages of one scene, in order; each leaves what the next needs.
class SceneRender {
 public:
  SceneRender(const SceneSurroundings& surroundings, const SceneJob& job, const ComingScenes& coming,
              std::unique_ptr<Claim>& claim)
      : s_(surroundings.session),
        job_(job),
        coming_(coming),
        progress_(surroundings.progress),
        control_(surroundings.control),
        idle_(surroundings.idle),
        before_(surroundings.before),
        claim_(claim),
        dump_(s_.first() ? s_.options().dump : "") {
    facts_.warnings = job.warnings;
  }

  std::unique_ptr<SceneWriter> run() {
    facts_.model_identity = s_.model_identity(times_);
    presentation_ = present_scene(job_, s_.config(), s_.tokenizer());
    const nlohmann::ordered_json identity = checkpoint_identity(s_, job_, times_);
    std::optional<ResumedScene> resumed = look_for_checkpoint(identity);
    enter("text");
    idle_.work_begins();
    facts_.idle_seconds = idle_.last();
    if (!resumed) {
      encodings_.emplace(s_, job_, presentation_, times_);
      if (s_.options().cache != "off") facts_.cache = encodings_->report();
      read_media();
    }
    encode_text(resumed);
    if (!resumed) encode_conditions();
    lay_out();
    announce();
    const LatentState initial = resumed ? take_up(*resumed) : draw_latents();
    checkpoints_.emplace(s_, job_, identity, text_, presentation_.tags, conditions_, schedules_, claim_.get());
    enter("denoise");
    const LatentState latents = sample(initial);
    enter("decode");
    control_.steps_are_over();
    facts_.video_hash = hash_hex(latents.video.data(), latents.video.size() * sizeof(float));
    facts_.audio_hash = hash_hex(latents.audio.data(), latents.audio.size() * sizeof(float));
    return decode(latents);
  }

 private:
  // A boundary at which the run may stop; what was checkpointed by then is safe on disk.
  void enter(const std::string& stage) {
    status_.stage = stage;
    tell_claim();
    try {
      control_.boundary(stage);
    } catch (const RunStopped&) {
      if (checkpoints_) checkpoints_->finish();
      throw;
    }
  }

  void tell_claim() {
    if (!claim_) return;
    status_.memory_bytes = peak_resident_memory();
    status_.ranks = s_.group().size();
    claim_->set_status(status_);
  }

  std::optional<ResumedScene> look_for_checkpoint(const nlohmann::ordered_json& identity) {
    std::optional<ResumePoint> found;
    std::string error;
    try {
      if (s_.first()) found = find_checkpoint(s_, job_, identity);
    } catch (const UserError& e) {
      error = e.what();
    } catch (const SceneError& e) {
      error = e.what();
    }
    const std::string failed = first_error(s_.communicator(), s_.cluster().host(), error);
    if (!failed.empty()) throw SceneError(failed);
    return share_checkpoint(s_, found);
  }

  void read_media() {
    const std::vector<bool> wanted = encodings_->items_to_read();
    if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return media_.resize(wanted.size());
    StageTimer timer(times_, "media");
    s_.fail_if_asked("media");
    media_ = share_media(s_, job_.scene, job_.media, wanted);
  }

  VisionFeatures look(const WeightSet& weights) {
    const std::vector<VisionPixels> pixels = vision_pixels(job_.media, media_);
    if (pixels.empty()) return {};
    StageTimer timer(times_, "vision");
    VisionTower tower(s_.machine(), s_.communicator(), s_.config().text.vision, weights);
    std::vector<VisionGrid> grids;
    for (const VisionPixels& item : pixels) grids.push_back(item.grid);
    facts_.vision_ranks = tower.participants(grids);
    return tower.encode(s_.queue(), pixels);
  }

  void encode_text(std::optional<ResumedScene>& resumed) {
    if (resumed) {
      text_ = resumed->text;
      facts_.text_scheme = "from the checkpoint";
      return;
    }
    if (const HostArray* known = encodings_->known(SceneEncodings::Part::text)) return take_text(*known);
    const WeightSet& weights = s_.weights(Component::text_encoder, times_);
    const VisionFeatures vision = look(weights);
    visit_text_encoder(weights, vision);
    facts_.text_ranks = states_.participants;
    facts_.text_scheme = states_.sharding == TextSharding::rows ? "by rows" : "by outputs";
    text_ = states_.hidden;
    encodings_->made(SceneEncodings::Part::text, 0, text_.data, text_.dtype, {text_.size(0), text_.size(1)},
                     times_.of("vision") + times_.of("text"));
    dump_.add("text", text_);
    if (s_.first())
      spdlog::info("text: {} rows encoded by {} of {} ranks {}", presentation_.rows(), facts_.text_ranks,
                   s_.group().size(), facts_.text_scheme);
  }

  // Encodes the scene's own text, and those of coming scenes with it. Layers go over one text after another, so that
  // their seconds are shared by rows.
  void visit_text_encoder(const WeightSet& weights, const VisionFeatures& vision) {
    const ComingTexts coming(s_, coming_, job_, presentation_, times_);
    const double begin = times_.total();
    const NamedRange range("text");
    s_.fail_if_asked("text");
    TextEncoder encoder(s_.machine(), s_.communicator(), s_.config().text, weights);
    std::vector<TextStates> all = encoder.encode_all(
        s_.queue(), coming.beside({presentation_, vision.embeddings ? &vision : nullptr}),
        [&](std::int64_t layer, const Tensor&) { control_.boundary("text layer " + std::to_string(layer)); });
    const auto own = static_cast<double>(presentation_.rows());
    const double per_row = (times_.total() - begin) / (own + static_cast<double>(coming.rows()));
    times_.add("text", own * per_row);
    coming.keep(std::span(all).subspan(1), per_row);
    facts_.coming_texts = coming.size();
    if (all.front().error) std::rethrow_exception(all.front().error);
    states_ = std::move(all.front());
  }

  void take_text(const HostArray& known) {
    const Shape shape{std::span<const std::int64_t>(known.shape)};
    states_.memory = Buffer(s_.machine(), known.bytes.size(), Place::host);
    states_.hidden = states_.memory.tensor(shape, known.dtype);
    std::memcpy(states_.hidden.data, known.bytes.data(), known.bytes.size());
    facts_.text_scheme = "from the cache";
    text_ = states_.hidden;
    dump_.add("text", text_);
  }

  void encode_conditions() {
    if (job_.media.empty()) return;
    enter("encode");
    s_.fail_if_asked("encode");
    for (std::size_t i = 0; i < job_.media.size(); ++i) facts_.encoded |= !encodings_->knows(i);
    latents_ = encode_media(s_, job_.media, media_, job_.scene.posterior, *encodings_, times_,
                            [&](const std::string& item) { control_.boundary("encoding " + item); });
    media_.clear();
    for (std::size_t i = 0; i < latents_.visual.size(); ++i)
      dump_.add("condition" + std::to_string(i), latents_.visual[i].batch());
    for (std::size_t i = 0; i < latents_.audio.size(); ++i)
      dump_.add("audio_condition" + std::to_string(i), latents_.audio[i].tensor());
    if (s_.first())
      spdlog::info("references {}: {}", facts_.encoded ? "encoded" : "from the cache", summary(job_.media));
  }

  void lay_out() {
    SequenceRequest request;
    request.keyframes = keyframes(job_.media);
    request.references = packed_references(job_.media);
    request.text_tags = presentation_.tags;
    request.target = {job_.geometry.latent_frames, job_.geometry.latent_height, job_.geometry.latent_width};
    request.audio_latents = job_.geometry.audio_latents;
    const TransformerConfig& t = s_.config().transformer;
    clip_ = make_clip(pack_sequence(request), t.rope_freqs, t.rope_theta);

    const Scene& scene = job_.scene;
    const std::string where = scene.where;
    const int evaluations = static_cast<int>(scene.evaluations);
    const double shift = *scene.shift, audio_shift = *scene.audio_shift;
    Schedule video = scene.sigmas.empty() ? shifted_schedule(evaluations, shift, where)
                                          : explicit_schedule(scene.sigmas, where, "sigmas");
    std::vector<double> audio_sigmas = scene.audio_sigmas;
    if (audio_sigmas.empty() && !scene.sigmas.empty())
      audio_sigmas = audio_sigmas_for(scene.sigmas, shift, audio_shift);
    Schedule audio = audio_sigmas.empty() ? shifted_schedule(evaluations, audio_shift, where)
                                          : explicit_schedule(audio_sigmas, where, "audio_sigmas");
    schedules_ = pair_schedules(std::move(video), std::move(audio), where);
    facts_.video_sigmas = schedules_.video.sigmas;
    facts_.audio_sigmas = schedules_.audio.sigmas;

    facts_.plan = plan_job(s_, job_, presentation_.rows());
    const RankPlace own{s_.cluster().host(), s_.machine().name(), s_.device_address(), s_.machine().free_memory()};
    facts_.places = gather_places(s_.communicator(), own);
  }

  void announce() const {
    if (!s_.first()) return;
    std::string ranks;
    for (std::size_t r = 0; r < facts_.places.size(); ++r) {
      const RankPlan& p = facts_.plan.ranks[r];
      ranks += fmt::format("{}{}: {} rows, {} heads{}", r ? "; " : "", text_of(facts_.places[r], r), p.rows, p.heads,
                           idle_reason(r));
    }
    spdlog::info("plan: {}x{}, {} frames, {} rows{}, {} evaluations, {:.3f} TFLOP each; exchange {}; ranks {}",
                 job_.geometry.width, job_.geometry.height, job_.geometry.frames, facts_.plan.rows,
                 job_.media.empty() ? "" : " with " + summary(job_.media), schedules_.video.evaluations(),
                 facts_.plan.step_flops / 1e12, name_of(facts_.plan.pattern), ranks);
  }

  // What of the transformer's work a rank is left out of, and why.
  std::string idle_reason(std::size_t rank) const {
    const RankPlan& p = facts_.plan.ranks[rank];
    const bool no_row_share = s_.row_shares()[rank] == 0, no_head_share = s_.head_shares()[rank] == 0;
    if (no_row_share && no_head_share) return " (idle: its share is 0)";
    std::string reasons;
    if (p.rows == 0) reasons += no_row_share ? " (no rows: its share is 0)" : " (no rows: its share is too small)";
    if (p.heads > 0) return reasons;
    if (no_head_share) return reasons + " (no heads: its share is 0)";
    return reasons + fmt::format(" (no heads: {} for {} ranks)", s_.config().transformer.heads, facts_.places.size());
  }

  // What the first step sees: conditions that stay as they are, and noise.
  LatentState draw_latents() {
    NoiseRequest request;
    for (const LatentVolume& latent : latents_.visual) request.conditions.push_back(latent.shape);
    request.recipe = job_.scene.noise;
    request.seed = job_.scene.seed;
    request.video = Shape{s_.config().transformer.video_channels, job_.geometry.latent_frames,
                          job_.geometry.latent_height, job_.geometry.latent_width};
    request.audio_latents = job_.geometry.audio_latents;
    request.audio_channels = s_.config().transformer.audio_channels;
    Noise noise = draw_noise(request);
    conditions_ = condition_values(s_.config().transformer, latents_, request.recipe, noise.conditions);
    return {std::move(noise.video), std::move(noise.audio), 0, {}, {}};
  }

  LatentState take_up(ResumedScene& resumed) {
    conditions_ = std::move(resumed.conditions);
    return std::move(resumed.state);
  }

  LatentState sample(const LatentState& initial) {
    const WeightSet* preview_weights =
        s_.options().preview_steps > 0 ? &s_.weights(Component::video_vae, times_) : nullptr;
    const RankPlan& own = facts_.plan.ranks[static_cast<std::size_t>(s_.group().rank())];
    s_.make_room(static_cast<std::size_t>(own.activation_bytes + own.decoder_weight_bytes + own.decode_bytes));
    Transformer& transformer = s_.transformer(job_.partition, times_);
    StageTimer timer(times_, "denoise");
    SamplerOptions options;
    options.kind = job_.scene.sampler;
    options.audio = job_.scene.audio_correction;
    options.carry = *job_.scene.shift / *job_.scene.audio_shift;
    dump_first_rows(initial);
    transformer.begin(s_.queue(), clip_, facts_.plan.shards, text_, conditions_.rows(),
                      schedule_timesteps(schedules_.video.timesteps, schedules_.audio.timesteps));
    DenoiseCalls calls;
    calls.step = [&](const StepReport& report) {
      progress_.step(report);
      control_.step_took(report.seconds);
      status_.step = report.step;
      status_.steps = report.steps;
      status_.seconds_per_step = report.seconds;
      tell_claim();
    };
    calls.before_step = [&](std::int64_t) {
      enter("denoise");
      control_.step_begins();
      s_.fail_if_asked("step");
    };
    calls.wants_latents = [&](std::int64_t step) {
      const bool due = checkpoints_->due(step, schedules_.video.evaluations());
      return control_.stops_here() || due || !s_.options().dump.empty();
    };
    calls.latents = [&](const LatentState& state) {
      dump_latents("rows.step" + std::to_string(state.step), state);
      checkpoints_->keep(state);
    };
    if (preview_weights) {
      calls.wants_estimate = [&](std::int64_t step) { return step % s_.options().preview_steps == 0; };
      calls.estimate = [&](const std::vector<float>& video) { show(*preview_weights, video); };
    }
    const double exchange_before = transformer.exchange_seconds();
    LatentState latents = denoise(s_.machine(), s_.queue(), s_.communicator(), transformer, clip_, facts_.plan.shards,
                                  s_.config().transformer, plan_sampler(options, schedules_), initial, calls);
    facts_.exchange_seconds = transformer.exchange_seconds() - exchange_before;
    return latents;
  }

  // A preview that cannot be written costs the scene nothing.
  void show(const WeightSet& weights, const std::vector<float>& video) {
    if (!s_.first() || (claim_ && !claim_->still_mine())) return;
    const ClipGeometry& g = job_.geometry;
    const LatentColours colours(s_.machine(), s_.queue(), s_.config().video_vae, weights, s_.vae_profile(),
                                video_rows(video), g.latent_frames, g.latent_height, g.latent_width);
    try {
      write_png(preview_path(s_.options().output, job_.scene.name),
                preview_strip(colours, g.latent_frames, g.latent_height, g.latent_width));
    } catch (const SceneError& e) {
      warn(std::string("preview: ") + e.what());
    }
  }

  // All rows that the first step sees, conditions first.
  void dump_first_rows(const LatentState& initial) {
    if (s_.options().dump.empty()) return;
    LatentState all = initial;
    all.video.insert(all.video.begin(), conditions_.visual.begin(), conditions_.visual.end());
    all.audio.insert(all.audio.begin(), conditions_.audio.begin(), conditions_.audio.end());
    dump_latents("rows.initial", all);
  }

  void dump_latents(const std::string& name, const LatentState& state) {
    const TransformerConfig& t = s_.config().transformer;
    const auto rows = [](const std::vector<float>& values, std::int64_t width) {
      return Tensor(const_cast<float*>(values.data()), {static_cast<std::int64_t>(values.size()) / width, width},
                    DType::f32);
    };
    dump_.add(name + ".video", rows(state.video, t.video_row()));
    dump_.add(name + ".audio", rows(state.audio, t.audio_channels));
  }

  std::unique_ptr<SceneWriter> decode(const LatentState& latents) {
    const WeightSet& video_weights = s_.weights(Component::video_vae, times_);
    std::unique_ptr<SceneWriter> writer;
    if (s_.first()) writer = std::make_unique<SceneWriter>(s_, job_, frame_budget(), before_);
    decode_frames(video_weights, latents, writer.get());
    decode_sound(latents, writer.get());
    idle_.work_ends();
    progress_.end_bar();
    if (writer)
      writer->complete(
          {make_manifest(s_, job_, facts_), times_, std::move(dump_), std::move(claim_), std::move(checkpoints_)});
    return writer;
  }

  void decode_frames(const WeightSet& weights, const LatentState& latents, SceneWriter* writer) {
    StageTimer timer(times_, "video");
    s_.fail_if_asked("decode");
    VideoDecoder decoder(s_.machine(), s_.queue(), s_.config().video_vae, weights, s_.vae_profile());
    VideoDecodeRequest request;
    request.latent_frames = job_.geometry.latent_frames;
    request.height = job_.geometry.height;
    request.width = job_.geometry.width;
    request.shares = s_.row_shares();
    request.truncate = job_.scene.quantize == Quantize::trunc;
    VideoDecodeCalls calls;
    calls.frames = [&](std::int64_t first, const Tensor& frames) {
      writer->add_frames(first, frames);
      dump_.append_frames(frames);
      progress_.decode(first + frames.size(0), job_.geometry.frames);
    };
    calls.progress = [&](std::int64_t done, std::int64_t) { control_.progress("decode unit " + std::to_string(done)); };
    calls.stopped = [&] { return control_.wants_stop(); };
    calls.together = [&] { enter("decode"); };
    facts_.decode =
        decode_video(s_.machine(), s_.queue(), s_.communicator(), decoder, video_rows(latents.video), request, calls);
    if (facts_.decode.nan_values > 0)
      warn(fmt::format("{} pixel values were not a number and became 0", facts_.decode.nan_values));
  }

  Tensor video_rows(const std::vector<float>& video) const {
    const std::int64_t width = s_.config().transformer.video_row();
    return Tensor(const_cast<float*>(video.data()), {static_cast<std::int64_t>(video.size()) / width, width},
                  DType::f32);
  }

  // Audio is a thousandth of the video's work, so the writer decodes it alone (spec/vae.md 12.4).
  void decode_sound(const LatentState& latents, SceneWriter* writer) {
    const WeightSet& weights = s_.weights(Component::audio_vae, times_);
    StageTimer timer(times_, "audio");
    if (!s_.first()) return;
    AudioDecoder decoder(s_.machine(), s_.queue(), s_.config().audio_vae, weights);
    const std::int64_t width = s_.config().transformer.audio_channels;
    const Tensor rows(const_cast<float*>(latents.audio.data()),
                      {static_cast<std::int64_t>(latents.audio.size()) / width, width}, DType::f32);
    std::vector<float> samples(static_cast<std::size_t>(2 * job_.geometry.decoded_samples()));
    const Tensor pcm(samples.data(), {2, job_.geometry.decoded_samples()}, DType::f32);
    decoder.decode(s_.queue(), rows, pcm);
    const AudioHealth health = audio_health(pcm);
    if (!health.good()) warn("the sound is " + health.text());
    writer->add_audio(pcm);
    dump_.add("pcm", pcm);
  }

  void warn(const std::string& text) {
    facts_.warnings.push_back(text);
    if (s_.first()) spdlog::warn("{}: {}", job_.scene.name, text);
  }

  Session& s_;
  const SceneJob& job_;
  const ComingScenes& coming_;
  Progress& progress_;
  RunControl& control_;
  IdleTime& idle_;
  const SceneWriter* before_;
  std::unique_ptr<Claim>& claim_;
  Dump dump_;
  StageTimes times_;
  RenderFacts facts_;
  Presentation presentation_;
  ClaimStatus status_;
  TextStates states_;
  Tensor text_;                              // host [L, width]: encoded, or from a checkpoint
  std::optional<SceneEncodings> encodings_;  // unless the scene was resumed
  std::vector<MediaPixels> media_;
  MediaLatents latents_;
  ConditionValues conditions_;
  std::optional<SceneCheckpoints> checkpoints_;
  Clip clip_;
  SchedulePair schedules_;
};

}  // namespace

std::unique_ptr<SceneWriter> render_scene(const SceneSurroundings& surroundings, const SceneJob& job,
                                          const ComingScenes& coming, std::unique_ptr<Claim>& claim) {
  return SceneRender(surroundings, job, coming, claim).run();
}

}  // namespace h3
