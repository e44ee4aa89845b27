#!/usr/bin/env bash
# stories.sh MPIRUN TRAIN_TRANSFORMER OTT OUT: two more stories than those of train_digits, and fails unless each comes out:
#   7. the operation that is wrong is named;  8. the rank for which a job stood is named.
# Leaves run directories in OUT, of which it makes those that it needs.
set -euo pipefail

mpirun=$1
train=$2
ott=$3
out=$4

. "$(dirname "$0")/../story_functions.sh"

mkdir -p "$out"

tell "7. A transformer's mask lets attention see one token too many, from iteration 4 on. Which operation broke it?"
run 0 transformer.log "$mpirun" 4 "$train" --run "$out/transformer" --op_log
run 0 wrong_mask.log "$mpirun" 4 "$train" --run "$out/wrong_mask" --op_log --plant wrong_mask --plant_iteration 4
echo "\$ ott origin $out/transformer $out/wrong_mask"
run 1 origin.txt "$ott" origin "$out/transformer" "$out/wrong_mask"
expect origin.txt "origin: iteration 4, on all 4 ranks, forward: attention \(layers.0\), .*: inputs equal bit for bit"

tell "8. Rank 3 leaves out a collective in iteration 4, and the ranks end the job when they see that it stands. Why did it hang?"
ulimit -c 0
! "$mpirun" 4 "$train" --run "$out/hanging" --hang_after 2 --plant skipped_collective --plant_rank 3 --plant_iteration 4 \
  > "$out/hanging.log" 2>&1 || fail "a job that stood ended well"
echo "\$ ott hang $out/hanging"
run 1 hanging.txt "$ott" hang "$out/hanging"
expect hanging.txt "rank 3 .* never came to average_gradients .*\(iteration 4\)"
