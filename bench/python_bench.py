#!/usr/bin/env python3
"""What the Python package costs beside the library: seconds of an import, and of a call over those that the
library took to answer it.

    build/python/bin/python bench/python_bench.py     (after ./dev setup_python and pip install .)"""
import statistics
import subprocess
import sys
import time

import plait

REPEATS = 200


def import_seconds():
    """The least of several, over an interpreter that imports nothing."""
    def least(code):
        times = []
        for _ in range(9):
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times.append(time.perf_counter() - begin)
        return min(times)
    return least("import plait") - least("pass")


def overheads(cluster, look):
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        plan = plait.plan(model="gpt2", cluster=cluster, global_batch=32, threads=1)
        if look:
            plan.step_s  # noqa: B018  parses the JSON of the plan
        seconds.append(time.perf_counter() - begin - plan.search._answered.seconds)
    return seconds


def main():
    print(f"import                          {1e3 * import_seconds():8.2f} ms")
    for cluster in ("1xA100-80GB:1", "2xA100-80GB:4"):
        for look in (False, True):
            over = overheads(cluster, look)
            print(f"plan on {cluster:14}{' and .step_s' if look else '':12}"
                  f"{1e3 * statistics.median(over):6.3f} ms over the library (median), {1e3 * max(over):.3f} at most")


if __name__ == "__main__":
    main()
