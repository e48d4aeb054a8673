"""Conversion of arrays to torch tensors and back: torch, NumPy, CuPy, TensorFlow, and anything that exports DLPack."""

from collshim.arrays.kinds import (
    DENSE,
    Array,
    Arrays,
    FromTorch,
    as_output,
    as_torch,
    is_array,
    like,
    register_kind,
    shares_elements,
    stream_follower,
    stripped,
    to_numpy,
    unsupported,
    writable_view,
)

__all__ = [
    "DENSE",
    "Array",
    "Arrays",
    "FromTorch",
    "as_output",
    "as_torch",
    "is_array",
    "like",
    "register_kind",
    "shares_elements",
    "stream_follower",
    "stripped",
    "to_numpy",
    "unsupported",
    "writable_view",
]
