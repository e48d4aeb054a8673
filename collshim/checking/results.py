"""Mistakes about what a collective returns: None, a pair, or a primitive that was not called."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from collshim.checking.adapters import Instance
from collshim.checking.calls import Call, primitive_of
from collshim.checking.files import File, dotted
from collshim.checking.mistakes import Mistake, mistake, shortened
from collshim.checking.program import Program
from collshim.checking.values import Values, scope_of

_TENSORS = ("Tensor", "Parameter")
_METHODS = ("construct", "forward")
_NAMED = re.compile(r"^(?:x|y|z|xs|tensors?|grad(?:ient)?s?|loss|inputs?|outputs?|logits?|hidden(?:_states)?)$")
"""Parameters that hold tensors, as far as their names show."""

_DIFFERENTIATES = re.compile(r"^(?:value_and_)?grad$")
_SWITCHED = "mindspore.ops.communication."
"""Functions that return a pair after ``set_comm_ops_inplace(False)``."""


def mistakes_in_results(file: File, program: Program) -> Iterator[Mistake]:
    """Yield the calls of a file whose result is not what the program expects."""
    calls = (node for node in file.below(file.module) if isinstance(node, cst.Call))
    for node in calls:
        call = program.call(node, file)
        if call is None:
            yield from _primitive(node, file, program.values[file])
        elif call.collective.result == "argument" and not _is_primitive(node, program.values[file]):
            yield from _in_place(call, file)
        elif call.collective.result == "pair":
            yield from _pair(call, file, program.values[file])


def _is_primitive(node: cst.Call, values: Values) -> bool:
    return isinstance(values.of(node.func), Instance)


def _in_place(call: Call, file: File) -> Iterator[Mistake]:
    use = _use(call.node, file)
    if call.is_async() or use is None or _may_return(call, file):
        return
    array = call.array()
    written = f"`{shortened(array)}`" if array is not None else "its argument"
    text = f"{call.collective.name} writes into its argument and returns None, which {use}"
    yield mistake("in-place-result", file, call.node, text, f"call it as a statement, and use {written} afterwards")


def _may_return(call: Call, file: File) -> bool:
    """Return whether the program checks the result for None, or has made MindSpore's functions return a result."""
    parent = file.parent(call.node)
    if not isinstance(parent, cst.Assign):
        return False
    target = parent.targets[0].target
    if isinstance(target, cst.Tuple):
        return call.collective.path.startswith(_SWITCHED)
    reads = (one for one in file.below(scope_of(file, target) or file.module) if isinstance(one, cst.Comparison))
    return any(dotted(one.left) == dotted(target) and dotted(one.comparisons[0].comparator) == "None" for one in reads)


def _use(node: cst.Call, file: File) -> str | None:
    """Return how a call's result is used; None if it is not used."""
    parent = file.parent(node)
    if isinstance(parent, cst.Assign):
        names = [shortened(target.target) for target in parent.targets]
        return f"is assigned to {names[0]}" if not names[0].startswith("_") else None
    if isinstance(parent, cst.Attribute):
        return f"has no {parent.attr.value}"
    if isinstance(parent, cst.BinaryOperation | cst.Comparison):
        return "is used in a computation"
    if isinstance(parent, cst.Arg) and isinstance(outer := file.parent(parent), cst.Call):
        return f"is passed to {shortened(outer.func, 30)}"
    return None


def _pair(call: Call, file: File, values: Values) -> Iterator[Mistake]:
    use = _use(call.node, file)
    parent = file.parent(call.node)
    if isinstance(parent, cst.Assign):
        target = parent.targets[0].target
        used = _used_as_tensor(target, parent, file, values) if isinstance(target, cst.Name) else None
        use = f"is used as a tensor in line {file.line(used)}" if used is not None else None
    if use is not None:
        name = call.collective.name
        text = f"{name} returns a pair of a tensor and a handle, which {use}"
        yield mistake("pair-as-tensor", file, call.node, text, f"unpack it: `output, _ = {shortened(call.node)}`")


def _used_as_tensor(target: cst.Name, assign: cst.Assign, file: File, values: Values) -> cst.Name | None:
    """Return the first use of a variable that only a tensor allows; None if a different use unpacks the pair."""
    home = values.home(target)
    names = (one for one in file.below(home or file.module) if isinstance(one, cst.Name) and one.value == target.value)
    later = (one for one in names if file.line(one) > file.line(assign) and values.home(one) is home)
    reads = [one for one in later if not _is_member(one, file)]
    differentiated = next((one for one in reads if _is_differentiated(one, file)), None)
    if differentiated is not None and len(reads) == 1:
        return differentiated
    if any(_unpacks(file.parent(one), file) for one in reads):
        return None
    return next((one for one in reads if isinstance(file.parent(one), cst.Attribute | cst.BinaryOperation)), None)


def _is_member(node: cst.Name, file: File) -> bool:
    """Return whether a name is an attribute's, or an argument's."""
    parent = file.parent(node)
    return (isinstance(parent, cst.Attribute) and parent.attr is node) or (
        isinstance(parent, cst.Arg) and parent.keyword is node
    )


def _is_differentiated(node: cst.Name, file: File) -> bool:
    """Return whether a function that the file passes to ``value_and_grad`` or ``grad`` returns a variable."""
    parent, function = file.parent(node), scope_of(file, node)
    if not isinstance(parent, cst.Return) or not isinstance(function, cst.FunctionDef):
        return False
    calls = (one for one in file.below(file.module) if isinstance(one, cst.Call) and one.args)
    passed = (one for one in calls if dotted(one.args[0].value) == function.name.value)
    return any(_DIFFERENTIATES.match(dotted(one.func).rpartition(".")[2]) for one in passed)


def _unpacks(parent: cst.CSTNode | None, file: File) -> bool:
    if isinstance(parent, cst.Assign):
        return True
    return isinstance(parent, cst.Subscript | cst.Return | cst.For | cst.Arg | cst.Element | cst.Comparison)


def _primitive(node: cst.Call, file: File, values: Values) -> Iterator[Mistake]:
    """Yield the mistake of passing a tensor to a primitive's constructor."""
    primitive = primitive_of(values.of(node.func))
    if primitive is None or not node.args or not _is_tensor(node.args[0].value, file, values):
        return
    name, given = primitive.name, shortened(node.args[0].value)
    text = f"{name}({given}) makes a primitive with a tensor as an option, and reduces nothing"
    yield mistake("tensor-to-primitive", file, node, text, f"call the primitive: `{name}()({given})`")


def _is_tensor(node: cst.BaseExpression, file: File, values: Values) -> bool:
    value = values.of(node)
    if isinstance(value, Instance):
        return value.kind.__name__ in _TENSORS
    function = scope_of(file, node)
    if not isinstance(function, cst.FunctionDef) or not isinstance(node, cst.Name):
        return dotted(node).endswith((".grad", ".gradient"))
    for parameter in function.params.params:
        if parameter.name.value == node.value != "self":
            kind = dotted(parameter.annotation.annotation) if parameter.annotation else ""
            is_method = function.name.value in _METHODS
            return (
                is_method or kind.rpartition(".")[2] in _TENSORS or (not kind and _NAMED.match(node.value) is not None)
            )
    return False
