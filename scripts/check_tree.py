#!/usr/bin/env python3
"""Fails on file and type names that name no idea, on paths of somebody's machine, on texts below the
command line that name flags, and on unfinished marks; warns about files that grew too long. Run by ctest and ./dev lint from the repository root."""
import pathlib
import re
import subprocess
import sys

BANNED = {"util", "utils", "helper", "helpers", "manager", "handler", "info", "data", "misc", "common"}
TEXT = {".h", ".cpp", ".py", ".sh", ".md", ".cmake", ".json", ".txt", ".yml", ".csv", ""}
LINES = 500
MACHINE_PATH = re.compile(r"(?<![\w.])/(home|root|Users|workspace|work|mnt|scratch)/\w")
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")
# Layers whose texts name fields of requests (`tensor`); the command line knows the flags. What
# `export` writes is full of other programs' flags.
FLAGLESS = {"plan", "cost", "search", "report", "validation", "app"}
SPOKEN_FLAG = re.compile(r'"(?:[^"\\]|\\.)*(?<![\w-])--[a-z](?:[^"\\]|\\.)*"')
TYPE = re.compile(r"^\s*(?:struct|class|enum class|enum)\s+(\w+)", re.MULTILINE)


def tree():
    """Files that are, or may be, committed; all of them where there is no git."""
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True
    ) if pathlib.Path(".git").exists() else None
    if listing and listing.returncode == 0:
        return [path for path in map(pathlib.Path, listing.stdout.splitlines()) if path.is_file()]
    skipped = {"build", ".git", ".venv", "__pycache__"}
    return [p for p in sorted(pathlib.Path(".").rglob("*"))
            if p.is_file() and not skipped & set(p.parts)]


def words(name):
    """HostFile_parser -> host, file, parser"""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def complaints(path):
    for word in BANNED & set(words(path.stem)):
        yield f"{path}: '{word}' names no idea; say what the file is about"
    if path.suffix not in TEXT or path.name == "LICENSE":
        return
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md" and not re.match("##? ", text):
        yield f"{path}: begins with no heading; was it formatted as C++?"
    if path.suffix in {".h", ".cpp"}:
        for name in TYPE.findall(text):
            for word in BANNED & set(words(name)):
                yield f"{path}: type {name}: '{word}' names no idea"
    flagless = (path.parts[0] == "src" and path.suffix in {".h", ".cpp"} and path.parts[1] in FLAGLESS
                and not path.name.endswith("_test.cpp"))
    for number, line in enumerate(text.splitlines(), 1):
        if flagless and SPOKEN_FLAG.search(line):
            yield f"{path}:{number}: a text names a flag; name the field between backquotes"
        if MACHINE_PATH.search(line):
            yield f"{path}:{number}: a path of somebody's machine"
        if UNFINISHED.search(line):
            yield f"{path}:{number}: unfinished; do it or open an issue"
        if path.suffix != ".md" and line != line.rstrip():
            yield f"{path}:{number}: blanks at the end of the line"


def main():
    bad = []
    for path in tree():
        bad += complaints(path)
        if path.suffix in {".h", ".cpp", ".py", ".sh"}:
            length = len(path.read_text(encoding="utf-8").splitlines())
            if length > LINES:
                print(f"warning: {path}: {length} lines; split it by idea")
    print("\n".join(bad) or "tree ok")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
