"""``mindspore.mint.optim``: optimizers with torch's arguments and groups (source: MindSpore 2.10.0)."""

from collshim.adapting.absent import saying
from collshim.mindspore.mint.optim.adam import Adam, AdamW
from collshim.mindspore.mint.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW"]

__getattr__ = saying(__name__, "use mindspore.nn")
