"""OneFlow's communication functions, over collshim: ``import collshim.oneflow as flow``.

    flow.comm                       the collectives and send/recv
    flow.env                        get_rank, get_world_size, get_local_rank, get_node_size
    flow.tensor, zeros, ones,       aliases of torch's: what the documented examples of ``flow.comm`` are
        arange                      made with
    flow.Tensor, flow.int64, ...    torch's tensor class and dtypes

There is no init call, as in OneFlow: the first use joins the world that MASTER_ADDR, MASTER_PORT, WORLD_SIZE
and RANK describe, or a world of one. (Where some of the four are missing OneFlow warns and takes a world of
one; here that is a WorldError.) Tensors are torch tensors (their ``repr`` says ``torch.int64`` where OneFlow's
says ``oneflow.int64``), NumPy arrays, CuPy arrays or anything with DLPack. ``device="cuda"`` is this rank's
GPU, number ``get_local_rank()``, as in OneFlow.

The rest of OneFlow (``nn``, ``optim``, global tensors, ...) is not covered: such a name raises
AttributeError. Sources: the reference manual and behaviour of OneFlow 0.9.0.
"""

from __future__ import annotations

from typing import NoReturn

from torch import (
    Tensor,
    bfloat16,
    bool,
    complex64,
    complex128,
    double,
    float,
    float16,
    float32,
    float64,
    half,
    int8,
    int32,
    int64,
    uint8,
)

from collshim.oneflow import comm, env
from collshim.oneflow.creation import arange, ones, tensor, zeros

__all__ = [
    "Tensor",
    "arange",
    "bfloat16",
    "bool",
    "comm",
    "complex64",
    "complex128",
    "double",
    "env",
    "float",
    "float16",
    "float32",
    "float64",
    "half",
    "int8",
    "int32",
    "int64",
    "ones",
    "tensor",
    "uint8",
    "zeros",
]


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"module 'collshim.oneflow' has no attribute {name!r}: it covers OneFlow's communication "
        f"({', '.join(__all__)}); compute with torch"
    )
