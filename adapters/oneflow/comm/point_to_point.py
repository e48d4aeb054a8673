"""send, recv and barrier. Conventions of OneFlow 0.9.0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from collshim.arrays import Array
from collshim.errors import ArgumentIndexError, also, refusal
from collshim.oneflow.comm.arguments import refused, require_tensor, storage, values, world_communicator
from collshim.oneflow.device_names import Device, own_device
from collshim.oneflow.framework.tensor import adopt


def send(input: Array, dst: int, send_meta: bool = True) -> None:
    """Rank ``dst``'s next ``recv`` from this rank gets ``input``.

    Args:
        input: what is sent.
        dst: the rank that receives; not this one.
        send_meta: whether shape and dtype travel along, for a ``recv`` without either. (They always do
            while the check is on.)

    Raises:
        TypeError: ``input`` is no tensor, ``dst`` no int, or ``send_meta`` neither bool nor int.
        ValueError: ``dst`` is this rank. (OneFlow loses the message.)
        RuntimeError: ``dst`` is no rank; an IndexError too.
    """
    require_tensor("send(): argument 'input'", "input", input, TypeError)
    _require_int64("send", "dst", dst)
    _require_bool("send", "send_meta", send_meta)
    comm = world_communicator()
    _require_rank("send", "dst", dst)
    if dst == comm.rank:
        raise refused(ValueError, "send", "dst", f"{dst}, this rank", "another rank")
    comm.send(values("send", "input", input), int(dst), discovers=bool(send_meta)).wait()


def recv(
    src: int,
    shape: Sequence[int] | None = None,
    dtype: torch.dtype | None = None,
    device: Device = None,
    *,
    out: Array | None = None,
) -> Array:
    """What rank ``src`` sends to this rank next.

    Args:
        src: the rank that sends.
        shape: with ``dtype`` and ``device``, all three or none: what is awaited. None takes what comes.
        dtype: see ``shape``.
        device: see ``shape``.
        out: written into, and returned itself.

    Returns:
        ``out``, or a new torch tensor.

    Raises:
        TypeError: ``src`` is no int; ``out`` no tensor; ``shape`` no lengths, or ``dtype`` no dtype.
        NotImplementedError: one or two of ``shape``, ``dtype`` and ``device``.
        RuntimeError: no such device, a negative length; or what comes is not what is awaited; ``src`` is this rank, or
            no rank, an IndexError too. (OneFlow waits for ever for no rank.)
    """
    _require_int64("recv", "src", src)
    if out is not None:
        require_tensor(f"recv(): argument 'out' must be tensor, not {type(out)}", "out", out, TypeError)
    missing = [name for name, value in (("shape", shape), ("dtype", dtype), ("device", device)) if value is None]
    if len(missing) in (1, 2):
        expected = (
            "given: shape, dtype and device, or none of them (All or none of shape, dtype and device should have value)"
        )
        raise refused(NotImplementedError, "recv", " and ".join(missing), None, expected)
    _require_rank("recv", "src", src)
    if src == world_communicator().rank:
        raise refused(RuntimeError, "recv", "src", f"{src}, this rank", "another rank: nothing can be sent to oneself")
    if out is None and shape is None:
        return adopt(world_communicator().recv(int(src), discovers=True).wait())
    output = _place(shape, dtype, device) if out is None else out
    world_communicator().recv(int(src), out=storage("recv", "out", output), discovers=shape is None).wait()
    return output


def barrier() -> None:
    """No rank leaves before every rank has come."""
    world_communicator().barrier().wait()


def _place(shape: Sequence[int] | None, dtype: torch.dtype | None, device: Device) -> torch.Tensor:
    """What is received is written here."""
    try:
        return adopt(torch.empty(() if shape is None else tuple(shape), dtype=dtype, device=own_device(device)))
    except (TypeError, RuntimeError) as error:
        exception = TypeError if isinstance(error, TypeError) else RuntimeError
        actual, expected = f"{shape!r}, {dtype!r}, {device!r}", f"those of a tensor: {error}"
        raise refused(exception, "recv", "shape, dtype and device", actual, expected) from error


def _require_int64(function: str, what: str, value: object) -> None:
    if not isinstance(value, int | np.integer):
        expected = f"an int: {function}(): argument {what!r} must be int64, not {type(value)}"
        raise refused(TypeError, function, what, f"{value!r}", expected)


def _require_rank(function: str, what: str, rank: int) -> None:
    comm = world_communicator()
    if not 0 <= rank < comm.size:
        text = refusal(function, what, rank, f"from 0 to {comm.size - 1}", comm.rank, comm.size)
        raise also(ArgumentIndexError, RuntimeError)(text)


def _require_bool(function: str, what: str, value: object) -> None:
    if not isinstance(value, int | np.integer):  # OneFlow takes integers for bools, and refuses NumPy's bools
        expected = f"a bool: {function}(): argument {what!r} must be bool, not {type(value)}"
        raise refused(TypeError, function, what, f"{value!r}", expected)
