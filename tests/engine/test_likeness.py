"""A repeated call is recognized by one look at its tensors, which detects all differences but memory and values."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from collshim.calls.likeness import likeness_of
from collshim.errors import ArgumentError
from collshim.world import local_worlds


def _negated() -> Tensor:
    return torch.ones(4, dtype=torch.complex64).conj().imag


def _made_in_inference_mode() -> Tensor:
    with torch.inference_mode():
        return torch.ones(4)


UNLIKE: dict[str, Callable[[], object]] = {
    "dtype": lambda: torch.ones(4, dtype=torch.float64),
    "shape": lambda: torch.ones(5),
    "dimensions": lambda: torch.ones(4, 1),
    "strides": lambda: torch.ones(8)[::2],
    "device": lambda: torch.ones(4, device="meta"),
    "layout": lambda: torch.ones(4).to_sparse(),
    "gradient": lambda: torch.ones(4, requires_grad=True),
    "lazily negated": _negated,
    "made in inference mode": _made_in_inference_mode,
    "class": lambda: torch.nn.Parameter(torch.ones(4), requires_grad=False),
    "no tensor": lambda: [1.0] * 4,
    "nothing": lambda: None,
}


@pytest.mark.parametrize("what", UNLIKE)
def test_only_memory_and_values_may_differ(what: str) -> None:
    alike = likeness_of(torch.zeros(4), torch.zeros(4))
    assert alike is not None
    assert alike(torch.ones(8)[:4], torch.ones(4))
    assert not alike(UNLIKE[what](), torch.ones(4))
    assert not alike(torch.ones(4), UNLIKE[what]())


ODD = ("strides", "gradient", "lazily negated", "made in inference mode")
FORMS = [(what, out) for what in ODD for out in ("none", "in place", "apart")]
FORMS.remove(("made in inference mode", "in place"))  # refused as an output


@pytest.mark.parametrize(("what", "out"), FORMS)
def test_call_with_other_tensors_is_not_alike(what: str, out: str) -> None:
    with local_worlds(1) as (world,):
        for make in (lambda: torch.ones(4), lambda: torch.ones(4), UNLIKE[what]):
            x = make()
            assert isinstance(x, Tensor)
            wanted = x.detach().clone()
            place = {"none": None, "in place": x.detach() if x.requires_grad else x, "apart": torch.empty(4)}[out]
            found = world.communicator.all_reduce(x, out=place).wait()
            assert torch.equal(found.detach(), wanted)
            assert place is None or found is place


def test_freed_memory_is_not_read_by_a_repeated_call() -> None:
    with local_worlds(1) as (world,):
        x = torch.ones(4)
        for _ in range(2):
            world.communicator.all_reduce(x, out=x).wait()
        x.untyped_storage().resize_(0)
        with pytest.raises(ArgumentError):
            world.communicator.all_reduce(x, out=x)
