#!/usr/bin/env bash
# train_mlp_test.sh TRAIN_MLP REFERENCE OTT [FLAG...]: the C++ training is bit for bit the Python one, and one changed
# weight is found. FLAGs are passed to TRAIN_MLP.
set -euo pipefail

train_mlp=$1
reference=$2
ott=$3
shift 3
out=$TEST_TMPDIR

fail() { echo "train_mlp_test: $*" >&2; cat "$out"/*.txt >&2; exit 1; }

# compare EXIT_CODE RUN FLAG...: against Python's dumps.
compare() {
  local expected=$1 run=$2 code=0
  shift 2
  "$ott" compare "$@" "$out/python" "$out/$run/rank_00000/dumps" > "$out/$run.txt" || code=$?
  [[ $code == "$expected" ]] || fail "ott compare ended with $code instead of $expected"
}

python3 "$reference" --out "$out/python" > "$out/python.log" ||
  fail "$reference failed; it needs python3-torch and python3-numpy"
"$train_mlp" --run "$out/cpp" "$@" | tee "$out/cpp.log"
compare 0 cpp
[[ $(tail -1 "$out/cpp.log") == "$(cat "$out/python.log")" ]] || fail "not the loss of Python"

if [[ $* == *--emit-nvtx* ]]; then
  for range in layer:layer1 'aten::addmm, seq = ' 'AddmmBackward0, seq = '; do
    grep -q "$range" "$out/cpp/rank_00000/trace.json" || fail "not in the trace: $range"
  done
fi

"$train_mlp" --run "$out/faulty" --fault 20 "$@"
compare 1 faulty --atol 1e-4
grep -q 'first divergence: iteration 20, layer1.weight: .*\[3, 5\]' "$out/faulty.txt" || fail "not found: the weight"
