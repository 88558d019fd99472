python3 cost_het_cluster.py --num_layers=x --gbs=128
