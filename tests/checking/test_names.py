"""``collshim check``: the names of a framework in a program, however it imports them."""

from __future__ import annotations

import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from collshim.checking import adapters
from collshim.checking.report import Report, check
from tests.checking.conftest import Checked

# Each uses one name that the adapter lacks, on its last line.
MISSING = {
    "an alias of the package": ("import mindspore as ms\nms.nn.NoLayer()", "mindspore.nn.NoLayer"),
    "a module's own name": ("import mindspore.nn as nn\nnn.NoLayer()", "mindspore.nn.NoLayer"),
    "an imported module": ("from mindspore import nn\nnn.NoLayer", "mindspore.nn.NoLayer"),
    "an imported name": ("from mindspore.nn import NoLayer", "mindspore.nn.NoLayer"),
    "an imported module that is missing": ("import mindspore.no_module", "mindspore.no_module"),
    "a name below one that is missing": ("import mindspore\nmindspore.no_module.thing", "mindspore.no_module"),
    "collshim in front": ("import collshim.mindspore as ms\nms.nn.NoLayer", "mindspore.nn.NoLayer"),
    "a function's import": ("def f():\n    from mindspore import nn\n    return nn.NoLayer", "mindspore.nn.NoLayer"),
    "a base class": ("from mindspore import nn\nclass A(nn.NoLayer): pass", "mindspore.nn.NoLayer"),
    "a decorator": ("import megengine as mge\n@mge.no_decorator\ndef f(): pass", "megengine.no_decorator"),
    "an annotation": ("import tensorflow as tf\ndef f(x: tf.NoTensor): pass", "tensorflow.NoTensor"),
    "a default": ("import oneflow as flow\ndef f(x=flow.no_value): pass", "oneflow.no_value"),
    "a member of a class": ("import tensorflow as tf\ntf.data.Dataset.no_method", "tensorflow.data.Dataset.no_method"),
    "a method of a result": (
        "import tensorflow as tf\nd = tf.data.Dataset.range(3).batch(2)\nd.no_method()",
        "tensorflow.Dataset.no_method",
    ),
    "a method of a module's variable": (
        "import tensorflow as tf\nd = tf.data.Dataset.range(3)\ndef f():\n    return d.no_method()",
        "tensorflow.Dataset.no_method",
    ),
    "an argument": (
        "from mindspore import ops\nops.AllReduce(no_argument=1)",
        "mindspore.ops.AllReduce(no_argument=)",
    ),
}


@pytest.mark.parametrize("kind", MISSING)
def test_missing_name_is_found(kind: str, checked: Checked) -> None:
    source, name = MISSING[kind]
    found = checked(source)
    assert list(found.names("missing")) == [name]
    assert found.names("missing")[name][0].line == source.count("\n") + 1 - (kind in LINES_AFTER) * LINES_AFTER.get(
        kind, 0
    )
    assert found.code == 1


LINES_AFTER = {"a decorator": 1}


@pytest.mark.parametrize(
    "source",
    [
        "import mindspore as ms\nx = ms.Tensor([1.0])\nx.asnumpy().sum()",
        "import numpy as ms\nms.nn.NoLayer",
        "from tensorflow import *\nprint(constant(1.0))",
        "import tensorflow as tf\ntf = object()\nx = 1",
        "from megengine.tensor import Tensor\nimport megengine\nmegengine.tensor([1])",
        "import oneflow as flow\nflow.randn(2, 3).sum().item()",
        "import torch\ntorch.distributed.all_reduce(torch.ones(1))",
        "class ms:\n    nn = None\nms.nn.NoLayer",
        "from mindspore import nn\nclass Net(nn.Cell):\n    def construct(self, x):\n        return self.no_layer(x)",
    ],
)
def test_nothing_is_missing(source: str, checked: Checked) -> None:
    found = checked(source)
    assert (found.names("missing"), found.code) == ({}, 0)


@pytest.mark.parametrize(
    "source",
    [
        "import tensorflow as tf\nmodule = tf.Module()\nmodule.metadata = {}\nprint(module.metadata)",
        "import tensorflow as tf\ntf.data.Dataset.send = len\ntf.data.Dataset.send(1)",
        "import tensorflow as tf\nmodule = tf.Module()\nmodule.rate: float = 1.0",
    ],
)
def test_name_that_the_program_adds_is_not_missing(source: str, checked: Checked) -> None:
    found = checked(source)
    assert (found.names("missing"), found.code) == ({}, 0)


def test_name_that_a_program_only_changes_is_missing(checked: Checked) -> None:
    found = checked("import tensorflow as tf\ntf.distribute.MirroredStrategy.no_count += 1")
    assert list(found.names("missing")) == ["tensorflow.distribute.MirroredStrategy.no_count"]


NOTES = {
    "train.experimental": "collshim has nothing like it",  # not tf.experimental
    "test.Benchmark": "use unittest and numpy.testing",
    "audio": "use torchaudio",  # no other name resembles it
    "assign": "use the variable's method",
    "Graph": "use functions, which run at once",  # torch.Graph is something else
    "data.Dataset.no_method": "the adapter has no such name",
    "float32.as_numpy_dtype": "use tf.as_dtype(x).as_numpy_dtype",  # the adapter's dtypes are torch's
}


@pytest.mark.parametrize("name", NOTES)
def test_note_tells_what_to_use(name: str, checked: Checked) -> None:
    (uses,) = checked(f"import tensorflow as tf\ntf.{name}").names("missing").values()
    assert uses[0].note == NOTES[name]


@pytest.mark.skipif(find_spec("keras") is None, reason="Keras is not installed: pip install collshim[keras]")
def test_name_that_keras_lacks_is_not_the_adapters_fault(checked: Checked) -> None:
    missing = checked("import tensorflow as tf\ntf.keras.layers.NoLayer\ntf.keras.no_name").names("missing")
    assert [use[0].note.lower() for use in missing.values()] == [f"keras {version('keras')} has no such name"] * 2


def test_module_whose_own_imports_fail_is_not_missing(checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    adapters.look_up.cache_clear()
    monkeypatch.delattr(torch.utils, "tensorboard", raising=False)
    for name in ("torch.utils.tensorboard", "collshim.torch.utils.tensorboard"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    source = "import torch.distributed\nimport torch.utils.no_name\nfrom torch.utils.tensorboard import SummaryWriter"
    found = checked(source)
    assert list(found.names("missing")) == ["torch.utils.no_name"]


@pytest.mark.parametrize("name", ["TCPStore.get(None, 'key').decode()", "reduce_op.SUM"])
def test_methods_of_c_classes_and_deprecated_names_are_looked_up(
    name: str, checked: Checked, recwarn: pytest.WarningsRecorder
) -> None:
    adapters.look_up.cache_clear()
    found = checked(f"import torch.distributed as dist\ndist.{name}")
    assert (list(found.names("missing")), len(recwarn)) == ([], 0)


def test_attribute_of_none_is_a_mistake_and_no_missing_name(checked: Checked) -> None:
    source = "from mindspore.mint import distributed as mdist\ny = mdist.all_reduce(x)\nprint(y.shape)"
    found = checked(source)
    assert [one.rule for one in found.mistakes] == ["in-place-result"]
    assert not found.names("missing")
    handle = source.replace("(x)", "(x, async_op=True)")
    assert list(checked(handle).names("missing")) == ["mindspore.CommHandle.shape"]


def test_operators_of_libraries_are_not_missing(checked: Checked) -> None:
    found = checked("import torch\nimport torch.distributed\ntorch.ops.own.reduce(1)\ntorch.ops.own.reduce.default(1)")
    assert list(found.names("missing")) == []


def test_star_import_gives_the_adapters_names(checked: Checked) -> None:
    found = checked("from mindspore import *\nset_seed(1)\nprint(Tensor)")
    assert "mindspore.Tensor" in found.names("supported")
    assert "mindspore.set_seed" in found.names("different")


def test_modules_beside_the_script_are_read(checked: Checked) -> None:
    found = checked("import models.net as net\nfrom helper import f", helper="import mindspore\nmindspore.no_name")
    assert list(found.names("missing")) == ["mindspore.no_name"]
    assert found.files == 2


def test_packages_and_relative_imports_are_followed(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (tmp_path / "script.py").write_text("from package import net")
    (package / "__init__.py").write_text("from . import other\nfrom .deep import thing")
    (package / "net.py").write_text("import mindspore\nmindspore.no_name_1")
    (package / "other.py").write_text("import mindspore\nmindspore.no_name_2")
    (package / "deep.py").write_text("from .net import x")
    found = check([tmp_path / "script.py"])
    assert list(found.names("missing")) == ["mindspore.no_name_1", "mindspore.no_name_2"]


def test_folder_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "a.py").write_text("import oneflow as flow\nflow.no_name")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "b.py").write_text("import oneflow as flow\nflow.no_other")
    assert list(check([tmp_path]).names("missing")) == ["oneflow.no_name"]


def test_file_of_another_python_is_reported(checked: Checked) -> None:
    found = checked("print 'old'\n")
    assert [(one.line, one.reason.partition(":")[0]) for one in found.unreadable] == [
        (1, found.unreadable[0].reason.partition(":")[0])
    ]
    assert "not valid Python" in found.unreadable[0].reason
    assert found.code == 1


def test_file_that_is_nested_too_deeply_is_reported(checked: Checked) -> None:
    found = checked("import oneflow as flow\nx = " + " + ".join(["flow.ones(1)"] * 2000))
    assert [one.reason for one in found.unreadable] == ["an expression is nested too deeply"]
    assert found.code == 1


def test_other_frameworks_are_left_out_if_one_is_named(checked: Checked) -> None:
    source = "import mindspore\nimport oneflow\nmindspore.no_name\noneflow.no_name"
    assert list(checked(source, "oneflow").names("missing")) == ["oneflow.no_name"]
    assert checked(source).frameworks == ["mindspore", "oneflow"]


def _way(report: Report) -> dict[str, str]:
    return {framework: way.kind for framework, way in report.ways().items()}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import mindspore\nmindspore.Tensor", {"mindspore": "stand-in"}),
        ("import mindspore\nmindspore.no_name", {"mindspore": "patch"}),
        ("import tensorflow as tf\ntf.no_name", {"tensorflow": "port"}),
        ("import torch.distributed as dist\ndist.all_reduce", {"torch": "stand-in"}),
        ("import numpy", {}),
    ],
)
def test_way_that_fits(source: str, expected: dict[str, str], checked: Checked) -> None:
    assert _way(checked(source)) == expected
