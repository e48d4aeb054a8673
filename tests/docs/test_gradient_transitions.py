"""docs/gradients.md: every function's transition is the one that its results, gradients and slopes follow."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import collshim
from collshim.conformance import transitions
from collshim.conformance.bindings import find
from collshim.conformance.bindings.answers import Seen, Tree, leaves
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.differentiation import Weighing, outputs, weights_of
from collshim.conformance.bindings.messages import Ring
from collshim.conformance.bindings.rank_context import RankContext
from collshim.conformance.bindings.spelling import IN_PLACE, Spelling
from collshim.conformance.cases import PART_PER_RANK, Case
from collshim.conformance.conventions.transitions import Ruled, ruled
from collshim.conformance.transitions import Flat, Transition
from collshim.conformance.values import Part
from collshim.megengine.autodiff import GradManager
from collshim.mindspore.ops import communication
from tests.docs.transition_programs import FACTOR, PROGRAMS, ROOT, SIZE, enter

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*deprecated.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*autograd kernel was not registered.*:UserWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"),
]

STEP = 0.125
"""Reductions are linear in one input; a smallest or largest value is so within half the distance of the inputs."""
SECONDS = 60.0


class Measured(NamedTuple):
    """One rank's result, the derivative of its loss by that, its gradient, and its loss's slopes in all inputs."""

    result: Part | None
    weights: Part | None
    gradient: Part | None
    slopes: Part


def inputs_of(collective: str, source: str = "") -> list[Part]:
    """Return each rank's input: multiples of a half that all differ; equal on all ranks if they are of type R."""
    length = 2 * SIZE if collective in PART_PER_RANK else 2
    whole = np.random.default_rng(4).permutation(SIZE * length) / 2 + 0.5
    parts = np.split(whole, SIZE)
    return [parts[0]] * SIZE if source == "R" else parts


def slopes(loss: Callable[[list[Part]], float], inputs: list[Part], source: str) -> Part:
    """Measure the growth of this rank's loss with each input number; those of type R move on all ranks together."""
    found = []
    for giver in range(SIZE):
        for place in range(len(inputs[giver])):
            move = np.zeros(len(inputs[giver]))
            move[place] = STEP
            movers = range(SIZE) if source == "R" else [giver]
            sides = [[one + sign * move * (rank in movers) for rank, one in enumerate(inputs)] for sign in (1, -1)]
            found.append((loss(sides[0]) - loss(sides[1])) / (2 * STEP))
    return np.array(found)


def dot(weights: Part | None, result: Part | None) -> float:
    return 0.0 if weights is None or result is None else float(weights @ result)


def flat(tree: Tree) -> Part | None:
    arrays = [leaf.values if isinstance(leaf, Seen) else leaf for leaf in leaves(tree)]
    found = [array.ravel().astype(np.float64) for array in arrays if isinstance(array, np.ndarray)]
    return np.concatenate(found) if found else None


def by_binding(binding: Spelling, asked: Case, source: str) -> Measured:
    """Measure a spelling on this rank; if it returns its result twice, the weights of both add up."""
    here = collshim.current()
    context = RankContext(here.rank, here.size)
    value = binding.value(asked, here.rank, Weighing())
    weights = flat(weights_of([binding.returned(asked, value), value if binding.is_written else None]))

    def loss(inputs: list[Part]) -> float:
        moved = replace(asked, given=tuple(np.concatenate(inputs).tolist()))
        return dot(weights, flat(binding.held(binding.answer(context, moved))))

    answer = binding.answer(context, replace(asked, gradient=True))
    gradient = next(held for name, held in answer.arguments.items() if name.startswith("the gradient of"))
    found = slopes(loss, inputs_of(asked.collective, source), source)
    once = flat(value)
    total = weights if weights is None or once is None else weights.reshape(-1, len(once)).sum(axis=0)
    return Measured(flat(binding.held(answer)), total, flat(gradient), found)


def case_of(binding: Binding, reduce_op: str, source: str = "") -> Case:
    given = tuple(np.concatenate(inputs_of(binding.collective, source)).tolist())
    root = ROOT if binding.admits.roots else 0
    return Case(binding.collective, SIZE, (2,), reduce_op=reduce_op, root=root, given=given)


def by_program(one: Ruled, transition: Transition) -> Measured:
    """Measure a function that has no binding."""
    enter(one.framework)
    rank, inputs = collshim.current().rank, inputs_of(one.collective)

    def call(x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = PROGRAMS[one.path](x, one.reduce_op)
        return found.reshape(-1)

    x = torch.tensor(inputs[rank], dtype=torch.float32)
    with GradManager() if one.framework == "megengine" else nullcontext() as manager:
        if manager is None:
            x.requires_grad_()
        else:
            manager.attach(x)
        result = call(x)
        weights = np.arange(len(result)) % 5 + 1.0 + 3 * rank
        weights *= transition.target != "V*" or rank == ROOT
        total = (result * torch.tensor(weights, dtype=torch.float32)).sum()
        total.backward() if manager is None else manager.backward(total)

    def loss(moved: list[Part]) -> float:
        return dot(weights, call(torch.tensor(moved[rank], dtype=torch.float32)).detach().numpy().astype(np.float64))

    gradient = None if x.grad is None else x.grad.detach().numpy().astype(np.float64)
    return Measured(result.detach().numpy(), weights, gradient, slopes(loss, inputs, transition.source))


def launched(fn: Callable[..., Any], *args: Any) -> list[Any]:
    return collshim.launch(partial(fn, *args), SIZE, timeout=SECONDS)


def check(transition: Transition, collective: str, root: int, ranks: list[Measured]) -> None:
    """Compare results and gradients with the transition's, and gradients with the slopes of the summed losses."""
    inputs: Flat = inputs_of(collective, transition.source)
    if collective == "ring":  # the transition leaves open which rank's tensor goes where
        check_types(transition, ranks)
    else:
        compare(transition.forward(inputs, root, FACTOR), [one.result for one in ranks], needed=True)
        implied = transition.backward(inputs, [one.weights for one in ranks], root, FACTOR)
        compare(implied, [one.gradient for one in ranks])
    length = 2 * SIZE if collective in PART_PER_RANK else 2
    first = [np.zeros(length) if one.gradient is None else one.gradient[:length] for one in ranks]
    wanted = np.sum([one.slopes for one in ranks], axis=0)
    own = [np.sum(first, axis=0)] * SIZE if transition.source == "R" else first
    assert_allclose(np.concatenate(own), wanted, rtol=1e-5)


def compare(implied: Flat, found: Flat, *, needed: bool = False) -> None:
    """Compare what the ranks hold; what the transition leaves out has no meaning, or is a zero gradient."""
    for rank, (wanted, held) in enumerate(zip(implied, found, strict=True)):
        if wanted is not None:
            assert held is not None, f"rank {rank} has None"
            assert_allclose(held, np.tile(wanted, len(held) // len(wanted)), rtol=1e-5, err_msg=f"rank {rank}")
        elif not needed:
            assert held is None or not held.any(), f"rank {rank} has {held}"


def check_types(transition: Transition, ranks: list[Measured]) -> None:
    """Compare which ranks' results and gradients are equal, and which are there at all, with their types."""
    types = {"result": transition.target, "gradient": transitions.OF_GRADIENT[transition.source]}
    for name, kind in types.items():
        held = [getattr(one, name) for one in ranks]
        are_equal = all(np.array_equal(held[0], other) for other in held)
        are_everywhere = all(one is not None and one.any() for one in held)
        assert (are_equal, are_everywhere) == (kind in ("R", "I"), kind != "V*"), name


RULES = [one for one in ruled() if one.transition is not None]
SPELLED = [one for one in RULES if one.name and one.name != "oneflow.comm.gather" and "nested" not in one.name]
BESIDE = [one for one in RULES if not one.name]
SILENT = [one for one in ruled() if one.transition is None and one.reduce_op == "sum"]


def names(one: Ruled) -> str:
    return f"{one.name or one.path}-{one.reduce_op}"


@pytest.mark.parametrize("one", SPELLED, ids=names)
def test_spelled_function_has_the_transition(one: Ruled) -> None:
    binding: Any = find(one.name)
    assert one.transition is not None
    asked = case_of(binding, one.reduce_op, one.transition.source)
    check(one.transition, one.collective, asked.root, launched(by_binding, binding, asked, one.transition.source))


@pytest.mark.parametrize("one", BESIDE, ids=names)
def test_other_function_has_the_transition(one: Ruled) -> None:
    assert one.transition is not None
    check(one.transition, one.collective, ROOT, launched(by_program, one, one.transition))


def _watched(place: Any, inputs: Any, forward: Callable[[], Tree], weigh: Any) -> Tree:
    """Give the inputs a history, and store the gradients that arrive there if each rank weighs its results by 2."""
    starts = [torch.zeros(array.shape, dtype=array.dtype, requires_grad=True) for array in inputs]
    for array, start in zip(inputs, starts, strict=True):
        array.add_(start)
    returned = forward()
    for array in outputs(returned):
        if array.requires_grad:
            array.backward(torch.full_like(array, 2.0))
    place.memory["gradients"] = [None if start.grad is None else start.grad.tolist() for start in starts]
    return returned


def by_silence(name: str) -> Any:
    here, binding = collshim.current(), find(name)
    context = RankContext(here.rank, here.size)
    watched = replace(binding, framework=replace(binding.framework, differentiate=_watched))
    watched.answer(context, replace(case_of(binding, "sum"), gradient=True))
    return context.memory["gradients"]


@pytest.mark.parametrize("one", [one for one in SILENT if one.collective != "ring"], ids=names)
def test_function_without_a_rule_passes_no_gradient(one: Ruled) -> None:
    """If it writes over its input, the gradient of that is passed on as if there were no call."""
    unchanged = [2.0, 2.0] if one.collective in IN_PLACE else None
    for found in launched(by_silence, one.name):
        assert all(gradient == unchanged for gradient in found)


class _Tracked(Ring):
    """A ring whose messages require a gradient."""

    def arguments(self, context: RankContext, case: Any) -> tuple[Any, Any]:
        given, buffer = super().arguments(context, case)
        return given.requires_grad_() * 1, buffer


def by_ring(name: str) -> bool:
    here, binding = collshim.current(), find(name)
    tracked = _Tracked(**{field.name: getattr(binding, field.name) for field in fields(binding)})
    context = RankContext(here.rank, here.size)
    context.once(("entered", binding.framework.name), lambda: binding.framework.enter(context))
    (received,) = outputs(tracked.held(tracked.call(context, case_of(binding, "sum"), None)))
    return bool(received.requires_grad)


@pytest.mark.parametrize("name", sorted({one.name for one in SILENT if one.collective == "ring" and one.name}))
def test_message_without_a_rule_requires_no_gradient(name: str) -> None:
    assert launched(by_ring, name) == [False] * SIZE


def _batched() -> bool:
    enter("mindspore")
    return bool(PROGRAMS["mindspore.ops.BatchISendIRecv"](torch.ones(2, requires_grad=True), "sum").requires_grad)


def test_batch_of_messages_requires_no_gradient() -> None:
    assert launched(_batched) == [False] * SIZE


def _switched() -> list[list[float]]:
    """Return the gradients of ``ops.communication``'s functions that return their results."""
    enter("mindspore")
    communication.set_comm_ops_inplace(False)
    out, calls = torch.zeros(3), list[Any]()
    calls.append(lambda x: communication.all_reduce(x)[0])  # type: ignore[index]
    calls.append(lambda x: communication.all_gather_into_tensor(torch.zeros(9), x)[0])  # type: ignore[index]
    calls.append(lambda x: communication.reduce_scatter_tensor(torch.zeros(1), x)[0])  # type: ignore[index]
    calls.append(lambda x: communication.all_to_all_single(out, x)[0])  # type: ignore[index]
    found = []
    for call in calls:
        x = torch.ones(3, requires_grad=True)
        call(x).backward(torch.full_like(call(x), collshim.current().rank + 1.0))
        assert x.grad is not None
        found.append(x.grad.tolist())
    communication.set_comm_ops_inplace(True)
    return found


def test_switched_functions_have_the_rules_of_comm_func() -> None:
    assert launched(_switched) == [[[6.0] * 3, [6.0] * 3, [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]] * SIZE


@pytest.mark.parametrize("one", ["P→I", "V→I", "I→R"])
def test_backward_with_an_invariant_is_known(one: str) -> None:
    source, _, target = one.partition("→")
    transition: Any = Transition(source, target)  # type: ignore[arg-type]
    inputs = inputs_of("all_gather")
    gradients = inputs_of("all_to_all") if one == "V→I" else inputs
    total: Part = np.sum(gradients, axis=0)
    own = [part[2 * rank : 2 * rank + 2] for rank, part in enumerate(gradients)]
    wanted = {"P→I": gradients, "V→I": own, "I→R": [total] * SIZE}
    for found, part in zip(transition.backward(inputs, gradients, 0, 1.0), wanted[one], strict=True):
        assert found is not None
        assert_allclose(found, part)
