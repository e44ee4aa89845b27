#!/usr/bin/env bash
# hang_apart_test.sh START_RANKS HANG_RANK: four ranks on two "hosts" that share no directory, one of which loops in
# forward. The ranks ask each other for their recorders: the culprit is named once, and each host keeps the verdict.
set -uo pipefail
start_ranks=$PWD/$1 hang_rank=$PWD/$2
dir=$(mktemp -d "$TEST_TMPDIR/apart.XXXXXX")
mkdir "$dir/host_0" "$dir/host_1"
export HANG_AFTER=2 HANG_OWN_DIRECTORIES=$dir
setsid "$start_ranks" 4 "$hang_rank" loop 3 unused tcp >"$dir/output" 2>&1 &
job=$!
for ((i = 0; i < 600; ++i)); do
  [[ -e $dir/host_0/run/hang.json && -e $dir/host_1/run/hang.json ]] && break
  kill -0 "$job" 2>/dev/null || break
  sleep 0.1
done
kill -KILL -- "-$job" 2>/dev/null
pkill -KILL -s "$job" 2>/dev/null
wait "$job" 2>/dev/null
victim=$(sed -n 's/^victim \([0-9]*\) in .*/\1/p' "$dir/output")
failed=0
for host in 0 1; do
  grep -q "\"culprits\": *\[ *$victim *\]" <(tr -d '\n' <"$dir/host_$host/run/hang.json") && continue
  echo "host_$host has no verdict that names rank $victim alone" >&2
  failed=1
done
[[ $(grep -c "the job stands" "$dir/output") == 1 ]] || { echo "the verdict was not printed once" >&2; failed=1; }
[[ $failed == 0 ]] || cat "$dir/output" "$dir"/host_*/run/hang.json >&2
exit $failed
