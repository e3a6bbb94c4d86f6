#include "transformer/transformer.h"

#include <algorithm>
#include <string>

namespace h3 {

namespace {

DType activation_dtype(Precision precision) {
  return precision == Precision::f32 ? DType::f32 : DType::bf16;
}

std::vector<WeightSet> block_groups(const WeightSet& weights, const TransformerConfig& config,
                                    const TransformerOptions& options, const ShardPlan& plan, int rank) {
  const bool alone = plan.heads.size() == 1;
  const ExchangePattern pattern = alone ? ExchangePattern::all_to_all : options.pattern;
  std::vector<WeightSet> groups;
  for (std::int64_t i = 0; i < config.layers; ++i)
    groups.push_back(block_weights(weights, i, config, plan.heads[static_cast<std::size_t>(rank)], pattern));
  return groups;
}

// The float32 projections in and out, and the final norm.
WeightSet end_weights(const WeightSet& weights) {
  WeightSet ends;
  for (const char* layer : {"video_patch_proj", "audio_patch_proj", "final_layer.video_out", "final_layer.audio_out"})
    for (const char* part : {".weight", ".bias"})
      ends.add(std::string(layer) + part, weights.at(std::string(layer) + part));
  ends.add("final_layer.norm.weight", weights.at("final_layer.norm.weight"));
  return ends;
}

// The buffers of one clip in one arena. Projections in, blocks and heads are phases that share memory.
struct Activations {
  Tensor x;  // [r, hidden]
  BlockWorkspace block;
  Tensor wide;          // [chunk, hidden] f32: the projections in and the input of the heads
  Tensor final_hidden;  // [chunk, hidden]
};

Activations take_activations(Arena& arena, const TransformerConfig& config, const ShardPlan& plan, int rank,
                             const TransformerOptions& options) {
  const DType dtype = activation_dtype(options.precision);
  const std::int64_t rows = plan.rows[static_cast<std::size_t>(rank)].size();
  Activations a;
  a.x = arena.take({rows, config.hidden}, dtype);
  const std::size_t phase = arena.mark();
  a.block = take_block_workspace(arena, config, plan, rank, options.pattern, options.row_chunk, dtype);
  arena.rewind(phase);
  a.wide = arena.take({a.block.chunk, config.hidden}, DType::f32);
  a.final_hidden = arena.take({a.block.chunk, config.hidden}, dtype);
  return a;
}

}  // namespace

// What `begin` makes for one clip.
struct Transformer::Session {
  Clip clip;
  Range rows;
  Arena arena;
  Activations activations;
  Buffer refined_buffer, condition_buffer, table_buffer, index_buffer;
  Tensor refined;        // [L, hidden]
  Tensor visual, audio;  // projected conditions, all of them [n, hidden]
  ModulationTables modulation;
  Exchange exchange;  // goes before the memory that its transfers use
  std::optional<BlockContext> context;

  Session(Clip clip_, Exchange exchange_, ModulationTables modulation_)
      : clip(std::move(clip_)),
        rows(exchange_.rows()),
        modulation(std::move(modulation_)),
        exchange(std::move(exchange_)) {}
};

Transformer::Transformer(Machine& machine, Queue& q, Communicator& communicator, const TransformerConfig& config,
                         const WeightSet& weights, const TransformerOptions& options, ShardPlan plan)
    : machine_(machine),
      communicator_(communicator),
      config_(config),
      weights_(weights),
      options_(options),
      dtype_(activation_dtype(options.precision)),
      blocks_(machine, q, block_groups(weights, config, options, plan, communicator.rank()), options.residency),
      ends_(machine, q, {end_weights(weights)}, Residency::resident) {}

Transformer::~Transformer() = default;

std::size_t Transformer::activation_bytes(const TransformerConfig& config, const ShardPlan& plan, int rank,
                                          const TransformerOptions& options) {
  Arena planner;
  take_activations(planner, config, plan, rank, options);
  return planner.peak();
}

void Transformer::begin(Queue& q, const Clip& clip, const ShardPlan& plan, const Tensor& states,
                        const ConditionRows& conditions, const std::vector<ClassTimesteps>& steps,
                        const Observer& observer) {
  CHECK_EQ(plan.rows.back().end, clip.rows);
  CHECK_EQ(states.size(0), clip.text_rows);
  session_ = std::make_unique<Session>(clip, Exchange(machine_, communicator_, plan, options_.exchange_chunks),
                                       ModulationTables(machine_, q, config_, weights_, steps, dtype_));
  Session& s = *session_;
  s.arena = Arena(machine_, activation_bytes(config_, plan, communicator_.rank(), options_));
  s.activations = take_activations(s.arena, config_, plan, communicator_.rank(), options_);

  const auto buffer = [&](std::int64_t elements, DType dtype) {
    return Buffer(machine_, static_cast<std::size_t>(std::max<std::int64_t>(elements, 1)) * size_of(dtype),
                  machine_.place());
  };
  // Text.
  s.refined_buffer = buffer(clip.text_rows * config_.hidden, dtype_);
  s.refined = s.refined_buffer.tensor({clip.text_rows, config_.hidden}, dtype_);
  Buffer given = buffer(states.elements(), states.dtype), cast = buffer(states.elements(), dtype_);
  const Tensor given_states = given.tensor(states.shape, states.dtype), text = cast.tensor(states.shape, dtype_);
  machine_.copy(q, states, given_states);
  machine_.operators().cast(q, given_states, text);
  refine_text(machine_, q, config_, weights_, text, s.refined, observer);

  // Rotary table and classes of rows.
  const std::int64_t pairs = 3 * config_.rope_freqs;
  s.table_buffer = buffer(4 * clip.rows * pairs, DType::f32);
  const Tensor table = s.table_buffer.tensor({4, clip.rows, pairs}, DType::f32);
  Tensor cos = table.at(0), sin = table.at(1);
  machine_.copy(q, Tensor(const_cast<float*>(clip.cos.data()), cos.shape, DType::f32), cos);
  machine_.copy(q, Tensor(const_cast<float*>(clip.sin.data()), sin.shape, DType::f32), sin);
  if (dtype_ != DType::f32) {
    const Tensor rounded_cos(table.at(2).data, cos.shape, dtype_, machine_.place());
    const Tensor rounded_sin(table.at(3).data, sin.shape, dtype_, machine_.place());
    machine_.operators().cast(q, cos, rounded_cos);
    machine_.operators().cast(q, sin, rounded_sin);
    cos = rounded_cos;
    sin = rounded_sin;
  }
  s.index_buffer = buffer(s.rows.size(), DType::i32);
  const Tensor index = s.index_buffer.tensor({s.rows.size()}, DType::i32);
  if (s.rows.size() > 0)
    machine_.copy(q, Tensor(const_cast<std::int32_t*>(s.clip.classes.data()) + s.rows.begin, index.shape, DType::i32),
                  index);
  s.context.emplace(
      BlockContext{machine_, s.exchange, config_, options_.pattern, s.activations.block, cos, sin, index});

  // Conditions never change while sampling, so they are projected once (spec/dit.md 4.2).
  const std::int64_t visual = conditions.visual ? conditions.visual.size(0) : 0;
  const std::int64_t audio = conditions.audio ? conditions.audio.size(0) : 0;
  s.condition_buffer = buffer((visual + audio) * config_.hidden, dtype_);
  const Tensor all = s.condition_buffer.tensor({visual + audio, config_.hidden}, dtype_);
  s.visual = all.rows(0, visual);
  s.audio = all.rows(visual, visual + audio);
  const auto project = [&](SegmentKind kind, const Tensor& rows, const Tensor& projected) {
    if (!rows || rows.elements() == 0) return;
    Buffer there = buffer(rows.elements(), DType::f32);
    machine_.copy(q, rows, there.tensor(rows.shape, DType::f32));
    project_rows(q, kind, there.tensor(rows.shape, DType::f32), projected);
    q.wait();
  };
  project(SegmentKind::visual_condition, conditions.visual, s.visual);
  project(SegmentKind::audio_condition, conditions.audio, s.audio);
  q.wait();
}

Range Transformer::video_rows() const {
  return target_rows(session_->clip, session_->rows, SegmentKind::target_video);
}
Range Transformer::audio_rows() const {
  return target_rows(session_->clip, session_->rows, SegmentKind::target_audio);
}

// float32 rows -> hidden rows: a float32 projection, rounded once as it enters the stream (spec/dit.md 4.2).
void Transformer::project_rows(Queue& q, SegmentKind kind, const Tensor& rows, const Tensor& x) {
  const bool visual = kind == SegmentKind::target_video || kind == SegmentKind::visual_condition;
  const LinearWeights w = ends_.use(q, 0).linear(visual ? "video_patch_proj" : "audio_patch_proj");
  const Tensor& wide = session_->activations.wide;
  for (std::int64_t at = 0; at < rows.size(0); at += wide.size(0)) {
    const std::int64_t end = std::min(rows.size(0), at + wide.size(0));
    const Tensor part = wide.rows(0, end - at);
    machine_.operators().linear(q, rows.rows(at, end), w, part);
    machine_.operators().cast(q, part, x.rows(at, end));
  }
}

void Transformer::embed(Queue& q, const Tensor& video, const Tensor& audio) {
  Session& s = *session_;
  for (const Segment& segment : s.clip.segments) {
    const Range mine = overlap(segment, s.rows);
    if (mine.size() == 0) continue;
    const Tensor x = s.activations.x.rows(mine.begin - s.rows.begin, mine.end - s.rows.begin);
    const std::int64_t first = segment.source + mine.begin - segment.begin;
    const auto copy_from = [&](const Tensor& all) {
      machine_.operators().copy_rows(q, all.rows(first, first + mine.size()), x);
    };
    switch (segment.kind) {
      case SegmentKind::text:
        copy_from(s.refined);
        break;
      case SegmentKind::visual_condition:
        copy_from(s.visual);
        break;
      case SegmentKind::audio_condition:
        copy_from(s.audio);
        break;
      case SegmentKind::target_audio:
        project_rows(q, segment.kind, audio, x);
        break;
      case SegmentKind::target_video:
        project_rows(q, segment.kind, video, x);
        break;
    }
  }
}

void Transformer::forward(Queue& q, std::int64_t step, const Tensor& video, const Tensor& audio,
                          const Tensor& video_velocity, const Tensor& audio_velocity, const Observer& observer) {
  Session& s = *session_;
  CHECK_EQ(video.size(0), video_rows().size());
  CHECK_EQ(audio.size(0), audio_rows().size());
  embed(q, video, audio);
  for (std::int64_t i = 0; i < config_.layers; ++i) {
    run_block(q, *s.context, blocks_.use(q, static_cast<std::size_t>(i)), s.modulation.block(i, step), s.activations.x);
    if (observer) observer("block" + std::to_string(i), s.activations.x);
  }
  heads(q, step, video_velocity, audio_velocity, observer);
}

// Final norm, modulation and the float32 heads, on target rows alone (spec/dit.md 4.8).
void Transformer::heads(Queue& q, std::int64_t step, const Tensor& video_velocity, const Tensor& audio_velocity,
                        const Observer& observer) {
  Session& s = *session_;
  Operators& ops = machine_.operators();
  const WeightSet& w = ends_.use(q, 0);
  const ModulationTables::Final mod = s.modulation.final(step);
  const Activations& a = s.activations;
  for (const SegmentKind kind : {SegmentKind::target_audio, SegmentKind::target_video}) {
    const bool is_video = kind == SegmentKind::target_video;
    const Tensor& velocity = is_video ? video_velocity : audio_velocity;
    const LinearWeights head = w.linear(is_video ? "final_layer.video_out" : "final_layer.audio_out");
    for (const Segment& segment : s.clip.segments) {
      if (segment.kind != kind) continue;
      const Range mine = overlap(segment, s.rows);
      for (std::int64_t at = mine.begin; at < mine.end; at += a.wide.size(0)) {
        const std::int64_t n = std::min(mine.end - at, a.wide.size(0)), local = at - s.rows.begin;
        const Tensor hidden = a.final_hidden.rows(0, n), wide = a.wide.rows(0, n);
        ops.norm_modulate(q, a.x.rows(local, local + n), w.at("final_layer.norm.weight"), config_.final_norm_eps,
                          mod.scale, mod.shift, s.context->modulation_index.rows(local, local + n), hidden);
        if (observer) observer(is_video ? "final_video" : "final_audio", hidden);
        ops.cast(q, hidden, wide);
        ops.linear(q, wide, head, velocity.rows(at - mine.begin, at - mine.begin + n));
      }
    }
  }
}

double Transformer::exchange_seconds() const {
  return (session_ ? session_->exchange.seconds() : 0) + communicator_.transfer_seconds();
}

}  // namespace h3
