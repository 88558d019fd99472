#!/usr/bin/env python3
"""Runs every verb of the program as a user and as a script would.

    cli_test.py --program build/release/plait [NAME...]

Each function called test_... states a fact in its name; NAMEs choose some of them.
"""
import argparse
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback

PROGRAM = ""
FOLDER = pathlib.Path()
SECONDS = 60
SMALL = ["plan", "--model", "gpt2", "--cluster", "2xA100-80GB:4", "--global-batch", "32"]
MIXED = ["plan", "--model", "gpt2-large", "--cluster", "1xA100-80GB:4+2xV100-16GB:4",
         "--global-batch", "32", "--precision", "fp16"]


def plait(*words, status=0, **environment):
    """(stdout, stderr) of the program; fails when the exit status is another."""
    done = subprocess.run([PROGRAM, *map(str, words)], cwd=FOLDER, capture_output=True, text=True,
                          timeout=SECONDS, stdin=subprocess.DEVNULL,
                          env={**os.environ, "COLUMNS": "100", **environment})
    assert done.returncode == status, f"{words}: exit {done.returncode}\n{done.stderr}{done.stdout}"
    return done.stdout, done.stderr


def answer(*words, **options):
    return json.loads(plait(*words, "--json", **options)[0])


def on_terminal(*words, interrupt_after=None):
    """(exit status, all output) with stdout and stderr on a terminal of 100 columns."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(FOLDER)
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
        environment.pop("NO_COLOR", None)
        os.execve(PROGRAM, [PROGRAM, *words], environment)
    output, begin = b"", time.monotonic()
    while time.monotonic() - begin < SECONDS:
        if interrupt_after is not None and time.monotonic() - begin > interrupt_after:
            os.kill(pid, signal.SIGINT)
            interrupt_after = None
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                block = os.read(terminal, 65536)
            except OSError:
                break
            if not block:
                break
            output += block
    else:
        os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), output.decode()


def without_clock(text):
    return re.sub(r'"search_s": [^,]*,', "", text)


# The program as a whole.

def test_version_is_one_line():
    assert re.fullmatch(r"plait \d+\.\d+\.\d+\n", plait("version")[0])
    assert plait("--version")[0] == plait("version")[0]


def test_no_words_print_help_on_stderr():
    out, err = plait(status=2)
    assert out == "" and "plait VERB" in err


def test_every_verb_has_help_with_examples():
    overview = plait("--help")[0]
    verbs = re.findall(r"^  (\w+)  ", overview[overview.index("Verbs"):overview.index("Examples")], re.M)
    expected = {"plan", "compare", "estimate", "explain", "check", "validate", "models", "model",
                "devices", "instances", "completion", "version", "help"}
    assert expected <= set(verbs), verbs
    for verb in verbs:
        text = plait(verb, "--help")[0]
        assert text.startswith(f"plait {verb}") and "Examples" in text
        assert text == plait("help", verb)[0] == plait(verb, "-h")[0]
        assert max(map(len, text.splitlines())) <= 100
    assert plait("help")[0] == overview


def test_output_without_a_terminal_has_no_escapes():
    for words in (["--help"], ["models"], SMALL):
        out, err = plait(*words)
        assert "\x1b" not in out + err


def test_a_full_disk_is_an_error():
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([PROGRAM, "models"], stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=SECONDS, check=False)
    assert done.returncode == 2
    assert done.stderr == "plait: stdout: cannot be written: No space left on device\n"


def test_colour_is_for_terminals_only():
    status, output = on_terminal("models")
    assert status == 0 and "\x1b[1m" in output
    os.environ["NO_COLOR"] = "1"
    try:
        assert "\x1b" not in plait("models")[0]
    finally:
        del os.environ["NO_COLOR"]


# What is known by name.

def test_models_are_listed_with_their_parameters():
    models = {m["name"]: m["parameters"] for m in answer("models")}
    # The counts of transformers itself.
    assert models["gpt2"] == 124_439_808 and models["gpt2-xl"] == 1_557_611_200
    assert models["llama-2-7b"] == 6_738_415_616
    table = plait("models")[0]
    assert "llama-2-7b" in table and "6,738,415,616" in table


def test_a_model_is_described():
    model = answer("model", "llama-2-7b")
    assert model["parameters"] == 6_738_415_616 and model["layers"] == 32
    # 2 flops for each parameter but the embedding and token, and attention: 4 s^2 h for each layer.
    flops = 2 * (model["parameters"] - 32000 * 4096) * 4096 + 32 * 4 * 4096**2 * 4096
    assert abs(model["forward_flops_per_sample"] / flops - 1) < 1e-3
    assert model["flops_per_sample"] == 3 * model["forward_flops_per_sample"]
    assert sum(kind["count"] for kind in model["kinds"]) == model["units"] == 34
    assert "6,738,415,616" in plait("model", "llama-2-7b")[0]


def test_a_model_may_be_a_config_file():
    (FOLDER / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    assert answer("model", "config.json")["parameters"] == 124_439_808
    assert answer("model", ".")["parameters"] == 124_439_808
    assert answer("model", "config.json", "--seq", 512)["sequence_length"] == 512


def test_devices_and_instances_are_listed():
    devices = {d["name"]: d for d in answer("devices")}
    assert devices["A100-80GB"]["peak_TFLOPs"]["bf16"] == 312
    assert {"T4", "V100-16GB", "H100", "H200", "B200", "MI300X"} <= devices.keys()
    instances = {i["name"]: i for i in answer("instances")}
    assert instances["p4d.24xlarge"]["count"] == 8
    assert "A100-80GB" in plait("devices")[0] and "p4d.24xlarge" in plait("instances")[0]


def test_a_catalogue_of_ones_own_counts():
    (FOLDER / "mine.json").write_text(json.dumps({
        "plait_catalogue": 1, "devices": [{"name": "Mine", "like": "A100-80GB", "memory_GiB": 70}]}),
        encoding="utf-8")
    names = [d["name"] for d in answer("devices", "--catalogue", "mine.json")]
    assert "Mine" in names and "T4" in names
    assert answer("plan", "--model", "gpt2", "--cluster", "1xMine:4", "--global-batch", 8,
                  "--catalogue", "mine.json")["plans"]


# Plans.

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
    for words in ("gpt2: 124.4 M parameters, 12 layers, 1,024 tokens a sample",
                  "2 x 4 A100-80GB: 8 devices", "32 samples a step", "tokens/s", "MFU", "GiB used",
                  "$/step", "bubble", "stage by stage", "plans costed in"):
        assert words in out, words
    assert err == ""
    assert max(map(len, out.splitlines())) <= 100


def test_the_answer_is_the_same_for_any_number_of_threads_and_runs():
    for problem in (SMALL, MIXED):
        first, *others = [without_clock(plait(*problem, "--json", "--threads", threads)[0])
                          for threads in (1, 2, 2, 1)]
        assert all(other == first for other in others)


def test_warnings_go_to_stderr_and_into_json():
    words = [*SMALL[:4], "1xV100-16GB:4", *SMALL[5:]]
    assert "V100-16GB does not support bf16" in plait(*words)[1]
    assert "V100-16GB does not support bf16" in answer(*words)["warnings"][0]


def test_every_dimension_can_be_pinned():
    pinned = answer(*SMALL, "--tp", 2, "--pp", 2, "--dp", 2, "--micro-batch", 2, "--recompute", "full",
                    "--zero", 1, "--schedule", "gpipe", "--no-sp", "--stages", "6,8")
    plan = pinned["plans"][0]
    # 32 samples / (dp 2 x micro-batch 2) = 8 micro-batches.
    assert plan["describe"].startswith("pp2 tp2 dp2 m8 gpipe zero1 recompute=full layers=6,8 ")


def test_megatron_spellings_are_understood():
    ours = plait(*SMALL, "--json", "--tp", 2, "--pp", 2, "--micro-batch", 2, "--recompute", "full")[0]
    theirs = plait("plan", "--model", "gpt2", "--cluster", "2xA100-80GB:4", "--global-batch-size", 32,
                   "--json", "--tensor_model_parallel_size", 2, "--pipeline-model-parallel-size=2",
                   "--micro-batch-size", 2, "--recompute-granularity", "full", "--bf16")[0]
    assert without_clock(ours) == without_clock(theirs)


def test_stages_may_count_layers_or_units():
    layers = answer(*SMALL, "--stages", "5,7")
    units = answer(*SMALL, "--stages", "6,8")
    assert layers["plans"] == units["plans"]
    assert "6, 8 units" in layers["warnings"][0]


def test_top_limits_the_plans():
    assert len(answer(*SMALL, "--top", 2)["plans"]) == 2


def test_hostfiles_are_clusters():
    (FOLDER / "hosts.txt").write_text("one slots=4\ntwo slots=4\n", encoding="utf-8")
    result = answer("plan", "--model", "gpt2", "--cluster", "hosts.txt", "--device", "A100-80GB",
                    "--global-batch", 32)
    # As the shorthand: names of nodes are not part of a plan.
    assert result["plans"] == answer(*SMALL)["plans"]


def test_unknown_prices_are_null():
    (FOLDER / "free.json").write_text(json.dumps({
        "plait_cluster": 1,
        "nodes": [{"device": "A100-80GB", "devices": 4, "price_usd_per_hour": 0}]}), encoding="utf-8")
    words = ["plan", "--model", "gpt2", "--cluster", "free.json", "--global-batch", 32]
    assert answer(*words)["plans"][0]["usd_per_step"] is None
    assert "$" not in plait(*words)[0]


def test_nothing_fits_is_exit_3_with_reason_and_remedy():
    words = ["plan", "--model", "llama-2-7b", "--cluster", "1xA100-80GB:8", "--global-batch", 8]
    out, err = plait(*words, "--tp", 1, "--pp", 1, "--zero", 0, status=3)
    assert out == "" and err.startswith("plait: nothing fits: ")
    assert "GiB too much" in err and "it fits without --zero 0" in err
    result = answer(*words, "--tp", 1, "--pp", 1, "--zero", 0, status=3)
    assert result["plans"] == [] and "GiB too much" in result["reason"]


# Saved plans.

def saved(*more):
    path = FOLDER / "plan.json"
    plait(*SMALL, "-o", path, *more)
    return path


def test_a_saved_plan_is_estimated_as_it_was_planned():
    path = FOLDER / "plan.json"
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
    assert "is sound and fits" in plait("check", path)[0]
    assert answer("check", path) == {"valid": True, "violations": [], "fits": True}


def test_check_lists_all_that_is_wrong():
    path = saved("--pp", 2, "--tp", 1)
    document = json.loads(path.read_text(encoding="utf-8"))
    stages = document["plan"]["stages"]
    stages[1]["devices"] = stages[0]["devices"]
    document["plan"]["micro_batches"] = 31
    path.write_text(json.dumps(document), encoding="utf-8")
    out = plait("check", path, status=3)[0]
    assert "is already used by stage" in out and "31" in out
    result = answer("check", path, status=3)
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
    path = FOLDER / "none.json"
    plait("plan", "--model", "llama-2-70b", "--cluster", "A100-80GB:1", "--global-batch", 8, "-o", path,
          status=3)
    assert not path.exists()


# Shells and terminals.

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
    runs, rows = FOLDER / "runs.csv", FOLDER / "rows.csv"
    runs.write_text("row_id,source_id,model,seq_len,gpu,num_gpus,mbs,gbs,tp,pp,iter_time_s\n"
                    "a,mine,llama-2-7b,4096,H100,8,1,64,8,1,9.5\n"
                    "b,mine,llama-2-7b,4096,Abacus,8,1,64,8,1,9.5\n")
    source, = answer("validate", "--runs", runs, "--rows", rows)["sources"]
    assert (source["rows"], source["predicted"], source["refused"]) == (2, 1, 1)
    assert source["refusals"] == {"the device 'Abacus' is not in the catalogue": 1}
    lines = rows.read_text().splitlines()
    assert len(lines) == 3 and lines[1].startswith("a,mine,,H100,")


def complete(*words):
    script = 'source <("$0" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _plait; ' \
             'printf "%s\\n" "${COMPREPLY[@]}"'
    return subprocess.run(["bash", "-c", script, PROGRAM, *words], capture_output=True, text=True,
                          check=True, timeout=SECONDS, cwd=FOLDER).stdout.split()


def test_bash_completes_verbs_flags_and_values():
    assert complete("plait", "est") == ["estimate"]
    assert complete("plait", "plan", "--glob") == ["--global-batch"]
    assert complete("plait", "plan", "--model", "llama-2-7") == ["llama-2-7b", "llama-2-70b"]
    assert complete("plait", "plan", "--schedule", "1f") == ["1f1b"]
    assert complete("plait", "completion", "fi") == ["fish"]
    (FOLDER / "some_plan.json").write_text("", encoding="utf-8")
    assert complete("plait", "check", "some_p") == ["some_plan.json"]


def test_zsh_and_fish_complete_every_verb():
    for shell in ("zsh", "fish"):
        script = plait("completion", shell)[0]
        for verb in ("plan", "estimate", "devices", "completion"):
            assert verb in script


def test_ctrl_c_shows_the_best_so_far():
    # Every plan of this space is far more than can be looked at in the time limit.
    status, output = on_terminal("plan", "--model", "gpt2", "--cluster",
                                 "2xA100-80GB:8+2xV100-32GB:8", "--global-batch", "64",
                                 "--precision", "fp16", "--planner", "exhaustive",
                                 "--time-limit", "50s", interrupt_after=2)
    assert status == 0, (status, output)
    assert "Cut short by Ctrl-C" in output, output
    assert re.search(r"\[=* *\] +\d+ %  best so far", output), output


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    global PROGRAM, FOLDER
    PROGRAM = str(pathlib.Path(options.program).resolve())
    failed = 0
    tests = {name: test for name, test in globals().items() if name.startswith("test_")}
    for name in options.names or tests:
        with tempfile.TemporaryDirectory() as folder:
            FOLDER = pathlib.Path(folder)
            try:
                tests[name]()
            except Exception:  # pylint: disable=broad-except
                failed += 1
                print(f"{name} FAILED\n{traceback.format_exc()}")
    print(f"{len(options.names or tests) - failed} ok, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
