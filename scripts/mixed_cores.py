#!/usr/bin/env python3
"""Trains on ranks of one and of four threads: does a plan for mixed devices pay, and is it predicted?

    scripts/mixed_cores.py build/release/plait --out DIR [--slow 3 --fast 3] [--model gpt.json ...]

Measures both kinds of rank and the links between ranks with `plait profile`, lets `auto` plan for them, runs
its best plans and the uniform ones (equal layers, equal batches; every pp x dp that uses all ranks), and
prints measured beside predicted time, the gain over the best uniform plan and Spearman's rank correlation.
Needs slow + threads x fast cores and plait-torch.
"""
import argparse
import copy
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

MODEL = {"model_type": "gpt2", "n_layer": 12, "n_embd": 256, "n_head": 4, "vocab_size": 4096, "n_positions": 128}


def run(*words, check=True, **environment):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})
    if check and done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\nexit status {done.returncode}\n{done.stderr}")
    return done


def profile_ranks(o, turn):
    """Measures every rank while all the others measure too, on the cores that it will train on: ranks share caches,
    memory and, as hardware threads, cores. A rank that is done measures again, for nothing, until all are done."""
    def start(number, first, threads, name):
        kind = "fast" if number < o.fast else "slow"
        words = ["taskset", "-c", f"{first}-{first + threads - 1}", o.plait, "profile", "--model", o.model, "--device",
                 "cpu", "--device-type", kind, "--precision", "fp32", "--framework", "plait", "--tp", "1",
                 "--micro-batch", "1,2,4,8,16", "--what", "units", "--per-point", "400ms", "--fresh", "--cache",
                 o.out / f"{name}.jsonl", "-o", o.out / f"{name}.json"]
        return subprocess.Popen([str(word) for word in words], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                env={**os.environ, "OMP_NUM_THREADS": str(threads)})

    places, first = [], 0
    for number, threads in enumerate([o.threads] * o.fast + [1] * o.slow):
        places.append((number, first, threads))
        first += threads
    ranks = [start(*place, f"rank{place[0]}_{turn}") for place in places]
    load = {}
    while any(rank.poll() is None for rank in ranks):
        for place in places:
            done = load.get(place[0], ranks[place[0]])
            if done.poll() is not None:
                load[place[0]] = start(*place, f"load{place[0]}")
        time.sleep(0.05)
    for process in load.values():
        process.kill()
    if any(rank.returncode != 0 for rank in ranks):
        sys.exit("a profile failed")


def profile_of_kinds(o):
    """One profile of all that was measured of both kinds of rank."""
    fast, slow = o.out / "fast.json", o.out / "slow.json"
    fast.write_text(json.dumps(mean_of([path for n in range(o.fast) for path in o.out.glob(f"rank{n}_?.json")])))
    slow.write_text(json.dumps(mean_of([path for n in range(o.fast, o.fast + o.slow) for path in o.out.glob(f"rank{n}_?.json")])))
    links = [o.out / "links_slow.json", o.out / "links_fast.json"]
    run(o.plait, "profile", "merge", fast, slow, *links, "-o", o.out / "profile.json")
    return o.out / "profile.json"


def mean_of(paths):
    """The profile of several ranks of one kind. What they differ by, from each other and from turn to turn, is a part
    of the spread: a step waits for the slowest of them."""
    files = [json.loads(path.read_text()) for path in paths]
    for points in zip(*(file["compute"] for file in files)):
        whole = [point["forward_s"] + point["backward_s"] for point in points]
        apart = statistics.stdev(whole) / statistics.mean(whole)
        for key in ("forward_s", "backward_s", "optimizer_s", "spread"):
            points[0][key] = statistics.mean(point[key] for point in points)
        points[0]["spread"] = math.hypot(points[0]["spread"], apart)
    return files[0]


def link_between_ranks(o):
    """Measures the curves of groups of ranks; bandwidth and latency of a message between two fast ones.
    Ranks have the cores that they train with: a rank of one core sends, receives and adds on it. A group begins
    with ranks of the kind whose curve it is. The cluster has a node for each rank, so a group of n ranks is one of n nodes."""
    for kind in ("slow", "fast"):
        path = o.out / f"links_{kind}.json"
        fast, slow = [str(o.threads)] * o.fast, ["1"] * o.slow
        run(o.plait, "profile", "--comm", "--local", o.fast + o.slow, "--threads-per-rank",
            ",".join(fast + slow if kind == "fast" else slow + fast), "--device", "cpu", "--device-type", kind,
            "--sizes", "1024,65536,1048576,16777216,67108864", "-o", path)
        file = json.loads(path.read_text())
        for curve in file["collectives"]:
            curve["nodes"] = 2 if curve["collective"] == "send" else curve["nodes"] * curve["devices_per_node"]
            curve["devices_per_node"] = 1
        path.write_text(json.dumps(file))
    send = next(curve for curve in file["collectives"] if curve["collective"] == "send")
    points = [(point["size_B"], point["time_s"]) for point in send["points"]]
    (small, latency), (large, longest) = points[0], points[-1]
    return (large - small) / (longest - latency), latency


def cluster_of(o, bandwidth, latency):
    def kind(name, threads):
        return {"name": name, "memory_GiB": 8, "memory_bandwidth_GBps": 10 * threads,
                "peak_TFLOPs": {"fp32": 0.08 * threads}, "multiprocessors": threads, "per_node": 1,
                "link": {"kind": "pcie", "bandwidth_GBps": bandwidth / 1e9, "latency_us": latency * 1e6},
                "network": {"bandwidth_Gbps": 8 * bandwidth / 1e9, "latency_us": latency * 1e6, "per": "device"}}
    cluster = {"plait_cluster": 1, "name": "ranks of one and four threads",
               "device_types": [kind("fast", o.threads), kind("slow", 1)],
               "nodes": [{"name": f"rank{i}", "device": "fast" if i < o.fast else "slow", "devices": 1}
                         for i in range(o.fast + o.slow)]}
    (o.out / "cluster.json").write_text(json.dumps(cluster, indent=2))
    return o.out / "cluster.json"


def plan(o, cluster, profile, path, *pins):
    done = run(o.plait, "plan", "--model", o.model, "--cluster", cluster, "--profile", profile, "--precision", "fp32",
               "--framework", "plait", "--no-overlap", "--global-batch", o.global_batch, "--tp", "1", *pins, "--json", "-o", path, check=False)
    return json.loads(done.stdout)["plans"] if done.returncode == 0 else []


def uniform_plans(o, template, units):
    """Equal layers and equal batches over all ranks, in the order of the cluster, for every degree."""
    ranks = o.fast + o.slow
    for stages in range(1, ranks + 1):
        if ranks % stages or (units - 2) % stages:
            continue
        data = ranks // stages
        for micro_batches in (stages, 2 * stages, 4 * stages):
            if o.global_batch % (micro_batches * data):
                continue
            file = copy.deepcopy(template)
            layers = (units - 2) // stages
            cuts = [0] + [1 + layers * (s + 1) for s in range(stages - 1)] + [units]
            file["plan"] = {
                "schedule": "1f1b", "micro_batches": micro_batches, "zero": 0, "sequence_parallel": False,
                "stages": [{"spans": [{"units": [cuts[s], cuts[s + 1]], "tensor": 1, "data": data}],
                            "devices": list(range(s * data, (s + 1) * data))} for s in range(stages)]}
            for key in ("describe", "predicted"):
                file.pop(key, None)
            path = o.out / f"uniform_pp{stages}_dp{data}_m{micro_batches}.json"
            path.write_text(json.dumps(file))
            yield path


def stolen():
    """Core-seconds that the hypervisor kept from this machine since it started, as far as it tells."""
    with open("/proc/stat", encoding="ascii") as file:
        return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def train(o, path):
    """Seconds of the steps after the first; none where the plan cannot be run."""
    threads = ",".join([str(o.threads)] * o.fast + ["1"] * o.slow)
    done = run(o.plait, "train", path, "--local", o.fast + o.slow, "--threads-per-rank", threads, "--device", "cpu",
               "--steps", o.steps, "--json", check=False)
    if done.returncode != 0:
        print(path.name, done.stderr[-300:], file=sys.stderr)
    steps = [row["step_s"] for row in map(json.loads, done.stdout.splitlines()) if "step_s" in row]
    return steps[1:]


def measure(o, paths):
    """(name, predicted, measured, plan in words) of each plan that uses all ranks. All are run, then all again: a
    machine that is slow for a while is slow for all of them."""
    plans = {}
    for path in paths:
        estimate = run(o.plait, "estimate", path, "--json", check=False)
        used = sum(len(s["devices"]) for s in json.loads(path.read_text())["plan"]["stages"])
        words = run(o.plait, "check", path).stdout.splitlines()[-1]
        if used == o.fast + o.slow and estimate.returncode == 0 and words not in plans and len(plans) < o.most:
            plans[words] = (path, json.loads(estimate.stdout)["step_s"], [])
    before, begin = stolen(), time.monotonic()
    for _ in range(o.passes):
        for path, _, steps in plans.values():
            steps += train(o, path)
    print(f"the hypervisor took {(stolen() - before) / (time.monotonic() - begin):.2f} cores meanwhile")
    rows = []
    for words, (path, predicted, steps) in plans.items():
        if not steps:
            continue
        measured = statistics.median(steps)
        rows.append((path.stem, predicted, measured, words))
        print(f"{path.stem:24} predicted {predicted:7.3f} s  measured {measured:7.3f} s ({min(steps):.3f} to {max(steps):.3f})  "
              f"{100 * (predicted / measured - 1):+6.1f} %  {words}", flush=True)
    return rows


def ranks_of(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    return [order.index(i) for i in range(len(values))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plait")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--slow", type=int, default=3)
    parser.add_argument("--fast", type=int, default=3)
    parser.add_argument("--threads", type=int, default=4, help="of a fast rank")
    parser.add_argument("--global-batch", type=int, default=96)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--passes", type=int, default=2, help="through all plans, of so many steps each")
    parser.add_argument("--most", type=int, default=13, help="plans to run")
    parser.add_argument("--model")
    o = parser.parse_args()
    o.out.mkdir(parents=True, exist_ok=True)
    if not o.model:
        o.model = str(o.out / "config.json")
        pathlib.Path(o.model).write_text(json.dumps(MODEL))
    profile_ranks(o, 1)
    bandwidth, latency = link_between_ranks(o)
    profile_ranks(o, 2)
    profile = profile_of_kinds(o)
    cluster = cluster_of(o, bandwidth, latency)
    print(f"links: {bandwidth / 1e9:.2f} GB/s, {latency * 1e6:.0f} us")
    best = plan(o, cluster, profile, o.out / "auto.json", "--top", "1")
    if not best:
        sys.exit("auto found no plan")
    template = json.loads((o.out / "auto.json").read_text())
    units = max(span["units"][1] for stage in template["plan"]["stages"] for span in stage["spans"])
    paths = [o.out / "auto.json"]
    for name, pins in (("dp", ["--pp", "1"]), ("pp", ["--dp", "1"]), ("pp2", ["--pp", "2"]), ("pp3", ["--pp", "3"])):
        path = o.out / f"auto_{name}.json"
        if plan(o, cluster, profile, path, "--top", "1", *pins):
            paths.append(path)
    paths += uniform_plans(o, template, units)
    rows = measure(o, paths)
    if not rows or rows[0][0] != "auto":
        sys.exit("auto leaves a rank idle, so its plan is not comparable: take a larger model or batch")
    uniform = min((r[2] for r in rows if r[0].startswith("uniform")), default=float("nan"))
    own = rows[0]
    a, b = ranks_of([r[1] for r in rows]), ranks_of([r[2] for r in rows])
    n = len(rows)
    spearman = 1 - 6 * sum((x - y) ** 2 for x, y in zip(a, b)) / (n * (n * n - 1))
    summary = {"plans": n, "auto_s": own[2], "best_uniform_s": uniform, "gain": uniform / own[2],
               "auto_error": own[1] / own[2] - 1, "spearman": spearman}
    print(json.dumps(summary))
    (o.out / "mixed_cores.json").write_text(json.dumps({**summary, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
