#!/usr/bin/env bash
# observer_effect_test.sh MPIRUN TRAIN_DIGITS: the training ends with the same weights, bit for bit, whether every
# iteration is cross-checked and dumped or nothing is observed.
set -euo pipefail

out=$TEST_TMPDIR/observer_effect
mkdir -p "$out"
train() { "$1" 4 "$2" --iterations 60 --weights "$out/$3" "${@:4}" > "$out/$3.log" 2>&1 || { cat "$out/$3.log" >&2; exit 1; }; }

train "$1" "$2" off --off
train "$1" "$2" on --run "$out/run" --every 1
train "$1" "$2" against_reference --run "$out/run2" --every 1 --reference "$out/run"
train "$1" "$2" other_seed --off --seed 2
cmp "$out/off" "$out/on"
cmp "$out/off" "$out/against_reference"
grep -q 'replicas: 60 checks, all equal bit for bit' "$out/on.log"
grep -q 'run: 60 checks, all equal bit for bit' "$out/against_reference.log"
[[ $(ls "$out/run/rank_00003/dumps" | wc -l) == 60 ]]
# Weights that do depend on what is trained.
if cmp -s "$out/off" "$out/other_seed"; then echo "the weights do not depend on the seed" >&2; exit 1; fi
