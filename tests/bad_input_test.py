#!/usr/bin/env python3
"""Runs every case of tests/bad_input.txt: wrong files and flags, each with its exact error.

    bad_input_test.py --program build/release/plait

A case is a title, files, and commands with their exit status and what they print on stderr:

    == zero GPUs
    hosts.txt:
    worker-1 slots=0
    $ plan --model gpt2 --cluster hosts.txt --device T4 --global-batch 8
    exit 2
    plait: hosts.txt:1: ...

`...` stands for any part of a line: numbers of the cost model do not belong into this table.

Every case has a folder of its own. Files that cannot be written in a text file are made below.
With PLAIT_UPDATE_GOLDEN=1 the table is rewritten with what the program says now.
"""
import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

TABLE = pathlib.Path(__file__).resolve().parent / "bad_input.txt"
LEAST_COMMANDS = 60
SECONDS = 10  # a hang, not a benchmark: the cases take milliseconds


def make_special_files(folder):
    (folder / "folder").mkdir()
    (folder / "garbage.bin").write_bytes(bytes(range(256)) * 16)
    (folder / "garbage.json").write_bytes(b"{" + bytes(range(128, 256)))
    (folder / "not_utf8.json").write_bytes(b'{"model_type": "gpt2", "name": "\xff\xfe"}')
    (folder / "deep.json").write_text("[" * 1_000_000)
    (folder / "deep_object.json").write_text('{"a":' * 200_000)
    (folder / "deep_closed.json").write_text("[" * 1_000_000 + "]" * 1_000_000)
    (folder / "long_line.txt").write_text("x" * 1_000_000 + " slots=8\n")
    os.mkfifo(folder / "pipe")
    (folder / "round").symlink_to("round")
    (folder / "nul.txt").write_bytes(b"worker-1\0 slots=8\n")


def parse(text):
    """[(title, {file: content}, [[command, status, [line of stderr]]])]"""
    cases, file = [], None
    for line in text.splitlines():
        if line.startswith("== "):
            cases.append((line[3:], {}, []))
            file = None
        elif not cases:
            continue
        elif line.startswith("$ "):
            cases[-1][2].append([line[2:], None, []])
        elif cases[-1][2]:
            command = cases[-1][2][-1]
            if match := re.fullmatch(r"exit (\d+)", line):
                command[1] = int(match[1])
            elif line:
                command[2].append(line)
        elif match := re.fullmatch(r"([\w.-]+):", line):
            file = match[1]
            cases[-1][1][file] = ""
        elif file:
            cases[-1][1][file] += line + "\n"
    return cases


def run(program, command, folder):
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}
    done = subprocess.run([program, *shlex.split(command)], cwd=folder, env=environment,
                          capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    return done.returncode, done.stderr.decode("utf-8", "replace").splitlines(), done.stdout


def matches(expected, lines):
    patterns = [".*?".join(map(re.escape, line.split("..."))) for line in expected]
    return len(patterns) == len(lines) and all(map(re.fullmatch, patterns, lines))


def shown(case):
    title, files, commands = case
    out = f"== {title}\n"
    for name, content in files.items():
        out += f"{name}:\n{content}"
    for command, status, lines in commands:
        out += f"$ {command}\nexit {status}\n" + "".join(line + "\n" for line in lines)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    program = parser.parse_args().program.resolve()
    text = TABLE.read_text(encoding="utf-8")
    cases = parse(text)
    failures, commands = [], 0
    for title, files, runs in cases:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            make_special_files(folder)
            for file, content in files.items():
                (folder / file).write_text(content, encoding="utf-8")
            for case in runs:
                commands += 1
                try:
                    status, lines, stdout = run(program, case[0], folder)
                except subprocess.TimeoutExpired:
                    failures.append(f"{title}\n  {case[0]}\n  hangs")
                    continue
                if status not in (2, 3):
                    failures.append(f"{title}\n  {case[0]}\n  exit status {status}")
                if stdout and status == 2:  # where nothing fits, what takes the memory is shown
                    failures.append(f"{title}\n  {case[0]}\n  prints a result: {stdout[:200]}")
                if status == case[1] and matches(case[2], lines):
                    continue
                failures.append(f"{title}\n  {case[0]}\n  exit {status}\n  " + "\n  ".join(lines))
                case[1:] = [status, lines]
    if os.environ.get("PLAIT_UPDATE_GOLDEN") == "1":
        head = text[:text.index("== ")]
        TABLE.write_text(head + "\n".join(map(shown, cases)), encoding="utf-8")
        return 0
    if commands < LEAST_COMMANDS:
        failures.append(f"only {commands} commands")
    print("\n".join(failures) or f"{commands} wrong commands refused as they should be")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
