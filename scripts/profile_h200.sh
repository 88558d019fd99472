#!/bin/bash
# Measures the shipped H200 profiles on a machine with one. Results go to $OUT (default: build/gpu/profiles).
#   scripts/profile_h200.sh            build, then everything: about 12 minutes
#   scripts/profile_h200.sh blocks     the ops of data/profiles/building_blocks.json
#   scripts/profile_h200.sh gpt        GPT-3 1.3B, tp 1,2,4,8 x micro-batch 1,2,4,8, twice, compared
#   scripts/profile_h200.sh units      the layers of the other families
set -euo pipefail
cd "$(dirname "$0")/.."
OUT=${OUT:-build/gpu/profiles}
mkdir -p "$OUT"
here=$PWD
cp data/profiles/building_blocks.json "$OUT"

build() {
  cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DPLAIT_TORCH=ON -DPLAIT_TESTS=OFF \
    -DCMAKE_PREFIX_PATH="$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')"
  cmake --build build/gpu --target plait plait-torch
}

measure() { # name of the profile, then flags
  local name=$1
  shift
  local begin=$SECONDS
  # In $OUT, so that the command that a profile tells has no paths of this machine.
  (cd "$OUT" && "$here/build/gpu/plait" profile --device cuda --cache points.jsonl -o "$name.json" "$@")
  echo "$name: $((SECONDS - begin)) s"
}

blocks() {
  measure h200 --ops building_blocks.json --per-point 150ms --budget 6m
}

gpt() {
  for name in h200_gpt3_1.3b again; do
    measure $name --model gpt-3-1.3b --precision bf16 --tp 1,2,4,8 --micro-batch 1,2,4,8 --fresh
  done
  build/gpu/plait profile diff "$OUT/h200_gpt3_1.3b.json" "$OUT/again.json" | tee "$OUT/repeat.txt"
}

units() {
  local parts=()
  for model in gpt2-medium llama-2-7b bert-large t5-large mixtral-8x7b wide-resnet-500m; do
    measure "part_$model" --model $model --precision bf16 --what units --tp 1,2,4 --micro-batch 1,4 \
      --per-point 150ms --budget 60s
    parts+=("$OUT/part_$model.json")
  done
  build/gpu/plait profile merge "${parts[@]}" -o "$OUT/h200_units.json"
  rm -f "${parts[@]}"
}

build
for part in "${@:-blocks gpt units}"; do
  for step in $part; do "$step"; done
done
ls -l "$OUT"
