#!/usr/bin/env python3
"""plait train as a user runs it: ranks are processes."""
import json
import os
import socket
import subprocess
import sys
import time

from program import Here, plait, run_tests

MODEL = {"plait_model": 1, "name": "tiny", "transformer": {
    "layers": 4, "hidden": 32, "heads": 4, "vocabulary": 61, "sequence": 16}}


def plan(*words, ranks=1):
    (Here.folder / "tiny.json").write_text(json.dumps(MODEL))
    plait("plan", "--model", "tiny.json", "--cluster", f"T4:{ranks}", "--global-batch", 8, "--precision", "fp32",
          *words, "-o", "plan.json")


def losses(*words, **environment):
    out, _ = plait("train", "plan.json", "--device", "cpu", "--steps", 4, "--json", *words, **environment)
    rows = [json.loads(line) for line in out.splitlines()]
    assert rows[-1]["measured_step_s"] > 0, rows
    return [row["loss"] for row in rows if "loss" in row]


def close(a, b):
    return len(a) == len(b) and all(abs(x - y) < 1e-5 * y for x, y in zip(a, b))


def test_a_pipeline_of_processes_trains_as_one():
    plan()
    alone = losses()
    assert len(alone) == 4 and alone[3] < alone[0]
    plan("--pp", 2, "--tp", 2, "--micro-batches", 4, "--schedule", "1f1b", ranks=4)
    assert close(losses("--local", 4, "--threads-per-rank", 1, "--trace", "trace.json"), alone)
    events = json.loads((Here.folder / "trace.json").read_text())["traceEvents"]
    # 4 ranks, 4 steps, 4 micro-batches, forward and backward.
    assert sum(event["cat"] in ("forward", "backward") for event in events) == 4 * 4 * 4 * 2
    assert sum(event["name"] == "update" for event in events) == 4 * 4
    # The predicted step has the same rows and names: of a stage, and one step.
    plait("estimate", "plan.json", "--trace", "predicted.json")
    predicted = json.loads((Here.folder / "predicted.json").read_text())["traceEvents"]
    timed = lambda some, rank: [event["name"] for event in some if event["ph"] == "X" and event["name"] != "wait" and
                                event["tid"] == rank and event["args"]["step"] == 0]
    ranks = {event["tid"] for event in predicted}
    assert len(ranks) == 2 and all(timed(predicted, rank) == timed(events, rank) for rank in ranks)


def test_other_launchers_are_understood():
    plan("--dp", 2, ranks=2)
    port = str(20000 + os.getpid() % 10000)
    words = [Here.program, "train", "plan.json", "--device", "cpu", "--steps", "2", "--json"]
    ranks = [subprocess.Popen(words, cwd=Here.folder, stdout=subprocess.PIPE, text=True, env={
        **os.environ, "OMP_NUM_THREADS": "1", "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2",
        "OMPI_COMM_WORLD_LOCAL_RANK": str(rank), "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}) for rank in range(2)]
    outputs = [rank.communicate(timeout=50)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0]
    assert len(outputs[0].splitlines()) == 3 and outputs[1] == ""


def test_a_place_to_meet_that_is_taken_is_named():
    """Ranks of one machine meet at a socket in Linux' abstract namespace, not at a TCP port."""
    plan("--dp", 2, ranks=2)
    port = 4711
    with socket.socket(socket.AF_UNIX) as taken:
        taken.bind(f"\0plait/{os.getuid()}/{port}")
        taken.listen()
        for rank, words in ((0, "another program has the port, perhaps another run: set MASTER_PORT"),
                            (1, "accepts connections but does not greet")):
            _, err = plait("train", "plan.json", "--device", "cpu", status=75, RANK=str(rank), WORLD_SIZE="2",
                           LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            assert words in err, err


def test_images_are_counted_as_such():
    plait("plan", "--model", "vit-base", "--cluster", "T4:1", "--global-batch", 1, "--precision", "fp32", "-o", "plan.json")
    _, err = plait("train", "plan.json", "--device", "cpu", "--steps", 1)
    assert " images/s " in err and "tokens" not in err, err


def test_what_cannot_be_executed_is_refused_with_the_reason():
    plan("--schedule", "zb-h1", "--pp", 2, "--micro-batches", 4, "--runs-on", "any", ranks=2)
    _, err = plait("train", "plan.json", "--local", 2, status=3)
    assert "plait train has the schedules gpipe, 1f1b and interleaved, the plan zb-h1" in err


def test_the_number_of_ranks_must_be_the_plans():
    plan("--dp", 2, ranks=2)
    assert "must be 2, the devices of the plan" in plait("train", "plan.json", "--local", 3, status=2)[1]
    assert "start its ranks with --local 2" in plait("train", "plan.json", status=2)[1]


def test_what_is_needed_at_the_end_is_tried_at_the_beginning():
    plan("--dp", 2, ranks=2)
    (Here.folder / "file").write_text("")
    for words, complaint in ((["--checkpoint", "/proc/run"], "/proc/run: cannot be made"),
                             (["--checkpoint", "file"], "file: is a file"),
                             (["--trace", "none/trace.json"], "there is no directory none"),
                             (["--tokens", "none.bin"], "none.bin: has no index"),
                             (["--max-restarts", 1], "needs --local N and --checkpoint DIR"),
                             (["--device-lost"], "needs --max-restarts N"),
                             (["--checkpoint-every", 2], "needs --checkpoint DIR")):
        _, err = plait("train", "plan.json", "--local", 2, "--device", "cpu", "--steps", 2, *words, status=2)
        assert complaint in err and "step" not in err, err


def test_every_rank_reads_the_plan_so_it_is_a_file():
    plan()
    with open(Here.folder / "plan.json") as text:
        done = subprocess.run([Here.program, "train", "-", "--device", "cpu"], stdin=text, capture_output=True, text=True)
    assert done.returncode == 2 and "-: is not a file: every rank reads the plan" in done.stderr, done.stderr


def test_a_training_that_diverges_ends_and_keeps_its_last_checkpoint():
    plan("--dp", 2, ranks=2)
    words = ["train", "plan.json", "--local", 2, "--threads-per-rank", 1, "--device", "cpu", "--json",
             "--checkpoint", "run", "--checkpoint-every", 1]
    plait(*words, "--steps", 2)
    out, err = plait(*words, "--steps", 100, "--lr", 1e9, "--clip", 0, "--max-restarts", 2, status=4)
    rows = [json.loads(line) for line in out.splitlines()]
    assert rows[-1]["loss"] is None or rows[-1]["gradient_norm"] is None, rows
    assert "the training diverges; lower --lr and go on from run/step-" in err and "restart" not in err, err
    saved = sorted(path.name for path in (Here.folder / "run").iterdir())
    assert saved[-1] == f"step-{rows[-1]['step']:08}", saved


def test_what_to_do_about_a_damaged_checkpoint_is_said():
    plan()
    words = ["train", "plan.json", "--device", "cpu", "--checkpoint", "run"]
    plait(*words, "--steps", 1)
    plait(*words, "--steps", 2)
    last = Here.folder / "run" / "step-00000002"
    for damaged in last.glob("*.weight.npy"):
        damaged.write_bytes(damaged.read_bytes()[:-4])
    _, err = plait(*words, "--steps", 3, status=2)
    assert ".weight.npy: is damaged: it has " in err and "; move run/step-00000002 away to go on from the" in err, err
    (last / "checkpoint.json").write_text("{")
    assert "move run/step-00000002 away" in plait(*words, "--steps", 3, status=2)[1]
    last.rename(Here.folder / "damaged")
    assert "step 1 |" in plait(*words, "--steps", 3)[1]


def test_a_run_whose_lines_cannot_be_printed_is_trained_to_its_end():
    """And its status tells; a full disk for the log must not cost the training."""
    for words in (["--local", 2, "--threads-per-rank", 1], []):
        plan(*(["--dp", 2] if words else []), ranks=2 if words else 1)
        with open("/dev/full", "w") as full:
            done = subprocess.run([Here.program, "train", "plan.json", "--device", "cpu", "--json", "--steps", "3", "--checkpoint",
                                   f"run{len(words)}", *map(str, words)], cwd=Here.folder, stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=240)
        assert done.returncode == 2 and "stdout: cannot be written: No space left on device" in done.stderr, done
        assert (Here.folder / f"run{len(words)}" / "step-00000003").exists(), done.stderr


def test_a_rank_that_fails_is_named_once():
    plan("--dp", 2, ranks=2)
    words = ["train", "plan.json", "--local", 2, "--device", "cpu", "--checkpoint", "run", "--steps"]
    plait(*words, 1)
    (Here.folder / "run/step-00000001/checkpoint.json").write_text("{")
    _, err = plait(*words, 2, status=2)
    assert err.count("exited with status 2") == 1, err


def test_a_plan_for_gpus_needs_a_gpu_or_the_word_cpu():
    plan("--dp", 2, ranks=2)
    _, err = plait("train", "plan.json", "--local", 2, "--device", "cuda", status=2, CUDA_VISIBLE_DEVICES="")
    assert "--device: cuda needs a GPU, and this machine has none that can be used" in err, err
    _, err = plait("train", "plan.json", "--local", 2, status=2, CUDA_VISIBLE_DEVICES="")
    assert "; --device cpu trains it on CPUs" in err, err


def test_ranks_that_need_more_memory_than_the_machine_has_do_not_start():
    plait("plan", "--model", "llama-2-70b", "--cluster", "2xH100:8", "--global-batch", 64, "--framework", "plait",
          "--precision", "bf16", "-o", "large.json")
    _, err = plait("train", "large.json", "--local", 16, "--device", "cpu", status=2)
    assert "16 ranks on this machine would need " in err and " are free" in err, err


def test_a_run_goes_on_from_its_checkpoint_under_another_plan():
    plan()
    alone = losses()
    plait("train", "plan.json", "--device", "cpu", "--steps", 2, "--checkpoint", "run")
    plan("--dp", 2, "--zero", 1, ranks=2)
    assert close(losses("--local", 2, "--threads-per-rank", 1, "--checkpoint", "run"), alone[2:])
    # Nothing is left to do, which is said; the trace of nothing is one, too.
    _, err = plait("train", "plan.json", "--device", "cpu", "--local", 2, "--steps", 4, "--checkpoint", "run",
                   "--trace", "trace.json")
    assert "step-00000004 has 4 steps, and --steps is 4" in err, err
    assert all(event["ph"] == "M" for event in json.loads((Here.folder / "trace.json").read_text())["traceEvents"])


def test_a_rank_that_dies_ends_the_others():
    plan("--dp", 2, ranks=2)
    run = subprocess.Popen([Here.program, "train", "plan.json", "--device", "cpu", "--local", "2", "--steps", "1000000"],
                           cwd=Here.folder, stderr=subprocess.PIPE, text=True)
    for line in run.stderr:
        if line.startswith("step 3 "):
            break
    children = subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True, text=True).stdout.split()
    assert len(children) == 2, children
    os.kill(int(children[1]), 9)
    begin = time.monotonic()
    rest = run.communicate(timeout=30)[1]
    assert run.returncode == 1 and time.monotonic() - begin < 10
    assert "was killed by SIGKILL" in rest, rest[-500:]


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
