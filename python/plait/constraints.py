"""Sharding constraints in the StableHLO module of a JAX step: the values of a plan are found by their tags
and pinned."""

import re

from plait.internals import ir, sdy, stablehlo
from plait.tags import functions, inline_calls, tagged


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
        self.module = module
        self.mesh = _ensure_mesh(module, plan)
        self.axes = plan["mesh"]["axes"]
        self.operations = operations  # by tag
        _forget_own(operations, self.mesh)
        self.orders = {tag: _leaf_order(o) for tag, o in self.operations.items()
                       if o.name == "stablehlo.while"}
        self.moved = {}  # (value, way so far): the value at the end of it
        self.kept = {}  # (tag, result): the value where the plan keeps it

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
            if not entry["enters"]:
                self.kept[entry["tag"], entry["result"]] = last

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
            value, loop, barrier = _origin(operation.operands[operand])
            turned, dims = use.get("moved"), use["route"][-1]
            if turned:
                named = self.value_at(turned, value)
                if use.get("again") and named != value:
                    loop = _entered(operation, named)
                    barrier = _origin(_given(value))[2]
                value = named
            if use.get("again"):
                value = self.behind_barrier(value, loop)
            moved = self.moved_value(value, use["route"])
            if turned and turned["permutation"] != sorted(turned["permutation"]):
                dims = [dims[d] for d in turned["permutation"]]
                moved = self.constrained(self.transposed(moved, turned["permutation"]), dims)
            if loop is not None:
                moved = self.constrained(self.anew(moved, barrier), dims, before=operation)
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

    def anew(self, value, barrier):
        """The same value, which the compiler takes for another one in each trip of the loop that a barrier
        stands in, as what the barrier gives: else it would compute before the loop what is to be computed again."""
        loop = barrier.parent.operation if barrier is not None else None
        if loop is None or loop.name != "stablehlo.while":
            return value
        key = (value, "anew", barrier)
        if key not in self.moved:
            block = loop.regions[1].blocks[0]
            given = block.operations[len(block.operations) - 1].operands
            changed = [a for a, b in zip(block.arguments, given) if a != b]
            changed.sort(key=lambda argument: len(_dims_of(argument) or []))
            with ir.InsertionPoint.after(barrier):
                self.moved[key] = stablehlo.OptimizationBarrierOp([value, changed[0]]).results[0] if changed else value
        return self.moved[key]

    def value_at(self, place, operand):
        """What an op gives, or an argument; the operand itself where that is of another kind."""
        key = (place["tag"], place["number"])
        if not place["tag"]:
            value = next(functions(self.module)).regions[0].blocks[0].arguments[place["number"]]
        elif key in self.kept:
            value = self.kept[key]
        else:
            value = self.operations[key[0]].results[self.position(*key)]
        dims = _dims_of(value)
        same = dims is not None and [dims[d] for d in place["permutation"]] == _dims_of(operand)
        if not same and place["permutation"] != sorted(place["permutation"]):
            raise WrongPlan(f"the plan is for another program: {place['tag']} is not transposed as it says")
        return value if same else operand

    def transposed(self, value, permutation):
        key = (value, str(permutation))
        if key not in self.moved:
            with _behind(value):
                self.moved[key] = stablehlo.TransposeOp(value, ir.DenseI64ArrayAttr.get(permutation)).result
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


def _origin(value):
    """The value before the loops that only hand it through and the barriers inside of them (of
    checkpoints), behind the first barrier outside of these; the outermost of these loops, or None; and the
    last of these barriers, or None."""
    origin, outermost, met, last = value, None, None, None
    while True:
        barrier = _barrier_of(value)
        if barrier is not None:
            met = met or _unpinned(value).owner.operation
            origin, value = value, barrier
            continue
        loop = value.owner.owner if isinstance(value.owner, ir.Block) else None
        if loop is None or loop.name != "stablehlo.while":
            return origin, outermost, last
        number = list(value.owner.arguments).index(value)
        body = loop.regions[1].blocks[0]
        if body.operations[len(body.operations) - 1].operands[number] != body.arguments[number]:
            return origin, outermost, last
        origin = value = loop.operands[number]
        outermost, last = loop.operation, met


def _given(value):
    """What an op that changes nothing (x + 0) is given."""
    value = _unpinned(value)
    return value if isinstance(value.owner, ir.Block) or not len(value.owner.operands) else value.owner.operands[0]


def _unpinned(value):
    pinned = not isinstance(value.owner, ir.Block) and value.owner.name == "sdy.sharding_constraint"
    return value.owner.operands[0] if pinned else value


def _entered(operation, value):
    """The outermost loop that an op stands in and a value does not; None where there is none."""
    around = []
    outer = value.owner.owner if isinstance(value.owner, ir.Block) else value.owner.parent
    while outer is not None:
        around.append(outer.operation)
        outer = outer.operation.parent
    entered, outer = None, operation.parent
    while outer is not None and outer.operation not in around:
        if outer.operation.name == "stablehlo.while":
            entered = outer.operation
        outer = outer.operation.parent
    return entered


def _barrier_of(value):
    """What a barrier that gives the value was given, or None; its result may be pinned."""
    value = _unpinned(value)
    if isinstance(value.owner, ir.Block) or value.owner.name != "stablehlo.optimization_barrier":
        return None
    return value.owner.operands[list(value.owner.results).index(value)]


def _behind(value):
    """Where the value is known first."""
    if isinstance(value.owner, ir.Block):
        return ir.InsertionPoint.at_block_begin(value.owner)
    return ir.InsertionPoint.after(value.owner)


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
