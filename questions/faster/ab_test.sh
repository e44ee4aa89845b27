#!/usr/bin/env bash
# ab_test.sh OTT [MPIRUN TRAIN_DIGITS]: commands that are run in turn, and what was left by runs before.
set -uo pipefail

ott=$1
out=$TEST_TMPDIR/out
mkdir -p "$out"
export TMPDIR=$TEST_TMPDIR

fail() { echo "ab_test: $*" >&2; cat "$out/stdout" "$out/stderr" >&2; exit 1; }

# run EXIT_CODE ARG...: `ott ab ARG...`
run() {
  local expected=$1 code=0
  shift
  "$ott" ab "$@" > "$out/stdout" 2> "$out/stderr" || code=$?
  [[ $code == "$expected" ]] || fail "exit code $code instead of $expected: ott ab $*"
}
says() { grep -qE -- "$1" "$out/stdout" "$out/stderr" || fail "does not say '$1'"; }

# A program whose time it states itself, so that no clock decides these tests: about $1 seconds, and each run differs.
cat > "$out/program" <<'END'
#!/bin/sh
echo "$1" >> "$COUNT"
n=$(wc -l < "$COUNT")
echo '{"process": 1, "seconds": '"$1$((n * 7 % 10))"'}' > "$OTT_AB_DIR/times.jsonl"
END
chmod +x "$out/program"
export COUNT=$out/count

# More runs than are needed to be sure, and no more than those.
run 0 --results times.jsonl --seed 7 -- "$out/program" 1.00 --- "$out/program" 0.80
says '^B is faster by [12][0-9.]+ % \(99 %: '
says '8 of at most 20 runs a side'
says 'runs in turn, ABBA or BAAB by --seed 7, at most 20 a side'
says '^ott ab: 8 runs a side: B / A -[12]'
[[ $(wc -l < "$COUNT") == 18 ]] || fail "$(wc -l < "$COUNT") runs instead of 2 warm and 16"
run 2 --results times.jsonl --margin 0.1 --max-runs 8 --warm-runs 0 --format json -- "$out/program" 1.00 --- "$out/program" 1.00
says '"verdict": "cannot tell"'
says '"runs_needed": [0-9]+'
[[ $(wc -l < "$COUNT") == 34 ]] || fail "$(wc -l < "$COUNT") runs instead of 16 more"
[[ -z $(find "$TEST_TMPDIR" -name 'ott_ab.*') ]] || fail "temporary directories were left"

# -d keeps what runs leave, whatever the answer is.
for measure in wall CPU; do
  "$ott" ab --max-runs 6 --results none --measure "${measure,,}" -d "$out/kept_$measure" -- echo kept --- true > "$out/stdout" 2> "$out/stderr"
  says "^$measure time "
done
grep -q kept "$out/kept_CPU/a_001/output.txt" || fail "the output is not kept"
run 2 -d "$out/kept_CPU" -- true --- true
says 'is not empty'

# Runs that cannot be compared are no answer, after the first of them.
leaves() { echo "for i in $1; do echo '{\"process\": 1, \"seconds\": 1}'; done > \$OTT_AB_DIR/times.jsonl"; }
run 2 --results times.jsonl -- sh -c "$(leaves 1)" --- sh -c "$(leaves '1 2')"
says 'has 1 iterations of .* has 2: was one cut short'

# A command that fails: no verdict.
run 2 -- sh -c 'echo last words >&2; exit 3' --- true
says '^  last words'
says '^-d DIR keeps what runs leave'
[[ ! -s $out/stdout ]] || fail "there is a verdict"
[[ -z $(find "$TEST_TMPDIR" -name 'ott_ab.*') ]] || fail "a command that failed left a temporary directory"
# Nobody reads its progress any more, and it still cleans up.
{ "$ott" ab --max-runs 6 -- true --- true > "$out/stdout"; } 2>&1 | true
[[ -z $(find "$TEST_TMPDIR" -name 'ott_ab.*') ]] || fail "a closed pipe left a temporary directory"

# Ctrl-C gives the answer so far, and no process outlives it.
mkfifo "$out/started"
"$ott" ab -- sh -c 'exit 0' --- sh -c '[ -e '"$out"'/second ] || { touch '"$out"'/second; exit 0; }; echo > '"$out/started"'; exec sleep 98761' \
  > "$out/stdout" 2> "$out/stderr" &
pid=$!
read -r _ < "$out/started"
kill -INT "$pid"
wait "$pid"
[[ $? == 2 ]] || fail "an interrupted comparison does not end with 2"
says 'cannot tell: no two runs a side, ended by a signal'
pgrep -f 'sleep 98761' > /dev/null && fail "a command outlives ott ab"
run 2 --max-time 0.2 -- sleep 98761 --- sleep 98761
says 'ended by --max-time'

# Files that runs left are compared.
for process in 1 2 3 4 5 6; do echo "$process,0,1.0$process"; done | sed '1iprocess,iteration,seconds' > "$out/a.csv"
sed 's/,1\.0/,1.1/' "$out/a.csv" > "$out/b.csv"
cp "$out/a.csv" "$out/like_a.csv"
run 0 "$out/a.csv" --- "$out/like_a.csv" --margin 10
sed 's/^\([1-6]\),0,\(.*\)/&\n\1,1,\2\n\1,2,9.\1/' "$out/a.csv" > "$out/tail.csv"
run 1 "$out/a.csv" --- "$out/tail.csv" --accept iterations --location mean
run 2 "$out/a.csv" --- "$out/like_a.csv" --warmup 1
says 'and --warmup leaves 1 out'
run 1 "$out/a.csv" --- "$out/b.csv" --format junit -o "$out/ab.xml" --html "$out/ab.html"
says '^B is slower by 9\.[0-9] % \(99 %: '
grep -q 'failures="1"' "$out/ab.xml" || fail "no failure in the JUnit report"
grep -qF "A: $out/a.csv; B: $out/b.csv" "$out/ab.html" || fail "the page does not say what was compared"
run 2 "$out/a.csv"
says 'B is missing: the sides are separated by ---'
run 2 -- --- true
says 'A is missing'
run 2 --confidence 99.9 --max-runs 8 -- true --- true
says 'a confidence of 99.9 % needs 10 a side at least'

# Jobs of several ranks, whose iterations and measurements are compared.
if [[ $# -ge 3 ]]; then
  train=("$2" 2 "$3" --iterations 30)
  # A clock decides which side is faster, and not this test.
  "$ott" ab --max-runs 2 --confidence 60 --margin 0 --seed 1 --accept ranks -d "$out/jobs" -- "${train[@]}" --- "${train[@]}" --batch 64 \
    > "$out/stdout" 2> "$out/stderr" || true
  says '^A is 2 and B 2 processes'
  run 2 "$out/jobs/a_*/run" --- "$out/jobs/b_*/run" --margin 0
  for name in iteration forward allreduce; do says "^$name "; done
fi
echo passed
