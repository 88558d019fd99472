#!/usr/bin/env python3
"""Plans are as good as they were: the steps and gaps of quality/problems.csv, found again.

    quality_test.py --program build/release/plait [--table FILE]

Fails where a step is more than 0.5 % longer or a gap more than 2 points wider than the file says, and
prints both sides. With PLAIT_UPDATE_GOLDEN set the file is rewritten, and what changed is printed as a
table, old and new.
"""
import argparse
import concurrent.futures
import csv
import json
import os
import pathlib
import subprocess
import sys

PROBLEMS = pathlib.Path(__file__).resolve().parent / "quality" / "problems.csv"
LONGER = 0.005  # of a step
WIDER = 0.02  # of a gap
NOTHING = "none"  # nothing fits, or nothing is proven
FIELDS = ["model", "cluster", "global_batch", "flags", "step_s", "gap"]


def plan(program, row):
    """(step, gap) as the file writes them, of the best plan."""
    words = [program, "plan", "--model", row["model"], "--cluster", row["cluster"], "--global-batch",
             row["global_batch"], *row["flags"].split(), "--threads", "1", "--top", "1", "--time-limit", "20m", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise RuntimeError(f"exit {done.returncode} of {' '.join(words[1:])}\n{done.stderr}")
    answer = json.loads(done.stdout)
    assert not answer["cut_short"], f"cut short: {words[1:]}"
    if not answer["plans"]:
        return NOTHING, NOTHING
    gap = NOTHING if answer["gap"] is None else f"{answer['gap']:.4f}"
    return f"{answer['plans'][0]['step_s']:.6g}", gap


def number(text):
    return float(text) if text not in ("", NOTHING) else float("inf")


def is_worse(row, step, gap):
    """Two infinite values are equal: neither is worse."""
    return (number(step) > number(row["step_s"]) * (1 + LONGER) or
            number(gap) > number(row["gap"]) + WIDER)


def name_of(row):
    return f"{row['model']} on {row['cluster']}, batch {row['global_batch']} {row['flags']}".strip()


def change(old, new):
    old, new = number(old), number(new)
    if old == new or float("inf") in (old, new):
        return ""
    return f"{(new / old - 1) * 100:+.2f} %"


def growth(changed):
    row, step, _ = changed
    return 0 if number(step) == number(row["step_s"]) else -number(step) / number(row["step_s"])


def print_table(changed):
    """Old and new side by side, the steps that grew most first."""
    print(f"{'step':>10} {'new':>10} {'':>9} {'gap':>7} {'new':>7}  problem")
    for row, step, gap in sorted(changed, key=growth):
        print(f"{row['step_s']:>10} {step:>10} {change(row['step_s'], step):>9} {row['gap']:>7} {gap:>7}  {name_of(row)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--table", type=pathlib.Path, default=PROBLEMS)
    options = parser.parse_args()
    update = bool(os.environ.get("PLAIT_UPDATE_GOLDEN"))
    with options.table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    workers = len(os.sched_getaffinity(0))
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(lambda row: plan(options.program, row), rows))
    changed = [(row, *answer) for row, answer in zip(rows, found) if answer != (row["step_s"], row["gap"])]
    worse = [c for c in changed if is_worse(*c)]
    if update:
        print_table(changed)
        for row, (step, gap) in zip(rows, found):
            row["step_s"], row["gap"] = step, gap
        with options.table.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        print(f"{options.table.name} rewritten: {len(changed)} of {len(rows)} rows changed, {len(worse)} for the worse")
        return 0
    if worse:
        print("Worse than quality/problems.csv. If the change is meant, './dev golden' rewrites the file.")
        print_table(worse)
    print(f"{len(rows) - len(worse)} problems as good as before, {len(worse)} worse")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
