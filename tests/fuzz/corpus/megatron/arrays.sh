#!/bin/bash
GPUS_PER_NODE=8
TP=${1:-2}; PP=${PP-1}
export MBS=4
GPT_ARGS=(
    --num-layers 24  # layers
    --hidden-size 1024
    --num-attention-heads 16
    --seq-length 1024
    --max-position-embeddings 1024
    --tensor-model-parallel-size $TP
    --pipeline-model-parallel-size ${PP}
)
TRAIN_ARGS=(--micro-batch-size "$MBS" --global-batch-size $((MBS * 16)) --bf16)
if [ "${FULL:-0}" = 1 ]; then
  TRAIN_ARGS+=(--recompute-granularity full --recompute-method uniform --recompute-num-layers 1)
fi
torchrun --nproc_per_node $GPUS_PER_NODE pretrain_gpt.py "${GPT_ARGS[@]}" ${TRAIN_ARGS[@]} "$@"
