#!/usr/bin/env bash
# Sets the machine up, builds, and runs every test that it can run.
#
#   tools/test.sh            the short forms: unit tests, goldens, renders, invariance under mpirun, faults
#   tools/test.sh --full     also the unit tests under ASan and UBSan, the long mutation runs and all CUDA targets
set -euo pipefail
cd "$(dirname "$0")/.."
full=no
for argument in "$@"; do
  case $argument in
    --full) full=yes ;;
    *) echo "test.sh: unknown option $argument" >&2; exit 2 ;;
  esac
done

tools/setup.sh --tests
cuda=OFF
command -v nvcc >/dev/null && cuda=AUTO
cmake --preset release -DH3RENDER_CUDA=$cuda -DH3RENDER_TESTS=ON >/dev/null
cmake --build --preset release

. tools/mpi-env.sh
export OMP_NUM_THREADS=1
ctest --test-dir build/release --output-on-failure -j "$(nproc)"

if [ $full = yes ]; then
  cmake --preset asan -DH3RENDER_TESTS=ON >/dev/null
  cmake --build --preset asan
  # Open MPI and the media libraries keep memory to the end of the process.
  ASAN_OPTIONS=detect_leaks=0 H3RENDER_MUTATIONS=200000 \
    ctest --test-dir build/asan --output-on-failure -L unit -j "$(nproc)"
  if [ $cuda = AUTO ]; then
    cmake -S . -B build/all-archs -G Ninja -DCMAKE_BUILD_TYPE=Release -DH3RENDER_TESTS=OFF \
      "-DH3RENDER_CUDA_ARCHS=80;86;89;90a;100;120" >/dev/null
    cmake --build build/all-archs
  fi
fi
