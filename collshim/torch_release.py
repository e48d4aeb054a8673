"""What the installed release of torch does, wherever releases differ. Read from torch's names, not from its version."""

from __future__ import annotations

import torch.distributed
from torch._C._distributed_c10d import Backend
from torch.distributed import ProcessGroup

_HAS_SINGLES = hasattr(ProcessGroup, "all_gather_single")
"""Since torch 2.13."""

GLOO_EXCHANGES_LISTS = _HAS_SINGLES
"""Whether gloo's alltoall takes lists, of equal shapes; it does not in 2.11."""

GLOO_KEEPS_ITS_TIMEOUT = not hasattr(Backend, "set_timeout")
"""Whether gloo's calls keep the timeout that the group was made with, though another one is set later, as in 2.8."""

DROPS_PYTHON_WORKS = not _HAS_SINGLES
"""Whether C++ drops a work that is a Python object once nothing in Python refers to it."""


LIBUV_TAKES_SOCKETS = hasattr(torch.distributed.Store, "queue_push")
"""Whether the store's server on libuv, which is the default, takes a socket that listens, as since torch 2.8."""

HAS_NCCL2 = hasattr(torch.distributed, "ProcessGroupNCCL2")
"""Whether torch has its newer engine for NCCL, as since 2.15."""


def _has_python_backends() -> bool:
    try:
        type("Named", (Backend,), {})(0, 1)
    except TypeError:
        return False
    return True


HAS_PYTHON_BACKENDS = _has_python_backends()
"""Whether a class in Python may derive from torch's ``Backend``, as since 2.15."""
