"""Tags in the StableHLO module of a JAX step: every op gets one, and HLO text keeps them."""

import re

from plait.internals import ir


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


def tag_of(operation):
    """The tag that an op of a converted program carries; "" where it has none."""
    if "mhlo.frontend_attributes" not in operation.attributes:
        return ""
    known = ir.DictAttr(operation.attributes["mhlo.frontend_attributes"])
    return next((ir.StringAttr(a.attr).value for a in known if a.name == "plait"), "")
