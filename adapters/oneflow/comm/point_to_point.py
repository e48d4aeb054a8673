"""send, recv and barrier. Conventions of OneFlow 0.9.0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from collshim.arrays import Array
from collshim.errors import ArgumentIndexError, also, refusal
from collshim.oneflow.comm.arguments import argument_error, require_tensor, storage, values, world_communicator
from collshim.oneflow.device_names import Device, own_device
from collshim.oneflow.framework.tensor import adopt


def send(input: Array, dst: int, send_meta: bool = True) -> None:
    """Send ``input`` to rank ``dst``, whose next ``recv`` from this rank receives it.

    Args:
        input: the tensor to send.
        dst: the destination rank, which must not be this rank.
        send_meta: whether to send shape and dtype too, for a ``recv`` that does not specify them. If calls are checked,
            they are always sent.

    Raises:
        TypeError: ``input`` is not a tensor, ``dst`` not an int, or ``send_meta`` neither a bool nor an int.
        ValueError: ``dst`` is this rank (OneFlow loses the message).
        RuntimeError, also IndexError: ``dst`` is not a rank.
    """
    require_tensor("send(): argument 'input'", "input", input, TypeError)
    _require_int64("send", "dst", dst)
    _require_bool("send", "send_meta", send_meta)
    comm = world_communicator()
    _require_rank("send", "dst", dst)
    if dst == comm.rank:
        raise argument_error(ValueError, "send", "dst", f"{dst}, this rank", "another rank")
    comm.send(values("send", "input", input), int(dst), discovers=bool(send_meta)).wait()


def recv(
    src: int,
    shape: Sequence[int] | None = None,
    dtype: torch.dtype | None = None,
    device: Device = None,
    *,
    out: Array | None = None,
) -> Array:
    """Return the next message from rank ``src`` to this rank.

    Args:
        src: the source rank.
        shape: the shape of the message. Pass ``shape``, ``dtype`` and ``device``, or none of them to accept any
            message.
        dtype: see ``shape``.
        device: see ``shape``.
        out: a tensor that is written, and is then the result.

    Returns:
        ``out``, or a new torch tensor.

    Raises:
        TypeError: ``src`` is not an int; ``out`` is not a tensor; ``shape`` does not hold lengths; ``dtype`` is not a
            dtype, or ``device`` not a device or its name.
        NotImplementedError: one or two of ``shape``, ``dtype`` and ``device`` are None.
        RuntimeError: there is no such device; a length is negative; the message has a different shape or dtype; ``src``
            is this rank, or not a rank, which is also an IndexError (OneFlow waits forever for a rank that does not
            exist).
    """
    _require_int64("recv", "src", src)
    if out is not None:
        require_tensor(f"recv(): argument 'out' must be tensor, not {type(out)}", "out", out, TypeError)
    missing = [name for name, value in (("shape", shape), ("dtype", dtype), ("device", device)) if value is None]
    if len(missing) in (1, 2):
        expected = (
            "given: shape, dtype and device, or none of them (All or none of shape, dtype and device should have value)"
        )
        raise argument_error(NotImplementedError, "recv", " and ".join(missing), None, expected)
    known = None if shape is None else _place(shape, dtype, device)
    _require_rank("recv", "src", src)
    if src == world_communicator().rank:
        raise argument_error(
            RuntimeError, "recv", "src", f"{src}, this rank", "another rank: a rank cannot receive from itself"
        )
    output = known if out is None else out
    if output is None:
        return adopt(world_communicator().recv(int(src), discovers=True).wait())
    world_communicator().recv(int(src), out=storage("recv", "out", output), discovers=shape is None).wait()
    return output


def barrier() -> None:
    """Wait until every rank has called this."""
    world_communicator().barrier().wait()


def _place(shape: Sequence[int], dtype: torch.dtype | None, device: Device) -> torch.Tensor:
    """Return a new tensor for the message."""
    try:
        if isinstance(device, int):
            raise TypeError(f"recv(): argument 'device' must be device, not {type(device)}")
        return adopt(torch.empty(tuple(shape), dtype=dtype, device=own_device(device)))
    except (TypeError, RuntimeError) as error:
        exception = TypeError if isinstance(error, TypeError) else RuntimeError
        actual, expected = f"{shape!r}, {dtype!r}, {device!r}", f"those of a tensor: {error}"
        raise argument_error(exception, "recv", "shape, dtype and device", actual, expected) from error


def _require_int64(function: str, what: str, value: object) -> None:
    if not isinstance(value, int | np.integer):
        expected = f"an int: {function}(): argument {what!r} must be int64, not {type(value)}"
        raise argument_error(TypeError, function, what, f"{value!r}", expected)


def _require_rank(function: str, what: str, rank: int) -> None:
    comm = world_communicator()
    if not 0 <= rank < comm.size:
        text = refusal(function, what, rank, f"from 0 to {comm.size - 1}", comm.rank, comm.size)
        raise also(ArgumentIndexError, RuntimeError)(text)


def _require_bool(function: str, what: str, value: object) -> None:
    if not isinstance(value, int | np.integer):  # OneFlow accepts integers as bools, and refuses NumPy's bools
        expected = f"a bool: {function}(): argument {what!r} must be bool, not {type(value)}"
        raise argument_error(TypeError, function, what, f"{value!r}", expected)
