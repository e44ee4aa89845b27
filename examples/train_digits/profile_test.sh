#!/usr/bin/env bash
# profile_test.sh MPIRUN TRAIN_DIGITS CONFIG OTT CHECK_TRACE: a run is profiled from outside of the program, and its
# ranks' traces are joined.
set -euo pipefail

config=$TEST_TMPDIR/profile.textproto
run_dir=$TEST_TMPDIR/run
sed "s#^run_dir:.*#run_dir: \"$run_dir\"#" "$3" > "$config"
OTT_CONFIG=$config "$1" 4 "$2" --iterations 30 > "$TEST_TMPDIR/log"

joined=$TEST_TMPDIR/joined
for ending in json json.gz perfetto-trace; do "$4" trace "$run_dir" -o "$joined.$ending"; done
python3 "$5" "$run_dir"/rank_0000[0-3]/trace.json "$joined.json" "$joined.json.gz"
# Three iterations of four ranks.
"$4" trace "$run_dir" --tree | tee "$TEST_TMPDIR/tree"
for range in ProfilerStep iteration forward allreduce; do
  grep -qE "^ *$range +[0-9.]+ % +12 " "$TEST_TMPDIR/tree" || { echo "profile_test: not 12 times $range"; exit 1; }
done
