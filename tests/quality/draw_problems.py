#!/usr/bin/env python3
"""Prints 300 planning problems as the rows of problems.csv, without step and gap.

The file beside this script is frozen: it was drawn once, with this seed, so that an answer can be
compared with the answer of the program as it was. Run this script only to see how the rows were chosen.
"""
import random

# (models, tokens or None, precision): what runs on large and on small devices.
SMALL = ["gpt2-medium", "gpt2-large", "gpt2-xl", "bert-large", "opt-1.3b", "t5-large", "pythia-1.4b", "llama-3.2-1b"]
MIDDLE = ["gpt-neo-2.7b", "llama-2-7b", "falcon-7b", "bloom-7.1b", "mistral-7b", "opt-13b", "llama-2-13b", "t5-11b"]
LARGE = ["gpt-neox-20b", "opt-30b", "codellama-34b", "llama-2-70b", "opt-66b", "falcon-40b"]
EXPERTS = ["mixtral-8x7b", "qwen3-30b-a3b", "mixtral-8x22b"]
DEVICES = ["V100-32GB", "A100-40GB", "A100-80GB", "H100", "A10", "L40S", "A40", "H200", "T4", "RTX4090"]
OLD = {"V100-32GB", "T4"}  # without bf16
NETWORKS = [10, 25, 50, 100, 200, 400]


def kind(choice, nodes, device, per_node, network):
    return f"{nodes}x{device}:{per_node}" + (f"/{network}Gbps" if network else "")


def cluster(choice, types, devices, slow, uneven=False):
    """So many device types, about so many devices; (shorthand, whether one has no bf16)."""
    chosen = choice.sample(DEVICES, types)
    parts = []
    for device in chosen:
        network = choice.choice(NETWORKS[:3] if slow else [0, 0] + NETWORKS[3:])
        share = max(1, devices // types)
        for per_node in choice.sample([2, 4, 6, 8], 2) if uneven else [choice.choice([4, 8, 8])]:
            parts.append(kind(choice, max(1, share // per_node // (2 if uneven else 1)), device, per_node, network))
    return "+".join(parts), any(device in OLD for device in chosen)


def batch(choice):
    return choice.choice([32, 48, 64, 96, 128, 192, 256, 384, 512])


def problem(choice, model, types, devices, slow, flags="", uneven=False):
    shorthand, old = cluster(choice, types, devices, slow, uneven)
    words = ["--precision fp16"] if old else []
    return model, shorthand, batch(choice), " ".join(words + ([flags] if flags else []))


def group(choice, count, models, types, sizes, slow, flags=("",), uneven=False):
    for i in range(count):
        yield problem(choice, choice.choice(models), choice.choice(types), choice.choice(sizes), slow,
                      flags[i % len(flags)], uneven)


def problems():
    choice = random.Random(20261116)
    some = (16, 24, 32, 48, 64)
    many = (64, 128, 192, 256)
    yield from group(choice, 24, SMALL, (1,), (4, 8, 12, 16), False)
    yield from group(choice, 30, SMALL + MIDDLE, (1,), some, True)
    yield from group(choice, 20, MIDDLE + LARGE, (1,), many, False)
    yield from group(choice, 24, SMALL + MIDDLE, (2,), (8, 12, 16), False)
    yield from group(choice, 40, SMALL + MIDDLE, (2,), some, True)
    yield from group(choice, 30, MIDDLE, (2,), some, False)
    yield from group(choice, 30, MIDDLE + LARGE, (2, 3), many, True)
    yield from group(choice, 16, SMALL + MIDDLE, (3,), some, False)
    yield from group(choice, 12, MIDDLE, (2,), some, True, uneven=True)
    yield from group(choice, 24, EXPERTS, (1, 2), (32, 64, 128), False)
    yield from group(choice, 20, ["llama-2-7b", "mistral-7b", "llama-3-8b"], (1, 2), (32, 64, 128), False,
                     ("--seq 16384", "--seq 32768", "--seq 65536", "--seq 131072"))
    yield from group(choice, 18, SMALL + MIDDLE, (1, 2), some, True,
                     ("--schedule zb-2p", "--schedule interleaved", "--schedule gpipe", "--pp 4", "--micro-batches 16", "--zero 0"))
    yield from group(choice, 6, MIDDLE, (1, 2), some, False, ("--no-overlap", "--attention plain", "--recompute full"))
    yield from group(choice, 6, SMALL, (1, 2), (8, 16, 32), False, ("--granularity op",))


if __name__ == "__main__":
    print("model,cluster,global_batch,flags,step_s,gap")
    for row in problems():
        print(",".join(map(str, row)) + ",,")
