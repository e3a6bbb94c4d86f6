// Under mpirun: every pattern and chunk count moves every value to its place, for even, uneven and empty shares.
#include <cstdio>
#include <numeric>

#include "compute/operators.h"
#include "parallel/cluster.h"
#include "parallel/exchange.h"
#include "parallel/mpi_communicator.h"

using namespace h3;

namespace {

float value(std::int64_t row, std::int64_t column) {
  return static_cast<float>(row * 1000 + column);
}

void expect_values(const Tensor& t, std::int64_t first_row, std::int64_t first_column) {
  for (std::int64_t i = 0; i < t.size(0); ++i)
    for (std::int64_t j = 0; j < t.size(1); ++j)
      CHECK_EQ(t.as<float>()[i * t.stride(0) + j], value(first_row + i, first_column + j));
}

void check_plan(Machine& machine, Communicator& comm, const ShardPlan& plan, int chunks) {
  constexpr std::int64_t kUnit = 3;
  const auto q = machine.make_queue();
  Exchange exchange(machine, comm, plan, chunks);
  const Range rows = exchange.rows(), heads = exchange.heads();
  const std::int64_t total = exchange.total_rows(), all_heads = plan.heads.back().end;
  Arena arena(machine, 1 << 20);

  const Tensor full = arena.take({total, 5}, DType::f32);
  std::fill_n(full.as<float>(), full.elements(), -1.0f);
  for (std::int64_t i = rows.begin; i < rows.end; ++i)
    for (std::int64_t j = 0; j < 5; ++j) full.as<float>()[i * 5 + j] = value(i, j);
  std::int64_t arrived = 0;
  exchange.gather_rows(*q, full, [&](Range r) {
    expect_values(full.rows(r.begin, r.end), r.begin, 0);
    arrived += r.size();
  });
  CHECK_EQ(arrived, total);

  const Tensor local = arena.take({rows.size(), all_heads * kUnit}, DType::f32);
  const Tensor staging = arena.take({local.elements()}, DType::f32);
  const Tensor by_head = arena.take({total, heads.size() * kUnit}, DType::f32);
  const auto project = [&](Range part) {
    for (std::int64_t i = part.begin; i < part.end; ++i)
      for (std::int64_t j = 0; j < local.size(1); ++j)
        local.as<float>()[i * local.size(1) + j] = value(rows.begin + i, j);
  };
  exchange.rows_to_heads(*q, project, local, kUnit, staging, by_head);
  expect_values(by_head, 0, heads.begin * kUnit);
  std::fill_n(local.as<float>(), local.elements(), -1.0f);
  const Tensor gathered = arena.take(by_head.shape, DType::f32);
  const auto compute = [&](Queue& queue, Range part, Range range, const Tensor& out) {
    const Tensor from = by_head.rows(range.begin, range.end);
    machine.operators().copy_rows(queue, from.slice(1, part.begin * kUnit, part.end * kUnit), out);
  };
  exchange.heads_to_rows(*q, compute, gathered, kUnit, staging, local);
  expect_values(local, rows.begin, 0);
}

}  // namespace

int main(int argc, char** argv) {
  Cluster cluster(&argc, &argv);
  try {
    const auto machine = make_cpu_machine();
    MpiCommunicator comm(MPI_COMM_WORLD, *machine);
    const auto n = static_cast<std::size_t>(comm.size());
    std::vector<double> even(n, 1.0), rising(n), gap(n, 1.0);
    std::iota(rising.begin(), rising.end(), 1.0);
    if (n > 1) gap[n / 2] = 0;
    for (const auto& row_shares : {even, rising, gap})
      for (const auto& head_shares : {even, rising, gap})
        for (int chunks : {1, 2, 7}) {
          check_plan(*machine, comm, make_shard_plan(37, 8, row_shares, head_shares), chunks);
          check_plan(*machine, comm, make_shard_plan(2, 3, row_shares, head_shares), chunks);
        }
    const auto texts = comm.gather_text(std::string(static_cast<std::size_t>(comm.rank()), 'x'));
    for (std::size_t r = 0; r < n; ++r) CHECK_EQ(texts[r].size(), r);
    CHECK_EQ(comm.agree_max(comm.rank()), static_cast<std::int64_t>(n) - 1);
    if (comm.rank() == 0) std::puts("exchange: every plan moved every value");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rank %d: %s\n", cluster.rank(), e.what());
    Cluster::abort(1);
  }
  return 0;
}
