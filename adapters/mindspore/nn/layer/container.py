"""``mindspore.nn.SequentialCell``, ``CellList`` and ``CellDict`` (source: MindSpore 2.10.0): containers of Cells."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from collshim.adapting.refusing import refuse
from collshim.mindspore.nn.cell import Cell

__all__ = ["CellDict", "CellList", "SequentialCell"]


class _Numbered(Cell):
    """A container of numbered Cells; the names of a Cell's parameters begin with its number."""

    def __len__(self) -> int:
        return len(self._cells)

    def __bool__(self) -> bool:
        return len(self._cells) > 0

    def __iter__(self) -> Iterator[Cell]:
        return iter(list(self._cells.values()))

    def _place(self, index: Any) -> str:
        """Return the name of the Cell at this index."""
        if not isinstance(index, int):
            text = f"the type of 'index' must be int, but got {type(index).__name__}"
            refuse(TypeError, f"For {self.cls_name!r}, {text}")
        if not -len(self) <= index < len(self):
            text = f"the value of 'index' must be a number in range [{-len(self)}, {len(self)}), but got {index}"
            refuse(IndexError, f"For {self.cls_name!r}, {text}")
        return str(list(self._cells)[index])

    def _checked(self, cell: Any) -> Cell:
        if not isinstance(cell, Cell):
            text = f"each cell must be subclass of Cell, but got {type(cell).__name__}"
            refuse(TypeError, f"For {self.cls_name!r}, {text}")
        return cell

    def _prefix(self) -> str:
        """Return the prefix before the Cells' numbers in the parameters' names; empty if no Cell owns this one."""
        for name, cell in self._cells.items():
            for path, parameter in cell.parameters_and_names():
                own: str = parameter.name
                if own.endswith(f"{name}.{path}"):
                    return own.removesuffix(f"{name}.{path}")
        return ""

    def _put(self, name: str, cell: Any) -> None:
        if self._auto_prefix:
            self._checked(cell).update_parameters_name(f"{self._prefix()}{name}.")
        self._cells[name] = self._checked(cell)

    def append(self, cell: Cell) -> None:
        """Add a Cell at the end."""
        self._put(str(len(self)), cell)

    def insert(self, index: int, cell: Cell) -> None:
        """Add a Cell before the one at this index."""
        if not isinstance(index, int) or not -len(self) <= index <= len(self):
            text = f"the value of 'index' must be a number in range [{-len(self)}, {len(self)}], but got {index}"
            refuse(IndexError if isinstance(index, int) else TypeError, f"For {self.cls_name!r}, {text}")
        cells = list(self)
        cells.insert(index, self._checked(cell))
        self._number(cells, self._prefix())

    def _number(self, cells: Iterable[Cell], prefix: str) -> None:
        self._cells.clear()
        for index, cell in enumerate(cells):
            self._cells[str(index)] = cell
            if self._auto_prefix:
                cell.update_parameters_name(f"{prefix}{index}.")

    def __setitem__(self, index: int, cell: Cell) -> None:
        self._put(self._place(index), cell)

    def __delitem__(self, index: int | slice) -> None:
        prefix, cells = self._prefix(), list(self)
        del cells[index if isinstance(index, slice) else list(self._cells).index(self._place(index))]
        self._number(cells, prefix)

    def set_grad(self, requires_grad: bool = True) -> Cell:
        """Set ``requires_grad`` of this Cell and the Cells in it."""
        for cell in self:
            cell.set_grad(requires_grad)
        return super().set_grad(requires_grad)


class SequentialCell(_Numbered):
    """A chain of Cells: each is called with the previous one's result.

    Args:
        args: the Cells; or one list of them, or one OrderedDict with their names.

    Raises:
        TypeError: an argument is not a Cell, a list or an OrderedDict.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        first = args[0] if len(args) == 1 else list(args)
        if isinstance(first, Cell):
            first = [first]
        if not isinstance(first, list | OrderedDict):
            text = f"the 'args[0]' must be Cell, list or orderedDict, but got {type(first).__name__}"
            refuse(TypeError, f"For {self.cls_name!r}, {text}")
        named = first.items() if isinstance(first, OrderedDict) else enumerate(first)
        for name, cell in named:
            self.insert_child_to_cell(str(name), self._checked(cell))
            cell.update_parameters_name(f"{name}.")

    @property
    def cell_list(self) -> list[Cell]:
        """The Cells."""
        return list(self)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._cells.items())[index]))
        return self._cells[self._place(index)]

    def construct(self, input_data: Any) -> Any:
        """Return the last Cell's result."""
        for cell in self:
            input_data = cell(input_data)
        return input_data


class CellList(_Numbered):
    """A list of Cells, for the Cell that owns it to call.

    Args:
        args: one list of Cells, or nothing.
        kwargs: ``auto_prefix``, as in Cell.

    Raises:
        TypeError: an argument is not a list of Cells.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(kwargs.get("auto_prefix", True))
        if len(args) == 1:
            self.extend(args[0])

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return CellList(list(self)[index])
        return self._cells[self._place(index)]

    def __iadd__(self, cells: list[Cell]) -> CellList:  # always a CellList
        return self.extend(cells)

    def extend(self, cells: list[Cell]) -> CellList:
        """Add Cells at the end, and return the list."""
        if not isinstance(cells, list):
            text = f"the new cells wanted to append should be instance of list, but got {type(cells).__name__}"
            refuse(TypeError, f"For {self.cls_name!r}, {text}")
        for cell in cells:
            self.append(cell)
        return self

    def construct(self, *inputs: Any) -> Any:
        """Raise NotImplementedError: the Cell that owns the list calls its entries."""
        raise NotImplementedError("CellList is not called itself; its entries are")


class CellDict(Cell):
    """Cells by name, for the Cell that owns the dict to call.

    Args:
        args: one dict of Cells, or pairs of names and Cells; or nothing.
        kwargs: ``auto_prefix``, as in Cell.

    Raises:
        TypeError: a name is not a string, or a value not a Cell.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(kwargs.get("auto_prefix", True))
        if args:
            self.update(args[0])

    def __getitem__(self, key: str) -> Any:
        return self._cells[key]

    def __setitem__(self, key: str, cell: Cell) -> None:
        if not isinstance(key, str):
            refuse(TypeError, f"For 'CellDict', the type of key should be string but got {type(key).__name__}.")
        if not isinstance(cell, Cell):
            refuse(TypeError, f"For 'CellDict', the type of cell should be Cell, but got {type(cell).__name__}.")
        if self._auto_prefix:
            cell.update_parameters_name(f"{key}.")
        self._cells[key] = cell

    def __delitem__(self, key: str) -> None:
        del self._cells[key]

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __contains__(self, key: str) -> bool:
        return key in self._cells

    def clear(self) -> None:
        """Remove all Cells."""
        self._cells.clear()

    def pop(self, key: str) -> Any:
        """Remove a Cell, and return it."""
        return self._cells.pop(key)

    def keys(self) -> Any:
        """Return the names."""
        return self._cells.keys()

    def values(self) -> Any:
        """Return the Cells."""
        return self._cells.values()

    def items(self) -> Any:
        """Return the names and the Cells, in pairs."""
        return self._cells.items()

    def update(self, cells: Any) -> None:
        """Add the Cells of a dict, or of pairs."""
        for key, cell in dict(cells).items():
            self[key] = cell

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Raise NotImplementedError: the Cell that owns the dict calls its values."""
        raise NotImplementedError("CellDict is not called itself; its values are")
