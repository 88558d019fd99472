#!/usr/bin/env python3
"""The plans of README.md can be executed: each is written for the framework that it names, and a small
version of it, with the same kind of network, schedule, ZeRO stage and recompute, is trained on processes, with the losses of one process.

Without plait-torch beside the program the training is left out, which is said.
"""
import json
import math
import pathlib
import shlex
import sys

import readme_test
from program import Here, plait, run_tests

ROOT = pathlib.Path(__file__).resolve().parent.parent


def planning_commands():
    lines = (ROOT / "README.md").read_text().splitlines()
    for words, first, end in readme_test.blocks(lines):
        if words != ["sh"]:
            continue
        for _, command in readme_test.commands(lines[first:end], first):
            parts = shlex.split(command.split(" > ")[0], comments=True)
            if parts[:2] != ["plait", "plan"] or not {"--model", "--metis-args"} & {*parts} or "--format" in parts:
                continue  # help, and plans in another program's words, which are its own
            yield [str(ROOT / part) if part.startswith("examples/") else part
                   for i, part in enumerate(parts[1:], 1) if part not in ("-o", "--json") and parts[i - 1] != "-o"]


def saved(words):
    plait(*words, "-o", "plan.json")
    return json.loads((Here.folder / "plan.json").read_text())


def small(network):
    """The same kind of transformer with four layers."""
    heads = min(network["heads"], 4)
    sizes = {"layers": 4, "hidden": 8 * heads, "heads": heads, "vocabulary": 97, "sequence": 16}
    if "kv_heads" in network:
        sizes["kv_heads"] = heads * network["kv_heads"] // network["heads"] or 1
    if "ffn" in network:
        sizes["ffn"] = 64
    if "position_rows" in network:
        sizes["position_rows"] = 16
    return {**network, **sizes}


def small_version(file):
    model = {"plait_model": 1, "name": "small", "transformer": small(file["model"]["architecture"]["transformer"])}
    (Here.folder / "small.json").write_text(json.dumps(model))
    kinds = sorted(kind["name"] for kind in file["cluster"]["device_types"])
    plan = file["plan"]
    span = plan["stages"][0]["spans"][0]
    degrees = {"--pp": len(plan["stages"]), "--tp": span["tensor"], "--dp": span["data"]}
    halved = {flag: min(degree, 2) for flag, degree in degrees.items()}
    devices = math.prod(halved.values())
    words = ["plan", "--model", "small.json", "--cluster", "+".join(f"1x{kind}:{devices // len(kinds)}" for kind in kinds),
             "--global-batch", 8, "--framework", "plait", "--precision", "fp32", "--attention", "plain",
             "--zero", plan["zero"], "--recompute", span["recompute"]]
    if degrees["--pp"] > 1:
        words += ["--schedule", plan["schedule"]]
    for flag, degree in halved.items():
        words += [flag, degree]
    return words


def trained(words):
    """The losses of three steps."""
    ranks = sum(len(stage["devices"]) for stage in saved(words)["plan"]["stages"])
    out, _ = plait("train", "plan.json", "--device", "cpu", "--steps", 3, "--json", "--local", ranks,
                   "--threads-per-rank", 1)
    return [row["loss"] for row in map(json.loads, out.splitlines()) if "loss" in row]


def test_the_plans_are_written_for_the_framework_that_they_name():
    commands = list(planning_commands())
    plans = (ROOT / "README.md").read_text().count("\nplait plan --m")
    assert len(commands) == plans - 1 >= 8, (plans, commands)  # one of them with --format
    for words in commands:
        framework = saved(words)["job"]["framework"]
        plait("export", "plan.json", "--to", framework, "-o", "run", "--force")
        assert list((Here.folder / "run").iterdir())


def test_small_versions_are_trained():
    if not pathlib.Path(Here.program + "-torch").exists():
        print("left out: the program was built without libtorch")
        return
    for words in planning_commands():
        wanted = small_version(saved(words))
        alone = trained(["plan", "--model", "small.json", "--cluster", "1xA100-80GB:1", "--global-batch", 8,
                         "--framework", "plait", "--precision", "fp32", "--attention", "plain"])
        together = trained(wanted)
        assert len(alone) == 3 and all(abs(a - b) < 1e-4 for a, b in zip(alone, together)), (wanted, alone, together)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
