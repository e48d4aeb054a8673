"""Every form of a collective's call on GPUs, paired with every other: results match the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from collshim import Communicator
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import Setting, among_gpus, device, values
from tests.engine.scenarios.pairs import FORMS, SIZE, scenarios
from tests.engine.worlds import attempt

require_model()

CHECKS = (None, False, True)


def every_two_forms(comm: Communicator, collective: str, length: str, checked: bool) -> dict[str, Any]:
    """Return the failing pairs by name."""
    with device():  # a scenario allocates on this rank's GPU
        found = {name: attempt(call, comm) for name, call in scenarios(collective, length, checked).items()}
        return {name: outcome for name, outcome in found.items() if outcome.value is not True}


@pytest.mark.parametrize("checks", CHECKS)
@pytest.mark.parametrize("collective", FORMS)
def test_every_pair_of_forms_matches(collective: str, checks: bool | None) -> None:
    for length in ("within the check", "beyond 1 KiB"):
        arguments = collective, length, bool(checks)
        assert values(among_gpus(every_two_forms, SIZE, *arguments, setting=Setting(checks=checks))) == [{}] * SIZE


def listed(comm: Communicator) -> list[Any]:
    """Make an all_to_all of a list without an output, twice, the second time with a gradient."""
    parts = [torch.full((3,), 10.0 * comm.rank + peer, device=device()) for peer in range(comm.size)]
    first = comm.all_to_all(parts).wait()
    second = comm.all_to_all([part.requires_grad_() for part in parts]).wait()
    torch.stack(second).sum().mul(comm.rank + 1).backward()
    grads = [part.grad[0].item() for part in parts if part.grad is not None]
    return [type(first), [part[0].item() for part in first], [part[0].item() for part in second], grads]


@pytest.mark.parametrize("checks", CHECKS)
def test_list_of_equal_parts_needs_no_output(checks: bool | None) -> None:
    found = values(among_gpus(listed, 3, setting=Setting(checks=checks)))
    for rank, (kind, first, second, grads) in enumerate(found):
        assert kind is list
        assert first == second == [10.0 * peer + rank for peer in range(3)]
        assert grads == [1.0, 2.0, 3.0]
