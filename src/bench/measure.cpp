#include "bench/measure.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/clock.h"
#include "render/card_rates.h"

namespace h3 {

namespace {

constexpr double kSettleSeconds = 3;

double seconds_of(const std::function<void()>& run) {
  const double start = steady_seconds();
  run();
  return steady_seconds() - start;
}

}  // namespace

void Bench::run(const std::function<void()>& work, const std::function<void()>& finish) {
  work();
  if (finish)
    finish();
  else
    queue().wait();
}

BenchRow Bench::time(const std::string& what, const std::function<void()>& work, const std::function<void()>& finish) {
  const auto once = [&] { run(work, finish); };
  once();
  std::vector<double> seconds;
  watch_.start();
  for (int i = 0; i < repeats_; ++i) {
    communicator().barrier();
    seconds.push_back(seconds_of(once));
  }
  BenchRow row;
  row.what = what;
  row.card = watch_.stop();
  for (double& s : seconds) s = largest(s);
  row.time = Timing::of(std::move(seconds));
  return row;
}

std::vector<BenchRow> Bench::in_turns(const std::vector<Turn>& turns) {
  const double start = steady_seconds();
  do {
    for (const Turn& turn : turns) run(turn.work, turn.finish);
  } while (machine().place() == Place::device && steady_seconds() - start < kSettleSeconds);
  std::vector<std::vector<double>> seconds(turns.size());
  communicator().barrier();
  watch_.start();
  for (int i = 0; i < repeats_; ++i)
    for (std::size_t t = 0; t < turns.size(); ++t)
      seconds[t].push_back(seconds_of([&] { run(turns[t].work, turns[t].finish); }));
  const CardState card = watch_.stop();
  std::vector<BenchRow> rows(turns.size());
  for (std::size_t t = 0; t < turns.size(); ++t) {
    rows[t].what = turns[t].what;
    rows[t].card = card;
    for (double& s : seconds[t]) s = largest(s);
    rows[t].time = Timing::of(std::move(seconds[t]));
  }
  return rows;
}

std::vector<double> Bench::alone(const std::function<void()>& work, Queue& q, CardState& card) {
  const auto once = [&] {
    work();
    q.wait();
  };
  once();
  std::vector<double> seconds;
  watch_.start();
  for (int i = 0; i < repeats_; ++i) seconds.push_back(seconds_of(once));
  card = watch_.stop();
  return seconds;
}

double Bench::sum(double value) {
  const std::vector<double> all = communicator().gather_value(value);
  return std::accumulate(all.begin(), all.end(), 0.0);
}

double Bench::largest(double value) {
  const std::vector<double> all = communicator().gather_value(value);
  return *std::max_element(all.begin(), all.end());
}

std::string ranks_text(int ranks) {
  return fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s");
}

BenchPlace place_of(Session& session, const std::string& bench) {
  BenchPlace place;
  place.bench = bench;
  place.machine = session.machine().name();
  place.libraries = session.machine().library_versions();
  place.transport = session.transport();
  place.precision = session.precision() == Precision::f32 ? "f32" : "bf16";
  place.ranks = session.cluster().size();
  const std::vector<std::string> hosts = session.communicator().gather_text(session.cluster().host());
  place.nodes = static_cast<int>(std::set<std::string>(hosts.begin(), hosts.end()).size());
  if (session.precision() == Precision::bf16) place.peak = bf16_peak(place.machine);
  return place;
}

}  // namespace h3
