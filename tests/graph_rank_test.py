#!/usr/bin/env python3
"""A profile taken on eight CPU devices ranks the strategies of a Llama block as the clock does: Spearman's
correlation of predicted and measured times is at least 0.8, and the plan that is predicted to be the best
is at most 10 % slower than the one that is. Exit 77 = skipped."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from graph_jax_test import SKIPPED, SOURCE, jax_python

STEP = SOURCE / "examples/graph/llama_step.py:make"
SIZES = {"layers": 1, "width": 256, "heads": 8, "inner": 512, "batch": 16, "sequence": 64,
         "vocabulary": 256}
ROUNDS = 4
WORDS = ["--cluster", "1xA100-80GB:8", "--mesh", "8"]


def spearman(a, b):
    """Of two lists without equal entries: 1 - 6 sum d^2 / (n (n^2 - 1)), d = difference of the ranks."""
    def ranks(values):
        order = sorted(range(len(values)), key=values.__getitem__)
        return {position: rank for rank, position in enumerate(order)}
    ours, theirs = ranks(a), ranks(b)
    n = len(a)
    return 1 - 6 * sum((ours[i] - theirs[i]) ** 2 for i in range(n)) / (n * (n * n - 1))


def child(options):
    """Measures plans; prints a line of JSON for each: predicted and measured seconds."""
    sys.path.insert(0, str(SOURCE / "python"))
    import jax
    import plait.jax as runner
    from plait.measure import fastest
    step, arguments = runner.load_step(str(STEP))(**SIZES)
    plans = []
    for path in sorted(pathlib.Path(options.child).glob("plan*.json")):
        plan = json.loads(path.read_text())
        compiled = runner.compile_step(step, plan, arguments, donate=())
        plans.append((plan["time_s"], compiled, jax.device_put(arguments, compiled.input_shardings[0])))
    # In turns, so that what else the machine does for a while slows no plan alone.
    rounds = [[fastest(compiled, placed) for _, compiled, placed in plans] for _ in range(ROUNDS)]
    for (predicted, _, _), measured in zip(plans, map(min, zip(*rounds))):
        print(json.dumps({"predicted": predicted, "measured": measured}), flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--plans", type=int, default=24)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--profile", help="one that was taken already")
    options = parser.parse_args()
    if options.child:
        return child(options)
    python = jax_python()
    if python is None:
        print("skipped: there is no Python with JAX; ./dev setup_jax makes one")
        return SKIPPED
    runner = SOURCE / "python/plait/jax.py"
    environment = {**os.environ, "PLAIT_JAX_PYTHON": python, "PLAIT_JAX_RUNNER": str(runner),
                   "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}

    def run(*command):
        return subprocess.run(list(map(str, command)), check=True, env=environment, text=True,
                              stdout=subprocess.PIPE).stdout

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program, profile = folder / "step.hlo", folder / "profile.json"
        run(python, runner, STEP, "--trace", program, "--sizes", json.dumps(SIZES))
        if options.profile:
            profile.write_text(pathlib.Path(options.profile).read_text())
        said = json.loads(run(options.program, "graph", "profile", program, *WORDS, "-o", profile, "--json"))
        print(f"{said['timed']} timed, {said['known']} known before, {said['left']} left")
        for failed in said["failed"]:
            print(f"FAILED {failed}")
        for seed in range(options.plans):
            chosen = ["--random", seed] if seed > 0 else []
            run(options.program, "graph", "search", program, *WORDS, "--profile", profile, *chosen, "-o",
                folder / f"plan{seed:03}.json")
        rows = [json.loads(line) for line in
                run(python, __file__, "--program", options.program, "--child", folder).splitlines()]
    predicted = [row["predicted"] for row in rows]
    measured = [row["measured"] for row in rows]
    for one, other in sorted(zip(predicted, measured)):
        print(f"predicted {1e3 * one:8.2f} ms, measured {1e3 * other:8.2f} ms")
    found = spearman(predicted, measured)
    best = measured[predicted.index(min(predicted))] / min(measured) - 1
    print(f"Spearman {found:.3f} of {len(rows)}; the best predicted is {100 * best:.1f} % slower than the best")
    return 0 if found >= 0.8 and best <= 0.1 and not said["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
