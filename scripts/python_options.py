#!/usr/bin/env python3
"""Writes python/plait/_options.py, the types of keyword arguments, from the table of flags that they are.

    python_options.py [--write]     with a Python that has plait installed; without --write it fails when the
                                    file differs"""
import pathlib
import re
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
    "EstimateFrom": {"model", "cluster"},
    "Export": {"to", "output"},
}
NAMES = ("Plan", "Compare", "Pareto", "Replan", "Estimate", "EstimateFrom", "Explain", "Check", "Export", "Validate",
         "Import")
# What all functions that search have is written once.
SEARCHES = ("Plan", "Compare", "Pareto")
TYPES = {"": "bool", "N": "Count", "FILE": "Document", "PATH": "Document", "M": "Any", "C": "Document",
         "13,12,..": "Words", "NODES": "Words", "IDS": "Words", "LIST": "Words", "NAME=USD": "Amounts",
         "NODE=F": "Amounts"}


def type_of(entry):
    kind = TYPES.get(entry.value, "Number")
    return "Documents" if kind == "Document" and entry.repeats else kind


def keywords_of(name):
    """Every spelling of every keyword with its type; those of the function itself are not among them."""
    entries = getattr(_core, re.sub("(?<!^)([A-Z])", r"_\1", name).lower() + "_keywords")()
    return {spelling: type_of(entry) for entry in entries for spelling in [entry.name, *entry.aliases]
            if spelling not in OWN.get(name, ())}


def block(name, base, keywords):
    return "\n".join([f"class {name}Options({base}, total=False):",
                      *(f"    {spelling}: {kind}" for spelling, kind in keywords.items())])


def text():
    known = {name: keywords_of(name) for name in NAMES}
    shared = {spelling: kind for spelling, kind in known[SEARCHES[0]].items()
              if all(known[name].get(spelling) == kind for name in SEARCHES)}
    blocks = [block("Search", "TypedDict", shared)]
    for name, keywords in known.items():
        if name in SEARCHES:
            blocks.append(block(name, "SearchOptions", {k: v for k, v in keywords.items() if k not in shared}))
        else:
            blocks.append(block(name, "TypedDict", keywords))
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
