#!/bin/sh
# wheel_test.sh WHEEL SMOKE_TEST: installs the wheel in an empty environment, and runs the test there.
set -eu
export TMPDIR="$TEST_TMPDIR"
python3 -m venv "$TEST_TMPDIR/venv"
"$TEST_TMPDIR/venv/bin/pip" --isolated --disable-pip-version-check install --no-index --quiet "$1"
"$TEST_TMPDIR/venv/bin/python" -I "$2"
