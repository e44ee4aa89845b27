#!/usr/bin/env bash
# libott_test.sh LIBOTT: the library shows names of ours alone.
set -euo pipefail

nm --dynamic --defined-only --demangle "$1" > "$TEST_TMPDIR/symbols"
grep -q ' ott::Stopwatch::Enable(' "$TEST_TMPDIR/symbols" || { echo "no Stopwatch::Enable in $1"; exit 1; }
if grep -vE '[ *&]ott::|<ott::| (descriptor_table|TableStruct)_ott_' "$TEST_TMPDIR/symbols"; then
  echo "these are not ours"
  exit 1
fi
