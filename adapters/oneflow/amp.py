"""``oneflow.amp``: torch's, with OneFlow's devices."""

from __future__ import annotations

from typing import Any

import torch
from torch import amp

from collshim.adapting import devices, fall_through


class autocast(torch.autocast):
    """Compute in lower precision on ``device_type``, in a block of code or a decorated function."""

    def __init__(self, device_type: str = "cuda", dtype: Any = None, enabled: bool = True, **kwargs: Any) -> None:
        super().__init__(devices.resolve(device_type).type, dtype, enabled, **kwargs)


class GradScaler(amp.GradScaler):
    """A scaler of losses that keeps small float16 gradients from vanishing; does nothing if there is no GPU."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        there = torch.cuda.is_available()
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled and there)


__getattr__ = fall_through.names(__name__, [amp])
