#!/usr/bin/env bash
# Builds h3render and renders the embedded demo scene on two ranks: no GPU, no download of weights.
#
#   tools/demo.sh [OUTPUT_FOLDER]      default: out/demo
set -euo pipefail
cd "$(dirname "$0")/.."
output=${1:-out/demo}

tools/setup.sh
cuda=OFF
command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU && command -v nvcc >/dev/null && cuda=ON
if [ $cuda = ON ]; then tools/fetch-cudnn-frontend.sh; fi
cmake --preset release -DH3RENDER_CUDA=$cuda -DH3RENDER_TESTS=OFF >/dev/null
cmake --build --preset release --target h3render -- -k 1

. tools/mpi-env.sh
export OMP_NUM_THREADS
OMP_NUM_THREADS=$(threads_for 2)
mpirun -n 2 build/release/h3render render jobs/demo.json --model jobs/nano --output "$output" --device cpu \
  --existing overwrite
echo
echo "Video:         $output/demo.mp4"
echo "Contact sheet: $output/demo.sheet.png"
echo "Manifest:      $output/demo.manifest.json"
