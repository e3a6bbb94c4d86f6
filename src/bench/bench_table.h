// What benches report: one row a measurement, with the rates that follow from its time, as a table and as JSON. Columns
// that no row fills are left out of the table.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/card_watch.h"

namespace h3 {

// Seconds of the repeats; of several ranks the slowest one's.
struct Timing {
  double median = 0, least = 0, most = 0;
  int repeats = 0;
  // Of times in any order, at least one.
  static Timing of(std::vector<double> seconds);
  // (most - least) / median.
  double spread() const { return median > 0 ? (most - least) / median : 0; }
};

struct BenchRow {
  std::string what;
  Timing time;
  double flops = 0;               // operations by the specification's formulas, of all ranks; 0: none counted
  double bytes = 0;               // moved, of the rank with most; 0: none counted
  double ceiling = 0;             // seconds at the rates measured in this run; 0: none known
  std::optional<double> exposed;  // seconds of communication that nothing hid
  CardState card;                 // while it ran
  std::vector<std::pair<std::string, double>> more;  // figures of one bench, by name: columns of their own

  double flop_rate() const { return time.median > 0 ? flops / time.median : 0; }
  double byte_rate() const { return time.median > 0 ? bytes / time.median : 0; }
  double of_ceiling() const { return time.median > 0 ? ceiling / time.median : 0; }
};

// Where the rows were measured.
struct BenchPlace {
  std::string bench, machine, libraries, transport, precision;
  int ranks = 1, nodes = 1;
  std::optional<double> peak;  // dense bf16 operations a second of one rank's card; none: unknown, or not bf16
};

class BenchTable {
 public:
  explicit BenchTable(BenchPlace place) : place_(std::move(place)) {}
  void add(BenchRow row) { rows_.push_back(std::move(row)); }
  void note(std::string line) { notes_.push_back(std::move(line)); }
  const std::vector<BenchRow>& rows() const { return rows_; }
  const BenchPlace& place() const { return place_; }
  // Share of the ranks' peak that a row reaches; none where the peak is unknown or nothing was counted.
  std::optional<double> mfu(const BenchRow& row) const;
  std::string text() const;
  nlohmann::ordered_json json() const;

 private:
  BenchPlace place_;
  std::vector<BenchRow> rows_;
  std::vector<std::string> notes_;
};

}  // namespace h3
