#!/bin/bash
# A Megatron-LM launch script; plait reads the model from it: plait plan --model megatron-gpt-345m.sh ...
MODEL_ARGS=(
    --num-layers 24
    --hidden-size 1024
    --num-attention-heads 16
    --seq-length 1024
    --max-position-embeddings 1024
    --vocab-size 50257
)
TRAINING_ARGS=(
    --micro-batch-size 4
    --global-batch-size 64
    --train-iters 500000
    --bf16
)
torchrun --nproc_per_node 8 pretrain_gpt.py "${MODEL_ARGS[@]}" "${TRAINING_ARGS[@]}"
