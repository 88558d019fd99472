#!/usr/bin/env python3
"""Plans for the programs of papers: Aceso's configurations, rows of Metis, AMP and FASOP.

    paper_targets_test.py --program build/release/plait [--plans N] [--seed N] [TARGET...]

Plans drawn with a seed are exported to each: what is written says the plan (Aceso's is read back by plait and is the
same plan), or the plan is refused with a reason, the nearest one written. Aceso needs its published tables, in
../shared; it is skipped without them."""
import argparse
import ast
import collections
import csv
import json
import math
import pathlib
import random
import sys
import tempfile
import traceback

from metis_formula import Plan as MetisPlan
from target_run import Plan, Run, plait

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLES = ROOT.parent / "shared" / "data" / "aceso" / "profiled-time-eurosys"
MODELS = ["gpt2", "gpt2-medium", "gpt2-large", "bert-large", "t5-large", "small.json", "transgan", "mixtral-8x7b"]
CLUSTERS = {"metis": ["2xA100-80GB:4", "2xA100-80GB:4+2xA10:4", "4xT4:4"],
            "amp": ["4xT4:4", "2xA100-80GB:4", "1xA100-80GB:4+1xH100:4"],
            "fasop": ["1xA100-40GB:4+3xA10:4", "2xA10:4", "2xA100-40GB:4", "2xT4:4"]}
SMALL = {"plait_model": 1, "name": "small", "transformer": {
    "layers": 8, "hidden": 1024, "heads": 16, "vocabulary": 32000, "sequence": 512, "dropout": False}}
PLAIN = ["--zero", 0, "--recompute", "none", "--no-sp", "--cp", 1, "--schedule", "1f1b"]


def draw_row_plan(draw, target):
    pins = draw.choice([PLAIN, PLAIN, ["--zero", draw.choice([0, 1])], []])
    more = draw.choice([[], ["--pp", draw.choice([1, 2, 4])], ["--tp", draw.choice([1, 2, 4])], ["--micro-batch", 1]])
    return ["--model", draw.choice(MODELS), "--cluster", draw.choice(CLUSTERS[target]), "--global-batch",
            draw.choice([32, 64]), "--precision", "fp16", *pins, *more]


def draw_aceso_plan(draw):
    model, stages = draw.choice([("gpt_350M", [1, 2, 4]), ("gpt_1_3B", [2, 4]), ("gpt_2_6B", [4]), ("t5_770M", [1, 2, 4])])
    return ["--model", f"aceso:{model}", "--profile", TABLES, "--cluster", draw.choice(["1xV100-32GB:4", "1xV100-32GB:8"]),
            "--global-batch", draw.choice([32, 64]), "--precision", "fp16", "--pp", draw.choice(stages), "--zero", 0,
            *draw.choice([["--runs-on", "aceso"], ["--recompute", draw.choice(["none", "full"])], ["--tp", 2], []])]


def bounds_of(plan):
    return [0] + [stage["spans"][-1]["units"][1] for stage in plan.stages]


def the_row(path):
    [row] = csv.DictReader(path.read_text().splitlines())
    return row


def check_metis(out, plan, _):
    _, row = (out / "plans.csv").read_text().splitlines()
    rank, cost, said = MetisPlan.of_row(row)
    assert rank == 1 and math.isclose(cost, 1e3 * step_of(out), rel_tol=1e-9), row
    assert said.groups == [len(stage["devices"]) for stage in plan.stages], row
    assert said.strategies == [(stage["spans"][0]["data"], stage["spans"][0]["tensor"]) for stage in plan.stages], row
    assert said.batches == plan.plan["micro_batches"] and said.partition == bounds_of(plan), row


def check_amp(out, plan, _):
    row = the_row(out / "plans.csv")
    assert (int(row["tp"]), int(row["dp"]), int(row["pp"])) == (plan.tensor, plan.data, len(plan.stages)), row
    assert int(row["num_micro_batches"]) == plan.plan["micro_batches"]
    assert int(row["micro_batch"]) * plan.data * plan.plan["micro_batches"] == plan.job["global_batch"], row
    assert math.isclose(float(row["predicted_s"]), step_of(out), rel_tol=1e-9), row
    names = {"tensor": lambda values: values[0], "defaultdict": collections.defaultdict, "list": list}
    (micro_batch, degrees, ranks, bounds), _ = eval(row["setting"].replace("<class 'list'>", "list"), names)
    assert degrees == {"mp_deg": plan.tensor, "dp_deg": plan.data, "pp_deg": len(plan.stages)}, row
    assert micro_batch == int(row["micro_batch"]) and sorted(sum(ranks.values(), [])) == sorted(plan.devices), row
    assert len(bounds) == len(plan.stages) + 1 and bounds == sorted(set(bounds)), row


def check_fasop(out, plan, _):
    row = the_row(out / "plans.csv")
    assert (int(row["tp"]), int(row["dp"]), float(row["pp"])) == (plan.tensor, plan.data, len(plan.stages)), row
    assert int(row["mbs"]) * plan.data * plan.plan["micro_batches"] == plan.job["global_batch"], row
    assert math.isclose(float(row["estimated time (s/step)"]), step_of(out), rel_tol=1e-9), row
    partition = ast.literal_eval(row["partition"])
    units = [end - begin for begin, end in zip(bounds_of(plan), bounds_of(plan)[1:])]
    if plan.network and plan.network.get("decoder_layers"):
        units[-1] -= 1  # its T5 has no head
    assert partition == units, (row, units)
    assert len(ast.literal_eval(row["node placement"])) == int(row["num_a100"]) + int(row["num_a10"]), row


def check_aceso(out, plan, words):
    read = out / "read.json"
    plait("import", "--from", "aceso-plan", out / "configuration.json", "--database", TABLES, "--cluster",
          words[words.index("--cluster") + 1], "-o", read)
    assert json.loads(read.read_text())["plan"] == plan.plan, (read.read_text()[:3000], plan.plan)


def step_of(out):
    return json.loads(plait("estimate", out / "plan.json", "--json").stdout)["step_s"]


CHECKS = {"metis": check_metis, "amp": check_amp, "fasop": check_fasop, "aceso": check_aceso}


def judge(target, draw, least):
    """Whether all of so many plans were written as they are, or refused with a reason."""
    plans = accepted = nearest = wrong = tried = 0
    reasons = collections.Counter()
    while plans < least and tried < 10 * least:
        tried += 1
        words = draw_aceso_plan(draw) if target == "aceso" else draw_row_plan(draw, target)
        if plait("plan", *words, "--time-limit", "20s", "-o", "plan.json", ok=(0, 2, 3)).returncode != 0:
            continue
        plans += 1
        out = Run.folder / f"{target}{plans}"
        export = ["export", "plan.json", "--to", target, "-o", out, "--time-limit", "20s"]
        try:
            done = plait(*export, ok=(0, 3))
            if done.returncode == 3:
                reason = done.stderr.strip().split(": ", 2)[2]
                assert reason, done.stderr
                reasons[reason[:70]] += 1
                if "--nearest writes it" not in reason:
                    continue
                plait(*export, "--nearest")
                nearest += 1
            else:
                accepted += 1
            CHECKS[target](out, Plan(out / "plan.json"), words)
        except Exception:
            wrong += 1
            print(f"{target}: {' '.join(map(str, words))}:\n{traceback.format_exc()[-2500:]}", flush=True)
    print(f"{target}: {plans} plans, {accepted} accepted as they are, {sum(reasons.values())} refused with a reason, for "
          f"{nearest} of them the nearest accepted, {wrong} wrong", flush=True)
    for reason, count in reasons.most_common(6):
        print(f"    {count} x {reason}")
    return wrong == 0 and plans >= least and accepted + nearest > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--plans", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("targets", nargs="*")
    arguments = parser.parse_args()
    Run.program = str(pathlib.Path(arguments.program).resolve())
    good = True
    for target in arguments.targets or CHECKS:
        if target == "aceso" and not TABLES.exists():
            print(f"aceso: skipped, there is no {TABLES}")
            continue
        with tempfile.TemporaryDirectory() as name:
            Run.folder = pathlib.Path(name)
            (Run.folder / "small.json").write_text(json.dumps(SMALL))
            good = judge(target, random.Random(arguments.seed), arguments.plans) and good
    return not good


if __name__ == "__main__":
    sys.exit(main())
