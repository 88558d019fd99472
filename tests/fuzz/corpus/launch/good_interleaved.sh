torchrun pretrain_gpt.py --num-layers 8 --hidden-size 128 --num-attention-heads 4 --seq-length 256
  --max-position-embeddings 256 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2
  --micro-batch-size 1 --global-batch-size 8 --recompute-granularity full --recompute-method block --recompute-num-layers 1
