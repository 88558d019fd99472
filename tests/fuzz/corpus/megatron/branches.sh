#!/bin/bash
MODEL_SIZE=${MODEL_SIZE:-7}
if [[ $MODEL_SIZE == 7 ]]; then
  HIDDEN_SIZE=4096; NUM_HEAD=32; NUM_LAYERS=32; FFN=11008
elif [[ $MODEL_SIZE == 13 ]]; then
  HIDDEN_SIZE=5120; NUM_HEAD=40; NUM_LAYERS=40; FFN=13824
else
  echo "wrong"; exit 1
fi
case $MODEL_SIZE in
  7) TP=2 ;;
  13) TP=4 ;;
  *) TP=8 ;;
esac
GPUS=8
DP=$((GPUS / TP))
MB=1
GBS=$(( DP * MB * 16 ))
torchrun pretrain_gpt.py --num-layers ${NUM_LAYERS} --hidden-size ${HIDDEN_SIZE} --ffn-hidden-size ${FFN} --num-attention-heads ${NUM_HEAD} --seq-length 2048 --max-position-embeddings 2048 --tensor-model-parallel-size $TP --micro-batch-size $MB --global-batch-size $GBS --bf16 --swiglu --use-distributed-optimizer
