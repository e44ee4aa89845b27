#!/usr/bin/env bash
# hang_table.sh MPIRUN START_RANKS HANG_RANK OTT SEEDS TRANSPORT...: runs of sixteen kinds with real ranks, 4 to 8 of
# them or RANKS, each kind with as many seeds. A seed chooses the rank, the iteration and how long an iteration takes. Prints a
# row for each; ends with 0 if the run itself and `ott hang` each named the culprit and nobody else, and no clean and
# no slow run was called a hang. SCENARIOS: some of the kinds only.
set -uo pipefail
mpirun=$1 start_ranks=$2 hang_rank=$3 ott=$4 seeds=$5
shift 5
transports=("$@")
# Longer than what a busy machine makes a healthy rank wait.
export HANG_AFTER=${HANG_AFTER:-2}
dir=$(mktemp -d "${TEST_TMPDIR:-/tmp}/hang_table.XXXXXX")
trap 'rm -rf "$dir"' EXIT

# culprits FILE: "2" or "1,3" or ""
culprits() {
  tr -d ' \n' <"$1" | sed -n 's/.*"culprits":\[\([0-9,]*\)\].*/\1/p'
}

bad=0 rows=0
# one TRANSPORT SCENARIO SEED; halves of two ranks have nobody who waits
one() {
  local transport=$1 scenario=$2 seed=$3 ranks=${RANKS:-$((4 + $3 % 5))} run=$dir/$1_$2_$3 output=$dir/output
  local victim named asked code verdict=""
  [[ $ranks -lt 4 && ($scenario == apart || $scenario == twice || $scenario == order) ]] && return
  if [[ $transport == mpi ]]; then
    MPIRUN_OPTIONS=--enable-recovery setsid "$mpirun" "$ranks" "$hang_rank" "$scenario" "$seed" "$run" mpi >"$output" 2>&1 &
  else
    setsid "$start_ranks" "$ranks" "$hang_rank" "$scenario" "$seed" "$run" tcp >"$output" 2>&1 &
  fi
  local job=$! i
  for ((i = 0; i < 600; ++i)); do
    [[ -e $run/hang.json ]] && break
    kill -0 "$job" 2>/dev/null || break
    sleep 0.1
  done
  "$ott" hang "$run" --after "$HANG_AFTER" --format json >"$dir/asked" 2>&1
  code=$?
  victim=$(sed -n 's/.*victim \([0-9]*\) in .*/\1/p' "$output")
  named=""
  [[ -e $run/hang.json ]] && named=$(culprits "$run/hang.json")
  asked=$(culprits "$dir/asked")
  if [[ $scenario == leave || $scenario == check ]]; then
    # Whoever gives up meanwhile, and whatever kills the others, is not what it hangs for.
    sleep "$HANG_AFTER"
    kill -KILL -- "-$job" 2>/dev/null
    pkill -KILL -s "$job" 2>/dev/null
    "$ott" hang "$run" --after "$HANG_AFTER" --format json >"$dir/asked" 2>&1
    code=$?
    [[ -e $run/hang.json ]] && named=$(culprits "$run/hang.json")
    asked=$(culprits "$dir/asked")
  fi
  if [[ $scenario == clean || $scenario == slow || $scenario == compile ]]; then
    [[ ! -e $run/hang.json && $code == 0 ]] && verdict=silent
  else
    # Of two ranks that call different things, nobody knows which is wrong.
    [[ $ranks == 2 && " skip other size extra " == *" $scenario "* ]] && victim=""
    [[ $named == "$victim" && $asked == "$victim" && $code == 1 ]] && verdict=named
  fi
  kill -TERM -- "-$job" 2>/dev/null
  sleep 0.2
  kill -KILL -- "-$job" 2>/dev/null
  pkill -KILL -s "$job" 2>/dev/null
  wait "$job" 2>/dev/null
  ((++rows))
  if [[ -z $verdict ]]; then
    ((++bad))
    verdict="WRONG (named '$named', asked '$asked', exit code $code)"
    cat "$output" "$dir/asked"
  fi
  printf '%-4s %-6s seed %d  %d ranks  victim %-2s %-7s %s\n' "$transport" "$scenario" "$seed" "$ranks" "$victim" \
    "$verdict" "$(sed -n 's/.*"verdict": *"\(.*\)",$/\1/p' "$dir/asked" | head -1)"
}

for transport in "${transports[@]}"; do
  for scenario in ${SCENARIOS:-stop kill loop data skip other size extra order apart twice check leave slow compile clean}; do
    for ((seed = 1; seed <= seeds; ++seed)); do one "$transport" "$scenario" "$seed"; done
  done
done
echo "$((rows - bad)) of $rows runs judged right"
[[ $bad == 0 ]]
