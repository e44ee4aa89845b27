#!/usr/bin/env bash
# ab_live_rates.sh OTT TRAIN_DIGITS COMPARISONS [FIRST_SEED [RANKS]]: how often `ott ab` is wrong on this machine, as loaded
# as it is. Compares the digits example COMPARISONS times with itself, and as often with itself on 5 % more images in
# each iteration, at most 20 runs a side; prints each answer and a table of them. KEEP: a folder for the reports.
set -uo pipefail

ott=$(realpath "$1")
train=$(realpath "$2")
comparisons=$3
first=${4:-1}
ranks=${5:-1}
data=$(realpath "${DIGITS:-examples/train_digits/data/digits.csv.gz}")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
# Measures only what `ott ab` adds to it.
unset OTT_CONFIG

declare -A count=() runs=()

# compare STORY SEED IMAGES_B: of 40 images in an iteration with IMAGES_B.
compare() {
  local run=(mpirun --quiet --oversubscribe --bind-to none -np "$ranks" "$train" --data "$data" --iterations 400 --batch)
  local json verdict num_runs
  json=$("$ott" ab --seed "$2" --format json -- "${run[@]}" 40 --- "${run[@]}" "$3" 2> /dev/null)
  [[ -z ${KEEP-} ]] || echo "$json" > "$KEEP/$3_$2.json"
  member() { grep -m 1 "\"$1\":" <<< "$json" | sed 's/^[^:]*: "\?//; s/"\?,$//'; }
  verdict=$(member verdict)
  echo "$1, seed $2: $(member answer); load $(cut -d' ' -f1 /proc/loadavg)"
  count[$1,${verdict:-failed}]=$((${count[$1,${verdict:-failed}]:-0} + 1))
  num_runs=$(member runs_a)
  runs[$1]=$((${runs[$1]:-0} + ${num_runs:-0}))
}

for ((seed = first; seed < first + comparisons; ++seed)); do
  compare "A against A" "$seed" 40
  compare "A against A + 5 %" "$seed" 42
done

echo "$comparisons comparisons each, $ranks ranks, $(nproc) CPUs"
printf '%-18s' ""
printf '%13s' faster slower same "cannot tell" failed "runs a side"
echo
for story in "A against A" "A against A + 5 %"; do
  printf '%-18s' "$story"
  for verdict in faster slower same "cannot tell" failed; do printf '%13d' "${count[$story,$verdict]:-0}"; done
  awk "BEGIN { printf \"%13.1f\\n\", ${runs[$story]} / $comparisons }"
done
