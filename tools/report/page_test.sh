#!/usr/bin/env bash
# page_test.sh OTT: the page of `ott report` in a real browser: its pictures are drawn, and a hostile name stays text.
set -euo pipefail

ott=$1
run=$TEST_TMPDIR/run
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

hostile='</pre><script>document.title = "taken over"</script>'
mkdir -p "$run/rank_00000"
printf '{"world_size": 1, "hosts": ["node1"]}' > "$run/run.json"
for iteration in 0 10 20; do
  printf '{"iteration": %d, "mode": "REPLICAS", "outcome": "%s", "tensor": "%s"}\n' "$iteration" \
    "$([[ $iteration == 20 ]] && echo DIFFERENT || echo BITWISE_EQUAL)" "${hostile//\"/\\\"}"
done > "$run/rank_00000/cross_check.jsonl"

code=0
"$ott" report "$run" --html "$TEST_TMPDIR/page.html" > "$TEST_TMPDIR/text" || code=$?
[[ $code == 1 ]] || fail "exit code $code instead of 1: $(cat "$TEST_TMPDIR/text")"

chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$TEST_TMPDIR/chromium" \
  --dump-dom "file://$TEST_TMPDIR/page.html" > "$TEST_TMPDIR/dom" 2> "$TEST_TMPDIR/chromium.log" ||
  fail "chromium: $(tail -5 "$TEST_TMPDIR/chromium.log")"
(($(grep -c '<rect .*<title>iteration' "$TEST_TMPDIR/dom") == 3)) || fail "no three checks in $(cat "$TEST_TMPDIR/dom")"
grep -q "<title>$run</title>" "$TEST_TMPDIR/dom" || fail "the title is not the run's: $(grep '<title>' "$TEST_TMPDIR/dom")"
grep -q '&lt;/pre&gt;&lt;script&gt;' "$TEST_TMPDIR/dom" || fail "the tensor's name is not in the page"
