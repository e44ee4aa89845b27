#!/usr/bin/env bash
# counters_test.sh OTT CAPTURE.gz OPERATIONS: the FLOPs of each matrix product are those that a GPU's own counters saw, within 0.1 %: biases are added
# outside of Tensor Cores. Each kernel that they saw on Tensor Cores is said to be there.
set -euo pipefail

gzip -dc "$2" > "$TEST_TMPDIR/capture.sqlite"
"$1" prof "$TEST_TMPDIR/capture.sqlite" --json -c kernel,op,dir,tc,flops > "$TEST_TMPDIR/rows"
python3 - "$TEST_TMPDIR/rows" "$3" << 'EOF'
import json, sys
with open(sys.argv[1]) as file:
    rows = [json.loads(line) for line in file]
with open(sys.argv[2]) as file:
    counted = [int(line) for line in file]
assert len(rows) == len(counted) == 59, len(rows)
assert all(row["tc"] == "1" for row in rows), rows
# Attention is left out: a label does not tell whether it is causal, which halves its FLOPs.
products = [(row, count) for row, count in zip(rows, counted) if "attention" not in row["op"]]
assert len(products) == 51 and all(row["op"] in ("addmm", "mm") for row, _ in products), products
for row, count in products:
    assert 0 <= row["flops"] / count - 1 < 0.0011, (row, count)
assert all(row["flops"] is None for row in rows if "attention" in row["op"])
EOF
