"""One run of the program, and what is wrong with it: how it ended, what it printed, the CPU time and memory that it took."""
import dataclasses
import json
import os
import re
import resource
import signal
import subprocess
import threading

STATUSES = {0, 2, 3}
MOST_MEMORY = 10**9
ADDRESS_SPACE = 8 << 30  # a run that goes wild ends alone
LATE_S = 0.5  # how long after its limit a run may still work, reading and printing included; docs/hardening.md
HANGS_S = 180
LONGEST_LINE = 2000
INTERNAL = re.compile(r"internal error|does not hold|terminate called|std::|/src/[a-z]|\w\.(?:cpp|h):\d|what\(\)")
NEGATIVE_LACK = re.compile(r"-[\d.]+ \w+ too (?:much|little)")
NO_NUMBER = re.compile(r"(?<![\w./-])[-+]?(?:nan|inf)(?![\w.])", re.IGNORECASE)
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


@dataclasses.dataclass
class Run:
    words: list
    status: int
    out: str
    err: str
    cpu_s: float
    memory: int
    faults: list
    limit_s: float | None = None  # of CPU time

    @property
    def late_s(self):
        return max(0.0, self.cpu_s - self.limit_s) if self.limit_s is not None else 0.0


def no_constant(text):
    raise ValueError(f"'{text}' is not a number of JSON")


def read_json(text):
    return json.loads(text, parse_constant=no_constant)


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Bounds:
    """Of CPU time and memory; sanitizers take many times as much."""
    judged = True


def measured(program, words, folder, stop_after_s):
    """(status, stdout, stderr, CPU seconds, bytes); a signal is sent after that many seconds, where it is not None."""
    with subprocess.Popen([program, *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}, preexec_fn=limits if Bounds.judged else None) as process:
        texts = {}
        readers = [threading.Thread(target=lambda name=name: texts.update({name: getattr(process, name).read()})) for name in ("stdout", "stderr")]
        killers = [threading.Timer(HANGS_S, os.kill, (process.pid, signal.SIGKILL))]
        if stop_after_s is not None:
            killers.append(threading.Timer(stop_after_s, os.kill, (process.pid, signal.SIGTERM)))
        for thread in readers + killers:
            thread.start()
        # The process is waited for without being reaped first, so that no timer meets another process of its number.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        for killer in killers:
            killer.cancel()
            killer.join()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        for reader in readers:
            reader.join()
    return process.returncode, texts["stdout"], texts["stderr"], used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def faults_of_texts(run, is_json):
    if INTERNAL.search(run.err) or INTERNAL.search(run.out):
        yield "speaks of its inside"
    if is_json and run.status == 0:
        try:
            read_json(run.out)
        except ValueError as error:
            yield f"is not JSON: {error}"
    elif NO_NUMBER.search(run.out):
        yield f"prints {NO_NUMBER.search(run.out)[0]}"
    if NEGATIVE_LACK.search(run.err):
        yield f"says {NEGATIVE_LACK.search(run.err)[0]}"
    if NO_NUMBER.search(run.err):
        yield f"says {NO_NUMBER.search(run.err)[0]}"
    for text in (run.err, run.out):
        if CONTROLS.search(text):
            yield f"prints the control character {CONTROLS.search(text)[0]!r}"
    if run.status == 2 and not run.err.startswith("plait: ") and "\nplait: " not in run.err:
        yield "refuses without a message"
    if run.status in (1, 2) and run.out.strip() and not is_json:
        yield "refuses and prints a result"
    if any(len(line) > LONGEST_LINE for line in run.err.splitlines()):
        yield "says a line of more than 2,000 characters"


def judged(program, words, folder, limit_s=None, stop_after_s=None, statuses=None):
    """A Run. `limit_s` is the CPU time that it was allowed, in all its threads."""
    status, out, err, cpu_s, memory = measured(program, words, folder, stop_after_s)
    run = Run(words, status, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), cpu_s, memory, [], limit_s)
    allowed = set(statuses or STATUSES) | ({130, -signal.SIGTERM} if stop_after_s is not None else set())
    if status == -signal.SIGKILL:
        run.faults.append(f"hangs: {HANGS_S} s")
    elif status not in allowed:
        run.faults.append(f"ends by signal {-status}" if status < 0 else f"exit status {status}")
    run.faults += faults_of_texts(run, "--json" in words)
    if Bounds.judged and limit_s is not None and cpu_s > limit_s + LATE_S:
        run.faults.append(f"takes {cpu_s:.2f} s of CPU time, allowed {limit_s:.2f} + {LATE_S}")
    if Bounds.judged and memory > MOST_MEMORY:
        run.faults.append(f"takes {memory / 1e9:.2f} GB")
    return run
