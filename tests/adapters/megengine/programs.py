"""Small programs in MegEngine's terms: each takes the package and returns its values at the end."""

from __future__ import annotations

import copy
import io
import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np


def assigned(mge: Any) -> Any:
    """Assign to a part of a tensor, seen through its views, and apply ``+=``."""
    x = mge.Tensor(np.zeros((2, 3)))
    same, part = x, x[0]
    x[0] = 1
    x[1, 2] = mge.Tensor(5.0)
    x[..., 0] = [7, 8]
    doubled, also = mge.Tensor([1, 2]), x
    doubled *= 1.5
    also += 1
    return [same, part, doubled, x is also]


def reset(mge: Any) -> Any:
    """Give a parameter another value."""
    parameter = mge.Parameter([1.0, 2.0])
    parameter._reset(np.array([5, 6, 7]))
    first = type(parameter).__name__, parameter.numpy()
    parameter._reset(mge.Tensor([[3.0]]))
    return [first, parameter.numpy(), type(parameter + 1).__name__]


def copied(mge: Any) -> Any:
    """Copy with pickle and otherwise."""
    parameter = mge.Parameter([1.0, 2.0])
    copies = [pickle.loads(pickle.dumps(parameter)), copy.deepcopy(parameter), copy.copy(parameter)]
    file = io.BytesIO()
    mge.save({"a": parameter, "b": [1, "text"]}, file)
    file.seek(0)
    return [[type(one).__name__, one] for one in copies] + [mge.load(file)["a"], mge.load(_rewound(file))["b"]]


def _rewound(file: io.BytesIO) -> io.BytesIO:
    file.seek(0)
    return file


def differentiated(mge: Any) -> Any:
    """Compute gradients: of one loss, of two, and accumulated."""
    weight: Any = mge.Parameter([1.0, 2.0, 3.0])
    seen = []

    def doubled(parameter: Any, grad: Any) -> Any:
        seen.append(parameter is weight)
        return grad * 2

    manager = mge.autodiff.GradManager()
    manager.attach([weight], callbacks=[doubled])
    for factor in (1.0, 10.0):
        with manager:
            loss = (weight * weight * factor).sum()
            manager.backward(loss)
    first = weight.grad.numpy()
    weight.grad = None
    with manager:
        manager.backward([weight * 2, weight.sum()], [mge.Tensor([1.0, 10.0, 100.0]), mge.Tensor(1000.0)])
    return [first, weight.grad, seen, loss]


def twice_differentiated(mge: Any) -> Any:
    """Show which managers record another's backward: the one outside, but not the one inside or beside."""
    functional, manager_of = mge.functional, mge.autodiff.GradManager
    results = []
    for joined in ("outside", "inside", "beside"):
        x = mge.Tensor([0.5, 1.0])
        first, second = manager_of().attach([x]), manager_of().attach([x])
        if joined == "beside":
            with first | second:
                y = functional.cos(x)
                second.backward(y)
                first.backward(x.grad)
        elif joined == "outside":
            with first:
                with second:
                    y = functional.cos(x)
                    second.backward(y)
                first.backward(x.grad)
        else:
            with second, first:
                y = functional.cos(x)
                second.backward(y)
                first.backward(x.grad)
        results.append(x.grad.numpy())
    return results


def of_its_own(mge: Any) -> Any:
    """Define a function with a custom gradient."""

    class Scaled(mge.autodiff.Function):  # type: ignore[misc]
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.factor = factor

        def forward(self, x: Any, y: Any) -> Any:
            return x * y, x + y

        def backward(self, product: Any, total: Any) -> Any:
            return product * self.factor, total * self.factor

    x, y = mge.Tensor([1.0, 2.0]), mge.Tensor([3.0, 4.0])
    with mge.autodiff.GradManager().attach([x, y]) as manager:
        product, total = Scaled(10.0)(x, y)
        manager.backward((product * 2 + total * 3).sum())
    return [x.grad, y.grad, product, total]


def of_its_own_twice(mge: Any) -> Any:
    """Differentiate a custom gradient again: of a tensor that ``forward`` kept, and of the output itself."""

    class Exponential(mge.autodiff.Function):  # type: ignore[misc]
        def __init__(self, keeps: str) -> None:
            super().__init__()
            self.keeps = keeps

        def forward(self, x: Any) -> Any:
            y = mge.functional.exp(x)
            self.kept = y if self.keeps == "output" else x
            return y

        def backward(self, dy: Any) -> Any:
            if dy is None:
                return None
            return (self.kept if self.keeps == "output" else Exponential("input")(self.kept)) * dy * 10

    results = []
    for keeps in ("input", "output"):
        for again in ("output", "gradient"):
            x = mge.Tensor([0.5, 1.0])
            outer, inner = (mge.autodiff.GradManager().attach([x]) for _ in range(2))
            with outer:
                with inner:
                    y = Exponential(keeps)(x)
                    inner.backward(y)
                first = x.grad
                outer.backward(y if again == "output" else first)
            results.append([first, x.grad])
    return results


def held(mge: Any) -> Any:
    """List what a module finds, in which order, by which names."""
    module = mge.module

    class Net(module.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.b = [module.Linear(2, 1), module.ReLU()]
            self.a = {"x": module.BatchNorm2d(1), "w": mge.Parameter([1.0])}
            self.tied = self.b[0]
            self.buffer = mge.Tensor([2.0])

        def forward(self, x: Any) -> Any:
            return self.b[0](x)

    net = Net()
    net.eval()
    named = [
        [name for name, _ in listed]
        for listed in (net.named_parameters(), net.named_buffers(), net.named_modules(), net.named_children())
    ]
    return [*named, list(net.state_dict()), net.a["x"].training, named[0] == [n for n, _ in net.named_parameters()]]


def loaded(mge: Any) -> Any:
    """Load a state, and try states that do not fit."""
    net = mge.module.Sequential(OrderedDict(first=mge.module.Linear(2, 1), norm=mge.module.BatchNorm2d(2)))
    state = net.state_dict()
    state["first.weight"] = np.array([[3.0, 4.0]], np.float32)
    net.load_state_dict(state)
    found = [net.first.weight.numpy(), [list(value.shape) for value in state.values()]]
    for broken in ({}, {**state, "more": state["first.bias"]}, {**state, "first.bias": np.zeros(3, np.float32)}):
        try:
            net.load_state_dict(broken)
        except (KeyError, ValueError) as error:
            found.append("KeyError" if isinstance(error, KeyError) else "ValueError")
    net.load_state_dict({}, strict=False)
    return [*found, len(net), type(net[0]).__name__, [type(part).__name__ for part in net[:1]]]


def hooked(mge: Any) -> Any:
    """Change a forward with hooks before and after it, until they are removed."""
    identity = mge.module.Identity()
    before = identity.register_forward_pre_hook(lambda module, inputs: (inputs[0] + 1,))
    identity.register_forward_hook(lambda module, inputs, outputs: outputs * 10)
    first = identity(mge.Tensor([1.0]))
    before.remove()
    return [first, identity(mge.Tensor([1.0]))]


def optimized(mge: Any) -> Any:
    """Make four steps of each optimizer with the same gradients."""
    optim, found = mge.optimizer, []
    makers: list[Callable[[Any], Any]] = [
        lambda p: optim.SGD(p, lr=0.1),
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        lambda p: optim.Adam(p, lr=0.1, weight_decay=0.01),
        lambda p: optim.AdamW(p, lr=0.1),
        lambda p: optim.Adam([{"params": p, "lr": 0.3}], lr=0.1, betas=(0.5, 0.9)),
    ]
    for make in makers:
        parameter = mge.Parameter([1.0, -2.0])
        optimizer = make([parameter])
        for step in range(4):
            parameter.grad = mge.Tensor([0.5 + step, -1.0])
            optimizer.step().clear_grad()
        state = optimizer.state_dict()
        found.append([parameter.numpy(), parameter.grad, sorted(state), state["state"]])
    return [[row[0], row[1], row[2], {str(key): value for key, value in row[3].items()}] for row in found]


def scheduled(mge: Any) -> Any:
    """Return the learning rates by epoch."""
    optimizer = mge.optimizer.SGD([mge.Parameter([1.0])], lr=1.0)
    scheduler = mge.optimizer.MultiStepLR(optimizer, [2, 3], gamma=0.5)
    rates = []
    for _ in range(5):
        rates.append(optimizer.param_groups[0]["lr"])
        scheduler.step()
    return rates


def clipped(mge: Any) -> Any:
    """Clip gradients to bounds."""
    parameters = [mge.Parameter([0.0, 0.0]), mge.Parameter([0.0])]
    parameters[0].grad, parameters[1].grad = mge.Tensor([3.0, 4.0]), mge.Tensor([12.0])
    norm = mge.optimizer.clip_grad_norm(parameters, max_norm=1.3)
    scaled = [parameter.grad.numpy() for parameter in parameters]
    mge.optimizer.clip_grad_value(parameters, -0.35, 0.35)
    return [norm, scaled, [parameter.grad.numpy() for parameter in parameters]]


def normalized(mge: Any) -> Any:
    """Return running values after three batches, and their use in evaluation; frozen ones stay."""
    norm, frozen = mge.module.BatchNorm2d(2), mge.module.BatchNorm2d(2, freeze=True)
    batch = result = None
    for number in range(3):
        batch = mge.Tensor((np.arange(16.0).reshape(2, 2, 2, 2) * (number + 1)) % 7)
        norm(batch)
        result = frozen(batch)
    norm.eval()
    return [norm.running_mean, norm.running_var, norm(batch), frozen.running_mean, result]


def trained(mge: Any) -> Any:
    """Train a small network for three steps from fixed weights; return its losses and the result."""
    functional, module = mge.functional, mge.module
    net = module.Sequential(module.Conv2d(1, 2, 3, padding=1), module.ReLU(), module.AvgPool2d(2))
    head = module.Linear(8, 3)
    for number, parameter in enumerate([*net.parameters(), *head.parameters()]):
        size = int(np.prod(parameter.shape))
        values = np.sin(np.arange(size) + number).reshape(parameter.shape).astype(np.float32)
        parameter._reset(mge.Tensor(values))
    parameters = [*net.parameters(), *head.parameters()]
    manager = mge.autodiff.GradManager().attach(parameters)
    optimizer = mge.optimizer.SGD(parameters, lr=0.1, momentum=0.9)
    data = mge.Tensor(np.cos(np.arange(32.0)).reshape(2, 1, 4, 4))
    losses = []
    for _ in range(3):
        with manager:
            logits = head(functional.flatten(net(data), 1))
            loss = functional.nn.cross_entropy(logits, mge.Tensor([0, 2]))
            manager.backward(loss)
        optimizer.step().clear_grad()
        losses.append(loss.item())
    return [[round(loss, 4) for loss in losses], *parameters]


ALL: dict[str, Callable[[Any], Any]] = {
    program.__name__: program
    for program in (
        assigned, reset, copied, differentiated, twice_differentiated, of_its_own, of_its_own_twice, held,
        loaded, hooked, optimized, scheduled, clipped, normalized, trained,
    )
}  # fmt: skip
