#!/usr/bin/env bash
# stripped_notes_test.sh PROGRAM: a program whose ELF notes were removed starts, and says what that means.
set -euo pipefail
program=$TEST_TMPDIR/program
objcopy -R '.note*' "$1" "$program"
"$program" --gtest_list_tests > "$TEST_TMPDIR/output" 2> "$TEST_TMPDIR/errors" || { echo "it ended with $?"; cat "$TEST_TMPDIR/errors"; exit 1; }
grep -q 'has lost the section .note.ott' "$TEST_TMPDIR/errors" || { echo "it says nothing of it"; exit 1; }
! "$1" --gtest_list_tests 2>&1 | grep .note.ott || { echo "it says so of a program that has them"; exit 1; }
