#!/usr/bin/env python3
"""The verbs that search: plan, compare, pareto."""
import json
import math
import re
import subprocess
import sys

from program import Here, MIXED, SMALL, answer, plait, run_tests


def without_clock(text):
    return re.sub(r'"search_s": [^,]*,', "", text)


def test_plan_prints_the_promised_object():
    result = answer(*SMALL)
    assert {"plans", "lower_bound_s", "gap", "evaluations", "search_s"} <= result.keys()
    assert 1 <= len(result["plans"]) <= 5
    for plan in result["plans"]:
        assert {"describe", "step_s", "tokens_per_s", "mfu", "peak_memory_GiB", "usd_per_step",
                "plan", "stages"} <= plan.keys()
        # 32 samples of 1024 tokens in a step.
        assert abs(plan["tokens_per_s"] * plan["step_s"] / (32 * 1024) - 1) < 1e-9
        assert 0 < plan["mfu"] < 1 and plan["peak_memory_GiB"] > 0 and plan["usd_per_step"] > 0
        assert len(plan["stages"]) == len(plan["plan"]["stages"])
    steps = [plan["step_s"] for plan in result["plans"]]
    assert steps == sorted(steps)
    assert result["gap"] is None or result["gap"] >= 0


def test_plan_prints_a_table_that_explains_itself():
    out, err = plait(*SMALL)
    for words in ("gpt2: 124.4 M parameters, 12 layers, sequences of 1,024 tokens",
                  "2 x 4 A100-80GB: 8 GPUs", "global batch 32 (32,768 tokens)",
                  "A100-80GB fitted to published runs", "pp pipeline stages", "tokens/s", "MFU", "GiB used",
                  "$/step", "bubble", "stage by stage", "plans costed in"):
        assert words in out, words
    assert err == ""
    assert max(map(len, out.splitlines())) <= 100


def test_the_answer_is_the_same_for_any_number_of_threads_and_runs():
    for problem in (SMALL, MIXED):
        first, *others = [without_clock(plait(*problem, "--json", "--threads", threads)[0])
                          for threads in (1, 2, 2, 1)]
        assert all(other == first for other in others)


def test_exhaustive_keeps_its_time_limit():
    # 14 units on 8 devices: days of plans.
    result = answer(*SMALL, "--planner", "exhaustive", "--time-limit", "300ms")
    assert result["cut_short"] and result["plans"] and result["search_s"] < 10


def test_idle_devices_are_said():
    out = plait(*SMALL, "--tp", 2, "--dp", 2, "--pp", 1, "--cp", 1)[0]
    assert "leaves 4 of the 8 devices idle" in " ".join(out.split())
    assert "idle" not in plait(*SMALL, "--dp", 8)[0]


def test_a_search_that_ends_early_proves_nothing_that_it_does_not_know():
    for milliseconds in (1, 2, 3, 5, 8, 12, 16, 20, 25, 30, 40, 60):
        words = [Here.program, "plan", "--model", "llama-2-7b", "--cluster", "2xA100-80GB:8+4xV100-16GB:4",
                 "--global-batch", "512", "--time-limit", f"{milliseconds}ms"]
        done = subprocess.run([*words, "--json"], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode in (0, 3), done.stderr
        result = json.loads(done.stdout)
        assert (result["gap"] is None) == (result["lower_bound_s"] is None), result
        assert result["gap"] is None or 0 <= result["gap"] < 1e6, result["gap"]
        text = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False).stdout
        assert "inf" not in text, text


def test_warnings_go_to_stderr_and_into_json():
    words = [*SMALL[:4], "1xV100-16GB:4", *SMALL[5:]]
    sentence = "V100-16GB lacks bf16 and flash attention: fp16 and plain attention with it"
    assert sentence in plait(*words)[1]
    assert sentence in answer(*words)["warnings"][0]
    free = [*words, "--runs-on", "any"]
    assert "V100-16GB does not support bf16" in plait(*free)[1]
    assert "--precision: V100-16GB does not compute in bf16" in plait(*words, "--precision", "bf16", status=2)[1]


def test_every_dimension_can_be_pinned():
    pinned = answer(*SMALL, "--tp", 2, "--pp", 2, "--dp", 2, "--micro-batch", 2, "--recompute", "full",
                    "--zero", 1, "--schedule", "1f1b", "--no-sp", "--stages", "6,8")
    plan = pinned["plans"][0]
    # 32 samples / (dp 2 x micro-batch 2) = 8 micro-batches.
    assert plan["describe"].startswith("pp2 tp2 dp2 m8 1f1b zero1 recompute=full layers=6,8 ")
    assert "gpipe is not possible: Megatron-LM" in plait(*SMALL, "--schedule", "gpipe", status=2)[1]
    free = answer(*SMALL, "--schedule", "gpipe", "--pp", 2, "--runs-on", "any")
    assert " gpipe " in free["plans"][0]["describe"]


def test_pinned_stages_are_even_unless_any_is_asked_for():
    words = ["plan", "--model", "gpt2", "--cluster", "2xA100-80GB:4", "--global-batch", 32, "--pp", 4]
    # 12 layers on 4 stages, embedding and head with the first and the last.
    assert " layers=4,3,3,4 " in answer(*words, "--schedule", "1f1b")["plans"][0]["describe"]
    # On eight chunks they do not come out even: one or two each.
    chunks = answer(*words, "--chunks", 2)["plans"][0]["stages"]
    units = [span["units"] for stage in chunks for span in stage["spans"]]
    assert len(units) == 8 and sum(last - first for first, last in units) == 14, units
    assert all(1 <= last - first <= 3 for first, last in units), units
    free = answer(*words, "--schedule", "1f1b", "--stages", "any")["plans"][0]
    assert free["step_s"] <= answer(*words, "--schedule", "1f1b")["plans"][0]["step_s"]


def test_top_shows_different_layouts():
    plans = answer("plan", "--model", "gpt2-xl", "--cluster", "2xA100-80GB:8", "--global-batch", 64)["plans"]
    shapes = [tuple(word for word in plan["describe"].split() if word[:2] in ("pp", "tp", "cp", "ep")) for plan in plans]
    assert len(set(shapes)) == len(shapes) == 5, shapes


def test_a_launch_script_says_how_it_is_run():
    script = Here.folder / "launch.sh"
    script.write_text("torchrun pretrain_gpt.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 \\\n"
                      "  --seq-length 1024 --vocab-size 50304 --tensor-model-parallel-size 2 --bf16 \\\n"
                      "  --pipeline-model-parallel-size 2 --micro-batch-size 2 --global-batch-size 64\n", encoding="utf-8")
    words = ["plan", "--model", str(script), "--cluster", "2xA100-80GB:4"]
    taken = answer(*words)
    assert taken["plans"][0]["describe"].startswith("pp2 tp2 dp2 m16 1f1b layers=13 ")
    assert "taken from the launch script: bf16, tp 2, pp 2, micro-batch 2, global batch 64" in taken["warnings"][0]
    assert answer(*words, "--tp", 1)["plans"][0]["describe"].startswith("pp2 tp1 dp4 ")
    free = answer(*words, "--free-layout")["plans"][0]
    assert free["step_s"] < taken["plans"][0]["step_s"]


def test_a_launch_script_says_how_many_layers_are_recomputed():
    script = Here.folder / "block.sh"
    script.write_text("torchrun pretrain_gpt.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 \\\n"
                      "  --seq-length 1024 --vocab-size 50304 --tensor-model-parallel-size 2 --bf16 \\\n"
                      "  --pipeline-model-parallel-size 2 --micro-batch-size 2 --global-batch-size 64 \\\n"
                      "  --recompute-granularity full --recompute-method block --recompute-num-layers 5\n",
                      encoding="utf-8")
    taken = answer("plan", "--model", str(script), "--cluster", "2xA100-80GB:4")
    assert "full recompute of 5 layers a stage" in taken["warnings"][0], taken["warnings"]
    # The embedding is with the first five layers, the head with the others.
    assert " recompute=full+none layers=6+7,5+8 " in taken["plans"][0]["describe"], taken["plans"][0]["describe"]


def test_megatron_spellings_are_understood():
    ours = plait(*SMALL, "--json", "--tp", 2, "--pp", 2, "--micro-batch", 2, "--recompute", "full")[0]
    theirs = plait("plan", "--model", "gpt2", "--cluster", "2xA100-80GB:4", "--global-batch-size", 32,
                   "--json", "--tensor_model_parallel_size", 2, "--pipeline-model-parallel-size=2",
                   "--micro-batch-size", 2, "--recompute-granularity", "full", "--bf16")[0]
    assert without_clock(ours) == without_clock(theirs)


def test_stages_may_count_layers_or_units():
    layers = answer(*SMALL, "--stages", "5,7")
    assert answer(*SMALL, "--stages", " 5, 7")["plans"] == layers["plans"]
    units = answer(*SMALL, "--stages", "6,8")
    assert layers["plans"] == units["plans"]
    assert "6, 8 units" in layers["warnings"][0]


def test_top_limits_the_plans():
    assert len(answer(*SMALL, "--top", 2)["plans"]) == 2


def test_hostfiles_are_clusters():
    (Here.folder / "hosts.txt").write_text("one slots=4\ntwo slots=4\n", encoding="utf-8")
    result = answer("plan", "--model", "gpt2", "--cluster", "hosts.txt", "--device", "A100-80GB",
                    "--global-batch", 32)
    # As the shorthand: names of nodes are not part of a plan.
    assert result["plans"] == answer(*SMALL)["plans"]


def test_unknown_prices_are_null():
    (Here.folder / "free.json").write_text(json.dumps({
        "plait_cluster": 1,
        "nodes": [{"device": "A100-80GB", "devices": 4, "price_usd_per_hour": 0}]}), encoding="utf-8")
    words = ["plan", "--model", "gpt2", "--cluster", "free.json", "--global-batch", 32]
    assert answer(*words)["plans"][0]["usd_per_step"] is None
    assert "$" not in plait(*words)[0]


def test_nothing_fits_is_exit_3_with_reason_and_remedy():
    words = ["plan", "--model", "llama-2-7b", "--cluster", "1xA100-80GB:8", "--global-batch", 8]
    out, err = plait(*words, "--tp", 1, "--pp", 1, "--zero", 0, status=3)
    assert "The nearest plan does not fit" in out and "optimizer" in out, out
    assert err.startswith("plait: nothing fits: ")
    assert "GiB too much" in err and "it fits without --zero 0" in err
    result = answer(*words, "--tp", 1, "--pp", 1, "--zero", 0, status=3)
    assert result["plans"] == [] and "GiB too much" in result["reason"]
    assert result["nearest"]["stages"][0]["memory"]["optimizer_state_GiB"] > 0


SCRIPT = """#!/bin/bash
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 12 --hidden-size 768 --num-attention-heads 12 \\
  --seq-length 1024 --max-position-embeddings 1024 --vocab-size 50304 --micro-batch-size 1 \\
  --global-batch-size 64 --bf16 --tensor-model-parallel-size {tensor} --pipeline-model-parallel-size {pipeline} \\
  {more}
"""


def test_a_launch_script_is_judged():
    launch = Here.folder / "launch.sh"
    words = ["plan", "--model", "launch.sh", "--cluster", "1xA100-80GB:8"]
    launch.write_text(SCRIPT.format(tensor=2, pipeline=4, more=""), encoding="utf-8")
    out = plait(*words)[0]
    result = answer(*words)
    (way,) = result["other_ways"]
    best = answer(*words, "--free-layout")["plans"][0]
    assert way["request"] == "--free-layout" or way["request"] == "`free_layout`", way
    assert way["step_s"] == best["step_s"] < 0.99 * result["plans"][0]["step_s"], way
    less = 1 - best["step_s"] / result["plans"][0]["step_s"]
    said = " ".join(out.split())
    assert "With the flag tp-comm-overlap, which the launch script lacks, this plan takes" in said, out
    assert f"left open too, {100 * less:.1f} % less" in said, out
    # It is priced as it runs, by both verbs.
    priced = answer("estimate", "--from", "megatron", "launch.sh", "--cluster", "1xA100-80GB:8")
    assert math.isclose(priced["step_s"], result["plans"][0]["step_s"], rel_tol=1e-9), priced["step_s"]
    # What the search itself finds is good.
    assert "tp1" in best["describe"] and "pp1" in best["describe"], best["describe"]
    micro = 64 // 8 // best["plan"]["micro_batches"]
    script = SCRIPT.format(tensor=1, pipeline=1, more="--use-distributed-optimizer --overlap-grad-reduce")
    launch.write_text(script.replace("--micro-batch-size 1", f"--micro-batch-size {micro}"), encoding="utf-8")
    good = answer(*words)
    assert good["other_ways"] == [] and "is good" in good["remarks"][0], good["remarks"]
    assert "The layout of the launch script is good" in plait(*words)[0]


def test_degrees_that_are_pinned_are_judged():
    (way,) = answer(*SMALL, "--tp", 4, "--pp", 2)["other_ways"]
    best = answer(*SMALL)["plans"][0]
    assert way["step_s"] == best["step_s"], (way, best)
    assert "With other degrees, " in plait(*SMALL, "--tp", 4, "--pp", 2)[0]
    # Chunks ask for stages, which are left open with them.
    (chunked,) = answer(*SMALL, "--tp", 4, "--pp", 2, "--chunks", 2)["other_ways"]
    assert chunked["step_s"] == best["step_s"], (chunked, best)
    degrees = best["plan"]["stages"][0]["spans"][0]
    words = [*SMALL, "--tp", degrees["tensor"], "--pp", len(best["plan"]["stages"])]
    assert "The degrees are good" in answer(*words)["remarks"][0]
    assert "other_ways" not in answer(*SMALL, "--tp", 4) or answer(*SMALL, "--tp", 4)["other_ways"] == []


def test_micro_batches_and_replicas_say_the_batch():
    words = ["plan", "--model", "gpt2", "--cluster", "1xA100-80GB:8", "--micro-batch", 2,
             "--gradient-accumulation-steps", 8, "--dp", 8]
    assert "global batch 128 " in plait(*words)[0]
    assert "--global-batch: is missing" in plait(*words[:-2], status=2)[1]


def test_plans_in_the_order_of_price_are_not_called_slower():
    words = ["plan", "--model", "gpt2", "--cluster", "4xp4d.24xlarge", "--global-batch", 32, "--objective", "cost",
             "--top", 2]
    steps = [plan["step_s"] for plan in answer(*words)["plans"]]
    assert steps[1] < steps[0], steps
    assert "slower" not in plait(*words)[0]


def test_where_any_program_may_run_the_plan_those_that_do_are_named():
    assert "remarks" not in answer(*SMALL)
    (remark,) = answer(*SMALL, "--runs-on", "any", "--schedule", "1f1b", "--zero", 1)["remarks"]
    assert "Megatron-LM" in remark and "plait train" in remark, remark
    (none,) = answer(*SMALL, "--runs-on", "any", "--schedule", "zb-2p", "--pp", 2)["remarks"]
    assert none.startswith("No program that plait knows"), none


def test_the_price_of_a_token_is_said():
    out = plait(*SMALL, "--price", "A100-80GB=2")[0]
    best = answer(*SMALL, "--price", "A100-80GB=2")["plans"][0]
    dollars = 1e6 / best["tokens_per_s"] * 16 / 3600  # 8 GPUs for 2 dollars an hour
    assert f"a million tokens for ${dollars:.4f}" in out, (out, dollars)
    assert f"{best['tokens_per_s'] / 8:,.0f} tokens/s on each of 8 devices" in out, out


def test_qlora_fits_where_lora_does_not():
    words = ["plan", "--model", "llama-2-70b", "--cluster", "A100-80GB", "--global-batch", 8]
    assert "it fits with --qlora 8, or" in plait(*words, "--lora", 8, status=3)[1]
    result = answer(*words, "--qlora", 8, "-o", "qlora.json")
    assert result["runs_on"] == "fsdp", result["runs_on"]
    weights = result["plans"][0]["stages"][0]["memory"]["weights_GiB"]
    assert 33 < weights < 36, weights  # 69 billion of .516 bytes, tables of 2
    assert "QLoRA of rank 8" in plait("estimate", "qlora.json")[0]
    out = plait("check", "qlora.json")[0]
    assert "runs on: deepspeed, fsdp\n" in out, out
    assert "not on megatron: Megatron-LM does not keep weights in 4 bits" in out, out


def test_compare_runs_every_planner():
    words = ["compare", "--model", "gpt2", "--cluster", "1xT4:2+1xV100-16GB:2", "--global-batch", "4",
             "--precision", "fp16"]
    rows = answer(*words)["planners"]
    assert [row["planner"] for row in rows] == ["auto", "amp", "fasop", "metis", "aceso"], rows
    for row in rows:
        assert row["slower_than_auto"] >= 0 and row["evaluations"] > 0, row
        assert row["best"]["step_s"] == row["step_s"], row
    table = plait(*words)[0]
    for row in rows:
        assert re.search(rf"^{row['planner']} .* (m?s|us)  pp", table, re.M), table
    assert "slower" in table, table
    assert "free to choose what no one program runs. " in " ".join(table.split()), table
    assert "free to choose" not in plait(*words, "--runs-on", "megatron")[0]


RENTED = ["plan", "--model", "gpt2", "--cluster", "2xp4d.24xlarge+1xg5.24xlarge", "--global-batch",
          "32"]
OFFERS = ["pareto", "--model", "gpt2", "--global-batch", "32", "--instances",
          "p4d.24xlarge:0-2,g5.24xlarge:0-1"]


def test_training_has_time_and_price():
    plan = answer(*RENTED, "--steps", "1000")["plans"][0]
    training = plan["training"]
    assert training["steps"] == 1000, training
    assert abs(training["time_s"] / (1000 * plan["step_s"]) - 1) < 1e-12, training
    assert abs(training["usd"] / (1000 * plan["usd_per_step"]) - 1) < 1e-12, training
    # 1 M tokens in steps of 32 x 1,024 are 30.5, so 31 steps.
    assert answer(*RENTED, "--tokens", "1M")["plans"][0]["training"]["steps"] == 31
    assert "training" not in answer(*RENTED)["plans"][0]


def test_the_cheapest_plan_is_no_dearer_and_no_faster_than_the_fastest():
    fast = answer(*RENTED)["plans"][0]
    cheap = answer(*RENTED, "--objective", "cost")["plans"][0]
    both = answer(*RENTED, "--objective", "cost-time")["plans"][0]
    assert cheap["usd_per_step"] <= fast["usd_per_step"]
    assert cheap["step_s"] >= fast["step_s"]
    for plan in fast, cheap:
        assert both["usd_per_step"] * both["step_s"] <= plan["usd_per_step"] * plan["step_s"] * 1.001


def test_limits_are_kept_or_missed_by_so_much():
    front = answer(*OFFERS, "--steps", "1M")["front"]
    cheapest, fastest = front[0]["training"], front[-1]["training"]
    between = (cheapest["time_s"] + fastest["time_s"]) / 2
    found = answer(*RENTED, "--steps", "1M", "--deadline", f"{between}s")["plans"][0]["training"]
    assert found["time_s"] <= between and found["usd"] >= cheapest["usd"] * 0.999
    found = answer(*RENTED, "--steps", "1M", "--budget", f"{fastest['usd'] * 1.01}")["plans"][0]
    assert found["training"]["usd"] <= fastest["usd"] * 1.01
    _, error = plait(*RENTED, "--steps", "1M", "--budget", cheapest["usd"] / 2, status=3)
    assert re.search(r"the cheapest training costs .* \(100\.0 %\) more than the budget", error), error
    _, error = plait(*RENTED, "--steps", "1M", "--deadline", "1s", status=3)
    assert "the fastest training takes" in error, error
    if len(front) > 1:
        _, error = plait(*RENTED, "--steps", "1M", "--deadline", f"{fastest['time_s'] * 1.0001}s",
                         "--budget", cheapest["usd"] * 1.0001, status=3)
        assert "cannot be met together" in error, error


def test_the_front_is_told_in_all_ways():
    found = answer(*OFFERS)
    front = found["front"]
    assert found["planned"] <= found["mixes"] == 5
    for cheaper, dearer in zip(front, front[1:]):
        assert cheaper["usd_per_step"] < dearer["usd_per_step"]
        assert cheaper["step_s"] > dearer["step_s"]
    rows = plait(*OFFERS, "--csv", "--svg", "front.svg")[0].splitlines()
    assert rows[0] == "p4d.24xlarge,g5.24xlarge,usd_per_hour,step_s,usd_per_step,plan", rows
    assert [float(row.split(",")[3]) for row in rows[1:]] == [p["step_s"] for p in front], rows
    picture = (Here.folder / "front.svg").read_text()
    assert picture.startswith("<svg") and picture.rstrip().endswith("</svg>")
    assert "No other is both as cheap and as fast" in plait(*OFFERS)[0]
    for point in front:
        nodes = sum(point["instances"].values())
        assert point["cluster"].count("x") >= 1 and nodes > 0, point
        # Ids are those of the mix alone, which begins at 0.
        ids = [i for stage in point["plan"]["stages"] for i in stage["devices"]]
        assert min(ids) == 0, point
    for threads in 1, 3:
        again = answer(*OFFERS, "--threads", threads)
        assert again["front"] == front


def test_spot_prices_make_the_front_cheaper():
    offers = ["pareto", "--model", "gpt2", "--global-batch", "32", "--precision", "fp16",
              "--instances"]
    full = answer(*offers, "g4dn.12xlarge:1")["front"][0]
    for words in (["g4dn.12xlarge:1", "--spot"], ["g4dn.12xlarge:1:spot"]):
        # 1.1736 of 3.912 dollars an hour.
        ratio = answer(*offers, *words)["front"][0]["usd_per_step"] / full["usd_per_step"]
        assert abs(ratio - 1.1736 / 3.912) < 1e-6, ratio


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
