// Attention kernels in turns: the card's clock follows power and heat, so what is compared has to alternate.
#include <algorithm>
#include <cmath>

#include "bench/attention_engines.h"
#include "bench/benches.h"
#include "bench/random_tensors.h"
#ifdef H3RENDER_WITH_CUDA
#include "compute/cuda/cuda_machine.h"
#endif

namespace h3 {

namespace {

constexpr std::int64_t kSampledRows = 32, kSampledHeads = 4;

// Columns [begin, begin + d) of some rows as float32, on the host's side of a queue.
class Float32 {
 public:
  Float32(Machine& machine, Queue& q, const Tensor& x)
      : buffer_(machine, static_cast<std::size_t>(x.elements()) * sizeof(float), machine.place()),
        tensor_(buffer_.tensor(x.shape, DType::f32)) {
    machine.operators().cast(q, x, tensor_);
  }
  const Tensor& tensor() const { return tensor_; }
  Tensor heads() const { return tensor_.split(1, 1); }

 private:
  Buffer buffer_;
  Tensor tensor_;
};

std::vector<float> on_host(Machine& machine, Queue& q, const Tensor& x) {
  std::vector<float> values(static_cast<std::size_t>(x.elements()));
  machine.copy(q, x, Tensor(values.data(), x.shape, DType::f32));
  q.wait();
  return values;
}

// ||o - want|| / ||want|| over rows at the beginning, in the middle and at the end of up to four heads; `want` is
// attention in float32 over the same values.
double relative_error(Machine& machine, Queue& q, const Tensor& fused, const Tensor& o, std::int64_t d) {
  const std::int64_t rows = fused.size(0), heads = o.size(1) / d, sample = std::min(rows, kSampledRows);
  Operators::Attention spec;
  spec.scale = 1.0f / std::sqrt(static_cast<float>(d));
  double difference = 0, norm = 0;
  for (std::int64_t h = 0; h < std::min(heads, kSampledHeads); ++h) {
    const auto part = [&](std::int64_t which) { return fused.slice(1, (3 * h + which) * d, (3 * h + which + 1) * d); };
    const Float32 key(machine, q, part(1)), value(machine, q, part(2));
    for (const std::int64_t first : {std::int64_t{0}, (rows - sample) / 2, rows - sample}) {
      const Float32 query(machine, q, part(0).rows(first, first + sample));
      const Float32 got(machine, q, o.slice(1, h * d, (h + 1) * d).rows(first, first + sample));
      const Float32 want(machine, q, query.tensor());
      machine.operators().attention(q, query.heads(), key.heads(), value.heads(), want.heads(), spec);
      const std::vector<float> a = on_host(machine, q, got.tensor()), b = on_host(machine, q, want.tensor());
      for (std::size_t i = 0; i < a.size(); ++i) {
        difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
        norm += std::pow(static_cast<double>(b[i]), 2);
      }
    }
  }
  return std::sqrt(difference / norm);
}

void add_resources(const std::string& engine, BenchRow& row) {
#ifdef H3RENDER_WITH_CUDA
  if (engine != "own") return;
  const KernelResources used = own_attention_resources();
  row.more.emplace_back("registers", used.registers);
  row.more.emplace_back("spilled bytes", used.spilled_bytes);
#else
  static_cast<void>(engine);
  static_cast<void>(row);
#endif
}

struct EngineTimes {
  std::vector<double> seconds, megahertz, watts;
};

void compare(Bench& bench, const AttentionEngines& engines, const AttentionRequest& request, std::int64_t rows,
             std::int64_t heads, BenchTable& table) {
  const std::int64_t d = request.head_dim;
  RandomTensors random(bench.machine(), bench.queue());
  const Tensor fused = random.make({rows, heads * 3 * d}, bench.dtype()),
               o = random.make({rows, heads * d}, bench.dtype());
  const QkvViews views = qkv_views(fused, d);
  std::vector<EngineTimes> times(engines.size());
  for (int round = 0; round < request.rounds; ++round) {
    for (std::size_t e = 0; e < engines.size(); ++e) {
      CardState card;
      const std::vector<double> seconds =
          bench.alone([&] { engines.run(e, views, o.split(1, heads)); }, engines.queue(e), card);
      times[e].seconds.insert(times[e].seconds.end(), seconds.begin(), seconds.end());
      times[e].megahertz.push_back(card.megahertz);
      times[e].watts.push_back(card.watts);
    }
  }
  double first = 0;
  for (std::size_t e = 0; e < engines.size(); ++e) {
    BenchRow row;
    row.what = fmt::format("attention {} rows, {} heads of {}, {}", rows, heads, d, engines.name(e));
    row.time = Timing::of(times[e].seconds);
    row.flops = attention_flops(rows, heads, d);
    row.card = {Timing::of(times[e].megahertz).median, Timing::of(times[e].watts).median};
    if (e == 0) first = row.time.median;
    row.more.emplace_back(fmt::format("x {}", engines.name(0)), first / row.time.median);
    engines.run(e, views, o.split(1, heads));
    engines.queue(e).wait();
    row.more.emplace_back("relative error", relative_error(bench.machine(), bench.queue(), fused, o, d));
    add_resources(engines.name(e), row);
    table.add(std::move(row));
  }
}

}  // namespace

void bench_attention(Bench& bench, const AttentionRequest& request, BenchTable& table) {
  const AttentionEngines engines(bench.session(), request.head_dim);
  for (const std::int64_t rows : request.rows)
    for (const std::int64_t heads : request.heads) compare(bench, engines, request, rows, heads, table);
}

}  // namespace h3
