#!/bin/sh
# failing_rank_test.sh MPIRUN RANKS_TEST: an exception on one rank ends the job, whose other rank waits.
for arguments in "" mpi4py beside_mpi4py; do
  timeout 30 integrations/python/run_python.sh "$1" 2 python3 -P "$2" $arguments fail > "$TEST_TMPDIR/log" 2>&1
  case $? in 0 | 124) exit 1 ;; esac
  cat "$TEST_TMPDIR/log"
  grep -q "KeyError: 'rank 1 fails'" "$TEST_TMPDIR/log" && ! grep -q "within 60 s" "$TEST_TMPDIR/log" || exit 1
done
