"""``autocast``: a context manager and decorator that leaves the precision unchanged."""

from __future__ import annotations

from contextlib import ContextDecorator
from types import TracebackType


class autocast(ContextDecorator):
    """Has no effect: results have the same dtype and precision as without it.

    Args:
        enabled, low_prec_dtype, high_prec_dtype: have no effect.
    """

    def __init__(self, enabled: bool = True, low_prec_dtype: str = "float16", high_prec_dtype: str = "float32") -> None:
        self.enabled = enabled
        self.low_prec_dtype, self.high_prec_dtype = low_prec_dtype, high_prec_dtype

    def __enter__(self) -> autocast:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Do nothing, because nothing was changed."""
