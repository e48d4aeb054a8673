"""Mixed precision (source: MindSpore 2.10.0): float16 or bfloat16 in a network whose parameters stay float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from collshim.adapting.refusing import refuse
from collshim.mindspore.context import get_context
from collshim.mindspore.nn.cell import Cell
from collshim.mindspore.nn.layer.basic import Dense
from collshim.mindspore.nn.layer.conv import Conv2d
from collshim.mindspore.nn.layer.normalization import BatchNorm1d, BatchNorm2d, LayerNorm
from collshim.mindspore.nn.optim.optimizer import Optimizer
from collshim.mindspore.nn.wrap.cell_wrapper import TrainOneStepCell, WithLossCell
from collshim.mindspore.nn.wrap.loss_scale import TrainOneStepWithLossScaleCell
from collshim.mindspore.train.loss_scale_manager import DynamicLossScaleManager, LossScaleManager

__all__ = [
    "LEVELS",
    "auto_mixed_precision",
    "build_train_network",
    "custom_mixed_precision",
    "get_black_list",
    "get_white_list",
    "require_options",
]
LEVELS = ("O0", "O1", "O2", "O3", "auto")
_WHITE_CELLS = (Conv2d, Dense)
_BLACK_CELLS = (BatchNorm1d, BatchNorm2d, LayerNorm)
_WHITE_FUNCTIONS = frozenset({"__matmul__", "__rmatmul__", "addmm", "bmm", "conv2d", "linear", "matmul", "mm"})


def get_white_list() -> list[Any]:
    """Return the Cells that compute in the lower precision at the levels "O1" and "auto"."""
    return list(_WHITE_CELLS)


def get_black_list() -> list[Any]:
    """Return the Cells that compute in float32 at the level "O2"."""
    return list(_BLACK_CELLS)


class _Multiplying(TorchFunctionMode):
    """Lets products and convolutions compute in a lower precision, with float32 results."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self._dtype = dtype

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        if getattr(func, "__name__", "") not in _WHITE_FUNCTIONS:
            return func(*args, **named)
        return func(*map(self._lower, args), **{key: self._lower(value) for key, value in named.items()}).float()

    def _lower(self, value: Any) -> Any:
        return value.to(self._dtype) if isinstance(value, torch.Tensor) and value.dtype is torch.float32 else value


class _Mixed(Cell):
    """A network in mixed precision: its floating-point outputs are float32."""

    def __init__(self, network: Cell, multiplying: torch.dtype | None = None) -> None:
        super().__init__(auto_prefix=False)
        self._network, self._multiplying = network, multiplying

    def construct(self, *inputs: Any, **named: Any) -> Any:
        """Return the network's outputs."""
        if self._multiplying is None:
            return _in_float32(self._network(*inputs, **named))
        with _Multiplying(self._multiplying):
            return _in_float32(self._network(*inputs, **named))


def _in_float32(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_in_float32, value))
    return value.to(torch.float32) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def auto_mixed_precision(network: Cell, amp_level: str = "O0", dtype: Any = torch.float16) -> Cell:
    """Return a Cell that computes the network in mixed precision, with float32 results.

    Args:
        network: a Cell.
        amp_level: "O0", the network as it is; "O1" or "auto", products and convolutions in ``dtype``; "O2", all but
            normalizations; "O3", everything.
        dtype: float16 or bfloat16.

    Raises:
        TypeError: ``network`` is not a Cell.
        ValueError: the level or the dtype is unknown.
    """
    if not isinstance(network, Cell):
        refuse(TypeError, f"For amp_level '{amp_level}', the network type should be Cell.")
    if dtype not in (torch.float16, torch.bfloat16):
        refuse(ValueError, f"The dtype should be one of (mstype.float16, mstype.bfloat16), but got {dtype}.")
    if amp_level not in LEVELS:
        refuse(ValueError, f"The amp level {amp_level} is not supported")
    if amp_level == "O0":
        return network
    if amp_level in ("O1", "auto"):
        return _Mixed(network, dtype)
    return _lowered(network, dtype, _BLACK_CELLS if amp_level == "O2" else ())


def custom_mixed_precision(network: Cell, *, white_list: Any = None, black_list: Any = None, dtype: Any = None) -> Cell:
    """Return a Cell that computes in ``dtype``, by default float16: Cells in a white list, or all but a black list.

    Raises:
        TypeError: ``network`` is not a Cell.
        ValueError: not exactly one list is given.
    """
    if not isinstance(network, Cell):
        refuse(TypeError, f"The network type should be Cell, but got {type(network)}")
    if (white_list is None) == (black_list is None):
        text = "one of white_list and black_list must be provided, not both"
        refuse(ValueError, f"For custom_mixed_precision, {text}.")
    lower = dtype or torch.float16
    if black_list is not None:
        return _lowered(network, lower, tuple(each for each in black_list if isinstance(each, type)))
    for _, cell in network.cells_and_names():
        if type(cell) in white_list:
            cell.to_float(lower)
    return _Mixed(network)


def _lowered(network: Cell, dtype: Any, black: tuple[type, ...]) -> Cell:
    network.to_float(dtype)
    for _, cell in network.cells_and_names():
        if black and isinstance(cell, black):
            cell.to_float(torch.float32)
    return _Mixed(network)


def build_train_network(
    network: Cell,
    optimizer: Any,
    loss_fn: Any = None,
    level: str = "O0",
    boost_level: str = "O0",
    **kwargs: Any,
) -> Cell:
    """Return the Cell of a training step in mixed precision.

    Args:
        network: a Cell; it returns the loss itself if ``loss_fn`` is None.
        optimizer: the optimizer.
        loss_fn: the loss of the network's output and a label.
        level: see ``auto_mixed_precision``; "O2" scales the loss dynamically.
        boost_level: "O0".
        kwargs: ``loss_scale_manager``, instead of the level's; ``keep_batchnorm_fp32``, whether "O2" and "O3" compute
            normalizations in float32.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the level or a keyword is unknown; or the device is the CPU, and steps would be skipped.
        NotImplementedError: ``boost_level`` is not "O0".
    """
    if not isinstance(optimizer, Optimizer):
        text = f"should be one of '['Optimizer']', but got type '{type(optimizer).__name__}'"
        refuse(TypeError, f"The type of 'optimizer' {text}.")
    require_options(level, boost_level, kwargs)
    manager = kwargs.get("loss_scale_manager", DynamicLossScaleManager() if level == "O2" else None)
    lowered = auto_mixed_precision(network, _level(level, kwargs.get("keep_batchnorm_fp32")))
    whole = lowered if loss_fn is None else WithLossCell(lowered, loss_fn)
    update = None if manager is None else manager.get_update_cell()
    if update is not None:
        if get_context("device_target") == "CPU":
            text = "`loss_scale_manager=None` or `loss_scale_manager=FixedLossScaleManager(drop_overflow_update=False)`"
            refuse(ValueError, f"Only {text} are supported on device `CPU`.")
        return TrainOneStepWithLossScaleCell(whole, optimizer, update).set_train()
    return TrainOneStepCell(whole, optimizer, None if manager is None else manager.get_loss_scale()).set_train()


def _level(level: str, keeps: bool | None) -> str:
    return {True: "O2", False: "O3"}[keeps] if level in ("O2", "O3") and keeps is not None else level


def require_options(level: str, boost_level: str, options: dict[str, Any]) -> None:
    """Refuse unknown levels and keywords of ``build_train_network``."""
    if level not in LEVELS:
        refuse(ValueError, f"The 'level' should be in : {list(LEVELS)}, but got {level}.")
    if boost_level != "O0":
        refuse(NotImplementedError, f"boost_level is {boost_level!r}, should be 'O0': nothing is boosted here")
    for name, value in options.items():
        if name not in ("loss_scale_manager", "keep_batchnorm_fp32", "boost_config_dict", "acc_level"):
            text = f"should be 'loss_scale_manager' or 'keep_batchnorm_fp32', but got '{name}'"
            refuse(ValueError, f"The argument in 'kwargs' {text}.")
        if name == "loss_scale_manager" and not isinstance(value, LossScaleManager | None):
            text = f"should be one of '['LossScaleManager']', but got type '{type(value).__name__}'"
            refuse(TypeError, f"The type of 'loss_scale_manager' {text}.")
