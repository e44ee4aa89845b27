#!/usr/bin/env bash
# start_ranks.sh RANKS PROGRAM [ARG...]: starts a program on that many ranks of this machine with the variables that
# torchrun sets. Ends with 0 if each rank did; RANK 0 alone writes the test report that XML_OUTPUT_FILE names.
set -uo pipefail

ranks=$1
shift
# A port that nobody listens at.
while port=$((20000 + RANDOM % 12000)); do
  (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
done
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$port WORLD_SIZE=$ranks
pids=()
for ((rank = ranks - 1; rank >= 0; --rank)); do
  ((rank == 0)) || report=(env -u XML_OUTPUT_FILE)
  ((rank == 0)) && report=(env)
  "${report[@]}" RANK=$rank "$@" &
  pids+=($!)
done
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
exit $status
