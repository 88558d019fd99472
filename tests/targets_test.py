#!/usr/bin/env python3
"""Exports of plait, judged by the programs that they are written for.

    ./dev test --targets            makes build/targets with those programs, and runs this

Every plan of a pool, that of each example and those drawn with a seed, is exported to every program: it is accepted
by the program's own code, or refused with a reason. Skipped (77) where build/targets is missing."""
import argparse
import contextlib
import importlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings

from target_plans import PROBLEMS, make_pool

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = ROOT / "build" / "targets" / "bin" / "python"
TARGETS = ["megatron", "deepspeed", "torchtitan", "fsdp", "jax"]
LEAST = 60  # plans a target


def plait(*words, ok=(0,)):
    done = subprocess.run([program, *map(str, words)], cwd=folder, capture_output=True, text=True,
                          timeout=300, stdin=subprocess.DEVNULL)
    assert done.returncode in ok, f"{words}: exit {done.returncode}\n{done.stderr}"
    return done


def recorded(script, **more):
    """Words of the first program that run.sh starts, and the environment that it gets."""
    from stub_launchers import Stubs
    stubs = Stubs(tempfile.mkdtemp(dir=folder))
    return stubs.run(["bash", str(script)], folder, **more)


class Plan:
    def __init__(self, path):
        saved = json.loads(path.read_text())
        self.plan, self.model, self.job = saved["plan"], saved["model"], saved["job"]
        self.stages, self.describe = self.plan["stages"], saved["describe"]
        self.network = self.model["architecture"].get("transformer")  # None: only ops are known
        span = self.stages[0]["spans"][0]
        self.tensor, self.data = span.get("tensor", 1), span.get("data", 1)
        self.context, self.expert = self.plan.get("context", 1), self.plan.get("expert", 1)
        self.devices = [d for s in self.stages for d in s["devices"]]

    def padded_vocabulary(self, flags):
        """As Megatron-LM pads it; the tokenizer that only counts adds a word."""
        multiple = int(flags["make_vocab_size_divisible_by"]) * self.tensor
        return -(-(int(flags["vocab_size"]) + 1) // multiple) * multiple

    def known_to_torchtitan(self):
        plan = {"tensor": self.tensor, "context": self.context, "data": self.data,
                "zero": int(self.plan.get("zero", 0)) if self.data > 1 else 0,
                "recompute": self.stages[0]["spans"][0].get("recompute", "none"),
                "sequence_parallel": self.tensor > 1 and self.plan["sequence_parallel"],
                "micro_batches": self.plan["micro_batches"]}
        if len(self.stages) == 1:
            return plan
        return plan | {"schedule": self.plan["schedule"], "layers": self.layers_by_chunk(), "stages": len(self.stages)}

    def layers_by_chunk(self):
        """Layers of each chunk in the order of the pipeline: units without embedding and head."""
        count, chunks = self.network["layers"] + 2, {}
        for s, stage in enumerate(self.stages):
            for span in stage["spans"]:
                begin, end = span["units"]
                layers = sum(1 for u in range(begin, end) if 0 < u < count - 1)
                key = (span.get("chunk", 0), s)
                chunks[key] = chunks.get(key, 0) + layers
        if self.plan.get("schedule") == "zb-v":
            last = len(self.stages) - 1
            keys = sorted(chunks, key=lambda k: k[1] if k[0] == 0 else 2 * last + 1 - k[1])
        else:
            keys = sorted(chunks)
        return [chunks[key] for key in keys]


def flag_table():
    """Megatron-LM's flags with their numbers of values, as the test beside the exporter lists them."""
    text = (ROOT / "src" / "export" / "megatron_test.cpp").read_text()
    return {flag: int(n) for flag, n in re.findall(r'\{"(--[a-z0-9-]+)", (\d)\}', text)}


def parsed_flags(words):
    table, flags, at = flag_table(), {}, 0
    while at < len(words):
        flag = words[at]
        assert flag in table, f"not a flag of Megatron-LM: {flag}"
        end = at + 1
        while end < len(words) and not words[end].startswith("--"):
            end += 1
        values = words[at + 1:end]
        assert table[flag] == 9 and values or len(values) == table[flag], (flag, values)
        assert flag not in flags, f"{flag} twice"
        flags[flag[2:].replace("-", "_")] = values[0] if table[flag] == 1 else values or True
        at = end
    return flags


def check_megatron(out):
    import torch
    from megatron.core.optimizer import optimizer_config
    from megatron.core.parallel_state import RankGenerator
    from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout
    from megatron.core.transformer.transformer_config import MLATransformerConfig, TransformerConfig
    plan = Plan(out / "plan.json")
    [call] = recorded(out / "run.sh", DATA_PATH="data", VOCAB_FILE="words", CHECKPOINTS="kept here")
    words = call["words"]
    at = next(i for i, word in enumerate(words) if word.endswith(".py"))
    f = parsed_flags(words[at + 1:])
    tp, pp = int(f["tensor_model_parallel_size"]), int(f["pipeline_model_parallel_size"])
    cp, ep = int(f.get("context_parallel_size", 1)), int(f.get("expert_model_parallel_size", 1))
    if tp > 1 or cp > 1:
        assert call["environment"]["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"
    world = len(plan.devices)
    dp = world // (tp * pp * cp)
    assert int(f["global_batch_size"]) % (int(f["micro_batch_size"]) * dp) == 0
    # The layers of every stage.
    layers = int(f.get("num_layers") or f["encoder_num_layers"])
    if "encoder_num_layers" in f:  # pretrain_t5.py: one stage, both stacks of the same size
        chunks = 1
        assert pp == 1 and words[at].endswith("pretrain_t5.py")
        assert layers == plan.network["layers"] == int(f["decoder_num_layers"]) == plan.network["decoder_layers"]
        got = plan.layers_by_chunk()
    elif "pipeline_model_parallel_layout" in f:
        layout = PipelineParallelLayerLayout.from_str(f["pipeline_model_parallel_layout"], pp)
        layout.validate_layer_layout(layers, None)
        chunks = layout.virtual_pipeline_model_parallel_size
        from megatron.core.transformer.enums import LayerType
        got = [layout.layout[p][v].count(LayerType.decoder) for v in range(chunks) for p in range(pp)]
    else:
        chunks = int(f.get("num_virtual_stages_per_pipeline_rank", 1))
        got = [layers // (pp * chunks)] * (pp * chunks)
    assert got == plan.layers_by_chunk(), (got, plan.layers_by_chunk())
    # The groups of every rank are the plan's devices.
    ranks = RankGenerator(tp=tp, ep=1, dp=dp, pp=pp, cp=cp, order="tp-cp-ep-dp-pp")
    size = tp * cp
    want = [stage["devices"][i:i + tp] for stage in plan.stages for i in range(0, len(stage["devices"]), tp)]
    assert sorted([plan.devices[r] for r in g] for g in ranks.get_ranks("tp")) == sorted(want)
    want = [[stage["devices"][d * size + i] for d in range(dp)] for stage in plan.stages for i in range(size)]
    assert sorted([plan.devices[r] for r in g] for g in ranks.get_ranks("dp")) == sorted(want)
    want = [[stage["devices"][i] for stage in plan.stages] for i in range(dp * size)]
    assert sorted([plan.devices[r] for r in g] for g in ranks.get_ranks("pp")) == sorted(want)
    # The network and its parallelism.
    latent = "multi_latent_attention" in f
    number = lambda key, kind=int, fallback=None: kind(f[key]) if key in f else fallback
    kind = MLATransformerConfig if latent else TransformerConfig
    more = dict(q_lora_rank=number("q_lora_rank"), kv_lora_rank=number("kv_lora_rank"),
                qk_head_dim=number("qk_head_dim"), qk_pos_emb_head_dim=number("qk_pos_emb_head_dim"),
                v_head_dim=number("v_head_dim"), rope_type=f["rope_type"]) if latent else {}
    biased = "disable_bias_linear" not in f
    if "moe_layer_freq" in f:
        more["moe_layer_freq"] = eval(f["moe_layer_freq"])  # as Megatron-LM does
        assert len(more["moe_layer_freq"]) == layers
    if "fp8_format" in f:
        more |= dict(fp8=f["fp8_format"], fp8_recipe=f["fp8_recipe"])
    built = kind(num_layers=layers, hidden_size=int(f["hidden_size"]),
         num_attention_heads=int(f["num_attention_heads"]), ffn_hidden_size=int(f["ffn_hidden_size"]),
         num_query_groups=number("num_query_groups"), kv_channels=number("kv_channels"),
         hidden_dropout=float(f["hidden_dropout"]), attention_dropout=float(f["attention_dropout"]),
         layernorm_epsilon=float(f["norm_epsilon"]), add_bias_linear=biased,
         add_qkv_bias="add_qkv_bias" in f, gated_linear_unit="swiglu" in f,
         activation_func=torch.nn.functional.silu if "swiglu" in f else torch.nn.functional.gelu,
         normalization=f["normalization"], qk_layernorm="qk_layernorm" in f,
         num_moe_experts=number("num_experts"), moe_ffn_hidden_size=number("moe_ffn_hidden_size"),
         moe_router_topk=number("moe_router_topk", int, 2),
         moe_shared_expert_intermediate_size=number("moe_shared_expert_intermediate_size"),
         moe_router_pre_softmax="moe_router_pre_softmax" in f,
         moe_token_dispatcher_type=f.get("moe_token_dispatcher_type", "allgather"),
         tensor_model_parallel_size=tp, pipeline_model_parallel_size=pp, context_parallel_size=cp,
         expert_model_parallel_size=ep, sequence_parallel="sequence_parallel" in f,
         virtual_pipeline_model_parallel_size=chunks if chunks > 1 else None,
         pipeline_model_parallel_layout=f.get("pipeline_model_parallel_layout"),
         recompute_granularity=f.get("recompute_granularity"),
         recompute_method=f.get("recompute_method"), recompute_num_layers=number("recompute_num_layers"),
         recompute_modules=f.get("recompute_modules"),
         bf16="bf16" in f, fp16="fp16" in f, params_dtype=torch.bfloat16 if "bf16" in f else torch.float16
         if "fp16" in f else torch.float32, pipeline_dtype=torch.bfloat16, **more)
    optimizer_config.is_te_min_version = lambda *_: True  # Transformer Engine needs a GPU
    optimizer_config.OptimizerConfig(
        optimizer=f["optimizer"], use_distributed_optimizer="use_distributed_optimizer" in f,
        use_precision_aware_optimizer="use_precision_aware_optimizer" in f,
        optimizer_cpu_offload="optimizer_cpu_offload" in f,
        optimizer_offload_fraction=float(f.get("optimizer_offload_fraction", 0)),
        overlap_param_gather="overlap_param_gather" in f, bf16="bf16" in f, fp16="fp16" in f,
        fp8_recipe=f.get("fp8_recipe"))
    if words[at].endswith("pretrain_gpt.py") and not latent:  # which needs Transformer Engine
        f["padded_vocab_size"] = plan.padded_vocabulary(f)
        check_megatron_shards(out, plan, built, f, {"tp": tp, "pp": pp, "cp": cp, "ep": ep,
                                                    "chunks": chunks if chunks > 1 else None})


def check_megatron_shards(out, plan, config, flags, degrees):
    """Megatron-Core's own network has in every stage the parameters that plait counts there."""
    from megatron_shards import parameters_of
    config.bias_activation_fusion = config.bias_dropout_fusion = False
    config.masked_softmax_fusion = config.moe_grouped_gemm = config.perform_initialization = False
    # Neither changes parameters, and what stands for Transformer Engine refuses both.
    config.sequence_parallel, config.context_parallel_size = False, 1
    width = 4 if "bf16" not in flags and "fp16" not in flags else 2
    stages = json.loads(plait("estimate", out / "plan.json", "--json").stdout)["stages"]
    for number in {0, len(stages) // 2, len(stages) - 1}:
        rank = number * len(plan.stages[0]["devices"])
        parameters, _ = parameters_of(rank, len(plan.devices), degrees, config, flags)
        own = stages[number]["memory"]["weights_GiB"] * 2**30 / width
        # plait cuts biases that every rank has whole, and pads no table of words in memory.
        assert abs(parameters / own - 1) < 3e-3, (number, parameters, own)


def written_zero(plan):
    """Offloading is part of ZeRO: one replica alone has stage 1 then, which cuts nothing."""
    return max(int(plan.get("zero", 0)), 1 if plan.get("offload", 0) > 0 else 0)


def check_deepspeed(out):
    from deepspeed import comm
    from deepspeed.runtime.config import DeepSpeedConfig
    plan = Plan(out / "plan.json")
    comm.get_rank = lambda *_: 0  # without it DeepSpeed takes the world for one process

    class Mesh:  # of the replicas: DeepSpeed asks for their number
        @staticmethod
        def get_data_parallel_world_size():
            return plan.data
    config = DeepSpeedConfig(str(out / "ds_config.json"), mpu=Mesh)
    assert config.train_micro_batch_size_per_gpu * config.gradient_accumulation_steps * plan.data \
        == config.train_batch_size == plan.job["global_batch"]
    assert config.gradient_accumulation_steps == plan.plan["micro_batches"]
    assert int(config.zero_config.stage) == written_zero(plan.plan)
    assert (config.zero_config.offload_optimizer is not None) == (plan.plan.get("offload", 0) > 0)
    precision = plan.job.get("precision", "bf16")
    assert config.bfloat16_config.enabled == (precision == "bf16")
    assert config.float16_config.enabled == (precision == "fp16")
    if len(plan.stages) > 1:
        assert config.pipeline["stages"] == len(plan.stages)
    recompute = plan.stages[0]["spans"][0].get("recompute", "none")
    assert (config.activation_checkpointing_config.number_checkpoints is not None) == (recompute == "full")
    # DeepSpeed's engine asks this before it cuts states of an optimizer that it has not tested.
    tested = config.optimizer_name.lower() in ("adam", "adamw")
    assert tested or int(config.zero_config.stage) == 0 or config.zero_allow_untested_optimizer
    [call] = recorded(out / "run.sh", PROGRAM="train.py")
    assert call["words"][-1].endswith("ds_config.json")


def check_torchtitan(out):
    from torchtitan.config import ConfigManager
    from torchtitan.distributed.parallel_dims import ParallelDims
    plan = Plan(out / "plan.json")
    sys.modules.pop("plait_plan", None)
    sys.path.insert(0, str(out))
    try:
        importlib.invalidate_caches()
        [call] = recorded(out / "run.sh", CHECKPOINTS="kept here", STEPS="7")
        config = ConfigManager().parse_args(call["words"][call["words"].index("torchtitan.train") + 1:])
    finally:
        sys.path.pop(0)
    assert config.training.steps == 7 and config.checkpoint.enable and config.checkpoint.folder == "kept here"
    p = config.parallelism
    dims = ParallelDims.from_config(p, len(plan.devices))
    assert (dims.tp, dims.cp, dims.pp) == (plan.tensor, plan.context, len(plan.stages))
    assert dims.dp_replicate * dims.dp_shard == plan.data
    zero = int(plan.plan.get("zero", 0))
    assert (dims.dp_shard > 1) == (zero > 0 and plan.data > 1)
    config.model_spec.model.update_from_config(config=config)
    n = plan.network
    model = config.model_spec.model
    assert (len(model.layers), model.dim, model.vocab_size) == (n["layers"], n["hidden"], plan.model["vocabulary"])
    assert config.training.seq_len == plan.model["sequence_length"]
    if dims.pp > 1:
        parts = p.module_fqns_per_model_part
        assert [sum(m.startswith("layers.") for m in part) for part in parts] == plan.layers_by_chunk()
        assert sum(parts, []) == ["tok_embeddings", *(f"layers.{i}" for i in range(n["layers"])), "norm",
                                  "lm_head"]
        assert config.training.local_batch_size // p.pipeline_parallel_microbatch_size \
            == plan.plan["micro_batches"]
        from torch.distributed.pipelining.schedules import get_schedule_class
        get_schedule_class(p.pipeline_parallel_schedule)
    else:
        assert config.training.local_batch_size * plan.plan["micro_batches"] * plan.data \
            == config.training.global_batch_size
    assert read_torchtitan(config, dims, len(plan.devices)) == plan.known_to_torchtitan()
    import torch
    with torch.device("meta"):
        built = model.build()
    stages = json.loads(plait("estimate", out / "plan.json", "--json").stdout)["stages"]
    copies = plan.tensor * (plan.data * plan.context if zero == 3 else 1)  # what a device has is this part of the whole
    width = 2 if plan.job.get("precision", "bf16") == "bf16" else 4
    own = sum(stage["memory"]["weights_GiB"] for stage in stages) * 2**30 * copies / width
    count = sum(p.numel() for p in built.parameters())
    assert abs(count / own - 1) < 1e-2, (count, own, plan.describe)


def read_torchtitan(config, dims, world):
    """The plan that a configuration is, in the fields that TorchTitan has."""
    p, training = config.parallelism, config.training
    recompute = {"NoneType": "none", "SelectiveAC": "selective", "FullAC": "full"}
    schedules = {"GPipe": "gpipe", "1F1B": "1f1b", "Interleaved1F1B": "interleaved", "ZBVZeroBubble": "zb-v"}
    data = dims.dp_replicate * dims.dp_shard
    zero = 0 if dims.dp_shard == 1 else 3 if p.fsdp_reshard_after_forward == "always" else 2
    plan = {"tensor": dims.tp, "context": dims.cp, "data": data, "zero": zero,
            "recompute": recompute[type(config.activation_checkpoint).__qualname__.split(".")[0]],
            "sequence_parallel": dims.tp > 1 and p.enable_sequence_parallel}
    if dims.pp == 1:
        return plan | {"micro_batches": training.global_batch_size // (training.local_batch_size * data)}
    parts = [sum(m.startswith("layers.") for m in part) for part in p.module_fqns_per_model_part]
    return plan | {"micro_batches": training.local_batch_size // p.pipeline_parallel_microbatch_size,
                   "schedule": schedules[p.pipeline_parallel_schedule], "layers": parts,
                   "stages": world // (data * dims.tp * dims.cp)}


def check_fsdp(out):
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import launch_command_parser
    from accelerate.utils import FullyShardedDataParallelPlugin
    plan = Plan(out / "plan.json")
    config = load_config_from_file(str(out / "accelerate.yaml"))
    assert config.num_processes == len(plan.devices)
    zero = int(plan.plan.get("zero", 0))
    assert (config.distributed_type.value == "FSDP") == (zero > 0)
    [call] = recorded(out / "run.sh", PROGRAM="train.py")
    launch_command_parser().parse_args(call["words"][1:])
    assert int(call["environment"]["GRADIENT_ACCUMULATION_STEPS"]) == plan.plan["micro_batches"]
    if zero == 0:
        return
    words = {f"FSDP_{key[5:].upper()}": str(value).lower() if isinstance(value, bool) else str(value)
             for key, value in config.fsdp_config.items()}
    kept = dict(os.environ)
    os.environ.update(words)
    try:
        plugin = FullyShardedDataParallelPlugin()
    finally:
        os.environ.clear()
        os.environ.update(kept)
    assert plugin.fsdp_version == 2 and plugin.reshard_after_forward == (zero == 3)
    recompute = plan.stages[0]["spans"][0].get("recompute", "none")
    assert plugin.activation_checkpointing == (recompute == "full")
    sizes = config.parallelism_config
    assert sizes["parallelism_config_dp_shard_size"] * sizes["parallelism_config_tp_size"] == len(plan.devices)


def check_jax(out):
    plan = Plan(out / "plan.json")
    if len(plan.devices) > 8:
        module = {}
        exec(compile((out / "plait_sharding.py").read_text(), "plait_sharding.py", "exec"), module)
        mesh = module["MESH"]
        assert mesh["data"] * mesh["expert"] * mesh["context"] * mesh["tensor"] == len(plan.devices)
        leaves = module["jax"].tree.leaves(module["paths_of"](module["parameter_shapes"]()))
        assert all(module["parameter_spec"](path.rsplit("/", 1)[0]) is not None for path in leaves)
        return "shapes"
    done = subprocess.run([sys.executable, out / "plait_sharding.py"], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "JAX_PLATFORMS": "cpu",
                               "XLA_FLAGS": f"--xla_force_host_platform_device_count={len(plan.devices)}"})
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"on {len(plan.devices)} devices" in done.stdout, done.stdout
    return "run"


def sizes_of(plan):
    """Units of each stage, sorted: DeepSpeed decides itself which stages have one layer more."""
    return sorted(sum(end - begin for begin, end in (span["units"] for span in stage["spans"]))
                  for stage in plan["stages"])


def check_round_trip(target, name, out):
    """plait's own reader makes the same plan of it, where all devices are used in the order of their ranks."""
    own = json.loads((out / "plan.json").read_text())
    devices = [d for stage in own["plan"]["stages"] for d in stage["devices"]]
    words = PROBLEMS[name]
    if target == "megatron":
        words = words[words.index("--cluster"):]
        file = out / "run.sh"
    else:
        file = out / "ds_config.json"
    if devices != list(range(sum(run["count"] for run in own["cluster"]["devices"]))):
        return False
    back = out / "back.json"
    plait("import", "--from", target, file, *words, "-o", back)
    read = json.loads(back.read_text())
    own["plan"]["zero"] = written_zero(own["plan"])
    for key in ("global_batch", "precision", "optimizer"):
        assert own["job"].get(key) == read["job"].get(key), (key, own["job"], read["job"])
    if target == "megatron":
        assert own["plan"] == read["plan"], (own["plan"], read["plan"])
        return True
    decided = {"stages"} if len(set(sizes_of(own["plan"]))) > 1 else set()
    if len(own["plan"]["stages"]) == 1:
        decided.add("schedule")  # without a pipeline there is none
    assert sizes_of(own["plan"]) == sizes_of(read["plan"])
    for key in (own["plan"].keys() | read["plan"].keys()) - decided:
        assert own["plan"].get(key) == read["plan"].get(key), (key, own["plan"], read["plan"])
    return True


CHECKS = {"megatron": check_megatron, "deepspeed": check_deepspeed, "torchtitan": check_torchtitan,
          "fsdp": check_fsdp, "jax": check_jax}


def slurm_answers():
    """Whether there is a controller of Slurm to ask."""
    if not shutil.which("scontrol"):
        return False
    return "is UP" in subprocess.run(["scontrol", "ping"], capture_output=True, text=True, check=False).stdout


def check_job(script):
    """Slurm reads the job; that this site has no such nodes is not a fault of it."""
    done = subprocess.run(["sbatch", "--test-only", script.name], cwd=script.parent, capture_output=True, text=True,
                          check=False)
    elsewhere = ("not available", "Invalid account", "Invalid partition", "invalid partition")
    assert done.returncode == 0 or any(words in done.stderr for words in elsewhere), done.stderr


def check_scripts(out):
    for script in [*out.glob("*.sh"), *out.glob("*.sbatch")]:
        subprocess.run(["bash", "-n", script], check=True)
        if shutil.which("shellcheck"):
            done = subprocess.run(["shellcheck", script], capture_output=True, text=True)
            assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        if script.suffix == ".sbatch" and slurm_answers():
            check_job(script)


def judge(target, plans):
    """Numbers of plans that are accepted, refused and wrong."""
    accepted = nearest = refused = wrong = returned = 0
    reasons = {}
    for number, name in enumerate(plans):
        out = folder / f"{target}-{name}"
        launcher = ["torchrun", "slurm", "mpirun", "ssh"][number % 4]
        words = ["export", name, "--to", target, "-o", out, "--launcher", launcher, "--time-limit", "3s"]
        try:
            done = plait(*words, ok=(0, 3))
            if done.returncode == 3:
                reason = done.stderr.strip().split(": ", 2)[2]
                reasons[reason[:60]] = reasons.get(reason[:60], 0) + 1
                refused += 1
                if "--nearest writes it" not in done.stderr:
                    continue
                plait(*words, "--nearest")
                nearest += 1
            else:
                accepted += 1
            check_scripts(out)
            with contextlib.redirect_stdout(io.StringIO()):
                CHECKS[target](out)
            if target in ("megatron", "deepspeed"):
                returned += check_round_trip(target, name, out)
        except Exception:
            wrong += 1
            print(f"{target}: {name} ({out}):\n{traceback.format_exc()[-2500:]}", flush=True)
    print(f"{target}: {len(plans)} plans, {accepted} accepted as they are, {refused} refused with a reason, "
          f"for {nearest} of them the nearest accepted, {returned} read back the same, {wrong} wrong", flush=True)
    for reason, count in sorted(reasons.items(), key=lambda row: -row[1])[:8]:
        print(f"    {count} x {reason}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--plans", type=int, default=LEAST)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("targets", nargs="*")
    arguments = parser.parse_args()
    if not PYTHON.exists():
        print("skipped: there is no build/targets; ./dev test --targets makes it")
        return 77
    if pathlib.Path(sys.prefix).resolve() != PYTHON.parent.parent.resolve():
        os.execv(PYTHON, [str(PYTHON), __file__, *sys.argv[1:]])
    global program, folder
    program = str(pathlib.Path(arguments.program).resolve())
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        pool = make_pool(plait, folder, arguments.plans, arguments.seed)
        print(f"{len(pool)} plans", flush=True)
        wrong = sum(judge(target, pool) for target in arguments.targets or TARGETS)
    return 1 if wrong or len(pool) < arguments.plans else 0


if __name__ == "__main__":
    sys.exit(main())
