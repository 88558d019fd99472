#!/usr/bin/env python3
"""plait profile on the CPU: measured, killed, resumed, planned with, exported."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from program import Here, answer, plait, run_tests

CLUSTER = pathlib.Path(__file__).resolve().parent.parent / "examples/clusters/local_cpu.json"
TINY = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 32, "n_layer": 2,
        "n_head": 4, "n_positions": 32, "vocab_size": 101}
QUICK = ["--precision", "fp32", "--per-point", "2ms", "--settle", "1ms", "--cache", "points.jsonl"]


def tiny():
    (Here.folder / "tiny.json").write_text(json.dumps(TINY))
    return ["profile", "--model", "tiny.json", *QUICK]


def points():
    """The complete lines of the cache, by fingerprint."""
    path = Here.folder / "points.jsonl"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    found = []
    for line in lines:
        try:
            found.append(json.loads(line)["point"])
        except json.JSONDecodeError:
            pass  # cut off by the kill
    return found


def test_a_killed_run_loses_at_most_the_point_being_measured():
    words = [*tiny(), "--tp", "1,2", "--micro-batch", "1,2", "-o", "profile.json"]
    before, kills = [], 0
    for patience in range(60):
        run = subprocess.Popen([Here.program, *words], cwd=Here.folder, stdout=subprocess.DEVNULL)
        try:
            assert run.wait(timeout=0.8 + 0.1 * patience) == 0
            break
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGKILL)
            run.wait()
            kills += 1
        now = points()
        assert now[:len(before)] == before, "points that were there are gone"
        before = now
    else:
        raise AssertionError("never ended")
    assert len(points()) == len(set(points())), "a point was measured twice"
    out, _ = plait(*words)
    assert out.startswith("profile.json: 0 points measured"), out
    print(f"killed {kills} times")


def test_the_profile_of_a_tiny_model_plans():
    plait(*tiny(), "--tp", "1,2", "--micro-batch", "1,2,4", "-o", "profile.json")
    profile = json.loads((Here.folder / "profile.json").read_text())
    assert len(profile["compute"]) == 3 * 2 * 3  # embedding, decoder, head
    assert all("forward_s" in point and "spread" in point for point in profile["compute"])
    assert {op["op"] for op in profile["ops"]} >= {"matmul", "attention", "norm", "loss"}
    assert profile["provenance"]["command"].startswith("plait profile --model tiny.json")
    plans = answer("plan", "--model", "tiny.json", "--cluster", CLUSTER, "--global-batch", 8,
                   "--precision", "fp32", "--max-tp", 2, "--profile", "profile.json")["plans"]
    assert plans and plans[0]["step_s"] > 0


def test_operators_are_measured_planned_and_trained():
    plait(*tiny(), "--granularity", "op", "--what", "units", "--tp", "1,2", "--micro-batch", "1,4", "-o", "ops.json")
    units = {point["unit"] for point in json.loads((Here.folder / "ops.json").read_text())["compute"]}
    assert {"decoder.attention.qkv", "decoder.mlp.down", "head.head.loss"} <= units, units
    words = ["--model", "tiny.json", "--granularity", "op", "--cluster", CLUSTER, "--global-batch", 8,
             "--precision", "fp32", "--runs-on", "plait", "--profile", "ops.json"]

    def losses(*pins):
        plait("plan", *words, *pins, "-o", "plan.json")
        plan = json.loads((Here.folder / "plan.json").read_text())["plan"]
        ranks = sum(len(stage["devices"]) for stage in plan["stages"])
        out, _ = plait("train", "plan.json", "--device", "cpu", "--local", ranks, "--threads-per-rank", 1,
                       "--steps", 3, "--json")
        rows = [row["loss"] for row in map(json.loads, out.splitlines()) if "loss" in row]
        assert len(rows) == 3 and rows[2] < rows[0], rows
        return rows

    free, cut = losses(), losses("--tp", 2)
    assert all(abs(a - b) < 1e-5 * a for a, b in zip(free, cut)), (free, cut)


def test_a_budget_measures_the_largest_points_first():
    out, _ = plait(*tiny(), "--micro-batch", "1,2,4,8", "--what", "units", "--budget", "1ms",
                   "-o", "profile.json")
    assert "1 point measured" in out and "11 left out" in out, out
    profile = json.loads((Here.folder / "profile.json").read_text())
    assert profile["compute"][0]["micro_batch"] == 8
    assert "the budget was spent" in profile["provenance"]["notes"][-1]


def test_lists_of_ops_are_measured():
    (Here.folder / "ops.json").write_text(json.dumps({"plait_ops": 1, "ops": [
        {"op": "matmul", "dtype": "fp32", "rows": [16, 32], "inner": 16, "columns": 16},
        {"op": "convolution", "dtype": "fp32", "rows": 16, "inner": 36, "columns": 4, "window": 3,
         "stride": 1}]}))
    plait("profile", "--ops", "ops.json", *QUICK, "-o", "a.json")
    plait("profile", "--ops", "ops.json", *QUICK, "--fresh", "-o", "b.json")
    difference = answer("profile", "diff", "a.json", "b.json")
    assert len(difference["both"]) == 9  # three passes each
    plait("profile", "merge", "a.json", "b.json", "-o", "c.json")
    assert len(json.loads((Here.folder / "c.json").read_text())["ops"]) == 3
    _, err = plait("profile", "merge", "a.json", status=2)
    assert "needs two or more" in err


def test_collectives_between_local_ranks_are_curves():
    plait("profile", "--comm", "--local", 2, "--threads-per-rank", "1,1", "--sizes", "1024,65536", "--per-point", "10ms",
          "-o", "links.json")
    profile = json.loads((Here.folder / "links.json").read_text())
    assert {c["collective"] for c in profile["collectives"]} == {
        "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"}
    for curve in profile["collectives"]:
        assert len(curve["points"]) == 2 and curve["fit"]["latency_s"] >= 0
        assert all(point["time_s"] > 0 for point in curve["points"])


def sockets_of(pid):
    links = []
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(os.readlink(descriptor))
        except OSError:
            pass
    return sum(link.startswith("socket:") for link in links)


def test_a_rank_that_is_stopped_ends_the_measuring_of_links():
    run = subprocess.Popen([Here.program, "profile", "--comm", "--local", "2", "-o", "links.json"], cwd=Here.folder,
                           stderr=subprocess.PIPE, text=True)
    ranks = []
    for _ in range(600):  # until both have met: they talk over sockets, and their hearts beat
        time.sleep(0.05)
        ranks = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        if len(ranks) == 2 and all(sockets_of(rank) >= 3 for rank in ranks):
            break
    time.sleep(0.5)
    os.kill(int(ranks[1]), signal.SIGSTOP)
    _, err = run.communicate(timeout=40)
    assert run.returncode == 2 and "rank 1 has sent no heartbeat" in err, err


def test_other_systems_forms_are_read_back():
    plait(*tiny(), "--what", "units", "-o", "profile.json")
    for form in ("metis", "aceso"):
        plait("profile", "export", "profile.json", "--model", "tiny.json", "--format", form, "-o", form)
        plait("import", form, "--from", form, "--model", "tiny.json", "-o", f"{form}.json")
        assert json.loads((Here.folder / f"{form}.json").read_text())["compute"]


def test_what_cannot_be_measured_is_refused():
    for words, complaint in ((["profile"], "give one of --model"),
                             ([*tiny(), "--ops", "ops.json"], "give one of --model"),
                             ([*tiny(), "--comm", "--local", "2"], "measures links alone"),
                             ([*tiny(), "--local", "2"], "goes with --comm"),
                             (["profile", "--comm", "--local", "2", "--format", "metis", "-o", "x"], "only plait's own"),
                             (["profile", "--comm"], "two ranks"),
                             (["profile", "frobnicate"], "must be merge")):
        _, err = plait(*words, status=2)
        assert complaint in err, err


def test_a_number_format_that_the_device_cannot_compute_is_said():
    (Here.folder / "ops.json").write_text(json.dumps({"plait_ops": 1, "ops": [
        {"op": "norm", "dtype": "fp16", "rows": 16, "columns": 16}]}))
    run = subprocess.run([Here.program, "profile", "--ops", "ops.json", *QUICK, "-o", "a.json"], cwd=Here.folder,
                         capture_output=True, text=True, check=False)
    # Newer libtorch has these kernels.
    assert run.returncode == 0 or (run.returncode == 2 and "cannot run what is to be measured" in run.stderr), run


def test_links_of_gpus_that_are_not_there_are_refused():
    _, err = plait("profile", "--comm", "--local", 2, "--device", "cuda", "-o", "links.json", status=2,
                   CUDA_VISIBLE_DEVICES="")
    assert "cuda needs a GPU for each rank" in err and "terminate" not in err, err


def test_a_warning_is_said_once_and_kept():
    _, err = plait(*tiny(), "--seq", 64, "--what", "units", "-o", "profile.json")
    assert err.count("its table is taken to grow to 64") == 1, err
    profile = json.loads((Here.folder / "profile.json").read_text())
    assert "its table is taken to grow to 64" in profile["provenance"]["notes"][0]


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
