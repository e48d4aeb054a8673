"""collshim: the collective-communication APIs of five frameworks over one engine.

Put ``collshim.`` in front of the import: ``import collshim.torch.distributed as dist``,
``import collshim.oneflow as flow``, ``from collshim.mindspore.communication import comm_func``,
``import collshim.tensorflow as tf``, ``import collshim.megengine as mge``.

This module binds no framework's name: ``from collshim import torch`` is the adapter.
"""

from collshim import compiling
from collshim.adapting.patching import patch
from collshim.adapting.stand_in import stand_in
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
    NotANumberError,
    PeerError,
    RankError,
    UsageWarning,
    WorldError,
)
from collshim.launch import launch
from collshim.messages import Recv, Send
from collshim.options import Options, options
from collshim.work import Work
from collshim.world import World, close, current, init

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
