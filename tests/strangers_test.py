#!/usr/bin/env python3
"""Strangers who connect to the ranks of plait train neither end nor change a run, and are noticed."""
import hashlib
import hmac
import json
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from program import Here, plait, run_tests

MODEL = {"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 4, "n_positions": 16,
         "n_ctx": 16, "vocab_size": 256}
SECONDS = 240
SECRET = "0123456789abcdef0123456789abcdef"
GREETING = b"plaitmt1"


def own_address():
    """An address of this machine that is not the loopback, or None. No packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            address = probe.getsockname()[0]
        except OSError:
            return None
    return None if address.startswith("127.") else address


def make_plan():
    (Here.folder / "tiny.json").write_text(json.dumps(MODEL))
    plait("plan", "--model", "tiny.json", "--cluster", "T4:2", "--global-batch", 4, "--precision",
          "fp32", "--zero", 0, "--pp", 1, "--tp", 1, "--dp", 2, "-o", "plan.json")


def start(*words, **environment):
    """What it prints goes to files: a pipe that nobody reads would hold the ranks up."""
    files = [tempfile.TemporaryFile("w+", dir=Here.folder) for _ in range(2)]
    process = subprocess.Popen(
        [Here.program, "train", "plan.json", "--device", "cpu", "--json", *map(str, words)],
        cwd=Here.folder, stdout=files[0], stderr=files[1],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment})
    process.printed = files
    return process


def texts_of(process):
    """Waits for its end."""
    process.wait(timeout=SECONDS)
    for file in process.printed:
        file.seek(0)
    return [file.read() for file in process.printed]


def start_ranks(address, port, steps, secrets=(SECRET, SECRET), words=()):
    """Two ranks as on two machines."""
    names = {"WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": address,
             "MASTER_PORT": str(port)}
    return [start("--steps", steps, *words, RANK=str(rank), **names,
                  **({"PLAIT_RUN_SECRET": secret} if secret else {}))
            for rank, secret in enumerate(secrets)]


def ended(process, status=0):
    out, told = texts_of(process)
    assert process.returncode == status, f"exit {process.returncode}\n{told[-3000:]}"
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return {row["step"]: row["loss"] for row in rows if "loss" in row}, told


def listeners(pids):
    """(address, port) of the TCP sockets that these processes listen on."""
    inodes = set()
    for pid in pids:
        for link in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
            try:
                inodes.add(os.readlink(link))
            except OSError:
                pass
    found = []
    for table, digits in (("tcp", 8), ("tcp6", 32)):
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] != "0A" or f"socket:[{words[9]}]" not in inodes:
                continue
            host, port = words[1].split(":")
            host = ".".join(str(b) for b in reversed(bytes.fromhex(host))) if digits == 8 else host
            found.append((host, int(port, 16)))
    return found


def ranks_of(process):
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(pid) for pid in children.read_text().split()]


def wait_for(condition, seconds=60):
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError("waited in vain")


def connect(place):
    stranger = socket.create_connection(place, timeout=10)
    stranger.settimeout(15)
    return stranger


def rest_of(stranger):
    """What comes until the other side closes; the time that takes."""
    begin, heard = time.monotonic(), b""
    try:
        while block := stranger.recv(65536):
            heard += block
    except ConnectionResetError:
        pass
    return heard, time.monotonic() - begin


def well_formed(stranger, secret):
    """The greeting of a rank; gives the server's verdict."""
    hello = b""
    while len(hello) < 40:
        hello += stranger.recv(40 - len(hello))
    nonce, rank = os.urandom(32), (1).to_bytes(4, "little")
    proof = hmac.new(secret.encode(), b"rank" + hello[8:] + nonce + rank, hashlib.sha256).digest()
    stranger.sendall(GREETING + nonce + rank + proof)
    return stranger.recv(1)


def said_to(place, bytes_sent):
    stranger = connect(place)
    try:
        stranger.sendall(bytes_sent)
    except OSError:
        pass
    return rest_of(stranger)


def mirrored(place):
    """The server's own hello comes back to it, over the same and over another connection."""
    first, second = connect(place), connect(place)
    hello = b""
    while len(hello) < 40:
        hello += first.recv(40 - len(hello))
    for stranger in (first, second):
        stranger.sendall(hello + (1).to_bytes(4, "little") + hello[8:])
        assert rest_of(stranger)[0][-33:] in (b"", b"r" + bytes(32))


def slow_hand(place):
    """A byte of a greeting at a time is no sign of life: it ends like silence."""
    stranger, begin = connect(place), time.monotonic()
    try:
        for byte in GREETING + os.urandom(68):
            stranger.sendall(bytes([byte]))
            time.sleep(0.3)
    except OSError:
        pass
    assert time.monotonic() - begin < 10


def attack(place):
    """Connects, sends rubbish, sends messages of libtorch's store and of plait's own, is silent."""
    connect(place).close()
    rubbish = connect(place)
    rubbish.sendall(os.urandom(60))
    heard, _ = rest_of(rubbish)
    assert len(heard) <= 40, "a nonce at most"
    # TCPStore: VALIDATE with its magic number, then SET of a key that ranks would read.
    key = b"plait/failed"
    libtorch = connect(place)
    libtorch.sendall(b"\x00" + (0x3C85F7CE).to_bytes(4, "little") + b"\x01" +
                     len(key).to_bytes(8, "little") + key + (3).to_bytes(8, "little") + b"0 0")
    assert len(rest_of(libtorch)[0]) <= 40
    guess = connect(place)
    assert well_formed(guess, "f" * 32) == b"r"
    guess.close()
    for other in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01" + os.urandom(500), b"SSH-2.0-x\r\n"):
        heard, _ = said_to(place, other)
        assert len(heard) <= 40, other
    # The refusal has a verdict and nothing that proves the secret.
    heard, _ = said_to(place, GREETING + os.urandom(32) + b"\xff" * 4 + os.urandom(1 << 20))
    assert heard[40:] in (b"", b"r" + bytes(32)), heard
    mirrored(place)
    slow_hand(place)
    silent = connect(place)
    heard, seconds = rest_of(silent)
    assert len(heard) <= 40 and seconds < 10, seconds
    # Last, since no more than 20 strangers are told of.
    for _ in range(50):  # ends at once, with a reset
        gone = connect(place)
        gone.sendall(GREETING[:random.randrange(1, 8)])
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gone.close()
    many = [connect(place) for _ in range(300)]
    for one in many:
        one.close()


def test_ranks_of_one_machine_listen_to_nobody_else():
    """Gloo's ports are on the loopback, and closed once the ranks have connected."""
    make_plan()
    process = start("--local", 2, "--steps", 100)
    seen = set()
    begin = time.monotonic()
    while process.poll() is None and time.monotonic() - begin < SECONDS:
        seen |= set(listeners(ranks_of(process)))
        time.sleep(0.02)
    got, told = ended(process)
    assert seen and all(host == "127.0.0.1" for host, _ in seen), seen
    assert len(got) == 100, told[-2000:]


def network_place():
    address = own_address()
    if address is None:
        print("skipped: this machine has the loopback only")
    return address, random.Random().randrange(20000, 30000)


def test_strangers_do_not_disturb_a_run_over_the_network():
    address, port = network_place()
    if address is None:
        return
    make_plan()
    wanted, _ = ended(start("--local", 2, "--steps", 40))
    ranks = start_ranks(address, port, 1000000, words=("--checkpoint", "run"))
    wait_for(lambda: any(p == port for _, p in listeners([ranks[0].pid])))
    places = listeners([ranks[0].pid])
    assert all(host == address for host, _ in places), places
    attack((address, port))
    ranks[1].send_signal(signal.SIGTERM)  # ends both, in order, however fast the machine is
    got, told = ended(ranks[0], status=130)
    ended(ranks[1], status=130)
    for step, loss in wanted.items():
        assert abs(got[step] - loss) < 1e-5, (step, got[step], loss)
    assert len(got) > len(wanted)
    for sentence in (f"ranks meet at {address}:{port} on ", "speaks another protocol",
                     "showed a wrong secret", "has not shown the secret of the run within 6 s",
                     "ended without showing the secret"):
        assert sentence in told, (sentence, told[:2000])


def test_a_port_that_a_stranger_holds_in_silence_is_noticed():
    address, port = network_place()
    if address is None:
        return
    make_plan()
    with socket.socket() as stranger:
        stranger.bind((address, port))
        stranger.listen()
        begin = time.monotonic()
        first, second = start_ranks(address, port, 10)
        _, told = ended(first, status=75)
        assert "another program has the port" in told, told
        _, told = ended(second, status=75)
        assert "accepts connections but does not greet" in told, told
        assert time.monotonic() - begin < 30, "6 s of silence, and the start of libtorch"


def test_ranks_of_several_machines_need_the_same_secret():
    address, port = network_place()
    if address is None:
        return
    make_plan()
    for rank in start_ranks(address, port, 10, ("", "")):
        assert "PLAIT_RUN_SECRET" in ended(rank, status=2)[1]
    first, second = start_ranks(address, port, 10, (SECRET, "another " + SECRET))
    assert "is not the secret of rank 0" in ended(second, status=2)[1]
    first.kill()
    first.wait()


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
