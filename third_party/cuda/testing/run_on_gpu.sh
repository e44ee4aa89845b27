#!/usr/bin/env bash
# run_on_gpu.sh PROGRAM [ARGUMENT...]: runs a test's program on the machine's devices.
exec "$@"
