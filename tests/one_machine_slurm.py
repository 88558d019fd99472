"""A Slurm of its own on one machine: controller, nodes and keys in a folder, with GPUs that are empty files."""
import os
import pathlib
import shutil
import socket
import subprocess
import time

PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "sinfo"]
FOLDERS = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
SECONDS = 60

CONFIGURATION = """\
ClusterName=trial
SlurmctldHost={host}
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/controller.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
GresTypes=gpu
"""


def missing():
    """Programs that are not on this machine."""
    return [name for name in PROGRAMS if not shutil.which(name, path=FOLDERS)]


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class OneMachineSlurm:
    """`nodes`: (name, type of GPU, how many), all of which are this machine. A context manager."""

    def __init__(self, folder, nodes):
        self.folder, self.nodes, self.running = pathlib.Path(folder), nodes, []
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": FOLDERS}

    def __enter__(self):
        try:
            self.configure()
            self.start("munged", "--foreground", "--force", "--num-threads=1",
                       *(f"--{what}={self.folder}/munge.{what.split('-')[0]}"
                         for what in ("socket", "key-file", "pid-file", "log-file", "seed-file")))
            self.wait_for(lambda: (self.folder / "munge.socket").exists())
            self.start("slurmctld", "-D")
            for name, _, _ in self.nodes:
                self.start("slurmd", "-D", "-N", name)
            self.wait_for(lambda: self.idle_nodes() == {name for name, _, _ in self.nodes})
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def configure(self):
        (self.folder / "munge.key").write_bytes(os.urandom(1024))
        (self.folder / "munge.key").chmod(0o600)
        for folder in ["state", "spool", *(f"spool/{name}" for name, _, _ in self.nodes)]:
            (self.folder / folder).mkdir()
        for number in range(max(count for _, _, count in self.nodes)):
            (self.folder / f"gpu{number}").touch()
        host = socket.gethostname().split(".")[0]
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        controller, *ports = free_ports(1 + len(self.nodes))
        text = CONFIGURATION.format(host=host, user=user, controller=controller, folder=self.folder)
        devices = ""
        for (name, kind, count), port in zip(self.nodes, ports):
            text += f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 Gres=gpu:{kind}:{count}\n"
            devices += f"NodeName={name} Name=gpu Type={kind} File={self.folder}/gpu[0-{count - 1}]\n"
        text += "PartitionName=all Nodes=ALL Default=YES State=UP\n"
        (self.folder / "slurm.conf").write_text(text)
        (self.folder / "gres.conf").write_text(devices)

    def start(self, name, *words):
        with open(self.folder / f"{name}.out", "ab") as out:
            self.running.append(subprocess.Popen([shutil.which(name, path=FOLDERS), *words], stdout=out, stderr=out,
                                                 stdin=subprocess.DEVNULL, env={**os.environ, **self.environment}))

    def stop(self):
        for process in reversed(self.running):
            process.terminate()
        for process in self.running:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def idle_nodes(self):
        done = subprocess.run(["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"], capture_output=True, text=True, check=False,
                              env={**os.environ, **self.environment})
        return set(done.stdout.split())

    def wait_for(self, is_so):
        end = time.monotonic() + SECONDS
        while not is_so():
            if time.monotonic() > end or any(process.poll() is not None for process in self.running):
                logs = "".join(f"== {path.name}\n{path.read_text(errors='replace')[-1500:]}"
                               for path in sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*.out")))
                raise RuntimeError(f"this Slurm does not start\n{logs}")
            time.sleep(0.1)
