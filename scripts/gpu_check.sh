#!/bin/bash
# Builds for the GPU of this machine and trains on it: that all families run, that losses are those
# of the CPU, and how fast the steps are beside eager PyTorch. Results go to $OUT (default: build/gpu/train).
#   scripts/gpu_check.sh           build, then everything: about 8 minutes
#   scripts/gpu_check.sh families  a few steps of a small model of each family, CPU beside GPU
#   scripts/gpu_check.sh speed     GPT-2 1.5B and Llama 3.2 1B in bf16 against eager PyTorch
set -euo pipefail
cd "$(dirname "$0")/.."
OUT=${OUT:-build/gpu/train}
mkdir -p "$OUT"
PLAIT=build/gpu/plait

build() {
  cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DPLAIT_TORCH=ON -DPLAIT_TESTS=OFF \
    -DCMAKE_PREFIX_PATH="$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')"
  cmake --build build/gpu --target plait plait-torch
}

families() {
  for model in gpt2 bert-base t5-small tinyllama-1.1b vit-base wide-resnet; do
    $PLAIT plan --model "$model" --cluster 1xH200:1 --global-batch 2 --precision fp32 \
      -o "$OUT/$model.json" >/dev/null || { echo "$model: no plan"; continue; }
    for device in cpu cuda; do
      $PLAIT train "$OUT/$model.json" --steps 3 --device $device --json 2>/dev/null |
        python3 -c "import json, sys
rows = [json.loads(line) for line in sys.stdin]
print('$model $device', ' '.join('%.5f' % row['loss'] for row in rows if 'loss' in row))" |
        tee -a "$OUT/families.txt"
    done
  done
}

speed() {
  python3 bench/train_vs_eager.py $PLAIT gpt2-xl --micro-batch 8 --micro-batches 2 | tee -a "$OUT/speed.jsonl"
  python3 bench/train_vs_eager.py $PLAIT llama-3.2-1b --sequence 2048 --micro-batch 4 --micro-batches 2 |
    tee -a "$OUT/speed.jsonl"
}

if [ $# -eq 0 ]; then
  build
  families
  speed
else
  for step in "$@"; do "$step"; done
fi
