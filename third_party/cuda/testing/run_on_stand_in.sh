#!/usr/bin/env bash
# run_on_stand_in.sh LIBRARY... -- COMMAND...: runs a command where these libraries are found before the real ones:
# stand-ins by their folder, and host bodies of kernels by their name.
set -uo pipefail

folders=""
bodies=""
while [[ $1 != -- ]]; do
  case $1 in
    *_host_bodies.so) bodies+=${bodies:+:}$PWD/$1 ;;
    *) folders+=${folders:+:}$PWD/$(dirname "$1") ;;
  esac
  shift
done
shift
export OTT_CUDA_KERNELS=$bodies
LD_LIBRARY_PATH=$folders${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$@"
