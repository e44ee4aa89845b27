#!/usr/bin/env bash
# page_test.sh OTT PAGE_TEST.JS WRITE_RUNS: the page of `ott report` in a real browser, with runs whose numbers are known.
set -euo pipefail

bin=$PWD
ott=$PWD/$1
# Bazel hides HOME from tests.
home=$(getent passwd "$(id -u)" | cut -d: -f6)
modules=${XDG_CACHE_HOME:-$home/.cache}/optim_test_tools/speedscope/node_modules
for needed in "$modules/playwright-core" "${CHROMIUM:-/usr/bin/chromium}"; do
  [[ -e $needed ]] || { echo "page_test: no $needed; tools/setup --test installs it"; exit 1; }
done

cd "$TEST_TMPDIR"
export HOME=$TEST_TMPDIR
"$bin/$3" runs
mkdir pages

# report EXIT_CODE NAME ARGUMENT...
report() {
  local expected=$1 name=$2 code=0
  shift 2
  "$ott" report "$@" --html "pages/$name.html" > "$name.txt" || code=$?
  [[ $code == "$expected" ]] || { echo "page_test: $name: exit code $code instead of $expected"; cat "$name.txt"; exit 1; }
  size=$(stat -c %s "pages/$name.html")
  ((size <= 2000000)) || { echo "page_test: $name.html has $size bytes"; exit 1; }
}

report 1 known runs/known
report 1 origin runs/known --reference runs/reference
report 1 hostile runs/hostile --reference runs/hostile_reference
report 1 many runs/many
report 1 long runs/long
report 1 compared runs/after_* --before runs/before_*
report 1 traces runs/traces
"$ott" ab runs/before_* --- runs/after_* --html pages/ab.html > ab.txt
# The loss of B is off by 0.5 from step 150 on.
for run in {0..5}; do
  for side in 0 1; do
    for ((step = 10; step <= 300; step += 10)); do
      echo "{\"step\": $step, \"loss\": $((100 + 3000 / step + (run * 7 + step * side) % 5 + (step >= 150 ? 50 * side : 0)))e-2}"
    done > "curve_${side}_$run.jsonl"
  done
done
code=0
"$ott" curves curve_0_* --- curve_1_* --html pages/curves.html > curves.txt || code=$?
[[ $code == 1 ]] || { echo "page_test: ott curves: exit code $code"; cat curves.txt; exit 1; }
for side in 0 1; do
  for run in {0..5}; do sed 's/loss/<img src=x onerror=alert(1)>loss/' "curve_${side}_$run.jsonl" > "hostile_${side}_<b>$run.jsonl"; done
done
"$ott" curves hostile_0_* --- hostile_1_* --html pages/hostile_curves.html > hostile_curves.txt || (($? == 1))
# Ends by the signal, as a user ends it.
"$ott" report runs/known --follow --every 1 --html pages/live.html > live.txt &
follower=$!
until [[ -s pages/live.html ]]; do kill -0 $follower || exit 1; sleep 0.1; done
kill -INT $follower
wait $follower || (($? == 1))
node "$bin/$2" "$modules" pages
