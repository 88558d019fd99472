#!/usr/bin/env python3
"""plait train and plait profile --comm under the launchers that are there: torchrun, mpirun, srun.

torchrun is looked for in PATH and as $TORCHRUN. Where no Slurm answers, its variables are set by hand."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

from program import Here, plait, run_tests

MODEL = {"plait_model": 1, "name": "tiny", "transformer": {
    "layers": 4, "hidden": 32, "heads": 4, "vocabulary": 61, "sequence": 16}}
RANKS = 2
SECONDS = 180
TRAIN = ["train", "plan.json", "--device", "cpu", "--steps", "3", "--json"]
PROFILE = ["profile", "--comm", "--device", "cpu", "--sizes", "1024,65536", "--per-point", "10ms",
           "-o", "links.json"]
OURS = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "OMPI_", "PMI", "SLURM_")


def clean(**more):
    """The environment without what a launcher around these tests may have said."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(OURS)}
    return {**kept, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", **more}


def ended(words, **more):
    done = subprocess.run(words, cwd=Here.folder, capture_output=True, text=True, timeout=SECONDS,
                          stdin=subprocess.DEVNULL, env=clean(**more))
    assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stderr[-3000:]}"
    return done.stdout


def make_plan():
    (Here.folder / "tiny.json").write_text(json.dumps(MODEL))
    plait("plan", "--model", "tiny.json", "--cluster", f"T4:{RANKS}", "--global-batch", 8,
          "--precision", "fp32", "--dp", RANKS, "-o", "plan.json")


def losses(text):
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [row["loss"] for row in rows if "loss" in row]


def both_verbs_work(launcher, **more):
    make_plan()
    alone = losses(ended([Here.program, *TRAIN, "--local", str(RANKS)]))
    got = losses(ended([*launcher, Here.program, *TRAIN], **more))
    assert len(got) == 3 and all(abs(a - b) < 1e-5 * b for a, b in zip(got, alone)), (got, alone)
    ended([*launcher, Here.program, *PROFILE], **more)
    assert json.loads((Here.folder / "links.json").read_text())["collectives"]


def test_torchrun():
    found = os.environ.get("TORCHRUN") or shutil.which("torchrun")
    if found is None:
        return print("skipped: there is no torchrun")
    both_verbs_work([found, "--nproc-per-node", str(RANKS), "--no-python"])
    both_verbs_work([found, "--standalone", "--nproc-per-node", str(RANKS), "--no-python"])


def test_mpirun():
    found = shutil.which("mpirun")
    if found is None:
        return print("skipped: there is no mpirun (Debian: openmpi-bin)")
    both_verbs_work([found, "--oversubscribe", "-np", str(RANKS)],
                    OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


# What srun -n 2 tells its tasks, as far as anybody here reads it.
SRUN = r"""#!/bin/sh
export SLURM_JOB_ID=$PPID SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_NTASKS=2 SLURM_NODEID=0
export SLURM_STEP_NODELIST=127.0.0.1 SLURM_STEP_TASKS_PER_NODE=2 SLURM_STEP_NUM_NODES=1
for task in 0 1; do
  SLURM_PROCID=$task SLURM_LOCALID=$task "$@" & tasks="$tasks $!"
done
status=0
for task in $tasks; do wait "$task" || status=$?; done
exit $status
"""


def controller_answers():
    sinfo = shutil.which("sinfo")
    return sinfo is not None and subprocess.run([sinfo], capture_output=True, check=False).returncode == 0


def test_srun():
    found = shutil.which("srun")
    if found is not None and controller_answers():
        return both_verbs_work([found, "-n", str(RANKS)])
    print("there is no srun with a controller: its variables are set by hand")
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "srun")
        with open(script, "w", encoding="utf-8") as file:
            file.write(SRUN)
        return both_verbs_work(["sh", script])


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
