#!/usr/bin/env python3
"""plait trial with engines that are shell scripts, and plait tokenize."""
import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from program import Here, answer, plait, run_tests

PROBLEM = ["--model", "gpt2", "--cluster", "2xA100-80GB:4", "--global-batch", "32"]
QUICK = ["--steps", 2, "--warm-up", 1, "--grace", "200ms"]

# Takes 10 % longer than predicted, in Megatron-LM's words.
ENGINE = r"""#!/bin/sh
step=$(sed -n 's/.*"step_s": \([0-9.e-]*\).*/\1/p' "$1" | head -1)
time=$(echo | awk "{print 1100 * $step}")
echo "$PLAIT_TP $PLAIT_PP $PLAIT_DP $PLAIT_MICRO_BATCH" >> runs.txt
echo "[Rank 0] memory (MB) | allocated: 1.0 | max allocated: 1024.0 | reserved: 1.0"
for i in 1 2 3; do echo " iteration $i/3 | elapsed time per iteration (ms): $time | lm loss"; done
"""


def engine(text=ENGINE):
    path = Here.folder / "run.sh"
    path.write_text(text)
    path.chmod(0o755)


def trial(*words, **options):
    return answer("trial", "--launch", "./run.sh {plan}", *QUICK, *words, **options)


def test_the_best_plans_are_measured_and_the_best_is_kept():
    engine()
    found = trial(*PROBLEM, "--budget", 3, "-o", "best.json")
    assert [row["outcome"] for row in found["trials"]] == ["measured"] * 3
    for row in found["trials"]:
        assert abs(row["error"] - (1 / 1.1 - 1)) < 1e-3, row
        assert row["measured_memory_GiB"] == 1
    assert found["best"] == 0 and found["spearman"] == 1
    assert answer("estimate", "best.json")["describe"] == found["trials"][0]["plan"]


def test_what_is_in_the_table_is_not_run_again():
    engine()
    trial(*PROBLEM, "--budget", 2)
    again = trial(*PROBLEM, "--budget", 3)
    assert len(again["trials"]) == 3
    assert len((Here.folder / "runs.txt").read_text().splitlines()) == 3
    with open(Here.folder / "trials" / "trials.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [row["id"] for row in again["trials"]]


def test_another_command_is_another_trial():
    engine()
    trial(*PROBLEM, "--budget", 1)
    answer("trial", "--launch", "./run.sh {plan} # again", *QUICK, *PROBLEM, "--budget", 1)
    assert len((Here.folder / "runs.txt").read_text().splitlines()) == 2


def test_failures_hangs_and_memory_do_not_end_the_trials():
    engine("#!/bin/sh\necho x >> count\ncase $(wc -l < count) in\n"
           "1) echo 'torch.cuda.OutOfMemoryError: CUDA out of memory.' >&2; exit 1;;\n"
           "2) sleep 100;;\n3) echo 'ValueError: no' >&2; exit 1;;\nesac\n" + ENGINE[10:])
    found = trial(*PROBLEM, "--budget", 4, "--timeout", "1s")
    assert [row["outcome"] for row in found["trials"]] == [
        "out-of-memory", "timed-out", "failed", "measured"]
    assert found["best"] == 3
    again = trial(*PROBLEM, "--budget", 4, "--retry")
    assert [row["outcome"] for row in again["trials"]] == ["measured"] * 4


def test_nothing_measured_is_exit_3():
    engine("#!/bin/sh\nexit 1\n")
    assert trial(*PROBLEM, "--budget", 1, status=3)["best"] is None


def test_fields_and_variables_say_the_same():
    engine("#!/bin/sh\necho $* > words.txt\necho $PLAIT_TP $PLAIT_PP $PLAIT_DP $PLAIT_MICRO_BATCH "
           "$PLAIT_GLOBAL_BATCH $PLAIT_LAYERS_PER_STAGE > variables.txt\n")
    plait("trial", "--launch",
          "./run.sh {tp} {pp} {dp} {micro_batch} {global_batch} {layers_per_stage}", *QUICK,
          *PROBLEM, "--budget", 1, "--tp", 2, "--stages", "6,6", "--micro-batch", 4,
          status=3)
    words = (Here.folder / "words.txt").read_text()
    assert words == (Here.folder / "variables.txt").read_text()
    assert words == "2 2 2 4 32 6,6\n", words


def test_saved_plans_are_tried_in_the_order_of_prediction():
    engine()
    (Here.folder / "mine").mkdir()
    plait("plan", *PROBLEM, "--tp", 4, "-o", "mine/a.json")
    plait("plan", *PROBLEM, "--tp", 1, "-o", "mine/b.json")
    found = trial("--plans", "mine")
    assert [" tp1 " in row["plan"] for row in found["trials"]] == [True, False]


def test_a_trial_that_is_ended_by_the_batch_system_leaves_nothing_behind():
    mark = f"{os.getpid()}{time.time_ns()}"
    engine(f"#!/bin/sh\necho begun > begun\nMARK={mark} exec sleep 300\n")
    run = subprocess.Popen([Here.program, "trial", "--launch", "./run.sh", *PROBLEM, "--grace", "1s"],
                           cwd=Here.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (Here.folder / "begun").exists():
        time.sleep(0.05)
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=30) == 130
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            assert f"MARK={mark}".encode() not in path.read_bytes(), path
        except OSError:
            pass


def test_own_patterns():
    engine("#!/bin/sh\nfor i in 1 2 3; do echo \"it $i took 250 ms, 2.5 GB\"; done\n")
    row = trial(*PROBLEM, "--budget", 1, "--time-pattern", r"took (\d+) (ms)", "--memory-pattern",
                r"([0-9.]+) (GB)")["trials"][0]
    assert row["measured_s"] == 0.25 and abs(row["measured_memory_GiB"] - 2.5e9 / 2**30) < 1e-9


def test_the_table_of_trials_is_for_people_too():
    engine()
    out, told = plait("trial", "--launch", "./run.sh {plan}", *QUICK, *PROBLEM, "--budget", 3)
    assert "trial 1 of 3: " in told and "Spearman's rho 1.00" in out and "-9.1 %" in out, out


def test_without_a_command_plait_train_is_tried():
    if not pathlib.Path(Here.program).with_name("plait-torch").exists():
        print("skipped: no plait-torch beside the program")
        return
    (Here.folder / "tiny.json").write_text(json.dumps({
        "model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 4, "n_positions": 16,
        "n_ctx": 16, "vocab_size": 61}))
    found = answer("trial", *QUICK, "--model", "tiny.json", "--cluster", "T4:2", "--global-batch", 4,
                   "--precision", "fp32", "--budget", 2, "--train", "--device cpu", "--dir", "my trials")
    assert [row["outcome"] for row in found["trials"]] == ["measured"] * 2, found
    assert all(row["measured_memory_GiB"] > 0 for row in found["trials"])


def test_why_no_plan_can_be_executed_is_said():
    if not pathlib.Path(Here.program).with_name("plait-torch").exists():
        print("skipped: no plait-torch beside the program")
        return
    _, err = plait("trial", *PROBLEM, "--zero", 3, "--runs-on", "any", status=3)
    assert "none of the plans can be executed by plait train: plait train runs ZeRO 0 and 1, the plan has 3" in err, err


def test_tokens_decode_to_the_text():
    text = "The wheels on the bus go round and round, round and round. " * 20
    (Here.folder / "text.txt").write_text(text)
    made = answer("tokenize", "text.txt", "-o", "tokens.bin", "--vocabulary", 300)
    assert 256 < made["vocabulary"] <= 300 and made["bytes_per_token"] > 2, made
    assert plait("tokenize", "tokens.bin", "--decode")[0] == text
    (Here.folder / "more.txt").write_text("round wheels")
    more = answer("tokenize", "more.txt", "-o", "more.bin", "--tokenizer", "tokens.json")
    assert more["vocabulary"] == made["vocabulary"]
    assert plait("tokenize", "more.bin", "--decode")[0] == "round wheels"


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
