"""Finds conditions that differ between ranks because they depend on the rank."""

from __future__ import annotations

import re

import libcst as cst
import libcst.matchers as m

from collshim.checking.adapters import Instance, framework_of
from collshim.checking.files import dotted
from collshim.checking.values import Values

_NAME = re.compile(
    r"(?:^|(?<!all)_)(?:rank|rank_id|(?:local|global|node|world|dist|my|dp|tp|pp|cp|ep)_?rank)(?:_id)?$"
    r"|^_?(?:is|am)_(?:main|master|chief|root|first|last|leader|rank_?zero|global_zero|local_(?:main|master))\w*$"
    r"|^(?:on|is)_?rank_?(?:0|zero)$|^master_process$|^replica_id_in_sync_group$",
    re.IGNORECASE,
)
_FUNCTIONS = re.compile(r"\.(?:get_(?:\w+_)?rank|get_local_rank_id|get_group_rank_from_world_rank)$")
_VARIABLES = {"RANK", "LOCAL_RANK", "RANK_ID", "DEVICE_ID", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"}
_DEEPEST = 4


def _key(name: str) -> m.SubscriptElement:
    return m.SubscriptElement(m.Index(m.SimpleString(m.MatchIfTrue(lambda text: text.strip("\"'") == name))))


_TASK_INDEX = m.Subscript(m.Subscript(slice=[_key("task")]), [_key("index")])
"""``config["task"]["index"]``, of the variable ``TF_CONFIG``."""


def differs_between_ranks(test: cst.BaseExpression, values: Values) -> bool:
    """Return whether a condition depends on the rank; whether an environment variable is set does not."""
    inner = test
    while isinstance(inner, cst.UnaryOperation) and isinstance(inner.operator, cst.Not):
        inner = inner.expression
    is_read = isinstance(inner, cst.Call | cst.Subscript) and _reads_environment(inner)
    return not is_read and depends_on_rank(test, values)


def depends_on_rank(node: cst.BaseExpression, values: Values, depth: int = 0) -> bool:
    """Return whether an expression may differ between ranks because it depends on the rank.

    ``rank is None``, ``rank == -1`` and ``rank >= 0`` ask whether the program is distributed at all: all ranks agree.
    """
    if isinstance(node, cst.Comparison):
        return not _asks_whether_distributed(node) and _compares_rank(node, values, depth)
    if isinstance(node, cst.Call):
        return _returns_rank(node, values, depth)
    if isinstance(node, cst.Subscript):
        return _reads_environment(node) or m.matches(node, _TASK_INDEX)
    if isinstance(node, cst.Name | cst.Attribute):
        return _is_rank(node, values, depth)
    if isinstance(node, cst.BooleanOperation | cst.BinaryOperation):
        return depends_on_rank(node.left, values, depth) or depends_on_rank(node.right, values, depth)
    if isinstance(node, cst.IfExp):
        return any(depends_on_rank(one, values, depth) for one in (node.test, node.body, node.orelse))
    return isinstance(node, cst.UnaryOperation) and depends_on_rank(node.expression, values, depth)


def _compares_rank(node: cst.Comparison, values: Values, depth: int) -> bool:
    sides = [node.left, *(target.comparator for target in node.comparisons)]
    if any(isinstance(one, cst.SimpleString) and one.evaluated_value == "chief" for one in sides):
        return any(_is_of_cluster(one, values) for one in sides)
    return any(depends_on_rank(one, values, depth) for one in sides)


def _returns_rank(node: cst.Call, values: Values, depth: int) -> bool:
    """Return whether a call asks for the rank, reads it from the environment, or calls a function that does."""
    called = dotted(node.func)
    names = [name for name in map(framework_of, values.file.imported(node.func)) if name]
    if any(_FUNCTIONS.search(name) for _, name in names) or _NAME.search(called.rpartition(".")[2]):
        return True
    if _reads_environment(node):
        return True
    if called in ("int", "bool", "not_"):
        return any(depends_on_rank(one.value, values, depth) for one in node.args)
    return depth < _DEEPEST and any(depends_on_rank(one, values, depth + 1) for one in values.returned(node))


def _is_of_cluster(node: cst.BaseExpression, values: Values, name: str = "task_type", depth: int = 0) -> bool:
    """Return whether an expression is this worker's ``task_type`` or ``task_id`` in TensorFlow's cluster."""
    assigned = values.assigned(node)
    if assigned and depth < _DEEPEST:
        return any(_is_of_cluster(one, values, name, depth + 1) for one in assigned)
    if isinstance(node, cst.Name):  # a parameter
        return node.value == name and bool(values.file.packages & {"tensorflow", "collshim"})
    return isinstance(node, cst.Attribute) and node.attr.value == name and _is_resolver(node.value, values)


def _is_resolver(node: cst.BaseExpression, values: Values) -> bool:
    kind = values.of(node)
    is_known = isinstance(kind, Instance) and kind.kind.__name__.endswith("ClusterResolver")
    last = node.func if isinstance(node, cst.Call) else node
    return is_known or (isinstance(last, cst.Name | cst.Attribute) and node_name(last).endswith("resolver"))


def names_first_rank(node: cst.BaseExpression) -> bool | None:
    """Return whether a condition holds on the first rank but not on others, or the reverse; None if it is not clear.

    The group's first rank counts as first, whether the group is all ranks or those of one machine.
    """
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        inner = names_first_rank(node.expression)
        return None if inner is None else not inner
    if isinstance(node, cst.Comparison):
        return _compares_with_first(node)
    last = node.func if isinstance(node, cst.Call) else node
    if not isinstance(last, cst.Name | cst.Attribute) or not _NAME.search(node_name(last)):
        return None
    return not re.search(r"rank(?:_id)?$|sync_group$", node_name(last), re.IGNORECASE)


def _compares_with_first(node: cst.Comparison) -> bool | None:
    target = node.comparisons[0]
    side, operator = target.comparator, target.operator
    compared = [one.value for one in side.elements] if isinstance(side, cst.Tuple | cst.List) else [side]
    first = m.Integer("0") | m.UnaryOperation(m.Minus(), m.Integer("1"))
    if len(node.comparisons) != 1 or not all(m.matches(one, first) for one in compared):
        return None
    if isinstance(operator, cst.Equal | cst.In | cst.LessThanEqual):
        return True
    return False if isinstance(operator, cst.NotEqual | cst.NotIn | cst.GreaterThan) else None


def _is_rank(node: cst.Name | cst.Attribute, values: Values, depth: int) -> bool:
    assigned = values.assigned(node)
    is_part = len(set(map(id, assigned))) < len(assigned)  # in a tuple that a call returns, such as (size, rank)
    if assigned and not is_part and depth < _DEEPEST:
        return any(depends_on_rank(one, values, depth + 1) for one in assigned) or (
            _is_named_like_rank(node)
            and all(isinstance(one, cst.Call | cst.Attribute | cst.Subscript) for one in assigned)
        )
    return _is_named_like_rank(node) or _is_of_cluster(node, values, "task_id")


def _is_named_like_rank(node: cst.Name | cst.Attribute) -> bool:
    return _NAME.search(dotted(node).rpartition(".")[2] or node_name(node)) is not None


def node_name(node: cst.Name | cst.Attribute) -> str:
    """Return the last part of a name."""
    return node.value if isinstance(node, cst.Name) else node.attr.value


def _asks_whether_distributed(node: cst.Comparison) -> bool:
    """Return whether a comparison is with None or -1, or of the kind ``rank >= 0``."""
    if len(node.comparisons) != 1:
        return False
    target = node.comparisons[0]
    minus_one = m.UnaryOperation(m.Minus(), m.Integer())
    if any(m.matches(one, m.Name("None") | minus_one) for one in (node.left, target.comparator)):
        return True
    return m.matches(target, m.ComparisonTarget(m.GreaterThanEqual(), m.Integer("0")))


def _reads_environment(node: cst.Call | cst.Subscript) -> bool:
    """Return whether an expression is ``os.environ["RANK"]``, or reads this variable in a different way."""
    if isinstance(node, cst.Call):
        is_read = dotted(node.func) in ("os.environ.get", "os.getenv", "environ.get", "getenv")
        first = node.args[0].value if is_read and node.args else None
    else:
        is_read = dotted(node.value) in ("os.environ", "environ")
        index = node.slice[0].slice if is_read else None
        first = index.value if isinstance(index, cst.Index) else None
    return isinstance(first, cst.SimpleString) and first.evaluated_value in _VARIABLES
