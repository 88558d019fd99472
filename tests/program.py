"""The program as the tests beside this file run it: as a user and as a script would.

    cli_test.py --program build/release/plait [NAME...]

Each function called test_... states a fact in its name; NAMEs choose some of them.
"""
import argparse
import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import tempfile
import time
import traceback

SECONDS = 60
SMALL = ["plan", "--model", "gpt2", "--cluster", "2xA100-80GB:4", "--global-batch", "32"]
MIXED = ["plan", "--model", "gpt2-large", "--cluster", "1xA100-80GB:4+2xV100-16GB:4",
         "--global-batch", "32", "--precision", "fp16"]


class Here:
    """What is run, and where: every test has a folder of its own."""
    program = ""
    folder = pathlib.Path()


def plait(*words, status=0, **environment):
    """(stdout, stderr) of the program; fails when the exit status is another, None = 0 or 3."""
    done = subprocess.run([Here.program, *map(str, words)], cwd=Here.folder, capture_output=True, text=True,
                          timeout=SECONDS, stdin=subprocess.DEVNULL,
                          env={**os.environ, "COLUMNS": "100", **environment})
    expected = (0, 3) if status is None else (status,)
    assert done.returncode in expected, f"{words}: exit {done.returncode}\n{done.stderr}{done.stdout}"
    return done.stdout, done.stderr


def answer(*words, **options):
    return json.loads(plait(*words, "--json", **options)[0])


def on_terminal(*words, interrupt_after=None, columns=100):
    """(exit status, all output) with stdout and stderr on a terminal of so many columns."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(Here.folder)
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns)}
        environment.pop("NO_COLOR", None)
        os.execve(Here.program, [Here.program, *words], environment)
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


def run_tests(module):
    """Runs the test_... functions of a module by its command line; for sys.exit()."""
    parser = argparse.ArgumentParser(description=module["__doc__"].splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    Here.program = str(pathlib.Path(options.program).resolve())
    failed = 0
    tests = {name: test for name, test in module.items() if name.startswith("test_")}
    for name in options.names or tests:
        with tempfile.TemporaryDirectory() as folder:
            Here.folder = pathlib.Path(folder)
            try:
                tests[name]()
            except Exception:  # pylint: disable=broad-except
                failed += 1
                print(f"{name} FAILED\n{traceback.format_exc()}")
    print(f"{len(options.names or tests) - failed} ok, {failed} failed")
    return failed > 0
