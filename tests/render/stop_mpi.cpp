// Under mpirun: the last rank alone gets a signal before its fifth step, and every rank must stop before the fifth.
#include <signal.h>

#include <cstdio>

#include "parallel/cluster.h"
#include "parallel/mpi_communicator.h"
#include "render/stop.h"

int main(int argc, char** argv) {
  using namespace h3;
  Cluster cluster(&argc, &argv);
  const auto machine = make_cpu_machine();
  MpiCommunicator world(MPI_COMM_WORLD, *machine);
  StopOptions options;
  options.slurm_limit = false;
  StopControl stop(options);
  int step = 1;
  while (step < 10) {
    if (step == 5 && cluster.rank() == cluster.size() - 1) ::raise(SIGTERM);
    if (stop.agree(world) != StopReason::none) break;
    ++step;
  }
  const auto steps = world.gather_value(step);
  for (const double s : steps) {
    if (s == 5) continue;
    std::fprintf(stderr, "rank %d: a rank stopped before step %g, not 5\n", cluster.rank(), s);
    Cluster::abort(1);
  }
  return 0;
}
