#!/usr/bin/env bash
# Runs each COMMAND, a benchmark in a short form: it comes to its figures. Whether they are within their limits is not asked, as
# others use this machine (exit codes 0 and 1).
#   benchmarks_test.sh COMMAND...
set -uo pipefail

failed=0
for command in "$@"; do
  output=$($command 2>&1)
  code=$?
  if ((code > 1)) || ! [[ $output =~ [0-9]\ (ns|ms|us|s|x|times|B|MB|%) ]]; then
    printf '%s: exit code %d\n%s\n' "$command" "$code" "$output"
    failed=1
  fi
done
((failed == 0)) && echo "$# benchmarks ran"
exit "$failed"
