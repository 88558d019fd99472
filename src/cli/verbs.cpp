#include <array>

#include "cli/flags/command.h"

namespace plait {

// One function for each verb, in the file of its name in cli/verbs.
Command plan_command();
Command compare_command();
Command estimate_command();
Command pareto_command();
Command replan_command();
Command explain_command();
Command check_command();
Command diff_command();
Command export_command();
Command import_command();
Command profile_command();
Command validate_command();
Command calibrate_command();
Command train_command();
Command trial_command();
Command graph_command();
Command tokenize_command();
Command models_command();
Command model_command();
Command devices_command();
Command instances_command();
Command frameworks_command();
Command completion_command();
Command version_command();
Command help_command();

std::span<const Verb> verbs() {
  static constexpr std::array kVerbs{
      Verb{"plan", "find the fastest ways to train a model on a cluster",
           "  plait plan --model llama-2-7b --cluster 2xA100-80GB:8+4xV100-16GB:4 --global-batch "
           "512\n"
           "  plait plan --model path/to/config.json --cluster hosts.txt --device A100-80GB \\\n"
           "    --global-batch 256 --seq 8192 -o plan.json\n"
           "  plait plan --model gpt2-xl --cluster 2xp4d.24xlarge --global-batch 64 --json\n"
           "\n"
           "  # what you run today, all or part of it said:\n"
           "  plait plan --model llama-2-13b --cluster 4xA100-80GB:8 --global-batch 256 \\\n"
           "    --tp 4 --pp 2 --dp 4 --micro-batch 1 --recompute full --zero 1 --schedule 1f1b\n"
           "  plait plan --model launch.sh --cluster 4xA100-80GB:8\n"
           "\n"
           "  # what fits, and what it costs:\n"
           "  plait plan --model llama-3-8b --cluster 2xRTX4090 --global-batch 16 --lora 16 --seq "
           "2k\n"
           "  plait plan --model llama-2-70b --cluster A100-80GB --global-batch 8 --qlora 16\n"
           "  plait plan --model llama-3-8b --cluster 8xH100 --global-batch 8 --max-seq\n"
           "  plait plan --model llama-2-7b --cluster 8xH100 --max-batch --memory-limit 70GiB\n"
           "  plait plan --model llama-2-7b --cluster 16xH100:8 --global-batch 4Mtokens --tokens "
           "1T \\\n"
           "    --price H100=2.5 --goodput 0.9\n"
           "\n"
           "  # a run of Metis, and the plans as its rows:\n"
           "  plait plan --metis-args run.sh --format metis\n",
           plan_command},
      Verb{"compare", "run all planners on one problem, and compare their plans and their speed",
           "  plait compare --model gpt2-medium --cluster 4xT4:4 --global-batch 32\n"
           "  plait compare --model gpt2-xl --cluster 1xA100-40GB:4+7xA10:4 --global-batch 64 \\\n"
           "    --max-tp 4 --max-permute-len 4 --time-limit 10s --json\n",
           compare_command},
      Verb{"pareto", "find the mixes of instances that are worth their price",
           "  plait pareto --model gpt2-xl --global-batch 64 --instances "
           "p4d.24xlarge:0-8,g5.24xlarge:0-8\n"
           "  plait pareto --model gpt2-xl --global-batch 64 --tokens 100B --spot --svg front.svg "
           "\\\n"
           "    --instances p3.16xlarge:0-4,g4dn.12xlarge:0-8 --precision fp16 --csv\n"
           "  plait pareto --model llama-2-7b --global-batch 4Mtokens --tokens 1T --deadline 10d "
           "\\\n"
           "    --instances p5.48xlarge:1-32\n",
           pareto_command},
      Verb{"replan", "find the new best plan when devices were lost, added or slowed down",
           "  plait replan plan.json --lost A100-80GB-1\n"
           "  plait replan plan.json --lost-devices 5,6 --add 1xA100-80GB:8 -o new_plan.json\n"
           "  plait replan plan.json --slow A100-80GB-0=0.5 --json\n",
           replan_command},
      Verb{"estimate", "price a saved plan: time and memory of every stage and device",
           "  plait estimate plan.json\n"
           "  plait estimate plan.json --json\n"
           "  plait estimate --from megatron launch.sh --cluster 4xA100-80GB:8\n"
           "  plait estimate --from deepspeed ds_config.json --model llama-3-8b --cluster 8xH100\n"
           "  plait estimate --from fsdp accelerate.yaml --model llama-3-8b --cluster 8xH100 \\\n"
           "    --micro-batch 2 --gradient-accumulation-steps 4\n",
           estimate_command},
      Verb{"explain", "say why a saved plan is as fast as it is, and what a change would do",
           "  plait explain plan.json\n", explain_command},
      Verb{"check",
           "check that a saved plan is valid and fits in memory, and say which programs run it",
           "  plait check plan.json\n"
           "  plait check plan.json --memory-limit 40GiB --json\n",
           check_command},
      Verb{"diff", "put two saved plans side by side: what differs, and where the time goes",
           "  plait diff today.json better.json\n"
           "  plait diff today.json better.json --json\n",
           diff_command},
      Verb{
          "export", "write a saved plan as the files that another program trains with",
          "  plait export plan.json --to megatron -o run\n"
          "  plait export plan.json --to megatron --launcher slurm -o run\n"
          "  plait export plan.json --to torchtitan --nearest -o run     # the best that it runs\n",
          export_command},
      Verb{"profile", "measure what planning needs on the hardware at hand",
           "  plait profile --model gpt3-1.3b --device cuda --tp 1,2,4,8 --micro-batch 1,2,4,8 \\\n"
           "    -o profile.json\n"
           "  plait profile --ops ops.json --device cuda --budget 2m -o ops_profile.json\n"
           "  plait profile merge profile.json ops_profile.json -o all.json\n"
           "  plait profile diff yesterday.json today.json\n",
           profile_command},
      Verb{"import", "turn what another system measured into a plait profile file",
           "  plait import --from metis path/to/profile --model gpt.json -o profile.json\n"
           "  plait import --from amp known_cost/gpt2 --model gpt2-medium -o profile.json\n"
           "  plait plan --model gpt2-medium --cluster 4xT4:4 --global-batch 32 \\\n"
           "    --profile profile.json\n",
           import_command},
      Verb{"validate", "compare predictions with measured runs that others published",
           "  plait validate\n"
           "  plait validate --runs published_runs.csv --by gpu\n"
           "  plait validate --runs published_runs.csv --json --rows predictions.csv\n",
           validate_command},
      Verb{"calibrate",
           "fit constants of your cluster to a handful of runs that you measured on it",
           "  plait calibrate --runs mine.csv -o mine.json\n"
           "  plait plan --model llama-2-7b --cluster 4xH100:8 --global-batch 512 --catalogue "
           "mine.json\n"
           "\n"
           "  # mine.csv: one line a run, and as many columns as you know\n"
           "  # row_id,model,seq_len,gpu,num_gpus,tp,pp,dp,mbs,gbs,recompute,precision,framework,"
           "iter_time_s\n"
           "  # 1,llama-2-7b,4096,H100,16,2,1,8,1,256,none,bf16,Megatron-Core,5.31\n",
           calibrate_command},
      Verb{"train", "execute a saved plan: train the model, and compare with the prediction",
           "  plait train plan.json --local 8 --steps 100          # ranks on this machine\n"
           "  torchrun --nproc-per-node 8 --no-python plait train plan.json\n"
           "  srun plait train plan.json --tokens text.bin --checkpoint run1 --checkpoint-every "
           "500\n"
           "  plait train plan.json --local 4 --threads-per-rank 1,1,4,4 --device cpu --trace "
           "t.json\n",
           train_command},
      Verb{"trial", "run the best plans for a few steps each and keep the measured best",
           "  plait trial --launch './run.sh {plan}' --budget 10 --model gpt2-xl \\\n"
           "    --cluster 2xA100-80GB:8 --global-batch 64 -o best.json\n"
           "  plait trial --launch 'torchrun --nproc-per-node 8 pretrain_gpt.py --log-interval 1 "
           "\\\n"
           "    --tensor-model-parallel-size {tp} --pipeline-model-parallel-size {pp} \\\n"
           "    --micro-batch-size {micro_batch} --global-batch-size {global_batch}' \\\n"
           "    --model gpt2-xl --cluster A100-80GB:8 --global-batch 64 --timeout 5m\n"
           "  plait trial --launch './run.sh' --plans my_plans --time-pattern 'took ([0-9.]+) "
           "(ms)'\n",
           trial_command},
      Verb{"graph", "shard a JAX or XLA program: its blocks, the best plan for a mesh, running it",
           "  plait graph analyze step.hlo\n"
           "  plait graph search step.hlo --cluster 1xA100-80GB:8 --mesh 2x4 -o plan.json\n"
           "  plait graph enumerate step.hlo --cluster 1xA100-80GB:8 --mesh 8 -o all.csv\n"
           "  plait graph run step.py:make --plan plan.json --devices cpu:8\n"
           "  plait graph solve A.json.gz --time-limit 60s -o solution.json\n",
           graph_command},
      Verb{"tokenize", "turn a text into tokens to train on",
           "  plait tokenize book.txt -o tokens.bin --vocabulary 4096\n"
           "  plait tokenize more.txt -o more.bin --tokenizer tokens.json\n"
           "  plait tokenize tokens.bin --decode\n",
           tokenize_command},
      Verb{"models", "list the models that are known by name",
           "  plait models\n"
           "  plait models --json\n",
           models_command},
      Verb{"model", "describe one model: parameters, layers, work of a sample",
           "  plait model llama-2-7b\n"
           "  plait model path/to/config.json --seq 8192\n"
           "  plait model mixtral-8x7b --json\n",
           model_command},
      Verb{"devices", "list the device types that are known by name",
           "  plait devices\n"
           "  plait devices RTX\n"
           "  plait devices --catalogue mine.json --json\n",
           devices_command},
      Verb{"instances", "list the cloud instances that are known by name",
           "  plait instances\n"
           "  plait plan --model gpt2-xl --cluster 2xp4d.24xlarge --global-batch 64\n",
           instances_command},
      Verb{"frameworks", "list the training programs whose execution is predicted, and their names",
           "  plait frameworks\n"
           "  plait plan --model llama-2-7b --cluster 8xH100 --global-batch 64 --framework "
           "torchtune\n",
           frameworks_command},
      Verb{"completion", "print a script that completes plait's words in your shell",
           "  source <(plait completion bash)           # in ~/.bashrc\n"
           "  source <(plait completion zsh)            # in ~/.zshrc\n"
           "  plait completion fish | source            # in ~/.config/fish/config.fish\n",
           completion_command},
      Verb{"version", "print the version",
           "  plait version\n"
           "  plait version --json\n",
           version_command},
      Verb{"help", "explain the program or a verb",
           "  plait help\n"
           "  plait help plan\n",
           help_command},
  };
  return kVerbs;
}

}  // namespace plait
