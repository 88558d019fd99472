#!/usr/bin/env python3
"""Files of ../shared/data/fuzz (skipped without them), each of which once ended the program, cost gigabytes or minutes, was written and not read
back, or gave another answer for the same machines."""
import json
import pathlib
import shutil
import sys

from injection_test import ALLOWED, cheap
from program import Here, answer, plait, run_tests

FILES = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data" / "fuzz"
REST = ["--cluster", "A100-80GB:2", "--global-batch", 4]


def refused(complaint, *words):
    """The error, which names the file and what is wrong with it, in one line."""
    told = cheap(*words)
    assert complaint in told and "internal error" not in told, (words, told)
    assert len([line for line in told.splitlines() if "warning" not in line]) == 1, told


def test_numbers_that_are_out_of_range_are_refused_by_importers_too():
    refused("1e308", "import", "--from", "aceso", "--model", "gpt3-1.3b", FILES / "aceso", "-o", "p.json")
    refused("1e308", "import", "--from", "nccl-tests", FILES / "nccl/size_1e308_all_reduce_perf.txt", "-o", "p.json")
    for number, path in enumerate(sorted((FILES / "npy").iterdir())):
        for source, name in (("amp", "gpt2_G4_1.npy"), ("fasop", "gpt2_A100_1.npy")):
            folder = Here.folder / f"{source}{number}"
            folder.mkdir()
            shutil.copy(path, folder / name)
            refused("must be 0 or from 1e-30", "import", "--from", source, "--model", "gpt2", folder / name, "-o", "p.json")
    refused("latency_us: must be 0 or at least 1e-18", "plan", "--model", "gpt2", "--cluster",
            FILES / "cluster/latency_1e-30us.json", "--global-batch", 4)
    shutil.copy(FILES / "trials/trials_steps_overflow.csv", Here.folder)
    refused("steps must be from 0", "trial", "--launch", "true", "--model", "gpt2", *REST, "--csv", "trials_steps_overflow.csv")
    assert not (Here.folder / "p.json").exists()


def test_what_cannot_be_counted_is_refused():
    refused("rotary_dim (8) must be at most the size of a head (4)", "model", FILES / "hf/gptj_rotary_over_head.json")


def test_small_files_take_little():
    refused("once its variables are filled in", "plan", "--model", FILES / "bomb.sh", *REST)
    refused("/model/units/1/repeat: must be a whole number", "check", FILES / "units1e7.json")


def test_names_of_files_command_neither_terminal_nor_shell():
    for words in (["--model", FILES / "evil.json", *REST],
                  ["--model", FILES / "evil.json", "--cluster", FILES / "evilc.json", "--global-batch", 4]):
        out, err = plait("plan", *words)
        assert ALLOWED.fullmatch(out + err), (out + err)[:500]
    plait("trial", "--launch", "printf '%s' {model} > told; echo step time 0.1 s", "--steps", 1, "--warm-up", 0,
          "--time-pattern", "step time ([0-9.]+)", "--model", FILES / "inj.json", *REST, "--budget", 1)
    assert (Here.folder / "told").read_text() == "x;touch PWNED_BY_MODEL;#"
    assert not (Here.folder / "PWNED_BY_MODEL").exists()


def test_long_sequences_that_do_not_divide_do_not_abort():
    assert answer("plan", "--model", "llama-2-7b", "--seq", 20000, "--cluster", "16xH100:8", "--global-batch", 1)["plans"]
    problem = ["plan", "--model", FILES / "m33.json", "--cluster", FILES / "c33.json", "--global-batch", 8]
    assert answer(*problem)["plans"]
    out, err = plait(*problem, "--attention", "plain", status=3)
    assert "internal error" not in out + err
    for number in (499_999, 500_000, 20_000, 7_777):
        answer("plan", "--model", FILES / "mm.json", "--seq", number, "--cluster", "4xH100:4", "--global-batch", 1)


def test_an_answer_that_ends_early_is_whole_json():
    example = ["plan", "--model", "llama-2-7b", "--cluster", "2xA100-80GB:8+4xA10:4", "--global-batch", 512]
    for milliseconds in range(8, 61, 4):
        found = answer(*example, "--time-limit", f"{milliseconds}ms", status=None)
        assert found["plans"] or found["reason"], milliseconds


def test_searches_end_with_their_limit():
    # CPU time of the program, so that a busy machine is not a fault of the search.
    for words in (["--model", FILES / "alb2000.json", "--cluster", "1xA100-80GB:8", "--global-batch", 8],
                  ["--model", "gpt2", "--cluster", "12xT4:1", "--global-batch", 65536, "--schedule", "zb-h1", "--runs-on", "any"],
                  ["--model", "gpt2-xl", "--cluster", "2xA100-80GB:8+4xT4:4", "--global-batch", 512, "--planner", "metis"]):
        found = answer("plan", *words, "--time-limit", "1s", status=None)
        assert found["plans"] or "cut short" in found["reason"], words


def fastest(model, cluster, batch=64):
    path = Here.folder / "cluster.json"
    path.write_text(json.dumps(cluster))
    return answer("plan", "--model", model, "--cluster", path, "--global-batch", batch)["plans"][0]["step_s"]


def test_another_order_of_hosts_and_one_node_more():
    for model in ("m133", "m165"):
        for path in sorted((FILES / "metamorphic").glob("c*.json")):
            cluster = json.loads(path.read_text())
            nodes = cluster["nodes"]
            step = fastest(FILES / f"metamorphic/{model}.json", cluster)
            turned = fastest(FILES / f"metamorphic/{model}.json", dict(cluster, nodes=nodes[::-1]))
            assert abs(turned / step - 1) < 1e-9, (model, path.name, step, turned)
            for more in nodes:
                larger = [dict(node, count=node["count"] + (node is more)) for node in nodes]
                after = fastest(FILES / f"metamorphic/{model}.json", dict(cluster, nodes=larger))
                assert after <= 1.005 * step, (model, path.name, more["name"], step, after)


if __name__ == "__main__":
    if not FILES.exists():
        print(f"skipped: no {FILES}")
        sys.exit(77)
    sys.exit(run_tests(globals()))
