#!/usr/bin/env python3
"""Published launches of Megatron-LM: each is read and priced, and what is said to be faster exports."""
import json
import pathlib
import sys

from program import Here, plait, run_tests

LIST = pathlib.Path(__file__).resolve().parent / "published" / "megatron_launches.txt"


def launches():
    rows = [line.split(" | ") for line in LIST.read_text().splitlines() if not line.startswith("#")]
    assert len(rows) >= 20, len(rows)
    return rows


def test_published_launches_are_priced_and_improved():
    for name, _, cluster, flags in launches():
        (Here.folder / "launch.sh").write_text(flags + "\n")
        text, _ = plait("estimate", "--from", "megatron", "launch.sh", "--cluster", cluster, "--json", "-o",
                        f"{name}.json", status=None)
        told = json.loads(text)
        faster = told["faster"]
        if faster is not None:
            assert faster["step_s"] < told["step_s"] or not told["fits"], name
            plait("export", f"{name}.json", "--to", "megatron", "-o", f"run-{name}")
        print(f"{name}: {told['step_s']:.3g} s, {'fits' if told['fits'] else 'does not fit'}, "
              + (f"{faster['step_s']:.3g} s with {faster['describe']}" if faster else "nothing faster"), flush=True)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
