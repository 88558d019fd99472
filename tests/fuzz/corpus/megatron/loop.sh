A=$B
B=$A
pretrain_gpt.py --num-layers $A --hidden-size 64
