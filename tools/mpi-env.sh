# Sourced by scripts that start several ranks on one machine: lets mpirun run as root and share cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
# Without it Open MPI tries to trace other processes' memory for large messages, which containers often forbid.
export OMPI_MCA_btl_vader_single_copy_mechanism=none
# Cores for each of N ranks: threads_for N
threads_for() {
  local threads=$(($(nproc) / $1))
  echo $((threads > 0 ? threads : 1))
}
