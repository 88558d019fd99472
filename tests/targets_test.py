#!/usr/bin/env python3
"""Exports of plait, judged by the programs that they are written for.

    ./dev test --targets            makes build/targets with those programs, and runs this

Every plan of a pool, that of each example and those drawn with a seed, is exported to every program: it is accepted
by the program's own code, or refused with a reason. Skipped (77) where build/targets is missing."""
import argparse
import contextlib
import dataclasses
import importlib
import io
import json
import logging
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings

from target_megatron import check_megatron
from target_plans import PROBLEMS, make_pool
from target_run import Plan, Run, plait, recorded

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = ROOT / "build" / "targets" / "bin" / "python"
TARGETS = ["megatron", "deepspeed", "torchtitan", "fsdp", "jax"]
LEAST = 60  # plans a target


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
    beside = written_zero(plan.plan) > 0 and len(plan.stages) == 1 and plan.data > 1
    if plan.job["framework"] == "megatron" and int(plan.plan.get("zero", 0)) > 0:  # which overlaps
        assert config.zero_config.overlap_comm == (beside or written_zero(plan.plan) == 3)
    # DeepSpeed's engine asks this before it cuts states of an optimizer that it has not tested.
    tested = config.optimizer_name.lower() in ("adam", "adamw")
    assert tested or int(config.zero_config.stage) == 0 or config.zero_allow_untested_optimizer
    [call] = recorded(out / "run.sh", PROGRAM="train.py")
    assert call["words"][-1].endswith("ds_config.json")


def check_torchtitan(out):
    from torchtitan.config import ConfigManager
    from torchtitan.components.quantization import float8
    from torchtitan.distributed.parallel_dims import ParallelDims
    float8.has_cuda_capability = lambda *_: True  # its float8 asks for a GPU
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
    group = sharding_group({"plan": plan.plan, "job": plan.job}) if zero else 1
    assert dims.dp_shard * plan.context == group, (dims.dp_shard, group)
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
    known = plan.known_to_torchtitan()
    if known.get("schedule") == "1f1b" and known["micro_batches"] < dims.pp:
        known["schedule"] = "gpipe"  # PyTorch's 1F1B refuses that, and the export says so
    assert read_torchtitan(config, dims, len(plan.devices)) == known
    import torch
    by_row = [name for name, one in named_configs(model) if type(one).__qualname__.startswith("Float8Linear")]
    assert bool(by_row) == (plan.job.get("precision") == "fp8-row") and "lm_head" not in by_row, by_row
    with torch.device("meta"):
        built = model.build()
    stages = json.loads(plait("estimate", out / "plan.json", "--json").stdout)["stages"]
    copies = plan.tensor * (group if zero == 3 else 1)  # what a device has is this part of the whole
    width = 2 if plan.job.get("precision", "bf16") in ("bf16", "fp8-row") else 4
    own = sum(stage["memory"]["weights_GiB"] for stage in stages) * 2**30 * copies / width
    count = sum(p.numel() for p in built.parameters())
    assert abs(count / own - 1) < 1e-2, (count, own, plan.describe)


def named_configs(config, name=""):
    """The configurations of all modules, by their paths."""
    yield name, config
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        for key, one in enumerate(value) if isinstance(value, list) else [("", value)]:
            if dataclasses.is_dataclass(one) and not isinstance(one, type):
                yield from named_configs(one, ".".join(filter(None, [name, field.name, str(key)])))


def read_torchtitan(config, dims, world):
    """The plan that a configuration is, in the fields that TorchTitan has."""
    p, training = config.parallelism, config.training
    recompute = {"NoneType": "none", "SelectiveAC": "selective", "FullAC": "full"}
    schedules = {"GPipe": "gpipe", "1F1B": "1f1b", "Interleaved1F1B": "interleaved", "ZBVZeroBubble": "zb-v"}
    data = dims.dp_replicate * dims.dp_shard
    zero = 0 if dims.dp_shard * dims.cp == 1 else 3 if p.fsdp_reshard_after_forward == "always" else 2
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
    group = sharding_group({"plan": plan.plan, "job": plan.job})
    assert sizes["parallelism_config_dp_shard_size"] == group, (sizes, group)
    assert sizes["parallelism_config_dp_replicate_size"] * group * sizes["parallelism_config_tp_size"] == len(plan.devices)


def check_jax(out):
    plan = Plan(out / "plan.json")
    if len(plan.devices) > 8:
        module = {}
        exec(compile((out / "plait_sharding.py").read_text(), "plait_sharding.py", "exec"), module)
        mesh = module["MESH"]
        assert mesh["data"] * mesh["expert"] * mesh["context"] * mesh["tensor"] == len(plan.devices)
        check_jax_memory(out, plan, module)
        return
    done = subprocess.run([sys.executable, out / "plait_sharding.py"], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "JAX_PLATFORMS": "cpu",
                               "XLA_FLAGS": f"--xla_force_host_platform_device_count={len(plan.devices)}"})
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"on {len(plan.devices)} devices" in done.stdout, done.stdout


def check_jax_memory(out, plan, module):
    """A device has the part of the parameters and of the optimizer's states that plait counts."""
    tree, is_shape = module["jax"].tree, lambda leaf: isinstance(leaf, tuple)
    shapes = module["parameter_shapes"]()
    paths = tree.leaves(module["paths_of"](tree.map(lambda _: 0, shapes, is_leaf=is_shape)))

    def parts(cut):
        return math.prod(module["MESH"][axis] for axis in ([cut] if isinstance(cut, str) else cut or ()))

    def own_part(spec_of):
        total = 0
        for path, shape in zip(paths, tree.leaves(shapes, is_leaf=is_shape)):
            cuts = [parts(cut) for cut in spec_of(path, shape)]
            assert all(size % cut == 0 for size, cut in zip(shape, cuts)), (path, shape, cuts)
            total += math.prod(shape) / math.prod(cuts)
        return total

    memory = json.loads(plait("estimate", out / "plan.json", "--json").stdout)["stages"][0]["memory"]

    # The file cuts over all copies, and says so where the prediction has smaller groups.
    more = plan.data * plan.context / sharding_group({"plan": plan.plan, "job": plan.job})

    def of_one(part, spec_of, bytes_of_one):  # biases and tables of positions are not among the shapes
        each = memory[part] * 2**30 / own_part(module[spec_of])
        assert any(abs(each - size) <= 0.03 * size for size in bytes_of_one), (part, each, plan.describe)
    of_one("weights_GiB", "parameter_spec", [n * (more if int(plan.plan.get("zero", 0)) == 3 else 1) for n in (2, 4)])
    if plan.plan.get("offload", 0) == 0:
        of_one("optimizer_state_GiB", "optimizer_spec", [n * more for n in (0, 4, 8, 12)])


def sizes_of(plan):
    """Units of each stage, sorted: DeepSpeed decides itself which stages have one layer more."""
    return sorted(sum(end - begin for begin, end in (span["units"] for span in stage["spans"]))
                  for stage in plan["stages"])


def sharding_group(saved):
    """Devices over which states are cut."""
    plan, group = saved["plan"], saved["job"].get("zero_group", 0)
    copies = plan["stages"][0]["spans"][0].get("data", 1) * plan.get("context", 1)
    return group if group and copies % group == 0 and int(plan.get("zero", 0)) else copies


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
    written = ["global_batch", "precision", "optimizer"]
    if target == "megatron":
        written += ["attention", "overlap", "gradient_bytes"]
        assert sharding_group(own) == sharding_group(read), (own["job"], read["job"])
    for key in written:
        assert own["job"].get(key) == read["job"].get(key), (key, own["job"], read["job"])
    if len(own["plan"]["stages"]) == 1:  # without a pipeline there is no schedule
        own["plan"]["schedule"] = read["plan"]["schedule"]
    if target == "megatron":
        assert own["plan"] == read["plan"], (own["plan"], read["plan"])
        return True
    decided = {"stages"} if len(set(sizes_of(own["plan"]))) > 1 else set()
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
        out = Run.folder / f"{target}-{name}"
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
            returned += target == "torchtitan"  # its check reads the plan back
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
    Run.program = str(pathlib.Path(arguments.program).resolve())
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as name:
        Run.folder = pathlib.Path(name)
        pool = make_pool(plait, Run.folder, arguments.plans, arguments.seed)
        print(f"{len(pool)} plans", flush=True)
        wrong = sum(judge(target, pool) for target in arguments.targets or TARGETS)
    return 1 if wrong or len(pool) < arguments.plans else 0


if __name__ == "__main__":
    sys.exit(main())
