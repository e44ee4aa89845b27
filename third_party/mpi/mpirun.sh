#!/bin/sh
# mpirun.sh RANKS PROGRAM [ARG...]: runs a program on that many ranks of this machine, any number of cores.
# MPIRUN_OPTIONS: more options of mpirun, such as --enable-recovery.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ranks=$1
shift
# Only rank 0 may write the test report that XML_OUTPUT_FILE names.
# shellcheck disable=SC2086 # The options are several words.
exec mpirun --quiet --oversubscribe --bind-to none $MPIRUN_OPTIONS -np "$ranks" sh -c '
  [ "$OMPI_COMM_WORLD_RANK" = 0 ] || unset XML_OUTPUT_FILE
  exec "$@"' rank "$@"
