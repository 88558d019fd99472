#!/usr/bin/env python3
"""Writes python/plait/_options.py, the types of keyword arguments, from the table of flags that they are.

    python_options.py [--write]     with a Python that has plait installed; without --write it fails when the
                                    file differs"""
import pathlib
import sys

from plait import _core

FILE = pathlib.Path(__file__).resolve().parent.parent / "python/plait/_options.py"
HEAD = '''"""Types of keyword arguments, for type checkers. Written by scripts/python_options.py: do not edit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Union

from typing_extensions import TypedDict

Document = Union[str, os.PathLike[str], Mapping[str, Any]]
Documents = Union[Document, Sequence[Document]]
Number = Union[int, float, str]
Count = Union[int, str]
Words = Union[Count, Sequence[Count]]
Amounts = Union[str, Sequence[str], Mapping[str, Number]]
'''
# Arguments of the functions themselves.
OWN = {
    "Plan": {"model", "cluster", "global_batch"},
    "Compare": {"model", "cluster", "global_batch"},
    "Pareto": {"model", "instances", "global_batch"},
    "Export": {"to", "output"},
}
TYPES = {"": "bool", "N": "Count", "FILE": "Document", "PATH": "Document", "M": "Any", "C": "Document",
         "13,12,..": "Words", "NODES": "Words", "IDS": "Words", "LIST": "Words", "NAME=USD": "Amounts",
         "NODE=F": "Amounts"}


def type_of(entry):
    kind = TYPES.get(entry.value, "Number")
    return "Documents" if kind == "Document" and entry.repeats else kind


def block(name, entries):
    lines = [f"class {name}Options(TypedDict, total=False):"]
    for entry in entries:
        for spelling in [entry.name, *entry.aliases]:
            if spelling not in OWN.get(name, ()):
                lines.append(f"    {spelling}: {type_of(entry)}")
    return "\n".join(lines)


def text():
    blocks = [block(name, getattr(_core, f"{name.lower()}_keywords")())
              for name in ("Plan", "Compare", "Pareto", "Replan", "Estimate", "Explain", "Check", "Export",
                           "Validate", "Import")]
    return "\n\n\n".join([HEAD, *blocks]).replace("\n\n\n\n", "\n\n\n") + "\n"


def main():
    if sys.argv[1:] == ["--write"]:
        FILE.write_text(text(), encoding="utf-8")
        return 0
    if FILE.read_text(encoding="utf-8") == text():
        print("options ok")
        return 0
    print(f"{FILE.name} is not what the flags are: scripts/python_options.py --write")
    return 1


if __name__ == "__main__":
    sys.exit(main())
