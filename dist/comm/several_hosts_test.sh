#!/usr/bin/env bash
# several_hosts_test.sh START_RANKS PROGRAM: ranks 0 and 1 on one host, which calls itself by a name that leads to
# 127.0.1.1, as on Debian; rank 2 on another. Hosts are network namespaces with a wire between them.
set -uo pipefail
start_ranks=$1
program=$PWD/$2

if ! command -v ip >/dev/null || ! unshare --user --map-root-user --net --mount \
    bash -c 'ip link add wire0 type veth peer name wire1 && mount --bind /etc/hosts /etc/hosts' 2>/dev/null; then
  echo "several_hosts: no network namespaces can be made here, so all ranks are on one host"
  exec "$start_ranks" 3 "$program"
fi

export program TEST_TMPDIR
unshare --user --map-root-user --net --mount bash -euo pipefail -c '
  ip link set lo up
  unshare --net --mount sleep infinity &
  other=$!
  trap "kill $other" EXIT
  until theirs=$(readlink "/proc/$other/ns/net") && [[ $theirs != "$(readlink /proc/self/ns/net)" ]]; do sleep 0.05; done
  on_other() { nsenter --target "$other" --net --mount "$@"; }
  ip link add wire0 type veth peer name wire1 netns "$other"
  ip address add 10.99.0.1/24 dev wire0
  ip link set wire0 up
  on_other ip link set lo up
  on_other ip address add 10.99.0.2/24 dev wire1
  on_other ip link set wire1 up
  printf "127.0.0.1 localhost\n127.0.1.1 first\n" >"$TEST_TMPDIR/hosts0"
  printf "127.0.0.1 localhost\n10.99.0.1 first\n" >"$TEST_TMPDIR/hosts1"
  mount --bind "$TEST_TMPDIR/hosts0" /etc/hosts
  on_other mount --bind "$TEST_TMPDIR/hosts1" /etc/hosts
  export MASTER_ADDR=first MASTER_PORT=29500 WORLD_SIZE=3
  pids=()
  RANK=1 env -u XML_OUTPUT_FILE "$program" & pids+=($!)
  RANK=2 env -u XML_OUTPUT_FILE nsenter --target "$other" --net --mount "$program" & pids+=($!)
  RANK=0 "$program" & pids+=($!)
  status=0
  for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
  exit $status
'
