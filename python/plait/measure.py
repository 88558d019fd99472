"""Times pieces of a program under JAX: blocks under the strategies of a request, and the collectives of
a mesh."""

import json
import math
import os
import pathlib
import time

from plait.constraints import Pinner, tensor_type
from plait.internals import editable, ir, new_context, stablehlo_of
from plait.tags import tag_of, walk

FORM = 2  # of the file of times; src/io/graph/profile_json.cpp reads it
SIZES = (1 << 12, 1 << 16, 1 << 20, 1 << 23)  # bytes of the collectives that are timed


class Cut:
    """The ops with some tags, what they take from elsewhere and what others take from them."""

    def __init__(self, module, tags):
        self.module = module  # lives as long as what points into it
        self.operations, self.inputs = [], []
        chosen = set()
        for operation in walk(module.operation):
            if tag_of(operation) in tags and not _is_nested(operation, chosen):
                self.operations.append(operation)
                chosen.add(operation)
        made = {result for operation in self.operations for result in operation.results}
        self.constants = []
        for operation in self.operations:
            for inner in [operation, *walk(operation)]:
                for operand in inner.operands:
                    if operand in made or operand in self.inputs or _is_inside(operand, operation):
                        continue
                    owner = operand.owner
                    if not isinstance(owner, ir.Block) and owner.name == "stablehlo.constant":
                        if owner not in self.constants:
                            self.constants.append(owner)
                    else:
                        self.inputs.append(operand)
        self.results = [result for operation in self.operations for result in operation.results
                        if any(_top(use.owner, chosen) is None for use in result.uses)
                        or not list(result.uses)]


def _top(operation, chosen):
    """The chosen op that an op is or stands in."""
    while operation is not None and operation.name != "builtin.module":
        if operation.operation in chosen:
            return operation
        operation = operation.parent
    return None


def _is_nested(operation, chosen):
    return _top(operation.parent, chosen) is not None


def _is_inside(value, operation):
    """Made within the regions of an op."""
    owner = value.owner.owner if isinstance(value.owner, ir.Block) else value.owner
    while owner is not None and owner.name != "builtin.module":
        if owner.operation == operation:
            return isinstance(value.owner, ir.Block) or value.owner.operation != operation
        owner = owner.parent
    return False


def _specs_of_inputs(cut, piece):
    """Where each input is: as its first user wants it."""
    wanted = {(use["tag"], use["operand"]): use["spec"] for use in piece["inputs"]}
    specs = {}
    for operation in cut.operations:
        for i, operand in enumerate(operation.operands):
            spec = wanted.get((tag_of(operation), i))
            if spec is not None and operand in cut.inputs:
                specs.setdefault(cut.inputs.index(operand), spec)
    return specs


def _compiled(program, piece, tags, mesh, named):
    """The piece as a compiled function and its arguments, or nothing where it has no ops."""
    import jax
    with new_context():
        cut = Cut(ir.Module.parse(program), tags)
        if not cut.operations:
            return None
        inputs = [jax.ShapeDtypeStruct(*tensor_type(v)) for v in cut.inputs]
        results = [jax.ShapeDtypeStruct(*tensor_type(v)) for v in cut.results]
        specs = _specs_of_inputs(cut, piece)
    shardings = tuple(named(specs.get(i, [])) for i in range(len(inputs)))

    def stand_in(*_):
        return tuple(jax.numpy.zeros(r.shape, r.dtype) for r in results)

    jax.clear_caches()
    lowered = jax.jit(stand_in, in_shardings=shardings, keep_unused=True).lower(*inputs)
    module = editable(lowered)
    with module.context, ir.Location.unknown():
        _fill(module, Cut(ir.Module.parse(program), tags))
        _pin(module, piece, mesh)
    arguments = [jax.device_put(jax.numpy.ones(x.shape, x.dtype), s) for x, s in zip(inputs, shardings)]
    return lowered.compile(), arguments


def _fill(module, cut):
    """Puts the ops of a cut into the function of a stand-in."""
    main = next(o for o in module.body.operations
                if o.operation.name == "func.func" and o.attributes["sym_name"].value == "main")
    block = main.regions[0].blocks[0]
    end = block.operations[len(block.operations) - 1].operation
    become = dict(zip(cut.inputs, block.arguments))
    for operation in [*cut.constants, *cut.operations]:
        with ir.InsertionPoint(end):
            copy = operation.operation.clone()
        for inner in [copy, *walk(copy)]:
            for i, operand in enumerate(inner.operands):
                if operand in become:
                    inner.operands[i] = become[operand]
        become.update(zip(operation.operation.results, copy.results))
    for i, result in enumerate(cut.results):
        end.operands[i] = become[result]


def _pin(module, piece, mesh):
    tags = {tag_of(o): o for o in walk(module.operation) if tag_of(o)}
    pinner = Pinner(module, {"mesh": mesh}, tags)
    pinner.pin_values([v for v in piece["values"] if v["tag"] in tags])
    inputs = [{**u, "route": [u["spec"]], "region": -1} for u in piece["inputs"]]
    pinner.pin_uses([u for u in inputs + piece["uses"] if u["tag"] in tags])
    module.operation.verify()


def fastest(function, arguments):
    """Seconds of the fastest of some runs. Devices that are made of the cores of one machine share
    them: there the time of the processors is taken, which other programs do not disturb."""
    import jax
    shared = jax.devices()[0].platform == "cpu"
    clock, runs = (time.process_time, 5) if shared else (time.perf_counter, 20)
    for _ in range(2):
        jax.block_until_ready(function(*arguments))
    best = math.inf
    for _ in range(runs):
        begin = clock()
        jax.block_until_ready(function(*arguments))
        best = min(best, clock() - begin)
    return best / (os.cpu_count() or 1) if shared else best


def _collective(kind, axes, size, named):
    """A function whose compiled form is one collective, and its argument."""
    import jax
    import jax.numpy as jnp
    count = max(1, size // 4)
    parts = 1
    for axis in axes:
        parts *= named.sizes[axis]
    if kind == "all-gather":  # `size` is what every device has afterwards
        count = -(-count // parts) * parts
        given, wanted, shape, work = [axes], [[]], (count,), lambda x: x
    elif kind == "all-to-all":  # `size` is what every device has
        side = -(-count // parts) * parts
        given, wanted, shape, work = [axes, []], [[], axes], (parts, side), lambda x: x
    else:
        given, wanted, shape, work = [axes, []], [[]], (parts, count), lambda x: x.sum(0)
    x = jax.device_put(jnp.ones(shape, jnp.float32), named(given))
    return jax.jit(work, in_shardings=named(given), out_shardings=named(wanted)), [x]


class Profile:
    """A file of what was timed, written after each entry."""

    def __init__(self, path, mesh):
        self.path = pathlib.Path(path)
        self.content = {"plait_graph_profile": FORM, "mesh": mesh["sizes"], "blocks": [], "transfers": []}
        if self.path.exists():
            known = json.loads(self.path.read_text())
            if known.get("mesh") == mesh["sizes"] and known.get("plait_graph_profile") == FORM:
                self.content = known
        self.keys = {self._key(e) for kind in ("blocks", "transfers") for e in self.content[kind]}

    @staticmethod
    def _key(entry):
        return json.dumps([entry.get(k) for k in ("block", "strategy", "kind", "axes", "bytes")])

    def has(self, entry):
        return self._key(entry) in self.keys

    def add(self, kind, entry):
        self.content[kind].append(entry)
        self.keys.add(self._key(entry))
        temporary = self.path.with_suffix(self.path.suffix + ".tmp")
        temporary.write_text(json.dumps(self.content, indent=1))
        os.replace(temporary, self.path)


def _tasks(request, named, program):
    """(list of the profile, entry, function that gives seconds) of everything to time."""
    axes = request["mesh"]["axes"]
    subsets = [[a for i, a in enumerate(axes) if bits >> i & 1] for bits in range(1, 1 << len(axes))]
    for some in subsets:
        for kind in ("all-reduce", "all-gather", "all-to-all", "reduce-scatter"):
            for size in SIZES:
                entry = {"kind": kind, "axes": some, "bytes": size}
                yield "transfers", entry, lambda k=kind, s=some, n=size: fastest(
                    *_collective(k, s, n, named))
    for piece in sorted(request["pieces"], key=lambda p: p["formula_s"]):
        yield "blocks", {"block": piece["block"], "strategy": piece["strategy"]}, \
            lambda p=piece: _piece_seconds(program, p, request["mesh"], named)


def _piece_seconds(program, piece, mesh, named):
    total = 0.0
    for part in piece["parts"]:
        made = _compiled(program, piece, set(part["tags"]), mesh, named)
        if made is not None:
            total += part["trips"] * max(0.0, fastest(*made) - named.idle)
    return total


def measure(hlo_path, request, output, named, budget):
    """Times what a request names and `output` does not have yet, for at most `budget` seconds. Gives
    counts of what was timed, known, failed and left."""
    profile = Profile(output, request["mesh"])
    program = stablehlo_of(pathlib.Path(hlo_path).read_text())
    report = {"timed": 0, "known": 0, "left": 0, "failed": []}
    begin = time.perf_counter()
    for kind, entry, seconds in _tasks(request, named, program):
        if profile.has(entry):
            report["known"] += 1
        elif time.perf_counter() - begin > budget:
            report["left"] += 1
        else:
            try:
                taken = seconds()
            except Exception as error:  # one piece that does not compile leaves the others
                text = str(error).splitlines()[0] if str(error) else type(error).__name__
                report["failed"].append(f"{entry}: {text[:200]}")
                continue
            if kind == "transfers":
                taken = max(0.0, taken - named.idle)
            profile.add(kind, {**entry, "seconds": taken})
            report["timed"] += 1
    return report
