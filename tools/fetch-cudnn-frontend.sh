#!/usr/bin/env bash
# Fetches the headers of cudnn-frontend (MIT licence), which the CUDA backend needs to compile, into
# build/deps/cudnn-frontend, where CMake looks for them. They come in NVIDIA's Python wheel; nothing is installed.
#
#   tools/fetch-cudnn-frontend.sh
#
# Headers that lie elsewhere are named with -DCUDNN_FRONTEND_INCLUDE_DIR=DIR (the folder of cudnn_frontend.h).
set -euo pipefail
version=1.32.0
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=$root/build/deps/cudnn-frontend
if [[ -f $target/include/cudnn_frontend.h ]]; then
  echo "cudnn-frontend is at $target"
  exit 0
fi
python=$(command -v python3) || { echo "python3 with pip is needed to fetch cudnn-frontend" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The headers are the same in the wheel of every Python version, so any one will do.
"$python" -m pip download --quiet --no-deps --only-binary=:all: --python-version 3.11 --implementation cp \
  --platform manylinux_2_28_x86_64 --platform manylinux_2_28_aarch64 --dest "$work" "nvidia-cudnn-frontend==$version"
mkdir -p "$target"
"$python" - "$work" "$target" <<'PYTHON'
import pathlib, sys, zipfile
work, target = map(pathlib.Path, sys.argv[1:])
with zipfile.ZipFile(next(work.glob("*.whl"))) as wheel:
    for name in wheel.namelist():
        if name.startswith("include/") or "/licenses/" in name:
            wheel.extract(name, target)
PYTHON
echo "cudnn-frontend $version is at $target"
