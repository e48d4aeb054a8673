"""``mindspore.dataset.vision`` (source: MindSpore 2.10.0): operations on images."""

from collshim.adapting.absent import saying
from collshim.mindspore.dataset.vision import transforms, utils
from collshim.mindspore.dataset.vision.transforms import *  # noqa: F403
from collshim.mindspore.dataset.vision.utils import Border, Inter

__all__ = ["Border", "Inter", "utils"]
__all__ += transforms.__all__

__getattr__ = saying(__name__, "pass map a function of your own")
