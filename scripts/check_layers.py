#!/usr/bin/env python3
"""Fails when a file includes a header from a layer above or beside its own. Run by ctest."""
import pathlib
import re
import sys

LAYERS = [
    {"base"},
    {"model", "cluster"},
    {"profile"},
    {"plan"},
    {"cost"},
    {"search"},
    {"io", "export", "report"},
    {"runtime"},
    {"cli", "python"},
]
RANK = {module: rank for rank, layer in enumerate(LAYERS) for module in layer}


def violations(src):
    for path in sorted(src.rglob("*.[hc]*")):
        own = path.relative_to(src).parts[0]
        if own not in RANK:
            yield f"{path}: {own} is not a layer"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'#include "(\w+)/', line)
            if match and match[1] != own and RANK.get(match[1], 99) >= RANK[own]:
                yield f"{path}:{number}: {own} may not include {match[1]}"


bad = list(violations(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "src")))
print("\n".join(bad) or "layers ok")
sys.exit(bool(bad))
