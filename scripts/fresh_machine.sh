#!/usr/bin/env bash
# Tries ./dev on a bare Debian 12 that has nothing but apt: ./dev fresh [VERB...]
# (demo package try_package test)
#   FRESH_SUITE=trixie  Debian 13 instead; noble: Ubuntu 24.04
#   FRESH_KEYRING=file  the keys that the suite's packages are signed with, where this machine has none:
#                       for noble ubuntu-archive-keyring.gpg of Ubuntu's package ubuntu-keyring
# Makes the machine with debootstrap in a temporary folder, copies the tree into it without its
# build folder, runs each verb as ./dev VERB and prints how long it took. Packages come from where
# this machine's own apt gets them. Needs root and debootstrap.
#   FRESH_ROOT=folder   where to make it, about 1.5 GB (default: a new folder in TMPDIR, removed)
#   FRESH_USER=1        run as an ordinary user with sudo instead of as root
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { echo "fresh_machine: $*" >&2; exit 1; }

((EUID == 0)) || fail "needs root to make a machine: sudo ./dev fresh"
command -v debootstrap >/dev/null || fail "needs debootstrap: apt-get install debootstrap"
(($#)) || set -- demo package try_package test

# Mounts are this script's own and vanish with it.
if [[ -z ${FRESH_INSIDE:-} ]]; then
  export FRESH_INSIDE=1
  exec unshare --mount "$0" "$@"
fi

suite=${FRESH_SUITE:-bookworm}
# shellcheck disable=SC2016  # the $(...) are apt's own
mirror=$(apt-get indextargets --format '$(CREATED_BY) $(CODENAME) $(REPO_URI)' |
         awk -v suite="$suite" '$1 == "Packages" && $2 == suite { print $3; exit }')

if [[ -n ${FRESH_ROOT:-} ]]; then
  machine=$FRESH_ROOT
  [[ ! -e $machine ]] || fail "$machine is already there; remove it first"
else
  machine=$(mktemp -d)/machine
  trap 'umount "$machine/dev/pts" "$machine/proc" || true; rm -rf --one-file-system "$(dirname "$machine")"' EXIT
fi

components=main script=()
keyring=${FRESH_KEYRING:-}
if [[ $suite == noble ]]; then
  components=main,universe
  # All releases of Ubuntu are made by one script, which an older debootstrap has under older names only.
  [[ -e /usr/share/debootstrap/scripts/$suite ]] || script=(/usr/share/debootstrap/scripts/gutsy)
  [[ -n $keyring || -e /usr/share/keyrings/ubuntu-archive-keyring.gpg ]] ||
    fail "has no keys of Ubuntu: take ubuntu-archive-keyring.gpg from Ubuntu's package ubuntu-keyring, and set FRESH_KEYRING to it"
fi
echo "==> making a bare machine ($suite) in $machine" >&2
log=$(mktemp)
debootstrap --variant=minbase --components="$components" ${keyring:+--keyring="$keyring"} "$suite" "$machine" \
  "$mirror" ${script[@]+"${script[@]}"} >"$log" 2>&1 ||
  { tail -n 20 "$log" >&2; fail "debootstrap failed; the whole output is in $log"; }
rm "$log"
mount -t proc proc "$machine/proc"
mount --bind /dev/pts "$machine/dev/pts"  # the tests of the command line open terminals
cp -L /etc/resolv.conf /etc/hosts "$machine/etc/"
apt-config dump --no-empty 'Acquire::http::Proxy' 'Acquire::https::Proxy' \
  'Acquire::Check-Valid-Until' >"$machine/etc/apt/apt.conf.d/99trial"

user=root home=/root
if [[ -n ${FRESH_USER:-} ]]; then
  user=newcomer home=/opt/newcomer
  chroot "$machine" apt-get -q update >/dev/null
  chroot "$machine" apt-get -q install -y --no-install-recommends sudo >/dev/null 2>&1
  chroot "$machine" useradd --create-home --home-dir "$home" "$user"
  echo "$user ALL=(ALL) NOPASSWD: ALL" >"$machine/etc/sudoers.d/$user"
fi
mkdir -p "$machine$home/plait"
tar -c --exclude=./build --exclude=./.git --exclude=./.venv . | tar -x -C "$machine$home/plait"
chroot "$machine" chown -R "$user:" "$home/plait"

status=0
for verb in "$@"; do
  echo "==> ./dev $verb on the bare machine" >&2
  started=$SECONDS
  env -i HOME="$home" USER="$user" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    chroot --userspec="$user" "$machine" "$home/plait/dev" "$verb" </dev/null || status=$?
  echo "==> ./dev $verb: exit status $status after $((SECONDS - started)) s" >&2
  ((status == 0)) || break
done
exit "$status"
