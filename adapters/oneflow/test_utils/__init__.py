"""Helpers for tests that were written for OneFlow."""

from __future__ import annotations

from collshim.adapting.absent import saying

__getattr__ = saying(__name__)
