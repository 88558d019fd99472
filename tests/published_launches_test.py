#!/usr/bin/env python3
"""Published launches of Megatron-LM: each is read and priced, and what is said to be faster exports."""
import json
import pathlib
import sys

from program import Here, plait, run_tests

LIST = pathlib.Path(__file__).resolve().parent / "published" / "megatron_launches.txt"


# Teraflops a second of each GPU in the runs of examples/sc21/run_table_1.sh (Narayanan et al., SC 2021, table 1), by
# the paper's formula: recompute counts, words are padded to 51,200.
RATES = {"sc21-1.7b": 137, "sc21-3.6b": 138, "sc21-7.5b": 142, "sc21-18b": 135, "sc21-39b": 138, "sc21-76b": 140,
         "sc21-145b": 148, "sc21-310b": 155, "sc21-530b": 163, "sc21-1t": 163}


def launches():
    rows = [line.split(" | ") for line in LIST.read_text().splitlines() if not line.startswith("#")]
    assert len(rows) >= 20, len(rows)
    return rows


def test_published_launches_are_priced_and_improved():
    for name, _, cluster, flags in launches():
        (Here.folder / "launch.sh").write_text(flags + "\n")
        text, _ = plait("estimate", "--from", "megatron", "launch.sh", "--cluster", cluster, "--json", "-o",
                        f"{name}.json", status=None)
        told = json.loads(text)
        faster = told["faster"]
        if faster is not None:
            assert faster["step_s"] < told["step_s"] or not told["fits"], name
            if not name.startswith("ds-"):  # nothing is written for Megatron-DeepSpeed
                plait("export", f"{name}.json", "--to", "megatron", "-o", f"run-{name}")
        print(f"{name}: {told['step_s']:.3g} s, {'fits' if told['fits'] else 'does not fit'}, "
              + (f"{faster['step_s']:.3g} s with {faster['describe']}" if faster else "nothing faster"), flush=True)


def measured_s(name, devices, flags):
    def number(flag):
        return int(flags.split(f"--{flag} ")[1].split()[0])
    layers, hidden, length = number("num-layers"), number("hidden-size"), number("seq-length")
    flops = 96 * number("global-batch-size") * length * layers * hidden**2 * (
        1 + length / (6 * hidden) + 51200 / (16 * layers * hidden))
    return flops / (devices * RATES[name] * 1e12)


def test_what_published_launches_took_is_what_they_are_priced_at():
    """They overlap nothing, as their flags do not say so."""
    errors = []
    for name, _, cluster, flags in launches():
        if name not in RATES:
            continue
        (Here.folder / "launch.sh").write_text(flags + "\n")
        plait("import", "--from", "megatron", "launch.sh", "--cluster", cluster, "-o", "plan.json")
        told = json.loads(plait("estimate", "plan.json", "--json", status=None)[0])
        measured = measured_s(name, 8 * int(cluster.split("x")[0]), flags)
        errors.append(told["step_s"] / measured - 1)
        print(f"{name}: {told['step_s']:.3g} s, measured {measured:.3g} s, {errors[-1]:+.1%}", flush=True)
    assert len(errors) == len(RATES)
    assert sum(map(abs, errors)) / len(errors) < 0.18, errors


def test_a_published_launch_that_megatron_refuses_is_refused():
    """examples/bert/train_bert_340m_distributed.sh: on the 8 devices that it names it has 128 processes, and on 128 its
    24 layers do not come out even on 16 stages, as megatron/core/transformer/transformer_block.py asserts."""
    (Here.folder / "bert.sh").write_text(
        "pretrain_bert.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 512 "
        "--max-position-embeddings 512 --attention-backend auto --micro-batch-size 4 --global-batch-size 32 --fp16 "
        "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16\n")
    for nodes, reason in ((1, "tp 8 x pp 16 x cp 1 = 128 does not divide the 8 devices"),
                          (16, "24 layers do not come out even on 16 stages")):
        error = plait("estimate", "--from", "megatron", "bert.sh", "--cluster", f"{nodes}xA100-80GB:8", status=2)[1]
        assert reason in error, error


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
