#!/bin/bash
TP=2
cat <<EOT > ds.json
{
  "train_batch_size" : 64, "--num-layers": 3
}
EOT
cat << 'EOF'
usage: $0 --num-layers N --tensor-model-parallel-size 9
EOF
python pretrain_gpt.py --num-layers=24 --hidden-size=1024 --num-attention-heads=16 --seq-length=1024 --max-position-embeddings=1024 --tensor-model-parallel-size=$TP --micro-batch-size=4 --global-batch-size=64
