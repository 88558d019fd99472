#!/usr/bin/env python3
"""Fails on file and type names that name no idea, on paths of somebody's machine, on texts below the
command line that name flags, on headers that newer versions of fmt want, on algorithms that clang 14 does not
compile, on unfinished marks, on files that
are far too long, on folders of src with too many files, on two types of one name, and on READMEs that are
not true of their folder; warns about files that grew too long. Run by ctest and ./dev lint from the
repository root."""
import fnmatch
import pathlib
import re
import subprocess
import sys

BANNED = {"util", "utils", "helper", "helpers", "manager", "handler", "info", "data", "misc", "common"}
TEXT = {".h", ".cpp", ".py", ".sh", ".md", ".cmake", ".json", ".txt", ".yml", ".csv", ""}
LINES = 400  # from here on a warning ..
MOST_LINES = 500  # .. and from here on a fault
FILES = 35  # the same of a folder of src
MOST_FILES = 45
GENERATED = "do not edit"  # in the first line of a file that a script writes
NAMED_FILE = re.compile(r"`([\w*]+\.(?:h|cpp))`")
NAMED = re.compile(r"`([\w*]+)(?:\.(?:h|cpp))?`")
MACHINE_PATH = re.compile(r"(?<![\w.])/(home|root|Users|workspace|work|mnt|scratch)/\w")
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")
# Layers and folders whose texts name fields of requests (`tensor`); the command line knows the flags.
# What `export` writes and `runtime/launch` starts is full of other programs' flags.
FLAGLESS = {"model", "cluster", "profile", "plan", "cost", "search", "io/cluster", "report", "validation", "runtime/lower",
            "runtime/meet", "runtime/profiler", "runtime/state", "runtime/torch/train", "app"}
SPOKEN_FLAG = re.compile(r'"(?:[^"\\]|\\.)*(?<![\w-])--[a-z](?:[^"\\]|\\.)*"')
# Algorithms that give a range, which clang 14 does not compile with the headers of GCC 12.
RANGE_GIVEN = re.compile(r"std::ranges::(unique|remove|remove_if|rotate|partition|stable_partition|equal_range|search)\(")
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
        if "fmt::join(" in text and "<fmt/ranges.h>" not in text:
            yield f"{path}: fmt::join needs <fmt/ranges.h>, from version 11 of fmt on"
        for name in RANGE_GIVEN.findall(text):
            yield f"{path}: clang 14 does not compile std::ranges::{name}; take std::{name}"
        for name in TYPE.findall(text):
            for word in BANNED & set(words(name)):
                yield f"{path}: type {name}: '{word}' names no idea"
    flagless = (path.parts[0] == "src" and path.suffix in {".h", ".cpp"} and not path.name.endswith("_test.cpp")
                and any(folder.relative_to("src").as_posix() in FLAGLESS for folder in list(path.parents)[:-2]))
    for number, line in enumerate(text.splitlines(), 1):
        if flagless and SPOKEN_FLAG.search(line):
            yield f"{path}:{number}: a text names a flag; name the field between backquotes"
        if MACHINE_PATH.search(line):
            yield f"{path}:{number}: a path of somebody's machine"
        if UNFINISHED.search(line):
            yield f"{path}:{number}: unfinished; do it or open an issue"
        if path.suffix != ".md" and line != line.rstrip():
            yield f"{path}:{number}: blanks at the end of the line"


def length_complaints(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) <= LINES or GENERATED in lines[0]:
        return
    text = f"{path}: {len(lines)} lines; split it by idea"
    if len(lines) > MOST_LINES:
        yield text
    else:
        print(f"warning: {text}")


def readme_complaints(folder, names, below):
    """A README names every header of its folder and every .cpp without one, by name or by a pattern
    such as `*_verb.cpp`, and no file that is neither there nor in a folder below."""
    readme = folder / "README.md"
    if not readme.is_file():
        yield f"{readme}: is missing; which question does the folder answer, in which files?"
        return
    text = readme.read_text(encoding="utf-8")
    for pattern in NAMED_FILE.findall(text):
        if not fnmatch.filter(below, pattern):
            yield f"{readme}: {pattern} is not in the folder"
    patterns = set(NAMED.findall(text))
    for name in sorted(names):
        stem, _, ending = name.partition(".")
        own_header = ending == "cpp" and f"{stem}.h" in names
        if stem.endswith("_test") or own_header:
            continue
        if not any(fnmatch.fnmatch(stem, pattern) for pattern in patterns):
            yield f"{readme}: does not mention {name}"


def folder_complaints(files):
    source = [path for path in files if path.parts[0] == "src"]
    folders = {folder for path in source for folder in list(path.parents)[:-1]}
    for folder in sorted(folders):
        names = {path.name for path in source if path.parent == folder}
        code = {name for name in names if name.endswith((".h", ".cpp"))}
        below = {path.name for path in source if folder in path.parents}
        yield from readme_complaints(folder, code, below)
        text = f"{folder}: {len(names)} files; divide it by idea"
        if len(names) > MOST_FILES:
            yield text
        elif len(names) > FILES:
            print(f"warning: {text}")


def named_types(path):
    """plait::graph::Shape and the like: types that all files of the program see, by their whole names."""
    spaces = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"namespace(?: ([\w:]+))? \{", line):
            spaces.append(found[1] or "")
        elif line.startswith("}  // namespace") and spaces:
            spaces.pop()
        elif (found := re.match(r"(?:struct|class|enum class|enum) (\w+)(?: final)?(?: :[^;]*)? \{", line)) \
                and "" not in spaces:
            yield "::".join([*spaces, found[1]])


def double_types(files):
    """Two types of one name, in files that never meet, still share the functions that templates make of them:
    the linker keeps one std::vector<T>::~vector() for both."""
    homes = {}
    for path in files:
        if path.suffix in {".h", ".cpp"} and path.parts[0] in {"src", "tests"}:
            for name in named_types(path):
                if homes.setdefault(name, path) != path:
                    yield f"{path}: {name} is another type in {homes[name]}"


def main():
    bad = []
    files = tree()
    bad += double_types(files)
    for path in files:
        bad += complaints(path)
        if path.suffix in {".h", ".cpp", ".py", ".sh"}:
            bad += length_complaints(path)
    bad += folder_complaints(files)
    print("\n".join(bad) or "tree ok")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
