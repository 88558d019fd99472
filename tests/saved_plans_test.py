#!/usr/bin/env python3
"""The verbs that read saved plans and measured runs."""
import csv
import json
import math
import shlex
import sys

from program import Here, SMALL, answer, plait, run_tests


def saved(*more):
    path = Here.folder / "plan.json"
    plait(*SMALL, "-o", path, *more)
    return path


def test_a_saved_plan_is_estimated_as_it_was_planned():
    path = Here.folder / "plan.json"
    planned = answer(*SMALL, "-o", path)["plans"][0]
    estimated = answer("estimate", path)
    assert estimated["describe"] == planned["describe"] and estimated["step_s"] == planned["step_s"]
    assert estimated["stages"] == planned["stages"] and estimated["fits"]
    assert estimated["simulated"]["step_s"] == estimated["step_s"]
    # The formula is never above the simulation, and exact for one stage.
    assert estimated["closed_form"]["step_s"] <= estimated["step_s"] * (1 + 1e-9)


def test_estimate_shows_every_part_of_the_cost():
    out = plait("estimate", saved())[0]
    for words in ("simulated", "closed form", "forward", "recompute", "grad sync", "optimizer",
                  "analytic", "weights", "activations", "reserve", "spare", "A100-80GB-0", "an hour"):
        assert words in out, words


def test_check_accepts_what_plan_saves():
    path = saved()
    assert "is valid and fits" in plait("check", path)[0]
    checked = answer("check", path)
    runners = {row["program"]: row["why_not"] for row in checked.pop("runs_on")}
    assert checked.pop("made_by") == "plait " + plait("version")[0].split()[1], checked
    assert checked == {"valid": True, "violations": [], "fits": True}
    assert runners["megatron"] == "" and runners["fsdp"] != "", runners
    assert "runs on: megatron" in plait("check", path)[0]


def test_two_plans_are_put_side_by_side():
    plait("plan", "--model", "gpt2", "--cluster", "A100-80GB:8", "--global-batch", 32, "-o", "one.json")
    plait("plan", "--model", "gpt2", "--cluster", "A100-80GB:8", "--global-batch", 32, "--tp", 4, "-o", "two.json")
    text = plait("diff", "one.json", "two.json")[0]
    assert "two.json is " in text and "slower than one.json" in text and "\ntensor" in text, text
    result = answer("diff", "one.json", "two.json")
    first, second = result["plans"]
    assert result["change"] > 0 and second["step_s"] > first["step_s"]
    # The terms add up to the step.
    assert abs(sum(first["terms"].values()) - first["step_s"]) < 1e-9 * first["step_s"]
    assert {"what": "tensor", "first": "1", "second": "4"} in result["differences"]
    assert answer("diff", "one.json", "one.json")["differences"] == []
    plait("diff", "one.json", status=2)


def test_check_lists_all_that_is_wrong():
    path = saved("--pp", 2, "--tp", 1)
    document = json.loads(path.read_text(encoding="utf-8"))
    stages = document["plan"]["stages"]
    stages[1]["devices"] = stages[0]["devices"]
    document["plan"]["micro_batches"] = 31
    path.write_text(json.dumps(document), encoding="utf-8")
    out = plait("check", path, status=2)[0]
    assert "is already used by stage" in out and "31" in out
    result = answer("check", path, status=2)
    assert not result["valid"] and len(result["violations"]) >= 2 and result["fits"] is None
    assert "plan.json#/plan/" in plait("estimate", path, status=2)[1]


def test_check_says_when_memory_is_too_small():
    path = saved()
    document = json.loads(path.read_text(encoding="utf-8"))
    for kind in document["cluster"]["device_types"]:
        kind["memory_B"] = 2.0**28
    path.write_text(json.dumps(document), encoding="utf-8")
    assert "too much" in plait("check", path, status=3)[0]
    assert answer("check", path, status=3)["fits"] is False
    assert "does not fit" in plait("estimate", path, status=3)[1]


def test_explain_says_what_limits_and_what_would_change():
    path = saved("--pp", 2, "--recompute", "full")
    out = plait("explain", path)[0]
    for words in ("A step takes", "sets the pace", "% computing", "recomputing activations",
                  "the bubble", "Memory is tightest on stage", "The search knows a plan",
                  "What a change would do", "no recompute", "slower"):
        assert words in out, words
    result = answer("explain", path)
    # The shares are parts of the step.
    assert abs(sum(result["shares"].values()) - 1) < 1e-6
    assert result["best"]["step_s"] < result["step_s"]
    assert any(a["change"] == "no recompute" for a in result["alternatives"])


def test_explain_says_when_nothing_is_faster():
    out = plait("explain", saved())[0]
    assert "The search knows nothing faster." in out and "The runner-up" in out


def test_a_failed_search_leaves_no_file():
    path = Here.folder / "none.json"
    plait("plan", "--model", "llama-2-70b", "--cluster", "A100-80GB:1", "--global-batch", 8, "-o", path,
          status=3)
    assert not path.exists()


def test_validate_has_a_set_of_its_own():
    sources = answer("validate")["sources"]
    assert len(sources) >= 8
    for source in sources:
        assert source["rows"] == source["predicted"] + source["refused"]
        assert {"mape", "median_ape", "bias", "spearman", "top1_regret", "top5_regret",
                "memory_mape", "oom_right", "oom_missed", "oom_false"} <= source.keys()
    devices = answer("validate", "--by", "gpu")["devices"]
    assert sum(d["rows"] for d in devices) == sum(s["rows"] for s in sources)
    assert "megatron_sc21_table1" in plait("validate")[0]


def test_validate_reads_a_table_and_writes_every_row():
    runs, rows = Here.folder / "runs.csv", Here.folder / "rows.csv"
    runs.write_text("row_id,source_id,model,seq_len,gpu,num_gpus,mbs,gbs,tp,pp,iter_time_s\n"
                    "a,mine,llama-2-7b,4096,H100,8,1,64,8,1,9.5\n"
                    "b,mine,llama-2-7b,4096,Abacus,8,1,64,8,1,9.5\n")
    source, = answer("validate", "--runs", runs, "--rows", rows)["sources"]
    assert (source["rows"], source["predicted"], source["refused"]) == (2, 1, 1)
    assert source["refusals"] == {"the device 'Abacus' is not in the catalogue": 1}
    lines = rows.read_text().splitlines()
    assert len(lines) == 3 and lines[1].startswith("a,mine,,H100,")


def test_the_command_of_every_shipped_row_gives_the_same_step():
    plans, rows = Here.folder / "row plans", Here.folder / "shipped.csv"
    plans.mkdir()
    commands = plait("validate", "--plans", plans, "--commands", "--rows", rows)[0].splitlines()
    with rows.open(newline="") as file:
        predicted = [float(row["predicted_s"]) for row in csv.DictReader(file) if row["predicted_s"]]
    assert len(commands) == len(predicted) > 40
    for command, step in zip(commands, predicted):
        words = shlex.split(command, comments=True)
        assert words[0] == "plait"
        found = json.loads(plait(*words[1:], "--json", status=None)[0])
        assert math.isclose(found["step_s"], step, rel_tol=1e-5), (command, step)
        assert command.endswith(f"# step_s {step:.6g}"), command


def test_replan_says_what_moves():
    plait("plan", "--model", "gpt2", "--cluster", "2xA100-80GB:4", "--global-batch", "32", "-o",
          "plan.json")
    found = answer("replan", "plan.json", "--lost", "A100-80GB-0")
    assert found["device_before"] == [4, 5, 6, 7], found
    assert found["pause_s"] == found["transfer_s"] + found["restart_s"]
    state = found["state"]
    received = sum(device["received_bytes"] for device in state["devices"])
    assert abs(received - state["moved_bytes"]) <= 1e-9 * (1 + received), state
    plait("replan", "plan.json", "--slow", "A100-80GB-0=0.5", "--add", "1xA100-80GB:4", "-o",
          "new.json")
    plait("check", "new.json")
    text = plait("replan", "plan.json", "--lost-devices", "7", "--restart", "90s")[0]
    assert "before -> now: 0-6 -> 0-6" in text and "90.00 s to restart" in text, text


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
