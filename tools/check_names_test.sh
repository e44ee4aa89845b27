#!/usr/bin/env bash
# check_names_test.sh CHECK_NAMES: planted names are found, those of the rule are not.
set -uo pipefail
check_names=$1
root=$TEST_TMPDIR/root
failed=0

# expect EXIT_CODE TEXT FILE CODE [FILE CODE]: the answer to headers that hold this alone.
expect() {
  local code=$1 text=$2 output actual
  shift 2
  rm -rf "$root"
  while [[ $# -gt 0 ]]; do
    mkdir -p "$root/$(dirname "$1")"
    printf '%b' "$2" > "$root/$1"
    shift 2
  done
  output=$("$check_names" "$root" 2>&1)
  actual=$?
  [[ $actual == "$code" && $output == *"$text"* ]] && return
  echo "exit code $actual instead of $code, or no \"$text\" in: $output" >&2
  failed=1
}

part='struct Part {\n'
expect 0 "" core/json/a.h "namespace ott {\n$part" core/dump/b.h 'namespace ott {\nclass Dump {\n'
expect 0 "" questions/slow/a.h 'namespace ott::slow {\n' tools/trace/b.h 'namespace ott::trace {\n'
expect 0 "" dist/stats/a.h "namespace ott {\n$part" dist/stats/a.proto 'package ott.internal;\nmessage Part {\n'
expect 0 "" core/json/a.h "namespace ott {\n$part" core/dump/b_for_test.h "namespace ott {\n$part"
expect 1 "Part is defined in core/json/a.h and questions/slow/b.h" \
  core/json/a.h "namespace ott {\n$part" questions/slow/b.h "namespace ott::slow {\nclass Part : public Whole {\n"
expect 1 "Part is defined in" questions/slow/a.h "namespace ott {\n$part" questions/slow/a.proto 'package ott;\nmessage Part {\n'
expect 1 "namespace ott::stats is not that of its folder" questions/slow/a.h 'namespace ott::stats {\n'
expect 1 "namespace ott is not that of its folder" tools/trace/a.h 'namespace ott {\n'
expect 1 "has no headers" core/json/a.cc "$part"
exit $failed
