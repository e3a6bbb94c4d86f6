#include "bench/bench_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace h3 {

Timing Timing::of(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return {seconds[seconds.size() / 2], seconds.front(), seconds.back(), static_cast<int>(seconds.size())};
}

std::optional<double> BenchTable::mfu(const BenchRow& row) const {
  if (!place_.peak || row.flops <= 0 || row.time.median <= 0) return std::nullopt;
  return row.flop_rate() / (*place_.peak * place_.ranks);
}

namespace {

struct Column {
  std::string head;
  std::function<std::string(const BenchRow&)> cell;  // "" where the row has none
};

// Rates of a CPU would vanish in TFLOP/s.
std::string rate_text(double flops) {
  return flops >= 1e12 ? fmt::format("{:.1f} TFLOP/s", flops / 1e12) : fmt::format("{:.1f} GFLOP/s", flops / 1e9);
}

std::string percent(double part) {
  return fmt::format("{:.1f} %", 100 * part);
}

std::vector<std::string> more_names(const std::vector<BenchRow>& rows) {
  std::vector<std::string> names;
  for (const BenchRow& row : rows)
    for (const auto& [name, value] : row.more)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

std::string more_cell(const BenchRow& row, const std::string& name) {
  for (const auto& [known, value] : row.more)
    if (known == name) return fmt::format("{:.4g}", value);
  return "";
}

}  // namespace

std::string BenchTable::text() const {
  const auto when = [](bool there, const std::string& text) { return there ? text : std::string(); };
  std::vector<Column> columns{
      {"", [](const BenchRow& r) { return r.what; }},
      {"median ms", [](const BenchRow& r) { return fmt::format("{:.3f}", r.time.median * 1e3); }},
      {"least..most ms",
       [&](const BenchRow& r) {
         return when(r.time.repeats > 1, fmt::format("{:.3f}..{:.3f}", r.time.least * 1e3, r.time.most * 1e3));
       }},
      {"spread", [&](const BenchRow& r) { return when(r.time.repeats > 1, percent(r.time.spread())); }},
      {"rate", [&](const BenchRow& r) { return when(r.flops > 0, rate_text(r.flop_rate())); }},
      {"MFU",
       [&](const BenchRow& r) {
         const auto share = mfu(r);
         return share ? percent(*share) : std::string();
       }},
      {"of ceiling", [&](const BenchRow& r) { return when(r.ceiling > 0, percent(r.of_ceiling())); }},
      {"GB/s", [&](const BenchRow& r) { return when(r.bytes > 0, fmt::format("{:.1f}", r.byte_rate() / 1e9)); }},
      {"exposed ms",
       [](const BenchRow& r) { return r.exposed ? fmt::format("{:.3f}", *r.exposed * 1e3) : std::string(); }},
      {"SM MHz",
       [&](const BenchRow& r) { return when(r.card.megahertz > 0, fmt::format("{:.0f}", r.card.megahertz)); }},
      {"W", [&](const BenchRow& r) { return when(r.card.watts > 0, fmt::format("{:.0f}", r.card.watts)); }}};
  for (const std::string& name : more_names(rows_))
    columns.push_back({name, [name](const BenchRow& r) { return more_cell(r, name); }});

  std::vector<std::string> lines(rows_.size() + 1);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    std::vector<std::string> cells{columns[c].head};
    for (const BenchRow& row : rows_) cells.push_back(columns[c].cell(row));
    const bool empty =
        c > 0 && std::all_of(cells.begin() + 1, cells.end(), [](const std::string& s) { return s.empty(); });
    if (empty) continue;
    std::size_t width = 0;
    for (const std::string& cell : cells) width = std::max(width, cell.size());
    for (std::size_t i = 0; i < cells.size(); ++i)
      lines[i] += c == 0 ? fmt::format("{:{}}", cells[i], width) : fmt::format("  {:>{}}", cells[i], width);
  }
  std::string text =
      fmt::format("bench {}: {} rank{} of {}, {}, transport {}\n{}\npeak (dense bf16, a card): {}\n", place_.bench,
                  place_.ranks, place_.ranks == 1 ? "" : "s", place_.machine, place_.precision, place_.transport,
                  place_.libraries, place_.peak ? rate_text(*place_.peak) : "unknown");
  for (const std::string& line : lines) text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  for (const std::string& line : notes_) text += line + "\n";
  return text;
}

nlohmann::ordered_json BenchTable::json() const {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const auto optional = [](const std::optional<double>& x) { return x ? nlohmann::ordered_json(*x) : nullptr; };
  const auto known = [](double x) { return x > 0 ? nlohmann::ordered_json(x) : nullptr; };
  for (const BenchRow& r : rows_) {
    nlohmann::ordered_json row{{"what", r.what},
                               {"median_seconds", r.time.median},
                               {"least_seconds", r.time.least},
                               {"most_seconds", r.time.most},
                               {"repeats", r.time.repeats},
                               {"flops", known(r.flops)},
                               {"bytes", known(r.bytes)},
                               {"mfu", optional(mfu(r))},
                               {"ceiling_seconds", known(r.ceiling)},
                               {"of_ceiling", known(r.of_ceiling())},
                               {"exposed_seconds", optional(r.exposed)},
                               {"sm_megahertz", known(r.card.megahertz)},
                               {"watts", known(r.card.watts)}};
    for (const auto& [name, value] : r.more) row[name] = value;
    rows.push_back(row);
  }
  return {{"bench", place_.bench},
          {"machine", place_.machine},
          {"libraries", place_.libraries},
          {"ranks", place_.ranks},
          {"nodes", place_.nodes},
          {"transport", place_.transport},
          {"precision", place_.precision},
          {"peak_flops", optional(place_.peak)},
          {"notes", notes_},
          {"rows", rows}};
}

}  // namespace h3
