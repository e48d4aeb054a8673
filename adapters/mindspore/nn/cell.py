"""``mindspore.nn.Cell`` (source: MindSpore 2.10.0): the base of layers and networks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, ValuesView
from typing import Any, cast

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore.common.parameter import Parameter, ParameterTuple
from collshim.mindspore.context import require_own_parallelism
from collshim.mindspore.nn._hooks import Hooked
from collshim.mindspore.nn._precision import computing_in
from collshim.mindspore.nn._state import Stateful
from collshim.mindspore.tensor import Tensor, settle, wrap

__all__ = ["Cell"]


class Cell(Hooked, Stateful):
    """A computation with parameters: a call returns ``construct``'s result.

    If the Cell has a ``bprop``, ``bprop(*inputs, out, dout)`` computes the gradients: one for each input. Parameters
    and Cells that are set as attributes belong to the Cell, and so do the parameters of a ParameterTuple, but not those
    of a list.

    Args:
        auto_prefix: whether setting a Cell as an attribute puts the attribute's name before its parameters' names:
            ``net.dense = nn.Dense(2, 1)`` names them ``dense.weight`` and ``dense.bias``.
        flags: has no effect.

    Attributes:
        training: the mode that ``set_train`` sets, on which layers such as Dropout depend; False at first.
    """

    def __init__(self, auto_prefix: bool = True, flags: dict[str, Any] | None = None) -> None:
        vars(self).update(_params=OrderedDict(), _cells=OrderedDict(), _auto_prefix=auto_prefix)
        vars(self).update(_buffers={}, _passing=set())
        self.training = False
        self.requires_grad = False
        self.cls_name = type(self).__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return ``construct``'s result, which hooks may replace."""
        require_own_parallelism()
        if "_computes_in" in vars(self):
            with computing_in(self._computes_in):
                return self._call(*args, **kwargs)
        return self._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        if "_hooks_" in vars(self):
            return self._hooks.call(self, self._compute, args, kwargs)
        return self._compute(*args, **kwargs)

    def _compute(self, *args: Any, **kwargs: Any) -> Any:
        bprop = getattr(self, "bprop", None)
        if bprop is None:
            return self.construct(*args, **kwargs)
        return wrap(_WithGradient.apply(self, bprop, *args))  # type: ignore[no-untyped-call]

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result; derived classes override this."""
        raise AttributeError(f"For {type(self).__name__!r}, the method 'construct' is not defined.")

    def __getattr__(self, name: str) -> Any:
        for kind in ("_params", "_cells", "_buffers"):
            found = vars(self).get(kind, {})
            if name in found:
                return found[name]
        raise AttributeError(f"The {type(self).__name__!r} object has no attribute {name!r}.")

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            self._own(name)
            self.insert_param_to_cell(name, value)
        elif isinstance(value, ParameterTuple):
            for parameter in {id(each): each for each in value}.values():
                self.insert_param_to_cell(parameter.name, parameter, check_name_contain_dot=False)
            object.__setattr__(self, name, value)
        elif isinstance(value, Cell):
            self._own(name)
            if self._auto_prefix:
                value.update_parameters_name(f"{name}.")
            self.insert_child_to_cell(name, value)
        elif not self._reassigned(name, value):
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        for kind in ("_params", "_cells", "_buffers"):
            if name in vars(self).get(kind, {}):
                del vars(self)[kind][name]
                return
        object.__delattr__(self, name)

    def _own(self, name: str) -> None:
        """Remove any other attribute of this name, before a parameter or a Cell is set."""
        if "_params" not in vars(self):
            raise AttributeError(f"For {type(self).__name__!r}, please call Cell.__init__() before {name!r} is set.")
        vars(self).pop(name, None)

    def _reassigned(self, name: str, value: Any) -> bool:
        """Set a new value for an existing parameter or Cell; return whether there is one of this name."""
        if name in vars(self).get("_params", {}):
            if value is None:
                self._params[name] = None
            elif isinstance(value, torch.Tensor):
                self._params[name].set_data(value)
            else:
                refuse(TypeError, f"Parameter {name!r} already exists in the Cell, and cannot become a {type(value)}")
            return True
        if name in vars(self).get("_buffers", {}):
            refuse(TypeError, f"Buffer {name!r} already exists in the Cell: call register_buffer to replace it")
        if name in vars(self).get("_cells", {}):
            if value is not None:
                refuse(TypeError, f"Sub cell {name!r} already exists in the Cell, and cannot become a {type(value)}")
            self._cells[name] = None
            return True
        return False

    def cells(self) -> ValuesView[Cell]:
        """Return the Cells directly in this one."""
        return self.name_cells().values()

    def name_cells(self) -> OrderedDict[str, Cell]:
        """Return the Cells directly in this one, by name, each once."""
        found = OrderedDict[str, Cell]()
        for name, cell in self._cells.items():
            if cell is not None and all(cell is not other for other in found.values()):
                found[name] = cell
        return found

    def cells_and_names(self, cells: set[Cell] | None = None, name_prefix: str = "") -> Iterator[tuple[str, Cell]]:
        """Yield this Cell and all Cells in it, with their paths, each once; skip those in ``cells``."""
        seen = set[Cell]() if cells is None else cells
        if self in seen:
            return
        seen.add(self)
        yield name_prefix, self
        for name, cell in self._cells.items():
            if cell is not None:
                yield from cell.cells_and_names(seen, f"{name_prefix}.{name}" if name_prefix else name)

    def parameters_and_names(self, name_prefix: str = "", expand: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Yield all parameters with their paths, each once; without ``expand``, only this Cell's own."""
        seen = set[int]()
        for path, cell in self.cells_and_names(name_prefix=name_prefix) if expand else [(name_prefix, self)]:
            for name, parameter in cell._params.items():
                if parameter is not None and id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield (f"{path}.{name}" if path else name), parameter

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """Yield all parameters; without ``expand``, only this Cell's own."""
        for _, parameter in self.parameters_and_names(expand=expand):
            yield parameter

    def parameters_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter]:
        """Return all parameters, by their names."""
        return OrderedDict((parameter.name, parameter) for parameter in self.get_parameters(recurse))

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        """Return the parameters that require a gradient."""
        return [parameter for parameter in self.get_parameters(recurse) if parameter.requires_grad]

    def untrainable_params(self, recurse: bool = True) -> list[Parameter]:
        """Return the parameters that require no gradient."""
        return [parameter for parameter in self.get_parameters(recurse) if not parameter.requires_grad]

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Name each parameter ``prefix`` followed by its path."""
        for path, parameter in self.parameters_and_names(expand=recurse):
            parameter.name = prefix + path

    def check_names(self) -> None:
        """Raise ValueError if two parameters have the same name."""
        seen = set[str]()
        for path, parameter in self.parameters_and_names():
            if parameter.name in seen:
                refuse(ValueError, f"The parameter {path} has the name {parameter.name!r}, which already exists")
            seen.add(parameter.name)

    def insert_param_to_cell(
        self, param_name: str, param: Parameter | None, check_name_contain_dot: bool = True
    ) -> None:
        """Set a parameter as an attribute; name it after the attribute if it has no name."""
        if not param_name or (check_name_contain_dot and "." in param_name):
            refuse(
                KeyError, f"For 'insert_param_to_cell', 'param_name' must be a name without '.', but got {param_name!r}"
            )
        if not isinstance(param, Parameter | None):
            refuse(TypeError, f"For 'insert_param_to_cell', 'param' must be 'Parameter', but got {type(param)}")
        if param_name not in self._params and hasattr(self, param_name):
            refuse(KeyError, f"For 'insert_param_to_cell', {param_name!r} already exists in the Cell")
        if param is not None and param.is_unnamed:
            param.name = param_name
        self._params[param_name] = param

    def insert_child_to_cell(self, child_name: str, child_cell: Cell | None) -> None:
        """Set a Cell as an attribute; its parameters keep their names."""
        if not isinstance(child_name, str):
            refuse(TypeError, f"For 'insert_child_to_cell', 'child_name' must be str, but got {type(child_name)}")
        if not child_name or "." in child_name:
            refuse(
                KeyError, f"For 'insert_child_to_cell', 'child_name' must be a name without '.', but got {child_name!r}"
            )
        if not isinstance(child_cell, Cell | None):
            refuse(TypeError, f"For 'insert_child_to_cell', 'child_cell' must be 'Cell', but got {type(child_cell)}")
        if child_name not in self._cells and hasattr(self, child_name):
            refuse(KeyError, f"For 'insert_child_to_cell', {child_name!r} already exists in the Cell")
        self._cells[child_name] = child_cell

    def set_train(self, mode: bool = True) -> Cell:
        """Set ``training`` of this Cell and all Cells in it."""
        for _, cell in self.cells_and_names():
            cell.training = mode
        self.phase = "train" if mode else "predict"
        return self

    @property
    def phase(self) -> str:
        """``"train"`` until ``set_train(False)`` makes it ``"predict"``; also the name that a program sets."""
        return str(vars(self).get("_phase", "train"))

    @phase.setter
    def phase(self, value: str) -> None:
        if not isinstance(value, str):
            refuse(TypeError, f"phase is {value!r}, should be a string")
        vars(self)["_phase"] = value

    def set_grad(self, requires_grad: bool = True) -> Cell:
        """Set ``requires_grad``; it has no effect on ``value_and_grad``."""
        self.requires_grad = requires_grad
        return self

    def apply(self, fn: Callable[[Cell], Any]) -> Cell:
        """Call ``fn`` with each Cell in this one, and last with this one."""
        for cell in self.cells():
            cell.apply(fn)
        fn(self)
        return self

    def init_parameters_data(self, auto_parallel_mode: bool = False) -> dict[Parameter, Parameter]:
        """Map every parameter to itself: parameters have their values from the start."""
        return {parameter: parameter for parameter in self.get_parameters()}

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: Cells are not compiled."""

    def set_inputs(self, *inputs: Any, **kwargs: Any) -> None:
        """Do nothing: each call determines the shapes."""

    def recompute(self, **kwargs: Any) -> None:
        """Do nothing: recomputation is not supported."""

    def set_comm_fusion(self, fusion_type: int, recurse: bool = True) -> Cell:
        """Set ``comm_fusion`` of the parameters; it has no effect."""
        for parameter in self.get_parameters(recurse):
            parameter.comm_fusion = fusion_type
        return self

    def set_broadcast_flag(self, mode: bool = True) -> Cell:
        """Set a flag, without effect."""
        return self.add_flags(broadcast_flag=mode)

    def set_jit_config(self, jit_config: Any) -> None:
        """Do nothing: Cells are not compiled."""

    def add_flags(self, **flags: Any) -> Cell:
        """Set flags as attributes; ``get_flags`` returns them."""
        for name, value in flags.items():
            vars(self)[name] = value
        vars(self).setdefault("_flags", {}).update(flags)
        return self

    def get_flags(self) -> dict[str, Any]:
        """Return the flags."""
        return dict(vars(self).get("_flags", {}))

    def update_cell_prefix(self) -> None:
        """Set ``param_prefix`` of all Cells in it to their paths."""
        for path, cell in self.cells_and_names():
            cell.param_prefix = path

    def update_cell_type(self, cell_type: str) -> None:
        """Set ``cell_type``."""
        self.cell_type = cell_type

    def to_float(self, dst_type: torch.dtype) -> Cell:
        """Let this Cell and all Cells in it compute in a dtype; parameters and their gradients keep theirs.

        Raises:
            ValueError: ``dst_type`` is not float32, float16 or bfloat16.
        """
        if dst_type not in (torch.float32, torch.float16, torch.bfloat16):
            text = f"the argument 'dst_type' must be float32, float16 or bfloat16, but got {dst_type}"
            refuse(ValueError, f"For 'to_float', {text}")
        for _, cell in self.cells_and_names():
            vars(cell)["_computes_in"] = dst_type
        return self

    def extend_repr(self) -> str:
        """Return text for ``repr`` to print in the parentheses, before the Cells in this one."""
        return ""

    def __repr__(self) -> str:
        extra = self.extend_repr()
        children = [f"({name}): {repr(cell).replace(chr(10), chr(10) + '  ')}" for name, cell in self._cells.items()]
        if not children and "\n" not in extra:
            return f"{type(self).__name__}({extra})"
        lines = [*(extra.split("\n") if extra else []), *children]
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"


class _WithGradient(torch.autograd.Function):
    """A Cell's result, whose gradient ``bprop`` computes."""

    @staticmethod
    def forward(ctx: Any, cell: Cell, bprop: Callable[..., Any], *inputs: Any) -> Any:
        ctx.bprop, ctx.inputs = bprop, tuple(map(_detach, inputs))
        result = cell.construct(*ctx.inputs)
        ctx.outputs = tuple(map(_detach, result)) if isinstance(result, tuple) else _detach(result)
        if any(result is given for given in ctx.inputs):
            result = cast(Tensor, result).view_as(cast(Tensor, result))
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        received = tuple(wrap(gradient) for gradient in gradients)
        with torch.no_grad():
            found = ctx.bprop(*ctx.inputs, ctx.outputs, received if isinstance(ctx.outputs, tuple) else received[0])
        each = found if isinstance(found, tuple | list) else (found,)
        if len(each) < len(ctx.inputs):
            text = f"bprop should return a gradient for each of the {len(ctx.inputs)} inputs"
            refuse(RuntimeError, f"{text}, but got {len(each)}")
        pairs = zip(each, ctx.inputs, strict=False)
        own = (gradient if isinstance(given, torch.Tensor) else None for gradient, given in pairs)
        return None, None, *own


def _detach(value: Any) -> Any:
    settle(value)
    return cast(Tensor, wrap(value.detach())) if isinstance(value, torch.Tensor) else value
