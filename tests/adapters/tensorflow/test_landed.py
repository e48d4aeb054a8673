"""Behaviour that programs around collectives rely on: identity of lists, proxies, options, broadcasts, numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch

import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import context, mirrored

Options = tf.distribute.experimental.CommunicationOptions


class Pair(NamedTuple):
    x: Any
    y: Any


class Proxy:
    """A proxy that claims the class of another object, like those of the package wrapt."""

    def __init__(self, wrapped: Any) -> None:
        self.__wrapped__ = wrapped

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return type(object.__getattribute__(self, "__wrapped__"))
        return object.__getattribute__(self, name)

    def __iter__(self) -> Any:
        return iter(self.__wrapped__)

    def __len__(self) -> int:
        return len(self.__wrapped__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)


def test_identity_of_a_list_passes_gradients() -> None:
    x, y = torch.tensor(1.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    (tf.identity([x, y]) * torch.tensor([3.0, 5.0])).sum().backward()
    assert (x.grad, y.grad) == (torch.tensor(3.0), torch.tensor(5.0))


def test_identity_of_numbers_and_tensors_is_one_tensor() -> None:
    assert torch.equal(tf.identity([torch.tensor(1.0), 2.0]), torch.tensor([1.0, 2.0]))


def test_proxied_namedtuple_is_a_structure() -> None:
    def gathered() -> Any:
        found = context().all_reduce("SUM", Proxy(Pair(torch.tensor(1.0), torch.tensor(2.0))))
        return type(found) is Proxy, type(found.__wrapped__) is Pair, float(found.x), float(found.y)

    found = [part.values if hasattr(part, "values") else part for part in mirrored(2).run(gathered)]
    assert found == [True, True, (2.0, 2.0), (4.0, 4.0)]


def test_options_repr_matches_tensorflow() -> None:
    written = "Options(bytes_per_pack=5,timeout_seconds=None, implementation=CommunicationImplementation.AUTO)"
    assert str(Options(bytes_per_pack=5)) == written


def test_options_and_hints_have_tensorflow_classes() -> None:
    hints = tf.distribute.experimental.CollectiveHints(1, 2.5)
    assert [type(Options()).__name__, type(hints).__name__] == ["Options", "Options"]
    assert (hints.bytes_per_pack, hints.timeout_seconds) == (1, 2.5)


def test_broadcast_to_a_distributed_value_is_mirrored() -> None:
    strategy = mirrored(2)
    destinations = strategy.experimental_distribute_values_from_function(lambda place: torch.tensor(0.0))
    found = strategy.extended.broadcast_to(torch.tensor(3.0), destinations)
    assert type(found).__name__ == "Mirrored"
    assert [float(value) for value in found.values] == [3.0, 3.0]


def test_broadcast_to_a_device_is_one_tensor() -> None:
    assert float(mirrored(2).extended.broadcast_to(1.0, "/cpu:0")) == 1.0


@pytest.mark.parametrize("destinations", [["/cpu:0"], ("/cpu:0",)])
def test_broadcast_refuses_lists(destinations: Any) -> None:
    with pytest.raises(AssertionError, match="should not be a list or tuple"):
        mirrored(2).extended.broadcast_to(1.0, destinations)


def test_sum_over_one_mirrored_replica_is_a_tensor() -> None:
    found = mirrored(1).reduce("SUM", 1, axis=None)
    assert (found.dtype, int(found)) == (torch.int32, 1)


def test_mean_over_one_mirrored_replica_is_the_number() -> None:
    assert mirrored(1).reduce("MEAN", 1, axis=None) == 1


def test_number_of_the_only_worker_is_a_tensor() -> None:
    assert isinstance(tf.distribute.MultiWorkerMirroredStrategy().reduce("MEAN", 1, axis=None), torch.Tensor)
