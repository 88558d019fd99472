#!/bin/bash
L=4
torchrun pretrain_gpt.py --num-layers $L --hidden-size 128 \
  --num-attention-heads 4 --seq-length 256 --max-position-embeddings 256 --swiglu
