#include "compute/cuda/cudnn_attention.h"

#include <bit>
#include <sstream>
#include <unordered_map>

#include "base/error.h"

#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

namespace h3 {

namespace fe = cudnn_frontend;

namespace {

enum Id : std::int64_t { kQuery = 1, kKey, kValue, kOutput };

void check_frontend(fe::error_t error, const std::string& call) {
  if (error.is_bad()) throw RunError(fmt::format("cuDNN: {} failed: {}", call, error.get_message()));
}

}  // namespace

// Everything that a built graph depends on: sizes (rows of one sequence), then row and head strides of query, key,
// value and output.
struct CudnnAttention::Layout {
  AttentionKind kind;
  std::int64_t sequences, queries, keys, query_heads, key_heads;
  std::int64_t strides[4][2];
  std::uint32_t scale_bits;
  auto operator<=>(const Layout&) const = default;
  std::string text() const {
    std::string line = fmt::format("{} with {} x {} queries, {} keys, {} on {} heads, strides", kind.text(), sequences,
                                   queries, keys, query_heads, key_heads);
    for (const auto& [row, head] : strides) line += fmt::format(" {}/{}", row, head);
    return line;
  }
};

struct CudnnAttention::Plan {
  fe::graph::Graph graph;
};

namespace {

std::shared_ptr<fe::graph::Tensor_attributes> operand(fe::graph::Graph& graph, Id id, const char* name,
                                                      std::int64_t sequences, std::int64_t rows, std::int64_t heads,
                                                      std::int64_t d, const std::int64_t (&strides)[2]) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_name(name)
                          .set_uid(id)
                          .set_dim({sequences, heads, rows, d})
                          .set_stride({rows * strides[0], strides[1], strides[0], 1}));
}

// The graph up to, but without, its execution plans.
template <typename Layout>
void describe(fe::graph::Graph& graph, const Layout& l, cudnnHandle_t handle) {
  graph.set_io_data_type(l.kind.dtype == DType::bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  const std::int64_t d = l.kind.d;
  const auto query = operand(graph, kQuery, "query", l.sequences, l.queries, l.query_heads, d, l.strides[0]);
  const auto key = operand(graph, kKey, "key", l.sequences, l.keys, l.key_heads, d, l.strides[1]);
  const auto value = operand(graph, kValue, "value", l.sequences, l.keys, l.key_heads, d, l.strides[2]);
  auto spec = fe::graph::SDPA_attributes()
                  .set_name("attention")
                  .set_generate_stats(false)
                  .set_attn_scale(std::bit_cast<float>(l.scale_bits));
  if (l.kind.causal)
    spec.set_diagonal_alignment(fe::DiagonalAlignment_t::BOTTOM_RIGHT).set_diagonal_band_right_bound(0);
  const auto [o, stats] = graph.sdpa(query, key, value, spec);
  o->set_output(true)
      .set_uid(kOutput)
      .set_dim({l.sequences, l.query_heads, l.queries, d})
      .set_stride({l.queries * l.strides[3][0], l.strides[3][1], l.strides[3][0], 1});
  check_frontend(graph.validate(), "the attention graph");
  check_frontend(graph.build_operation_graph(handle), "building the attention graph");
}

// Engines that cut a row's sum over keys would tie its bits to the shape of the call.
bool cuts_sums(const std::unordered_map<fe::KnobType_t, std::int64_t>& knobs) {
  for (const auto knob : {fe::KnobType_t::STREAM_K, fe::KnobType_t::SPLIT_K_BUF, fe::KnobType_t::SPLIT_K_SLC}) {
    const auto at = knobs.find(knob);
    if (at != knobs.end() && at->second > 1) return true;
    if (at != knobs.end() && knob == fe::KnobType_t::STREAM_K && at->second != 0) return true;
  }
  return false;
}

DType half_type_of(const std::string& name) {
  H3_CHECK(name == "bf16" || name == "f16", name);
  return name == "bf16" ? DType::bf16 : DType::f16;
}

}  // namespace

std::string AttentionKind::text() const {
  return fmt::format("attention {} {} {} {}", name_of(dtype), d, causal ? "causal" : "full",
                     grouped ? "grouped" : "single");
}

CudnnAttention::CudnnAttention() = default;
CudnnAttention::~CudnnAttention() = default;

bool CudnnAttention::covers(CudaQueue& queue, const AttentionKind& kind) {
  const bool half = kind.dtype == DType::bf16 || kind.dtype == DType::f16;
  if (!half || kind.d < 64 || kind.d > 128 || kind.d % 8 != 0) return false;
  return engine(queue, kind).has_value();
}

const std::optional<CudnnAttention::Engine>& CudnnAttention::engine(CudaQueue& queue, const AttentionKind& kind) {
  const auto known = engines_.find(kind);
  if (known != engines_.end()) return known->second;
  constexpr std::int64_t kRows = 8192, kHeads = 8;
  const std::int64_t key_heads = kind.grouped ? 1 : kHeads;
  const std::int64_t row = kHeads * kind.d, key_row = key_heads * kind.d;
  const Layout nominal{kind,
                       1,
                       kRows,
                       kRows,
                       kHeads,
                       key_heads,
                       {{row, kind.d}, {key_row, kind.d}, {key_row, kind.d}, {row, kind.d}},
                       std::bit_cast<std::uint32_t>(0.125f)};
  auto& chosen = engines_[kind];
  fe::graph::Graph graph;
  describe(graph, nominal, queue.dnn());
  if (graph.create_execution_plans({fe::HeurMode_t::A}).is_bad()) return chosen;
  for (std::int64_t i = 0; i < graph.get_execution_plan_count(); ++i) {
    std::int64_t id = 0;
    std::unordered_map<fe::KnobType_t, std::int64_t> knobs;
    if (graph.get_engine_and_knobs_at_index(i, id, knobs).is_bad() || cuts_sums(knobs)) continue;
    if (graph.build_plan_at_index(i).is_bad()) continue;
    if (graph.get_workspace_size_plan_at_index(i) > static_cast<std::int64_t>(CudaQueue::kWorkspace)) continue;
    chosen = Engine{id, {}};
    for (const auto& [type, choice] : knobs) chosen->knobs[static_cast<std::int64_t>(type)] = choice;
    break;
  }
  return chosen;
}

const CudnnAttention::Plan& CudnnAttention::plan(CudaQueue& queue, const AttentionKind& kind, const Layout& layout) {
  const auto known = plans_.find(layout);
  if (known != plans_.end()) return *known->second;
  const Engine& chosen = *engine(queue, kind);
  std::unordered_map<fe::KnobType_t, std::int64_t> knobs;
  for (const auto& [type, choice] : chosen.knobs) knobs[static_cast<fe::KnobType_t>(type)] = choice;
  auto built = std::make_unique<Plan>();
  describe(built->graph, layout, queue.dnn());
  const std::string call = "planning " + layout.text();
  check_frontend(built->graph.create_execution_plan(chosen.id, knobs), call);
  check_frontend(built->graph.check_support(), call);
  check_frontend(built->graph.build_plans(), call);
  CHECK_LE(built->graph.get_workspace_size(), static_cast<std::int64_t>(CudaQueue::kWorkspace));
  constexpr std::size_t kPlans = 256;
  if (plans_.size() >= kPlans) plans_.clear();
  return *(plans_[layout] = std::move(built));
}

void CudnnAttention::run(CudaQueue& queue, const kernels::Heads& query, const kernels::Heads& key,
                         const kernels::Heads& value, const kernels::Heads& o, const AttentionKind& kind, float scale,
                         std::int64_t sequences) {
  const Layout layout{kind,
                      sequences,
                      query.rows / sequences,
                      key.rows / sequences,
                      query.heads,
                      key.heads,
                      {{query.row_stride, query.head_stride},
                       {key.row_stride, key.head_stride},
                       {value.row_stride, value.head_stride},
                       {o.row_stride, o.head_stride}},
                      std::bit_cast<std::uint32_t>(scale)};
  const Plan& p = plan(queue, kind, layout);
  std::unordered_map<std::int64_t, void*> pointers{
      {kQuery, query.data}, {kKey, key.data}, {kValue, value.data}, {kOutput, o.data}};
  check_frontend(p.graph.execute(queue.dnn(), pointers, queue.workspace()), "attention");
}

std::vector<std::string> CudnnAttention::lines() const {
  std::vector<std::string> lines;
  for (const auto& [kind, engine] : engines_) {
    std::string line = kind.text() + (engine ? fmt::format(" cudnn {}", engine->id) : " none");
    if (engine)
      for (const auto& [knob, choice] : engine->knobs) line += fmt::format(" {}={}", knob, choice);
    lines.push_back(line);
  }
  return lines;
}

void CudnnAttention::adopt(const std::string& line) {
  std::istringstream in(line);
  std::string word, dtype, mask, groups, library, knob;
  AttentionKind kind;
  in >> word >> dtype >> kind.d >> mask >> groups >> library;
  H3_CHECK(in && word == "attention", line);
  kind.dtype = half_type_of(dtype);
  kind.causal = mask == "causal";
  kind.grouped = groups == "grouped";
  auto& chosen = engines_[kind];
  chosen.reset();
  plans_.clear();
  if (library == "none") return;
  chosen.emplace();
  in >> chosen->id;
  while (in >> knob) {
    const std::size_t sign = knob.find('=');
    H3_CHECK(sign != std::string::npos, line);
    chosen->knobs[std::stoll(knob.substr(0, sign))] = std::stoll(knob.substr(sign + 1));
  }
}

}  // namespace h3
