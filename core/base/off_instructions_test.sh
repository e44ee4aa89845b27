#!/bin/bash
# off_instructions_test.sh PROGRAM KIND...: a pair of calls on a helper that is off takes at most 8 instructions and
# writes no memory. For each KIND, PROGRAM calls its functions OneKIND and TwoKIND, with one and with two pairs, 1000
# times; their difference is a pair without the function around it.
set -euo pipefail

readonly limit=8
profile=$TEST_TMPDIR/callgrind.out
valgrind --quiet --tool=callgrind --cache-sim=yes --callgrind-out-file="$profile" "$1"
shift
callgrind_annotate --threshold=100 --show=Ir,Dw "$profile" > "$TEST_TMPDIR/functions.txt"
# "3,000 (0.1%)  .  file.cc:OneByName [...]" without percentages and commas; "." is 0.
sed -E 's/\([^)]*\)//g; s/,//g' "$TEST_TMPDIR/functions.txt" > "$TEST_TMPDIR/counts.txt"

# Instructions and memory writes of one call of the function $1, of which there were 1000.
counts_of() {
  awk -v name=":$1$" '$3 ~ name { print $1 / 1000, ($2 == "." ? 0 : $2 / 1000); found = 1 }
    END { if (!found) print "none none" }' "$TEST_TMPDIR/counts.txt"
}

status=0
for kind in "$@"; do
  read -r one _ <<< "$(counts_of "One$kind")"
  read -r two writes <<< "$(counts_of "Two$kind")"
  if [[ $one == none || $two == none ]]; then
    echo "$kind: not found in the profile"
    status=1
    continue
  fi
  instructions=$(awk -v one="$one" -v two="$two" 'BEGIN { print two - one }')
  echo "$kind: $instructions instructions a pair (limit $limit), $writes memory writes (limit 0)"
  if awk -v i="$instructions" -v w="$writes" -v l="$limit" 'BEGIN { exit !(i > l || w > 0) }'; then
    status=1
  fi
done
exit $status
