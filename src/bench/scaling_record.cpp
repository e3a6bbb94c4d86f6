#include "bench/scaling_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "base/file.h"
#include "render/run_plan.h"

namespace h3 {

namespace {

using Json = nlohmann::ordered_json;

bool same_place(const ScalingPoint& a, const ScalingPoint& b) {
  return a.kind == b.kind && a.ranks == b.ranks && a.nodes == b.nodes && a.rows == b.rows &&
         a.transport == b.transport && a.exchange == b.exchange;
}

Json point_json(const ScalingPoint& p) {
  return {{"kind", p.kind},
          {"ranks", p.ranks},
          {"nodes", p.nodes},
          {"rows", p.rows},
          {"transport", p.transport},
          {"exchange", p.exchange},
          {"median_seconds", p.time.median},
          {"least_seconds", p.time.least},
          {"most_seconds", p.time.most},
          {"repeats", p.time.repeats},
          {"flops", p.flops},
          {"exposed_seconds", p.exposed},
          {"sm_megahertz", p.card.megahertz},
          {"watts", p.card.watts}};
}

ScalingPoint point_of(const Json& j) {
  ScalingPoint p;
  p.kind = j.at("kind").get<std::string>();
  p.ranks = j.at("ranks").get<int>();
  p.nodes = j.at("nodes").get<int>();
  p.rows = j.at("rows").get<std::int64_t>();
  p.transport = j.at("transport").get<std::string>();
  p.exchange = j.at("exchange").get<std::string>();
  p.time = {j.at("median_seconds").get<double>(), j.at("least_seconds").get<double>(),
            j.at("most_seconds").get<double>(), j.at("repeats").get<int>()};
  p.flops = j.at("flops").get<double>();
  p.exposed = j.at("exposed_seconds").get<double>();
  p.card = {j.at("sm_megahertz").get<double>(), j.at("watts").get<double>()};
  if (p.ranks < 1 || p.nodes < 1 || p.rows < 1 || !(p.time.median > 0))
    throw std::runtime_error("a point without ranks, nodes, rows or time");
  return p;
}

bool is_step(const ScalingPoint& p) {
  return p.kind == "strong" || p.kind == "weak" || p.kind == "throughput";
}

std::size_t element_of(const ScalingRecord& record) {
  return record.precision == "f32" ? 4 : 2;
}

// What the model says of a step; a clip a rank exchanges nothing.
double predicted_seconds(const ScalingPoint& p, const TransformerConfig& c, std::size_t element,
                         const StepRates& rates) {
  const int count = p.kind == "throughput" ? 1 : p.ranks;
  const std::vector<double> shares(static_cast<std::size_t>(count), 1.0);
  StepRanks ranks;
  ranks.plan = make_shard_plan(p.rows, c.heads, shares, shares);
  ranks.pattern = choose_exchange(p.exchange, count, c.hidden, c.inner());
  ranks.element = element;
  ranks.ranks_per_node = p.nodes > 1 ? (p.ranks + p.nodes - 1) / p.nodes : 0;
  return predict_step(c, ranks, rates).seconds();
}

// Speed-up where the work is the base's, efficiency by operations a rank.
std::pair<std::string, std::string> gains(const ScalingRecord& record, const ScalingPoint& p) {
  const ScalingPoint* base = base_point(record, p);
  if (!base) return {};
  if (p.kind == "weak" || p.kind == "throughput") {
    // Of throughput, every rank does the base's work.
    const double work = p.kind == "weak" ? p.flops / p.ranks : p.flops;
    const double efficiency = (work / p.time.median) / (base->flops / base->ranks / base->time.median);
    return {"", fmt::format("{:.1f} %", 100 * efficiency)};
  }
  const double gain = base->time.median / p.time.median;
  return {fmt::format("{:.2f}", gain), fmt::format("{:.1f} %", 100 * gain * base->ranks / p.ranks)};
}

std::string point_line(const ScalingPoint& p, const TransformerConfig& c, const ScalingRecord& record,
                       const std::optional<StepRates>& rates) {
  const auto [speed_up, efficiency] = gains(record, p);
  std::string model;
  if (rates && is_step(p)) {
    const double seconds = predicted_seconds(p, c, element_of(record), *rates);
    model = fmt::format("{:.4g} ({:+.1f} %)", seconds, 100 * (seconds / p.time.median - 1));
  }
  return fmt::format("{:10} {:>5} {:>5} {:>8} {:>9} {:>10.4f} {:>7.1f} % {:>9} {:>11} {:>11.2f} {:>20}\n", p.kind,
                     p.ranks, p.nodes, p.rows, p.transport, p.time.median, 100 * p.time.spread(), speed_up, efficiency,
                     p.exposed * 1e3, model);
}

std::string crossover_line(const ScalingPoint& together, const ScalingPoint& alone) {
  const std::int64_t clips = crossover(together.time.median, alone.time.median, together.ranks);
  std::string text =
      fmt::format("{} rows on {} ranks: {:.4g} steps a second one clip at a time, {:.4g} a clip a rank; ",
                  together.rows, together.ranks, 1 / together.time.median, together.ranks / alone.time.median);
  text += clips > 0 ? fmt::format("batches of {} clips and more finish no later with a clip a rank\n", clips)
                    : std::string("no batch size is always finished sooner with a clip a rank\n");
  return text;
}

}  // namespace

void ScalingRecord::add(const ScalingPoint& point) {
  const auto old = std::find_if(points.begin(), points.end(), [&](const auto& p) { return same_place(p, point); });
  if (old != points.end())
    *old = point;
  else
    points.push_back(point);
  std::stable_sort(points.begin(), points.end(), [](const ScalingPoint& a, const ScalingPoint& b) {
    return std::tie(a.kind, a.rows, a.ranks) < std::tie(b.kind, b.rows, b.ranks);
  });
}

ScalingRecord read_scaling(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  try {
    const Json j = Json::parse(text);
    ScalingRecord record;
    record.machine = j.at("machine").get<std::string>();
    record.libraries = j.at("libraries").get<std::string>();
    record.precision = j.at("precision").get<std::string>();
    record.model = j.at("model").get<std::string>();
    for (const Json& point : j.at("points")) record.points.push_back(point_of(point));
    return record;
  } catch (const std::exception& e) {
    throw UserError(file.string(), "", e.what(), "a JSON file that bench scaling wrote");
  }
}

Json to_json(const ScalingRecord& record) {
  Json points = Json::array();
  for (const ScalingPoint& p : record.points) points.push_back(point_json(p));
  return {{"machine", record.machine},
          {"libraries", record.libraries},
          {"precision", record.precision},
          {"model", record.model},
          {"points", points}};
}

StepRates fitted_rates(const ScalingRecord& record, const TransformerConfig& config) {
  StepRates start = step_rates_of(record.machine).value_or(StepRates{});
  if (start.linear <= 0) start.linear = start.attention = 1;
  // Of several transports on two ranks, the one named last in the file.
  std::string transport;
  for (const ScalingPoint& p : record.points)
    if (p.ranks == 2) transport = p.transport;
  std::vector<StepPoint> steps;
  for (const ScalingPoint& p : record.points)
    if ((p.kind == "strong" || p.kind == "weak") && p.nodes == 1 && (p.ranks == 1 || p.transport == transport))
      steps.push_back({p.ranks, p.rows, p.time.median});
  StepRates rates = fit_step_rates(config, steps, "auto", element_of(record), start);
  for (const ScalingPoint& p : record.points)
    if (p.kind == "decode" && p.ranks == 1) rates.decode = p.flops / p.time.median;
  rates.source =
      fmt::format("fitted to the steps that one and two ranks of {} measured into a scaling record", record.machine);
  return rates;
}

const ScalingPoint* base_point(const ScalingRecord& record, const ScalingPoint& of) {
  const std::string kind = is_step(of) ? "strong" : of.kind;
  const ScalingPoint* base = nullptr;
  for (const ScalingPoint& p : record.points) {
    if (p.kind != kind || (of.kind != "weak" && p.rows != of.rows)) continue;
    if (!base || std::tie(p.ranks, p.rows) < std::tie(base->ranks, base->rows)) base = &p;
  }
  return base;
}

std::int64_t crossover(double seconds_together, double seconds_alone, int ranks, std::int64_t most) {
  std::int64_t from = 0;
  for (std::int64_t clips = 1; clips <= most; ++clips) {
    const double together = seconds_together * static_cast<double>(clips);
    const double alone = seconds_alone * static_cast<double>((clips + ranks - 1) / ranks);
    if (alone > together)
      from = 0;
    else if (from == 0)
      from = clips;
  }
  return from;
}

std::string scaling_text(const ScalingRecord& record, const TransformerConfig& config) {
  const bool has_one = std::any_of(record.points.begin(), record.points.end(), [](const ScalingPoint& p) {
    return p.ranks == 1 && (p.kind == "strong" || p.kind == "weak");
  });
  std::optional<StepRates> rates;
  if (has_one) rates = fitted_rates(record, config);
  std::string text = fmt::format("scaling of {} on {}, {}\n", record.model, record.machine, record.precision);
  text += fmt::format("{:10} {:>5} {:>5} {:>8} {:>9} {:>10} {:>9} {:>9} {:>11} {:>11} {:>20}\n", "", "ranks", "nodes",
                      "rows", "transport", "seconds", "spread", "speed-up", "efficiency", "exposed ms", "predicted s");
  for (const ScalingPoint& p : record.points) text += point_line(p, config, record, rates);
  if (rates) text += fmt::format("predicted by rates {}\n", rates->source);
  for (const ScalingPoint& alone : record.points)
    for (const ScalingPoint& together : record.points)
      if (alone.kind == "throughput" && together.kind == "strong" && together.ranks == alone.ranks &&
          together.rows == alone.rows)
        text += crossover_line(together, alone);
  return text;
}

}  // namespace h3
