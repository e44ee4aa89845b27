#!/usr/bin/env bash
# Runs each COMMAND, a benchmark in a short form: it comes to its figures. Whether they are within their limits is not asked, as
# others use this machine (exit codes 0 and 1). It leaves nothing in /dev/shm: what it makes there has its process id in its name.
#   benchmarks_test.sh COMMAND...
set -uo pipefail

# left_by PROCESS: what it left since `started` was touched. Tests that were killed, in sandboxes with ids of their own, leave files, too.
left_by() {
  find /dev/shm -maxdepth 1 -name "*_$1_*" -newer started
}

failed=0
touch started
for command in "$@"; do
  $command > output.txt 2>&1 &
  process=$!
  wait "$process"
  code=$?
  output=$(< output.txt)
  left=$(left_by "$process")
  if [[ -n $left ]]; then
    printf '%s: left %s\n' "$command" "$left"
    failed=1
  fi
  if ((code > 1)) || ! [[ $output =~ [0-9]\ (ns|ms|us|s|x|times|B|MB|%) ]]; then
    printf '%s: exit code %d\n%s\n' "$command" "$code" "$output"
    failed=1
  fi
done

# Nor does it if it is asked to end.
for command in "$@"; do
  [[ $command == */dump_benchmark\ * ]] || continue
  ${command%% *} --benchmark_filter=BM_DumpJson --benchmark_min_time=600 > output.txt 2>&1 &
  process=$!
  until [[ -n $(left_by "$process") ]]; do
    kill -0 "$process" || break
  done
  kill -TERM "$process"
  wait "$process"
  code=$?
  left=$(left_by "$process")
  if [[ -n $left ]] || ((code != 143)); then
    printf '%s: ended with %d, left %s\n' "$command" "$code" "$left"
    failed=1
  fi
done
((failed == 0)) && echo "$# benchmarks ran"
exit "$failed"
