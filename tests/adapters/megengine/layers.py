"""Programs about convolutions, recurrent layers, and optimizers with states; see ``programs``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _numbers(mge: Any, *shape: int) -> Any:
    return mge.Tensor(np.cos(np.arange(np.prod(shape)) * 0.9).reshape(shape).astype(np.float32))


def _filled(mge: Any, layer: Any) -> Any:
    """Give the parameters fixed values."""
    for number, parameter in enumerate(layer.parameters()):
        values = np.sin(np.arange(parameter.size) * 1.7 + number).reshape(parameter.shape)
        parameter._reset(mge.Tensor(values.astype(np.float32)))
    return layer


def _differentiated(mge: Any, layer: Any, *shape: int) -> list[Any]:
    """Return names, result and gradients of a layer."""
    _filled(mge, layer)
    inp = _numbers(mge, *shape)
    with mge.autodiff.GradManager().attach([inp, *layer.parameters()]) as manager:
        result = layer(inp)
        manager.backward((result * _numbers(mge, *result.shape)).sum())
    gradients = {name: parameter.grad for name, parameter in layer.named_parameters()}
    return [repr(layer), sorted(gradients), result, list(gradients.values()), inp.grad]


def convolved(mge: Any) -> Any:
    """Compute convolutions over three axes, local ones, and ``LinearBn1d``, with their gradients."""
    module = mge.module
    cases: list[tuple[Any, ...]] = [
        (module.Conv3d(2, 4, 2), 1, 2, 3, 3, 3),
        (module.Conv3d(2, 4, (1, 2, 2), stride=(1, 2, 1), padding=1, groups=2), 1, 2, 3, 3, 3),
        (module.Conv3d(2, 4, 2, bias=False, dilation=2), 1, 2, 3, 3, 3),
        (module.ConvTranspose3d(2, 4, 2), 1, 2, 2, 2, 2),
        (module.ConvTranspose3d(2, 3, 2, stride=2, padding=1, bias=False), 1, 2, 3, 3, 3),
        (module.LocalConv2d(2, 2, 4, 4, 3), 2, 2, 4, 4),
        (module.LocalConv2d(2, 4, 5, 4, (3, 2), stride=(2, 1), padding=1, groups=2), 2, 2, 5, 4),
        (module.LinearBn1d(2, 3), 4, 2),
        (module.LinearBnRelu1d(2, 3), 4, 2),
    ]
    return [_differentiated(mge, *case) for case in cases]


def recurred(mge: Any) -> Any:
    """Compute recurrent layers and cells; show the names and shapes of their states."""
    module = mge.module
    layers = [
        module.RNN(2, 3),
        module.RNN(2, 3, 2, nonlinearity="relu", bidirectional=True, batch_first=True),
        module.RNN(2, 3, 2, bias=False, dropout=0.0),
        module.LSTM(2, 3, bias=False),
        module.LSTM(2, 3, bidirectional=True),
        module.LSTM(2, 3, batch_first=True),
    ]
    results = [
        [repr(layer), {name: list(state.shape) for name, state in layer.state_dict().items()}, layer(inp)]
        for layer in layers
        for inp in [_numbers(mge, 5, 4, 2)]
        if _filled(mge, layer)
    ]
    state = _numbers(mge, 1, 4, 3)
    long, short = _filled(mge, module.LSTMCell(2, 3)), _filled(mge, module.RNNCell(2, 3, nonlinearity="relu"))
    cell_state, inp = _numbers(mge, 4, 3), _numbers(mge, 4, 2)
    results.append([layers[0](_numbers(mge, 5, 4, 2), state), layers[3](_numbers(mge, 5, 4, 2), (state, state))])
    results.append([long(inp), long(inp, (cell_state, cell_state)), short(inp), short(inp, cell_state)])
    return [*results, _filled(mge, module.RNNCell(2, 3, bias=False))(inp)]


def restarted(mge: Any) -> Any:
    """Make three steps of optimizers, and a fourth in another optimizer that loads the state."""
    optim, results = mge.optimizer, []
    makers: list[Callable[[Any], Any]] = [
        optim.Adagrad,
        lambda p: optim.Adagrad(p, lr=0.5, lr_decay=0.1, eps=1e-3, weight_decay=0.3),
        optim.Adadelta,
        lambda p: optim.Adadelta(p, lr=0.7, rho=0.5, eps=1e-3, weight_decay=0.2),
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
        lambda p: optim.AdamW([{"params": p, "lr": 0.3, "weight_decay": 0.1}], lr=0.1),
    ]
    for make in makers:
        first, second = mge.Parameter([1.0, -2.0]), mge.Parameter([0.0, 0.0])
        optimizer, other = make([first]), make([second])
        for step in range(3):
            first.grad = mge.Tensor([0.5 + step, -1.0])
            optimizer.step().clear_grad()
        second._reset(first)
        other.load_state_dict(optimizer.state_dict())
        second.grad = mge.Tensor([1.0, 1.0])
        state = other.step().state_dict()["state"][0]
        results.append([first, second, state, sorted(optimizer.param_groups[0])])
    return results


def rescheduled(mge: Any) -> Any:
    """Restore a scheduler; the learning rate changes at the next epoch."""
    optimizer = mge.optimizer.SGD([mge.Parameter([1.0])], lr=1.0)
    scheduler = mge.optimizer.MultiStepLR(optimizer, [1, 2])
    scheduler.step()
    scheduler.load_state_dict({"milestones": [1, 3], "gamma": 0.5, "current_epoch": 2})
    before = optimizer.param_groups[0]["lr"]
    scheduler.step()
    return [before, optimizer.param_groups[0]["lr"], scheduler.state_dict()]


ALL: dict[str, Callable[[Any], Any]] = {
    program.__name__: program for program in (convolved, recurred, restarted, rescheduled)
}
