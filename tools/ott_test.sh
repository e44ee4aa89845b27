#!/usr/bin/env bash
# ott_test.sh OTT MODULE_BAZEL: the command line of `ott`: help, version, exit codes, messages.
set -uo pipefail

ott=$1
module=$2
failures=0

# expect EXIT_CODE PATTERN ARG...: `ott ARG...` ends so and says so, on stdout or stderr.
expect() {
  local expected=$1 pattern=$2 code=0 output
  shift 2
  output=$("$ott" "$@" 2>&1) || code=$?
  if [[ $code != "$expected" ]] || ! grep -qE -- "$pattern" <<< "$output"; then
    printf 'ott %s: exit code %s, expected %s with "%s":\n%s\n' "$*" "$code" "$expected" "$pattern" "$output" >&2
    failures=$((failures + 1))
  fi
}

dumps=$TEST_TMPDIR/dumps
mkdir -p "$dumps"/{reference,same,other,cut}
printf '{\n  "loss": 0.5\n}' | tee "$dumps/reference/tensors.json" > "$dumps/same/tensors.json"
printf '{\n  "loss": 0.75\n}' > "$dumps/other/tensors.json"
printf '{\n  "loss": 0.' > "$dumps/cut/tensors.json"

expect 0 'ott compare out/reference' --help
expect 0 'ott compare out/reference' help
expect 0 'ott stats' help stats
for command in ab calibrate check compare crosscheck curves hang origin prof profile report stats trace whatif; do
  expect 0 '^Exit code: ' "$command" --help
  expect 0 '^Examples?:$' "$command" --help
  # Without a file, ott prof reads standard input.
  [[ $command == prof ]] || expect 2 "^ott $command: .*required.*; .ott $command --help. shows an example$" "$command"
done
expect 0 "^ott $(sed -n 's/^    version = "\(.*\)",$/\1/p' "$module")$" --version
expect 2 '^ott: .*subcommand' # none given
expect 2 "^ott: no command 'nosuch'; .ott --help. lists them$" nosuch
expect 2 "^ott: no command '.x1b.31mred'" $'\e[31mred'
expect 2 '^ott stats: .*x1b.31mred' stats "$dumps" $'--\e[31mred'
expect 2 '^ott stats: .*x1b.31mred: cannot be listed' stats $'\e[31mred'
expect 2 'no run directory' origin "$dumps/reference" "$dumps/same"
expect 2 'a second run is needed' origin "$dumps/reference"
expect 2 'GLOB=ATOL,RTOL' compare --tolerance 1 "$dumps/reference" "$dumps/same"
expect 2 'atol' compare --bitwise --atol 1 "$dumps/reference" "$dumps/same"
expect 0 'verdict: equal' compare "$dumps/reference" "$dumps/same"
expect 2 'both are the same folder' compare "$dumps/reference" "$dumps/../dumps/reference"
expect 1 'first divergence: loss: ' compare "$dumps/reference" "$dumps/other"
expect 1 '^ *loss: current 0.75, dumped 0.5, difference .current - dumped. 0.25' \
  compare --worst 1 "$dumps/reference" "$dumps/other"
expect 0 '1 within tolerance' compare --atol 0.5 "$dumps/reference" "$dumps/other"
expect 1 '"verdict": "different"' compare --format=json "$dumps/reference" "$dumps/other"
expect 1 '^,,loss,mismatch,float64' compare --format=csv "$dumps/reference" "$dumps/other"
expect 1 '<testsuite name="dump" tests="2" failures="2">' compare --format=junit "$dumps/reference" "$dumps/other"
expect 1 'first divergence' compare --format=junit -o "$dumps/report.xml" "$dumps/reference" "$dumps/other"
grep -q 'classname="dump" name="loss"' "$dumps/report.xml" || { echo "no report.xml" >&2; failures=$((failures + 1)); }
for number in nan inf -1; do
  for given in "compare --atol" "compare --rtol" "crosscheck --atol" "crosscheck --rtol" "hang --after" \
    "calibrate -o $TEST_TMPDIR/none --factor" "ab --margin" "ab --confidence" "curves --confidence" \
    "prof --begin" "prof --end" "trace --min-percent"; do
    # shellcheck disable=SC2086  # a command and its flags
    expect 2 "^ott .*: $number is not a finite number from [^ ]+ (on|to [^ ]+);" $given "$number" "$dumps/same" "$dumps/other"
  done
  expect 2 "^ott curves: --margin $number: needs a finite number" curves --margin "$number" "$dumps/same" --- "$dumps/other"
done
expect 2 '/nothing/report.xml' compare -o "$dumps/nothing/report.xml" "$dumps/reference" "$dumps/same"
expect 0 '1 within tolerance' compare --tolerance '*loss=0.5,0' "$dumps/reference" "$dumps/other"
expect 1 'verdict: different' compare --default-tolerances "$dumps/reference" "$dumps/other"
expect 0 'verdict: different' compare --warn-only "$dumps/reference" "$dumps/other"
expect 2 'cut/tensors.json' compare "$dumps/reference" "$dumps/cut"
expect 2 'no such directory' compare "$dumps/reference" "$dumps/nothing"
expect 2 'layout compares two runs' crosscheck --layout "$dumps/layout.textproto" "$dumps/reference"
expect 2 'layout.textproto' crosscheck --layout "$dumps/layout.textproto" "$dumps/reference" "$dumps/same"
printf 'b { axis: 1 }' > "$dumps/layout.textproto"
expect 2 'layout.textproto:1:.*no field named "axis"' \
  crosscheck --layout "$dumps/layout.textproto" "$dumps/reference" "$dumps/same"
expect 2 'excludes' crosscheck --layout "$dumps/layout.textproto" --replicated '*' "$dumps/reference" "$dumps/same"
for run in reference same other; do
  mkdir -p "$dumps/run_$run/rank_00000/dumps"
  cp -r "$dumps/$run" "$dumps/run_$run/rank_00000/dumps/0"
  printf '{"world_size": 1}' > "$dumps/run_$run/run.json"
done
expect 1 'first divergence: iteration 0, rank 0, loss' report "$dumps/run_other" --reference "$dumps/run_reference"
expect 0 'verdict: equal' report "$dumps/run_same" --reference "$dumps/run_reference"
expect 2 'no rank has a trace of torch.profiler' prof "$dumps/run_same"
trace='[{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":10}]'
mkdir -p "$dumps"/{traces,run_same/rank_00001}
for file in traces/0.json run_same/rank_0000{0/torch.rank_00000,1/torch.rank_00001}.json; do
  echo "$trace" > "$dumps/$file"
done
expect 0 'rank_00001.json' prof "$dumps/run_same" --ranks 1
expect 2 'run_same: .*--ranks names 2' prof "$dumps/run_same" --ranks 0,1
expect 2 'excludes --host' prof --against "$dumps/traces/0.json" --host "$dumps/traces/0.json"
expect 2 'traces: has traces, and .*--reference' report "$dumps/traces" --reference "$dumps/nothing"
printf '\2\0\0\0\0\0\0\0{}' > "$dumps/empty.safetensors"
expect 2 'is no run' \
  report "$dumps/empty.safetensors" --reference "$dumps/empty.safetensors" --prometheus "$dumps/metrics"
expect 2 'no such file' prof "$dumps/nothing.sqlite"
expect 2 'neither rows' prof - <<< '{"a": 1}'
expect 0 '^1 .* 7$' prof <<< "{'kLongName': 'k', 'kDuration': 7}"
echo "{'kLongName': 'k', 'kDuration': 7}" > "$dumps/net.dict"
expect 0 '^1 .* 7$' prof -w 130 "$dumps/net.dict"
expect 2 'is no SQLite database' prof "$dumps/reference/tensors.json"
expect 2 "no column 'ops'" prof -c ops - < /dev/null
expect 2 'host takes no --op' prof --host --op mm - < /dev/null
expect 2 'host needs a capture' prof --host - < /dev/null
expect 2 'at needs a capture' prof --at '*' - <<< '{"op":"linear","sil":7}'
expect 2 'gpu needs a capture' prof --gpu H100 - <<< '{"op":"linear","sil":7}'
expect 2 'excludes --group-by' prof -c op --group-by op - < /dev/null
expect 2 'excludes --json' prof --csv --json - < /dev/null
expect 2 'there are V100' prof --gpu abacus - < /dev/null
expect 0 '^linear 1 7 100' prof --group-by op - <<< '{"op":"linear","sil":7}'
expect 0 '^linear,7' prof --csv -c op,sil --ranks 0,3 - <<< '{"op":"linear","sil":7,"rank":3}'
expect 0 '"sil":7' prof --json -c sil - <<< '{"op":"linear","sil":7}'
expect 2 'no run directory' stats "$dumps"
expect 2 'required' calibrate "$dumps/reference" "$dumps/same"
expect 2 'run.json' calibrate "$dumps/reference" "$dumps/same" -o "$dumps/tolerances.textproto"
printf 'tensors { path: "tensors.loss" atol: 0.25 }' > "$dumps/tolerances.textproto"
expect 0 '1 within tolerance' compare --tolerances "$dumps/tolerances.textproto" "$dumps/reference" "$dumps/other"
expect 2 'nothing.textproto' compare --tolerances nothing.textproto "$dumps/reference" "$dumps/other"
expect 2 "$dumps" crosscheck "$dumps"
expect 2 'run.json' crosscheck "$dumps" "$dumps"
expect 2 "$dumps.*run.json" crosscheck --reference-ranks 0,1 --replicated '*' "$dumps" "$dumps"

if [[ -c /dev/full ]]; then
  "$ott" compare "$dumps/reference" "$dumps/same" > /dev/full 2> "$dumps/full"
  [[ $? == 2 ]] && grep -q 'standard output: No space left' "$dumps/full" ||
    { echo "output that is lost goes unnoticed" >&2; failures=$((failures + 1)); }
else
  echo "/dev/full is no device here: whether lost output is noticed is not tested" >&2
fi

limited=$( (ulimit -f 0; "$ott" compare --format=junit -o "$dumps/limited.xml" "$dumps/reference" "$dumps/same") 2>&1)
[[ $? == 2 && $limited == *limited.xml* ]] || { echo "a limit of files ends it otherwise: $limited" >&2; failures=$((failures + 1)); }
[[ -z $(find "$dumps" -name '.ott_*') ]] || { echo "a temporary file was left" >&2; failures=$((failures + 1)); }

trace=$TEST_TMPDIR/trace.json
printf '{"traceEvents":[{"ph":"X","name":"forward","pid":0,"tid":1,"ts":1,"dur":2}]}' > "$trace"
expect 0 '^forward +100.0 %' trace --tree "$trace"
expect 0 '1 events of 1 traces' trace -o "$TEST_TMPDIR/joined.perfetto-trace" "$trace"
expect 2 'one of --output, --tree, --top, --gaps' trace "$trace"
expect 2 'no device was active' trace --gaps "$trace"
expect 2 'ends with .json' trace -o "$TEST_TMPDIR/joined.txt" "$trace"
expect 2 'no run directory' trace --tree "$dumps"

((failures == 0))
