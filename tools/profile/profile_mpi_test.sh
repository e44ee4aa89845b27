#!/usr/bin/env bash
# profile_mpi_test.sh MPIRUN OTT PROGRAM: each rank of a job has a file of its own.
set -euo pipefail

mpirun=$1
ott=$2
program=$3
output=$TEST_TMPDIR/out/run.sqlite

# The ranks are captured one by one.
"$mpirun" 2 "$ott" profile -o "$output" -- "$program" ranges 3
# The job is captured as a whole.
"$ott" profile -o "$TEST_TMPDIR/job.sqlite" -- "$mpirun" 2 "$program" ranges 3

python3 - "$TEST_TMPDIR"/{out/run,job}.rank_0000{0,1}.sqlite << 'EOF'
import sqlite3, sys
for path in sys.argv[1:]:
    connection = sqlite3.connect(path)
    count, = connection.execute("SELECT COUNT(*) FROM NVTX_EVENTS WHERE text = 'range' AND end > start").fetchone()
    rank, = connection.execute("SELECT value FROM META_DATA_CAPTURE WHERE name = 'PROCESS_0:RANK'").fetchone()
    assert count == 3, (path, count)
    assert path.endswith(f".rank_0000{rank}.sqlite"), (path, rank)
EOF

code=0
"$mpirun" 2 "$ott" profile -f -o "$output" -- "$program" exit 3 || code=$?
[[ $code == 3 ]] || { echo "exit code $code of a job whose ranks exit with 3" >&2; exit 1; }
