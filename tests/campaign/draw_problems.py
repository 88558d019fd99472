"""Random questions to `plait plan`: a network, a cluster, and flags in legal and contradictory combinations."""
import dataclasses
import random as randomness
import re

from draw_clusters import any_network, catalogue, draw_cluster
from draw_models import draw_model

FRAMEWORKS = [framework["name"] for framework in catalogue("frameworks")]
TARGETS = ["megatron", "megatron-deepspeed", "deepspeed", "fsdp", "torchtitan", "jax", "aceso", "plait", "any"]
DEGREES = [1, 1, 2, 2, 2, 4, 4, 4, 8, 8, 3, 5, 6, 7, 16]
PINS = {
    "--tp": DEGREES, "--pp": DEGREES, "--dp": DEGREES, "--cp": [1, 2, 2, 3, 4, 8], "--ep": [1, 2, 4, 8],
    "--micro-batch": [1, 1, 2, 3, 4, 8, 64], "--micro-batches": [1, 2, 3, 4, 8, 16, 64, 511],
    "--recompute": ["none", "selective", "full"], "--recompute-layers": [0, 1, 2, 5], "--zero": [0, 1, 2, 3],
    "--schedule": ["gpipe", "1f1b", "interleaved", "zb-h1", "zb-2p", "zb-v"], "--chunks": [1, 2, 3, 4, 8],
    "--sp": [None], "--no-sp": [None], "--stages": ["even", "any", "1,1", "6,6", "3,4,5"], "--offload": ["1", "0.5", "none", "0.01"],
}
JOBS = {
    "--precision": ["fp32", "tf32", "fp16", "bf16", "pure-bf16", "fp8", "fp8-row", "fp4"], "--optimizer": ["adam", "sgd", "momentum", "adam8bit"],
    "--attention": ["flash", "plain"], "--no-overlap": [None], "--granularity": ["op", "layer"], "--lora": [1, 8, 16, 64, 1000],
    "--qlora": [8, 16], "--freeze": [1, 5, 30], "--flash-kernel": ["first", "second", "native"], "--graph-capture": [None],
    "--zero-group": [1, 2, 3, 8], "--pure-states": [None], "--gradient-bytes": [2, 4], "--reduce-bytes": [2, 4], "--logit-bytes": [2, 4],
    "--pad-vocabulary": [1, 128, 1000], "--memory-limit": ["1GiB", "8GiB", "12000MB", "70GiB", "500GiB"], "--reserve": ["0", "0.1", "50%", "4GiB"],
    "--tokens": ["1B", "300B"], "--goodput": ["0.9", "1%"],
}
ASKED = {
    "--objective": ["time", "cost", "cost-time"], "--deadline": ["10d", "1h"], "--budget": ["100USD", "20k"], "--top": [1, 2, 100],
    "--effort": ["quick", "normal", "thorough", "prove"], "--target-gap": ["0", "1%", "50%"], "--explain-search": [None],
}
PLANNERS = ["amp", "fasop", "metis", "aceso", "exhaustive"]
LIMITS_MS = [20, 20, 35, 35, 60, 60, 100, 100, 200, 200, 300, 500, 1000, 2000]


@dataclasses.dataclass
class Problem:
    number: int
    random: randomness.Random  # of what follows after it is drawn
    files: dict
    plain: list  # model, cluster, sequence, batch
    source: list  # the same, a program, the job and pins: what `compare` takes, too
    asked: list
    limit_s: float
    threads: int


def some(random, flags, share):
    out = []
    for flag, values in flags.items():
        if random.random() < share:
            value = random.choice(values)
            out += [flag] if value is None else [flag, str(value)]
    return out


def any_batch(random):
    if random.random() < 0.1:
        return ["--global-batch", random.choice(["4Mtokens", "1Mtokens", "100000tokens"])]
    if random.random() < 0.05:
        return ["--micro-batch", "2", "--micro-batches", "8", "--dp", "2"]
    return ["--global-batch", str(random.choice([1, 3, 7, 8, 16, 30, 32, 64, 64, 96, 128, 128, 240, 257, 512, 1024, 4096, 65536]))]


def any_sequence(random):
    chosen = random.random()
    if chosen < 0.5:
        return []
    if chosen < 0.75:
        return ["--seq", str(random.choice([1, 128, 512, 2048, 4096, 8192, 16384, 32768, 65536, 131072]))]
    return ["--seq", str(random.choice([random.randint(1, 4000), random.randint(4000, 70_000), random.randint(70_000, 1_500_000)]))]


def any_program(random):
    out = []
    if random.random() < 0.5:
        out += ["--framework", random.choice(FRAMEWORKS)]
    if random.random() < 0.5:
        out += ["--runs-on", random.choice(TARGETS)]
    return out


def draw_problem(seed, number):
    random = randomness.Random(f"{seed}:{number}")
    files = {}
    plain = ["--model", draw_model(random, files), *draw_cluster(random, files), *any_sequence(random), *any_batch(random)]
    plain += ["--runs-on", "any"] if random.random() < 0.2 else []
    source = [*plain, *any_program(random)]
    source += some(random, JOBS, random.choice([0, 0.02, 0.08]))
    source += some(random, PINS, random.choice([0, 0, 0, 0.05, 0.1, 0.3]))
    asked = some(random, ASKED, random.choice([0, 0.05, 0.2]))
    if {"--deadline", "--budget", "cost", "cost-time"} & set(asked):
        source += ["--tokens", random.choice(["1B", "300B"])] + [f"--price={name}=1.5" for name in named_types(source) if random.random() < 0.9]
    if random.random() < 0.25:
        asked += ["--planner", random.choice(PLANNERS)]
    if random.random() < 0.04:
        asked += [random.choice(["--max-batch", "--max-seq"])]
    limit_s = random.choice(LIMITS_MS) / 1000
    return Problem(number, random, files, plain, without_doubles(source), asked, limit_s, random.choice([1, 1, 1, 2, 3]))


def without_doubles(words):
    """A flag that two lists have drawn keeps its first value."""
    out, seen, skip = [], set(), False
    for word in words:
        if word.startswith("--"):
            skip = word in seen
            seen.add(word)
        if not skip:
            out.append(word)
    return out


def named_types(source):
    """The device types of a shorthand."""
    return sorted(set(re.findall(r"\d+x([\w-]+):", " ".join(source))))


def any_change(random, nodes):
    """Of a cluster with nodes of these names: the words after `replan PLAN`."""
    chosen = random.random()
    name = random.choice(nodes)
    if chosen < 0.3:
        return ["--lost", name]
    if chosen < 0.5:
        return ["--lost-devices", random.choice(["0", "0,1", "1-3", "2"])]
    if chosen < 0.75:
        return ["--slow", f"{name}={random.choice(['0.5', '0.01', '0.99'])}"]
    return ["--add", f"{random.choice([1, 2, 3])}x{random.choice(['H100', 'T4', 'A100-80GB'])}:{random.choice([1, 4, 8])}/{any_network(random)}"]
