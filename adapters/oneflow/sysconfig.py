"""``oneflow.sysconfig``: what OneFlow's build says of itself that programs ask for."""

from __future__ import annotations

import torch


def with_cuda() -> bool:
    """Whether torch, which computes here, was built with CUDA."""
    return torch.version.cuda is not None


def has_rpc_backend_grpc() -> bool:
    """Whether ranks may be on several machines: they may."""
    return True


def has_rpc_backend_local() -> bool:
    """Whether a single rank needs no others: it does not."""
    return True


def with_rdma() -> bool:
    """Whether OneFlow's own transport over RDMA is there: it is not."""
    return False


def with_mlir() -> bool:
    """Whether OneFlow's compiler is there: it is not."""
    return False
