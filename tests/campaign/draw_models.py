"""Random networks: names of the zoo, configurations of Hugging Face, Megatron-LM's flags, files of plait's own."""
import json
import pathlib

TREE = pathlib.Path(__file__).resolve().parents[2]
HOSTILE = ["x;touch PWNED;#", "a b", "$(id)", "\u001b[31mred", "tab\there", "a\nb", "\u202eltr", "'", '"', "-o", "%s%n", "é" * 40, "<b>&amp;"]


def zoo():
    models = json.loads((TREE / "data/catalogue/models.json").read_text(encoding="utf-8"))["models"]
    return [model["name"] for model in models]


def configs():
    """Of the families of `transformers`, with the sizes that the test of counts has."""
    rows = json.loads((TREE / "tests/models/transformers_counts.json").read_text(encoding="utf-8"))["rows"]
    return [row["config"] for row in rows]


def any_zoo(random, _):
    return random.choice(zoo())


def any_config(random, files):
    """One of them, often with fewer or more layers and another width, sometimes with a key too many."""
    config = dict(random.choice(configs()))
    for key in ("num_hidden_layers", "n_layer", "num_layers", "n_layers"):
        if key in config and random.random() < 0.5:
            config[key] = random.choice([1, 2, 3, 7, 13, 48, 97])
    for key in ("vocab_size", "intermediate_size", "max_position_embeddings"):
        if key in config and random.random() < 0.2:
            config[key] = random.choice([1, 33, 4097, 131071, config[key] + 1 if isinstance(config[key], int) else 64])
    if random.random() < 0.1:
        config[random.choice(["unknown_key", "sliding_window", "num_experts", "quantization_config"])] = random.choice([None, 4, {}, [1], "x"])
    if random.random() < 0.05:
        config["model_type"] = random.choice(["brand_new", "Llama", "x" * 200])
    files["config.json"] = json.dumps(config)
    return "config.json"


def transformer(random):
    heads = random.choice([1, 2, 3, 5, 8, 12, 16, 25, 40, 96])
    head = random.choice([8, 16, 40, 64, 80, 128])
    out = {"layers": random.choice([1, 2, 3, 5, 12, 24, 31, 61, 120]), "hidden": heads * head, "heads": heads,
           "vocabulary": random.choice([2, 100, 32000, 50257, 128256, 262144]), "sequence": random.choice([1, 17, 512, 1024, 2048, 4096, 8191])}
    if random.random() < 0.5:
        out["kv_heads"] = random.choice([n for n in range(1, heads + 1) if heads % n == 0])
    for key, values in {"gated": [True], "norm": ["rms"], "positions": ["none", "learned", "rotary", "relative", "alibi", "sinusoidal"],
                        "tied": [False], "parallel": [True], "causal": [False], "dropout": [False], "shared_layers": [True],
                        "head": ["none", "masked", "language_model"], "ffn": [1, 77, 4 * heads * head, 11008],
                        "norm_place": ["before", "sandwich", "after", "after_adding"], "qk_norm": ["per_head", "whole"],
                        "decoder_layers": [1, 5, 12], "attention_sinks": [True], "score_cap": [50]}.items():
        if random.random() < 0.15:
            out[key] = random.choice(values)
    if random.random() < 0.3:
        experts = random.choice([2, 3, 8, 60, 128, 256])
        out["moe"] = {"experts": experts, "top_k": random.randint(1, min(experts, 8)), "ffn": random.choice([64, 1408, 14336]),
                      "shared_ffn": random.choice([0, 2048]), "first_dense": random.choice([0, 0, 1]), "every": random.choice([1, 1, 2])}
    if random.random() < 0.1 and "positions" not in out:
        out["positions"] = "rotary"
        out["mla"] = {"q_rank": random.choice([0, 512]), "kv_rank": 256, "nope_dim": 64, "rope_dim": 32, "value_dim": 64}
    if random.random() < 0.15:
        out["window"] = {"size": random.choice([1, 128, 4096]), "full": [0]}
    return out


def any_op(random, number):
    rows, inner, columns = (random.choice([1, 7, 64, 1024, 4096]) for _ in range(3))
    name = f"op{number}"
    chosen = random.random()
    if chosen < 0.6:
        return {"name": name, "kind": "matmul", "split": random.choice(["column", "row", "replicated"]), "rows": rows, "inner": inner,
                "columns": columns, "backward_reduce": random.choice([0, rows * inner])}
    if chosen < 0.8:
        return {"name": name, "kind": "elementwise", "split": random.choice(["shard", "replicated"]), "moved": rows * inner,
                "saved": random.choice([0, rows * inner]), "boundary": rows * inner}
    return {"name": name, "kind": random.choice(["norm", "reduction"]), "parameters": inner, "moved": rows * inner, "boundary": rows * inner}


def chain(random):
    """Layers op by op, uneven ones, with parameters that two of them share."""
    kinds = []
    for number in range(random.randint(1, 4)):
        kinds.append({"name": f"kind{number}", "ops": [any_op(random, op) for op in range(random.randint(1, 6))]})
    units = []
    for _ in range(random.randint(1, 6)):
        kind = random.choice(kinds)["name"]
        units.append(random.choice([kind, {"kind": kind, "times": random.choice([1, 2, 9, 40])}]))
    out = {"kinds": kinds, "units": units, "sequence_length": random.choice([1, 33, 1024])}
    count = sum(unit["times"] if isinstance(unit, dict) else 1 for unit in units)
    if count > 1 and random.random() < 0.2:
        out["ties"] = [{"first": 0, "second": count - 1, "parameters": random.choice([1, 4096])}]
    return out


def any_own(random, files):
    model = {"plait_model": 1, "name": random.choice(["mine", "mine", *HOSTILE])}
    chosen = random.random()
    if chosen < 0.6:
        model["transformer"] = transformer(random)
    elif chosen < 0.9:
        model.update(chain(random))
    elif chosen < 0.95:
        model["wide_resnet"] = {"blocks": [3, 4, 6, 3], "channels": 64, "width": random.choice([1, 2, 8]), "classes": 1000, "image": 224}
    else:
        model["transgan"] = {"depths": [5, 4, 2], "channels": 1024, "bottom": 8, "window": 16, "heads": 4, "latent": 512}
    files["model.json"] = json.dumps(model)
    return "model.json"


def any_script(random, files):
    heads = random.choice([4, 12, 20, 32])
    flags = ["--num-layers", random.choice([2, 12, 31, 64]), "--hidden-size", 64 * heads, "--num-attention-heads", heads,
             "--seq-length", random.choice([512, 2048, 4095]), "--max-position-embeddings", 4096]
    for more in (["--swiglu"], ["--untie-embeddings-and-output-weights"], ["--group-query-attention", "--num-query-groups", 4], ["--disable-bias-linear"],
                 ["--num-experts", 8, "--moe-router-topk", 2], ["--normalization", "RMSNorm"], ["--position-embedding-type", "rope"],
                 ["--tensor-model-parallel-size", 2], ["--pipeline-model-parallel-size", 2], ["--bf16"], ["--recompute-activations"]):
        if random.random() < 0.2:
            flags += more
    files["launch.sh"] = "#!/bin/bash\ntorchrun pretrain_gpt.py " + " ".join(map(str, flags)) + "\n"
    return "launch.sh"


def draw_model(random, files):
    """The words after --model; what they name is put into `files`."""
    drawers = [any_zoo] * 8 + [any_config] * 6 + [any_own] * 5 + [any_script]
    return random.choice(drawers)(random, files)
