#!/usr/bin/env bash
# speedscope_test.sh WRITER OTT SCRIPT CHECK_TRACE: what `ott trace` writes keeps to the format, and opens in a real
# viewer, every thread of it.
set -euo pipefail

# Bazel hides HOME from tests.
home=$(getent passwd "$(id -u)" | cut -d: -f6)
modules=${XDG_CACHE_HOME:-$home/.cache}/optim_test_tools/speedscope/node_modules
for needed in "$modules/speedscope" "$modules/playwright-core" "${CHROMIUM:-/usr/bin/chromium}"; do
  [[ -e $needed ]] || { echo "speedscope_test: no $needed; tools/setup --test installs it"; exit 1; }
done

cd "$TEST_TMPDIR"
bin=$TEST_SRCDIR/$TEST_WORKSPACE
"$bin/$1" run
for trace in joined.json joined.json.gz; do
  # There is no run.json, which it says.
  "$bin/$2" trace run -o "$trace" || (($? == 2))
done
python3 "$bin/$4" joined.json joined.json.gz run/rank_00000/trace.json run/rank_00001/trace.json.gz
for trace in joined.json joined.json.gz run/rank_00000/trace.json; do
  node "$bin/$3" "$modules" "$trace" > profiles
  for name in 'rank 0 (host "quoted")' 'write_traces_fo' 'GPU 0, stream 7'; do
    grep -qF "$name" profiles || { echo "$trace: speedscope shows no \"$name\", but:"; cat profiles; exit 1; }
  done
done
