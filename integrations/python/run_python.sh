#!/bin/sh
# run_python.sh COMMAND...: runs it with the package on Python's path. What tests leave where temporary files go lies in
# the directory that Bazel has for them, by a shorter name: its own is too long for Python's sockets.
if [ -n "$TEST_TMPDIR" ]; then
  TMPDIR=$(mktemp -u /tmp/ott_python.XXXXXX) && ln -s "$TEST_TMPDIR" "$TMPDIR" || exit 1
  export TMPDIR
  trap 'rm -f "$TMPDIR"' EXIT
  trap 'exit 143' HUP INT TERM
fi
# Python is not instrumented, so what the package needs of a sanitizer has to be loaded before it.
runtimes=$(ldd integrations/python/optim_test_tools/_ott.so | awk '$1 ~ /^lib(asan|tsan|ubsan)\./ {print $3}' | tr '\n' ' ')
[ -z "$runtimes" ] || export LD_PRELOAD="$runtimes"
PYTHONPATH=$PWD/integrations/python${PYTHONPATH:+:$PYTHONPATH} "$@"
