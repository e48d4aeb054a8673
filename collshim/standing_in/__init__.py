"""Adapters under the frameworks' own names: ``import oneflow`` imports ``collshim.oneflow``."""
