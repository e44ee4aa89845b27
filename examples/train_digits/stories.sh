#!/usr/bin/env bash
# stories.sh MPIRUN TRAIN_DIGITS OTT OUT [FLAG...]: trains with four ranks in six stories, and fails unless each comes out:
#   1. where nothing is wrong, nothing is claimed;  2. a slow rank is named, and what mending it would save is what it then
#   saves;  3. an optimized kernel is within tolerance of the reference run, not bitwise equal, and faster, not so itself;
#   4. a flipped bit is found while training, and the operation that read it;  5. `ott stats`, `ott report` and
#   `ott compare` say the same afterwards;  6. a rank that holds the others up is named, though all work equally long.
# Leaves run directories in OUT, which must not exist.
set -euo pipefail

mpirun=$1
train_digits=$2
ott=$3
out=$4
flags=("${@:5}")  # of each training
slow_rank=1
# Longer where an iteration takes longer than on an idle CPU.
delay_ms=${STORY_DELAY_MS:-5}
fault=(2 30 weights.w1 777 20)  # rank, iteration, tensor, element, bit

. "$(dirname "$0")/../story_functions.sh"

train() {
  local expected=$1 name=$2
  shift 2
  run "$expected" "$name.log" "$mpirun" 4 "$train_digits" --run "$out/$name" --every 10 "${flags[@]}" "$@"
}

compare() {
  local expected=$1 log=$2
  shift 2
  echo "\$ ott compare $*"
  run "$expected" "$log" "$ott" compare "$@"
}

# ab LOG COMMAND_A --- COMMAND_B: B is faster. Not where flags choose a device, which the tests stand in for.
ab() {
  local log=$1
  shift
  ((${#flags[@]} == 0)) || return 0
  echo "\$ ott ab -- $*"
  "$ott" ab --max-runs 8 --html "$out/ab.html" -- "$@" 2> /dev/null > "$out/$log" || true
  head -2 "$out/$log"
  expect "$log" "^B is faster by"
}

mkdir -p "$out"

# docs/how_sure.md says how often one of several ranks that are alike is named nonetheless.
tell "1. Four ranks that are alike. Is anything claimed?"
train 0 clean
expect clean.log "cross-check of replicas: .* all equal bit for bit"
expect clean.log "test accuracy (9[5-9]|100)"
expect clean.log "the same, bit for bit"

tell "2. Rank $slow_rank takes $delay_ms ms longer for each forward pass. Who is slow, what would mending it save, and does it?"
slow=(--delay "$slow_rank" "$delay_ms" forward)
train 0 reference "${slow[@]}"
expect reference.log "slowest rank: rank $slow_rank "
expect reference.log "what if: without rank $slow_rank .*\"forward\" an iteration takes"
expect reference.log "the same, bit for bit"
ab mended.txt "$mpirun" 4 "$train_digits" --iterations 100 "${slow[@]}" --- "$mpirun" 4 "$train_digits" --iterations 100

tell "3. An optimized kernel, which sums in another order. Is it still right, and did it become faster?"
train 0 optimized --kernel optimized --reference "$out/reference"
expect optimized.log "within tolerance"
expect optimized.log "bitwise"
compare 0 optimized.txt --atol 1e-3 --rtol 1e-2 "$out/reference" "$out/optimized"
compare 1 optimized-bitwise.txt --bitwise "$out/reference" "$out/optimized"
ab faster.txt "$train_digits" --- "$train_digits" --kernel optimized
if ((${#flags[@]} == 0)); then
  echo "And the same kernel, against itself?"
  "$ott" ab --confidence 99.9 --max-runs 10 -- "$train_digits" --- "$train_digits" > "$out/same.txt" 2> /dev/null || (($? == 2))
  head -1 "$out/same.txt"
  expect same.txt "^(B is the same|cannot tell)"
fi

tell "4. Bit ${fault[4]} of ${fault[2]}[${fault[3]}] flips on rank ${fault[0]} at iteration ${fault[1]}. Is it found?"
train 1 faulty --fault "${fault[@]}"
expect faulty.log "iteration ${fault[1]}: replicas DIFFER in tensor \"${fault[2]}\".*rank ${fault[0]} "
expect faulty.log "element ${fault[3]} .* on rank ${fault[0]} .*flipped bit ${fault[4]}$"
echo "Which operation broke it? None: the weight is not what the last update of it wrote."
echo "\$ ott origin $out/reference $out/faulty"
run 1 origin.txt "$ott" origin "$out/reference" "$out/faulty"
expect origin.txt "iteration $((fault[1] + 1)), on rank ${fault[0]} alone, forward: linear .*it is not what sgd \(w1\) in iteration ${fault[1]} wrote"

tell "5. The same questions, asked afterwards from the run directories"
echo "\$ ott stats $out/reference"
run 1 reference.txt "$ott" stats "$out/reference"
expect reference.txt "slowest rank: rank $slow_rank "
echo "\$ ott report $out/faulty --html $out/faulty.html"
run 1 report.txt "$ott" report "$out/faulty" --html "$out/faulty.html"
expect report.txt "first: iteration ${fault[1]}: replicas DIFFER in tensor \"${fault[2]}\""
expect faulty.html "first: iteration ${fault[1]}: replicas DIFFER"
compare 1 faulty.txt "$out/reference" "$out/faulty"
expect faulty.txt "iteration ${fault[1]}, rank ${fault[0]}, .*${fault[2]}.*element ${fault[3]} .*flipped bit ${fault[4]},"

tell "6. Rank $slow_rank takes $((4 * delay_ms)) ms longer to come to the sum of the loss, the others to come to that of the gradients: the
=== same work on all ranks. Who holds whom up?"
delays=(--delay "$slow_rank" $((4 * delay_ms)) forward)
for rank in 0 2 3; do delays+=(--delay "$rank" $((4 * delay_ms)) backward); done
train 0 hidden --iterations 100 "${delays[@]}"
expect hidden.log "slowest rank: none stands out"
expect hidden.log "all wait for rank $slow_rank .* at \"sum_loss\""
run 1 hidden.txt "$ott" report "$out/hidden"
expect hidden.txt "all wait for rank $slow_rank .* at \"sum_loss\""
