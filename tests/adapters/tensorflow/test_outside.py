"""Packages of PyPI, unmodified, on the stand-in: what each gave on TensorFlow 2.21.0 with two CPUs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.adapters.packages import installed

SONNET = "dm-sonnet==2.0.2"

# The package's own __init__ imports recurrent layers, which need TensorFlow's private modules.
NORMALIZED = """
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

import collshim

package = ModuleType("sonnet")
package.__path__ = [str(Path(sys.argv[1], "sonnet"))]
sys.modules["sonnet"] = package
sys.path.append(sys.argv[1])

with collshim.stand_in("tensorflow"):
    import tensorflow as tf
    from sonnet.src.distribute.distributed_batch_norm import CrossReplicaBatchNorm
    from sonnet.src.distribute.replicator import Replicator
    from sonnet.src.moving_averages import ExponentialMovingAverage

    strategy = Replicator(["CPU:0", "CPU:1"])
    with strategy.scope():
        mean, variance = ExponentialMovingAverage(0.9), ExponentialMovingAverage(0.9)
        norm = CrossReplicaBatchNorm(True, True, mean, variance)

    def part(ctx, scale):
        rows = np.arange(6, dtype=np.float32).reshape(3, 2) ** 2 * scale
        return tf.constant(rows - 4 * ctx.replica_id_in_sync_group * np.float32([1, 2]))

    xs, weights = (
        strategy.experimental_distribute_values_from_function(lambda ctx: part(ctx, scale)) for scale in (1, 0.1)
    )

    def step(x, weight):
        with tf.GradientTape() as tape:
            tape.watch(x)
            out = norm(x, is_training=True)
            loss = tf.reduce_sum(weight * out)
        return [out, *tape.gradient(loss, [x, norm.scale, norm.offset])]

    found = strategy.run(step, (xs, weights))
    found.append(strategy.run(lambda x: norm(x, is_training=False), (xs,)))
    told = [[value.numpy().tolist() for value in strategy.experimental_local_results(one)] for one in found]
    kinds = [type(norm.scale).__name__, [variable.name for variable in norm.variables][:4]]
    print(json.dumps([kinds, told, norm.moving_mean.value.numpy().tolist()]))
"""


def ran(script: str, *arguments: str) -> Any:
    """What a script printed last, as JSON."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def sonnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package and what it imports here; skipped where pip cannot have it."""
    pins = [SONNET, "absl-py==2.5.1", "tabulate==0.9.0"]
    return installed(tmp_path_factory.mktemp("sonnet"), pins, "--no-deps")


def test_sonnet_normalizes_over_the_replicas_with_gradients(sonnet: Path) -> None:
    kinds, told, average = ran(NORMALIZED, str(sonnet))
    norm, moving = "cross_replica_batch_norm", "exponential_moving_average"
    names = [f"{norm}/offset:0", f"{norm}/scale:0", f"{moving}/counter:0", f"{moving}/hidden:0"]
    assert kinds == ["SyncOnReadVariable", names]
    out, dx, dscale, doffset, evaluated = told
    normal = [
        [[-0.6585, -0.62017], [-0.09407, 0.12403], [1.59923, 1.61245]],
        [[-1.22294, -1.36438], [-0.6585, -0.62017], [1.03479, 0.86824]],
    ]
    for found in (out, evaluated):
        assert np.allclose(found, normal, atol=1e-5)
    gradient = [
        [[0.3012, 0.41218], [0.26074, 0.31944], [0.13936, 0.13396]],
        [[-0.16633, -0.16487], [-0.20679, -0.25761], [-0.32817, -0.44309]],
    ]
    assert np.allclose(dx, gradient, atol=1e-5)
    assert np.allclose(dscale, [[2.52113, 4.08074], [4.77886, 10.40651]], atol=1e-5)
    assert np.allclose(doffset, [[2.0, 3.5], [-10.0, -20.5]], atol=1e-5)
    assert np.allclose(average, [[4.66667, 7.66666]], atol=1e-5)
