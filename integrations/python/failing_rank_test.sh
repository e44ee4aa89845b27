#!/bin/sh
# failing_rank_test.sh MPIRUN RANKS_TEST: an exception on one rank ends the job, whose other rank waits.
! timeout 30 integrations/python/run_python.sh "$1" 2 python3 -P "$2" fail > "$TEST_TMPDIR/log" 2>&1 || exit 1
cat "$TEST_TMPDIR/log"
grep -q "KeyError: 'rank 1 fails'" "$TEST_TMPDIR/log" && ! grep -q "within 60 s" "$TEST_TMPDIR/log"
