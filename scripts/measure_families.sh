#!/bin/bash
# Trains a few steps of models of every family on the GPU of this machine, and writes what was predicted
# from the catalogue and measured: families.csv in FOLDER, a line as soon as a run is over. Then, as long as
# there is time, what is predicted with a profile of that very model: with_profile.csv. A run that fails or
# hangs is a line, too. What is not begun LIMIT seconds (450) after the start, build included, is left out.
#   scripts/measure_families.sh FOLDER          build, then everything
#   PLAIT=build/release/plait DEVICE=cpu scripts/measure_families.sh FOLDER LIST    other models, no build
#   AGAIN="--settle 2s" scripts/measure_families.sh FOLDER    profiles with other flags besides: again.csv
# LIST has a line for each run: model, samples of a step, and flags of plait plan (--micro-batches among
# them). GRANULARITY=op profiles ops, which tells what a layer's error comes from.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
folder=$(mkdir -p "${1:?a folder for the results}" && cd "$1" && pwd)
limit=${LIMIT:-450} device=${DEVICE:-cuda} granularity=${GRANULARITY:-layer}
list=${2:-}
exec 2>>"$folder/errors.txt"

build() {
  cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DPLAIT_TORCH=ON -DPLAIT_TESTS=OFF -DPLAIT_UNITY=ON \
    -DCMAKE_PREFIX_PATH="$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')${PREFIX:+;$PREFIX}" &&
    cmake --build build/gpu --target plait plait-torch -j "$(nproc)"
}

mixture() { # name, layers, hidden size, experts, their width
  printf '{"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "num_hidden_layers": %d, "hidden_size": %d,
    "num_local_experts": %d, "intermediate_size": %d, "num_attention_heads": 16, "num_key_value_heads": 8,
    "num_experts_per_tok": 2, "max_position_embeddings": 4096, "vocab_size": 32000}' "$2" "$3" "$4" "$5" >"$folder/$1.json"
}

runs() {
  cat <<LIST
bert-large 16 --micro-batches 1
t5-large 16 --micro-batches 1
vit-large 64 --micro-batches 1
wide-resnet-250m 64 --micro-batches 1
$folder/mixture-8.json 4 --micro-batches 1 --seq 2048
qwen3-0.6b 8 --micro-batches 1 --seq 2048
llama-3.2-1b 8 --micro-batches 1 --seq 2048
gpt2-xl 8 --micro-batches 1 --recompute full
$folder/mixture-32.json 4 --micro-batches 1 --seq 2048
gpt2 32 --micro-batches 8
bert-base 64 --micro-batches 1
t5-base 64 --micro-batches 1 --seq 256
vit-base 32 --micro-batches 2
wide-resnet-1b 32 --micro-batches 1
gemma-3-1b 4 --micro-batches 1 --seq 2048
pythia-410m 16 --micro-batches 2 --seq 2048
$folder/mixture-8.json 8 --micro-batches 1 --seq 1024
qwen2.5-1.5b 4 --micro-batches 1 --seq 4096
phi-2 4 --micro-batches 2 --seq 1024
bloom-560m 8 --micro-batches 1 --seq 1024
LIST
}

# What plan and train printed as JSON, in one line.
line() {
  python3 - "$@" <<'END_PYTHON'
import json, sys
def read(path):
    try:
        return [json.loads(line) for line in open(path)] if path.endswith(".log") else json.load(open(path))
    except (OSError, ValueError):
        return []
name, flags, plan, log = sys.argv[1], sys.argv[2], read(sys.argv[3]), read(sys.argv[4])
plan = (plan["plans"] if plan else None) or [{}]
steps = [row for row in log if "step_s" in row]
measured = next((row["measured_step_s"] for row in log if "measured_step_s" in row), None)
memory = max((row["peak_memory_GiB"] for row in steps), default=None)
step, peak = plan[0].get("step_s"), plan[0].get("peak_memory_GiB")
error = lambda a, b: "%.1f" % (100 * (a / b - 1)) if a and b else ""
text = lambda x: "" if x is None else "%.5g" % x
print(",".join([name, flags, text(step), text(measured), error(step, measured), text(peak), text(memory),
                error(peak, memory), " ".join("%.4f" % row["step_s"] for row in steps)]))
END_PYTHON
}

name_of() { basename "$1" .json && tr -cs '[:alnum:]\n' _ <<<"_${*:2}"; }

plan() {
  timeout 30 "$PLAIT" plan --model "$1" --cluster 1xH200:1 --framework plait --precision bf16 --global-batch "${@:2}" --json
}

trained() { # model, samples, flags
  local base
  base=$folder/$(name_of "$@" | tr -d '\n')
  plan "$@" -o "$base.saved" >"$base.plan" &&
    timeout 60 "$PLAIT" train "$base.saved" --device "$device" --steps 11 --json --trace "$base.trace" >"$base.log"
  line "$(basename "$1" .json)" "batch ${*:2}" "$base.plan" "$base.log" | tee -a "$folder/families.csv"
}

profiled() { # model, samples, flags
  profile_of with_profile "" "$@"
}

profiled_again() {
  profile_of again "$AGAIN" "$@"
}

profile_of() { # table, flags of the profiler, model, samples, flags
  local base count sequence table=$1 cache own
  read -r -a own <<<"$2"
  cache=$folder/points-$table.jsonl
  shift 2
  base=$folder/$(name_of "$@" | tr -d '\n')
  count="$*"
  count=${count##*--micro-batches }
  count=${count%% *}
  read -r -a sequence < <(grep -o -- '--seq [0-9]*' <<<"$*")
  timeout 60 "$PLAIT" profile --device "$device" --device-type H200 --model "$1" --what units --tp 1 --precision bf16 \
    --granularity "$granularity" --framework plait --micro-batch $(($2 / count)) "${sequence[@]}" \
    --budget "${BUDGET:-30s}" --rounds 1 "${own[@]}" --cache "$cache" -o "$base.$table.json" >&2 &&
    plan "$@" --granularity "$granularity" --profile "$base.$table.json" >"$base.$table"
  line "$(basename "$1" .json)" "batch ${*:2}" "$base.$table" "$base.log" | tee -a "$folder/$table.csv"
}

each() { # what to do with the runs of the list
  while read -r -a words; do
    ((SECONDS < limit)) || { echo "left out: $1 ${words[*]}" && continue; }
    "$1" "${words[@]}" </dev/null
  done < <(if [[ -n $list ]]; then cat "$list"; else runs; fi)
}

if [[ -z ${PLAIT:-} ]]; then
  build >"$folder/build.txt" 2>&1 || { tail -n 20 "$folder/build.txt" && exit 1; }
  PLAIT=build/gpu/plait
fi
echo "built after $SECONDS s"
mixture mixture-8 12 1024 8 3584
mixture mixture-32 4 2048 32 1024
for table in families with_profile ${AGAIN:+again}; do
  echo "model,run,predicted_s,measured_s,error_pct,predicted_GiB,measured_GiB,error_pct,steps_s" >"$folder/$table.csv"
done
each trained
echo "trained after $SECONDS s"
each profiled
if [[ -n ${AGAIN:-} ]]; then each profiled_again; fi
