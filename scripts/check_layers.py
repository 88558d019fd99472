#!/usr/bin/env python3
"""Fails when a file includes a header from a layer above or beside its own, or, inside a layer, from a
folder above or beside its own. Run by ctest.

    check_layers.py [SRC]"""
import pathlib
import re
import sys

# Lowest first; layers of one set stand side by side.
LAYERS = [
    {"base"},
    {"model", "cluster"},
    {"profile"},
    {"plan"},
    {"cost"},
    {"search", "graph"},
    {"io", "report"},
    {"export", "validation"},
    {"runtime"},
    {"app"},
    {"cli"},
    {"python", "serve"},  # keywords are the flags of cli/flags
]

# Lower layers that a layer leaves alone: a compiler's program is a graph of its own.
LEFT_ALONE = {"graph": {"model", "plan"}}

# The same inside a layer; "" is the files that stand in the layer's own folder. A layer that is not
# named here has no folders inside.
FOLDERS = {
    "cost": [{"framework", "comm", "pipeline"}, {"op"}, {"layer"}, {""}],
    "search": [{"space/units"}, {"space"}, {"inside", "bound/cover"}, {"bound", "papers", "moves", "paths"},
               {"uniform/mixes"}, {"uniform/division", "uniform/orders", "uniform/layouts"}, {"uniform"}, {"auto", "clusters"}, {""}],
    "graph": [{"hlo", "solve", "choose"}, {"factor"}, {"block"}, {""}, {"search/placement"}, {"search"}],
    "io": [{"format", "shell"}, {"framework", "model/huggingface"}, {"model", "cluster", "graph"}, {"profile"}, {"plan"}],
    "runtime": [{"launch", "lower", "state"}, {"meet", "profiler", "trial"}, {""}, {"torch/comm"}, {"torch/train"},
                {"torch/measure"}, {"torch"}],
    "validation": [{"cells"}, {""}],
    "app": [{"request"}, {"plan"}, {"clusters", "saved", "measured", "known", "tokens", "run", "profile", "graph"}],
    "cli": [{"terminal"}, {"flags"}, {"verbs"}, {""}],
}

INCLUDE = re.compile(r'#include "(\w+)/((?:\w+/)*)\w+\.h"')


def ranks(order):
    return {name: rank for rank, names in enumerate(order) for name in names}


LAYER_RANK = ranks(LAYERS)
FOLDER_RANK = {layer: ranks(order) for layer, order in FOLDERS.items()}


def place(path):
    """src/cost/op/eager.h -> ("cost", "op")"""
    layer, *inside = path.parts[:-1] or ("",)
    return layer, "/".join(inside)


def fault(path, own, other):
    """Why a file of the place `own` may not include one of the place `other`, or None."""
    (layer, folder), (their_layer, their_folder) = own, other
    if layer != their_layer:
        alone = their_layer in LEFT_ALONE.get(layer, ())
        if alone or LAYER_RANK.get(their_layer, 99) >= LAYER_RANK[layer]:
            return f"{layer} may not include {their_layer}"
        return None
    # Tests may use all of their layer.
    if folder == their_folder or path.name.endswith("_test.cpp"):
        return None
    order = FOLDER_RANK.get(layer, {})
    if order.get(their_folder, 99) >= order.get(folder, -1):
        return f"{layer}/{folder} may not include {layer}/{their_folder}"
    return None


def violations(src):
    for path in sorted(src.rglob("*.[hc]*")):
        own = place(path.relative_to(src))
        layer, folder = own
        if layer not in LAYER_RANK:
            yield f"{path}: {layer} is not a layer"
            continue
        if folder not in FOLDER_RANK.get(layer, {"": 0}):
            yield f"{path}: {layer}/{folder} is not in the list of folders of scripts/check_layers.py"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            why = fault(path, own, (match[1], match[2].rstrip("/")))
            if why:
                yield f"{path}:{number}: {why}"


def main():
    bad = list(violations(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "src")))
    print("\n".join(bad) or "layers ok")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
