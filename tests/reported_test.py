#!/usr/bin/env python3
"""Problems on which plait once ended with an internal error, took minutes, or gave another answer for
the same machines in another order."""
import itertools
import json
import sys

from program import Here, answer, plait, run_tests

GPU = {"intra": {"bandwidth_GBps": 250, "latency_us": 3}, "network": {"bandwidth_Gbps": 400, "latency_us": 50}}
SLOW = {"intra": {"bandwidth_GBps": 8, "latency_us": 6}, "network": {"bandwidth_Gbps": 10, "latency_us": 50}}


def model(layers, hidden, heads, vocabulary, sequence, **more):
    path = Here.folder / f"model_{layers}_{sequence}.json"
    path.write_text(json.dumps({"plait_model": 1, "name": "r", "transformer": {
        "layers": layers, "hidden": hidden, "heads": heads, "vocabulary": vocabulary, "sequence": sequence, **more}}))
    return path


def cluster(name, nodes, types=()):
    path = Here.folder / f"{name}.json"
    path.write_text(json.dumps({"plait_cluster": 1, "name": name, "device_types": list(types), "nodes": nodes}))
    return path


def test_a_million_tokens_on_devices_without_flash_attention_end_in_a_sentence():
    # Advice for what does not fit searches, too.
    machines = cluster("two", [{"name": "n0", "count": 4, "device": "B200", "devices": 4},
                                     {"name": "n1", "count": 2, "device": "P100", "devices": 1}])
    problem = ["plan", "--model", model(97, 512, 8, 256000, 1000000, kv_heads=4),
               "--cluster", machines, "--global-batch", 8]
    out, err = plait(*problem, "--attention", "plain", status=3)
    assert "internal error" not in out + err
    assert answer(*problem)["plans"]


def test_odd_long_sequences_divide_over_context_and_tensor_ranks():
    long = model(2, 512, 8, 1000, 500000)
    for batch, odd in itertools.product((1, 4), (500000, 499999, 20000, 7777)):
        found = answer("plan", "--model", long, "--seq", odd, "--cluster", "4xH100:4", "--global-batch", batch)
        for plan in found["plans"]:
            for stage in plan["plan"]["stages"]:
                for span in stage["spans"]:
                    if plan["plan"]["sequence_parallel"]:
                        assert odd // plan["plan"]["context"] % span["tensor"] == 0, (odd, plan["describe"])


def test_two_thousand_shared_layers_are_planned_within_the_time_limit():
    shared = Here.folder / "config.json"
    shared.write_text('{"model_type": "albert", "hidden_size": 768, "num_hidden_layers": 2000, "num_attention_heads": 1}')
    found = answer("plan", "--model", shared, "--cluster", "1xA100-80GB:8", "--global-batch", 8, "--time-limit", "20s",
                   status=None)
    assert found["plans"] or "cut short" in found["reason"], found["reason"]


def test_the_order_of_hosts_changes_nothing():
    types = [{"name": "dev0", "like": "T4", "memory_GiB": 14.75}, {"name": "dev1", "like": "V100-16GB", "memory_GiB": 15.77}]
    nodes = [{"name": "n0", "count": 2, "device": "dev0", "devices": 4, **GPU},
             {"name": "n1", "count": 3, "device": "dev1", "devices": 4, **SLOW}]
    small = model(10, 256, 4, 128256, 512)
    for batch in (16, 32, 64):
        steps = {answer("plan", "--model", small, "--cluster", cluster(f"c{i}", order, types),
                        "--global-batch", batch)["plans"][0]["step_s"]
                 for i, order in enumerate(itertools.permutations(nodes))}
        assert len(steps) == 1, (batch, steps)


def test_one_node_more_is_never_worse():
    links = lambda intra, us, network, away: {"intra": {"bandwidth_GBps": intra, "latency_us": us},
                                              "network": {"bandwidth_Gbps": network, "latency_us": away}}
    types = [{"name": "dev0", "like": "L4", "memory_GiB": 22}, {"name": "dev1", "like": "A100-80GB", "memory_GiB": 79.2},
             {"name": "dev2", "like": "A100-40GB", "memory_GiB": 39.4}]
    nodes = [{"name": "n0", "device": "dev0", "devices": 3, **links(8, 3, 100, 20)},
             {"name": "n1", "device": "dev1", "devices": 2, **links(8, 15, 25, 50)},
             {"name": "n2", "count": 2, "device": "dev2", "devices": 2, **links(250, 3, 5, 20)}]
    middle = model(49, 2048, 16, 50257, 1024)
    for n, node in enumerate(nodes):
        more = [dict(other, count=other.get("count", 1) + (other is node)) for other in nodes]
        before, after = (answer("plan", "--model", middle, "--cluster", cluster(f"c{n}{len(str(which))}", which, types),
                                "--global-batch", 64)["plans"][0]["step_s"] for which in (nodes, more))
        assert after <= 1.005 * before, (node["name"], before, after)


def test_more_stages_than_a_model_has_units_are_not_looked_for_when_a_plan_is_explained():
    small = model(3, 120, 20, 50257, 128)
    problem = ["plan", "--model", small, "--cluster", "2xRTX5090:4+5xMI355X:1+4xB200:3+1xH20:4", "--global-batch", 3,
               "--framework", "cuda", "--pp", 3]
    plait(*problem, "-o", "plan.json")
    assert "What a change would do" in plait("explain", "plan.json")[0]


def test_devices_that_are_a_million_million_times_apart_are_planned():
    # Shares of samples by speed are more than an int can hold; the sanitizers see it.
    types = [{"name": "slow", "like": "A100-80GB", "memory_bandwidth_GBps": 1e-9,
              "peak_TFLOPs": {kind: 1e-9 for kind in ("fp32", "tf32", "bf16", "fp16")}}]
    both = cluster("apart", [{"name": "a", "device": "A100-80GB", "devices": 4},
                             {"name": "b", "device": "slow", "devices": 4}], types)
    best = answer("plan", "--model", "gpt2", "--cluster", both, "--global-batch", 64, "--runs-on", "any",
                  "--time-limit", "20s")["plans"][0]
    alone = answer("plan", "--model", "gpt2", "--cluster", "1xA100-80GB:4", "--global-batch", 64,
                   "--runs-on", "any")["plans"][0]
    assert best["step_s"] <= 1.01 * alone["step_s"], (best["step_s"], alone["step_s"])


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
