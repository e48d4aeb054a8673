"""collshim: the collective-communication APIs of five frameworks over one engine.

Put ``collshim.`` in front of the import: ``import collshim.torch.distributed as dist``,
``import collshim.oneflow as flow``, ``from collshim.mindspore.communication import comm_func``,
``import collshim.tensorflow as tf``, ``import collshim.megengine as mge``.

This module binds no framework's name: ``from collshim import torch`` is the adapter. Its own names are imported on
first use, so that the command line answers without torch.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from collshim import compiling

if TYPE_CHECKING:
    from collshim.communicator import Communicator
    from collshim.errors import (
        ArgumentError,
        ArgumentIndexError,
        ArgumentTypeError,
        ArgumentValueError,
        BrokenCommunicatorError,
        CollshimError,
        CommunicationError,
        DeadlineError,
        MismatchError,
        MissingNameError,
        NotANumberError,
        PeerError,
        RankError,
        UsageWarning,
        WorldError,
    )
    from collshim.launching.launch import launch
    from collshim.messages import Recv, Send
    from collshim.patching.patch import patch
    from collshim.settings import Options, options
    from collshim.standing_in.stand_in import stand_in
    from collshim.work import Work
    from collshim.world import World, close, current, init

if not hasattr(os, "register_at_fork"):
    raise ImportError("collshim runs on Linux; it is untested on macOS, and Windows has no fork: use WSL there")
if not os.path.isdir(os.path.join(os.path.dirname(__file__), "torch")):
    raise ImportError(
        f"{os.path.join(os.path.dirname(__file__), 'torch')} is not a folder: the adapters are symbolic links, which "
        "were lost when this checkout or archive was unpacked. Run `pip install .` in it and import collshim from "
        "elsewhere, or check out again after `git config core.symlinks true`"
    )

compiling.leave_alone()

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "ArgumentIndexError",
    "ArgumentTypeError",
    "ArgumentValueError",
    "BrokenCommunicatorError",
    "CollshimError",
    "CommunicationError",
    "Communicator",
    "DeadlineError",
    "MismatchError",
    "MissingNameError",
    "NotANumberError",
    "Options",
    "PeerError",
    "RankError",
    "Recv",
    "Send",
    "UsageWarning",
    "Work",
    "World",
    "WorldError",
    "__version__",
    "close",
    "current",
    "init",
    "launch",
    "options",
    "patch",
    "stand_in",
]

_MODULES = {
    "Communicator": "communicator",
    "Options": "settings",
    "Recv": "messages",
    "Send": "messages",
    "Work": "work",
    "World": "world",
    "close": "world",
    "current": "world",
    "init": "world",
    "launch": "launching.launch",
    "options": "settings",
    "patch": "patching.patch",
    "stand_in": "standing_in.stand_in",
}
"""The module that defines each public name, except the errors."""

_SUBMODULES = ("arrays", "autograd", "errors", "layout", "world")
"""The modules that error texts and pages refer to, as in ``collshim.world.use(world)``."""


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"collshim.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'collshim' has no attribute {name!r}", name=name)
    value = getattr(import_module(f"collshim.{_MODULES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
