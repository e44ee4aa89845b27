#!/usr/bin/env bash
# stripped_copies_test.sh PROGRAM: copies of the library meet whose symbols and ELF notes were removed.
set -euo pipefail
cp -rL core "$TEST_TMPDIR"
cd "$TEST_TMPDIR"
chmod -R u+w core
for object in "$1" core/base/lib*_for_test.so; do
  strip --strip-all -R '.note*' -R .comment "$object"
done
"$1"
