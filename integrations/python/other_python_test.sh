#!/usr/bin/env bash
# other_python_test.sh PACKAGE/__init__.py: the error of a Python that the extension was not built for names both.
set -euo pipefail
folder=$TEST_TMPDIR/optim_test_tools
cp -rL "$(dirname "$1")" "$folder"
chmod -R u+w "$folder"
fail() { echo "other_python_test: $*" >&2; exit 1; }

# error: what the import says, where the extension cannot be loaded.
error() {
  ! PYTHONPATH=$TEST_TMPDIR python3 -c "import optim_test_tools" 2> "$TEST_TMPDIR/error" || fail "the import succeeded"
  tail -1 "$TEST_TMPDIR/error"
}

tag=$(python3 -c 'import sys; print(sys.implementation.cache_tag)')
[[ $(< "$folder/_built_for.py") =~ ^'PYTHON = "'[a-z]+-?[0-9]+'"'$ ]] || fail "built for $(< "$folder/_built_for.py")"
echo 'PYTHON = "cpython-27"' > "$folder/_built_for.py"
echo "no ELF" > "$folder/_ott.so"
[[ $(error) == *"was built for cpython-27, and "*" is $tag: "*PYTHON_INTERPRETER=* ]] || fail "says: $(error)"

echo "PYTHON = \"$tag\"" > "$folder/_built_for.py"
[[ $(error) == *"; a wheel by Bazel alone"* ]] || fail "says: $(error)"
