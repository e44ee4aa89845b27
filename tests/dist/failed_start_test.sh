#!/bin/sh
# failed_start_test.sh MPIRUN PROGRAM: all ranks but one must have an error before that one ends.
output=$TEST_TMPDIR/output
# Ranks that end without MPI_Finalize make mpirun end with an error.
MPIRUN_OPTIONS=--enable-recovery "$1" 4 "$2" >"$output" 2>&1
cat "$output"
grep -q "^failed_start: as it should be" "$output"
