#!/usr/bin/env python3
"""Other planners' inputs as they are, and plans as their rows: read back and costed as they would."""
import ast
import collections
import csv
import io
import json
import math
import pathlib
import sys

from metis_formula import Case, Plan, arguments_of
from program import Here, plait, run_tests

SHARED = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data" / "metis"
LAYERS, BATCH = 8, 32
MEMORY = {"A100": 40, "T4": 15}  # GiB
FASOP = ["plan", "--model", "gpt2-xl", "--global-batch", "64", "--format", "fasop", "--planner", "fasop"]
AMP = ["plan", "--model", "gpt2-medium", "--cluster", "4xg4dn.12xlarge", "--global-batch", "32", "--precision", "fp16",
       "--framework", "deepspeed-3d"]


def make_metis_case(name, nodes, slower=3.0):
    """A folder as Metis' program wants it: nodes of 4 devices, the second type `slower` than the first."""
    folder = Here.folder / name
    (folder / "profile").mkdir(parents=True)
    (folder / "hostfile").write_text("".join(f"10.0.0.{i} slots=4\n" for i in range(len(nodes))))
    (folder / "clusterfile.json").write_text(json.dumps({
        f"10.0.0.{i}": {"instance_type": kind, "inter_bandwidth": 10, "intra_bandwidth": 40 + 10 * (kind == "T4"),
                        "memory": MEMORY[kind]} for i, kind in enumerate(nodes)}))
    for kind in set(nodes):
        for tp in (1, 2, 4):
            for samples in (1, 2, 4):
                slow = slower if kind == "T4" else 1
                layers = [slow * (1 + size * samples / tp ** 0.8) for size in [0.5] + [20] * (LAYERS - 2) + [1]]
                (folder / "profile" / f"DeviceType.{kind}_tp{tp}_bs{samples}.json").write_text(json.dumps({
                    "model": {"parameters": {"parameters_per_layer_bytes": [6e7] + [5e7] * (LAYERS - 2) + [6e7]}},
                    "execution_time": {"layer_compute_total_ms": layers, "optimizer_time_ms": 12 / tp,
                                       "forward_backward_time_ms": sum(layers) + 15 * slow * samples / tp,
                                       "batch_generator_time_ms": 0.5},
                    "execution_memory": {"layer_memory_total_mb": [(2500 + 500 * samples) / tp] * LAYERS}}))
    (folder / "run.txt").write_text(
        f"python3 cost_het_cluster.py --model_name=GPT --model_size=own --num_layers={LAYERS} --gbs={BATCH} "
        "--hidden_size=2048 --sequence_length=1024 --vocab_size=51200 --attention_head_size=16 "
        f"--hostfile_path={name}/hostfile --clusterfile_path={name}/clusterfile.json "
        f"--profile_data_path={name}/profile --max_profiled_tp_degree=4 --max_profiled_batch_size=4 "
        "--min_group_scale_variance=1 --max_permute_len=4 --home_dir=. --log_path=.\n")
    return folder


def case_in(folder, arguments):
    return Case(folder / "hostfile", folder / "clusterfile.json", folder / "profile",
                arguments_of((folder / arguments).read_text()))


def metis_rows(text):
    heading, *rows = text.splitlines()
    assert heading == ("rank, cost, node_sequence, device_groups, strategies(dp_deg, tp_deg), "
                       "batches(number of batch), layer_partition"), heading
    return [Plan.of_row(row) for row in rows]


def check_metis_rows(rows, case):
    """Every row is a plan that fits, and costs by the formula what it says; ranks ascend with costs."""
    assert [rank for rank, _, _ in rows] == list(range(1, len(rows) + 1))
    costs = [cost for _, cost, _ in rows]
    assert costs and costs == sorted(costs), costs
    for _, cost, plan in rows:
        assert not plan.faults(case), (vars(plan), plan.faults(case))
        assert math.isclose(plan.cost(case), cost, rel_tol=1e-12), (vars(plan), plan.cost(case), cost)


def cheapest_with_two_stages(case):
    """By trying all: types in both orders, degrees, micro-batches and cuts of one or two stages."""
    kinds = sorted({kind for kind, _ in case.nodes})
    devices = len(case.ranks(kinds))
    best = math.inf
    for sequence in ([kinds, kinds[::-1]] if len(kinds) > 1 else [kinds]):
        for first in range(1, devices + 1):
            groups = [first, devices - first] if first < devices else [devices]
            cuts = [[0, k, case.layers] for k in range(1, case.layers)] if first < devices else [[0, case.layers]]
            choices = [[(g // t, t) for t in (1, 2, 4) if g % t == 0] for g in groups]
            for pair in choices[0] if len(groups) == 1 else [(a, b) for a in choices[0] for b in choices[1]]:
                for batches in (b for b in range(1, case.batch + 1) if case.batch % b == 0):
                    for cut in cuts:
                        plan = Plan(sequence, groups, [pair] if len(groups) == 1 else list(pair), batches, cut)
                        try:
                            if not plan.faults(case) and all(len(set(k[i:i + t])) == 1 for k, _, t, *_ in
                                                             plan.stages(case) for i in range(0, len(k), t)):
                                best = min(best, plan.cost(case))
                        except KeyError:  # not measured
                            pass
    return best


def test_metis_arguments_give_rows_that_its_formula_costs_the_same():
    for name, nodes in (("alike", ["A100"] * 2), ("mixed", ["A100", "T4"]), ("more", ["A100", "T4", "A100"])):
        folder = make_metis_case(name, nodes)
        case = case_in(folder, "run.txt")
        rows = metis_rows(plait("plan", "--metis-args", folder / "run.txt", "--format", "metis")[0])
        check_metis_rows(rows, case)
        assert rows[0][1] <= cheapest_with_two_stages(case) * (1 + 1e-12)


def test_metis_files_without_its_arguments_give_the_same_rows():
    folder = make_metis_case("mixed", ["A100", "T4"])
    (Here.folder / "model.txt").write_text("--num-layers 6 --hidden-size 2048 --num-attention-heads 16 "
                                           "--seq-length 1024 --vocab-size 51200\n")
    by_flags = plait("plan", "--model", "model.txt", "--cluster", folder / "hostfile", "--clusterfile",
                     folder / "clusterfile.json", "--profile", folder / "profile", "--gbs", BATCH, "--format",
                     "metis")[0]
    assert by_flags == plait("plan", "--metis-args", folder / "run.txt", "--format", "metis")[0]


def test_metis_arguments_work_with_every_planner_and_flags_win_over_them():
    folder = make_metis_case("mixed", ["A100", "T4"])
    args = ["plan", "--metis-args", folder / "run.txt"]
    own = json.loads(plait(*args, "--json")[0])
    baseline = json.loads(plait(*args, "--planner", "metis", "--json")[0])
    assert own["plans"][0]["step_s"] <= baseline["plans"][0]["step_s"]
    assert "global batch 16 " in plait(*args, "--global-batch", "16")[0]
    assert "2 x 4 V100" in plait(*args, "--cluster", "2xV100-32GB:4")[0]
    rows = metis_rows(plait(*args, "--planner", "metis", "--format", "metis")[0])
    assert all(not plan.faults(case_in(folder, "run.txt")) for _, _, plan in rows)


def test_plans_by_metis_formula_are_saved_and_printed_in_all_forms():
    folder = make_metis_case("mixed", ["A100", "T4"])
    args = ["plan", "--metis-args", folder / "run.txt", "--cost-model", "metis"]
    row = metis_rows(plait(*args, "--format", "metis", "-o", "plan.json")[0])[0]
    result = json.loads(plait(*args, "--json")[0])
    assert result["cost_model"] == "metis"
    assert math.isclose(result["plans"][0]["metis_cost_ms"], row[1])
    assert math.isclose(sum(result["plans"][0]["metis_terms_ms"].values()), row[1])
    assert "by Metis" in plait(*args)[0]
    plait("estimate", "plan.json")
    pinned = metis_rows(plait(*args, "--format", "metis", "--pp", "2", "--tp", "2")[0])
    check_metis_rows(pinned, case_in(folder, "run.txt"))
    assert all(len(p.groups) == 2 and all(t == 2 for _, t in p.strategies) for _, _, p in pinned)


def test_what_metis_formula_cannot_cost_is_refused():
    folder = make_metis_case("mixed", ["A100", "T4"])
    args = ["plan", "--metis-args", folder / "run.txt", "--cost-model", "metis"]
    assert "--zero: is not a part of Metis' formula" in plait(*args, "--zero", "1", status=2)[1]
    assert "leave --planner out" in plait(*args, "--planner", "amp", status=2)[1]
    assert "needs --profile" in plait("plan", "--model", "gpt2", "--cluster", "T4:4", "--global-batch", "8",
                                      "--cost-model", "metis", status=2)[1]
    assert "has 8 layers and gpt2 has 14 units" in plait(*args, "--model", "gpt2", status=2)[1]
    for path in (folder / "profile").glob("*T4*"):
        path.unlink()
    assert "has no measurement of T4" in plait(*args, status=2)[1]


def test_a_plan_that_fits_nowhere_by_the_profile_is_said():
    folder = make_metis_case("small", ["T4"])
    for path in (folder / "profile").iterdir():
        content = json.loads(path.read_text())
        content["execution_memory"]["layer_memory_total_mb"] = [20000] * LAYERS
        path.write_text(json.dumps(content))
    assert "no plan that Metis' rows can say fits" in plait(
        "plan", "--metis-args", folder / "run.txt", "--format", "metis", status=3)[1]


def test_metis_own_plans_cost_what_it_says_and_ours_are_no_worse():
    if not SHARED.is_dir():
        print(f"skipped: no {SHARED}")
        return
    for folder in sorted(path for path in SHARED.iterdir() if path.is_dir()):
        case = case_in(folder, "arguments.txt")
        truth = json.loads((folder / "truth.json").read_text())
        for known in [truth["best_valid"], *truth["top20_valid"]]:
            plan = Plan(known["node_sequence"], known["device_groups"], known["strategies"], known["batches"],
                        known["layer_partition"])
            assert math.isclose(plan.cost(case), known["cost"], rel_tol=1e-12), (folder, vars(plan))
            assert not plan.faults(case), (folder, vars(plan), plan.faults(case))
        rows = metis_rows(plait("plan", "--metis-args", folder / "arguments.txt", "--format", "metis")[0])
        check_metis_rows(rows, case)
        ours, best = rows[0][2].cost(case), truth["best_valid"]["cost"]
        optimum = truth["exhaustive_same_formula"]["best"][0]
        print(f"{folder.name}: plait {ours:.2f} ms, Metis' best that fits {best:.2f}, exhaustive {optimum:.2f}")
        assert ours <= best * (1 + 1e-12) and ours <= optimum * (1 + 1e-12)


FASOP_COLUMNS = ["mbs", "tp", "dp", "pp", "node placement", "num_a100", "num_a10", "partition",
                 "estimated time (s/step)", "pipeline time", "DP all-reduce time",
                 "embedding layer all-reduce time", "price_per_step", "is_oom", "oom_gpumem", "is_fsdp_oom",
                 "fsdpoom_gpumem", "train_cost"]


def tensor(values):
    return values[0]


def test_fasop_rows_are_its_table():
    out = plait(*FASOP, "--cluster", "1xA100-40GB:4+3xA10:4", "--top", "20")[0]
    rows = list(csv.DictReader(io.StringIO(out)))
    assert list(rows[0]) == FASOP_COLUMNS and len(rows) == 20
    for row in rows:
        placement, partition = ast.literal_eval(row["node placement"]), ast.literal_eval(row["partition"])
        assert sorted(placement) == ["g5.24xlarge"] * 3 + ["p4d.24xlarge"], placement
        assert (row["num_a100"], row["num_a10"]) == ("1", "3")
        assert int(row["tp"]) * int(row["dp"]) * float(row["pp"]) == 16 and len(partition) == float(row["pp"])
        assert sum(partition) == 50  # 48 layers, embedding and post-processing
        assert row["is_oom"] == "False" and eval(row["oom_gpumem"]) > eval(row["fsdpoom_gpumem"]) - 1e-9
        assert math.isclose(float(row["train_cost"]), 12.5e6 * float(row["price_per_step"]))


def test_a_fasop_row_costs_the_same_again():
    out = plait(*FASOP, "--cluster", "1xA100-40GB:4+3xA10:4", "--top", "50")[0]
    # The one whose nodes stand in the order of the cluster.
    row = next(row for row in csv.DictReader(io.StringIO(out)) if row["node placement"].startswith("['p4d"))
    again = json.loads(plait("plan", "--model", "gpt2-xl", "--cluster", "1xA100-40GB:4+3xA10:4", "--global-batch", "64",
                             "--planner", "amp", "--tp", row["tp"], "--dp", row["dp"], "--pp", int(float(row["pp"])),
                             "--micro-batch", row["mbs"], "--zero", "0",
                             "--stages", ",".join(map(str, ast.literal_eval(row["partition"]))), "--json")[0])
    assert math.isclose(again["plans"][0]["step_s"], float(row["estimated time (s/step)"]), rel_tol=1e-9)


def test_fasop_counts_t5_without_its_head():
    out = plait("plan", "--model", "t5-large", "--cluster", "2xA10:4", "--global-batch", "64", "--planner", "fasop",
                "--format", "fasop", "--pp", "4")[0]
    for row in csv.DictReader(io.StringIO(out)):
        assert sum(ast.literal_eval(row["partition"])) == 50  # 24 + 24 layers and two embeddings


def test_fasop_refuses_other_devices():
    err = plait(*FASOP, "--cluster", "2xT4:4", "--precision", "fp16", status=3)[1]
    assert "FASOP knows A100 and A10, not T4" in err and "none of the" in err


def amp_settings(text):
    """AMP's own tuples beside the columns."""
    for row in csv.DictReader(io.StringIO(text)):
        words = row["setting"].replace("<class 'list'>", "list")
        yield row, eval(words, {"tensor": tensor, "defaultdict": collections.defaultdict, "list": list})


def test_amp_rows_are_its_settings_and_cost_the_same_again():
    for row, ((micro_batch, degrees, ranks, bounds), cost) in amp_settings(
            plait(*AMP, "--planner", "amp", "--format", "amp", "--top", "10")[0]):
        assert degrees == {"mp_deg": float(row["tp"]), "dp_deg": float(row["dp"]), "pp_deg": float(row["pp"])}
        assert micro_batch == int(row["micro_batch"]) and abs(cost - float(row["predicted_s"])) < 1e-4
        assert ranks == {n: [4 * n, 4 * n + 1, 4 * n + 2, 4 * n + 3] for n in range(4)}
        assert bounds == [int(b) for b in row["partition_bounds"].split("-")] and bounds[-1] == 30
        assert int(row["dp"]) * micro_batch * int(row["num_micro_batches"]) == 32
        # In plait's units the embedding is one and not two, the head one and not four.
        units = [b - a for a, b in zip(bounds, bounds[1:])]
        units[0] -= 1
        units[-1] -= 3
        again = json.loads(plait(*AMP, "--planner", "amp", "--tp", row["tp"], "--dp", row["dp"], "--pp", row["pp"],
                                 "--micro-batch", micro_batch, "--stages", ",".join(map(str, units)), "--json")[0])
        assert math.isclose(again["plans"][0]["step_s"], float(row["predicted_s"]), rel_tol=1e-9)


def test_amp_rows_of_transgan_count_its_56_pieces():
    out = plait("plan", "--model", "transgan", "--cluster", "4xp3.8xlarge", "--global-batch", "64", "--precision",
                "fp16", "--planner", "amp", "--format", "amp", "--pp", "4")[0]
    for _, ((_, _, _, bounds), _) in amp_settings(out):
        assert len(bounds) == 5 and bounds[-1] == 56 and bounds == sorted(set(bounds))


def test_plans_that_a_row_cannot_say_are_left_out_with_the_reason():
    uneven = ["plan", "--model", "gpt2-large", "--cluster", "1xA100-80GB:4+2xV100-16GB:4", "--global-batch", "32",
              "--precision", "fp16"]
    assert "it cuts states by ZeRO" in plait(*uneven, "--zero", "1", "--format", "metis", status=3)[1]
    assert "its schedule is not 1F1B" in plait(*AMP, "--schedule", "gpipe", "--pp", "4", "--format", "amp",
                                               status=3)[1]
    # Without pins nothing is searched that no row can say.
    assert len(metis_rows(plait(*uneven, "--format", "metis")[0])) > 0


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
