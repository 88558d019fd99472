#!/usr/bin/env python3
"""Random legal problems, planned, and what is found given to the other verbs; prints what goes wrong.

    campaign.py --program build/release/plait --problems 500 --jobs 8

What counts as wrong is in judge_run.py: an abort, a hang, another exit status than 0, 2 or 3, broken JSON, a search over its limit, over 1 GB
of memory; and here: a plan that another verb refuses or prices otherwise, a file that is left behind. Problem N of a seed is always the
same, so that `--seed S --first N --problems 1 --keep FOLDER` repeats it; `--csv FILE` has what each run took, and how late it was.
"""
import argparse
import collections
import concurrent.futures
import csv
import json
import math
import multiprocessing
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

from draw_clusters import any_offers
from draw_problems import any_change, draw_problem
from found_before import FOUND_BEFORE
from judge_run import LATE_S, Bounds, judged, read_json

EXPORTS = ["megatron", "deepspeed", "torchtitan", "fsdp", "jax", "metis", "amp", "fasop", "aceso"]
PLANNERS = 6  # each has a limit of its own
EXPLAINED = 3  # searches, the same, on all cores
LONGEST_READ = 10_000_000
LAUNCHERS = ["torchrun", "slurm", "mpirun", "ssh"]


class Session:
    """The runs of one problem, in a folder of its own."""

    def __init__(self, program, problem, folder):
        self.program, self.problem, self.folder = program, problem, folder
        self.runs, self.faults = [], []
        self.expected = set(problem.files)
        for name, text in problem.files.items():
            (folder / name).write_text(text, encoding="utf-8")

    def run(self, *words, writes=(), **options):
        words = [str(word) for word in words]
        run = judged(self.program, words, self.folder, **options)
        self.expected |= set(writes)
        left = {path.name for path in self.folder.iterdir()} - self.expected
        if left:
            run.faults.append(f"leaves files: {', '.join(sorted(left))}")
            self.expected |= left
        self.runs.append(run)
        self.faults += [(run, fault) for fault in run.faults]
        return run

    def fault(self, run, text):
        self.faults.append((run, text))


def limit_words(problem):
    return ["--time-limit", f"{round(problem.limit_s * 1000)}ms", "--threads", problem.threads]


def plan(session):
    """True where a plan was found and saved. What is refused is asked again without pins and wishes."""
    problem = session.problem
    run = plan_once(session, problem.source, problem.asked)
    if run.status == 2:
        run = plan_once(session, problem.plain, [])
    return run.status == 0 and (session.folder / "plan.json").exists()


def plan_once(session, source, asked):
    problem = session.problem
    is_json = problem.random.random() < 0.6
    stop = problem.random.uniform(0, problem.limit_s) if problem.random.random() < 0.05 else None
    words = ["plan", *source, *asked, *limit_words(problem), "-o", "plan.json", *(["--json"] if is_json else [])]
    if problem.random.random() < 0.1:
        words += ["--log", "log.csv"]
    run = session.run(*words, writes=["plan.json", "log.csv"], limit_s=problem.limit_s * problem.threads, stop_after_s=stop)
    saved = session.folder / "plan.json"
    if run.status != 0 and saved.exists() and stop is None:
        session.fault(run, "saves a plan and ends with another status than 0")
    if run.status == 0 and not saved.exists():
        session.fault(run, "ends with 0 and saves nothing")
    return run


def is_same(first, second):
    return math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-15)


def judge_prices(session, predicted):
    run = session.run("estimate", "plan.json", "--json", statuses=[0])
    if run.status == 0 and not run.faults:
        estimate = read_json(run.out)
        if not is_same(estimate["step_s"], predicted["step_s"]):
            session.fault(run, f"prices the plan at {estimate['step_s']} s, the search at {predicted['step_s']} s")
        if not (estimate["step_s"] > 0 and estimate["peak_memory_GiB"] >= 0):
            session.fault(run, f"prices the plan at {estimate['step_s']} s and {estimate['peak_memory_GiB']} GiB")
    run = session.run("check", "plan.json", "--json", statuses=[0])
    if run.status == 0 and not run.faults and not read_json(run.out)["valid"]:
        session.fault(run, "finds the plan invalid")
    run = session.run("estimate", "plan.json", "--trace", "trace.json", writes=["trace.json"], statuses=[0, 2])
    if run.status == 2 and "events, at most" not in run.err:
        session.fault(run, "refuses a timeline that is not long")
    trace = session.folder / "trace.json"
    # What this program takes itself would be counted as that of the runs it starts.
    if not trace.exists() or trace.stat().st_size > LONGEST_READ:
        return
    try:
        read_json(trace.read_text(encoding="utf-8"))
    except ValueError as error:
        session.fault(run, f"writes a trace that is not JSON: {error}")


def node_names(cluster):
    return [node["name"] + ("-0" if node.get("count", 1) > 1 else "") for node in cluster["nodes"]]


def judge_searches(session, saved):
    problem, random = session.problem, session.problem.random
    session.run("explain", "plan.json", "--time-limit", f"{round(problem.limit_s * 1000)}ms", *(["--json"] if random.random() < 0.5 else []), statuses=[0],
                limit_s=EXPLAINED * problem.limit_s * os.cpu_count())
    run = session.run("replan", "plan.json", *any_change(random, node_names(saved["cluster"])), *limit_words(problem), "-o", "replanned.json",
                      writes=["replanned.json"], limit_s=2 * problem.limit_s * problem.threads)
    if run.status == 0:
        session.run("diff", "plan.json", "replanned.json", statuses=[0, 2])
    session.run("diff", "plan.json", "plan.json", "--json", statuses=[0])
    if random.random() < 0.1:
        session.run("compare", *problem.source, *limit_words(problem), *(["--json"] if random.random() < 0.5 else []),
                    limit_s=PLANNERS * (problem.limit_s * problem.threads + LATE_S) - LATE_S)


def judge_mixes(session):
    """What to rent, of two or three instances."""
    problem, random = session.problem, session.problem.random
    rest = [*problem.plain[:2], *problem.plain[4:]] if problem.plain[2] == "--cluster" else []
    if not rest or "--device" in rest or any(word.startswith("--price") for word in rest):
        return
    session.run("pareto", *rest, "--instances", ",".join(any_offers(random)), *limit_words(problem), *(["--json"] if random.random() < 0.5 else []),
                limit_s=problem.limit_s * problem.threads)


def judge_export(session, target):
    problem, random = session.problem, session.problem.random
    folder = f"to_{target}"
    words = ["export", "plan.json", "--to", target, "-o", folder, "--time-limit", f"{round(problem.limit_s * 1000)}ms"]
    if random.random() < 0.6:
        words += ["--launcher", random.choice(LAUNCHERS)]
    if random.random() < 0.2:
        words += ["--nearest"]
    run = session.run(*words, writes=[folder])
    out = session.folder / folder
    if run.status != 0 and out.exists() and any(out.iterdir()):
        session.fault(run, "writes files and ends with another status than 0")
    if run.status == 0:
        judge_files(session, run, out, target)


def judge_files(session, run, out, target):
    for path in sorted(out.rglob("*")):
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        try:
            if path.suffix == ".json":
                read_json(text)
            elif path.suffix == ".py":
                compile(text, path.name, "exec")
        except (ValueError, SyntaxError) as error:
            session.fault(run, f"writes {path.name} with a fault: {error}")
        if path.suffix in (".sh", ".sbatch") and subprocess.run(["bash", "-n", path], capture_output=True, check=False).returncode:
            session.fault(run, f"writes {path.name}, which bash does not read")
    if target == "megatron":
        session.run("estimate", "--from", "megatron", f"to_{target}/run.sh", *cluster_words(session.problem.source))


def cluster_words(source):
    out = []
    for flag in ("--cluster", "--device"):
        if flag in source:
            out += source[source.index(flag):][:2]
    return out


def one_problem(options, number):
    """(number, runs, faults as text, seconds of CPU, how the plan ended)"""
    problem = draw_problem(options.seed, number)
    with tempfile.TemporaryDirectory(prefix="campaign") as name:
        folder = pathlib.Path(options.keep) / str(number) if options.keep else pathlib.Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        session = Session(options.program, problem, folder)
        if problem.random.random() < 0.05:
            judge_mixes(session)
        if plan(session):
            saved = read_json((folder / "plan.json").read_text(encoding="utf-8"))
            judge_prices(session, saved["predicted"])
            judge_searches(session, saved)
            for target in problem.random.sample(EXPORTS, options.exports):
                judge_export(session, target)
    texts = [f"{number}: plait {shlex.join(run.words)}\n    exit {run.status}: {fault}\n    {last_line(run.err)}" for run, fault in session.faults]
    for run in session.runs:
        run.out = ""
        run.err = last_line(run.err)
    return number, session.runs, texts


def last_line(text):
    return (text.strip().splitlines() or [""])[-1][:300]


def kind_of(message):
    """A message without its names and numbers."""
    return re.sub(r"'[^']*'|[\d.,]+", "_", message)[:110]


class Count:
    def __init__(self):
        self.problems = self.runs = self.legal = self.planned = 0
        self.cpu_s = self.memory = self.late_s = 0.0
        self.statuses = collections.Counter()
        self.messages = collections.Counter()
        self.faults = []
        self.rows = []

    def add(self, number, runs, texts):
        self.problems += 1
        self.rows += [[number, run.words[0], run.status, *(round(value, 3) for value in (run.limit_s or 0, run.cpu_s, run.late_s)), round(run.memory / 1e6)]
                      for run in runs]
        self.runs += len(runs)
        self.late_s = max([self.late_s, *(run.late_s for run in runs)])
        plans = [run.status for run in runs if run.words[0] == "plan"]
        self.legal += plans[-1] != 2
        self.planned += plans[-1] == 0
        self.cpu_s += sum(run.cpu_s for run in runs)
        self.memory = max([self.memory, *(run.memory for run in runs)])
        self.faults += texts
        for run in runs:
            self.statuses[f"{run.words[0]} {run.status}"] += 1
            if run.status in (2, 3):
                self.messages[f"{run.words[0]} {run.status}: {kind_of(last_line(run.err))}"] += 1

    def text(self):
        return (f"{self.problems} problems, {self.legal} legal, {self.planned} planned; {self.runs} runs, {self.cpu_s:.0f} s of CPU time, "
                f"{self.cpu_s / max(1, self.problems):.2f} s a problem, at most {self.memory / 1e6:.0f} MB and {self.late_s:.2f} s late; {len(self.faults)} faults")


def found_before(options):
    for words, limit_s in FOUND_BEFORE:
        words = [*words, "--time-limit", f"{round(limit_s * 1000)}ms", "--threads", "1"]
        run = judged(options.program, words, None, limit_s=limit_s, statuses=[0, 3])
        yield run, [f"found before: plait {shlex.join(words)}\n    exit {run.status}: {fault}" for fault in run.faults]


def run_all(options):
    count = Count()
    for run, texts in found_before(options):
        count.add(-1, [run], texts)
        print(*texts, sep="\n", end="\n" if texts else "")
    end = time.monotonic() + 60 * options.minutes
    # By fork, which takes the settings along.
    with concurrent.futures.ProcessPoolExecutor(options.jobs, multiprocessing.get_context("fork")) as pool:
        waiting, numbers = set(), iter(range(options.first, options.first + options.problems))
        last = options.first - 1
        known = len(count.faults)
        while True:
            while len(waiting) < options.jobs and time.monotonic() < end and (number := next(numbers, None)) is not None:
                waiting.add(pool.submit(one_problem, options, number))
                last = number
            if not waiting:
                break
            done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                count.add(*future.result())
                texts = count.faults[known:]
                known = len(count.faults)
                for text in texts:
                    print(text, flush=True)
    return count, last


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--seed", default=str(int(time.time()) // 86400), help="today's day by default")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf, help="no further problem is begun after so long")
    parser.add_argument("--exports", type=int, default=3, help="targets that a plan is exported to, of nine")
    parser.add_argument("--keep", help="a folder for the files of every problem")
    parser.add_argument("--unbounded", action="store_true", help="judge neither CPU time nor memory: for builds with sanitizers")
    parser.add_argument("--csv", help="a file with a row for each run")
    parser.add_argument("--messages", action="store_true", help="count what was refused, and why")
    options = parser.parse_args()
    Bounds.judged = not options.unbounded
    options.program = str(pathlib.Path(options.program).resolve())
    print(f"--seed {options.seed} --first {options.first}", flush=True)
    count, last = run_all(options)
    if options.messages:
        for message, times in count.messages.most_common():
            print(f"{times:6} {message}")
    if options.csv:
        with open(options.csv, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([["problem", "verb", "status", "limit_s", "cpu_s", "late_s", "memory_MB"], *count.rows])
    print(json.dumps(dict(sorted(count.statuses.items()))))
    print(f"{count.text()}; next: --seed {options.seed} --first {last + 1}")
    return bool(count.faults)


if __name__ == "__main__":
    sys.exit(main())
