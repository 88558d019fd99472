"""Tags and sharding constraints in the StableHLO module of a JAX step: every op gets a tag, by which the
values of a plan are found and pinned. Uses jaxlib.mlir, of which JAX promises nothing."""

import re


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


def add_tags(module):
    import jaxlib.mlir.ir as ir
    with module.context:
        for tag, operation in tagged(module):
            if operation.name in ("func.return", "stablehlo.return", "func.call"):
                continue
            entries = {}
            if "mhlo.frontend_attributes" in operation.attributes:
                known = ir.DictAttr(operation.attributes["mhlo.frontend_attributes"])
                entries = {a.name: a.attr for a in known}
            entries["plait"] = ir.StringAttr.get(tag)
            operation.attributes["mhlo.frontend_attributes"] = ir.DictAttr.get(entries)


def _sharding_text(dims):
    inner = ", ".join("{" + ", ".join(f'"{a}"' for a in axes) + "}" for axes in dims)
    return f"#sdy.sharding<@mesh, [{inner}]>"


def _type_text(value):
    return re.sub(r"tensor<(.*)>", r"\1", str(value.type))


class WrongPlan(ValueError):
    """The plan is for another program."""


# Ops of HLO that StableHLO calls by the same name; others may come from several ops.
_SAME_NAME = {"add", "subtract", "multiply", "divide", "maximum", "minimum", "exponential", "log",
              "convolution", "gather", "scatter", "select", "compare", "concatenate"}


def _may_be(operation, opcode):
    name = operation.split(".")[-1]
    if opcode == "dot":
        return name in ("dot", "dot_general")
    return opcode not in _SAME_NAME or operation.startswith("chlo.") or name == opcode


def _find_mesh_name(module):
    for operation in module.body.operations:
        if operation.operation.name == "sdy.mesh":
            return operation.attributes["sym_name"].value
    return None


def add_constraints(module, plan):
    """Pins every value of the plan, and every operand that is wanted elsewhere."""
    import jaxlib.mlir.ir as ir
    from jaxlib.mlir.dialects import sdy
    with module.context, ir.Location.unknown():
        name = _find_mesh_name(module)
        if name is None:
            axes = ", ".join(f'"{a}"={s}' for a, s in zip(plan["mesh"]["axes"], plan["mesh"]["sizes"]))
            with ir.InsertionPoint.at_block_begin(module.body):
                ir.Operation.parse(f'sdy.mesh @mesh = <[{axes}]>')
            name = "mesh"
        operations = dict(tagged(module))

        def constrained(value, dims, point):
            attribute = ir.Attribute.parse(_sharding_text(dims).replace("@mesh", "@" + name))
            with point:
                return sdy.ShardingConstraintOp(value, attribute)

        def find(entry):
            operation = operations.get(entry["tag"])
            if operation is None or not _may_be(operation.name, entry["op"]):
                raise WrongPlan(f"the plan is for another program: it has {entry['op']} at "
                                f"{entry['tag']}, the step has "
                                f"{operation.name if operation else 'nothing'}")
            return operation

        orders = {tag: _leaf_order(o) for tag, o in operations.items() if o.name == "stablehlo.while"}

        def position(tag, number):
            order = orders.get(tag)
            return number if order is None else order[number] if number < len(order) else number

        for use in plan["uses"]:
            operation = operations.get(use["tag"])
            operand = position(use["tag"], use["operand"])
            if operation is None or operand >= len(operation.operands):
                continue
            value = operation.operands[operand]
            if _dims_of(value) != use["dims"]:
                continue
            made = constrained(value, use["spec"], ir.InsertionPoint(operation))
            operation.operands[operand] = made.result
        for entry in plan["values"]:
            operation = find(entry)
            value = operation.results[position(entry["tag"], entry["result"])]
            if _dims_of(value) != entry["dims"]:
                raise WrongPlan(f"the plan is for another program: {entry['tag']} is "
                                f"{_type_text(value)}, the plan says {entry['dims']}")
            users = [use.owner for use in value.uses]
            if not users:
                continue
            made = constrained(value, entry["spec"], _behind(operation))
            value.replace_all_uses_except(made.result, made.operation)
    module.operation.verify()


def _leaf_order(loop):
    """Where each value that HLO's loop carries stands in StableHLO's: HLO has those first that the
    body changes."""
    block = loop.regions[1].blocks[0]
    given = list(block.operations[len(block.operations) - 1].operands)
    changed = [i for i, value in enumerate(given) if value != block.arguments[i]]
    return changed + [i for i in range(len(given)) if i not in changed]


def _behind(operation):
    import jaxlib.mlir.ir as ir
    block = operation.block
    found = False
    for inner in block.operations:
        if found:
            return ir.InsertionPoint(inner)
        found = inner.operation == operation
    return ir.InsertionPoint(block)


def _dims_of(value):
    import jaxlib.mlir.ir as ir
    try:
        return list(ir.RankedTensorType(value.type).shape)
    except ValueError:
        return None
