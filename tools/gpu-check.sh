#!/usr/bin/env bash
# Checks the CUDA backend on the GPU of this machine: every operator against the CPU, slices byte by byte, then the
# table of measured rates. Ends with the failed tests, if any, and fails with them.
#
#   tools/gpu-check.sh [BUILD_DIR] [LOG_DIR]     default: build/release, and BUILD_DIR
#
# BUILD_DIR is a configured build with H3RENDER_CUDA=ON, or a folder that holds the programs test_compute_cuda and
# measure_cuda. The programs find cuBLASLt, cuDNN and NVRTC on LD_LIBRARY_PATH, or where they were linked, or in
# NVIDIA's Python packages, which are added here.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${1:-$root/build/release}
logs=${2:-$build}
mkdir -p "$logs"

packages=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null || true)
libraries=$(ls -d "${packages:-/none}"/*/lib 2>/dev/null | paste -sd:)
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$libraries

if [[ -f $build/build.ninja ]]; then
  ninja -C "$build" test_compute_cuda measure_cuda || exit 1
  programs=$build/tests/compute/cuda
else
  programs=$build
fi

nvidia-smi --query-gpu=name,driver_version,clocks.sm,power.draw --format=csv,noheader || exit 1
"$programs/test_compute_cuda" --gtest_color=no > "$logs/gpu-tests.log" 2>&1
failed=$?
"$programs/measure_cuda" > "$logs/gpu-rates.log" 2>&1 || failed=1
grep -v '^gemm' "$logs/gpu-rates.log" | cut -c1-160
grep -E '^\[  (PASSED|FAILED|SKIPPED)' "$logs/gpu-tests.log" | sort -u
exit $failed
