#!/bin/bash
# stopwatch_instructions_test.sh PROGRAM: a start and end that are off take at most 8 instructions, the return of the
# function around them included, and write no memory.
set -euo pipefail

readonly limit=8
profile=$TEST_TMPDIR/callgrind.out
valgrind --quiet --tool=callgrind --cache-sim=yes --callgrind-out-file="$profile" "$1"
callgrind_annotate --threshold=100 --show=Ir,Dw "$profile" > "$TEST_TMPDIR/functions.txt"

status=0
for function in PairByName PairByHandle PairByScope; do
  # "3,000 (0.1%)  .  file.cc:PairByName [...]": both counts are of 1000 calls, "." is 0.
  counts=$(sed -E 's/\([^)]*\)//g; s/,//g' "$TEST_TMPDIR/functions.txt" | awk -v name=":$function" '
    index($3, name) == length($3) - length(name) + 1 { print $1 / 1000, ($2 == "." ? 0 : $2 / 1000); exit }')
  if [[ -z $counts ]]; then
    echo "$function: not found in the profile" && status=1
    continue
  fi
  read -r instructions writes <<< "$counts"
  echo "$function: $instructions instructions, $writes memory writes a call (limits $limit and 0)"
  if awk -v i="$instructions" -v w="$writes" -v l="$limit" 'BEGIN { exit !(i > l || w > 0) }'; then
    status=1
  fi
done
exit $status
