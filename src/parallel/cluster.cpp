#include "parallel/cluster.h"

#include <cstdlib>

#include "parallel/mpi_call.h"

namespace h3 {

Cluster::Cluster(int* argc, char*** argv) {
  int provided = 0;
  H3_MPI(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided));
  H3_CHECK(provided >= MPI_THREAD_FUNNELED, "MPI gives no MPI_THREAD_FUNNELED");
  H3_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  H3_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  H3_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size_));
  H3_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node_comm_));
  H3_MPI(MPI_Comm_rank(node_comm_, &node_rank_));
  H3_MPI(MPI_Comm_size(node_comm_, &node_size_));
  char name[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  H3_MPI(MPI_Get_processor_name(name, &length));
  host_.assign(name, static_cast<std::size_t>(length));

  // `srun` without a PMI that this MPI knows starts every task as a world of its own; each would render everything.
  const char* tasks = std::getenv("SLURM_NTASKS");
  const bool by_mpirun = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
  if (size_ == 1 && !by_mpirun && tasks && std::atoi(tasks) > 1)
    throw UserError(
        "srun", "SLURM_STEP_NUM_TASKS", tasks,
        "this rank sees a world of one: start with srun --mpi=pmix (srun --mpi=list shows what there is) or "
        "with mpirun");
}

Cluster::~Cluster() {
  MPI_Comm_free(&node_comm_);
  MPI_Finalize();
}

void Cluster::abort(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace h3
