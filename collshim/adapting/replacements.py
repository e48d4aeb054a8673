"""What to use instead of a framework's name that its adapter lacks: torch's name for it, or advice.

Names are relative to the framework. If a name has no entry of its own, its replacement is the same name, in any case,
in the torch module that corresponds to its module.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import ModuleType

_DATA = "torch.utils.data"
_DDP = "torch.nn.parallel.DistributedDataParallel"
_FUNCTIONS = ("torch", "torch.nn.functional", "torch.linalg", "torch.special", "torch.fft")
_COMPILED = "nothing: programs run line by line"
_OLD = (
    *("ConfigProto", "GraphKeys", "add_to_collection", "contrib", "get_collection", "get_default_graph"),
    *("global_variables", "trainable_variables", "variable_scope", "set_random_seed", "random.set_random_seed"),
)
"""Names of TensorFlow 1."""

_OLD_OPTIMIZERS = (
    *("train.Optimizer", "train.AdamOptimizer", "train.AdagradOptimizer", "train.GradientDescentOptimizer"),
    *("train.MomentumOptimizer", "train.RMSPropOptimizer", "train.FtrlOptimizer"),
)

_MODULES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "mindspore": {
        "nn": ("torch.nn", "torch.optim"),
        "ops": _FUNCTIONS,
        "mint": _FUNCTIONS,
        "mint.nn": ("torch.nn",),
        "mint.optim": ("torch.optim",),
        "dataset": (_DATA, "torchvision.datasets"),
        "dataset.vision": ("torchvision.transforms",),
        "dataset.transforms": ("torchvision.transforms",),
        "common.initializer": ("torch.nn.init",),
        "": _FUNCTIONS,
    },
    "tensorflow": {
        "math": _FUNCTIONS,
        "nn": ("torch.nn.functional",),
        "linalg": ("torch.linalg", "torch"),
        "signal": ("torch.fft",),
        "random": ("torch",),
        "data": (_DATA,),
        "": _FUNCTIONS,
    },
    "megengine": {
        "module": ("torch.nn",),
        "module.init": ("torch.nn.init",),
        "functional": _FUNCTIONS,
        "functional.nn": ("torch.nn.functional",),
        "functional.loss": ("torch.nn.functional",),
        "optimizer": ("torch.optim", "torch.optim.lr_scheduler"),
        "data": (_DATA,),
        "data.dataset": ("torchvision.datasets", _DATA),
        "data.transform": ("torchvision.transforms",),
        "random": ("torch", "torch.distributions"),
        "": _FUNCTIONS,
    },
}
"""The modules of torch and torchvision that correspond to each framework's modules."""

_COMPUTING = frozenset(
    ("functional", "linalg", "math", "mint", "module", "nn", "numpy", "ops", "optim", "optimizer", "random", "signal")
)
"""The modules whose functions and classes compute values, as torch's do."""

_AT_TOP = frozenset(("oneflow", "tensorflow"))
"""The frameworks that have such functions in the package itself."""

NAMES: Mapping[str, Mapping[str, str]] = {
    "mindspore": {
        "nn.Conv2dTranspose": "torch.nn.ConvTranspose2d",
        "nn.Norm": "torch.linalg.vector_norm",
        "nn.OneHot": "torch.nn.functional.one_hot",
        "nn.Range": "torch.arange",
        "boost": "torch.amp",
        "parallel.shard": "torch.distributed.tensor",
        "parallel.nn.Pipeline": "torch.distributed.pipelining",
        "nn.PipelineCell": "torch.distributed.pipelining",
        "nn.MicroBatchInterleaved": "torch.distributed.pipelining",
        "parallel.Layout": "torch.distributed.tensor",
        "shard": "torch.distributed.tensor",
        "Layout": "torch.distributed.tensor",
        "profiler": "torch.profiler",
        "Profiler": "torch.profiler.profile",
        "export": "torch.export",
        "load_distributed_checkpoint": "torch.distributed.checkpoint",
        "SummaryCollector": "torch.utils.tensorboard.SummaryWriter",
        "train.SummaryCollector": "torch.utils.tensorboard.SummaryWriter",
        "numpy": "numpy, or torch",
        "scipy": "scipy",
        "JitConfig": _COMPILED,
        "mindrecord": f"{_DATA}.Dataset, on files in a different format",
        "dataset.MindDataset": f"{_DATA}.Dataset, on files in a different format",
        "dataset.TFRecordDataset": f"{_DATA}.Dataset, on files in a different format",
        "dataset.OBSMindDataset": f"{_DATA}.Dataset, on files in a different format",
    },
    "tensorflow": {
        "distribute.ParameterServerStrategy": f"MultiWorkerMirroredStrategy, or {_DDP}",
        "distribute.experimental.ParameterServerStrategy": f"MultiWorkerMirroredStrategy, or {_DDP}",
        "distribute.coordinator": f"MultiWorkerMirroredStrategy, or {_DDP}",
        "distribute.experimental.coordinator": f"MultiWorkerMirroredStrategy, or {_DDP}",
        "distribute.experimental.PreemptionWatcher": "PreemptionCheckpointHandler, with a termination_watcher_fn",
        "estimator": "keras",
        **dict.fromkeys(_OLD_OPTIMIZERS, "the optimizers of keras"),
        "train.Saver": "tf.train.Checkpoint",
        "signal": "torch.fft, or torch.stft",
        "train.SessionRunHook": "the callbacks of keras",
        "python": "public names: this module is TensorFlow's own",
        **dict.fromkeys(_OLD, "the names of TensorFlow 2"),
        **dict.fromkeys(("assign", "assign_add", "assign_sub"), "the variable's method"),
        "placeholder": "the arguments of a function",
        "Graph": "functions, which run at once",
        "Session": "functions, which run at once",
        "data.TFRecordDataset": f"{_DATA}.Dataset, on files in a different format",
        "io.TFRecordWriter": "torch.save",
        "image": "torchvision.transforms",
        "audio": "torchaudio",
        "saved_model.save": "torch.export, or keras's save",
        "saved_model.load": "torch.export, or keras's load_model",
        "lite": "torch.export",
        "profiler": "torch.profiler",
        "autograph.to_code": _COMPILED,
        "autograph.to_graph": _COMPILED,
        "experimental.dtensor": "torch.distributed.tensor",
    },
    "megengine": {
        "quantization": "torch.ao.quantization",
        "module.qat": "torch.ao.quantization",
        "module.quantized": "torch.ao.quantization",
        "functional.vision": "torchvision.ops",
        "functional.quantized": "torch.ao.quantization",
        "traced_module": "torch.fx",
        "tools": "torch.profiler",
        "utils.profiler": "torch.profiler",
        "utils.module_stats": "torch.utils.flop_counter",
        "module.external": "torch.utils.cpp_extension",
        "xla": _COMPILED,
    },
    "oneflow": {},
    "torch": {},
}


def replacement(framework: str, path: str) -> str:
    """Return what to use instead of a framework's name; "" if nothing is known.

    Args:
        framework: the name of the framework's package.
        path: the name's path below the package, such as ``nn.Dense``.
    """
    names = NAMES.get(framework, {})
    if path in names:
        return names[path]
    module, _, name = path.rpartition(".")
    if found := _counterpart(_MODULES.get(framework, {}).get(module, ()), name):
        return found
    return next((names[above] for above in _above(path) if above in names), "")


def is_listed(framework: str, path: str) -> bool:
    """Return whether this module has an entry for this very name."""
    return path in NAMES.get(framework, {})


def computes(framework: str, module: str) -> bool:
    """Return whether the names of a framework's module, such as ``nn.functional``, compute values."""
    first, *others = module.split(".")
    return (first in _COMPUTING or (not first and framework in _AT_TOP)) and "parallel" not in others


def _counterpart(modules: tuple[str, ...], name: str) -> str:
    """Return the full name of the first match for a name in these modules, in any case; "" if there is none."""
    for module in modules:
        loaded = sys.modules.get(module)  # torchvision may not be installed, and is slow to import
        public = (
            [member for member in dir(loaded) if not isinstance(getattr(loaded, member), ModuleType)] if loaded else []
        )
        members = {member.casefold(): member for member in reversed(public)}
        if name in members.values():
            return f"{module}.{name}"
        if member := members.get(name.casefold()):
            return f"{module}.{member}"
    return ""


def _above(path: str) -> Iterator[str]:
    """Yield the paths of the modules that contain a name, from the nearest."""
    while "." in path:
        path = path.rpartition(".")[0]
        yield path
