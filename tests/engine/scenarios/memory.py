"""Inputs and outputs in unusual memory, and arrays of every kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import torch
from torch import Tensor

from collshim import Communicator
from tests.engine.foreign import Bare, Standard
from tests.engine.scenarios.forms import LENGTHS, part, total
from tests.engine.worlds import plain

COMPLEX = torch.complex128


def _of_input(view: Callable[[Tensor], Tensor], comm: Communicator, length: int) -> Any:
    """Reduce and gather a view of a rank's numbers; expect the result of its contiguous copy."""
    given = view(part(length, comm.rank, dtype=COMPLEX))
    everyone = [view(part(length, rank, dtype=COMPLEX)).clone().resolve_conj() for rank in range(comm.size)]
    stacked = torch.stack(everyone)
    reduced = torch.equal(comm.all_reduce(given).wait(), stacked.sum(0))
    exchanged = comm.all_to_all([given] * comm.size, discovers=True).wait()
    return reduced, torch.equal(comm.all_gather(given).wait(), stacked), torch.equal(torch.stack(exchanged), stacked)


def _imaginary(tensor: Tensor) -> Tensor:
    """Return a lazily negated view, as torch makes of a conjugate."""
    found = (tensor * 1j).conj().imag
    assert found.is_neg()
    return found


def _conjugated_out(comm: Communicator, length: int) -> Any:
    given = part(length, comm.rank, dtype=COMPLEX) * (1 + 2j)
    wanted = total(length, comm.size).to(COMPLEX) * (1 + 2j)
    out, copy = torch.zeros_like(given).conj(), torch.zeros_like(given).conj()
    comm.all_reduce(given, out=out).wait()
    comm.broadcast(given if comm.rank == 0 else copy, 0, out=copy).wait()
    return torch.equal(out, wanted), torch.equal(copy, part(length, 0, dtype=COMPLEX) * (1 + 2j))


def _channels_last(comm: Communicator, length: int) -> Any:
    given = torch.arange(2 * 3 * length * 2.0).view(2, 3, length, 2).to(memory_format=torch.channels_last)
    out = torch.zeros_like(given)
    comm.all_reduce(given, out=out).wait()
    return torch.equal(out, given * comm.size), torch.equal(comm.all_reduce(given).wait(), given * comm.size)


def _numpy(view: Callable[[np.ndarray[Any, Any]], Any], comm: Communicator, length: int) -> Any:
    """Pass a NumPy view and check that a NumPy array of the same numbers comes back."""
    given = view(part(length, comm.rank).numpy())
    got = comm.broadcast(given, 0).wait()
    reduced = comm.all_reduce(given, "max").wait()
    wanted = [view(part(length, rank).numpy()) for rank in range(comm.size)]
    return plain(got) == plain(np.array(wanted[0])), plain(reduced) == plain(np.max(wanted, axis=0))


def _read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array.flags.writeable = False
    return array


def _numpy_out(comm: Communicator, length: int) -> Any:
    given = part(length, comm.rank).numpy()
    out = np.zeros_like(given, order="F")
    got = comm.all_reduce(given, out=out).wait()
    return got is out, np.array_equal(out, total(length, comm.size).numpy())


def _bfloat16_of_numpy(comm: Communicator, length: int) -> Any:
    given = part(length, comm.rank).numpy().astype(ml_dtypes.bfloat16)
    got = comm.all_gather(given).wait()
    wanted = [part(length, rank).numpy().astype(ml_dtypes.bfloat16) for rank in range(comm.size)]
    return got.dtype.name, np.array_equal(got, np.stack(wanted))


def _foreign(kind: type, comm: Communicator, length: int) -> Any:
    given = kind(part(length, comm.rank).numpy())
    got = comm.all_reduce(given).wait()
    out = kind(np.zeros((2, length)))
    into = comm.all_reduce(given, out=out).wait()
    wanted = total(length, comm.size).numpy()
    return type(got) is kind, np.array_equal(got.array, wanted), into is out, np.array_equal(out.array, wanted)


def _mixed_list(comm: Communicator, length: int) -> Any:
    """A list can hold several kinds; the first one's comes back."""
    given: list[Any] = [part(length, comm.rank, peer) for peer in range(comm.size)]
    given[0] = given[0].numpy()
    got = comm.all_to_all(given, discovers=True).wait()
    return [type(item).__name__ for item in got], plain([torch.as_tensor(item) for item in got]) == plain(
        [part(length, rank, comm.rank) for rank in range(comm.size)]
    )


def _by_the_receivers_kind(comm: Communicator, length: int) -> Any:
    """Ranks can hold different kinds: each gets its own back."""
    mine = part(length, comm.rank)
    got = comm.all_reduce(mine if comm.rank == 0 else mine.numpy()).wait()
    return type(got).__name__, np.array_equal(np.asarray(got), total(length, comm.size).numpy())


def _subclass(comm: Communicator, length: int) -> Any:
    got = comm.all_reduce(torch.nn.Parameter(part(length, comm.rank), requires_grad=False)).wait()
    return torch.equal(got, total(length, comm.size))


def _requires_grad(comm: Communicator, length: int) -> Any:
    given = part(length, comm.rank).requires_grad_()
    got = comm.all_reduce(given).wait()
    with torch.no_grad():
        quiet = comm.all_reduce(given).wait()
    return got.requires_grad, quiet.requires_grad, torch.equal(got.detach(), total(length, comm.size))


def _view_of_a_work(comm: Communicator, length: int) -> Any:
    """A view gets torch tensors; the conversion to the caller's kind follows it."""
    seen: list[str] = []

    def doubled(result: Tensor) -> Any:
        seen.append(type(result).__name__)
        return (result * 2, None, [result])

    got = comm.all_reduce(part(length, comm.rank).numpy()).then(doubled).wait()
    kinds = [type(got).__name__, type(got[0]).__name__, type(got[1]).__name__, type(got[2][0]).__name__]
    return seen, kinds, np.array_equal(got[0], 2 * total(length, comm.size).numpy())


NUMPY_VIEWS: dict[str, Callable[[np.ndarray[Any, Any]], Any]] = {
    "negative strides": lambda array: array[::-1, ::-1],
    "Fortran order": np.asfortranarray,
    "read-only": _read_only,
    "broadcast": lambda array: np.broadcast_to(array[0], (3, array.shape[1])),
    "every second": lambda array: array[:, ::2],
    "a scalar": lambda array: array[0, 0],
    "0-d": lambda array: array[0, 0].reshape(()),
    "no elements": lambda array: array[:, :0],
}
TORCH_VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "transposed": lambda tensor: tensor.t(),
    "every second": lambda tensor: tensor[:, ::2],
    "expanded": lambda tensor: tensor[0].expand(3, -1),
    "conjugated": lambda tensor: (tensor * (1 + 2j)).conj(),
    "negated": _imaginary,
    "0-d": lambda tensor: tensor[0, 0],
}

MEMORY: dict[str, tuple[Callable[[Communicator, int], Any], Callable[[int, int], Any]]] = {
    **{
        f"torch, {name}": (partial(_of_input, view), lambda r, n: (True, True, True))
        for name, view in TORCH_VIEWS.items()
    },
    **{f"numpy, {name}": (partial(_numpy, view), lambda r, n: (True, True)) for name, view in NUMPY_VIEWS.items()},
    "conjugated output": (_conjugated_out, lambda r, n: (True, True)),
    "channels last": (_channels_last, lambda r, n: (True, True)),
    "numpy output": (_numpy_out, lambda r, n: (True, True)),
    "numpy bfloat16": (_bfloat16_of_numpy, lambda r, n: ("bfloat16", True)),
    "foreign, of the array standard": (partial(_foreign, Standard), lambda r, n: (True, True, True, True)),
    "foreign, registered": (partial(_foreign, Bare), lambda r, n: (True, True, True, True)),
    "several kinds in a list": (_mixed_list, lambda r, n: (["ndarray"] * n, True)),
    "another kind on each rank": (_by_the_receivers_kind, lambda r, n: ("ndarray" if r else "Tensor", True)),
    "a parameter": (_subclass, lambda r, n: True),
    "an input that requires a gradient": (_requires_grad, lambda r, n: (True, False, True)),
    "a view of a work": (_view_of_a_work, lambda r, n: (["Tensor"], ["tuple", "ndarray", "NoneType", "ndarray"], True)),
}


def _scenario(name: str, length: str, comm: Communicator) -> Any:
    """Select by name, because a view cannot be sent to another process."""
    return MEMORY[name][0](comm, LENGTHS[length])


def memory() -> dict[str, partial[Any]]:
    return {f"{name}, {length}": partial(_scenario, name, length) for name in MEMORY for length in LENGTHS}
