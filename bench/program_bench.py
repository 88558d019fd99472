#!/usr/bin/env python3
"""Time and peak memory of the whole program, start to exit, against the bars it must meet.

    program_bench.py build/release/plait
"""
import os
import sys
import time

# name, arguments, most seconds, most megabytes
CASES = [
    ("64 GPUs, 1 type", "plan --model llama-2-7b --cluster 8xA100-80GB:8 --global-batch 512", 0.2, 100),
    ("64 GPUs, 2 types", "plan --model llama-2-7b --cluster 4xA100-80GB:8+8xV100-16GB:4 "
                         "--global-batch 512", 0.2, 100),
    ("64 GPUs, 70 B parameters", "plan --model llama-2-70b --cluster 4xH100:8+4xA100-80GB:8 "
                                 "--global-batch 512", 0.2, 100),
]
RUNS = 5


def measure(program, arguments):
    """(seconds, megabytes, exit status) of one run; its output is thrown away."""
    started = time.perf_counter()
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.execv(program, [program, *arguments])
    _, status, usage = os.wait4(child, 0)
    return time.perf_counter() - started, usage.ru_maxrss * 1024 / 1e6, os.waitstatus_to_exitcode(status)


def main():
    program = sys.argv[1]
    failed = False
    print(f"{'case':<28}{'median':>10}{'slowest':>10}{'bar':>8}{'memory':>10}{'bar':>8}")
    for name, arguments, most_seconds, most_megabytes in CASES:
        runs = sorted(measure(program, arguments.split()) for _ in range(RUNS))
        seconds, slowest = runs[RUNS // 2][0], runs[-1][0]
        megabytes = max(run[1] for run in runs)
        good = seconds < most_seconds and megabytes < most_megabytes and not any(r[2] for r in runs)
        failed |= not good
        print(f"{name:<28}{seconds:>8.3f} s{slowest:>8.3f} s{most_seconds:>6} s"
              f"{megabytes:>7.0f} MB{most_megabytes:>5} MB  {'ok' if good else 'MISSED'}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
