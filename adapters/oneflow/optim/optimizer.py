"""``oneflow.optim``'s optimizers, with OneFlow 0.9.0's arguments, defaults and arithmetic, bitwise equal on the CPU.

They are optimizers of torch's class with OneFlow's steps: the momentum's first step is damped like the others, each
product and sum is rounded separately, and Adam's ``1 - beta`` is a float32. ``zero_grad()`` sets gradients to zero,
while torch sets them to None. A group of parameters may have ``clip_grad_max_norm`` and ``clip_grad_norm_type``;
``clip_grad()`` limits its gradients to this norm. ``fused`` is accepted and has no effect.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, optim

from collshim.errors import ArgumentValueError, also
from collshim.oneflow.framework.tensor import plain


class Optimizer(optim.Optimizer):
    """The base class of optimizers."""

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Set the gradients to zero, or with ``set_to_none`` to None."""
        super().zero_grad(set_to_none)

    def clip_grad(self, error_if_nonfinite: bool = False) -> None:
        """Scale each group's gradients down to its ``clip_grad_max_norm``; warn if a group has no such norm."""
        for group in self.param_groups:
            if "clip_grad_max_norm" not in group or "clip_grad_norm_type" not in group:
                warnings.warn("clip_grad: a group of parameters has no clip_grad_max_norm and type", stacklevel=2)
                continue
            norm, kind = group["clip_grad_max_norm"], group["clip_grad_norm_type"]
            torch.nn.utils.clip_grad_norm_(group["params"], norm, kind, error_if_nonfinite)


class _Stepwise(Optimizer):
    """An optimizer that is defined by one formula for each parameter."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; return the result of ``closure``, which computes gradients."""
        loss = None if closure is None else torch.enable_grad()(closure)()
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self._update(group, plain(parameter), plain(parameter.grad), self.state[parameter])
        return loss

    def _update(self, group: dict[str, Any], values: Tensor, gradient: Tensor, state: dict[str, Any]) -> None:
        raise NotImplementedError


def _require_positive(**values: float) -> None:
    for name, value in values.items():
        if not value >= 0:
            raise also(ArgumentValueError, AssertionError)(f"{name} is {value!r}, should be at least 0: Invalid {name}")


def _rest(factor: float) -> float:
    """Return one minus the factor, in float32."""
    return float(np.float32(1) - np.float32(factor))


def _root(square: Tensor) -> Tensor:
    """Return the correctly rounded square root; torch's float32 square root on the CPU may be off by one bit."""
    return square.sqrt() if square.is_cuda else square.double().sqrt().to(square.dtype)


class SGD(_Stepwise):
    """Stochastic gradient descent, with momentum; ``lr`` is 0.001 by default.

    ``maximize`` needs a momentum, as in OneFlow.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 0.001,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        maximize: bool = False,
        fused: bool = False,
    ) -> None:
        _require_positive(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if maximize:
            warnings.warn("SGD: maximize has an effect only with a momentum", FutureWarning, stacklevel=2)
        defaults = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        super().__init__(params, {**defaults, "nesterov": nesterov, "maximize": maximize, "fused": fused})

    def _update(self, group: dict[str, Any], values: Tensor, gradient: Tensor, state: dict[str, Any]) -> None:
        if group["weight_decay"]:
            gradient = gradient + values * group["weight_decay"]
        rate, beta = group["lr"], group["momentum"]
        if beta:
            before = state.get("momentum_buf", torch.zeros_like(values))
            momentum = state["momentum_buf"] = before * beta + gradient * _rest(group["dampening"])
            gradient = gradient + momentum * beta if group["nesterov"] else momentum
            rate = -rate if group["maximize"] else rate
        values.sub_(gradient * rate)


class Adam(_Stepwise):
    """Adam, with the weight decay added to the gradient."""

    _decays_apart = False

    def __init__(
        self,
        params: Any,
        lr: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-08,
        weight_decay: float = 0,
        amsgrad: bool = False,
        do_bias_correction: bool = True,
        fused: bool = False,
    ) -> None:
        _require_positive(lr=lr, eps=eps, weight_decay=weight_decay)
        if not all(0 <= beta < 1 for beta in betas):
            kind = also(ArgumentValueError, AssertionError)
            raise kind(f"betas are {betas}, should be from 0 to below 1: Invalid beta parameter")
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        super().__init__(params, {**defaults, "do_bias_correction": do_bias_correction, "fused": fused})

    def _update(self, group: dict[str, Any], values: Tensor, gradient: Tensor, state: dict[str, Any]) -> None:
        decay, (beta1, beta2) = group["weight_decay"], group["betas"]
        if decay and not self._decays_apart:
            gradient = gradient + values * decay
        step = state["step"] = state.get("step", 0) + 1
        mean, square = state.get("exp_avg", 0.0), state.get("exp_avg_sq", 0.0)
        mean = state["exp_avg"] = gradient * _rest(beta1) + mean * beta1
        square = state["exp_avg_sq"] = gradient * _rest(beta2) * gradient + square * beta2
        if group["amsgrad"]:
            square = state["max_exp_avg_sq"] = torch.maximum(square, state.get("max_exp_avg_sq", square))
        corrects = group["do_bias_correction"]
        correction = np.float32(1 - beta1**step) if corrects else np.float32(1)
        scale = np.sqrt(np.float32(1 - beta2**step)) if corrects else np.float32(1)
        change = (mean / (_root(square) / float(scale) + group["eps"])) * float(np.float32(group["lr"]) / correction)
        decayed = values * float(np.float32(group["lr"]) * np.float32(decay)) if decay and self._decays_apart else 0
        values.sub_(change).sub_(decayed)


class AdamW(Adam):
    """Adam with a weight decay separate from the gradient; 0 by default (torch: 0.01)."""

    _decays_apart = True


class Adagrad(Optimizer, optim.Adagrad):
    """Adagrad; ``lr`` is 0.001 by default."""

    def __init__(
        self,
        params: Any,
        lr: float = 0.001,
        lr_decay: float = 0.0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
    ) -> None:
        _require_positive(lr=lr, weight_decay=weight_decay, eps=eps)
        optim.Adagrad.__init__(self, params, lr, lr_decay, weight_decay, initial_accumulator_value, eps)


class RMSprop(_Stepwise):
    """RMSprop; ``lr`` is 0.001 by default. A momentum is refused, as in OneFlow.

    ``eps`` is added to the mean square before the root is taken (torch: afterwards).
    """

    def __init__(
        self,
        params: Any,
        lr: float = 0.001,
        alpha: float = 0.99,
        eps: float = 1e-08,
        weight_decay: float = 0,
        momentum: float = 0.0,
        centered: bool = False,
    ) -> None:
        _require_positive(lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay)
        if momentum:
            kind = also(ArgumentValueError, AssertionError)
            raise kind(f"momentum is {momentum}, should be 0: Not support momentum greater than zeros now!")
        defaults = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum}
        super().__init__(params, {**defaults, "centered": centered})

    def _update(self, group: dict[str, Any], values: Tensor, gradient: Tensor, state: dict[str, Any]) -> None:
        if group["weight_decay"]:
            gradient = gradient + values * group["weight_decay"]
        rest, alpha = _rest(group["alpha"]), group["alpha"]
        square = state["square_avg"] = gradient * gradient * rest + state.get("square_avg", 0.0) * alpha
        if group["centered"]:
            mean = state["grad_avg"] = gradient * rest + state.get("grad_avg", 0.0) * alpha
            square = square - mean * mean
        values.sub_(gradient * group["lr"] / _root(square + group["eps"]))


class Adadelta(Optimizer, optim.Adadelta):
    """Adadelta."""

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        maximize: bool = False,
    ) -> None:
        _require_positive(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay)
        optim.Adadelta.__init__(self, params, lr, rho, eps, weight_decay, maximize=maximize)
