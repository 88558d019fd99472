"""Programs that stand for launchers: they write down their words and start what they are told to."""
import json
import os
import pathlib
import subprocess

# Starts one process a node as the real program does: with its variables, one after the other.
STUB = r'''#!/usr/bin/env python3
import json, os, subprocess, sys, time
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
# At once: others write at the same time.
line = json.dumps({"name": name, "words": words, "environment": dict(os.environ)}) + "\n"
os.write(os.open(os.environ["RECORD"], os.O_WRONLY | os.O_APPEND), line.encode())
def run_sh():
    return words[next(i for i, word in enumerate(words) if word.endswith("run.sh")):]
# What a process on another machine has of this environment.
far = {name: os.environ[name] for name in ("RECORD", "HOME") if name in os.environ} | {"PATH": "/usr/bin:/bin"}
if name == "srun":
    nodes = int(os.environ["STUB_NODES"])
    for rank in range(nodes):
        code = subprocess.run(run_sh(), env={**os.environ, "SLURM_PROCID": str(rank)}).returncode
        if code: sys.exit(code)
if name == "mpirun":
    passed = {words[i + 1]: os.environ[words[i + 1]] for i, word in enumerate(words) if word == "-x"}
    for rank in range(int(words[words.index("-np") + 1])):
        code = subprocess.run(run_sh(), env={**far, **passed, "OMPI_COMM_WORLD_RANK": str(rank)}).returncode
        if code: sys.exit(code)
if name == "ssh":
    if words[-2] == os.environ.get("STUB_DEAD_HOST"):
        # Not before the others have written down that they were started: they are stopped then.
        hosts = int(os.environ["STUB_HOSTS"])
        while open(os.environ["RECORD"]).read().count('{"name": "ssh"') < hosts: time.sleep(0.02)
        sys.exit(255)
    if "STUB_SECONDS" in os.environ: time.sleep(float(os.environ["STUB_SECONDS"]))
    sys.exit(subprocess.run(["sh", "-c", words[-1]], env=far, cwd="/").returncode)
if name == "scontrol":
    print("first-host\nsecond-host")
'''
NAMES = ["torchrun", "srun", "mpirun", "ssh", "scontrol", "accelerate", "python3"]


class Stubs:
    def __init__(self, folder, names=tuple(NAMES)):
        self.bin = pathlib.Path(folder) / "stubs"
        self.bin.mkdir()
        self.record = self.bin / "record.jsonl"
        interpreter = os.path.realpath("/proc/self/exe")
        for name in names:
            (self.bin / name).write_text(STUB.replace("/usr/bin/env python3", interpreter))
            (self.bin / name).chmod(0o755)

    def run(self, words, cwd, status=0, **more):
        """What the stubs wrote down while the command ran; fails where it ends with another status."""
        self.record.write_text("")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "OMPI", "NODE_RANK"))}
        environment = {**kept, "PATH": f"{self.bin}:{os.environ['PATH']}", "RECORD": str(self.record),
                       **more}
        done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == status, f"{words}: exit {done.returncode}\n{done.stderr}{done.stdout}"
        return [json.loads(line) for line in self.record.read_text().splitlines()]
