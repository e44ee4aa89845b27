#!/bin/sh
# dying_rank_test.sh MPIRUN PROGRAM SCENARIO: the ranks that are left must find what they should, and say so.
mpirun=$1
program=$2
scenario=$3
output=$TEST_TMPDIR/output
MPIRUN_OPTIONS=--enable-recovery "$mpirun" 4 "$program" "$scenario" >"$output" 2>&1
status=$?
cat "$output"
[ $status = 0 ] || exit 1
# A job in which no rank lived to check anything would end with 0, too.
grep -q "^$scenario: as it should be" "$output"
