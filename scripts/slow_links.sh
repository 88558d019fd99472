#!/usr/bin/env bash
# Runs the ranks of a program on this machine as if they were on several machines with slow links:
#
#   scripts/slow_links.sh --nodes 2 --ranks-per-node 2 --rate 200mbit --delay 1ms -- \
#     build/release/plait train plan.json --steps 20
#
# Every "machine" is a network namespace with a link of this rate and delay to a bridge that joins
# them; ranks of one namespace talk over its loopback, at full speed. A list gives every machine a
# link of its own: --rate 1gbit,100mbit. Ranks find torchrun's variables. Ctrl-C and the end of any
# rank that fails end all of them, and nothing is left behind.
#
# Needs root (or CAP_NET_ADMIN and CAP_SYS_ADMIN), ip and tc, and a kernel with network namespaces;
# says what is missing and exits with 77 where it is not permitted. --check only looks.
set -euo pipefail

nodes=2 per_node=1 rate=1gbit delay=0 check=false
refuse() { echo "slow_links.sh: $1" >&2; exit "${2:-2}"; }
while [[ $# -gt 0 ]]; do
  case $1 in
    --nodes) nodes=${2:?--nodes needs a number}; shift 2 ;;
    --ranks-per-node) per_node=${2:?--ranks-per-node needs a number}; shift 2 ;;
    --rate) rate=${2:?--rate needs a rate such as 200mbit}; shift 2 ;;
    --delay) delay=${2:?--delay needs a time such as 1ms}; shift 2 ;;
    --check) check=true; shift ;;
    --help|-h) sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --) shift; break ;;
    *) refuse "$1 is not known; --help explains" ;;
  esac
done
[[ $nodes =~ ^[0-9]+$ && $nodes -ge 1 && $nodes -le 64 ]] || refuse "--nodes must be from 1 to 64"
[[ $per_node =~ ^[0-9]+$ && $per_node -ge 1 && $per_node -le 64 ]] ||
  refuse "--ranks-per-node must be from 1 to 64"
$check || [[ $# -gt 0 ]] || refuse "what should the ranks run? Give a command after --"

for tool in ip tc; do
  command -v $tool > /dev/null || refuse "$tool is not installed: apt install iproute2" 77
done
name="plait$$"
ip netns add "$name-hub" 2> /dev/null ||
  refuse "network namespaces are not permitted here: run as root, outside of a container without CAP_SYS_ADMIN" 77

pids=()
clean_up() {
  trap - EXIT INT TERM
  for pid in "${pids[@]}"; do kill -TERM -- "-$pid" 2> /dev/null || true; done
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    alive=false
    for pid in "${pids[@]}"; do kill -0 -- "-$pid" 2> /dev/null && alive=true; done
    $alive || break
    sleep 0.2
  done
  for pid in "${pids[@]}"; do kill -KILL -- "-$pid" 2> /dev/null || true; done
  for ((n = 0; n < nodes; ++n)); do ip netns del "$name-$n" 2> /dev/null || true; done
  ip netns del "$name-hub" 2> /dev/null || true
}
trap clean_up EXIT
trap 'exit 130' INT TERM

in_hub() { ip netns exec "$name-hub" "$@"; }
item() {  # LIST N: its N-th item, or its last
  local items; IFS=, read -ra items <<< "$1"
  echo "${items[$2]:-${items[-1]}}"
}

# netem has both rate and delay; tbf, which more kernels have, only the rate.
shape() {  # NAMESPACE DEVICE RATE DELAY
  local shaped=(ip netns exec "$1" tc qdisc add dev "$2" root)
  if "${shaped[@]}" netem rate "$3" delay "$4" 2> /dev/null; then return; fi
  "${shaped[@]}" tbf rate "$3" burst 64kb latency 100ms 2> /dev/null ||
    refuse "this kernel can shape links neither with netem nor with tbf" 77
  [[ $4 =~ ^0[a-z]*$ ]] || $warned ||
    { echo "slow_links.sh: no netem in this kernel: links have the rate, but no delay" >&2; warned=true; }
}
warned=false

in_hub ip link add bridge type bridge 2> /dev/null || refuse "this kernel has no bridges" 77
in_hub ip link set bridge up
for ((n = 0; n < nodes; ++n)); do
  ip netns add "$name-$n"
  in_hub ip link add "port$n" type veth peer name net0 netns "$name-$n" 2> /dev/null ||
    refuse "this kernel has no veth pairs" 77
  in_hub ip link set "port$n" master bridge up
  ip -n "$name-$n" link set lo up
  ip -n "$name-$n" addr add "10.77.0.$((n + 1))/24" dev net0
  ip -n "$name-$n" link set net0 up
  shape "$name-$n" net0 "$(item "$rate" $n)" "$(item "$delay" $n)"
  shape "$name-hub" "port$n" "$(item "$rate" $n)" "$(item "$delay" $n)"
done
$check && { echo "slow links work here"; exit 0; }

world=$((nodes * per_node))
# Ranks of several machines show each other a secret; in the environment, not among the words of env.
export PLAIT_RUN_SECRET="${PLAIT_RUN_SECRET:-$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')}"
for ((rank = 0; rank < world; ++rank)); do
  node=$((rank / per_node))
  setsid ip netns exec "$name-$node" env RANK=$rank WORLD_SIZE=$world \
    LOCAL_RANK=$((rank % per_node)) LOCAL_WORLD_SIZE="$per_node" MASTER_ADDR=10.77.0.1 \
    MASTER_PORT=29500 GLOO_SOCKET_IFNAME=net0 NCCL_SOCKET_IFNAME=net0 \
    OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" "$@" &
  pids+=($!)
done
for ((left = world; left > 0; --left)); do wait -n || exit $?; done
