#include "bench/scaling_bench.h"

#include <algorithm>
#include <cmath>

#include "parallel/solo_communicator.h"
#include "render/partition_use.h"
#include "render/run_plan.h"

namespace h3 {

std::int64_t weak_rows(const TransformerConfig& config, std::int64_t base, int ranks) {
  const StepWork one = step_work(config, 1, 1, config.heads);
  const StepWork work = step_work(config, base, base, config.heads);
  const double wanted = (work.linear + work.attention) * ranks;
  // linear * S + attention * S^2 = wanted
  const double rows =
      (std::sqrt(one.linear * one.linear + 4 * one.attention * wanted) - one.linear) / (2 * one.attention);
  return std::llround(rows);
}

namespace {

class Scaling {
 public:
  Scaling(Bench& bench, const ScalingRequest& request, ScalingRecord& record)
      : bench_(bench), request_(request), record_(record), place_(place_of(bench.session(), "scaling")) {}

  void run() {
    const TransformerConfig& t = config();
    if (wants("step")) {
      if (bench_.ranks() > 1)
        for (const std::int64_t rows : request_.rows) alone(rows);
      for (const std::int64_t rows : request_.rows) together("strong", rows);
      if (bench_.ranks() > 1) together("weak", weak_rows(t, request_.rows[0], bench_.ranks()));
    }
    BenchTable stages(place_);
    if (wants("text")) {
      bench_text(bench_, request_.text_rows, stages);
      keep("text", request_.text_rows, stages.rows().back());
    }
    if (wants("decode")) {
      bench_video(bench_, request_.clip, stages);
      keep("decode", request_.clip.frames, stages.rows().back());
    }
  }

 private:
  const TransformerConfig& config() { return bench_.session().config().transformer; }
  bool wants(const std::string& stage) const {
    return std::find(request_.stages.begin(), request_.stages.end(), stage) != request_.stages.end();
  }

  Transformer& transformer() {
    Session& s = bench_.session();
    return s.transformer(opened_partitions(s.model()).front(), times_);
  }

  void together(const std::string& kind, std::int64_t rows) {
    Session& s = bench_.session();
    const ShardPlan plan = make_shard_plan(rows, config().heads, s.row_shares(), s.head_shares());
    keep(kind, rows, time_step(bench_, transformer(), s.communicator(), plan, rows));
  }

  // A clip on every rank alone, all at once.
  void alone(std::int64_t rows) {
    Session& s = bench_.session();
    transformer();  // brings the weights in
    SoloCommunicator solo(s.machine());
    const std::vector<double> share{1.0};
    const WeightSet& weights = s.weights(Component::transformer, times_);
    TransformerOptions options = s.transformer_options();
    options.pattern = ExchangePattern::all_gather;
    Transformer lone(s.machine(), s.queue(), solo, config(), weights, options,
                     make_shard_plan(1, config().heads, share, share));
    keep("throughput", rows, time_step(bench_, lone, solo, make_shard_plan(rows, config().heads, share, share), rows));
  }

  void keep(const std::string& kind, std::int64_t rows, const BenchRow& row) {
    ScalingPoint point;
    point.kind = kind;
    point.ranks = bench_.ranks();
    point.nodes = place_.nodes;
    point.rows = rows;
    point.transport = place_.transport;
    point.exchange = name_of(bench_.session().pattern());
    point.time = row.time;
    point.flops = row.flops;
    point.exposed = row.exposed.value_or(0);
    point.card = row.card;
    record_.add(point);
  }

  Bench& bench_;
  const ScalingRequest& request_;
  ScalingRecord& record_;
  BenchPlace place_;
  StageTimes times_;
};

}  // namespace

ScalingRecord new_record(Session& session) {
  const BenchPlace place = place_of(session, "scaling");
  return {place.machine, place.libraries, place.precision, session.options().model, {}};
}

void bench_scaling(Bench& bench, const ScalingRequest& request, ScalingRecord& record) {
  Scaling(bench, request, record).run();
}

}  // namespace h3
