#!/usr/bin/env bash
# Installs what h3render needs to build and run, with apt, on Debian 12 or Ubuntu 24.04. Nothing is installed where
# everything is there already. Called by demo.sh and test.sh; as root or with sudo.
#
#   tools/setup.sh [--tests]      --tests: also what the tests use (GoogleTest, Slurm, ...)
set -euo pipefail

packages=(g++ cmake ninja-build ccache pkg-config libopenmpi-dev openmpi-bin libspdlog-dev nlohmann-json3-dev
  libboost-program-options-dev libhdf5-dev libavformat-dev libavcodec-dev libavutil-dev libswscale-dev libswresample-dev
  libutf8proc-dev libxxhash-dev)
for argument in "$@"; do
  case $argument in
    --tests) packages+=(libgtest-dev libbenchmark-dev ffmpeg python3-minimal slurm-wlm munge) ;;
    *) echo "setup.sh: unknown option $argument" >&2; exit 2 ;;
  esac
done

missing=()
for package in "${packages[@]}"; do
  # A tool that came another way than by apt is as good.
  case $package in
    cmake | ccache | ffmpeg) command -v "$package" >/dev/null && continue ;;
    ninja-build) command -v ninja >/dev/null && continue ;;
    g++) command -v g++ >/dev/null && continue ;;
    python3-minimal) command -v python3 >/dev/null && continue ;;
    slurm-wlm) [ -x /usr/sbin/slurmctld ] && [ -x /usr/sbin/slurmd ] && command -v sbatch >/dev/null && continue ;;
    munge) [ -x /usr/sbin/munged ] && continue ;;
  esac
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "setup.sh: needs Debian 12 or Ubuntu 24.04 (no apt-get here). Missing: ${missing[*]}" >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup.sh: run as root or install sudo. Missing: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "Installing: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
