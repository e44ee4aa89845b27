#!/usr/bin/env bash
# profile_test.sh OTT PROGRAM: the command line of `ott profile`: exit codes, messages, signals, ranks, kill -9 of all.
set -uo pipefail

ott=$1
program=$2
dir=$TEST_TMPDIR
failures=0

fail() {
  printf '%s\n' "$*" >&2
  failures=$((failures + 1))
}

# expect EXIT_CODE PATTERN ARG...: `ott profile ARG...` ends so and says so.
expect() {
  local expected=$1 pattern=$2 code=0 output
  shift 2
  output=$("$ott" profile "$@" 2>&1) || code=$?
  if [[ $code != "$expected" ]] || ! grep -qE -- "$pattern" <<< "$output"; then
    fail "ott profile $*: exit code $code, expected $expected with \"$pattern\":"$'\n'"$output"
  fi
}

# names FILE: those of its ranges and marks, as any SQLite reads them.
names() {
  python3 - "$1" << 'EOF'
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
query = "SELECT text FROM NVTX_EVENTS WHERE eventType IN (34, 59) ORDER BY start"
print(" ".join(text for text, in connection.execute(query)))
EOF
}

expect 0 'Examples:' --help
expect 2 'output' -- "$program" ranges 1
expect 2 'PROGRAM' -o "$dir/none.sqlite"
expect 2 'capture-range' -o "$dir/none.sqlite" --capture-range sometimes -- "$program" ranges 1
expect 0 'first.sqlite: 2 ranges, 0 marks, 0 kernels' -o "$dir/first.sqlite" -- "$program" ranges 2
expect 2 'first.sqlite: is there already; -f overwrites it' -o "$dir/first.sqlite" -- "$program" ranges 3
[[ $(names "$dir/first.sqlite") == 'range range' ]] || fail "a file was overwritten"
expect 0 'first.sqlite: 3 ranges' -f -o "$dir/first.sqlite" -- "$program" ranges 3
expect 7 '1 range,' -o "$dir/new/folder/exit.sqlite" -- "$program" exit 7
expect 143 '2 ranges,' -o "$dir/signal.sqlite" -- "$program" signal 15
expect 0 'nothing was captured' -o "$dir/nothing.sqlite" -- true --with -dashes
expect 127 'no_such_program: No such file' -o "$dir/nothing.sqlite" -- no_such_program
expect 126 'Permission denied' -o "$dir/nothing.sqlite" -- "$dir"
expect 0 '[1-9][0-9]* events dropped: the buffer was full; --buffer-size' --buffer-size 1 -o "$dir/drop.sqlite" -- \
  "$program" ranges 1000000
[[ -e /dev/nvidiactl || -e /dev/dxg ]] ||
  expect 0 'no CUDA device: NVTX only' -o "$dir/nvtx.sqlite" -- "$program" ranges 1
OTT_CAPTURE_LIBRARY=/nowhere/libott_capture.so expect 2 'OTT_CAPTURE_LIBRARY=/nowhere' -o "$dir/none.sqlite" -- true
CUDA_INJECTION64_PATH=/opt/other.so expect 2 'CUDA_.*already set, to /opt/other.so' -o "$dir/none.sqlite" -- true
NVTX_INJECTION64_PATH=/opt/other.so expect 2 'NVTX_.*already set, to /opt/other.so' -o "$dir/none.sqlite" -- true
OMPI_COMM_WORLD_RANK=3 expect 0 'rank_00003.sqlite: 1 range,' -o "$dir/run.sqlite" -- "$program" ranges 1
OMPI_COMM_WORLD_RANK=3 expect 2 'rank_00003.sqlite: is there' -o "$dir/run.sqlite" -- "$program" ranges 1
# The ranks of a job started below.
expect 0 'job.rank_00001.sqlite: 1 range,' -o "$dir/job.sqlite" -- \
  sh -c 'RANK=0 "$0" ranges 1; RANK=1 "$0" ranges 1; RANK=1 "$0" ranges 2' "$program"
ls "$dir"/job.rank_00001.pid_*.sqlite > /dev/null || fail "a second process of a rank has no file"
expect 0 'job.rank_00001.sqlite is not of this run' -f -o "$dir/job.sqlite" -- env RANK=0 "$program" ranges 1

# No file may be longer than 1.2 MB, as on a disk that is full: the program does not notice, and what was written holds.
# A mark takes more of the file than of the buffer.
ulimit -S -f 1200
expect 0 'process [0-9]+ is not captured, it has no memory for its events: File too large' -o "$dir/memory.sqlite" -- \
  "$program" ranges 1
expect 0 '[1-9][0-9]* rows could not be written:' --buffer-size 1 -o "$dir/full.sqlite" -- "$program" marks 100000
ulimit -S -f unlimited
[[ $(names "$dir/full.sqlite" | wc -w) -gt 0 ]] || fail "nothing was kept before the disk was full"

# The program's output is its own, and a signal to ott reaches it.
coproc "$ott" profile -o "$dir/pause.sqlite" -- "$program" pause 2> "$dir/pause.txt"
running=$COPROC_PID
read -r line <&"${COPROC[0]}"
[[ $line == ready ]] || fail "the program's output is \"$line\""
kill -TERM "$running"
wait "$running"
code=$?
[[ $code == 143 ]] || fail "exit code $code after SIGTERM"
[[ $(names "$dir/pause.sqlite") == range ]] || fail "ranges: $(names "$dir/pause.sqlite")"

# All are killed: the file holds what was flushed.
coproc "$ott" profile -o "$dir/killed.sqlite" -- "$program" pause 2> "$dir/killed.txt"
running=$COPROC_PID
read -r line <&"${COPROC[0]}"
read -r paused < "/proc/$running/task/$running/children"
until [[ $(names "$dir/killed.sqlite" 2> /dev/null) == range ]]; do :; done
kill -KILL "$running" "$paused"
wait "$running"
[[ $(names "$dir/killed.sqlite") == range ]] || fail "after kill -9: $(names "$dir/killed.sqlite")"
ls "$dir"/*-journal 2> /dev/null && fail "a journal was left"

((failures == 0))
