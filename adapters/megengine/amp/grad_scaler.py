"""``GradScaler`` (source: MegEngine 1.13.0, ``megengine.amp.grad_scaler``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from collshim.megengine.autodiff.grad_manager import GradManager
from collshim.megengine.functional.math import isinf, isnan
from collshim.megengine.functional.tensor import full_like
from collshim.megengine.tensor import Tensor

_STATE = ("scale_factor", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker")


class GradScaler:
    """Multiplies a loss by a scale and divides the gradients by it, so that small gradients are not lost.

    If a gradient is not finite, all gradients are removed and the scale is multiplied by ``backoff_factor``; after
    ``growth_interval`` steps with finite gradients, the scale is multiplied by ``growth_factor``.

    Args:
        init_scale: the initial scale.
        growth_factor: the factor by which the scale grows.
        backoff_factor: the factor by which the scale shrinks.
        growth_interval: the number of steps after which the scale grows; 0 for a constant scale.
    """

    def __init__(
        self,
        init_scale: float = 2.0**4,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
    ) -> None:
        self.scale_factor = float(init_scale)
        self.growth_factor, self.backoff_factor = growth_factor, backoff_factor
        self.growth_interval = growth_interval
        self._growth_tracker = 0
        self._found_non_finite = False

    def backward(
        self,
        gm: GradManager,
        y: Any = None,
        dy: Any = None,
        *,
        unscale_grad: bool = True,
        update_scale: bool | str = "if_unscale_grad",
    ) -> None:
        """Call ``gm.backward`` for the scaled loss, then ``unscale`` and ``update`` unless they are disabled."""
        ys = [] if y is None else list(y) if isinstance(y, list | tuple) else [y]
        dys = [None] * len(ys) if dy is None else list(dy) if isinstance(dy, list | tuple) else [dy]
        scaled = [
            full_like(each, self.scale_factor) if given is None else given * self.scale_factor
            for each, given in zip(ys, dys, strict=True)
        ]
        gm.backward(ys, scaled)
        if unscale_grad:
            self.unscale(gm.attached_tensors())
            if update_scale:
                self.update()

    def unscale(self, grad_tensors: Iterable[Tensor]) -> GradScaler:
        """Divide the gradients of these tensors by the scale; remove all gradients if one is not finite."""
        tensors: list[Any] = [tensor for tensor in grad_tensors if tensor is not None and tensor.grad is not None]
        self._found_non_finite = any(self._is_broken(tensor.grad) for tensor in tensors)
        for tensor in tensors:
            if self._found_non_finite:
                tensor.grad = None
            else:
                tensor.grad = tensor.grad * (1.0 / self.scale_factor)
        return self

    def _is_broken(self, grad: Any) -> bool:
        return bool(isnan(grad).sum().item() or isinf(grad).sum().item())

    def update(self, new_scale: float | None = None) -> None:
        """Set the scale for the next step."""
        if new_scale is not None:
            self.scale_factor = float(new_scale)
        elif self.growth_interval:
            if self._found_non_finite:
                self.scale_factor *= self.backoff_factor
                self._growth_tracker = 0
            else:
                self._growth_tracker += 1
                if self._growth_tracker >= self.growth_interval:
                    self.scale_factor *= self.growth_factor
                    self._growth_tracker = 0
        self._found_non_finite = False

    def state_dict(self) -> dict[str, Any]:
        """Return the scale, the settings and the number of steps since the scale last grew."""
        return {name: getattr(self, name) for name in _STATE}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that ``state_dict`` returned."""
        for name in _STATE:
            setattr(self, name, state[name])
