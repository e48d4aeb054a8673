"""Graphs run line by line: results, training, and what is refused. Losses are those of OneFlow 0.9.0 on two ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import collshim.oneflow as flow

pytestmark = pytest.mark.ranks(2)


def counted(shape: tuple[int, ...]) -> Any:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return flow.tensor(values, placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.split(0))


def model() -> Any:
    made: Any = flow.nn.Linear(2, 1)
    flow.nn.init.constant_(made.weight, 0.5)
    flow.nn.init.constant_(made.bias, 0.1)
    return made.to_global(flow.placement("cpu", [0, 1]), flow.sbp.broadcast)


class Inference(flow.nn.Graph):
    def __init__(self) -> None:
        super().__init__()
        self.model = model()
        self.config.enable_amp(False)

    def build(self, x: Any) -> Any:
        return self.model(x)


class Training(flow.nn.Graph):
    def __init__(self) -> None:
        super().__init__()
        self.model = model()
        optimizer = flow.optim.SGD(self.model.parameters(), lr=0.01)
        self.add_optimizer(optimizer, lr_sch=flow.optim.lr_scheduler.StepLR(optimizer, 100))

    def build(self, x: Any, y: Any) -> Any:
        loss = flow.nn.MSELoss()(self.model(x), y)
        loss.backward()
        return loss


def test_result_carries_no_gradient() -> None:
    graph = Inference()
    result = graph(counted((4, 2)))
    assert (result.sbp, result.requires_grad, graph.config.training) == ((flow.sbp.split(0),), False, False)
    np.testing.assert_allclose(result.numpy()[:, 0], [0.6, 2.6, 4.6, 6.6], rtol=1e-6)
    assert graph.name.startswith("Inference_")


def test_optimizers_step_after_the_build() -> None:
    graph = Training()
    losses = [graph(counted((4, 2)), counted((4, 1))).numpy() for _ in range(3)]
    np.testing.assert_allclose(losses, [5.66, 0.4891, 0.0587], atol=1e-4)
    other = Training()
    other.load_state_dict(graph.state_dict())
    np.testing.assert_allclose(other.model.weight.numpy(), [[0.2602, 0.2002]], atol=1e-4)


def test_wrong_graphs_are_refused() -> None:
    class Early(flow.nn.Graph):
        def __init__(self) -> None:
            self.model = 1

    with pytest.raises(AttributeError, match=r"please call super\(\).__init__\(\)"):
        Early()
    graph: Any = Inference()
    with pytest.raises(AssertionError, match="optimizer must be an instance of Optimizer"):
        graph.add_optimizer(1)
    with pytest.raises(NotImplementedError, match="accumulate in a loop"):
        graph.config.set_gradient_accumulation_steps(2)
    with pytest.raises(NotImplementedError, match=r"build\(\) must be overridden"):
        flow.nn.Graph()(1)
    with pytest.raises(AttributeError, match="no attribute 'enable_nothing'"):
        graph.config.enable_nothing()
