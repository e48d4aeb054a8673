"""The version that is imitated."""

from __future__ import annotations

__version__ = "1.13.0"
