"""``tf.dtypes``: torch's dtypes under TensorFlow's names."""

from __future__ import annotations

from typing import Any

import torch

from collshim.adapting.absent import saying
from collshim.tensorflow.arithmetic import cast
from collshim.tensorflow.constants import is_of_strings, torch_dtype
from collshim.tensorflow.data_types import STRING, DType

__all__ = [
    "DType",
    "as_dtype",
    "bfloat16",
    "bool",
    "cast",
    "complex64",
    "complex128",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "string",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

bfloat16 = torch.bfloat16
bool = torch.bool
complex128 = torch.complex128
complex64 = torch.complex64
double = torch.float64
float16 = torch.float16
float32 = torch.float32
float64 = torch.float64
half = torch.float16
int16 = torch.int16
int32 = torch.int32
int64 = torch.int64
int8 = torch.int8
string = STRING
uint16 = torch.uint16
uint32 = torch.uint32
uint64 = torch.uint64
uint8 = torch.uint8


def as_dtype(type_value: Any) -> DType:
    """Describe a torch dtype, a NumPy dtype, Python's float or bool, or a name; raise TypeError for others."""
    return STRING if is_of_strings(type_value) else DType(torch_dtype(type_value))


__getattr__ = saying(__name__, "torch has no others")
