"""``mindspore.dataset.transforms`` (source: MindSpore 2.10.0): operations on a row's values."""

from collshim.adapting.absent import saying
from collshim.mindspore.dataset.transforms import transforms
from collshim.mindspore.dataset.transforms.transforms import Compose, OneHot, TypeCast

__all__ = ["Compose", "OneHot", "TypeCast", "transforms"]

__getattr__ = saying(__name__, "pass map a function of your own")
