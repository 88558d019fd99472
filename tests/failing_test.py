#!/usr/bin/env python3
"""Calls to the system that fail, one by one: the program ends with a sentence and a status of its own, never by a signal,
and leaves files as they were. tests/failing/failing_calls.cpp makes them fail."""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile

STATUSES = {0, 1, 2, 3}
OLD = "what was there before\n"


class Here:
    program = ""
    failing_calls = ""
    folder = pathlib.Path()


def run(words, fail, count=None):
    environment = dict(os.environ, LD_PRELOAD=Here.failing_calls, PLAIT_FAIL=fail)
    if count:
        environment["PLAIT_FAIL_COUNT"] = str(count)
    return subprocess.run([Here.program, *words], cwd=Here.folder, env=environment, capture_output=True, text=True,
                          timeout=120)


def calls_of(words, call):
    """How many there are in a run where none fails."""
    count = Here.folder / "count"
    done = run(words, f"{call}:999999999", count)
    assert done.returncode == 0, done.stderr
    return int(count.read_text())


def is_whole(text):
    """A plan file from its first to its last brace: what failed came after it."""
    try:
        return "plait_plan" in json.loads(text)
    except ValueError:
        return False


def check(words, fail, output=None):
    if output:
        (Here.folder / output).write_text(OLD)
    before = {path.name for path in Here.folder.iterdir()}
    done = run(words, fail)
    assert done.returncode in STATUSES, f"{words} with {fail}: status {done.returncode}\n{done.stderr}"
    if done.returncode != 0:
        assert done.stderr.strip(), f"{words} with {fail}: nothing is said"
        assert "internal error" not in done.stderr, done.stderr
    if output and done.returncode not in (0, 3):
        text = (Here.folder / output).read_text()
        assert text == OLD or is_whole(text), f"{fail}: {output} is half written"
    left = {path.name for path in Here.folder.iterdir()} - before
    assert not left, f"{words} with {fail}: {left} is left behind"
    return done


PLAN = ["plan", "--model", "gpt2", "--cluster", "2xT4:2", "--global-batch", "8", "-o", "plan.json"]


def test_a_disk_that_is_full_leaves_the_old_file():
    for call in ("write", "fsync", "rename"):
        total = calls_of(PLAN, call)
        assert total >= 1, f"{call} is not called at all"
        for number in range(1, total + 1):
            done = check(PLAN, f"{call}:{number}+", "plan.json")
            if done.returncode == 0:  # the directory's own fsync comes when the file is already there
                assert call == "fsync" and number == total, f"{call}:{number}: the failure is not told"
                assert '"plait_plan"' in (Here.folder / "plan.json").read_text()
            else:
                assert done.returncode == 2 and "plan.json" in done.stderr, f"{call}:{number}: {done.stderr}"
                assert (Here.folder / "plan.json").read_text() == OLD, f"{call}:{number}: the old file is gone"


def test_a_signal_while_a_file_is_written_leaves_it_whole():
    (Here.folder / "plan.json").write_text(OLD)
    done = run(PLAN, "terminate:1")
    assert done.returncode == -signal.SIGTERM, done
    assert is_whole((Here.folder / "plan.json").read_text())
    assert [path.name for path in Here.folder.iterdir()] == ["plan.json"]


def test_without_more_threads_the_answer_is_the_same_or_a_sentence():
    whole = run([*PLAN[:-2], "--threads", "4"], "none:1")
    for number in range(1, 5):
        done = check([*PLAN[:-2], "--threads", "4"], f"pthread_create:{number}+")
        assert done.returncode != 0 or done.stdout.splitlines()[:6] == whole.stdout.splitlines()[:6], done.stdout


def test_ranks_that_get_no_more_threads_say_so():
    """Of libtorch's and of ours, any: no rank calls it the loss of another one."""
    if not pathlib.Path(Here.program).with_name("plait-torch").exists():
        print("skipped: no plait-torch beside the program")
        return
    (Here.folder / "tiny.json").write_text(json.dumps({
        "model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 4, "n_positions": 16, "n_ctx": 16, "vocab_size": 256}))
    subprocess.run([Here.program, "plan", "--model", "tiny.json", "--cluster", "T4:2", "--global-batch", "4", "--precision",
                    "fp32", "--zero", "0", "--dp", "2", "-o", "plan.json"], cwd=Here.folder, check=True, capture_output=True)
    train = ["train", "plan.json", "--device", "cpu", "--local", "2", "--steps", "2"]
    told = ""
    for number in (1, 2, 3, 4, 6):
        told += check(train, f"pthread_create:{number}+").stderr
    assert "the system refuses what is needed: Resource temporarily unavailable" in told, told
    assert "lost another rank: Resource temporarily unavailable" not in told, told


def test_memory_that_runs_out_anywhere_is_told():
    seed = int(os.environ.get("PLAIT_FAIL_SEED", random.randrange(10**6)))
    print(f"PLAIT_FAIL_SEED={seed}")
    draw = random.Random(seed)
    total = calls_of(PLAN, "malloc")
    for number in sorted(draw.sample(range(1, total), 40)):
        check(PLAN, f"malloc:{number}", "plan.json")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--library", dest="calls", required=True)
    given = parser.parse_args()
    Here.program, Here.failing_calls = os.path.abspath(given.program), os.path.abspath(given.calls)
    failed = 0
    for name, test in [(n, t) for n, t in globals().items() if n.startswith("test_")]:
        with tempfile.TemporaryDirectory() as folder:
            Here.folder = pathlib.Path(folder)
            try:
                test()
                print(name, "ok")
            except AssertionError as error:
                failed += 1
                print(name, "FAILED:", error)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
