"""The real OneFlow 0.9.0, its collectives carried by collshim; run only by ``python -m tests.over_real``.

Two ranks run one script, whose outcomes the tests compare with OneFlow's own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA_PARALLEL = ROOT / "docs" / "examples" / "oneflow_data_parallel.py"
TENSOR_PARALLEL = ROOT / "docs" / "examples" / "oneflow_tensor_parallel.py"
COMMAND = [sys.executable, "-m", "collshim", "run", "--no-prefix", "--patch", "oneflow", "-n", "2"]

SCRIPT = """
    import json, sys
    import numpy as np
    import oneflow as flow
    from oneflow.framework.check_point_v2 import _broadcast_py_object
    from oneflow.nn.parallel import DistributedDataParallel
    from oneflow.utils.data.distributed import DistributedSampler

    rank, told = flow.env.get_rank(), {}

    def own(*shape):
        return flow.tensor([1.0, 2.0]) * (rank + 1)

    def note(name, value):
        told[name] = value.numpy().tolist() if isinstance(value, flow.Tensor) else value

    def refused(name, call):
        try:
            call()
        except Exception as error:
            told[name] = [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"][0]

    note("version", flow.__version__)
    note("places", [flow.env.get_world_size(), flow.env.get_local_rank(), flow.env.get_node_size()])
    x = own(); flow.comm.all_reduce(x); note("all_reduce", x)
    x = own(); flow.comm.reduce(x, 1); note("reduce", x)
    x = own(); flow.comm.broadcast(x, 1); note("broadcast", x)
    x = own().requires_grad_(); parts = [None, None]; flow.comm.all_gather(parts, x)
    note("all_gather", [part.numpy().tolist() for part in parts])
    (parts[0] * (rank + 1) + parts[1] * 10).sum().backward(); note("gradient", x.grad)
    whole = flow.zeros(4); flow.comm.all_gather_into_tensor(whole, own()); note("all_gather_into_tensor", whole)
    parts = [None, None]; flow.comm.gather(own(), parts); note("gather", [part.numpy().tolist() for part in parts])
    x = flow.zeros(2); flow.comm.scatter(x, [own(), own() * 5] if rank == 0 else None, 0); note("scatter", x)
    parts = [flow.zeros(1), flow.zeros(1)]; flow.comm.all_to_all(parts, [own()[:1], own()[1:]])
    note("all_to_all", [part.item() for part in parts])
    x = flow.zeros(1); flow.comm.reduce_scatter(x, [own()[:1], own()[1:]]); note("reduce_scatter", x)
    x = flow.zeros(1); flow.comm.reduce_scatter_tensor(x, own()); note("reduce_scatter_tensor", x)
    if rank == 0:
        flow.comm.send(own(), 1); flow.comm.send(own() * 2, 1, send_meta=False)
    else:
        note("recv", flow.comm.recv(0)); note("recv with shape", flow.comm.recv(0, (2,), flow.float32, x.device))
    flow.comm.barrier()
    note("local_all_reduce", flow._C.local_all_reduce(own()))
    note("local_reduce", flow._C.local_reduce(own(), dst=1))
    note("comm_broadcast", flow._C.comm_broadcast(own(), src_rank=1))
    note("object", _broadcast_py_object({"rank": rank}, 1))
    note("sampler", list(DistributedSampler(range(5), shuffle=False)))
    model = DistributedDataParallel(flow.nn.Linear(1, 1, bias=False))
    model(flow.ones(1, 1) * (rank + 1)).sum().backward(); note("mean", model.weight.grad)
    refused("no tensor", lambda: flow.comm.all_reduce(3))
    refused("no list", lambda: flow.comm.all_gather(None, own()))
    refused("no match", lambda: flow.comm.all_gather_into_tensor(flow.zeros(3), own()))
    refused("leaf", lambda: flow.comm.all_reduce(flow.ones(1).requires_grad_()))
    refused("global", lambda: own().to_global(flow.placement("cpu", [0]), flow.sbp.broadcast))
    json.dump(told, open(f"{sys.argv[1]}/{rank}.json", "w"))
"""

WANTED: dict[str, list[Any]] = {
    "version": ["0.9.0"] * 2,
    "places": [[2, 0, 1], [2, 1, 1]],
    "all_reduce": [[3.0, 6.0]] * 2,
    "reduce": [[1.0, 2.0], [3.0, 6.0]],
    "broadcast": [[2.0, 4.0]] * 2,
    "all_gather": [[[1.0, 2.0], [2.0, 4.0]]] * 2,
    "gradient": [[3.0, 3.0], [20.0, 20.0]],
    "all_gather_into_tensor": [[1.0, 2.0, 2.0, 4.0]] * 2,
    "gather": [[[1.0, 2.0], [2.0, 4.0]]] * 2,
    "scatter": [[1.0, 2.0], [5.0, 10.0]],
    "all_to_all": [[1.0, 2.0], [2.0, 4.0]],
    "reduce_scatter": [[3.0], [6.0]],
    "reduce_scatter_tensor": [[3.0], [6.0]],
    "recv": [None, [1.0, 2.0]],
    "recv with shape": [None, [2.0, 4.0]],
    "local_all_reduce": [[3.0, 6.0]] * 2,
    "local_reduce": [[1.0, 2.0], [3.0, 6.0]],
    "comm_broadcast": [[2.0, 4.0]] * 2,
    "object": [{"rank": 1}] * 2,
    "sampler": [[0, 2, 4], [1, 3, 0]],
    "mean": [[[1.5]]] * 2,
    "no tensor": ["AssertionError"] * 2,
    "no list": ["AssertionError"] * 2,
    "no match": ["RuntimeError"] * 2,
    "leaf": ["RuntimeError"] * 2,
    "global": ["RuntimeError"] * 2,
}


def printed(*arguments: str) -> str:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=200, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("told")
    (folder / "script.py").write_text(textwrap.dedent(SCRIPT))
    printed(str(folder / "script.py"), str(folder))
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("name", WANTED)
def test_call_matches_oneflow(told: list[dict[str, Any]], name: str) -> None:
    assert [of_one.get(name) for of_one in told] == WANTED[name]


def test_data_parallel_example_matches_oneflow_losses() -> None:
    lines = printed(str(DATA_PARALLEL)).splitlines()
    assert lines[0] == "50/500 loss: 0.004111831542104483"
    weight = json.loads(lines[-1].removeprefix("weight: "))
    assert weight == pytest.approx([2.0000033378601074, 2.99999737739563], abs=1e-6)  # processors differ


def test_tensor_parallel_example_agrees() -> None:
    lines = printed(str(TENSOR_PARALLEL)).splitlines()
    assert len(lines) == 8
    assert all(line.endswith("agrees") for line in lines)


UNDONE = """
    import os
    import collshim
    before = dict(os.environ)
    with collshim.patch("oneflow"):
        import oneflow as flow
        assert flow.comm.all_reduce.__module__.startswith("collshim")
    assert flow.comm.all_reduce.__module__ == "oneflow.comm.comm_ops"
    assert flow._C.send is flow.comm.send
    assert {name: os.environ.get(name) for name in ("RANK", "MASTER_ADDR")} == {
        name: before.get(name) for name in ("RANK", "MASTER_ADDR")
    }
    print("undone")
"""


def test_oneflow_is_restored_after_the_block() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    command = [sys.executable, "-c", textwrap.dedent(UNDONE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, env=environment)
    assert done.stdout == "undone\n", done.stderr
