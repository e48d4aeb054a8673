"""Adapters under the frameworks' own names: ``import oneflow`` gives ``collshim.oneflow``."""
