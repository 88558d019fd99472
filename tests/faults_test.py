#!/usr/bin/env python3
"""plait train when ranks die, stop or are lost: it names them, goes on, and learns the same."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

from program import Here, plait, run_tests

MODEL = {"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 4, "n_positions": 16,
         "n_ctx": 16, "vocab_size": 256}
WORLD = 4
SECONDS = 240


def make_plan(*pins):
    (Here.folder / "tiny.json").write_text(json.dumps(MODEL))
    plait("plan", "--model", "tiny.json", "--cluster", f"T4:{WORLD}", "--global-batch", 12,
          "--precision", "fp32", "--zero", 0, "--schedule", "1f1b", *pins, "-o", "plan.json")


def start(*words, launched=True, environment=None):
    local = ["--local", str(WORLD)] if launched else []
    return subprocess.Popen(
        [Here.program, "train", "plan.json", "--device", "cpu", "--json", *local,
         *map(str, words)], cwd=Here.folder, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})})


def ended(process, status=0):
    """(losses by step, last word counts; stderr)"""
    out, told = process.communicate(timeout=SECONDS)
    assert process.returncode == status, f"exit {process.returncode}\n{told[-3000:]}"
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return {row["step"]: row["loss"] for row in rows if "loss" in row}, told


def ranks_of(process):
    """Process ids of the ranks that are up, by rank."""
    found = {}
    try:
        pids = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for pid in pids:
            for entry in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                if entry.startswith(b"RANK="):
                    found[int(entry[5:])] = int(pid)
    except OSError:
        return {}
    return found


def when_up(process):
    begin = time.monotonic()
    while time.monotonic() - begin < SECONDS and process.poll() is None:
        found = ranks_of(process)
        if len(found) == WORLD:
            return found
        time.sleep(0.02)
    return {}


def when_training(process):
    """Waits for the first checkpoint in 'run'."""
    while not list(Here.folder.glob("run/step-*")) and process.poll() is None:
        time.sleep(0.01)


def kill_at_random(process, moments, choice):
    """kill -9 of a random rank at random moments, each after the ranks are up (again)."""
    kills = 0
    for moment in moments:
        found = when_up(process)
        time.sleep(moment)
        if not found or process.poll() is not None:
            break
        try:
            os.kill(found[choice.randrange(WORLD)], signal.SIGKILL)
            kills += 1
        except ProcessLookupError:
            pass
        time.sleep(0.5)  # the launcher sees it within milliseconds
    return kills


def same(got, wanted, tolerance=1e-5):
    assert sorted(got) == sorted(wanted), (len(got), len(wanted))
    for step, loss in wanted.items():
        assert abs(got[step] - loss) <= tolerance * loss, (step, got[step], loss)


def kills_change_nothing(count, seed, steps):
    """Of a run of its own; gives the number of kills."""
    shutil.rmtree(Here.folder / "run", ignore_errors=True)
    make_plan("--pp", 2, "--tp", 1, "--dp", 2)
    begin = time.monotonic()
    wanted, _ = ended(start("--steps", steps))
    most = 0.7 * (time.monotonic() - begin)  # of a run that is not disturbed
    choice = random.Random(seed)
    process = start("--steps", steps, "--checkpoint", "run", "--checkpoint-every", 5,
                    "--max-restarts", 2 * count)
    kills = kill_at_random(process, [choice.uniform(0, most) for _ in range(count)], choice)
    got, told = ended(process)
    assert kills > 0 and told.count("was killed by SIGKILL") >= 1, told[-2000:]
    same(got, wanted)
    return kills


def test_killed_ranks_change_nothing():
    kills_change_nothing(3, 1, 60)


def test_a_lost_device_is_planned_without_and_the_loss_is_the_same():
    make_plan("--pp", 2, "--tp", 1, "--dp", 2)
    wanted, _ = ended(start("--steps", 30))
    process = start("--steps", 30, "--checkpoint", "run", "--checkpoint-every", 5,
                    "--max-restarts", 1, "--device-lost")
    when_training(process)
    os.kill(ranks_of(process)[1], signal.SIGKILL)
    got, told = ended(process)
    assert "rank 1 was killed by SIGKILL" in told and "goes on without it" in told, told[-2000:]
    new = json.loads((Here.folder / "run" / "restart-1.json").read_text())
    assert sum(len(stage["devices"]) for stage in new["plan"]["stages"]) < WORLD
    same(got, wanted, 1e-4)


def test_a_stopped_rank_is_named_within_10_seconds():
    make_plan("--pp", 2, "--tp", 2, "--dp", 1)
    process = start("--steps", 1000000, "--checkpoint", "run", "--checkpoint-every", 5)
    when_training(process)
    os.kill(ranks_of(process)[2], signal.SIGSTOP)
    begin = time.monotonic()
    _, told = ended(process, status=1)
    assert "rank 2 has sent no heartbeat" in told, told[-2000:]
    assert time.monotonic() - begin < 14, "8 s of silence, 3 s to end, and some for a busy machine"


def test_without_our_launcher_the_others_name_the_rank_that_died():
    make_plan("--pp", 1, "--tp", 1, "--dp", 4)
    port = str(random.Random().randrange(20000, 30000))
    ranks = [start("--steps", 1000000, "--checkpoint", "run", "--checkpoint-every", 5,
                   launched=False, environment={
                       "RANK": str(r), "WORLD_SIZE": str(WORLD), "LOCAL_RANK": str(r),
                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                       "GLOO_SOCKET_IFNAME": "lo"}) for r in range(WORLD)]
    when_training(ranks[0])
    time.sleep(2)  # the watchdogs have met
    os.kill(ranks[2].pid, signal.SIGKILL)
    begin = time.monotonic()
    for r in (0, 1, 3):
        _, told = ended(ranks[r], status=75)
        assert "rank 2 has sent no heartbeat" in told, (r, told[-1000:])
    ranks[2].communicate()
    assert time.monotonic() - begin < 14


def stops_lose_nothing(count, seed):
    """SIGTERM or SIGINT at random moments: every finished step is in the checkpoint that is saved,
    and all of the run together learns what a run without stops learns."""
    shutil.rmtree(Here.folder / "run", ignore_errors=True)
    make_plan("--pp", 2, "--tp", 1, "--dp", 2)
    choice, losses, stops = random.Random(seed), {}, 0
    for number in range(10 * count):
        process = start("--steps", 1000000, "--checkpoint", "run")
        when_up(process)
        if number % 3:  # else while it still starts
            process.stdout.readline()
            time.sleep(choice.uniform(0, 1.5))
        begin = time.monotonic()
        process.send_signal(choice.choice((signal.SIGTERM, signal.SIGINT)))
        out, told = process.communicate(timeout=SECONDS)
        assert process.returncode == 130, (process.returncode, told[-2000:])
        assert time.monotonic() - begin < 60, "the stated time"
        rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        steps = [row["step"] for row in rows if "loss" in row]
        losses.update({row["step"]: row["loss"] for row in rows if "loss" in row})
        if steps:
            assert newest_step() == steps[-1] + 1, (newest_step(), steps[-1], told[-2000:])
            assert "has saved run/step-" in told, told[-2000:]
            stops += 1
        if stops >= count:
            break
    assert stops >= count
    wanted, _ = ended(start("--steps", newest_step()))
    for step, loss in losses.items():
        assert abs(wanted[step] - loss) <= 1e-5 * loss, (step, wanted[step], loss)
    return losses


def newest_step():
    found = sorted(path.name for path in (Here.folder / "run").glob("step-*"))
    return int(found[-1][5:]) if found else 0


def test_a_run_that_is_stopped_loses_no_finished_step():
    stops_lose_nothing(3, 7)


def test_one_rank_that_is_stopped_stops_all_of_them():
    """As batch systems do it: the signal goes to the ranks, not to a launcher of ours."""
    make_plan("--pp", 1, "--tp", 1, "--dp", 4)
    port = str(random.Random().randrange(20000, 30000))
    ranks = [start("--steps", 1000000, "--checkpoint", "run", launched=False, environment={
        "RANK": str(r), "WORLD_SIZE": str(WORLD), "LOCAL_RANK": str(r), "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port}) for r in range(WORLD)]
    ranks[0].stdout.readline()
    ranks[2].send_signal(signal.SIGTERM)
    rows, _ = ended(ranks[0], status=130)
    for rank in ranks[1:]:
        ended(rank, status=130)
    assert newest_step() == max(rows) + 1


def test_a_token_file_that_shrinks_is_an_error():
    make_plan("--pp", 1, "--tp", 1, "--dp", 4)
    (Here.folder / "text").write_text("a text that is long enough to be trained on " * 2000)
    plait("tokenize", "text", "-o", "tokens.bin")
    process = start("--steps", 1000000, "--tokens", "tokens.bin", "--checkpoint", "run",
                    "--checkpoint-every", 5)
    when_training(process)
    os.truncate(Here.folder / "tokens.bin", 1000)
    _, told = ended(process, status=2)
    assert "tokens.bin: has become shorter while it was read" in told, told[-2000:]


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
