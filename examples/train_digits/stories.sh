#!/usr/bin/env bash
# stories.sh MPIRUN TRAIN_DIGITS OTT OUT [FLAG...]: trains with four ranks in five stories, and fails unless each comes out:
#   1. a slow rank is named;  2. an optimized kernel is within tolerance of the reference run, and not bitwise equal;
#   3. a flipped bit is found while training;  4. `ott stats`, `ott report` and `ott compare` say the same afterwards;
#   5. a rank that holds the others up is named, though all work equally long.
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

tell() { printf '\n=== %s\n' "$*"; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

# expect LOG PATTERN: the story came out.
expect() {
  grep -qE -- "$2" "$out/$1" || fail "$out/$1 does not say '$2'"
}

# run EXIT_CODE LOG COMMAND...: output shown and kept, exit code checked.
run() {
  local expected=$1 log=$out/$2 code=0
  shift 2
  "$@" 2>&1 | tee "$log" || code=${PIPESTATUS[0]}
  [[ $code == "$expected" ]] || fail "exit code $code instead of $expected: $*"
}

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

mkdir -p "$out"

tell "1. Reference run; rank $slow_rank takes $delay_ms ms longer for each forward pass. Who is slow?"
train 0 reference --delay "$slow_rank" "$delay_ms" forward
expect reference.log "slowest rank: rank $slow_rank "
expect reference.log "test accuracy (9[5-9]|100)"
expect reference.log "the same, bit for bit"

tell "2. An optimized kernel, which sums in another order. Is it still right?"
train 0 optimized --kernel optimized --reference "$out/reference"
expect optimized.log "within tolerance"
expect optimized.log "bitwise"
compare 0 optimized.txt --atol 1e-3 --rtol 1e-2 "$out/reference" "$out/optimized"
compare 1 optimized-bitwise.txt --bitwise "$out/reference" "$out/optimized"

tell "3. Bit ${fault[4]} of ${fault[2]}[${fault[3]}] flips on rank ${fault[0]} at iteration ${fault[1]}. Is it found?"
train 1 faulty --fault "${fault[@]}"
expect faulty.log "iteration ${fault[1]}: replicas DIFFER in tensor \"${fault[2]}\".*rank ${fault[0]} "
expect faulty.log "element ${fault[3]} .* on rank ${fault[0]} .*flipped bit ${fault[4]}$"

tell "4. The same questions, asked afterwards from the run directories"
echo "\$ ott stats $out/reference"
run 0 reference.txt "$ott" stats "$out/reference"
expect reference.txt "slowest rank: rank $slow_rank "
echo "\$ ott report $out/faulty --html $out/faulty.html"
run 1 report.txt "$ott" report "$out/faulty" --html "$out/faulty.html"
expect report.txt "first: iteration ${fault[1]}: replicas DIFFER in tensor \"${fault[2]}\""
expect faulty.html "first: iteration ${fault[1]}: replicas DIFFER"
compare 1 faulty.txt "$out/reference" "$out/faulty"
expect faulty.txt "iteration ${fault[1]}, rank ${fault[0]}, .*${fault[2]}.*element ${fault[3]} .*flipped bit ${fault[4]},"

tell "5. Rank $slow_rank takes $((4 * delay_ms)) ms longer to come to the sum of the loss, the others to come to that of the gradients: the
=== same work on all ranks. Who holds whom up?"
delays=(--delay "$slow_rank" $((4 * delay_ms)) forward)
for rank in 0 2 3; do delays+=(--delay "$rank" $((4 * delay_ms)) backward); done
train 0 hidden --iterations 100 "${delays[@]}"
expect hidden.log "slowest rank: none stands out"
expect hidden.log "all wait for rank $slow_rank .* at \"sum_loss\""
"$ott" report "$out/hidden" > "$out/hidden.txt"
expect hidden.txt "all wait for rank $slow_rank .* at \"sum_loss\""
