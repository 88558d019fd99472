"""Tags and sharding constraints in the StableHLO module of a JAX step: every op gets a tag, by which the
values of a plan are found and pinned."""

import re

from plait.internals import ir, sdy, stablehlo


def functions(module):
    for operation in module.body.operations:
        if operation.operation.name == "func.func":
            yield operation


def walk(operation):
    """All operations inside, in the order of the text."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from walk(inner.operation)


def tagged(module):
    """(tag, operation) of every operation: function and position."""
    for function in functions(module):
        name = function.attributes["sym_name"].value
        for position, operation in enumerate(walk(function.operation)):
            yield f"{name}:{position}", operation


def inline_calls(module):
    """Makes one function of a module, so that a function that is called twice has two sets of tags.
    (The compiler's own pass leaves calls in loops alone.)"""
    with module.context:
        known = {function.attributes["sym_name"].value: function for function in functions(module)}
        _expand(known["main"], known, {"main"})
        for name, function in known.items():
            if name != "main":
                function.operation.erase()
        for operation in list(walk(known["main"].operation)):
            if _says_nothing(operation):
                operation.results[0].replace_all_uses_with(operation.operands[0])
                operation.erase()
            else:
                _put_constant_last(operation)


def _says_nothing(operation):
    """A constraint to the mesh of one device, which JAX writes for keys of random numbers, but not where
    arguments have shardings: tags must not depend on it."""
    return operation.name == "sdy.sharding_constraint" and "<@empty_mesh," in str(operation)


def _put_constant_last(operation):
    """As the conversion to HLO does, so that operands have the same numbers on both sides."""
    if operation.name.split(".")[-1] not in ("add", "multiply", "maximum", "minimum", "and", "or", "xor"):
        return
    first, second = operation.operands
    if _is_constant(first) and not _is_constant(second):
        operation.operands[0], operation.operands[1] = second, first


def _is_constant(value):
    if isinstance(value.owner, ir.Block):
        return False
    if value.owner.name == "stablehlo.broadcast_in_dim":
        return _is_constant(value.owner.operands[0])
    return value.owner.name == "stablehlo.constant"


def _expand(function, known, expanded):
    """Replaces the calls in a function, after those in what it calls."""
    for call in [o for o in walk(function.operation) if o.name == "func.call"]:
        name = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
        if name not in expanded:
            expanded.add(name)
            _expand(known[name], known, expanded)
        _inline(call, known[name].regions[0].blocks[0])


def _inline(call, block):
    become = dict(zip(block.arguments, call.operands))
    for operation in block.operations:
        if operation.operation.name == "func.return":
            for result, value in zip(list(call.results), operation.operands):
                result.replace_all_uses_with(become[value])
            break
        with ir.InsertionPoint(call):
            copy = operation.operation.clone()
        for inner in [copy, *walk(copy)]:
            for i, operand in enumerate(inner.operands):
                if operand in become:
                    inner.operands[i] = become[operand]
        become.update(zip(operation.operation.results, copy.results))
    call.erase()


class CannotPlan(ValueError):
    """The step has something that a plan cannot say anything about."""


def add_tags(module):
    inline_calls(module)
    with module.context:
        for tag, operation in tagged(module):
            if operation.name == "sdy.manual_computation":
                raise CannotPlan("the step divides a part of itself among devices (shard_map): trace it "
                                 "without, so that the part can be planned like the rest")
            if operation.name in ("func.return", "stablehlo.return", "func.call"):
                continue
            entries = {}
            if "mhlo.frontend_attributes" in operation.attributes:
                known = ir.DictAttr(operation.attributes["mhlo.frontend_attributes"])
                entries = {a.name: a.attr for a in known}
            entries["plait"] = ir.StringAttr.get(tag)
            operation.attributes["mhlo.frontend_attributes"] = ir.DictAttr.get(entries)
            name = f"{operation.name.split('.')[-1]}_at_{tag.partition(':')[2]}"
            operation.location = ir.Location.name(name, operation.location)


# "multiply_at_9_broadcast_in_dim_at_8.1 = f32[4]{0} multiply(...)" is the op at 9, of what that at 8 makes.
_NAMED = re.compile(r"^(\s*(?:ROOT )?%?)(\w+?)_at_(\d+)((?:_\w+)?\.\d+ = .*? )([a-z][a-z\d\-]*)(\(.*)$", re.M)


def with_own_tags(text):
    """HLO text of a tagged module with every tag on the instructions of its own op, which their names have.
    The conversion leaves out an op that gives back an operand of its own (x + 0, a transpose of a transpose)
    and hands its attributes, the tag among them, to the op that made the operand; it drops those of an op
    that it writes as several. Names stay."""
    def own(line):
        before, name, position, middle, opcode, rest = line.groups()
        if 'plait="main:' in rest:
            rest = re.sub(r'plait="main:\d+"', f'plait="main:{position}"', rest)
        elif opcode not in ("constant", "broadcast", "tuple", "get-tuple-element"):
            rest += f', frontend_attributes={{plait="main:{position}"}}'
        return f"{before}{name}_at_{position}{middle}{opcode}{rest}"
    return _without_inner_tags(re.sub(r"\b(\w+)_at_(\d+)\.(\d+)\b", r"\1.\2.\3", _NAMED.sub(own, text)))


def _without_inner_tags(text):
    """What an op applies to pairs of elements has no tags: it is a part of the op, and has its name."""
    applied = set(re.findall(r"\b(?:select|scatter)=%?([\w.\-]+)", text))
    applied |= set(re.findall(r" (?!call\()[a-z][a-z\d\-]*\([^\n]*\bto_apply=%?([\w.\-]+)", text))
    lines, inside = [], False
    for line in text.split("\n"):
        head = re.match(r"%?([\w.\-]+) (?:.* )?\{$", line)
        if head or line.startswith(("ENTRY", "}")):
            inside = head is not None and head[1] in applied
        lines.append(re.sub(r', frontend_attributes=\{plait="main:\d+"\}', "", line) if inside else line)
    return "\n".join(lines)


def _sharding_text(dims, mesh, names):
    """Axes that divide nothing are named as well: else the compiler may use them."""
    inner = ", ".join("{" + ", ".join(f'"{a}"' for a in axes) + "}" for axes in dims)
    copies = [f'"{a}"' for a in names if all(a not in axes for axes in dims)]
    replicated = f", replicated={{{', '.join(copies)}}}" if copies else ""
    return f"<@{mesh}, [{inner}]{replicated}>"


def _type_text(value):
    return re.sub(r"tensor<(.*)>", r"\1", str(value.type))


class WrongPlan(ValueError):
    """The plan is for another program."""


# Ops that HLO and StableHLO call by the same name; others of StableHLO may become several of HLO (a
# conversion to an integer is a select).
_SAME_NAME = {"dot", "add", "subtract", "multiply", "divide", "maximum", "minimum", "exponential", "log",
              "convolution", "gather", "scatter", "select", "compare", "concatenate"}


def _may_be(operation, opcode):
    if any("complex<" in str(v.type) for v in (*operation.operands, *operation.results)):
        return True  # becomes several ops of real numbers
    name = operation.name.split(".")[-1].replace("dot_general", "dot")
    return name == opcode or opcode not in _SAME_NAME or name not in _SAME_NAME


def _ensure_mesh(module, plan):
    """The name of the plan's mesh in the module, which may have others: of the program's own."""
    axes = ", ".join(f'"{a}"={s}' for a, s in zip(plan["mesh"]["axes"], plan["mesh"]["sizes"]))
    names = []
    for operation in module.body.operations:
        if operation.operation.name != "sdy.mesh":
            continue
        names.append(operation.attributes["sym_name"].value)
        if f"<[{axes}]>" in str(operation.attributes["mesh"]):
            return names[-1]
    name = "mesh"
    while name in names:
        name += "_of_plan"
    with ir.InsertionPoint.at_block_begin(module.body):
        ir.Operation.parse(f"sdy.mesh @{name} = <[{axes}]>")
    return name


def _forget_own(operations, mesh):
    """Constraints of the program's own say nothing: the plan has what it keeps of them."""
    for operation in operations.values():
        if operation.name == "sdy.sharding_constraint":
            dims = ", ".join(["{?}"] * len(_dims_of(operation.results[0])))
            operation.attributes["sharding"] = ir.Attribute.parse(f"#sdy.sharding<@{mesh}, [{dims}]>")


class Pinner:
    """Writes a plan into a module: every value where the plan keeps it, every operand on the way that
    the plan gives it."""

    def __init__(self, module, plan, operations):
        self.mesh = _ensure_mesh(module, plan)
        self.axes = plan["mesh"]["axes"]
        self.operations = operations  # by tag
        _forget_own(operations, self.mesh)
        self.orders = {tag: _leaf_order(o) for tag, o in self.operations.items()
                       if o.name == "stablehlo.while"}
        self.moved = {}  # (value, way so far): the value at the end of it

    def find(self, entry):
        operation = self.operations.get(entry["tag"])
        if operation is None or not _may_be(operation, entry["op"]):
            raise WrongPlan(f"the plan is for another program: it has {entry['op']} at "
                            f"{entry['tag']}, the step has "
                            f"{operation.name if operation else 'nothing'}")
        return operation

    def position(self, tag, number):
        order = self.orders.get(tag)
        return number if order is None else order[number] if number < len(order) else number

    def pin_values(self, entries):
        for entry in entries:
            operation = self.find(entry)
            number = self.position(entry["tag"], entry["result"])
            value = (operation.regions[1].blocks[0].arguments if entry["enters"]
                     else operation.results)[number]
            if _dims_of(value) != entry["dims"]:
                raise WrongPlan(f"the plan is for another program: {entry['tag']} is "
                                f"{_type_text(value)}, the plan says {entry['dims']}")
            first = last = self.constrained(value, entry["route"][0])
            for dims in entry["route"][1:]:
                last = self.constrained(last, dims)
            value.replace_all_uses_except(last, first.owner.operation)

    def pin_barriers(self, main, arguments):
        """What a barrier gives stays where it was."""
        given = list(main.regions[0].blocks[0].arguments)
        for operation in self.operations.values():
            if operation.name != "stablehlo.optimization_barrier":
                continue
            for operand, result in zip(operation.operands, operation.results):
                if operand in given:
                    made = self.constrained(result, arguments[given.index(operand)]["spec"])
                elif not isinstance(operand.owner, ir.Block) and \
                        operand.owner.name == "sdy.sharding_constraint":
                    made = self.sharded(result, operand.owner.attributes["sharding"])
                else:
                    continue
                result.replace_all_uses_except(made, made.owner.operation)

    def constrained(self, value, dims, before=None):
        text = _sharding_text(dims, self.mesh, self.axes)
        return self.sharded(value, ir.Attribute.parse("#sdy.sharding" + text), before)

    def sharded(self, value, sharding, before=None):
        place = ir.Location.unknown() if isinstance(value.owner, ir.Block) else value.owner.location
        with _behind(value) if before is None else ir.InsertionPoint(before):
            return sdy.ShardingConstraintOp(value, sharding, loc=place).result

    def pin_uses(self, entries):
        for use in entries:
            operation = self.operations.get(use["tag"])
            if operation is None:
                continue
            operand = self.position(use["tag"], use["operand"])
            if use["region"] >= 0:
                if use["region"] >= len(operation.regions):
                    continue
                block = operation.regions[use["region"]].blocks[0]
                operation = block.operations[len(block.operations) - 1].operation
            if operand >= len(operation.operands) or \
                    _dims_of(operation.operands[operand]) != use["dims"]:
                continue
            value = operation.operands[operand]
            if use.get("again"):
                outside, loop = _outside_loops(value)
                moved = self.moved_value(self.behind_barrier(outside, loop), use["route"])
                if loop is not None:
                    moved = self.constrained(moved, use["route"][-1], before=operation)
            else:
                moved = self.moved_value(value, use["route"])
            operation.operands[operand] = moved

    def pin_results(self, main, entries):
        """What replaces an argument goes to where the argument is."""
        block = main.regions[0].blocks[0]
        last = block.operations[len(block.operations) - 1].operation
        for number, entry in enumerate(entries):
            if entry["route"] and _dims_of(last.operands[number]) == entry["dims"]:
                last.operands[number] = self.moved_value(last.operands[number], entry["route"])

    def behind_barrier(self, value, loop):
        """The same value for what is moved a second time, and once more for each loop: the compiler does
        not see that it is the same."""
        key = (value, "again", loop)
        if key not in self.moved:
            with _behind(value):
                self.moved[key] = stablehlo.OptimizationBarrierOp([value]).results[0]
        return self.moved[key]

    def moved_value(self, value, route):
        """The value after the steps of a route; each step stands once, right behind the one before."""
        key = (value,)
        for dims in route:
            key += (str(dims),)
            if key not in self.moved:
                self.moved[key] = self.constrained(value, dims)
            value = self.moved[key]
        return value


def add_constraints(module, plan):
    """Pins every value of the plan, and every operand that is wanted elsewhere."""
    with module.context, ir.Location.unknown():
        inline_calls(module)
        pinner = Pinner(module, plan, dict(tagged(module)))
        main = next(functions(module))
        pinner.pin_values(plan["values"])
        pinner.pin_barriers(main, plan["arguments"])
        pinner.pin_uses(plan["uses"])
        pinner.pin_results(main, plan["results"])
    module.operation.verify()


def _leaf_order(loop):
    """Where each value that HLO's loop carries stands in StableHLO's: HLO has those first that the
    body changes."""
    block = loop.regions[1].blocks[0]
    given = list(block.operations[len(block.operations) - 1].operands)
    changed = [i for i, value in enumerate(given) if value != block.arguments[i]]
    return changed + [i for i in range(len(given)) if i not in changed]


def _outside_loops(value):
    """The value before the loops that only hand it through, seen through the barriers inside of them
    (of checkpoints); and the outermost of these loops, or None."""
    outside, outermost = value, None
    while True:
        owner = value.owner
        if not isinstance(owner, ir.Block):
            if owner.name != "stablehlo.optimization_barrier":
                return outside, outermost
            value = owner.operands[list(owner.results).index(value)]
            continue
        loop = owner.owner
        if loop.name != "stablehlo.while":
            return outside, outermost
        number = list(owner.arguments).index(value)
        body = loop.regions[1].blocks[0]
        if body.operations[len(body.operations) - 1].operands[number] != body.arguments[number]:
            return outside, outermost
        outside = value = loop.operands[number]
        outermost = loop


def _behind(value):
    """Where the value is known first."""
    if isinstance(value.owner, ir.Block):
        return ir.InsertionPoint.at_block_begin(value.owner)
    return ir.InsertionPoint.after(value.owner)


def tag_of(operation):
    """The tag that an op of a converted program carries; "" where it has none."""
    if "mhlo.frontend_attributes" not in operation.attributes:
        return ""
    known = ir.DictAttr(operation.attributes["mhlo.frontend_attributes"])
    return next((ir.StringAttr(a.attr).value for a in known if a.name == "plait"), "")


_TYPES = {"i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "ui8": "uint8",
          "ui16": "uint16", "ui32": "uint32", "ui64": "uint64", "f16": "float16", "bf16": "bfloat16",
          "f32": "float32", "f64": "float64"}


def tensor_type(value):
    """(dimensions, name of the type) of a value. ValueError for what is not an array."""
    kind = ir.RankedTensorType(value.type)
    return tuple(kind.shape), _TYPES[str(kind.element_type)]


def _dims_of(value):
    try:
        return list(ir.RankedTensorType(value.type).shape)
    except ValueError:
        return None
