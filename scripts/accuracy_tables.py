#!/usr/bin/env python3
"""Rewrites the tables of docs/accuracy.md from what `plait validate` says now.

    scripts/accuracy_tables.py --runs published_runs.csv --fresh published_runs_2.csv \
        --steps hf_training_steps.csv [--bands left_out.csv] [--left-out left_out.csv] [--gains gains.json]

`--gains` is what `scripts/calibrate constants --output` wrote; without it the table of constants stays.
`--bands` is what `scripts/calibrate left-out` wrote for the error bands, with the steps of Hugging Face models among the runs, `--left-out`
what it wrote with both collections as runs; without them the tables of bands and of errors that no constant has seen stay.

Only what stands between `<!-- table NAME -->` and `<!-- end -->` is touched.
"""
import argparse
import csv
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs/accuracy.md"


def validate(program, *arguments):
    command = [str(program), "validate", "--json", *map(str, arguments)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def percent(value, digits=1):
    return "" if value is None else f"{100 * value:.{digits}f}"


def signed(value):
    return "" if value is None else f"{100 * value:+.1f}"


def number(value):
    return "" if value is None else f"{value:.3f}"


def markdown(header, rows):
    lines = ["| " + " | ".join(header) + " |", "| --- " + "| ---: " * (len(header) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def results(sources, key):
    header = [key, "rows", "predicted", "MAPE %", "grade A %", "median %", "bias %", "Spearman",
              "jobs", "top-1", "mean", "top-5", "memory rows", "memory %", "OOM right / missed / false"]
    rows = []
    for s in sources:
        if s["predicted"] == 0:
            continue
        failures = f"{s['oom_right']} / {s['oom_missed']} / {s['oom_false']}"
        rows.append([s[key], str(s["rows"]), str(s["predicted"]), percent(s["mape"]),
                     percent(s["mape_by_grade"].get("A")), percent(s["median_ape"]),
                     signed(s["bias"]), number(s["spearman"]), str(s["jobs"] or ""),
                     number(s["top1_regret"]), number(s["top1_regret_mean"]),
                     number(s["top5_regret"]), str(s["memory_rows"] or ""),
                     percent(s["memory_mape"]), failures if failures != "0 / 0 / 0" else ""])
    return markdown(header, rows)


def means(sources):
    """One line for each source, and the mean in which each counts once."""
    rows = []
    for s in sources:
        if s["predicted"]:
            rows.append([s["source"], str(s["predicted"]), percent(s["mape"]), signed(s["bias"]),
                         str(s["memory_rows"] or ""), percent(s["memory_mape"]), str(s["oom_false"] or "")])
    times = [s["mape"] for s in sources if s["mape"] is not None]
    memories = [s["memory_mape"] for s in sources if s["memory_mape"] is not None]
    rows.append([f"**mean over {len(times)}**", str(sum(s["predicted"] for s in sources)),
                 percent(sum(times) / len(times)), "", f"mean over {len(memories)}",
                 percent(sum(memories) / len(memories)), str(sum(s["oom_false"] for s in sources))])
    return markdown(["source", "rows", "time %", "bias %", "memory rows", "memory %", "ran, called out of memory"], rows)


def left_out(path, sources):
    """In sample and left out, each source of the first collection counting once."""
    errors = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if row["error"]:
                errors.setdefault(row["source_id"], []).append(abs(float(row["error"])))
    rows, both = [], []
    for s in sources:
        if s["mape"] is not None and s["source"] in errors:
            mine = sum(errors[s["source"]]) / len(errors[s["source"]])
            both.append((s["mape"], mine))
            rows.append([s["source"], percent(s["mape"]), percent(mine)])
    means_of_both = [percent(sum(column) / len(both)) for column in zip(*both)]
    return markdown(["source", "in sample %", "left out %"], rows + [[f"**mean over {len(both)}**", *means_of_both]])


def refusals(sources):
    rows = []
    for s in sources:
        for reason, count in s["refusals"].items():
            rows.append([s["source"], str(count), reason.replace("|", "/")])
    return markdown(["source", "rows", "reason"], rows)


def others(sources):
    rows = [[s["source"], re.sub(r" *\(.*", "", s["other"]), str(s["other_rows"]), percent(s["other_mape"]),
             percent(s["mape_beside_other"])] for s in sources if s["other_rows"]]
    return markdown(["source", "predictor", "rows", "its MAPE %", "plait on the same rows %"], rows)


def literal(corrected, taken_literally):
    plain = {s["source"]: s for s in taken_literally}
    rows = []
    for s in corrected:
        other = plain[s["source"]]
        if (s["mape"], s["memory_mape"]) != (other["mape"], other["memory_mape"]):
            rows.append([s["source"], str(s["timed"]), percent(s["mape"], 2),
                         percent(other["mape"], 2), number(s["top1_regret"]),
                         number(other["top1_regret"])])
    return markdown(["source", "rows", "corrected %", "literal %", "top-1 regret", "literal"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build/release/plait")
    parser.add_argument("--runs", required=True, help="table of published runs")
    parser.add_argument("--fresh", required=True, help="table of published runs that no constant was fitted on")
    parser.add_argument("--steps", required=True, help="table of Hugging Face steps")
    parser.add_argument("--bands", help="rows that scripts/calibrate left-out wrote, for the bands")
    parser.add_argument("--left-out", help="the same with both collections as --runs, for the table of sources")
    parser.add_argument("--gains", help="what scripts/calibrate found of each constant")
    arguments = parser.parse_args()
    program = arguments.program
    sources = validate(program, "--runs", arguments.runs)["sources"]
    steps = validate(program, "--runs", arguments.steps)["sources"]
    long_steps = validate(program, "--runs", arguments.steps, "--least-step", "50ms")["sources"]
    for s in long_steps:
        s["source"] += ", 50 ms or more"
    devices = validate(program, "--runs", arguments.runs, "--by", "gpu")["devices"]
    for d in devices:
        d["gpu"] = d.pop("device")
    tables = {
        "fresh": means(validate(program, "--runs", arguments.fresh)["sources"]),
        "readmes": means(validate(program, "--runs", ROOT / "tests/published/readmes.csv")["sources"]),
        "first": means(sources),
        "sources": results(sources + steps + long_steps, "source"),
        "devices": results(devices, "gpu"),
        "refusals": refusals(sources),
        "others": others(sources),
        "literal": literal(sources, validate(program, "--runs", arguments.runs, "--literal")["sources"]),
    }
    if arguments.gains:
        command = [ROOT / "scripts/calibrate", "table", "--gains", arguments.gains]
        tables["constants"] = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if arguments.bands:
        command = [ROOT / "scripts/error_bands", arguments.bands, "--table"]
        parts = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().split("\n\n")
        tables["bands"], tables["order"] = "\n\n".join(parts[:2]), "\n\n".join(parts[2:])
    if arguments.left_out:
        tables["left_out"] = left_out(arguments.left_out, sources)
    text = DOCUMENT.read_text()
    for name, table in tables.items():
        pattern = re.compile(rf"(<!-- table {name} -->\n).*?(<!-- end -->)", re.S)
        text, count = pattern.subn(lambda m: m[1] + "\n" + table + "\n\n" + m[2], text)
        if count != 1:
            raise SystemExit(f"{DOCUMENT}: no place for the table '{name}'")
    DOCUMENT.write_text(text)


if __name__ == "__main__":
    main()
