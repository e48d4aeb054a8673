"""The version of MegEngine whose behaviour this adapter reproduces."""

from __future__ import annotations

__version__ = "1.13.0"
