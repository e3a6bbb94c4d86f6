// The rates that bound a render on this machine, each measured at the shapes and on the tensors that a step has.
#include <algorithm>
#include <optional>

#include "bench/attention_engines.h"
#include "bench/benches.h"
#include "bench/random_tensors.h"
#include "render/stage_times.h"
#include "weights/residency.h"

namespace h3 {

namespace {

struct LayerShape {
  const char* name;
  std::int64_t rows, n, k;
};

// What this rank computes of a block: with all-gather its heads of every row's qkv, otherwise all heads of its rows.
std::vector<LayerShape> layer_shapes(const TransformerConfig& t, ExchangePattern pattern, const ShardPlan& plan,
                                     int rank) {
  const auto r = static_cast<std::size_t>(rank);
  const std::int64_t own = plan.rows[r].size(), all = plan.rows.back().end, heads = plan.heads[r].size();
  const bool gathered = pattern == ExchangePattern::all_gather;
  return {{"qkv", gathered ? all : own, gathered ? 3 * heads * t.head_dim : 3 * t.inner(), t.hidden},
          {"out", own, t.hidden, t.inner()},
          {"fc1", own, 2 * t.ffn, t.hidden},
          {"fc2", own, t.hidden, t.ffn}};
}

ShardPlan plan_of(Session& s, std::int64_t rows) {
  return make_shard_plan(rows, s.config().transformer.heads, s.row_shares(), s.head_shares());
}

// A row whose bytes are those that the rank with most of them receives.
void add_transfer(Bench& bench, const std::string& what, std::uint64_t received_before, BenchRow row,
                  BenchTable& table) {
  row.what = what;
  row.bytes = bench.largest(static_cast<double>(bench.communicator().bytes_received() - received_before)) /
              (bench.repeats() + 1);
  table.add(std::move(row));
}

}  // namespace

BenchRow time_linear(Bench& bench, const std::string& name, std::int64_t rows, const LinearShape& shape,
                     std::int64_t outputs) {
  RandomTensors random(bench.machine(), bench.queue());
  const Tensor x = random.make({rows, shape.k}, shape.x), y = random.make({rows, outputs}, shape.y);
  const LinearWeights w{random.make({outputs, shape.k}, shape.x),
                        shape.bias ? random.make({outputs}, *shape.bias) : Tensor(), shape.full_outputs};
  BenchRow row = bench.time(fmt::format("linear {} {}x{}x{}", name, rows, outputs, shape.k), [&] {
    if (y.elements() > 0) bench.machine().operators().linear(bench.queue(), x, w, y);
  });
  row.flops = bench.sum(2.0 * static_cast<double>(rows) * static_cast<double>(outputs) * static_cast<double>(shape.k));
  return row;
}

namespace {

// A block's four products on one rank, ready to be timed. Results go into one buffer, so that the largest clips fit.
class BlockProducts {
 public:
  BlockProducts(Bench& bench, std::int64_t rows) : bench_(bench), random_(bench.machine(), bench.queue()) {
    Session& s = bench.session();
    const TransformerConfig& t = s.config().transformer;
    const std::int64_t full[] = {3 * t.inner(), t.hidden, 2 * t.ffn, t.hidden};
    const auto shapes = layer_shapes(t, s.pattern(), plan_of(s, rows), s.cluster().rank());
    std::int64_t most = 1;
    for (const LayerShape& shape : shapes) most = std::max(most, shape.rows * shape.n);
    const Tensor results = random_.make({most}, bench.dtype());
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const LayerShape& shape = shapes[i];
      products_.push_back({shape,
                           random_.make({shape.rows, shape.k}, bench.dtype()),
                           {random_.make({shape.n, shape.k}, bench.dtype()), Tensor(), full[i]},
                           Tensor(results.data, {shape.rows, shape.n}, results.dtype, results.place)});
    }
  }
  void add_to(std::vector<Bench::Turn>& turns) {
    for (const Product& p : products_)
      turns.push_back({fmt::format("linear {} {}x{}x{}", p.shape.name, p.shape.rows, p.shape.n, p.shape.k),
                       [this, &p] {
                         if (p.y.elements() > 0) bench_.machine().operators().linear(bench_.queue(), p.x, p.w, p.y);
                       },
                       {}});
  }
  // Of all ranks; collective.
  double flops(std::size_t product) {
    const LayerShape& shape = products_[product].shape;
    return bench_.sum(2.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.n) *
                      static_cast<double>(shape.k));
  }
  std::size_t size() const { return products_.size(); }

 private:
  struct Product {
    LayerShape shape;
    Tensor x;
    LinearWeights w;
    Tensor y;
  };
  Bench& bench_;
  RandomTensors random_;
  std::vector<Product> products_;
};

// The ceiling with one engine's attention: products and attention in the order of a block, in turns.
StepCeiling ceiling_with(Bench& bench, BlockProducts& products, const AttentionEngines& engines, std::size_t engine,
                         std::int64_t rows, BenchTable& table) {
  Session& s = bench.session();
  const TransformerConfig& t = s.config().transformer;
  const std::int64_t heads = plan_of(s, rows).heads[static_cast<std::size_t>(s.cluster().rank())].size();
  RandomTensors random(bench.machine(), bench.queue());
  const Tensor qkv = random.make({rows, heads * 3 * t.head_dim}, bench.dtype()),
               o = random.make({rows, heads * t.head_dim}, bench.dtype());
  std::vector<Bench::Turn> turns;
  products.add_to(turns);
  turns.push_back({fmt::format("attention {} rows, {} heads of {}, {}", rows, heads, t.head_dim, engines.name(engine)),
                   [&] {
                     if (heads > 0) engines.run(engine, qkv_views(qkv, t.head_dim), o.split(1, heads));
                   },
                   [&] { engines.queue(engine).wait(); }});
  std::vector<BenchRow> measured = bench.in_turns(turns);
  const double layers = static_cast<double>(t.layers);
  StepCeiling ceiling;
  double linear_flops = 0;
  for (std::size_t i = 0; i < products.size(); ++i) {
    measured[i].flops = products.flops(i);
    linear_flops += measured[i].flops * layers;
    ceiling.linear_seconds += measured[i].time.median * layers;
  }
  measured.back().flops = attention_flops(rows, t.heads, t.head_dim);
  ceiling.attention_seconds = measured.back().time.median * layers;
  ceiling.linear_rate = linear_flops / ceiling.linear_seconds;
  ceiling.attention_rate = measured.back().flops * layers / ceiling.attention_seconds;
  BenchRow total;
  total.what = fmt::format("ceiling of a step of {} rows, {}", rows, engines.name(engine));
  total.time = {ceiling.seconds(), ceiling.seconds(), ceiling.seconds(), 1};
  total.flops = linear_flops + measured.back().flops * layers;
  measured.push_back(total);
  for (BenchRow& row : measured) table.add(std::move(row));
  return ceiling;
}

}  // namespace

StepCeiling bench_operators(Bench& bench, std::int64_t rows, BenchTable& table) {
  BlockProducts products(bench, rows);
  const AttentionEngines engines(bench.session(), bench.session().config().transformer.head_dim);
  StepCeiling chosen;
  for (std::size_t e = 0; e < engines.size(); ++e) {
    const StepCeiling ceiling = ceiling_with(bench, products, engines, e, rows, table);
    if (e == engines.chosen()) chosen = ceiling;
  }
  return chosen;
}

void bench_collectives(Bench& bench, std::int64_t rows, BenchTable& table) {
  Session& s = bench.session();
  if (bench.ranks() == 1) return;
  const TransformerConfig& t = s.config().transformer;
  const ShardPlan plan = plan_of(s, rows);
  const auto rank = static_cast<std::size_t>(s.cluster().rank());
  RandomTensors random(bench.machine(), bench.queue());
  {
    const Tensor full = random.make({rows, t.hidden}, bench.dtype());
    std::vector<Tensor> blocks;
    for (const Range& range : plan.rows) blocks.push_back(full.rows(range.begin, range.end));
    const std::uint64_t before = bench.communicator().bytes_received();
    BenchRow row = bench.time("", [&] { bench.communicator().all_gather(bench.queue(), blocks); });
    add_transfer(bench, fmt::format("all-gather of {} rows of {}", rows, t.hidden), before, std::move(row), table);
  }
  // One block a peer: its rows of this rank's heads, and this rank's rows of its heads.
  for (const std::int64_t widths : {std::int64_t{1}, std::int64_t{3}}) {
    std::vector<Tensor> sends, receives;
    for (std::size_t r = 0; r < plan.rows.size(); ++r) {
      const std::int64_t unit = widths * t.head_dim;
      sends.push_back(random.make({plan.rows[r].size(), plan.heads[rank].size() * unit}, bench.dtype()));
      receives.push_back(r == rank ? sends.back()
                                   : random.make({plan.rows[rank].size(), plan.heads[r].size() * unit}, bench.dtype()));
    }
    const std::uint64_t before = bench.communicator().bytes_received();
    BenchRow row = bench.time("", [&] { bench.communicator().all_to_all(bench.queue(), sends, receives); });
    add_transfer(bench, fmt::format("all-to-all of {} rows of {}", rows, widths == 1 ? "outputs" : "q, k, v"), before,
                 std::move(row), table);
  }
}

void bench_copies(Bench& bench, BenchTable& table) {
  Session& s = bench.session();
  Machine& machine = bench.machine();
  const bool on_gpu = machine.place() == Place::device;
  const std::int64_t bytes = std::int64_t{1} << (on_gpu ? 30 : 24);
  const auto copy = [&](const std::string& what, const Tensor& from, const Tensor& to) {
    BenchRow row = bench.time(what, [&] { machine.copy(bench.queue(), from, to); });
    row.bytes = static_cast<double>(from.bytes());
    table.add(std::move(row));
  };
  {
    RandomTensors random(machine, bench.queue());
    const Tensor here = random.make({bytes / 4}, DType::f32), there = random.make({bytes / 4}, DType::f32);
    if (on_gpu) {
      Buffer pinned(machine, static_cast<std::size_t>(bytes), Place::host);
      const Tensor host = pinned.tensor({bytes / 4}, DType::f32);
      copy("device to page-locked host", here, host);
      copy("page-locked host to device", host, here);
    }
    copy(on_gpu ? "device to device" : "host to host", here, there);
  }
  if (!on_gpu) return;
  // The decoder's weights, from the node's one copy to where the operators work, as a stage brings them there.
  StageTimes times;
  const WeightSet& weights = s.weights(Component::video_vae, times);
  std::optional<WeightGroups> groups;
  BenchRow row = bench.time("weights of the video decoder to the device", [&] {
    groups.reset();
    groups.emplace(machine, bench.queue(), std::vector<WeightSet>{weights}, Residency::resident);
  });
  row.bytes = static_cast<double>(weights.bytes());
  table.add(std::move(row));
}

}  // namespace h3
