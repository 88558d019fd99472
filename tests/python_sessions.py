"""Threads, callbacks, interrupts and memory of the Python package; tests/python_cases.py runs them."""
import contextlib
import gc
import os
import pathlib
import subprocess
import sys
import threading
import time

import plait

from python_problems import LONG, SMALL, raised


def test_eight_threads_plan_at_once():
    batches = [16, 32, 48, 64, 80, 96, 112, 128]
    alone = [plait.plan(**{**SMALL, "global_batch": batch}) for batch in batches]
    together = [None] * len(batches)

    def work(i):
        together[i] = plait.plan(**{**SMALL, "global_batch": batches[i]})

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(batches))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def test_other_threads_run_while_a_search_runs():
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count, daemon=True)
    thread.start()
    with contextlib.suppress(plait.NothingFits):  # a busy machine finds nothing in a second
        plait.plan(**{**LONG, "time_limit": 1})
    done.set()
    thread.join()
    assert counted[0] > 5, counted  # with Python's lock held it is one at most


def resident():
    """Bytes of this process that are in memory."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_thousand_plans_leak_nothing():
    def many(count):
        for i in range(count):
            plan = plait.plan(model="gpt2", cluster="1xA100-80GB:2", global_batch=8 + i % 8, threads=1)
            assert plan.stages and str(plan)
            raised(plait.InputError, plait.plan, model="gpt2", cluster="1xA100-80GB:2", tpp=1)
        gc.collect()
        return resident()

    before = many(250)
    after = many(1000)
    assert after - before < 4e6, f"{(after - before) / 1e6:.1f} MB more after 1,000 plans"


def test_improvements_are_told_where_the_caller_is():
    steps, parts, threads = [], [], set()

    def improved(step):
        steps.append(step)
        threads.add(threading.get_ident())

    plan = plait.plan(model="gpt2-xl", cluster="2xA100-80GB:4+2xV100-32GB:4", global_batch=64,
                      precision="fp16", on_improvement=improved, on_progress=parts.append)
    assert steps and steps == sorted(steps, reverse=True), steps
    assert threads == {threading.get_ident()} and plan.step_s > 0
    assert all(0 <= part <= 1 for part in parts)


def test_a_callback_that_raises_ends_the_search():
    def fail(_):
        raise LookupError("enough")

    assert str(raised(LookupError, plait.plan, **LONG, on_improvement=fail)) == "enough"


def test_ctrl_c_while_a_callback_runs_is_not_a_fault_of_the_callback():
    def pressed(_):
        raise KeyboardInterrupt

    plan = plait.plan(**LONG, on_improvement=pressed)
    assert plan.search.interrupted and plan.step_s > 0


def test_ctrl_c_gives_the_best_plan_so_far():
    code = f"""
import os, signal, threading, plait
pressed = []
def press(_):  # once: a second one would come after the search
    if not pressed:
        pressed.append(threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)))
        pressed[0].start()
plan = plait.plan(**{LONG!r}, on_improvement=press)
assert plan.search.interrupted and plan.search.cut_short, str(plan.search)
print("so far", plan.step_s)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0 and done.stdout.startswith("so far"), done.stderr + done.stdout
