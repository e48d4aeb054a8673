"""Names that an adapter lacks: one sentence that says what to use instead, from every module."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator

import pytest

import collshim
from collshim.adapting.replacements import NAMES as REPLACEMENTS
from collshim.checking.adapters import Missing, look_up
from collshim.errors import MissingNameError
from collshim.frameworks import FRAMEWORKS

pytestmark = pytest.mark.unranked

LONGEST = 320
OTHERS = tuple(name for name in FRAMEWORKS if name != "torch")


def _modules(framework: str) -> Iterator[str]:
    adapter = importlib.import_module(f"collshim.{framework}")
    for found in pkgutil.walk_packages(adapter.__path__, f"{adapter.__name__}."):
        if not any(part.startswith("_") for part in found.name.split(".")):
            yield found.name


def _refusal(module: str, name: str) -> str:
    with pytest.raises(AttributeError) as caught:
        getattr(importlib.import_module(module), name)
    assert isinstance(caught.value, MissingNameError)
    return str(caught.value)


@pytest.mark.parametrize("framework", OTHERS)
def test_every_module_refuses_in_the_same_form(framework: str) -> None:
    for module in (f"collshim.{framework}", *_modules(framework)):
        text = _refusal(module, "no_such_name_at_all")
        assert text.startswith(f"module '{module}' has no attribute 'no_such_name_at_all': ")
        assert text.endswith(f"; see docs/{framework}.md")


@pytest.mark.parametrize(
    ("module", "name", "expected"),
    [
        ("tensorflow", "reduce_men", "the nearest names are reduce_mean, "),
        ("oneflow.nn", "Liner", "the nearest names are Linear, "),
        ("mindspore.communication", "AllReduce", "it is collshim.mindspore.ops.AllReduce"),
        ("mindspore.nn", "GRU", "use torch.nn.GRU"),
        ("mindspore.ops", "pixel_unshuffle", "use torch.pixel_unshuffle"),
        ("mindspore.nn", "Conv2dTranspose", "use torch.nn.ConvTranspose2d"),
        ("megengine.module", "MultiHeadAttention", "use torch.nn.MultiheadAttention"),
        ("tensorflow.strings", "unicode_decode", "use Python's own strings"),
        ("tensorflow.distribute", "ParameterServerStrategy", "use MultiWorkerMirroredStrategy, or "),
        ("oneflow.nn", "FusedMLP", "build it from flow.nn.Linear and flow.nn.ReLU"),
        ("tensorflow", "quantization", "compute it with torch"),
        ("tensorflow.train", "Saver", "use tf.train.Checkpoint"),
        ("tensorflow.distribute", "zzz", "collshim has nothing like it"),
        ("oneflow.nn", "zzz", "compute it with torch"),
        ("oneflow.nn.parallel", "FullyShardedDataParallel", "collshim has nothing like it"),
        ("mindspore", "set_algo_parameters", "collshim has nothing like it"),
        ("tensorflow.raw_ops", "CollectivePermute", "only the collectives are here: use tf's own functions"),
    ],
)
def test_refusal_says_what_to_use(module: str, name: str, expected: str) -> None:
    assert f": {expected}" in _refusal(f"collshim.{module}", name)


@pytest.mark.parametrize("framework", OTHERS)
def test_refusal_is_short(framework: str) -> None:
    texts = [_refusal(module, "reduce_everything") for module in (f"collshim.{framework}", *_modules(framework))]
    assert max(map(len, texts)) <= LONGEST


@pytest.mark.parametrize(("python", "is_offered"), [((3, 10), True), ((3, 13), False)])
def test_patch_is_offered_if_this_python_can_run_the_framework(
    python: tuple[int, int], is_offered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", (*python, 0, "final", 0))
    text = _refusal("collshim.megengine", "quantization")
    assert ("`collshim run --patch megengine` runs MegEngine 1.13.0 itself" in text) == is_offered


@pytest.mark.parametrize("module", ["mindspore.train.absent", "oneflow.absent", "megengine.module.absent"])
def test_module_that_is_missing_is_refused_alike(module: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named .*; see docs/\w+\.md") as caught:
        importlib.import_module(f"collshim.{module}")
    assert isinstance(caught.value, MissingNameError)


def test_name_imported_from_a_module_is_refused_alike() -> None:
    with collshim.stand_in("mindspore"), pytest.raises(ImportError, match=r"'initialiser': the nearest names? .*; see"):
        exec("from mindspore.common.initializer import initialiser")


@pytest.mark.parametrize("framework", ["mindspore", "tensorflow", "megengine"])
def test_replacements_are_of_missing_names(framework: str) -> None:
    present = [name for name in REPLACEMENTS[framework] if not isinstance(look_up(f"{framework}.{name}"), Missing)]
    assert present == []


def test_submodule_is_still_imported_as_a_name() -> None:
    with collshim.stand_in("mindspore"):
        exec("from mindspore.communication import comm_func, get_rank")


def test_names_that_python_asks_for_are_plain_errors() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = importlib.import_module("collshim.mindspore").__wrapped__
    assert not isinstance(caught.value, MissingNameError)
