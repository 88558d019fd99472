"""Facts about the installed package `plait`; tests/python_test.py runs them. Needs nothing but CPython and the
package; what needs mypy or pandas says so where they are absent."""
import json
import math
import os
import pathlib
import pickle
import re
import signal
import sys
import tempfile
import time
import traceback

import plait

import python_sessions
import python_shown
from python_problems import CONFIG, SMALL, SOURCE, program, raised


def test_a_plan_is_what_the_program_finds():
    printed = json.loads(program("plan", "--model", "gpt2", "--cluster", "2xA100-80GB:4", "--global-batch", 32,
                                 "--json"))
    plan = plait.plan(**SMALL)
    assert plan.describe() == printed["plans"][0]["describe"]
    assert plan.step_s == printed["plans"][0]["step_s"]
    assert plan.search.to_dict()["plans"] == printed["plans"]
    # How likely plans of one list are in order is not a property of one plan.
    alone = [{key: value for key, value in one.items() if key != "chance_of_order"} for one in printed["plans"]]
    assert [other.to_dict() for other in plan.search.plans] == alone
    assert plan.search.gap == printed["gap"]


def test_the_first_line_of_the_acceptance_prints_plans():
    text = str(plait.plan(model="gpt2-xl", cluster="4xT4:4", global_batch=64))
    assert "4 nodes" in text or "T4" in text
    assert "The best plan, stage by stage" in text


def test_names_of_megatron_are_the_same_arguments():
    ours = plait.plan(**SMALL, tp=2, pp=2, micro_batch=2, sp=True)
    theirs = plait.plan(model="gpt2", cluster="2xA100-80GB:4", global_batch_size=32, tensor_model_parallel_size=2,
                        pipeline_model_parallel_size=2, micro_batch_size=2, sequence_parallel=True)
    assert ours == theirs
    plain = plait.plan(**SMALL, tp=2, sp=False)
    assert plain == plait.plan(**SMALL, tp=2, no_sp=True)
    assert plain.layout["sequence_parallel"] is False
    error = raised(plait.InputError, plait.plan, **SMALL, tp=2, tensor_model_parallel_size=2)
    assert error.where == "tensor_model_parallel_size" and "the same as tp" in error.what


def test_a_model_may_be_a_name_a_path_a_dict_or_a_configuration_object():
    class Configuration:
        def to_dict(self):
            return {**CONFIG, "torch_dtype": object(), "id2label": {0: "no", 1: "yes"}}

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "config.json"
        path.write_text(json.dumps(CONFIG))
        job = {"cluster": "4xT4:4", "global_batch": 16}
        by_dict = plait.plan(model=CONFIG, **job)
        assert by_dict == plait.plan(model=path, **job) == plait.plan(model=str(path), **job)
        assert by_dict.describe() == plait.plan(model=Configuration(), **job).describe()
    assert plait.describe_model(CONFIG).parameters == plait.describe_model("gpt2").parameters


def test_a_cluster_may_be_a_shorthand_a_path_or_a_dict():
    cluster = {"plait_cluster": 1, "nodes": [{"count": 2, "device": "A100-80GB", "devices": 4}]}
    by_dict = plait.plan(model="gpt2", cluster=cluster, global_batch=32)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cluster.json"
        path.write_text(json.dumps({**cluster, "name": "cluster"}))
        assert plait.plan(model="gpt2", cluster=path, global_batch=32) == by_dict
    assert by_dict.describe() == plait.plan(**SMALL).describe()


def test_wrong_arguments_are_input_errors_that_name_the_place():
    huge = 10**5000
    rows = [
        ({"model": 5}, "model", ""),
        ({"model": None}, "model", "missing"),
        ({"model": []}, "model", "empty"),
        ({"model": object()}, "model", "object"),
        ({"model": "gpt2-xx"}, "model gpt2-xx", "did you mean"),
        ({"model": "a\0b"}, "model", "NUL"),
        ({"model": "\udc80"}, "model", "Unicode"),
        ({"model": {**CONFIG, "n_layer": math.nan}}, "model#/n_layer", "finite"),
        ({"model": {**CONFIG, "n_layer": huge}}, "model#/n_layer", "large"),
        ({"model": {**CONFIG, "n_layer": 10**30}}, "model#/n_layer", ""),
        ({"model": {**CONFIG, "n_layer": {1, 2}}}, "model#/n_layer", ""),
        ({"model": {"plait_model": 1, "nam": "x"}}, "model", ""),
        ({"cluster": {"plait_cluster": 1, "node": []}}, "cluster", "did you mean 'nodes'"),
        ({"cluster": 4}, "", ""),
        ({"cluster": True}, "cluster", "True or False"),
        ({"cluster": "4xT5:4"}, "", ""),
        ({"global_batch": "many"}, "global_batch", "many"),
        ({"global_batch": -1}, "global_batch", ""),
        ({"global_batch": 0}, "global_batch", ""),
        ({"global_batch": huge}, "global_batch", "large"),
        ({"global_batch": 10**20}, "global_batch", "from 1 to"),
        ({"global_batch": math.nan}, "global_batch", "finite"),
        ({"global_batch": math.inf}, "global_batch", "finite"),
        ({"global_batch": [32, [1]]}, "global_batch", "list"),
        ({"tp": "four"}, "tp", "whole number"),
        ({"tp": 2.5}, "tp", "whole number"),
        ({"tp": True}, "tp", "needs a value"),
        ({"tp": b"2"}, "tp", "bytes"),
        ({"sp": "yes"}, "sp", "True or False"),
        ({"micro_bach": 2}, "micro_bach", "did you mean 'micro_batch'"),
        ({"tensor_model_paralel_size": 2}, "tensor_model_paralel_size", "tensor_model_parallel_size"),
        ({"schedule": "1f2b"}, "schedule", "did you mean '1f1b'"),
        ({"planner": "autp"}, "planner", "did you mean 'auto'"),
        ({"time_limit": math.nan}, "time_limit", "finite"),
        ({"time_limit": -1}, "time_limit", ""),
        ({"memory_limit": "lots"}, "memory_limit", "70GiB"),
        ({"stages": [13, 12]}, "stages", ""),
        ({"stages": [1, math.nan]}, "stages", "finite"),
        ({"price": {"H1000": 2}}, "price", ""),
        ({"price": {"A100-80GB": math.nan}}, "price", "finite"),
        ({"profile": {"plait_profile": 1, "computee": []}}, "profile", "did you mean"),
        ({"deadline": "10d"}, "deadline", "give tokens or steps"),
        ({"on_improvement": 5}, "on_improvement", "must be a function"),
        ({"on_progress": "x"}, "on_progress", "must be a function"),
    ]
    for change, where, what in rows:
        error = raised(plait.InputError, plait.plan, **{**SMALL, **change})
        assert error.where.startswith(where), (change, error.where, error.what)
        assert what in error.what, (change, error.where, error.what)
        assert "--" not in str(error) and not re.search(r"`(?!plait )\w+`", str(error)), str(error)
        assert str(error) == f"{error.where}: {error.what}"
    nested = []
    nested.append(nested)
    assert "deep" in raised(plait.InputError, plait.plan, **{**SMALL, "model": {"n_layer": nested}}).what
    for function, words in ((plait.estimate, (5,)), (plait.estimate, ("no_such_file.json",)),
                            (plait.explain, ({"plan": 1},)), (plait.check, (None,)), (plait.diff, ("", "")),
                            (plait.replan, (plait.plan(**SMALL),)), (plait.describe_model, (7,)),
                            (plait.describe_model, (None,)),
                            (plait.merge_profiles, ({"plait_profile": 2}, {})), (plait.Plan.load, ({},)),
                            (plait.Plan.loads, ("no",)), (plait.devices, (3,)), (plait.import_profile, ("no_such",))):
        raised(plait.InputError, function, *words)
    assert issubclass(plait.InputError, ValueError)


def test_where_nothing_fits_the_nearest_plan_is_told():
    error = raised(plait.NothingFits, plait.plan, model="llama-2-7b", cluster="1xA10:2", global_batch=8)
    assert "fits" in error.reason and "--" not in error.reason
    assert error.nearest is None or not plait.estimate(error.nearest).fits
    small = raised(plait.NothingFits, plait.plan, model="gpt2-xl", cluster="1xA10:1", global_batch=8)
    assert small.nearest is not None and small.answer["plans"] == []
    assert small.nearest.stages[0].spare_memory_GiB < 0
    estimated = plait.estimate(small.nearest)
    assert not estimated.fits and "GiB" in estimated.reason


def test_a_plan_is_a_value():
    plan = plait.plan(**SMALL)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "plan.json"
        plan.save(path)
        loaded = plait.Plan.load(path)
        assert loaded == plan and hash(loaded) == hash(plan) and loaded.search is None
        assert plait.Plan.load(json.loads(path.read_text())) == plan
        assert pickle.loads(pickle.dumps(plan)) == plan == plait.Plan.loads(plan.dumps())
        assert program("estimate", path, "--json") == plait.estimate(path)._answered.json()
        raised(plait.InputError, plan.save, folder)
    assert plan != plait.plan(**{**SMALL, "global_batch": 64})
    assert plan != 5 and {plan: 1}[loaded] == 1
    assert [stage.what for stage in plan.stages] and plan.stages[0].memory.capacity_GiB > 0
    assert sum(len(stage.spans) for stage in plan.stages) >= len(plan.stages)
    raised(AttributeError, lambda: plan.stages[0].nothing)


def test_every_function_answers_as_its_verb_does():
    plan = plait.plan(**SMALL)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "plan.json"
        plan.save(path)
        assert plait.check(path).to_dict() == json.loads(program("check", path, "--json"))
        again = plait.plan(**SMALL, tp=2)
        changed = plait.diff(path, again)
        assert changed and changed.change == again.step_s / plan.step_s - 1
        assert not plait.diff(plan, path)
        lost = plait.replan(path, lost=["A100-80GB-1"])
        assert lost.plan.step_s == lost.to_dict()["plan"]["step_s"] and not lost.kept
        assert lost.pause_s > lost.transfer_s
    assert plait.check(plan) and "megatron" in {runner.program for runner in plait.check(plan).runs_on}
    explained = plait.explain(plan, time_limit="1s")
    shares = explained.shares.to_dict().values()
    assert abs(sum(shares) - 1) < 1e-6, shares
    compared = plait.compare(**SMALL, time_limit=2)
    assert {"auto", "amp", "metis"} <= {row.planner for row in compared.planners}
    front = plait.pareto(model="gpt2", instances=["g5.24xlarge:0-2", "p4d.24xlarge:0-1"], global_batch=32)
    assert front.front and front.to_svg().startswith("<svg") and front.chosen is None
    accuracy = plait.validate(by="gpu").accuracy
    assert accuracy and all(row.rows >= row.predicted for row in accuracy)


def test_a_plan_is_exported_as_the_program_exports_it():
    plan = plait.plan(**SMALL, tp=2, runs_on="megatron")
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        plan.save(here / "plan.json")
        exported = plait.export(plan, to="megatron", output=here / "ours", launcher="slurm")
        program("export", here / "plan.json", "--to", "megatron", "-o", here / "theirs", "--launcher", "slurm")
        for name, text in exported.files.items():
            assert (here / "ours" / name).read_text() == text == (here / "theirs" / name).read_text(), name
        assert os.access(here / "ours/run.sh", os.X_OK) and exported.start == "sbatch job.sbatch"
        assert exported.plan == plan and exported.to == "megatron" and not exported.why_not
        assert exported.nearest_more is None and "run.sh" in str(exported) and "<table>" in exported._repr_html_()
        assert plait.export(here / "plan.json", "megatron").files["run.sh"] == exported.files["run.sh"]
        full = raised(plait.InputError, plait.export, plan, to="megatron", output=here)
        assert "not empty; force replaces" in full.what, full
        plait.export(plan, "megatron", here / "ours", force=True)
    refused = raised(plait.NothingFits, plait.export, plan, to="deepspeed")
    assert "no tensor parallelism" in refused.reason and "nearest writes it" in refused.reason, refused.reason
    nearest = plait.export(plan, to="deepspeed", nearest=True)
    assert nearest.plan == refused.nearest != plan and "ds_config.json" in nearest.files
    assert nearest.why_not in refused.reason and nearest.nearest_more == nearest.plan.step_s / plan.step_s - 1
    assert any("network" in loss for loss in nearest.losses)
    wrong = [({"to": "megatrn"}, "to", "did you mean 'megatron'"), ({}, "to", "missing"),
             ({"to": 5}, "to", ""), ({"to": True}, "to", "needs a value"), ({"to": "jax", "launcher": "slrm"}, "launcher", "slurm"),
             ({"to": "jax", "nearest": 1}, "nearest", "True or False"), ({"to": "jax", "output": ""}, "output", "folder"),
             ({"to": "jax", "output": "no_such/run"}, "no_such/run", "no folder"), ({"to": "jax", "tp": 2}, "tp", "not an argument"),
             ({"to": "jax", "time_limit": math.nan}, "time_limit", "finite")]
    for words, where, what in wrong:
        error = raised(plait.InputError, plait.export, plan, **words)
        assert error.where.startswith(where) and what in error.what, (words, error.where, error.what)


def test_a_configuration_is_priced_as_the_program_prices_it():
    script = SOURCE / "examples/models/megatron-gpt-345m.sh"
    told = plait.estimate_from("megatron", script, cluster="1xA100-80GB:8")
    printed = json.loads(program("estimate", "--from", "megatron", script, "--cluster", "1xA100-80GB:8", "--json"))
    assert told.to_dict() == printed and told.program == "Megatron-LM" and told.warnings == printed["warnings"]
    assert told.faster is not None and told.faster.step_s == printed["faster"]["step_s"] < told.step_s == told.plan.step_s
    assert plait.export(told.faster, to="megatron").files["run.sh"] and "<svg" in told._repr_html_()
    hub = {"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "train_batch_size": "auto",
           "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3}}
    job = {"cluster": "8xA100-80GB", "model": CONFIG}
    one = plait.estimate_from("deepspeed", hub, **job, per_device_train_batch_size=4, gradient_accumulation_steps=2,
                              precision="bf16", recompute="full")
    [stage] = one.plan.layout["stages"]
    assert one.plan.layout["micro_batches"] == 2 and one.fits and stage["spans"][0]["recompute"] == "full", stage
    wrong = [(("megatrn", script), {"cluster": "T4:8"}, "program", "did you mean 'megatron'"),
             ((5, script), {"cluster": "T4:8"}, "program", ""), ((None, script), {}, "program", "must be a name"),
             (("megatron", 5), {}, "path", "must be a path"), (("megatron", script), {}, "cluster", "missing"),
             (("megatron", script), {**job}, "model", "not needed"),
             (("deepspeed", hub), job, "ds_config", "give two of micro_batch, micro_batches and global_batch, and precision"),
             (("deepspeed", {**hub, "fp17": {}}), job, "ds_config#", "unknown key"),
             (("deepspeed", hub), {**job, "tpp": 1}, "tpp", "not an argument")]
    for words, options, where, what in wrong:
        error = raised(plait.InputError, plait.estimate_from, *words, **options)
        assert error.where.startswith(where) and what in error.what, (words, error.where, error.what)


def test_lists_are_those_of_the_program():
    for name in ("models", "devices", "instances"):
        assert getattr(plait, name)().to_dict() == json.loads(program(name, "--json"))
    assert "A100-80GB" in [device.name for device in plait.devices()]
    assert "megatron" in plait.frameworks() and "auto" in plait.planners() and "any" in plait.programs()
    added = plait.devices({"plait_catalogue": 1, "devices": [{"name": "mine", "like": "T4"}]})
    assert len(added) == len(plait.devices()) + 1


def test_profiles_are_merged_and_used():
    profile = plait.merge_profiles(*[{"plait_profile": 1}] * 2)
    assert profile.to_dict()["plait_profile"] == 1
    assert plait.plan(**SMALL, profile=profile.to_dict()).step_s == plait.plan(**SMALL).step_s
    assert plait.plan(model="gpt3-1.3b", cluster="1xH200:8", global_batch=64, profile="h200").step_s > 0


def test_the_largest_sequence_is_found():
    plan = plait.plan(model="gpt2", cluster="1xT4:1", global_batch=1, max_seq=True)
    assert plan.search is not None and plan.search.largest and plan.search.largest % 128 == 0


def main():
    tests = {name: test for part in (globals(), vars(python_sessions), vars(python_shown))
             for name, test in part.items() if name.startswith("test_")}
    failed = 0
    for name in sys.argv[1:] or tests:
        began = time.monotonic()
        try:
            tests[name]()
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"{name} FAILED\n{traceback.format_exc()}", flush=True)
        else:
            if os.environ.get("PLAIT_VERBOSE") == "1":
                print(f"{name} ok after {time.monotonic() - began:.1f} s", flush=True)
    print(f"{len(sys.argv[1:] or tests) - failed} ok, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
