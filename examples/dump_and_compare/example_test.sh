#!/usr/bin/env bash
# example_test.sh EXAMPLE LINE...: the example ends well and prints each line.
set -uo pipefail

example=$1
shift
output=$("$example" "$TEST_TMPDIR/dumps" 2>&1) || { echo "exit code $?: $output" >&2; exit 1; }
for line in "$@"; do
  grep -qxF -- "$line" <<< "$output" || { printf 'no line "%s" in:\n%s\n' "$line" "$output" >&2; exit 1; }
done
