"""``collshim.stand_in`` and ``collshim run --as``: adapters under frameworks' names, by importer, reversibly."""

from __future__ import annotations

import builtins
import ctypes
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import collshim
from collshim import frameworks
from collshim.__main__ import main
from collshim.standing_in import importers, stand_in

ABSENT = [name for name in frameworks.FRAMEWORKS if name != "torch"]
"""Frameworks that are not installed, unlike torch."""

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) for name in ABSENT), reason="needs an environment without the frameworks"
    ),
]


def program(text: str, **names: Any) -> dict[str, Any]:
    """Return the namespace of a program of these lines at its end."""
    held = {"__name__": "__main__", **names}
    exec(compile(textwrap.dedent(text), "program", "exec"), held)
    return held


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Return a function that imports a module of these lines from a folder for libraries."""
    monkeypatch.setattr(importers, "_libraries", lambda: (tmp_path,))
    monkeypatch.syspath_prepend(tmp_path)
    names = (f"library_{number}" for number in range(10))

    def imported(text: str) -> Any:
        name = next(names)
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return imported


@pytest.mark.parametrize("name", frameworks.FRAMEWORKS)
def test_framework_name_is_the_adapter_in_the_block(name: str) -> None:
    with collshim.stand_in(name) as module:
        held = program(f"import {name} as framework")
        assert held["framework"] is module is importlib.import_module(f"collshim.{name}")
        assert (sys.modules[name] is module) == (name in ABSENT)


@pytest.mark.parametrize(
    "line",
    [
        "import oneflow.nn as found",
        "from oneflow import nn as found",
        "import oneflow; found = oneflow.nn",
        "import oneflow.nn.functional; import sys; found = sys.modules['oneflow.nn']",
        "import importlib; found = importlib.import_module('oneflow.nn')",
        "from importlib import import_module; found = import_module('oneflow.nn')",
        "import importlib; found = importlib.__import__('oneflow.nn').nn",
    ],
)
def test_submodules_are_the_adapters_by_every_import(line: str) -> None:
    import collshim.oneflow.nn

    with collshim.stand_in("oneflow"):
        assert program(line)["found"] is collshim.oneflow.nn


def test_everything_is_restored_after_the_block() -> None:
    path, environment = list(sys.meta_path), dict(os.environ)
    functions = builtins.__import__, importlib.import_module, importlib.util.find_spec
    with collshim.stand_in("oneflow", "megengine"):
        program("import oneflow.optim, megengine")
    assert (builtins.__import__, importlib.import_module, importlib.util.find_spec) == functions
    assert (sys.meta_path, dict(os.environ)) == (path, environment)
    assert [name for name in sys.modules if name.partition(".")[0] in ("oneflow", "megengine")] == []
    with pytest.raises(ModuleNotFoundError, match="No module named 'oneflow'"):
        program("import oneflow")


def test_failing_block_is_undone() -> None:
    with pytest.raises(KeyError), collshim.stand_in("oneflow"):
        raise KeyError
    assert "oneflow" not in sys.modules


def test_blocks_can_be_nested() -> None:
    with collshim.stand_in("oneflow"):
        with collshim.stand_in("oneflow", "megengine"):
            program("import oneflow, megengine")
        assert "oneflow" in sys.modules
        assert "megengine" not in sys.modules
        program("import oneflow")


@pytest.mark.parametrize("names", [["onflow"], ["oneflow", "numpy"], []])
def test_unknown_framework_is_refused(names: list[str]) -> None:
    with pytest.raises(collshim.ArgumentValueError, match="should be one of torch, oneflow"):
        collshim.stand_in(*names).__enter__()
    assert "oneflow" not in sys.modules


PROBES = {
    "try": """
        try:
            import oneflow
            found = True
        except ImportError:
            found = False
    """,
    "bare": """
        try:
            from oneflow import nn
            found = True
        except:
            found = False
    """,
    "suppress": """
        import contextlib
        found = False
        with contextlib.suppress(ModuleNotFoundError):
            import oneflow
            found = True
    """,
    "find_spec": """
        import importlib.util
        found = importlib.util.find_spec("oneflow") is not None
    """,
    "import_module": """
        import importlib
        try:
            importlib.import_module("oneflow.nn")
            found = True
        except Exception:
            found = False
    """,
}


@pytest.mark.parametrize("probe", PROBES)
def test_library_probe_finds_the_original(library: Callable[[str], Any], probe: str) -> None:
    with collshim.stand_in("oneflow") as flow:
        assert not library(PROBES[probe]).found
        assert program("import oneflow")["oneflow"] is flow


def test_program_probe_finds_the_stand_in() -> None:
    with collshim.stand_in("oneflow"):
        assert [program(text)["found"] for text in PROBES.values()] == [True] * len(PROBES)


def test_library_import_gets_the_stand_in(library: Callable[[str], Any]) -> None:
    with collshim.stand_in("oneflow") as flow:
        assert library("import oneflow as flow").flow is flow
        assert library("from oneflow import nn").nn is flow.nn


def test_library_keeps_the_real_loaded_framework(library: Callable[[str], Any]) -> None:
    import torch

    import collshim.torch

    with collshim.stand_in("torch"):
        assert library("import torch.distributed as dist").dist is torch.distributed
        assert program("import torch.distributed as dist")["dist"] is collshim.torch.distributed
        assert sys.modules["torch"] is torch


def test_library_imports_the_loaded_framework_while_another_thread_imports(library: Callable[[str], Any]) -> None:
    """Two threads that import may wait for each other if one also waits for the stand-in's lock."""
    with collshim.stand_in("torch"), ThreadPoolExecutor(1) as others, stand_in._STATE.lock:
        found = others.submit(library, "from torch.distributed import nn").result(timeout=60)
        assert found.nn is sys.modules["torch.distributed.nn"]


def test_import_by_c_searches_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch imports under locks of C++; if another thread ran meanwhile, it could wait there forever."""
    imported = ctypes.pythonapi.PyImport_ImportModule
    imported.restype = ctypes.py_object
    with collshim.stand_in("torch"):
        monkeypatch.setattr(importers, "importer", lambda: pytest.fail("the importer was searched"))
        assert imported(b"torch.storage") is sys.modules["torch.storage"]


def test_library_gets_the_real_module_if_the_import_system_put_the_stand_ins_there(
    library: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch.distributed

    import collshim.torch.distributed

    name = "torch.distributed.nn"
    monkeypatch.setattr(torch.distributed, "nn", sys.modules[name])  # the library's import sets it again
    with collshim.stand_in("torch"):
        alias = stand_in._ALIASES.alias(name)
        assert alias is not None
        monkeypatch.setitem(sys.modules, name, importlib.util.module_from_spec(alias))
        assert sys.modules[name] is collshim.torch.distributed.nn
        assert library(f"import {name}, sys; found = sys.modules['{name}']").found.__name__ == name


STARTED = "import oneflow, json, sys; print(json.dumps([oneflow.__name__, 'oneflow' in sys.modules]))"


def started(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=200, check=True)
    return done.stdout


def test_program_that_never_leaves_the_block_ends_quietly() -> None:
    code = "import collshim; block = collshim.stand_in('oneflow'); block.__enter__(); import oneflow"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=True)
    assert done.stderr == ""


def test_started_interpreter_uses_the_stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with collshim.stand_in("oneflow"):
        assert json.loads(started("-c", STARTED)) == ["collshim.oneflow", True]


OF_TORCH = {
    "before all else": "",
    "behind collshim": "import collshim",
    "behind a library that looks for torch": "import library",
    "behind a library that needs torch": "import another",
}
LIBRARIES = {
    "library": "try:\n    import torch.distributed.nn\nexcept ImportError:\n    raise SystemExit('it is not there')\n",
    "another": "import torch\nassert torch.__name__ == 'torch'\n",
}
ASKS_TORCH = """
import importlib, json, sys
sys.path.insert(0, {folder!r})
import site
installed = site.getsitepackages
site.getsitepackages = lambda prefixes=None: [*installed(), {folder!r}]
{first}
import torch.distributed as one
from torch import distributed as two
import torch
print(json.dumps([name.__name__ for name in (one, two, torch, importlib.import_module("torch.distributed"))]))
assert sys.modules["torch"].Tensor is torch.Tensor, "the real one is loaded once"
"""


@pytest.mark.parametrize("first", OF_TORCH.values(), ids=OF_TORCH)
def test_started_interpreter_uses_the_torch_stand_in(first: str, tmp_path: Path) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    for name, text in LIBRARIES.items():
        (folder / f"{name}.py").write_text(text)
    with collshim.stand_in("torch"):
        told = json.loads(started("-c", ASKS_TORCH.format(folder=str(folder), first=first)))
    assert told == ["collshim.torch.distributed"] * 2 + ["collshim.torch", "collshim.torch.distributed"]


def run_as_torch(script: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a script on two ranks, with its own folder as its argument; return the exit status."""
    for name in ("PYTHONPATH", "COLLSHIM_STAND_IN", "OMP_NUM_THREADS", "COLLSHIM_SECRET"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # `run` sets them for its ranks, in this process
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return main(["run", "--no-prefix", "--as", "torch", "-n", "2", str(script), str(script.parent)])


def test_run_as_torch_gives_a_script_the_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom torch import distributed as dist\ndist.init_process_group('gloo')\n"
        "open(f'{sys.argv[1]}/{dist.get_rank()}', 'w').write(dist.__name__)\n"
    )
    assert run_as_torch(script, monkeypatch) == 0
    assert [(tmp_path / str(rank)).read_text() for rank in range(2)] == ["collshim.torch.distributed"] * 2


def test_run_as_torch_trains_with_distributed_data_parallel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # torch itself imports modules while it builds the model, and some of these import torch by name
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nimport torch\nimport torch.distributed as dist\n"
        "from torch.nn.parallel import DistributedDataParallel\n"
        "dist.init_process_group('gloo')\nmodel = DistributedDataParallel(torch.nn.Linear(2, 1))\n"
        "model(torch.full((1, 2), 2.0 * dist.get_rank())).sum().backward()\n"
        "open(f'{sys.argv[1]}/{dist.get_rank()}', 'w').write(str(model.module.weight.grad.tolist()))\n"
    )
    assert run_as_torch(script, monkeypatch) == 0
    assert [(tmp_path / str(rank)).read_text() for rank in range(2)] == ["[[1.0, 1.0]]"] * 2


def imported() -> str:
    """Return the name of the module that a program's import of oneflow gives, or "absent"."""
    try:
        return str(program("import oneflow")["oneflow"].__name__)
    except ModuleNotFoundError:
        return "absent"


def test_started_ranks_have_the_stand_ins_of_the_moment() -> None:
    # the server that forks the ranks runs since the first launch
    def started_now() -> list[str]:
        return collshim.launch(imported, 2, ranks="processes")

    before = started_now()
    with collshim.stand_in("oneflow"):
        inside = started_now()
    assert [before, inside, started_now()] == [["absent"] * 2, ["collshim.oneflow"] * 2, ["absent"] * 2]


def test_framework_module_can_be_run(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import oneflow as flow\nprint(flow.__name__, flow.env.get_world_size())\n")
    with collshim.stand_in("oneflow"):
        told = started("-m", "oneflow.distributed.launch", "--nproc_per_node", "1", str(tmp_path / "script.py"))
    assert told.splitlines()[-1] == "collshim.oneflow 1"


def test_started_interpreter_imports_nothing_early() -> None:
    text = "import sys, json; print(json.dumps(['torch' in sys.modules, 'collshim' in sys.modules]))"
    with collshim.stand_in("oneflow"):
        assert json.loads(started("-c", text)) == [False, False]


def test_hidden_sitecustomize_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.customized = True\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with collshim.stand_in("oneflow"):
        assert started("-c", "print(customized)") == "True\n"


SCRIPT = """
    import sys
    import oneflow as flow
    from oneflow.nn.parallel import DistributedDataParallel as ddp
    model = ddp(flow.nn.Linear(1, 1, bias=False))
    model(flow.ones(1, 1) * (flow.env.get_rank() + 1)).sum().backward()
    with open(f"{sys.argv[1]}/{flow.env.get_rank()}", "w") as told:
        told.write(f"{flow.__name__} {model.weight.grad.item()}")
"""


def test_run_as_gives_a_script_the_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    for name in ("PYTHONPATH", "COLLSHIM_STAND_IN", "OMP_NUM_THREADS", "COLLSHIM_SECRET"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # `run` sets them for its ranks, in this process
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert main(["run", "--no-prefix", "--as", "oneflow", "-n", "2", str(script), str(tmp_path)]) == 0
    assert [(tmp_path / str(rank)).read_text() for rank in range(2)] == ["collshim.oneflow 1.5"] * 2
