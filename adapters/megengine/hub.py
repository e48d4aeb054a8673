"""``megengine.hub``: nothing is downloaded here (MegEngine 1.13.0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from collshim.adapting.absent import saying
from collshim.errors import CollshimError, also

__all__ = ["pretrained"]


class pretrained:
    """Decorates a function that makes a model whose weights are at a URL; ``pretrained=True`` is refused."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls ``func``, but raises an error for ``pretrained=True``."""

        def made(pretrained: bool = False, **kwargs: Any) -> Any:
            if pretrained:
                raise also(CollshimError, NotImplementedError)(
                    f"hub.pretrained: collshim.megengine fetches nothing: load a state_dict from {self.url} yourself"
                )
            return func(**kwargs)

        return made


__getattr__ = saying(__name__)
