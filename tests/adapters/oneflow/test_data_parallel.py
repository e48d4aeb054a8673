"""flow.nn.parallel.DistributedDataParallel: values are those of OneFlow 0.9.0 with two ranks, unless noted."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

import collshim
import collshim.oneflow as flow
from collshim.oneflow.nn.parallel import DistributedDataParallel
from tests.adapters.conftest import Run, each_of


class Product(flow.nn.Module):
    """A module that multiplies by its weights, in an order that can depend on the rank."""

    def __init__(self, count: int = 1, used: Callable[[int], list[int]] = lambda rank: [0]) -> None:
        super().__init__()
        self.weights = torch.nn.ParameterList(flow.nn.Parameter(flow.Tensor([n + 1])) for n in range(count))
        self.used = used

    def forward(self, x: Any) -> Any:
        for number in self.used(flow.env.get_rank()):
            x = x * self.weights[number]
        return x


def own() -> Any:
    """Return rank r's input, r + 1."""
    return flow.Tensor([1]) * (flow.env.get_rank() + 1)


def gradients(module: Any) -> list[float]:
    return [parameter.grad.item() for parameter in module.parameters()]


def both(run: Run, rank: Callable[[], Any]) -> Any:
    """Return the result of two ranks, which must be equal."""
    first, second = run(rank, 2)
    assert first == second
    return first


@pytest.mark.ranks(2)
def test_wrapper_returns_the_module_itself() -> None:
    module = Product()
    assert (DistributedDataParallel(module) is module, bool(module._is_ddp_module)) == (True, True)


def once(module: Any) -> None:
    module(own()).backward()


def thrice(module: Any) -> None:
    for _ in range(3):
        once(module)


def two_forwards_first(module: Any) -> None:
    first, second = module(own()), module(own())
    first.backward()
    (second * 2).backward()


def changed_before(module: Any) -> None:
    result = module(own())
    result += 1
    result.mul_(2)
    result.backward()


def partly_used() -> Product:
    return Product(3, lambda rank: [0] if rank else [0, 1])


def used_in_any_order() -> Product:
    return Product(3, lambda rank: [0, 1, 2] if rank else [2, 0, 1])


BUCKETS = [{"bucket_size": size, "use_bucket": used} for size in (1, 2, 10) for used in (True, False)]


@pytest.mark.parametrize(
    ("make", "choice", "train", "wanted"),
    [
        (Product, {}, once, [1.5]),
        (Product, {}, thrice, [4.5]),
        (Product, {}, two_forwards_first, [4.5]),
        (Product, {}, changed_before, [3.0]),
        (partly_used, {}, once, [2.0, 0.5, 0.0]),
        *((used_in_any_order, buckets, once, [9.0, 4.5, 3.0]) for buckets in BUCKETS),
    ],
)
def test_gradients_are_averaged(run: Run, make: Any, choice: dict[str, Any], train: Any, wanted: list[float]) -> None:
    def rank() -> list[float]:
        module = DistributedDataParallel(make(), **choice)
        train(module)
        return gradients(module)

    assert both(run, rank) == wanted


def test_parameters_come_from_rank_0(run: Run) -> None:
    def rank(**choice: bool) -> tuple[Any, ...]:
        module = Product()
        weight = module.weights[0]
        weight.data = weight.data * (flow.env.get_rank() + 1)
        DistributedDataParallel(module, **choice)
        return weight.item(), weight.requires_grad, weight.is_leaf

    assert both(run, rank) == (1.0, True, True)
    assert run(lambda: rank(broadcast_parameters=False)[0], 2) == [1.0, 2.0]


class Buffered(flow.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.buffer: Any
        self.register_buffer("buffer", flow.tensor([1, 2]) * (flow.env.get_rank() + 1))
        self.weight = flow.nn.Parameter(flow.Tensor([1]))

    def forward(self, x: Any) -> Any:
        result = self.buffer + x
        self.buffer.copy_(x)
        return result * self.weight


@pytest.mark.parametrize(
    ("broadcast_buffers", "wanted"),
    [
        (True, [([3.0, 5.0], [4.0, 6.0], [2, 3]), ([5.0, 8.0], [6.0, 9.0], [4, 6])]),
        (False, [([3.0, 5.0], [4.0, 6.0], [2, 3]), ([6.0, 10.0], [8.0, 12.0], [4, 6])]),
    ],
)
def test_buffers_come_from_rank_0_at_each_forward(run: Run, broadcast_buffers: bool, wanted: Any) -> None:
    def rank() -> Any:
        module = DistributedDataParallel(Buffered(), broadcast_buffers=broadcast_buffers)
        x = flow.tensor([2, 3]) * (flow.env.get_rank() + 1)
        return module(x).tolist(), module(x).tolist(), module.buffer.tolist()

    assert run(rank, 2) == wanted


Pair = collections.namedtuple("Pair", "first second")
FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "tuple": lambda a, b: (a, b),
    "named tuple": Pair,
    "list": lambda a, b: [a, b],
    "dictionary": lambda a, b: {"a": a, "b": b},
    "dictionaries": lambda a, b: [{"a": a}, {"b": b}],
    "nested": lambda a, b: {"x": (a, [b, None, 3])},
}


class Outputs(flow.nn.Module):
    def __init__(self, form: str) -> None:
        super().__init__()
        self.one, self.other = (flow.nn.Parameter(flow.Tensor([1])) for _ in range(2))
        self.form = form

    def forward(self, x: Any) -> Any:
        return FORMS[self.form](x * self.one, x * self.other)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.ranks(2)
def test_several_outputs_keep_their_form_and_train(form: str) -> None:
    module = DistributedDataParallel(Outputs(form))
    result = module(own())
    assert type(result) is type(FORMS[form](0, 0))
    leaves = [leaf for leaf in tree_leaves(result) if isinstance(leaf, flow.Tensor)]
    leaves[0].backward()
    assert (len(leaves), gradients(module)) == (2, [1.5, 0.0])


class Partly(Outputs):
    def forward(self, x: Any) -> Any:
        return FORMS[self.form](x * self.one, x + 1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.ranks(2)
def test_output_that_needs_no_gradient_stays_so(form: str) -> None:
    leaves = tree_leaves(DistributedDataParallel(Partly(form))(own()))
    assert [leaf.requires_grad for leaf in leaves if isinstance(leaf, flow.Tensor)] == [True, False]


@each_of(2, gives=[False] * 2)
def test_wrapper_does_nothing_without_gradients() -> bool:
    module = DistributedDataParallel(Product())
    with flow.no_grad():
        return bool(module(own()).requires_grad)


@pytest.mark.ranks(2)
def test_frozen_parameters_get_no_gradients() -> None:
    module = Product(2, lambda rank: [0, 1])
    module.weights[1].requires_grad_(False)
    DistributedDataParallel(module)(own()).backward()
    assert (module.weights[0].grad.item(), module.weights[1].grad) == (3.0, None)


@each_of(2, gives=[1.0, 2.0])
def test_module_without_parameters_is_accepted() -> float:
    return float(DistributedDataParallel(flow.nn.Identity())(own()).item())


@pytest.mark.ranks(2)
def test_memory_of_the_last_step_is_freed() -> None:
    module = DistributedDataParallel(Product())
    hooks = next(iter(module.parameters()))._post_accumulate_grad_hooks
    for _ in range(3):
        module(own()).backward()
    assert (len(hooks), len(module._forward_hooks)) == (1, 1)


def spread() -> Any:
    module: Any = Product()
    return module.to_global(flow.placement("cpu", [0, 1]), flow.sbp.broadcast)


def test_complete_buckets_are_averaged_beside_frozen_parameters(run: Run) -> None:
    def rank() -> Any:
        module = DistributedDataParallel(Product(2, lambda rank: [0, 1]), bucket_size=1)
        found = []
        for frozen in (True, False):
            module.weights[0].requires_grad = not frozen
            module.zero_grad()
            module(own()).backward()
            found.append(module.weights[1].grad.item())
        return [*found, module.weights[0].grad.item()]

    assert both(run, rank) == [1.5, 1.5, 3.0]


@pytest.mark.ranks(2)
def test_parameter_frozen_too_late_is_refused_if_others_wait_for_it() -> None:
    module = DistributedDataParallel(Product(2, lambda rank: [0, 1]))
    module.weights[0].requires_grad = False
    with pytest.raises(RuntimeError, match=r"weights\.0 had a gradient when .* 1 other gradients are not averaged"):
        module(own()).backward()


@pytest.mark.parametrize(
    ("module", "choice", "kind", "text"),
    [
        (lambda: flow.nn.Linear(1, 1).double(), {}, AssertionError, r"torch.float64, should be oneflow.float32"),
        (lambda: 3, {}, AttributeError, "module is <class 'int'>, should be a flow.nn.Module"),
        (Product, {"bucket_size": 0}, ValueError, "bucket_size is 0, should be a positive int"),
        (Product, {"bucket_size": 2.5}, TypeError, "bucket_size is 2.5, should be a positive int"),
        (spread, {}, RuntimeError, "a parameter of the module is a global tensor, should be a local one"),
    ],
)
@pytest.mark.ranks(2)
def test_invalid_module_is_refused(module: Any, choice: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text) as caught:
        DistributedDataParallel(module(), **choice)
    assert isinstance(caught.value, collshim.ArgumentError)
