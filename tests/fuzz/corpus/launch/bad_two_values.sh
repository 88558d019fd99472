pretrain_gpt.py --num-layers 4 --num-layers 5 --hidden-size 128 --num-attention-heads 4 --seq-length 256 --micro-batch-size 1
