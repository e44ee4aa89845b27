#!/bin/sh
# mpirun.sh RANKS PROGRAM [ARG...]: runs a program on that many ranks of this machine, any number of cores.
# MPIRUN_OPTIONS: more options of mpirun, such as --enable-recovery.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ranks=$1
shift
# Open MPI names its files by host and process id. Sandboxes that run at the same time have the same process ids, so
# each job gets directories of its own: in shared ones the jobs would write into each other's shared memory.
dir=$(mktemp -d /tmp/ott_mpi.XXXXXX) || exit 1
trap 'rm -rf "$dir"' EXIT
export OMPI_MCA_orte_tmpdir_base="$dir" OMPI_MCA_btl_vader_backing_directory="$dir"
# Open MPI 6 has no --quiet.
if mpirun --quiet --version > /dev/null 2>&1; then quiet=--quiet; fi
# Only rank 0 may write the test report that XML_OUTPUT_FILE names.
# shellcheck disable=SC2086 # The options are several words.
mpirun $quiet --oversubscribe --bind-to none $MPIRUN_OPTIONS -np "$ranks" sh -c '
  [ "$OMPI_COMM_WORLD_RANK" = 0 ] || unset XML_OUTPUT_FILE
  exec "$@"' rank "$@"
