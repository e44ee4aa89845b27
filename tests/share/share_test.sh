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
cp -rL "$OLDPWD/core/checkpoint/testdata" whole/checkpoints

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

# check WHERE ARGUMENT...: WHERE is a number of processes and a folder.
check() {
  local where=$1 code=0
  shift
  (cd whole && "$ott" "$@") > one.out 2> one.err || code=$?
  echo "$code" > one.code
  # shellcheck disable=SC2086 # two words
  together several $where "$@"
  cmp one.out several.out || { diff one.out several.out >&2 || true; cat several.err >&2; fail "ott $* by $where"; }
  [[ $(< one.code) == "$(< several.code)" ]] || fail "ott $* by $where: $(< several.code) instead of $code"
  grep -q "processes on 1 host: [1-9][0-9]* of [0-9]* pieces" several.err || { cat several.err >&2; fail "ott $* by $where: nobody worked"; }
  [[ -s one.out ]] || fail "ott $*: says nothing"
  echo "ott $*: exit code $code, $(wc -c < one.out) bytes"
}

check "3 host" compare reference current
check "2 whole" compare reference current --atol 1e-3 --format csv
check "3 host" compare reference current --atol 1e-3 --format csv
check "3 host" compare reference reference/
check "3 host" report planted
check "3 whole" report planted --format json
check "3 host" stats planted
check "3 host" whatif planted
check "3 host" hang stands
check "2 whole" report traces
check "3 host" report traces --format json
check "3 host" crosscheck reference current
for processes in 2 3; do
  for format in text csv; do
    check "$processes whole" compare checkpoints/whole.pt checkpoints/fault_step.pt --format $format
    check "$processes whole" compare checkpoints/dcp_1 checkpoints/dcp_2 --format $format
    # Beside a listing by each.
    (($(sed -n 's/.* 1 host: \([0-9]*\) of .*/\1/p' several.err) >= processes)) || { cat several.err >&2; fail "only one process compared checkpoints"; }
  done
done

# Open MPI looks for no fast networks, which takes long when it starts, and with `ofi` when it ends.
MPIRUN_OPTIONS="--mca pml_base_verbose 10 --mca btl_base_verbose 10" together networks 2 whole compare reference current
found=$(sed -n 's/.*: found loaded component //p' networks.err | sort -u | tr '\n' ' ')
[[ $found == *"ob1 "*"tcp "* && ! $found =~ (cm|ucx|ofi|openib)" " ]] || { cat networks.err >&2; fail "Open MPI opens $found"; }

# One process says the same with one thread and with four.
for arguments in "compare reference current --atol 1e-3" "report traces --format json" "crosscheck reference current" "whatif planted"; do
  for threads in 1 4; do
    # shellcheck disable=SC2086 # several words
    (cd whole && "$ott" $arguments --threads $threads) > "threads_$threads" || (($? == 1)) || fail "ott $arguments --threads $threads ends with $?"
  done
  cmp threads_1 threads_4 || fail "ott $arguments: other threads, another answer"
done

# refuses CODE TEXT FOLDER ARGUMENT...
refuses() {
  local expected=$1 text=$2 folder=$3
  shift 3
  together refused 3 "$folder" "$@"
  [[ $(< refused.code) == "$expected" ]] || { cat refused.out refused.err >&2; fail "ott $*: exit code $(< refused.code) instead of $expected"; }
  grep -qF -- "$text" refused.out refused.err || { cat refused.out refused.err >&2; fail "ott $*: does not say '$text'"; }
  echo "ott $*: $text"
}

if ldd "$ott" | grep libmpi; then fail "ott needs MPI to start"; fi
cp "$ott" without_mpi
with_mpi=$ott
ott=$PWD/without_mpi
refuses 2 "which needs $PWD/ott-mpi: No such file or directory" whole report planted
ott=$with_mpi

refuses 2 "is answered by one process, and a launcher started 3" whole origin reference current
refuses 2 "reference: the dumps of rank 1 are on " host crosscheck reference
refuses 2 "traces/rank1.json: is on " host prof traces/rank1.json
refuses 2 "traces/rank1.json: is on " host trace traces/rank1.json --output x.json
# A host without its files, and one whose files are damaged.
mv host_1/current/rank_00001 away
refuses 1 "current: nothing from rank 1" host compare reference current
mv away host_1/current/rank_00001
for run in reference current; do
  cp "host_2/$run/rank_00002/dumps/10/manifest.json" "$run.json"
  echo '{' > "host_2/$run/rank_00002/dumps/10/manifest.json"
done
refuses 2 "rank_00002/dumps/10/manifest.json" host compare reference current --atol 5
for run in reference current; do cp "$run.json" "host_2/$run/rank_00002/dumps/10/manifest.json"; done

# Another host's checkpoint of the same name is another one.
mkdir host_{0,1,2}/checkpoints
cp whole/checkpoints/{whole,fault_step}.pt host_0/checkpoints
for host in 1 2; do cp whole/checkpoints/whole.pt host_$host/checkpoints/fault_step.pt; cp whole/checkpoints/whole.pt host_$host/checkpoints; done
refuses 1 "optimizer step DIFFER (6 of 6)" host compare checkpoints/whole.pt checkpoints/fault_step.pt
cmp <(cd whole && "$ott" compare checkpoints/whole.pt checkpoints/fault_step.pt) refused.out || fail "other hosts' checkpoints, another answer"
grep -qF "1 host: 2 of " refused.err || fail "another host's checkpoint was compared"
# So is one whose index is the same file, but not what it names.
for host in 0 1 2; do
  cp -r whole/checkpoints/sharded host_$host
  ln -f whole/checkpoints/sharded/*.index.json host_$host/sharded
  ln whole/checkpoints/weights.pt host_$host
done
for file in host_[12]/sharded/model-*; do truncate -s -1 "$file"; printf '\x7f' >> "$file"; done
refuses 0 "verdict: equal" host compare sharded/model.safetensors.index.json weights.pt

# A process that may not have the memory to read the checkpoint.
# safetensors FILE BYTES: with four numbers and so many bytes more.
safetensors() {
  local header='{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"b":{"dtype":"U8","shape":['$2'],"data_offsets":[16,'$((16 + $2))']}}'
  # shellcheck disable=SC2059 # the length is a byte
  printf "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header" > "$1"
  truncate -s $((8 + ${#header} + 16 + $2)) "$1"
}
safetensors whole/small.safetensors 4
safetensors whole/large.safetensors $((3 << 30))
# A sanitizer needs more addresses.
if (ulimit -v 2000000; "$ott" --version > limited.out 2>&1); then
  code=0
  "$mpirun" 2 sh -c 'cd whole; [ $OMPI_COMM_WORLD_RANK = 0 ] || ulimit -v 2000000; exec "$ott" compare small.safetensors large.safetensors' \
    > limited.out 2> limited.err || code=$?
  for text in "a: could not compare: large.safetensors: cannot map: Cannot allocate memory" "weights NOT COMPARED (2 of 2)"; do
    ((code == 2)) && grep -qF "$text" limited.out || { cat limited.out limited.err >&2; fail "a process cannot read, and ott ends with $code"; }
  done
fi

# A process that dies while it reads, here since it may not have the memory: mpirun ends the others, and the first one says
# what it knows before.
truncate -s 3G host_2/planted/rank_00002/stopwatch.pb
export MPIRUN_OPTIONS="--mca odls_base_sigkill_timeout 5"
code=0
"$mpirun" 3 sh -c 'cd host_$OMPI_COMM_WORLD_RANK; ulimit -c 0; [ $OMPI_COMM_WORLD_RANK != 2 ] || ulimit -v 2000000
  exec "$ott" report planted' > dead.out 2> dead.err || code=$?
((code != 0)) || fail "a job with a dead process ends with 0"
for text in "without process 2 (" "INCOMPLETE: "; do
  grep -qF "$text" dead.out dead.err || { cat dead.out dead.err >&2; fail "a process died, and nobody says '$text'"; }
done
echo "share_test: passed"
