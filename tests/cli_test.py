#!/usr/bin/env python3
"""The command line as a whole: help, lists, completion, terminals."""
import json
import os
import re
import signal
import subprocess
import sys
import time

from program import Here, SECONDS, SMALL, answer, on_terminal, plait, run_tests


# The program as a whole.

def test_version_is_one_line():
    assert re.fullmatch(r"plait \d+\.\d+\.\d+(\+[0-9a-f]+(-changed)?)?\n", plait("version")[0])
    assert plait("--version")[0] == plait("version")[0]


def test_no_words_print_help_on_stderr():
    out, err = plait(status=2)
    assert out == "" and "plait VERB" in err


def test_every_verb_has_help_with_examples():
    overview = plait("--help")[0]
    verbs = re.findall(r"^  (\w+)  ", overview[overview.index("Verbs"):overview.index("Examples")], re.M)
    expected = {"plan", "compare", "estimate", "explain", "check", "validate", "models", "model",
                "devices", "instances", "pareto", "replan", "completion", "version", "help"}
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
        done = subprocess.run([Here.program, "models"], stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=SECONDS, check=False)
    assert done.returncode == 2
    assert done.stderr == "plait: stdout: cannot be written: No space left on device\n"


def test_tables_fit_the_terminal_and_say_what_they_left_out():
    mixed = ["--model", "gpt2-xl", "--cluster", "1xA100-40GB:8+2xT4:4", "--global-batch", "96",
             "--precision", "fp16"]
    plait("plan", *mixed, "-o", "wide.json")
    for words in (["plan", *mixed, "--tokens", "1T"], ["estimate", "wide.json"], ["explain", "wide.json"],
                  ["models"], ["devices"], ["instances"], ["validate"]):
        status, output = on_terminal(*words, columns=80)
        lines = [re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", line).split("\r")[-1]
                 for line in output.replace("\r\n", "\n").split("\n")]
        assert status == 0 and max(map(len, lines)) <= 80, (words, max(lines, key=len))
    assert "Hidden columns (terminal too narrow): as of" not in output
    assert "Hidden columns (terminal too narrow): bubble, $/step" in on_terminal("plan", *mixed, columns=80)[1]
    piped = plait("plan", *mixed)[0]
    assert "Left out" not in piped and "bubble" in piped and "$/step" in piped


def test_a_model_may_come_from_stdin():
    done = subprocess.run([Here.program, "model", "-", "--json"], input='{"model_type": "gpt2"}', text=True,
                          capture_output=True, timeout=SECONDS, check=True)
    assert json.loads(done.stdout)["parameters"] == 124439808


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


def test_a_model_without_parameters_has_no_shares_of_them():
    (Here.folder / "none.json").write_text(json.dumps({
        "plait_model": 1, "name": "none", "units": ["a"],
        "kinds": [{"name": "a", "ops": [{"name": "x", "kind": "norm"}]}]}), encoding="utf-8")
    assert "nan" not in plait("model", "none.json")[0]


def test_a_model_may_be_a_config_file():
    (Here.folder / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
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
    assert [d["name"] for d in answer("devices", "rtx5090")] == ["RTX5090"]
    assert {i["device"] for i in answer("instances", "H200")} == {"H200"}
    assert all("mixtral" in m["name"] for m in answer("models", "Mixtral"))
    assert "is not in any name" in plait("devices", "A9000", status=2)[1]


def test_files_of_other_programs_are_told_how_they_are_read():
    assert "--from deepspeed" in plait("estimate", "--from", "axolotl", "x.yaml", status=2)[1]
    assert "plait plan with --framework" in plait("estimate", "--from", "torchtitan", "x", status=2)[1]
    assert "behind --runs" in plait("validate", "mine.csv", status=2)[1]


def test_a_catalogue_of_ones_own_counts():
    (Here.folder / "mine.json").write_text(json.dumps({
        "plait_catalogue": 1, "devices": [{"name": "Mine", "like": "A100-80GB", "memory_GiB": 70}]}),
        encoding="utf-8")
    names = [d["name"] for d in answer("devices", "--catalogue", "mine.json")]
    assert "Mine" in names and "T4" in names
    assert answer("plan", "--model", "gpt2", "--cluster", "1xMine:4", "--global-batch", 8,
                  "--catalogue", "mine.json")["plans"]


def complete(*words):
    script = 'source <("$0" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _plait; ' \
             'printf "%s\\n" "${COMPREPLY[@]}"'
    return subprocess.run(["bash", "-c", script, Here.program, *words], capture_output=True, text=True,
                          check=True, timeout=SECONDS, cwd=Here.folder).stdout.split()


def test_bash_completes_verbs_flags_and_values():
    assert complete("plait", "est") == ["estimate"]
    assert complete("plait", "plan", "--glob") == ["--global-batch"]
    assert complete("plait", "plan", "--model", "llama-2-7") == ["llama-2-7b", "llama-2-70b"]
    assert complete("plait", "plan", "--schedule", "1f") == ["1f1b"]
    assert complete("plait", "plan", "--model", "=", "gpt2-x") == ["gpt2-xl"]
    # Files are offered only where a file may stand.
    (Here.folder / "fifth.json").write_text("{}")
    (Here.folder / "gpt2-x.json").write_text("{}")
    assert complete("plait", "plan", "--model", "gpt2-x") == ["gpt2-xl", "gpt2-x.json"]
    assert complete("plait", "plan", "--planner", "f") == ["fasop"]
    assert complete("plait", "completion", "fi") == ["fish"]
    (Here.folder / "some_plan.json").write_text("", encoding="utf-8")
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
    assert "Cut short by Ctrl-C" in " ".join(output.split()), output
    assert re.search(r"\[=* *\] +\d+ %  best so far", output), output


def test_signals_of_batch_systems_keep_the_best_so_far():
    for stop in (signal.SIGTERM, signal.SIGHUP):
        run = subprocess.Popen(
            [Here.program, "plan", "--model", "gpt2", "--cluster", "2xA100-80GB:8+2xV100-32GB:8", "--global-batch",
             "64", "--precision", "fp16", "--planner", "exhaustive", "--time-limit", "50s", "-o", "best.json"],
            cwd=Here.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        run.send_signal(stop)
        out, told = run.communicate(timeout=20)
        assert run.returncode == 0, (stop, run.returncode, told)
        assert "another signal" in " ".join(out.split()), out
        assert json.loads((Here.folder / "best.json").read_text())["plait_plan"] == 1
        (Here.folder / "best.json").unlink()


def test_one_signal_ends_waiting_for_input():
    os.mkfifo(Here.folder / "pipe")
    writer = os.open(Here.folder / "pipe", os.O_RDWR)  # which never writes
    for source in ("-", "pipe"):
        for stop in (signal.SIGINT, signal.SIGTERM):
            run = subprocess.Popen([Here.program, "plan", "--model", source, "--cluster", "H100", "--global-batch", "1"],
                                   cwd=Here.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            time.sleep(1)
            run.send_signal(stop)
            assert run.wait(timeout=20) == 130, (source, stop, run.returncode)
            out, told = run.communicate()
            assert out == "" and told == f"plait: {source}: reading it was stopped\n", told
    os.close(writer)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
