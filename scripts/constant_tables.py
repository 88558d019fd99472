#!/usr/bin/env python3
"""The tables of constants in docs/cost-model.md, made from data/catalogue.

    scripts/constant_tables.py            # fails when the document differs from the catalogue
    scripts/constant_tables.py --write    # rewrites the tables; so does PLAIT_UPDATE_GOLDEN=1

Only what stands between `<!-- table NAME -->` and `<!-- end -->` is touched. Run by ctest.
"""
import json
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs/cost-model.md"
CATALOGUE = ROOT / "data/catalogue"

DEVICE_COLUMNS = ["matmul", "matmul_inner", "matmul_tail", "misaligned", "batched", "batched_misaligned",
                  "attention", "attention_backward", "portable_attention", "early_attention", "memory", "fp8", "fp4",
                  "optimizer", "kernel_us", "intra", "inter", "spread"]


def rows_of(kind):
    return json.loads((CATALOGUE / f"{kind}.json").read_text())[kind]


def markdown(header, rows):
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join("---" for _ in header) + " |"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def shown(key, values):
    """`host_block_us` 500; a switch is its name, or "no" and its name; words are quoted."""
    value = values[key]
    if isinstance(value, bool):
        return f"`{key}`" if value else f"no `{key}`"
    if isinstance(value, float) and round(value, 4) != value:
        value = round(value, 4)
    return f"`{key}` {value}"


def framework_row(entry):
    values = {**entry.get("traits", {}), **entry.get("mixed_precision", {})}
    parts = [f"as `{entry['like']}`, but"] if "like" in entry else []
    for fit in entry.get("fits", []):
        constants = ", ".join(shown(key, values) for key in fit["of"])
        parts.append(f"{constants}: {fit['on']} ({fit['date']}).")
    notes = []
    if entry.get("autocast"):
        notes.append("autocast in mixed precision")
    if entry.get("fully_sharded"):
        notes.append("weights are cut under ZeRO-2 too")
    if entry.get("target"):
        notes.append(f"runs what `{entry['target']}` can")
    if notes:
        parts.append("; ".join(notes).capitalize() + ".")
    return [f"`{entry['name']}`", entry["what"], " ".join(parts)]


def frameworks():
    return markdown(["name", "what it is", "constants that differ, and what they come from"],
                    [framework_row(entry) for entry in rows_of("frameworks")])


def efficiency_of(name, devices):
    own = dict(devices[name].get("efficiency", {}))
    like = own.pop("like", devices[name].get("like"))
    return {**(efficiency_of(like, devices) if like else {}), **own}


def devices():
    """One row for all device types with the same constants; empty = the A100-40GB's."""
    entries = {entry["name"]: entry for entry in rows_of("devices")}
    groups = {}
    for name in entries:
        values = efficiency_of(name, entries)
        groups.setdefault(tuple(values.get(column) for column in DEVICE_COLUMNS), []).append(name)
    unknown = {key for name in entries for key in efficiency_of(name, entries)} - set(DEVICE_COLUMNS)
    if unknown:
        sys.exit(f"scripts/constant_tables.py has no column for {', '.join(sorted(unknown))}")
    rows = [[", ".join(names)] + ["" if value is None else f"{value:g}" for value in values]
            for values, names in groups.items()]
    return markdown(["", *(f"`{column}`" for column in DEVICE_COLUMNS)], rows)


def main():
    text = DOCUMENT.read_text()
    made = text
    for name, table in (("frameworks", frameworks()), ("devices", devices())):
        pattern = re.compile(rf"(<!-- table {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
        if not pattern.search(made):
            sys.exit(f"{DOCUMENT.name} has no table '{name}'")
        made = pattern.sub(lambda match, table=table: match[1] + table + match[2], made)
    if made == text:
        return 0
    if "--write" in sys.argv[1:] or os.environ.get("PLAIT_UPDATE_GOLDEN"):
        DOCUMENT.write_text(made)
        return 0
    print("docs/cost-model.md: a table of constants differs from data/catalogue; `./dev golden` rewrites it")
    return 1


if __name__ == "__main__":
    sys.exit(main())
