#!/usr/bin/env bash
# several_hosts_test.sh OTT WRITE_RUNS: mpirun starts `ott` on two hosts, each of which has its own ranks' files and none of the
# other's. Hosts are network namespaces with a wire between them, names and disks of their own.
set -euo pipefail
ott=$PWD/$1
write_runs=$PWD/$2
export ott

cd "$TEST_TMPDIR"
"$write_runs" whole 4
mkdir -p one run node0 node1
ln -s ../whole one/run
for run in planted reference current stands traces; do
  mkdir "node0/$run" "node1/$run"
  find "whole/$run" -maxdepth 1 -type f ! -name 'rank[0-9]*' -exec cp {} "node0/$run" \;
  cp -r whole/$run/rank*[01]{,.json} "node0/$run" 2> /dev/null || true
  cp -r whole/$run/rank*[23]{,.json} "node1/$run" 2> /dev/null || true
done
printf '127.0.0.1 localhost\n10.99.0.1 node0\n10.99.0.2 node1\n' > hosts

if ! unshare --user --map-root-user --net --mount --uts bash -c 'ip link add wire0 type veth peer name wire1 && mount --bind /etc/hosts /etc/hosts'; then
  echo "several_hosts_test: skipped, as no network namespaces can be made here"
  exit
fi

unshare --user --map-root-user --net --mount --uts bash -euo pipefail -c '
  unshare --net --mount --uts sleep infinity &
  other=$!
  trap "kill $other" EXIT
  until theirs=$(readlink "/proc/$other/ns/net") && [[ $theirs != "$(readlink /proc/self/ns/net)" ]]; do read -rt 0.05 <> <(:) || true; done
  on_other() { nsenter --target "$other" --net --mount --uts "$@"; }
  hostname node0
  on_other hostname node1
  ip link add wire0 type veth peer name wire1 netns "$other"
  ip address add 10.99.0.1/24 dev wire0
  on_other ip address add 10.99.0.2/24 dev wire1
  for device in lo wire0; do ip link set $device up; done
  for device in lo wire1; do on_other ip link set $device up; done
  mount --bind "$PWD/hosts" /etc/hosts
  on_other mount --bind "$PWD/hosts" /etc/hosts
  mount --bind "$PWD/node0" "$PWD/run"
  on_other mount --bind "$PWD/node1" "$PWD/run"

  # mpirun calls it as it would ssh: agent HOST COMMAND.
  printf "#!/bin/sh\nshift\nexec nsenter --target %s --net --mount --uts sh -c \"cd %s; \$*\"\n" "$other" "$PWD" > agent
  chmod +x agent
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_orte_tmpdir_base=$PWD/mpi
  mkdir -p mpi
  check() {
    local code=0 codes
    (cd one && "$ott" "$@") > one.out 2> one.err || code=$?
    codes=$code
    code=0
    mpirun --quiet --oversubscribe --mca plm_rsh_agent "$PWD/agent" --host node0,node1 --map-by node -np 2 "$ott" "$@" > two.out 2> two.err || code=$?
    cmp one.out two.out || { diff one.out two.out || true; cat two.err; exit 1; } >&2
    [[ $code == "$codes" ]] || { echo "ott $*: exit code $code by two hosts, $codes by one" >&2; exit 1; }
    grep "processes on 2 hosts: [1-9]" two.err
  }
  check report run/planted
  check compare run/reference run/current
  check hang run/stands
  check report run/traces
'
