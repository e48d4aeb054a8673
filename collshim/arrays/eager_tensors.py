"""Converts TensorFlow's eager tensors to torch and back, sharing memory; TensorFlow's tapes get gradients.

A tensor that a tape watches becomes a leaf of torch's graph that refers to it. A result whose graph has such leaves
becomes a function of their tensors with a custom gradient, which is torch's; this holds for higher gradients too.
TensorFlow is imported by the program that has such a tensor, not here.

Source: TensorFlow 2.21, its DLPack and ``tf.custom_gradient`` run on CPU.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.dlpack import to_dlpack

_TENSOR = "_collshim_eager_tensor"


def is_eager_tensor(array: object) -> bool:
    """Return whether this is a tensor of TensorFlow's."""
    return type(array).__module__.partition(".")[0] == "tensorflow"


def as_leaf(array: Any, tensor: Tensor) -> Tensor:
    """Return ``tensor``, which shares the memory of ``array``; if a tape watches that, as a leaf of torch's graph."""
    if tensor.is_floating_point() or tensor.is_complex():
        record = importlib.import_module("tensorflow.python.eager.record")
        if record.should_record_backprop([array]):
            setattr(tensor.requires_grad_(), _TENSOR, array)
    return tensor


def from_torch(tensor: Tensor) -> Any:
    """Return a TensorFlow tensor in the same memory, with a gradient for each TensorFlow tensor that it depends on."""
    tensorflow = importlib.import_module("tensorflow")
    contiguous = tensor.detach().resolve_conj().resolve_neg().contiguous()
    value = tensorflow.experimental.dlpack.from_dlpack(to_dlpack(contiguous))
    leaves = list(_leaves(tensor)) if tensor.requires_grad else []
    if not leaves:
        return value

    def gradient(upstream: Any) -> list[Any]:
        seed = as_leaf(upstream, torch.from_dlpack(upstream))
        found = torch.autograd.grad(tensor, leaves, seed, retain_graph=True, create_graph=seed.requires_grad)
        return [from_torch(one) for one in found]

    def result(*arrays: Any) -> tuple[Any, Any]:
        return tensorflow.identity(value), gradient

    return tensorflow.custom_gradient(result)(*[getattr(leaf, _TENSOR) for leaf in leaves])


def _leaves(tensor: Tensor) -> Iterator[Tensor]:
    """Yield the leaves of a tensor's graph that stand for TensorFlow tensors."""
    waiting: list[Any] = [tensor.grad_fn]
    seen = set[Any]()
    if hasattr(tensor, _TENSOR):
        yield tensor
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and hasattr(leaf, _TENSOR):
            yield leaf
        waiting.extend(following for following, _ in node.next_functions)
