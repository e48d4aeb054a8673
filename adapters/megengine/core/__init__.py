"""``megengine.core``: the names in it that programs use."""

from collshim.megengine.core._imperative_rt.core2 import get_option, set_option

__all__ = ["get_option", "set_option"]
