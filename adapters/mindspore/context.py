"""``mindspore.context`` (source: MindSpore 2.10.0): settings of this rank, kept and given back.

Nothing is compiled: both modes run line by line. A device is a name, and tensors are on the CPU. In the parallel
modes "stand_alone", "data_parallel" and "hybrid_parallel" the program calls the collectives itself; in the others,
where MindSpore's compiler divides the operators, no Cell runs.
"""

from __future__ import annotations

import threading
from typing import Any

from collshim.adapting.devices import tell_of_cpu
from collshim.adapting.refusing import refuse

__all__ = [
    "GRAPH_MODE",
    "PYNATIVE_MODE",
    "ParallelMode",
    "get_auto_parallel_context",
    "get_context",
    "reset_auto_parallel_context",
    "set_auto_parallel_context",
    "set_context",
    "set_device",
]
GRAPH_MODE, PYNATIVE_MODE = 0, 1
_TARGETS = ("CPU", "GPU", "Ascend")


class ParallelMode:
    """How a program is parallel."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"
    MODE_LIST = (STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL)


_DEFAULTS: dict[str, Any] = {"mode": PYNATIVE_MODE, "device_target": "CPU", "device_id": 0}
_PARALLEL: dict[str, Any] = {
    "parallel_mode": ParallelMode.STAND_ALONE,
    "gradients_mean": False,
    "device_num": None,
    "global_rank": None,
    "parameter_broadcast": False,
}


class _Settings(threading.local):
    """Those of the rank that a thread is."""

    def __init__(self) -> None:
        self.context = dict(_DEFAULTS)
        self.parallel = dict(_PARALLEL)


_SETTINGS = _Settings()


def set_context(**kwargs: Any) -> None:
    """These settings are kept. ``device_target`` names the backend that ``init`` takes without a name.

    Tensors are on the CPU whatever it is; the log says so once if there are GPUs.

    Raises:
        ValueError: another ``mode`` or ``device_target``.
    """
    if kwargs.get("mode", GRAPH_MODE) not in (GRAPH_MODE, PYNATIVE_MODE):
        text = "the argument 'mode' must be context.GRAPH_MODE (0) or context.PYNATIVE_MODE (1), but got "
        refuse(ValueError, f"For 'context.set_context', {text}{kwargs['mode']}")
    if kwargs.get("device_target", "CPU") not in _TARGETS:
        text = f"the argument 'device_target' must be one of {list(_TARGETS)}, but got {kwargs['device_target']}"
        refuse(ValueError, f"For 'context.set_context', {text}")
    if kwargs.get("device_target", "CPU") != "CPU":
        tell_of_cpu("mindspore")
    _SETTINGS.context.update(kwargs)


def get_context(attr_key: str) -> Any:
    """A setting.

    Raises:
        ValueError: there is none of that name.
    """
    if attr_key not in _SETTINGS.context:
        refuse(ValueError, f"For 'get_context', {attr_key!r} was not set, and has no default")
    return _SETTINGS.context[attr_key]


def require_own_parallelism() -> None:
    """Refuse the modes in which MindSpore divides the operators."""
    mode = _SETTINGS.parallel["parallel_mode"]
    if mode in (ParallelMode.SEMI_AUTO_PARALLEL, ParallelMode.AUTO_PARALLEL):
        text = "where MindSpore's compiler divides the operators: should be 'data_parallel' or 'hybrid_parallel'"
        refuse(NotImplementedError, f"parallel_mode is {mode!r}, {text}")


def set_device(device_target: str, device_id: int | None = None) -> None:
    """As ``set_context`` with these two.

    Raises:
        ValueError: another ``device_target``.
    """
    set_context(device_target=device_target, device_id=device_id or 0)


def set_auto_parallel_context(**kwargs: Any) -> None:
    """These settings are kept. ``gradients_mean`` is what ``DistributedGradReducer`` does without its ``mean``.

    A mode in which MindSpore divides the operators is refused where a Cell is called.

    Raises:
        ValueError: no parallel mode.
    """
    mode = kwargs.get("parallel_mode", ParallelMode.STAND_ALONE)
    if mode not in ParallelMode.MODE_LIST:
        text = f"must be in {ParallelMode.MODE_LIST}, but got {mode}"
        refuse(ValueError, f"The context configuration parameter 'parallel_mode' {text}")
    _SETTINGS.parallel.update(kwargs)


def get_auto_parallel_context(attr_key: str) -> Any:
    """A setting of parallelism.

    Raises:
        ValueError: there is none of that name.
    """
    if attr_key not in _SETTINGS.parallel:
        refuse(ValueError, f"Get context keyword {attr_key} is not recognized!")
    return _SETTINGS.parallel[attr_key]


def reset_auto_parallel_context() -> None:
    """The settings of parallelism are the first ones."""
    _SETTINGS.parallel = dict(_PARALLEL)
