#!/usr/bin/env bash
# Sets the machine up, builds, and runs every test that it can run.
#
#   tools/test.sh            the short forms: unit tests, goldens, renders, invariance under mpirun, faults, Slurm
#   tools/test.sh --full     also the unit tests under ASan and UBSan, the long forms of mutation, invariance, judged
#                            renders, faults (50 kills) and the soak (300 scenes), and, where there is an nvcc, a build
#                            for every CUDA architecture
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
# The CUDA backend is built where it can run; elsewhere its tests would all be skipped.
cuda=OFF
if command -v nvcc >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU; then
  tools/fetch-cudnn-frontend.sh
  cuda=ON
fi
cmake --preset release -DH3RENDER_CUDA=$cuda -DH3RENDER_TESTS=ON >/dev/null
cmake --build --preset release

. tools/mpi-env.sh
jobs=$(nproc)  # asked before OMP_NUM_THREADS, which nproc heeds
export OMP_NUM_THREADS=1
[ $full = yes ] && export H3RENDER_FULL=1 H3RENDER_LONG_TESTS=10
ctest --test-dir build/release --output-on-failure -j "$jobs"
[ $full = yes ] || exit 0

cmake --preset asan -DH3RENDER_TESTS=ON >/dev/null
cmake --build --preset asan
# Open MPI and the media libraries keep memory to the end of the process.
ASAN_OPTIONS=detect_leaks=0 ctest --test-dir build/asan --output-on-failure -L unit -j "$jobs"
if command -v nvcc >/dev/null; then
  tools/fetch-cudnn-frontend.sh
  cmake -S . -B build/all-archs -G Ninja -DCMAKE_BUILD_TYPE=Release -DH3RENDER_TESTS=OFF -DH3RENDER_CUDA=ON \
    "-DH3RENDER_CUDA_ARCHS=80;86;89;90a;100;120" >/dev/null
  cmake --build build/all-archs
fi
