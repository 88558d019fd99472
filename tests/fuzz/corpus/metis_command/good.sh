python3 cost_het_cluster.py --model_name=GPT --model_size=0.5B --num_layers=8 --gbs=64 \
  --hidden_size=2048 --sequence_length=1024 --vocab_size=51200 --attention_head_size=16 \
  --hostfile_path=hostfile --clusterfile_path=clusterfile.json --profile_data_path=profile \
  --max_profiled_tp_degree=4 --max_profiled_batch_size=4 --min_group_scale_variance=1 \
  --max_permute_len=4 --home_dir=. --log_path=logs
