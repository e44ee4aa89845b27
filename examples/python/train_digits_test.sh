#!/usr/bin/env bash
# train_digits_test.sh MPIRUN START_RANKS TRAIN_DIGITS: two ranks by mpirun, of which one flips a bit, and two by torchrun's
# variables, of which one is slow and which compare with the others; fails unless both are found.
set -euo pipefail

mpirun=$1
start_ranks=$2
# Bazel 4 starts a py_binary by a program called python, which Debian has not.
train_digits=(python3 "$3" --iterations 60 --every 10)
out=$TEST_TMPDIR

fail() { echo "FAILED: $*" >&2; exit 1; }

# run EXIT_CODE LOG COMMAND...: output shown and kept, exit code checked.
run() {
  local expected=$1 log=$out/$2 code=0
  shift 2
  "$@" 2>&1 | tee "$log" || code=${PIPESTATUS[0]}
  [[ $code == "$expected" ]] || fail "exit code $code instead of $expected: $*"
}

expect() { grep -qE -- "$2" "$out/$1" || fail "$1 does not say '$2'"; }

run 0 reference.log "$mpirun" 2 "${train_digits[@]}" --run "$out/reference"
expect reference.log "the same, bit for bit, on all ranks"
expect reference.log "6 checks, all equal bit for bit"

run 1 faulty.log "$mpirun" 2 "${train_digits[@]}" --run "$out/faulty" --fault 1 30 weights.w1 777 20
expect faulty.log 'iteration 30: replicas DIFFER in tensor "weights.w1"'
expect faulty.log "element 777 .*flipped bit 20$"

run 0 slow.log "$start_ranks" 2 "${train_digits[@]}" --run "$out/slow" --delay 1 20 forward --kernel optimized \
  --reference "$out/reference"
expect slow.log "slowest rank: rank 1 "
expect slow.log "within tolerance"
