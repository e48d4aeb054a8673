"""``oneflow.sysconfig``: facts of OneFlow's build that programs read."""

from __future__ import annotations

import torch

from collshim.adapting.absent import saying


def with_cuda() -> bool:
    """Return whether torch, which does the computation here, was built with CUDA."""
    return torch.version.cuda is not None


def has_rpc_backend_grpc() -> bool:
    """Return True: ranks may be on several machines."""
    return True


def has_rpc_backend_local() -> bool:
    """Return True: a single rank needs no other process."""
    return True


def with_rdma() -> bool:
    """Return False: OneFlow's transport over RDMA is not available."""
    return False


def with_mlir() -> bool:
    """Return False: OneFlow's compiler is not available."""
    return False


__getattr__ = saying(__name__)
