#!/usr/bin/env bash
# device_profile_test.sh MPIRUN OTT CHECK_TRACE TRAIN_DIGITS: a training on devices is captured from outside; each kernel is
# joined to its op, and the capture to the run's own traces.
set -euo pipefail

mpirun=$1 ott=$2 check_trace=$3 train_digits=$4
dir=$TEST_TMPDIR
iterations=12
traced=3
# An iteration has two linear layers, relu and softmax, seven of their backward passes, four parameters.
kernels=15

fail() { printf 'device_profile_test: %s\n' "$*" >&2; exit 1; }

cat > "$dir/config.textproto" << EOF
run_dir: "$dir/run"
stopwatch { emit_nvtx: true }
nvtx { }
op_ranges { }
profile { skip_first: 5 warmup: 1 active: $traced repeat: 1 }
EOF
OTT_CONFIG=$dir/config.textproto "$mpirun" 2 "$ott" profile -o "$dir/kernels.sqlite" -- \
  "$train_digits" --device --nccl --iterations "$iterations" 2>&1 | tee "$dir/log"

for rank in 0 1; do
  capture=$dir/kernels.rank_0000$rank.sqlite
  grep -q "$(basename "$capture"): .* $((iterations * kernels)) kernels of train_digits" "$dir/log" || fail "kernels are missing"
  "$ott" prof "$capture" --csv -c op,dir,kernel,params > "$dir/table" 2> "$dir/notes"
  cat "$dir/notes"
  grep -q " $((iterations * kernels)) kernels joined to an op" "$dir/notes" || fail "kernels are not joined"
  # One note beside the file's own line: nothing was left over.
  [[ $(wc -l < "$dir/notes") == 2 ]] || fail "something is left over"
  for row in 'linear,fprop,ProductKernel' 'LinearBackward,bprop,SumRowsKernel' 'sgd,fprop,SgdKernel'; do
    grep -q "^\"\?$row" "$dir/table" || fail "no $row in:"$'\n'"$(head -40 "$dir/table")"
  done
  # Each copy to the host has its size, and the launch that it belongs to.
  python3 - "$capture" "$iterations" << 'EOF'
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
copies = connection.execute(
    "SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY AS m JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r "
    "ON r.correlationId = m.correlationId JOIN StringIds ON id = nameId "
    "WHERE copyKind = 2 AND bytes = 256 AND value LIKE 'cudaMemcpyAsync%' AND m.start >= r.start").fetchone()[0]
assert copies == int(sys.argv[2]), f"{copies} copies of losses"
waits = connection.execute("SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION").fetchone()[0]
assert waits >= copies, f"{waits} synchronisations"
EOF
done

"$ott" trace "$dir/run" --capture "$dir"/kernels.rank_0000[01].sqlite -o "$dir/joined.json" --gaps > "$dir/gaps"
grep -E 'devices busy: .* in 2 traces' "$dir/gaps" || fail "no devices in: $(cat "$dir/gaps")"
python3 "$check_trace" "$dir/joined.json"
# Both ranks have them; at the window's ends a kernel may run a moment later than its iteration.
found=$(grep -o ProductKernel "$dir/joined.json" | wc -l)
((found >= 2 * (traced - 1) * 5 && found <= 2 * (traced + 1) * 5)) || fail "$found matrix products in the joined trace"
