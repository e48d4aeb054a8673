"""MegEngine up to the training loop: ``import collshim.megengine as mge`` (source: MegEngine 1.13.0, run and read).

``mge.distributed`` has the process group and ``mge.functional.distributed`` the twelve operations. ``mge.tensor``,
``mge.functional``, ``mge.module``, ``mge.optimizer`` and ``mge.autodiff`` serve the computation between them. The
operations and ``GradManager`` also take torch tensors, NumPy arrays and anything that supports DLPack. ``jit.trace``
and ``amp.autocast`` change nothing. ``mge.data`` has the classes with which tutorials of distributed training read
data. Quantization and detection are not available; using such a name raises an error that says so.

Differences from the other adapters in collshim:

* A group's order is kept, and its first rank is the root; there is no argument for the root. * Gathers and scatters
take an ``axis`` and join along it; nothing is stacked. Axes are counted from the front. * ``reduce_sum`` and ``gather``
return None on ranks other than the root, ``remote_send`` on all. ``broadcast`` and ``scatter`` do
  not read the inputs of other ranks.
* Every call returns when it has its result, except ``remote_send``, which returns at once.
* In ``all_reduce_max`` and ``all_reduce_min``, every tied rank receives the whole gradient.
* Without ``init_process_group`` nothing communicates, even on a rank that ``collshim.launch`` started: there is no
  fallback to a world of one rank.

Differences from MegEngine:

* Every dtype that torch moves is accepted; MegEngine accepts int8, uint8, int32, float16, float32 and fails on others.
* An array without elements is refused with RuntimeError; MegEngine raises its own error, later.
* NumPy arrays are accepted, and the results are then NumPy arrays.
* If MegEngine returns wrong data (negative axes of ``reduce_scatter_sum``, ``scatter`` and ``all_to_all``) or
  hangs (a rank that does not join a backward pass), an error is raised. A group with a rank twice is refused.
* A ``scatter`` whose input cannot be cut is refused on the root, the only rank that has its shape; MegEngine informs
all ranks first. * A refused ``init_process_group`` has no effect; MegEngine considers itself distributed afterwards. *
Names of GPUs mean the CPU if ``COLLSHIM_DEVICE=cpu`` is set; "xpu" is the CPU if there is no GPU. * In a world that
this rank has already joined, ``get_client`` needs a ``Server`` that the user started. * Streams in device names are
accepted and left to torch; ``backend`` is only a name. * A tensor with its own gradient is a leaf while a manager
records; at other times nothing is recorded.
"""

from __future__ import annotations

import collshim.megengine.core._imperative_rt.common
import collshim.megengine.core._imperative_rt.core2
import collshim.megengine.core._trace_option
import collshim.megengine.core.autodiff.grad
import collshim.megengine.core.ops.builtin
import collshim.megengine.core.tensor.dtype
import collshim.megengine.core.tensor.utils
import collshim.megengine.distributed.functional  # so that mge.distributed.functional exists
import collshim.megengine.functional.debug_param  # noqa: F401
from collshim.adapting.absent import refuse_everywhere, saying
from collshim.megengine import (
    amp,
    autodiff,
    config,
    core,
    data,
    device,
    distributed,
    dtr,
    functional,
    hub,
    jit,
    logger,
    module,
    optimizer,
    random,
    utils,
)
from collshim.megengine.core._imperative_rt.core2 import full_sync
from collshim.megengine.device import *  # noqa: F403  # as in MegEngine
from collshim.megengine.logger import enable_debug_log, get_logger, set_log_file, set_log_level
from collshim.megengine.serialization import load, save
from collshim.megengine.tensor import Parameter, Tensor, tensor
from collshim.megengine.version import __version__

__all__ = [
    "Parameter",
    "Tensor",
    "__version__",
    "amp",
    "autodiff",
    "config",
    "core",
    "data",
    "device",
    "distributed",
    "dtr",
    "enable_debug_log",
    "functional",
    "get_logger",
    "hub",
    "jit",
    "load",
    "logger",
    "module",
    "optimizer",
    "random",
    "save",
    "set_log_file",
    "set_log_level",
    "tensor",
    "utils",
]

_full_sync = full_sync

__getattr__ = saying(__name__)
refuse_everywhere(__name__)
