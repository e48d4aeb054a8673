"""The names of a framework that a file uses, and whether the adapter has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import libcst as cst

from collshim.checking import adapters
from collshim.checking.adapters import Instance, Missing
from collshim.checking.calls import call_of
from collshim.checking.differences import difference_of
from collshim.checking.files import File, dotted
from collshim.checking.values import Values

Standing = Literal["supported", "different", "missing"]


@dataclass(frozen=True)
class Use:
    """One use of a framework's name.

    Attributes:
        framework: the framework's package.
        name: the full name, such as ``mindspore.nn.Dense``; for a missing argument, it ends in ``(argument=)``.
        path: the file.
        line: its line, from 1.
        column: its column, from 1.
        standing: whether the adapter has the name, lacks it, or has it with a difference.
        note: what is different, or what to use instead.
        page: the page that describes the difference, if there is one.
    """

    framework: str
    name: str
    path: Path
    line: int
    column: int
    standing: Standing
    note: str = ""
    page: str = ""


def uses(file: File, values: Values) -> list[Use]:
    """Return the uses of all frameworks' names in a file, in order."""
    collector = _Uses(file, values)
    for node in file.below(file.module):
        collector.take(node)
    found = {(use.line, use.column, use.name): use for use in collector.found}
    return sorted(found.values(), key=lambda use: (use.line, use.column))


class _Uses:
    """Collects the uses."""

    def __init__(self, file: File, values: Values) -> None:
        self.file = file
        self.values = values
        self.found: list[Use] = []
        targets = [target for target in map(self._assigned, file.below(file.module)) if target]
        self._given = {target.attr.value for target in targets}
        owned = (adapters.framework_of(name) for target in targets for name in values.names(target))
        self._given_names = {one[1] for one in owned if one}

    @staticmethod
    def _assigned(node: cst.CSTNode) -> cst.Attribute | None:
        """Return the attribute to which a node assigns a value; None if there is none."""
        target = node.target if isinstance(node, cst.AssignTarget | cst.AnnAssign) else None
        return target if isinstance(target, cst.Attribute) else None

    def take(self, node: cst.CSTNode) -> None:
        """Add the names that a node uses, but not those of the nodes inside it."""
        if isinstance(node, cst.Import):
            for alias in node.names:
                self._add(alias, alias.evaluated_name)
        elif isinstance(node, cst.ImportFrom):
            self._take_imported(node)
        elif isinstance(node, cst.Attribute | cst.Name):
            self._take_name(node)
        elif isinstance(node, cst.Call):
            self._take_call(node)

    def _take_imported(self, node: cst.ImportFrom) -> None:
        if node.module and not node.relative and not isinstance(node.names, cst.ImportStar):
            for alias in node.names:
                self._add(alias, f"{dotted(node.module)}.{alias.evaluated_name}")

    def _take_name(self, node: cst.Attribute | cst.Name) -> None:
        parent = self.file.parent(node)
        if isinstance(parent, cst.Attribute) or self._is_in_import(parent):
            return  # a part of a longer name, or recorded with the import
        names = self.values.names(node)
        for name in names:
            self._add(node, name)
        if not names and isinstance(node, cst.Attribute):
            self._add_member(node)

    @staticmethod
    def _is_in_import(parent: cst.CSTNode | None) -> bool:
        return isinstance(parent, cst.ImportAlias | cst.ImportFrom | cst.AsName | cst.Import)

    def _take_call(self, node: cst.Call) -> None:
        function = self.values.of(node.func)
        keywords = [one.keyword.value for one in node.args if one.keyword]
        for name in self.values.names(node.func):
            for keyword in adapters.unknown_arguments(function, keywords):
                note = f"the adapter's {name.rpartition('.')[2]} has no argument {keyword}"
                self._put(node, f"{name}({keyword}=)", "missing", note)

    def _add(self, node: cst.CSTNode, name: str) -> None:
        owner = adapters.framework_of(name)
        if owner is None or "." not in owner[1]:
            return
        name = owner[1]
        found = adapters.look_up(name)
        if isinstance(found, Missing):
            if found.path not in self._given_names:
                self._put(node, found.path, "missing", found.advice or "the adapter has no such name")
        elif different := difference_of(name, found):
            self._put(node, name, "different", different.text, different.page)
        else:
            self._put(node, name, "supported")

    def _add_member(self, node: cst.Attribute) -> None:
        """Add an attribute of an adapter's object if its class lacks it and the file assigns no value to it."""
        if node.attr.value in self._given or self._is_written_in_place(node.value):
            return
        owner = self.values.of(node.value)
        if isinstance(owner, Instance) and owner.kind.__module__.startswith(adapters.PREFIX):
            found = adapters.attribute_of(owner, node.attr.value)
            if isinstance(found, Missing):
                kind = owner.kind
                framework = kind.__module__.split(".")[1]
                note = f"objects of {kind.__qualname__} have no {node.attr.value}; see docs/{framework}.md"
                self._put(node, f"{framework}.{kind.__qualname__}.{node.attr.value}", "missing", note)

    def _is_written_in_place(self, node: cst.BaseExpression) -> bool:
        """Return whether a value is the None of a call that writes into its argument, which is a mistake."""
        made = self.values.origin(node)
        call = call_of(made, self.values) if isinstance(made, cst.Call) else None
        return call is not None and call.collective.result == "argument" and not call.is_async()

    def _put(self, node: cst.CSTNode, name: str, standing: Standing, note: str = "", page: str = "") -> None:
        framework = name.partition(".")[0]
        place = (self.file.path, self.file.line(node), self.file.column(node))
        self.found.append(Use(framework, name, *place, standing, note, page))


def of_distributed(all_uses: list[Use]) -> Iterator[Use]:
    """Yield the uses that matter to collshim: of torch's names, only those of its distributed packages."""
    for use in all_uses:
        if use.framework != "torch" or "distributed" in use.name.split(".") or use.standing == "missing":
            yield use
