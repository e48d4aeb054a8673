"""``GradScaler`` (source: MegEngine 1.13.0, ``megengine.amp.grad_scaler``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from collshim.megengine.autodiff.grad_manager import GradManager
from collshim.megengine.functional.math import isinf, isnan
from collshim.megengine.functional.tensor import full_like
from collshim.megengine.tensor import Tensor


class GradScaler:
    """Differentiates a loss times a scale, and divides the gradients by it, so that small ones are not lost.

    Gradients that are not finite are taken away, and the scale halves; after ``growth_interval`` steps without any it
    doubles.

    Args:
        init_scale: the scale to begin with.
        growth_factor: by what it grows.
        backoff_factor: by what it shrinks.
        growth_interval: steps; 0 for a scale that stays.
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
        """``gm.backward`` of the scaled loss, then ``unscale`` and ``update`` unless told otherwise."""
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
        """Divide the gradients of these tensors by the scale; take them away where one is not finite."""
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
        """The scale and the steps since it grew."""
        return {"scale_factor": self.scale_factor, "_growth_tracker": self._growth_tracker}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take what ``state_dict`` gave."""
        self.scale_factor, self._growth_tracker = state["scale_factor"], state["_growth_tracker"]
