#!/usr/bin/env bash
# torch213.sh COMMAND...: runs it with PyTorch 2.13, which tools/setup --test installs; without that says so and ends with 0.
# Bazel hides HOME from tests.
home=$(getent passwd "$(id -u)" | cut -d: -f6)
bin=${XDG_CACHE_HOME:-$home/.cache}/optim_test_tools/torch213/bin
[[ -x $bin/python3 ]] || { echo "skipped: no PyTorch 2.13 in ${bin%/bin}; tools/setup --test installs it"; exit 0; }
PATH=$bin:$PATH exec "$@"
