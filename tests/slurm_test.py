#!/usr/bin/env python3
"""Jobs that plait export writes for Slurm, accepted and run by a Slurm of their own on this machine.

Skipped (77) where its programs are missing (Debian: munge slurmctld slurmd slurm-client)."""
import json
import subprocess
import sys

from one_machine_slurm import OneMachineSlurm, missing
from program import Here, plait, run_tests
from stub_launchers import Stubs

ODD = "two words, it's \"$HOME\" and\na line"
MODEL = {"plait_model": 1, "name": "model with 'quotes' $HOME", "transformer": {
    "layers": 12, "hidden": 1024, "heads": 16, "vocabulary": 32000, "sequence": 1024, "dropout": False}}


def export(nodes, *words):
    """A plan for nodes of four devices each, (name, type), as a job in the folder `run`; the plan."""
    (Here.folder / "model.json").write_text(json.dumps(MODEL))
    (Here.folder / "cluster.json").write_text(json.dumps({"plait_cluster": 1, "name": "c", "nodes": [
        {"name": name, "device": kind, "devices": 4, "network": {"bandwidth_Gbps": 400, "latency_us": 5}}
        for name, kind in nodes]}))
    plait("plan", "--model", "model.json", "--cluster", "cluster.json", "--global-batch", 48, "--precision", "fp16",
          "--attention", "plain", "--runs-on", "megatron", *words, "-o", "plan.json")
    plait("export", "plan.json", "--to", "megatron", "--launcher", "slurm", "-o", "run")
    return json.loads((Here.folder / "plan.json").read_text())["plan"]


def run_job(site_nodes):
    """What torchrun was told on each node: {name: (rank of the node, words)}."""
    stubs = Stubs(Here.folder, ["torchrun"])
    site_folder = Here.folder / "slurm"
    site_folder.mkdir()
    with OneMachineSlurm(site_folder, site_nodes) as site:
        words = {"SLURM_CONF": site.environment["SLURM_CONF"]}
        stubs.run(["sbatch", "--test-only", "job.sbatch"], Here.folder / "run", **words)
        calls = stubs.run(["sbatch", "--wait", "job.sbatch", "--more", ODD], Here.folder / "run", **words)
    output = "".join(path.read_text() for path in (Here.folder / "run").glob("slurm-*.out"))
    assert calls, output
    told = {}
    for call in calls:
        assert call["words"][-2:] == ["--more", ODD], call["words"]
        told[call["environment"]["SLURMD_NODENAME"]] = (int(word_after(call, "--node-rank")), call["words"])
    assert len(told) == len(calls), calls
    masters = {word_after(call, "--master-addr") for call in calls}
    assert masters == {name for name, (rank, _) in told.items() if rank == 0}, (masters, told)
    return told


def word_after(call, flag):
    return call["words"][call["words"].index(flag) + 1]


def test_every_node_has_its_rank():
    export([(f"n{i}", "H100") for i in range(3)], "--tp", 2, "--dp", 6)
    told = run_job([(f"site{i}", "h100", 4) for i in range(3)])
    assert sorted(rank for rank, _ in told.values()) == [0, 1, 2], told


def test_nodes_of_a_heterogeneous_job_are_of_the_types_of_the_plan():
    nodes = [("a0", "H100"), ("b0", "V100-16GB"), ("b1", "V100-16GB")]
    plan = export(nodes, "--pp", 3, "--tp", 1)
    wanted = [nodes[stage["devices"][0] // 4][1].lower() for stage in plan["stages"]]
    site = [("z0", "v100-16gb", 4), ("z1", "v100-16gb", 4), ("z2", "v100-16gb", 4), ("y0", "h100", 4)]
    types = {name: kind for name, kind, _ in site}
    told = run_job(site)
    got = [types[name] for name, _ in sorted(told.items(), key=lambda node: node[1][0])]
    assert got == wanted and len(set(got)) == 2, (got, wanted)


def test_a_site_without_such_devices_refuses_the_job():
    """What is asked for is what the plan has: Slurm compares."""
    export([("a0", "H100"), ("b0", "A100-80GB")], "--pp", 2)
    site_folder = Here.folder / "slurm"
    site_folder.mkdir()
    with OneMachineSlurm(site_folder, [("n0", "h100", 4), ("n1", "h100", 4)]) as site:
        done = subprocess.run(["sbatch", "--test-only", "job.sbatch"], cwd=Here.folder / "run", capture_output=True,
                              text=True, check=False, env={"PATH": site.environment["PATH"], **site.environment})
    assert done.returncode != 0 and "not available" in done.stderr, (done.returncode, done.stderr)


if __name__ == "__main__":
    if missing():
        print(f"skipped: there is no {', '.join(missing())} (Debian: munge slurmctld slurmd slurm-client)")
        sys.exit(77)
    sys.exit(run_tests(globals()))
