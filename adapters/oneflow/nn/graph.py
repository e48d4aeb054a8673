"""``flow.nn.Graph``, run line by line: its ``build`` is called each time, and nothing is compiled (OneFlow 0.9.0)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import torch

from collshim import world
from collshim.errors import ArgumentError, CollshimError, also

_SWITCHES = (
    *("allow_fuse_add_to_output", "allow_fuse_cast_scale", "allow_fuse_model_update_ops", "enable_amp"),
    *("enable_compress_memory", "enable_cudnn_conv_heuristic_search_algo", "enable_fused_model_update_cast"),
    *("enable_multi_tensor_update", "enable_straighten_algorithm", "enable_zero", "set_outputs_buffer_size"),
    "set_zero_redundancy_optimizer_mode",
)
_NUMBERS = itertools.count()


class GraphConfig:
    """The settings of a graph: switches of OneFlow's compiler, which have no effect here.

    Attributes:
        training: whether the graph has an optimizer.
    """

    def __init__(self) -> None:
        self.training = False

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in _SWITCHES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return lambda *args, **kwargs: None

    def set_gradient_accumulation_steps(self, value: int) -> None:
        """Accept the value 1, and refuse others.

        Raises:
            NotImplementedError: ``value`` is not 1.
        """
        if value != 1:
            raise also(CollshimError, NotImplementedError)(
                f"set_gradient_accumulation_steps: value is {value}, should be 1: accumulate in a loop{world.place()}"
            )


class Graph:
    """A computation and, with ``add_optimizer``, a training step: a call returns ``build``'s tensors, detached.

    Modules that are assigned to attributes belong to the graph. ``build`` calls ``backward``; the optimizers step after
    it.
    """

    _optimizers: list[tuple[Any, Any]]

    def __init__(self, *, debug_v_level: int = -1) -> None:
        vars(self)["_optimizers"] = list[tuple[Any, Any]]()
        self.config = GraphConfig()
        self.name = f"{type(self).__name__}_{next(_NUMBERS)}"

    def __setattr__(self, name: str, value: Any) -> None:
        if "_optimizers" not in vars(self):
            raise AttributeError(
                "Base class nn.Graph has not been initialized, please call super().__init__() in subclass of nn.Graph "
                "before assigning any attribute."
            )
        object.__setattr__(self, name, value)

    def build(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result; a derived class overrides this."""
        raise NotImplementedError("nn.Graph.build() must be overridden when subclassing the nn.Graph.")

    def add_optimizer(self, optim: Any, *, lr_sch: Any = None, is_sparse: bool | None = None) -> None:
        """Make each call of the graph end with a step of the optimizer, and then of the schedule.

        Raises:
            AssertionError: ``optim`` is not an optimizer.
        """
        if not isinstance(optim, torch.optim.Optimizer):
            text = f"optimizer must be an instance of Optimizer, but is {type(optim)}"
            raise also(ArgumentError, AssertionError)(text + world.place())
        self._optimizers.append((optim, lr_sch))
        self.config.training = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call ``build``, let the optimizers step, and return ``build``'s result."""
        for optimizer, _ in self._optimizers:
            optimizer.zero_grad()
        result = self.build(*args, **kwargs)
        for optimizer, schedule in self._optimizers:
            optimizer.step()
            if schedule is not None:
                schedule.step()
        return _detached(result)

    def debug(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: nothing is compiled, so there is nothing to log."""

    def _modules(self) -> dict[str, torch.nn.Module]:
        return {name: value for name, value in vars(self).items() if isinstance(value, torch.nn.Module)}

    def state_dict(self) -> dict[str, Any]:
        """Return the states of the graph's modules, by the modules' names."""
        return {name: module.state_dict() for name, module in self._modules().items()}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Load the states of the graph's modules."""
        for name, module in self._modules().items():
            module.load_state_dict(state_dict[name], strict)


def _detached(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, list | tuple):
        return type(value)([_detached(entry) for entry in value])
    return {key: _detached(entry) for key, entry in value.items()} if isinstance(value, dict) else value
