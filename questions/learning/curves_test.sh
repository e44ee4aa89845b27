#!/usr/bin/env bash
# curves_test.sh OTT [TRAIN_DIGITS]: the command `ott curves` on files, and on commands that it runs: answers, formats, exit codes,
# errors. TRAIN_DIGITS: real run directories, too.
set -euo pipefail
ott=$PWD/$1
digits=${2:+$PWD/$2}
data=$PWD/examples/train_digits/data/digits.csv.gz
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
expect 2 'needs a finite number' --margin much old --- new
expect 2 'none: No such file' old --- none
printf 'step,loss\n1,2\n2,oops\n' > bad.csv
expect 2 'bad.csv:3: "oops" is no number of the column loss' old --- bad.csv

# Commands that run in turn. Each run has a seed of its own, and leaves a file or a run directory.
cat > train << 'END'
#!/usr/bin/env bash
# train SEED SLOWER FILE
echo "$1" >> seeds
awk -v seed="$1" -v slower="$2" 'BEGIN {
  srand(seed)
  offset = (rand() - 0.5) * 0.02
  print "step,loss"
  for (step = 10; step <= 200; step += 10) print step "," 1 + 3 * exp(-step / slower / 50) + offset + (rand() - 0.5) * 0.02
}' > "$3"
END
chmod +x train
expect 1 'B is worse in loss: it loses' --results log.csv -d kept -- ./train {seed} 1 {dir}/log.csv --- ./train {seed} 1.3 {dir}/log.csv
grep -q 'ott curves: after 2 a side: cannot tell in loss' output
[[ -s kept/a_001/log.csv && $(sort seeds | uniq -d) == '' ]]
(($(wc -l < seeds) < 20)) # it stops as soon as there is an answer
expect 0 'B is as good in loss' --margin 0.1 --results log.csv -- ./train {seed} 1 {dir}/log.csv --- ./train {seed} 1 {dir}/log.csv
expect 2 'after 10 of A and 10 of B' --margin 0.0001 --results log.csv -- ./train {seed} 1 {dir}/log.csv --- ./train {seed} 1 {dir}/log.csv
grep -qE 'some [0-9]+ runs a side would tell|more runs than can be had' output
expect 2 'ended with exit code 3' --results log.csv -- ./train {seed} 1 {dir}/log.csv --- sh -c 'echo no memory; exit 3'
grep -q 'no memory' output
expect 2 'a_001/run: No such file' -- true --- true
expect 2 'needs 5 a side at least' --max-runs 2 --results log.csv -- true --- true
expect 2 'is not empty' -d kept -- true --- true

# The first runs of both sides lead to what they first computed differently.
if [[ -n $digits ]]; then
  for run in 1 2 3; do
    "$digits" --data "$data" --iterations 8 --every 4 --seed $run --run plain_$run > /dev/null || (($? == 1)) # one replica has no other to be checked against
    "$digits" --data "$data" --iterations 8 --every 4 --seed $run --run flipped_$run --fault 0 2 weights.w1 777 28 > /dev/null || (($? == 1))
  done
  expect 2 'next: ott origin plain_1 flipped_1' 'plain_*' --- 'flipped_*'
  grep -q 'of the first runs, plain_1 and flipped_1: .*iteration' output
  for run in plain_1 plain_2 plain_3 flipped_1 flipped_2 flipped_3; do rm -r $run/rank_00000/op*; done
  expect 2 'next: ott compare plain_1 flipped_1' 'plain_*' --- 'flipped_*'
  grep -q 'their dumps first differ in iteration 4' output
  for run in plain_1 plain_2 plain_3 flipped_1 flipped_2 flipped_3; do rm -r $run/rank_00000/dumps; done
  expect 2 'cannot tell in loss after 3 of A and 3 of B' 'plain_*' --- 'flipped_*'
  ! grep -q 'next:' output || { echo 'leads somewhere without a log or dumps'; exit 1; }
fi

# Names are shown as what they are.
mkdir evil
hostile=$'evil/<script>alert(1)<\\script>,"\e[31m\n'
for run in 1 2 3 4 5; do sed "1s/loss/=cmd|'calc'!loss <b>\x1b[31m/" "old/$run.csv" > "$hostile$run.csv"; done
for run in 1 2 3 4 5; do sed "1s/loss/=cmd|'calc'!loss <b>\x1b[31m/" "slow/$run.csv" > "$hostile$run.b.csv"; done
printf 'step,loss\n1,2\n' > "$hostile.bad.csv"
got=0
"$ott" curves "$hostile"[1-5].csv --- "$hostile"[1-5].b.csv --html evil.html -o evil.json --format json > output || got=$?
[[ $got == 1 ]] || { cat output; exit 1; }
if grep -q $'\e' output evil.json evil.html; then echo 'a control character comes through'; exit 1; fi
if grep -qi '<script>alert' evil.html; then echo 'a name is HTML'; exit 1; fi
python3 -c 'import json, sys; json.load(open("evil.json"))'
got=0
"$ott" curves "$hostile"[1-5].csv --- "$hostile.bad.csv" > output 2>&1 || got=$?
[[ $got == 2 ]] && ! grep -q $'\e' output || { cat -v output; exit 1; }
