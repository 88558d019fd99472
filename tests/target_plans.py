"""Plans that tests/targets_test.py exports: of all examples, and drawn ones."""
import json
import pathlib
import random

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ["megatron", "deepspeed", "torchtitan", "fsdp", "jax", "any"]  # of drawn plans, in turn

LLAMA = {"gated": True, "activation": "silu", "norm": "rms", "positions": "rotary", "qkv_bias": False,
         "projection_bias": False, "mlp_bias": False, "dropout": False, "tied": False}
MODELS = {
    "small-llama": {**LLAMA, "layers": 12, "hidden": 1024, "heads": 16, "kv_heads": 4, "ffn": 2816,
                    "vocabulary": 32000, "sequence": 1024},
    "long-llama": {**LLAMA, "layers": 8, "hidden": 1024, "heads": 16, "vocabulary": 32000,
                   "sequence": 32768,
                   "rotary": {"base": 500000, "scaling": "llama3", "factor": 8}},
    "odd-llama": {**LLAMA, "layers": 7, "hidden": 960, "heads": 15, "kv_heads": 5, "ffn": 2560, "vocabulary": 49152,
                  "sequence": 2048, "tied": True},
    "window-llama": {**LLAMA, "layers": 6, "hidden": 1024, "heads": 16, "kv_heads": 8, "ffn": 2816, "vocabulary": 32000,
                     "sequence": 2048, "window": {"size": 512, "full": [2, 5]}},
    "small-t5": {"layers": 12, "hidden": 768, "heads": 12, "vocabulary": 29184, "sequence": 512, "decoder_layers": 12,
                 "decoder_sequence": 128, "causal": False, "head_bias": True},
    "latent-experts": {**LLAMA, "layers": 6, "hidden": 1024, "heads": 16, "ffn": 2816, "vocabulary": 32000,
                       "sequence": 1024, "mla": {"q_rank": 384, "kv_rank": 128, "nope_dim": 64, "rope_dim": 32,
                                                 "value_dim": 64},
                       "moe": {"experts": 16, "top_k": 4, "ffn": 512, "shared_ffn": 512, "first_dense": 1}},
    "small-experts": {**LLAMA, "layers": 8, "hidden": 1024, "heads": 16, "vocabulary": 32000,
                      "sequence": 1024, "moe": {"experts": 8, "top_k": 2, "ffn": 1024}},
}
ZOO = ["gpt2", "gpt2-medium", "llama-2-7b", "llama-3-8b", "mixtral-8x7b", "gpt2-xl", "bert-large"]
LLAMAS = ["small-llama", "long-llama", "odd-llama", "llama-2-7b", "llama-3-8b"]
CLUSTERS = ["1xA100-80GB:8", "2xA100-80GB:8", "1xH100:8", "4xH100:8", "1xA100-80GB:8+2xA10:4",
            "2xA100-80GB:8+4xV100-16GB:4", "1xA100-80GB:4+1xH100:4"]


PROBLEMS = {}  # by the name of a plan file: --model M --cluster C of it


def draw_plan(plait, draw, number):
    """A plan file, or nothing where the words that were drawn have no plan."""
    runs_on = PROGRAMS[number % len(PROGRAMS)]
    model = draw.choice(LLAMAS if runs_on in ("torchtitan", "any") else [*MODELS, *ZOO])
    cluster = draw.choice(CLUSTERS)
    words = ["--model", f"{model}.json" if model in MODELS else model, "--cluster", cluster,
             "--global-batch", draw.choice([32, 64, 256]), "--time-limit", "3s"]
    words += ["--runs-on", runs_on]
    pins = [["--tp", draw.choice([1, 2, 4])], ["--pp", draw.choice([2, 4])], ["--recompute", "full"],
            ["--recompute", "selective"], ["--zero", draw.choice([0, 1, 2, 3])], ["--cp", 2],
            ["--pp", 2, "--schedule", "interleaved", "--chunks", 2], ["--micro-batch", 1], ["--ep", 2],
            ["--precision", draw.choice(["fp8", "fp8-row", "fp16", "fp32"])], ["--optimizer", draw.choice(["sgd", "momentum"])],
            ["--offload", draw.choice(["0.5", "1"])], ["--zero-group", draw.choice([2, 4, 8])]]
    for pin in draw.sample(pins, draw.choice([0, 1, 1, 2])):
        if pin[0] not in words and not (pin[0] == "--ep" and "mix" not in model and "exp" not in model):
            words += pin
    name = f"plan{number}.json"
    done = plait("plan", *words, "-o", name, ok=(0, 2, 3))
    if done.returncode != 0:
        return None
    PROBLEMS[name] = words[:4]
    return name


def example_plans(plait):
    """A plan of each example model, and one on each example cluster."""
    examples = ROOT / "examples"
    models = [*sorted(examples.glob("models/*.json")), *sorted(examples.glob("models/*/config.json")),
              *sorted(examples.glob("models/*.sh"))]
    clusters = [["--cluster", file] for file in sorted(examples.glob("clusters/*.json"))
                if file.name != "metis_clusterfile.json"]
    clusters += [["--cluster", examples / "clusters/hostfile", "--device", "A100-80GB"],
                 ["--cluster", examples / "clusters/metis_hostfile", "--clusterfile",
                  examples / "clusters/metis_clusterfile.json"]]
    words = [["--model", model, "--cluster", "1xA100-80GB:8"] for model in models]
    small = ["gpt2", "small-llama.json"]
    words += [["--model", small[number % 2], *cluster] for number, cluster in enumerate(clusters)]
    for number, some in enumerate(words):
        name = f"example{number}.json"
        plait("plan", *some, "--global-batch", 64, "--time-limit", "3s", "-o", name)
        PROBLEMS[name] = some
        yield name


def make_pool(plait, folder, least, seed):
    """Names of plan files in the folder: those of all examples, and others drawn with the seed. `plait` runs the
    program there."""
    for name, config in MODELS.items():
        (folder / f"{name}.json").write_text(
            json.dumps({"plait_model": 1, "name": name, "transformer": config}))
    draw, pool, number = random.Random(seed), list(example_plans(plait)), 0
    while len(pool) < least and number < 10 * least:
        if (plan := draw_plan(plait, draw, number)) is not None:
            pool.append(plan)
        number += 1
    return pool
