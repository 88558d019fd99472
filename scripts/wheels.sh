#!/usr/bin/env bash
# Makes wheels in build/packages: one in the stable ABI by the first CPython from 3.12 on, one by each of 3.9 to 3.11.
#   scripts/wheels.sh [PYTHON...]      by default those of python3.9 to python3.13 that are in PATH or that pyenv has
# One after the other in one build folder and with the same tools, so that the library is compiled once. auditwheel of
# build/python (./dev setup_python) says which systems a wheel runs on and names it so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=build/packages
tools=$PWD/build/wheels/tools
mkdir -p "$out" build/wheels/raw
if [[ ! -d $tools/nanobind ]]; then
  # Pure Python, for any version; those that 3.9 needs, too.
  build/python/bin/pip install -q --target "$tools" nanobind==2.9.2 scikit-build-core==0.11.6 cmake==3.31.6 \
    packaging==25.0 pathspec==0.12.1 tomli==2.2.1 exceptiongroup==1.3.0 typing_extensions==4.15.0
fi

# The interpreter of a version; nothing where there is none.
interpreter() {
  if "python$1" --version >/dev/null 2>&1; then
    echo "python$1"
  elif command -v pyenv >/dev/null; then
    find "$(pyenv root)/versions" -maxdepth 3 -path "*/$1.*/bin/python$1" | sort -V | tail -n 1
  fi
}

found=("$@")
if (($# == 0)); then
  mapfile -t found < <(for version in 3.9 3.10 3.11 3.12 3.13; do interpreter "$version"; done)
fi

stable=0
for python in "${found[@]}"; do
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  if [[ $(printf '3.12\n%s\n' "$version" | sort -V | head -n 1) == 3.12 ]]; then
    ((stable == 0)) || continue
    stable=1
  fi
  echo "==> a wheel by $("$python" --version)" >&2
  rm -f build/wheels/raw/*.whl
  PYTHONPATH=$tools "$python" -m pip wheel -q --no-build-isolation --no-deps -w build/wheels/raw .
  PATH=$PWD/build/python/bin:$PATH auditwheel -v repair --plat manylinux_2_35_x86_64 -w "$out" build/wheels/raw/*.whl \
    >"build/wheels/auditwheel-$version.log" 2>&1 ||
    { tail -n 5 "build/wheels/auditwheel-$version.log" >&2; exit 1; }
done
ls -l "$out"/*.whl
