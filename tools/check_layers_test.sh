#!/usr/bin/env bash
# check_layers_test.sh CHECK_LAYERS: planted arrows are found, those of the right direction are not.
set -uo pipefail
check_layers=$1
graph=$TEST_TMPDIR/graph
failed=0

# expect EXIT_CODE TEXT FROM TO: the answer to a graph of this one arrow.
expect() {
  local code=$1 text=$2 output actual
  printf 'digraph mygraph {\n  "%s" -> "%s"\n}\n' "$3" "$4" > "$graph"
  output=$("$check_layers" "$graph" 2>&1)
  actual=$?
  [[ $actual == "$code" && $output == *"$text"* ]] && return
  echo "$3 -> $4: exit code $actual instead of $code, or no \"$text\" in: $output" >&2
  failed=1
}

expect 0 "" //core/dump:dump //core/tensor:tensor
expect 0 "" //questions/faster //core/stopwatch:stopwatch
expect 0 "" //dist/comm:mpi_communicator @mpi//:mpi
expect 0 "" //tools/trace:speedscope_test //tools:ott
expect 1 "core/compare comes after core/dump" //core/dump:dump //core/compare:compare
expect 1 "run/training comes after dist/stats" //dist/stats:stats //run/training:training_run
expect 1 "dist/comm comes after core/base" //core/base:check //dist/comm:communicator
expect 1 "only dist knows MPI" //core/base:check @mpi//:mpi
expect 1 "is in no room" //core/elsewhere:x //core/base:check
expect 1 "tools/report comes after tools/trace" //tools/trace:trace //tools/report:report
expect 1 "the face is for programs" //dist/stats:stats //:stopwatch
expect 0 "" //tools/package:headers //:stopwatch

printf 'digraph mygraph {\n}\n' > "$graph"
"$check_layers" "$graph" 2> /dev/null && { echo "an empty graph passed" >&2; failed=1; }
exit $failed
