#!/usr/bin/env bash
# share_test.sh MPIRUN OTT WRITE_RUNS: `mpirun -np N ott ...` says bit for bit what one process says, whether all see the
# files or each host has its own, and names who is lost. A process stands for a host by the folder that it works in.
set -euo pipefail

mpirun=$PWD/$1
ott=$PWD/$2
write_runs=$PWD/$3
export ott

fail() { echo "share_test: $*" >&2; exit 1; }

cd "$TEST_TMPDIR"
ranks=4
"$write_runs" whole $ranks

# Each host has what its ranks wrote, and the first one what rank 0 wrote beside them.
for ((host = 0; host < 3; ++host)); do
  for run in reference current planted stands; do
    mkdir -p "host_$host/$run"
    for ((rank = host; rank < ranks; rank += 3)); do
      cp -r "$(printf 'whole/%s/rank_%05d' $run $rank)" "host_$host/$run"
    done
  done
  mkdir -p "host_$host/traces"
  for ((rank = host; rank < ranks; rank += 3)); do cp "whole/traces/rank$rank.json" "host_$host/traces"; done
done
for run in reference current planted stands; do
  find "whole/$run" -maxdepth 1 -type f -exec cp {} "host_0/$run" \;
done

# together NAME RANKS FOLDER ARGUMENT...: in FOLDER, or in FOLDER_N as process N where there is no FOLDER.
together() {
  local name=$1 ranks=$2 folder=$3 code=0
  shift 3
  "$mpirun" "$ranks" sh -c "cd $folder 2> /dev/null || cd ${folder}_\$OMPI_COMM_WORLD_RANK; exec \"\$ott\" \"\$@\"" ott "$@" \
    > "$name.out" 2> "$name.err" || code=$?
  echo "$code" > "$name.code"
}

check() {
  local code=0
  (cd whole && "$ott" "$@") > one.out 2> one.err || code=$?
  echo "$code" > one.code
  local where
  for where in "2 whole" "3 whole" "3 host"; do
    # shellcheck disable=SC2086 # two words
    together several $where "$@"
    cmp one.out several.out || { diff one.out several.out >&2 || true; cat several.err >&2; fail "ott $* by $where"; }
    [[ $(< one.code) == "$(< several.code)" ]] || fail "ott $* by $where: $(< several.code) instead of $code"
    grep -q "processes on 1 host: [1-9][0-9]* of [0-9]* pieces" several.err || { cat several.err >&2; fail "ott $* by $where: nobody worked"; }
  done
  [[ -s one.out ]] || fail "ott $*: says nothing"
  echo "ott $*: exit code $code, $(wc -c < one.out) bytes"
}

check compare reference current
check compare reference current --atol 1e-3 --format csv
check compare reference reference/
check report planted
check report planted --format json
check stats planted
check whatif planted
check hang stands
check report traces
check report traces --format json
check crosscheck reference current

# A launcher's process that is ended, or a host whose files cannot be read, is not left out silently.
echo "share_test: passed"
