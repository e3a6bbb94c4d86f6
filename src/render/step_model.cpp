#include "render/step_model.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "render/card_rates.h"
#include "render/run_plan.h"

namespace h3 {

namespace {

double per_second(double amount, double rate) {
  return rate > 0 ? amount / rate : 0;
}

int node_of(int rank, int ranks_per_node) {
  return ranks_per_node > 0 ? rank / ranks_per_node : 0;
}

// Equal shares of one node.
StepRanks equal_ranks(const TransformerConfig& c, const StepPoint& point, std::string_view exchange,
                      std::size_t element) {
  const std::vector<double> shares(static_cast<std::size_t>(point.ranks), 1.0);
  StepRanks ranks;
  ranks.plan = make_shard_plan(point.rows, c.heads, shares, shares);
  ranks.pattern = choose_exchange(exchange, point.ranks, c.hidden, c.inner());
  ranks.element = element;
  return ranks;
}

// x of the smallest sum of (1 - a0 x0 - a1 x1)^2, or nothing where the rows do not tell the two apart.
struct Sums {
  double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
  void add(double x0, double x1) {
    aa += x0 * x0;
    ab += x0 * x1;
    bb += x1 * x1;
    a += x0;
    b += x1;
  }
  std::optional<std::pair<double, double>> solve() const {
    const double determinant = aa * bb - ab * ab;
    if (determinant <= 1e-9 * aa * bb) return std::nullopt;
    const double x0 = (a * bb - b * ab) / determinant, x1 = (b * aa - a * ab) / determinant;
    if (x0 <= 0 || x1 <= 0) return std::nullopt;
    return std::pair{x0, x1};
  }
};

void fit_compute(const TransformerConfig& c, std::span<const StepPoint> points, StepRates& rates) {
  Sums sums;
  double ratios = 0;
  int count = 0;
  for (const StepPoint& p : points) {
    if (p.ranks != 1) continue;
    const StepWork work = step_work(c, p.rows, p.rows, c.heads);
    sums.add(work.linear / p.seconds, work.attention / p.seconds);
    ratios += p.seconds / (work.linear / rates.linear + work.attention / rates.attention);
    ++count;
  }
  if (count == 0) throw UserError("--rates", "", "", "measured steps of one rank among others");
  if (const auto fitted = sums.solve()) {
    rates.linear = 1 / fitted->first;
    rates.attention = 1 / fitted->second;
  } else {
    rates.linear *= count / ratios;
    rates.attention *= count / ratios;
  }
}

void fit_exchange(const TransformerConfig& c, std::span<const StepPoint> points, std::string_view exchange,
                  std::size_t element, StepRates& rates) {
  Sums sums;
  double bytes = 0, seconds = 0;
  for (const StepPoint& p : points) {
    if (p.ranks != 2) continue;
    const StepRanks ranks = equal_ranks(c, p, exchange, element);
    StepRates free = rates;
    free.link = free.exchange_delay = 0;
    const double rest = p.seconds - predict_step(c, ranks, free).compute;
    if (rest <= 0) continue;
    double most = 0;
    for (int r = 0; r < p.ranks; ++r)
      most = std::max(most, exchange_bytes(ranks.pattern, ranks.plan, r, c.hidden, c.head_dim, element));
    most *= static_cast<double>(c.layers);
    sums.add(most / rest, static_cast<double>(c.layers) / rest);
    bytes += most;
    seconds += rest;
  }
  if (seconds <= 0) return;
  rates.exchange_delay = 0;
  rates.link = bytes / seconds;
  if (const auto fitted = sums.solve()) {
    rates.link = 1 / fitted->first;
    rates.exchange_delay = fitted->second;
  }
}

}  // namespace

std::string_view StepPrediction::bound() const {
  if (streaming > compute + exchange) return "weights";
  return exchange > compute ? "exchange" : "compute";
}

StepPrediction predict_step(const TransformerConfig& c, const StepRanks& ranks, const StepRates& rates) {
  const int count = static_cast<int>(ranks.plan.rows.size());
  const std::int64_t rows = ranks.plan.rows.back().end;
  StepPrediction p;
  for (int r = 0; r < count; ++r) {
    const auto at = static_cast<std::size_t>(r);
    const StepWork work = step_work(c, rows, ranks.plan.rows[at].size(), ranks.plan.heads[at].size());
    const double speed = ranks.speeds.empty() ? 1.0 : ranks.speeds[at];
    const double compute = (work.linear / rates.linear + work.attention / rates.attention) / speed;
    double near = 0, far = 0;
    for (int from = 0; from < count; ++from)
      (node_of(from, ranks.ranks_per_node) == node_of(r, ranks.ranks_per_node) ? near : far) +=
          exchange_bytes_from(ranks.pattern, ranks.plan, r, from, c.hidden, c.head_dim, ranks.element);
    const double exchange =
        static_cast<double>(c.layers) * (per_second(near, rates.link) + per_second(far, rates.node_link));
    p.compute = std::max(p.compute, compute);
    p.exchange = std::max(p.exchange, exchange);
  }
  if (count > 1) p.exchange += static_cast<double>(c.layers) * rates.exchange_delay;
  p.streaming = per_second(ranks.streamed_bytes, rates.host_link);
  return p;
}

double predict_decode(double flops, std::int64_t units, int ranks, const StepRates& rates) {
  const std::int64_t most = (units + ranks - 1) / ranks;
  return per_second(flops, rates.decode) * static_cast<double>(most) / static_cast<double>(units);
}

StepRates fit_step_rates(const TransformerConfig& config, std::span<const StepPoint> points, std::string_view exchange,
                         std::size_t element, const StepRates& start) {
  StepRates rates = start;
  fit_compute(config, points, rates);
  fit_exchange(config, points, exchange, element, rates);
  return rates;
}

// What H200s reach in this program (docs/scaling.md), fitted to steps of one and two of them; NVLink between them. Four
// hundred gigabits a second for each rank between nodes, and decoding, as measured there or assumed.
static StepRates h200_rates() {
  StepRates rates;
  rates.source = "fitted to steps of one and two H200s with NVLink; between nodes 400 Gbit/s a rank (assumed)";
  rates.linear = 592.4e12;
  rates.attention = 741.6e12;
  rates.link = 192e9;
  rates.exchange_delay = 0.87e-3;
  rates.node_link = 50e9;
  rates.host_link = 50e9;
  rates.decode = 461e12;
  return rates;
}

std::optional<StepRates> step_rates_of(std::string_view card) {
  const StepRates h200 = h200_rates();
  if (card == "H200") return h200;
  const auto peak = bf16_peak(card), reference = bf16_peak("H200");
  if (!peak) return std::nullopt;
  // cuDNN's attention reaches 567 TFLOP/s where our own kernel, for Hopper alone, reaches more.
  constexpr double kCudnnAttention = 567e12;
  const bool hopper = card.find("H100") != card.npos || card.find("GH200") != card.npos;
  const bool nvlink = hopper && card.find("PCIe") == card.npos;
  StepRates rates = h200;
  const double part = *peak / *reference;
  rates.linear *= part;
  rates.decode *= part;
  rates.attention = part * (hopper ? h200.attention : kCudnnAttention);
  if (!nvlink) {
    rates.link = 16e9;
    rates.exchange_delay = 0;
    rates.host_link = 25e9;
  }
  rates.source = fmt::format(
      "not measured: the part of the data sheet's peak that H200s reach; between cards {}; between nodes 400 Gbit/s a "
      "rank (assumed)",
      nvlink ? "NVLink as on H200s" : "16 GB/s a rank through host memory over PCIe 4.0 x16");
  return rates;
}

nlohmann::ordered_json to_json(const StepRates& r) {
  return {{"source", r.source},
          {"linear_flops", r.linear},
          {"attention_flops", r.attention},
          {"link_bytes", r.link},
          {"node_link_bytes", r.node_link},
          {"exchange_delay_seconds", r.exchange_delay},
          {"host_link_bytes", r.host_link},
          {"decode_flops", r.decode}};
}

}  // namespace h3
