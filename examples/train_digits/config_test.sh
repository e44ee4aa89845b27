#!/usr/bin/env bash
# config_test.sh MPIRUN TRAIN_DIGITS CONFIG: what is observed can be chosen from outside of the program.
set -euo pipefail

config=$TEST_TMPDIR/ott.textproto
run_dir=$TEST_TMPDIR/run
sed "s#^run_dir:.*#run_dir: \"$run_dir\"#" "$3" > "$config"
OTT_CONFIG=$config "$1" 2 "$2" --iterations 60 > "$TEST_TMPDIR/log"

fail() { echo "config_test: $*" >&2; cat "$TEST_TMPDIR/log" >&2; exit 1; }
for rank in 0 1; do
  [[ $(ls "$run_dir/rank_0000$rank/dumps") == $'0\n50' ]] || fail "rank $rank did not dump iterations 0 and 50 alone"
  # Iterations 0, 25 and 50.
  [[ $(wc -l < "$run_dir/rank_0000$rank/cross_check.jsonl") == 3 ]] || fail "rank $rank did not check three times"
  grep -q '"num_tensors":"4"' "$run_dir/rank_0000$rank/cross_check.jsonl" || fail "rank $rank did not check the weights alone"
done

printf 'stopwatch {\n  warmup: 5\n}\n' > "$config"
if OTT_CONFIG=$config "$1" 2 "$2" --iterations 1 > "$TEST_TMPDIR/log" 2>&1; then fail "a wrong configuration passed"; fi
grep -q 'ott.textproto:2:' "$TEST_TMPDIR/log" || fail "the wrong line is not named"
