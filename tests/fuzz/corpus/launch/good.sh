#!/bin/bash
L=4
torchrun --nproc-per-node 4 pretrain_gpt.py --num-layers $L --hidden-size 128 \
  --num-attention-heads 4 --seq-length 256 --max-position-embeddings 256 --swiglu \
  --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --micro-batch-size 2 \
  --global-batch-size 16 --bf16 --recompute-activations --use-distributed-optimizer
