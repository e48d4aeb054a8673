"""Names that an adapter has but that behave differently from the framework's, each with a sentence and a page."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

from collshim.checking import adapters
from collshim.frameworks import FRAMEWORKS

_LINE_BY_LINE = "runs line by line; nothing is compiled"
_RANDOM = "random numbers differ from the framework's for the same seed"
_NAME_ALONE = "only a name: tensors stay on the CPU"
_NO_EFFECT = "accepted, without effect"
_ONE_ORDER = "the members of a group must make its calls in one order"
_OPERATIONS = ("Reduce", "ReduceV2", "Gather", "GatherV2", "BcastSend", "BcastSendV2", "BcastRecv", "BcastRecvV2")

DIFFERENCES: Mapping[str, Mapping[str, str]] = {
    "mindspore": {
        "mindspore.GRAPH_MODE": _LINE_BY_LINE,
        "mindspore.jit": _LINE_BY_LINE,
        "mindspore.set_seed": _RANDOM,
        "mindspore.set_device": _NAME_ALONE,
        "mindspore.ParallelMode.SEMI_AUTO_PARALLEL": "calling a Cell in this mode is refused",
        "mindspore.ParallelMode.AUTO_PARALLEL": "calling a Cell in this mode is refused",
        "mindspore.runtime.Stream": _NO_EFFECT,
        "mindspore.hal.Stream": _NO_EFFECT,
        "mindspore.dataset.Dataset.shuffle": _RANDOM,
        "mindspore.dataset.vision.RandomCrop": _RANDOM,
        "mindspore.dataset.vision.RandomHorizontalFlip": _RANDOM,
        "mindspore.nn.Dropout": _RANDOM,
        "mindspore.nn.Momentum": "use_nesterov looks ahead, as documented; MindSpore's CPU kernel does not",
        "mindspore.train.ModelCheckpoint": "saves no graph",
        "mindspore.communication.comm_func.batch_isend_irecv": "messages carry no gradient",
        "mindspore.mint.distributed.batch_isend_irecv": "messages carry no gradient",
    },
    "oneflow": {
        "oneflow.sbp": "every rank keeps the whole tensor",
        "oneflow.placement": "every rank keeps the whole tensor",
        "oneflow.nn.Graph": _LINE_BY_LINE,
        "oneflow.manual_seed": _RANDOM,
        "oneflow.sort": "indices are int64; OneFlow's are int32",
        "oneflow.argsort": "indices are int64; OneFlow's are int32",
        "oneflow.argwhere": "indices are int64; OneFlow's are int32",
        "oneflow.boxing": _NO_EFFECT,
        "oneflow.save": "the files are torch's",
        "oneflow.load": "the files are torch's",
        "oneflow.optim.Adagrad": "torch's arithmetic, equal to six digits",
    },
    "tensorflow": {
        "tensorflow.function": _LINE_BY_LINE,
        "tensorflow.device": _NAME_ALONE,
        "tensorflow.distribute.TPUStrategy": "a MirroredStrategy over this process's devices",
        "tensorflow.random.set_seed": _RANDOM,
        "tensorflow.random.uniform": _RANDOM,
        "tensorflow.random.normal": _RANDOM,
        "tensorflow.random.truncated_normal": _RANDOM,
        "tensorflow.random.shuffle": _RANDOM,
        "tensorflow.RaggedTensor": "one ragged axis; for datasets, operators and reductions, without gradients",
        "tensorflow.data.Dataset.sample_from_datasets": _RANDOM,
        "tensorflow.SparseTensor": "for datasets and reductions, without gradients",
        "tensorflow.gather": "its gradient is dense",
        "tensorflow.sort": "NaN is sorted behind all numbers",
        "tensorflow.argsort": "NaN is sorted behind all numbers",
        "tensorflow.train.Checkpoint": "its files are collshim's own; TensorFlow's are refused",
        "tensorflow.train.CheckpointManager": "its files are collshim's own; TensorFlow's are refused",
        "tensorflow.gradients": "refused inside a tf.function too",
        "tensorflow.while_loop": _LINE_BY_LINE,
        "tensorflow.cond": _LINE_BY_LINE,
        **{f"tensorflow.raw_ops.Collective{name}": _ONE_ORDER for name in (*_OPERATIONS, "AllToAllV2")},
        "tensorflow.raw_ops.CollectiveReduceScatterV2": "refused on GPUs too, as TensorFlow refuses it on CPUs",
    },
    "megengine": {
        "megengine.jit.trace": "calls the function as it is; dump is refused",
        "megengine.amp.autocast": "changes no precision",
        "megengine.config": _NO_EFFECT,
        "megengine.dtr": _NO_EFFECT,
        "megengine.random": _RANDOM,
        "megengine.functional.argmax": "over several axes, finds the greatest element; MegEngine returns 0",
        "megengine.functional.argmin": "over several axes, finds the least element; MegEngine returns 0",
        "megengine.functional.embedding": "an index out of range is refused; MegEngine returns zeros",
        "megengine.functional.gather": "an index out of range is refused; MegEngine returns arbitrary values",
        "megengine.functional.one_hot": "an index out of range is refused; MegEngine returns zeros",
        "megengine.module.RNN": "gradients on the CPU are right, and dropout is applied there",
        "megengine.module.LSTM": "gradients on the CPU are right, and dropout is applied there",
        "megengine.distributed.get_backend": "returns the name that was passed in",
    },
    "torch": {},
}
"""The differences by framework and full name, each of which also applies to the members of a module or class."""


class Difference(NamedTuple):
    """A sentence about a difference, and the page that describes it."""

    text: str
    page: str


def difference_of(name: str, found: Any) -> Difference | None:
    """Return how a name behaves differently; ``found`` is the adapter's object, which may have several names."""
    framework = name.partition(".")[0]
    table = DIFFERENCES.get(framework, {})
    parts = name.split(".")
    above = (".".join(parts[:length]) for length in range(len(parts), 1, -1))
    text = next((table[one] for one in above if one in table), None) or _by_object(framework).get(id(found))
    return Difference(text, page_of(framework)) if text else None


def page_of(framework: str) -> str:
    """Return the page about the differences from a framework."""
    if framework == "torch":
        return "docs/torch.md#where-it-differs-on-purpose"
    release = {"oneflow": "-from-oneflow-090", "tensorflow": "-from-tensorflow-2210"}.get(framework, "")
    return f"docs/{framework}.md#what-differs{release}"


@functools.cache
def _by_object(framework: str) -> Mapping[int, str]:
    """Return the sentences by the identities of the adapter's functions and classes, which have several names."""
    assert framework in FRAMEWORKS
    found = ((adapters.look_up(name), text) for name, text in DIFFERENCES[framework].items())
    return {id(thing): text for thing, text in found if callable(thing)}
