#!/usr/bin/env bash
# stopwatch_alone_test.sh TARGETS: of libraries that a program may have in a version of its own, the stopwatch needs Abseil alone.
set -euo pipefail

grep -q '^@abseil-cpp//' "$1" || { echo "no Abseil among the needs of the stopwatch: what is looked at?"; exit 1; }
if grep -E '^@(com_google_protobuf|boost.math|zlib|libpng|re2)//|_proto$' "$1"; then
  echo "the stopwatch needs these"
  exit 1
fi
