#!/usr/bin/env bash
# curves_test.sh OTT: the command `ott curves` on files: answers, formats, exit codes, errors.
set -euo pipefail
ott=$PWD/$1
cd "$(mktemp -d)"

# expect CODE TEXT ARGUMENT...: ends with CODE and prints TEXT.
expect() {
  local code=$1 text=$2 got=0
  shift 2
  "$ott" curves "$@" > output 2>&1 || got=$?
  if [[ $got != "$code" ]] || ! grep -qF -- "$text" output; then
    echo "ott curves $*: exit code $got instead of $code, or no '$text' in:"
    cat output
    exit 1
  fi
}

# runs FOLDER SEED SLOWER: eight runs of a loss with noise.
runs() {
  mkdir "$1"
  awk -v folder="$1" -v seed="$2" -v slower="$3" 'BEGIN {
    srand(seed)
    for (run = 0; run < 8; ++run) {
      file = folder "/" run ".csv"
      print "step,loss" > file
      offset = (rand() - 0.5) * 0.02
      for (step = 10; step <= 200; step += 10) {
        print step "," 1 + 3 * exp(-step / slower / 50) + offset + (rand() - 0.5) * 0.02 > file
      }
    }
  }'
}
runs old 1 1
runs new 2 1
runs slow 3 1.2

expect 1 'B is worse in loss: it loses 1' old --- slow
expect 0 'B is better in loss: it saves' slow --- old
expect 0 'B is as good in loss' --margin 0.05 old --- new
expect 0 'the margin of 10 % of the steps' --margin 10% old --- new
expect 2 'cannot tell in loss after 4 of A and 4 of B' old/[0-3].csv --- slow/[0-3].csv
expect 2 'cannot tell in loss after 8 of A and 1 of B' old --- new/1.csv
expect 1 'B is worse' old --- slow/1.csv
expect 1 '"finding": "BAD"' --format json old --- slow
expect 1 '"share_lost"' --format json old --- slow
expect 1 'B is worse' -o report.json --format json --html page.html old --- slow
grep -q '"points"' report.json
grep -q 'Does it learn as well?' page.html

expect 2 'B is missing' old
expect 2 'is on both sides' old --- old
expect 2 'has no metric accuracy; it has loss' --metric accuracy old --- new
expect 2 'needs a number' --margin much old --- new
expect 2 'none: No such file' old --- none
printf 'step,loss\n1,2\n2,oops\n' > bad.csv
expect 2 'bad.csv:3: "oops" is no number of the column loss' old --- bad.csv
