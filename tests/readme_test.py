#!/usr/bin/env python3
"""Runs every command of the documents and follows their links to files, so that no document shows
what does not work.

    readme_test.py --program build/release/plait [DOCUMENT...]

Blocks are told apart by the words after the three back-quotes:

    sh           every line is run by bash in one temporary folder per document, with the program on
                 PATH and examples/ linked; a line that fails, fails the test
    sh status 3  the same for commands that must end with this status; what they say on stderr
                 follows their output
    sh no-run    skipped; allowed only for commands that install, build or need a GPU
    text output  what the command just above prints on stdout, whole or in part: `...` stands for
                 any text. With PLAIT_UPDATE_GOLDEN=1 a block that differs is rewritten: each of its
                 lines becomes the printed line that is most like it, and `...` stay.
"""
import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
FENCE = re.compile(r"^```(.*)$")
NOT_RUN = re.compile(r"(?:\./dev|python3 -m venv|pip|sudo|apt|apt-get|git|docker|cmake|ctest|"
                     r"plait (?:train|profile|trial|graph profile))\b|export PATH=")
SECONDS = 60


class Failure(Exception):
    pass


def blocks(lines):
    """(words after the fence, first line, end line) of every fenced block; lines count from 0."""
    start = None
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if not fence:
            continue
        if start is None:
            words, start = fence[1].split(), number + 1
        else:
            yield words, start, number
            start = None
    if start is not None:
        raise Failure(f"line {start}: a block that is never closed")


def commands(lines, first):
    """(line number, command): comments dropped, lines that end in a backslash joined."""
    command, start = "", 0
    for number, line in enumerate(lines, first + 1):
        if not command:
            start = number
        command += line
        if line.endswith("\\"):
            command = command[:-1] + " "
            continue
        if command.strip() and not command.lstrip().startswith("#"):
            yield start, command.strip()
        command = ""


def run(command, folder, program, status=0):
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "COLUMNS": "100"}
    try:
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, text=True,
                              env=environment, capture_output=True, timeout=SECONDS,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise Failure(f"took over {SECONDS} s: {command}") from None
    if done.returncode != status:
        raise Failure(f"exit status {done.returncode}: {command}\n{done.stderr}{done.stdout}")
    return done.stdout + (done.stderr if status else "")


def as_shown(output):
    return [line.rstrip() for line in output.strip("\n").splitlines()]


def matches(shown, printed):
    """`...` inside a line stands for part of a line; alone on a line, for any number of lines."""
    pattern = ""
    for line in shown:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += r"[^\n]*?".join(re.escape(part) for part in line.split("...")) + r"\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def refreshed(shown, printed):
    """The shown lines as they are printed now, `...` lines kept; all that is printed where a line
    is like none of them."""
    lines, at = [], 0
    for line in shown:
        if line.strip() == "...":
            lines.append(line)
            continue
        likeness = [difflib.SequenceMatcher(None, line, other).ratio() for other in printed[at:]]
        if not likeness or max(likeness) < 0.4:
            return printed
        best = at + likeness.index(max(likeness))
        if best > at and lines and lines[-1].strip() != "...":
            lines.append("...")
        lines.append(printed[best])
        at = best + 1
    return lines if matches(lines, printed) else printed


def check_links(path, lines):
    for number, line in enumerate(lines, 1):
        for target in LINK.findall(line):
            if "://" not in target and not (path.parent / target).exists():
                raise Failure(f"line {number}: there is no {target}")


def check_document(path, program, update):
    """Runs one document; gives the number of commands run."""
    lines = path.read_text(encoding="utf-8").splitlines()
    check_links(path, lines)
    count, printed, rewritten = 0, None, []
    with tempfile.TemporaryDirectory() as folder:
        if (ROOT / "examples").is_dir():
            os.symlink(ROOT / "examples", pathlib.Path(folder) / "examples")
        for words, first, end in list(blocks(lines)):
            if words == ["sh", "no-run"]:
                for number, command in commands(lines[first:end], first):
                    if not NOT_RUN.match(command):
                        raise Failure(f"line {number}: not run, but could be: {command}")
            elif words[:1] == ["sh"] and (len(words) == 1 or words[1] == "status"):
                status = int(words[2]) if len(words) > 2 else 0
                for number, command in commands(lines[first:end], first):
                    try:
                        printed = as_shown(run(command, folder, program, status))
                    except Failure as failure:
                        raise Failure(f"line {number}: {failure}") from None
                    count += 1
            elif words == ["text", "output"]:
                if printed is None:
                    raise Failure(f"line {first}: output of no command")
                if matches(lines[first:end], printed):
                    continue
                if not update:
                    raise Failure(f"line {first}: the output is now\n" + "\n".join(printed))
                rewritten.append((first, end, refreshed(lines[first:end], printed)))
    for first, end, printed in reversed(rewritten):
        lines[first:end] = printed
    if rewritten:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("documents", type=pathlib.Path, nargs="*")
    options = parser.parse_args()
    program = options.program.resolve()
    documents = options.documents or [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
    failed = False
    for document in documents:
        try:
            count = check_document(document, program, os.environ.get("PLAIT_UPDATE_GOLDEN") == "1")
            print(f"{document.name}: {count} commands ok")
        except Failure as failure:
            print(f"{document.name}, {failure}")
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
