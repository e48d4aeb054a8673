"""The values of a file's expressions, as far as imports, single assignments and adapters' annotations show them."""

from __future__ import annotations

import types
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

from collshim.checking import adapters
from collshim.checking.adapters import Missing
from collshim.checking.files import File, dotted

_DEEPEST = 12


class Values:
    """The values of one file's expressions."""

    def __init__(self, file: File) -> None:
        self.file = file
        self._assigned = _assignments(file)
        self._functions: dict[str, list[cst.FunctionDef]] = defaultdict(list)
        for function in (one for one in file.below(file.module) if isinstance(one, cst.FunctionDef)):
            self._functions[function.name.value].append(function)
        self.stars = list(_stars(file))
        self._known: dict[cst.BaseExpression, Any] = {}

    def names(self, node: cst.BaseExpression) -> list[str]:
        """Return the frameworks' names that a name, or attributes of a name, may mean."""
        if not dotted(node):
            return []
        found = filter(None, map(adapters.framework_of, self.file.imported(node)))
        names = [name for _, name in found]
        if not names and isinstance(node, cst.Name) and self.stars and not self.file.is_assigned(node):
            names = [f"{module}.{node.value}" for module in self.stars if self._has(module, node.value)]
        return names

    def of(self, node: cst.BaseExpression, depth: int = 0) -> Any:
        """Return an adapter's object, an ``Instance``, a ``Missing``, or None if the value is not known."""
        if node not in self._known:
            if depth > _DEEPEST:
                return None
            self._known[node] = self._evaluated(node, depth)
        return self._known[node]

    def _evaluated(self, node: cst.BaseExpression, depth: int) -> Any:
        for name in self.names(node):
            return adapters.look_up(name)
        if isinstance(node, cst.Call):
            function = self.of(node.func, depth + 1)
            return None if isinstance(function, Missing) else adapters.result_of(function)
        assigned = self.assigned(node)
        if len(assigned) == 1:
            return self.of(assigned[0], depth + 1)
        if isinstance(node, cst.Attribute) and not assigned:
            owner = self.of(node.value, depth + 1)
            return None if isinstance(owner, Missing) else adapters.attribute_of(owner, node.attr.value)
        return None

    def assigned(self, node: cst.BaseExpression) -> Sequence[cst.BaseExpression]:
        """Return the expressions that are assigned to a variable, or to an attribute of ``self``."""
        return self._assigned.get((self.home(node), dotted(node)), ()) if dotted(node) else ()

    def origin(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """Return the expression that a variable holds, if it is assigned once; otherwise the node itself."""
        assigned = self.assigned(node)
        return assigned[0] if len(assigned) == 1 else node

    def home(self, node: cst.BaseExpression) -> cst.CSTNode | None:
        """Return the function or the class whose variable a name is; None if it is the module's."""
        name = dotted(node)
        first = name.partition(".")[0]
        scope = scope_of(self.file, node)
        while scope is not None and first != "self":
            if first in _parameters(scope) or {(scope, first), (scope, name)} & self._assigned.keys():
                break
            scope = _above(self.file, scope, cst.FunctionDef | cst.Lambda)
        return scope

    def returned(self, node: cst.Call) -> Iterator[cst.BaseExpression]:
        """Yield the expressions that a function of the file returns, if only one has the name that is called."""
        owner, _, last = dotted(node.func).rpartition(".")
        found = self._functions.get(last, ()) if owner in ("", "self") else ()
        for one in self.file.run_by(found[0].body) if len(found) == 1 else ():
            if isinstance(one, cst.Return) and one.value is not None:
                yield one.value

    @staticmethod
    def _has(module: str, name: str) -> bool:
        return not isinstance(adapters.look_up(f"{module}.{name}"), Missing)


def scope_of(file: File, node: cst.CSTNode) -> cst.CSTNode | None:
    """Return the function or class that contains a node, or the class of ``self``; None for the module."""
    is_own = dotted(node).startswith("self.") if isinstance(node, cst.BaseExpression) else False
    return _above(file, node, cst.ClassDef if is_own else cst.FunctionDef | cst.Lambda | cst.ClassDef)


def _above(file: File, node: cst.CSTNode, kinds: type | types.UnionType) -> cst.CSTNode | None:
    above = file.parent(node)
    while above is not None and not isinstance(above, kinds):
        above = file.parent(above)
    return above


def _parameters(scope: cst.CSTNode) -> set[str]:
    """Return the names of a function's parameters; none for a class."""
    if not isinstance(scope, cst.FunctionDef | cst.Lambda):
        return set()
    listed = scope.params
    stars = [one for one in (listed.star_arg, listed.star_kwarg) if isinstance(one, cst.Param)]
    return {one.name.value for one in (*listed.posonly_params, *listed.params, *listed.kwonly_params, *stars)}


def _assignments(file: File) -> dict[tuple[cst.CSTNode | None, str], list[cst.BaseExpression]]:
    """Return the expressions that are assigned to each variable of a function and each attribute of ``self``."""
    found: dict[tuple[cst.CSTNode | None, str], list[cst.BaseExpression]] = defaultdict(list)
    declared = [node for node in file.below(file.module) if isinstance(node, cst.Global)]
    shared = {(scope_of(file, node), item.name.value) for node in declared for item in node.names}
    for node in file.below(file.module):
        for target, value in _targets(node):
            if dotted(target):
                place = (scope_of(file, target), dotted(target))
                found[(None, place[1]) if place in shared else place].append(value)
    return found


def _targets(node: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Yield each target of a statement with its expression; twice if the value is only a part of the expression."""
    if isinstance(node, cst.Assign):
        for target in node.targets:
            yield from _parts(target.target, node.value)
    elif isinstance(node, cst.AnnAssign | cst.AugAssign | cst.NamedExpr) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, cst.WithItem) and node.asname:
        yield from _parts(node.asname.name, node.item)
    elif isinstance(node, cst.For | cst.CompFor):
        yield from 2 * [(node.target, node.iter)]
        yield from _parts(node.target, node.iter)


def _parts(target: cst.BaseExpression, value: cst.BaseExpression) -> Iterator[tuple[cst.BaseExpression, Any]]:
    if not isinstance(target, cst.Tuple | cst.List):
        yield target, value
        return
    others = value.elements if isinstance(value, cst.Tuple | cst.List) else ()
    if len(others) == len(target.elements):
        for one, other in zip(target.elements, others, strict=True):
            yield from _parts(one.value, other.value)
        return
    for element in target.elements:
        yield from _parts(element.value, value)
        yield from _parts(element.value, value)


def _stars(file: File) -> Iterator[str]:
    """Yield the frameworks' modules from which a file imports every name."""
    for node in file.below(file.module):
        if isinstance(node, cst.ImportFrom) and isinstance(node.names, cst.ImportStar) and node.module:
            found = None if node.relative else adapters.framework_of(dotted(node.module))
            if found:
                yield found[1]
