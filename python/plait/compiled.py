"""What a compiled program of XLA sends: reads the text of jax.stages.Compiled.as_text()."""

import re

_BITS = re.compile(r"(\d+)")
KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")


def _shape_bytes(text):
    """Bytes of each array in a type."""
    sizes = []
    for kind, dims in re.findall(r"(\w+)\[([\d,]*)\]", text):
        bits = 8 if kind == "pred" else int((_BITS.search(kind) or [0, "0"])[1])
        count = 1
        for dim in filter(None, dims.split(",")):
            count *= int(dim)
        sizes.append((count * bits / 8, dims == ""))
    return sizes


def _group_size(line, devices):
    found = re.search(r"replica_groups=\[(\d+),(\d+)\]", line)
    if found:
        return int(found[2])
    # mesh['a'=2,'b'=4] {'b'}, or of a part of an axis {'b':(1)2}; the order of the devices may stand
    # between: mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'b'}
    found = re.search(r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\((?:[^()]|\([^()]*\))*\))?"
                      r"\s*\{([^}]*)\}", line)
    if found:
        sizes = {name: int(size) for name, size in re.findall(r"'([^']*)'=(\d+)", found[1])}
        product = 1
        for name, part in re.findall(r"'([^']*)'(?::\(\d+\)(\d+))?", found[2]):
            product *= int(part) if part else sizes[name]
        return product
    found = re.search(r"replica_groups=\{\{([\d,]+)\}", line)
    if found:
        return len(found[1].split(","))
    if "replica_groups=" in line and "replica_groups={}" not in line:
        raise ValueError("groups of devices are written in an unknown way: " + line.strip()[:400])
    return devices


def collectives(text, devices):
    """What each device sends in a step, by kind: {kind: bytes}. Sums of scalars are left out; what
    stands in a loop counts as often as it runs."""
    text = re.sub(r"/\*.*?\*/", "", text)
    bodies, current = {}, None
    for line in text.splitlines():
        head = re.match(r"(?:ENTRY )?%?([\w.\-]+) .*\{$", line)
        if head and " = " not in line:
            current = head[1]
            bodies[current] = {"lines": [], "entry": line.startswith("ENTRY")}
        elif current:
            bodies[current]["lines"].append(line)
    sent = dict.fromkeys(KINDS, 0.0)

    def visit(name, times):
        for line in bodies[name]["lines"]:
            loop = re.search(r"while\(.*body=%?([\w.\-]+)", line)
            if loop:
                trips = re.search(r'known_trip_count\D+(\d+)', line)
                visit(loop[1], times * (int(trips[1]) if trips else 1))
                continue
            call = re.search(r"(?:to_apply|calls)=%?([\w.\-]+)", line)
            if call and re.search(r" call\(", line):
                visit(call[1], times)
            for branch in re.findall(r"branch_computations=\{([^}]*)\}", line):
                for one in branch.split(","):
                    visit(one.strip().lstrip("%"), times)
            found = re.match(r"\s*(?:ROOT )?%?[\w.\-]+ = (.*?) (" + "|".join(KINDS) +
                             r")(?:-start)?\(", line)
            if not found:
                continue
            kind = found[2]
            group = _group_size(line, devices)
            arrays = [size for size, scalar in _shape_bytes(found[1]) if not scalar]
            total = sum(arrays)
            if kind == "all-reduce":
                total *= 2 * (group - 1) / group
            elif kind == "reduce-scatter":
                total *= group - 1
            elif kind != "collective-permute":
                total *= (group - 1) / group
            sent[kind] += total * times

    for name, body in bodies.items():
        if body["entry"]:
            visit(name, 1)
    return sent
