"""Mistakes in computations: a mean that is divided again, and a gradient that stops at a collective."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterator

import libcst as cst

from collshim.checking.calls import Call
from collshim.checking.files import File, dotted
from collshim.checking.mistakes import Mistake, mistake, shortened
from collshim.checking.program import Program, functions
from collshim.checking.values import Values

_SIZE = re.compile(
    r"(?:^|_)(?:world|group|dp|data_parallel|cluster)_?size$|^size$|num_replicas(?:_in_sync)?$|replica_count$"
    r"|^n_?(?:gpus?|ranks?|workers|procs|devices|replicas)$|^num_(?:gpus?|ranks?|workers|processes|devices)$"
    r"|get_world_size$|get_group_size$|get_size$",
    re.IGNORECASE,
)
_MEAN = re.compile(r"\b(?:AVG|MEAN|avg|mean)\b")
_WRITES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
_CUTS = re.compile(r"\.(?:detach|item|data|numpy|tolist|asnumpy)\b")
_LEARNED = re.compile(
    r"loss|logit|feat|(?:^|_)emb|pred|output|hidden|similarit|^(?:out|y|z|h)\d?(?:_|$)", re.IGNORECASE
)
_COUNTS = re.compile(r"(?:^|_)(?:num|n|counts?|tokens?|size|steps?|masks?|weights?)(?:_|$)", re.IGNORECASE)
_MODEL = re.compile(
    r"^(?!(?:get|build|make|load|create|init|save)_)(?:.*_)?"
    r"(?:model|net|network|module|encoder|decoder|backbone|projector|classifier|generator)\d?$",
    re.IGNORECASE,
)
_LOSS = re.compile(r"loss|crit|entropy|nll|bce|mse", re.IGNORECASE)
_LABELS = re.compile(r"label|target|truth|(?:^|_)(?:ys?|gts?)(?:_|$)|^(?:None|True|False|self)$", re.IGNORECASE)
_DIVIDES = ("div", "div_", "divide", "true_divide")
_NO_GRADIENT = re.compile(r"no_grad|inference_mode|stop_recording")


def mistakes_in_arithmetic(file: File, program: Program) -> Iterator[Mistake]:
    """Yield the divisions and the losses of a file that are wrong after a collective."""
    for body in (file.module, *(function.body for function in functions(file))):
        calls = [found for node in file.calls(body) if (found := program.call(node, file))]
        for call in calls:
            yield from _mean_divided(call, body, file)
            yield from _gradient_cut(call, body, file, program.values[file])


def _mean_divided(call: Call, body: cst.CSTNode, file: File) -> Iterator[Mistake]:
    reduction = " ".join(shortened(call.arguments[name]) for name in ("op", "reduce_op") if name in call.arguments)
    if not _MEAN.search(reduction):
        return
    name = _result_name(call, file)
    for node in file.run_by(body):
        if file_after(file, node, call.node) and _divides(node, name, call.node):
            text = f"{call.collective.name} returns the mean over the ranks (`{reduction}`), and this divides it again"
            yield mistake("mean-divided", file, node, text, "remove the division, or reduce with a sum")
            return


def file_after(file: File, node: cst.CSTNode, call: cst.Call) -> bool:
    """Return whether a division is on the call's line or after it."""
    return isinstance(node, cst.AugAssign | cst.BinaryOperation | cst.Call) and file.line(node) >= file.line(call)


def _result_name(call: Call, file: File) -> str:
    """Return the variable that holds a call's result; "" if it has none."""
    if call.collective.result == "argument":
        array = call.array()
        return dotted(array) if array is not None else ""
    parent = file.parent(call.node)
    if not isinstance(parent, cst.Assign):
        return ""
    target = parent.targets[0].target
    first = target.elements[0].value if isinstance(target, cst.Tuple) else target
    return dotted(first)


def _divides(node: cst.CSTNode, name: str, call: cst.Call) -> bool:
    """Return whether a node divides the result by the number of ranks."""
    if isinstance(node, cst.AugAssign):
        is_division = isinstance(node.operator, cst.DivideAssign)
        return is_division and bool(name) and dotted(node.target) == name and _is_size(node.value)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide):
        return (node.left is call or (bool(name) and dotted(node.left) == name)) and _is_size(node.right)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _DIVIDES:
        is_result = node.func.value is call or (bool(name) and dotted(node.func.value) == name)
        return is_result and len(node.args) == 1 and _is_size(node.args[0].value)
    return False


def _is_size(node: cst.BaseExpression) -> bool:
    """Return whether an expression is the number of ranks."""
    if isinstance(node, cst.Call):
        is_number = dotted(node.func) in ("float", "int") and len(node.args) == 1
        return _is_size(node.args[0].value) if is_number else _SIZE.search(dotted(node.func)) is not None
    return _SIZE.search(dotted(node).rpartition(".")[2]) is not None if dotted(node) else False


def _gradient_cut(call: Call, body: cst.CSTNode, file: File, values: Values) -> Iterator[Mistake]:
    """Yield the mistake of a backward pass through a tensor that a collective wrote in place.

    A loss may also contain tensors that ranks gathered as constants: nothing else in it may have a gradient.
    """
    gathers = call.collective.kind == "all_gather"
    written = _gathered(call, file, values) if gathers else _written(call, file, values)
    if not written or call.collective.kind not in _WRITES or _is_unrecorded(call.node, file):
        return
    reached = {written}
    depends = _depends_only if gathers else _depends
    for statement in file.run_by(body):
        if not isinstance(statement, cst.BaseSmallStatement):
            continue
        if file.line(statement) <= file.line(call.node):
            continue
        if gathers and _writes_part(statement, written):
            return
        reached = _after(statement, reached, file, depends)
        started = next((node for node in file.calls(statement) if _starts_backward(node, reached, file, depends)), None)
        if started is not None:
            yield _cut(call, written, started, file)
            return


def _cut(call: Call, written: str, started: cst.Call, file: File) -> Mistake:
    text = (
        f"`{written}` is written by {call.collective.name}, which autograd does not record, and the backward"
        f" pass in line {file.line(started)} goes through it"
    )
    if call.collective.kind == "all_gather":
        text += " alone: no rank has a gradient"
        fix = (
            f"use a differentiable collective (torch.distributed.nn), or put the rank's own part back into `{written}`"
        )
    else:
        text += ": each rank has only its own part of the gradient"
        fix = "use a differentiable collective (torch.distributed.nn), or reduce a detached copy for printing"
    return mistake("cut-gradient", file, call.node, text, fix)


def _written(call: Call, file: File, values: Values) -> str:
    """Return the variable that a call writes, if it may be part of a loss."""
    array = call.array() if call.collective.result == "argument" else None
    return dotted(array) if array is not None and _is_learned(array, file, values) else ""


def _gathered(call: Call, file: File, values: Values) -> str:
    """Return the variable into which a call gathers tensors that may be part of a loss."""
    given = list(call.arguments.values())[:2] if call.collective.result == "argument" else []
    name = dotted(given[0]) if len(given) == 2 and _is_learned(given[1], file, values) else ""
    return name if "." not in name else ""


def _is_learned(node: cst.BaseExpression, file: File, values: Values) -> bool:
    """Return whether a variable may have a gradient: by its name, or because a model computes it."""
    if not isinstance(node, cst.Name) or _COUNTS.search(node.value):
        return False
    sources = values.assigned(node)
    recorded = [one for one in sources if not (_is_unrecorded(one, file) or _CUTS.search(shortened(one, 10_000)))]
    if sources and not recorded:
        return False
    return _LEARNED.search(node.value) is not None or any(
        _MODEL.search(dotted(call.func).rpartition(".")[2]) for one in recorded for call in file.calls(one)
    )


def _writes_part(statement: cst.BaseSmallStatement, name: str) -> bool:
    """Return whether a statement assigns to a part of a variable, as ``parts[rank] = own`` does."""
    parts = [one.target for one in statement.targets] if isinstance(statement, cst.Assign) else []
    return any(isinstance(one, cst.Subscript) and dotted(one.value) == name for one in parts)


def _is_unrecorded(node: cst.CSTNode, file: File) -> bool:
    """Return whether a node is in a block or a function that records no gradients."""
    above = file.parent(node)
    while above is not None:
        if isinstance(above, cst.With) and any(_NO_GRADIENT.search(shortened(item.item)) for item in above.items):
            return True
        if isinstance(above, cst.FunctionDef):
            return any(_NO_GRADIENT.search(shortened(one.decorator)) for one in above.decorators)
        above = file.parent(above)
    return False


def _after(statement: cst.BaseSmallStatement, reached: set[str], file: File, depends: _Depends) -> set[str]:
    """Return the variables that depend on the written tensor after a statement runs."""
    if isinstance(statement, cst.Assign):
        names = {name for target in statement.targets if (name := dotted(target.target))}
        is_reached = depends(statement.value, reached, file)
        return reached | names if is_reached else reached - names
    if isinstance(statement, cst.AugAssign) and dotted(statement.target):
        if depends is _depends_only:
            return reached - {dotted(statement.target)} if _has_others(statement.value, reached, file) else reached
        return reached | {dotted(statement.target)} if depends(statement.value, reached, file) else reached
    return reached


def _depends(node: cst.BaseExpression, reached: set[str], file: File) -> bool:
    """Return whether a value depends on variables; it does not if it is detached, or only divided by them."""
    if _CUTS.search(shortened(node, 10_000)):
        return False
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide):
        return _depends(node.left, reached, file)
    return any(dotted(one) in reached for one in file.below(node) if isinstance(one, cst.Name | cst.Attribute))


def _depends_only(node: cst.BaseExpression, reached: set[str], file: File) -> bool:
    """Return whether a value depends on variables, and nothing else in it can have a gradient."""
    return _depends(node, reached, file) and not _has_others(node, reached, file)


def _has_others(node: cst.BaseExpression, reached: set[str], file: File) -> bool:
    """Return whether an expression has parts other than these variables, labels, losses and the frameworks' names."""
    names = (one for one in file.below(node) if isinstance(one, cst.Name | cst.Attribute) and dotted(one))
    return any(_is_other(one, file.parent(one), reached, file) for one in names)


def _is_other(node: cst.Name | cst.Attribute, parent: cst.CSTNode | None, reached: set[str], file: File) -> bool:
    if isinstance(parent, cst.Attribute) or (isinstance(parent, cst.Arg) and parent.keyword is node):
        return False  # a part of a longer name, or the name of an argument
    if file.imported(node) or dotted(node) in reached:
        return False
    if isinstance(parent, cst.Call) and parent.func is node:
        owner, _, last = dotted(node).rpartition(".")
        return not (owner in reached or _LOSS.search(last) or (not owner and hasattr(builtins, last)))
    return _LABELS.search(dotted(node)) is None


def _starts_backward(node: cst.Call, reached: set[str], file: File, depends: _Depends) -> bool:
    if not isinstance(node.func, cst.Attribute) or node.func.attr.value != "backward":
        return False
    return any(depends(one, reached, file) for one in (node.func.value, *(argument.value for argument in node.args)))


_Depends = Callable[[cst.BaseExpression, set[str], File], bool]
