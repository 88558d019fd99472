set -e
function run() {
  local tp=$1
  torchrun pretrain_gpt.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 \
    --tensor-model-parallel-size $tp --micro-batch-size 4 --global-batch-size 64
}
run 2
