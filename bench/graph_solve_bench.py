#!/usr/bin/env python3
"""Solves instances of the sharding contest and compares with the best published costs.

    graph_solve_bench.py build/release/plait FOLDER [--time-limit 60] [--threads 2] [A B ...]

FOLDER holds A.json.gz and so on (google/iopddl). Prints cost, ratio to the best of 20 teams, bound, gap.
"""
import argparse
import json
import pathlib
import subprocess

# Best of 20 teams, or of XLA's solver where that was better (P); the contest's published results.
BEST = {"A": 6548641531, "B": 532843, "C": 84102445260, "G": 217039, "K": 2274276676, "P": 6.518e11,
        "S": 1534613444, "V": 1632051}

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("names", nargs="*")
parser.add_argument("--time-limit", default="60")
parser.add_argument("--threads", default="2")
arguments = parser.parse_args()
print(f"{'':4}{'cost':>14}{'to best':>10}{'bound':>14}{'gap':>10}{'seconds':>9}")
for path in sorted(arguments.folder.glob("*.json.gz")):
    name = path.name.split(".")[0]
    if arguments.names and name not in arguments.names:
        continue
    run = subprocess.run([arguments.program, "graph", "solve", path, "--time-limit", arguments.time_limit,
                          "--threads", arguments.threads], capture_output=True, text=True)
    if run.returncode:
        print(f"{name:4}{run.stderr.strip()}")
        continue
    found = json.loads(run.stdout)
    ratio = f"{found['cost'] / BEST[name]:10.6f}" if name in BEST else f"{'':10}"
    print(f"{name:4}{found['cost']:14}{ratio}{found['lower_bound']:14}{found['gap']:10.6f}{found['seconds']:9.1f}",
          flush=True)
