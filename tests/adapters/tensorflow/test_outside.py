"""Unmodified packages from PyPI on the stand-in match their results on TensorFlow 2.21.0 with two CPUs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests.adapters.packages import install, run_for_json

pytestmark = [pytest.mark.processes, pytest.mark.slow]

SONNET = "dm-sonnet==2.0.2"
SIMILARITY = "tensorflow-similarity==0.17.1"
ORBIT = "tf-models-official==2.14.2"
KERAS = pytest.mark.skipif(find_spec("keras") is None, reason="Keras is not installed: pip install collshim[keras]")

# The package's __init__ imports recurrent layers, which need TensorFlow's private modules.
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


# Keras 3 has no reduction "auto", the default of the package's losses; its __init__ imports more.
CONTRASTED = """
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

import collshim

package = ModuleType("tensorflow_similarity")
package.__path__ = [str(Path(sys.argv[1], "tensorflow_similarity"))]
sys.modules["tensorflow_similarity"] = package

with collshim.stand_in("tensorflow"):
    import tensorflow as tf
    from tensorflow_similarity import losses

    rows = np.random.default_rng(0).normal(size=(2, 4, 3)).astype("float32")

    def found(loss, *views):
        with tf.GradientTape() as tape:
            tape.watch(views)
            each = loss(*views) if len(views) == 2 else loss(np.array([0, 0, 1, 1]), *views)
        return [each, *tape.gradient(each, views)]

    def norms(name, *views):
        values = found(getattr(losses, name)(reduction="none"), *(tf.constant(view) for view in views))
        return [float(np.linalg.norm(value.numpy())) for value in values]

    names = ("CircleLoss", "MultiSimilarityLoss", "PNLoss", "SoftNearestNeighborLoss", "TripletLoss")
    told = [norms(name, rows[0]) for name in names]
    told += [norms(name, *rows) for name in ("Barlow", "MultiNegativesRankLoss", "SimSiamLoss", "VicReg")]

    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    views = [
        strategy.experimental_distribute_values_from_function(
            lambda ctx: tf.constant(np.split(view, 2)[ctx.replica_id_in_sync_group])
        )
        for view in rows
    ]
    replicas = strategy.run(lambda *views: found(losses.SimCLRLoss(0.5, reduction="none"), *views), views)
    parts = [[part.numpy() for part in strategy.experimental_local_results(value)] for value in replicas]
    print(json.dumps([told, [np.concatenate(several).tolist() for several in parts]]))
"""


# Keras 3 has reset_state alone, and an optimizer that is made in a loop of AutoGraph's fails in TensorFlow.
CONTROLLED = """
import json
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np

sys.path.append(sys.argv[1])
if sys.argv[2:] == ["real"]:
    within = nullcontext()
else:
    import collshim

    within = collshim.stand_in("tensorflow")

with within:
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    import orbit
    from orbit.examples.single_task.single_task_evaluator import SingleTaskEvaluator
    from orbit.examples.single_task.single_task_trainer import SingleTaskTrainer

    tf.keras.metrics.Metric.reset_states = tf.keras.metrics.Metric.reset_state
    random = np.random.default_rng(0)
    rows = random.normal(size=(32, 4)).astype("float32")
    labels = (rows @ random.normal(size=(4, 3))).argmax(1)
    step = tf.Variable(0, dtype=tf.int64)

    class Trainer(SingleTaskTrainer):
        def train_step(self, iterator):
            super().train_step(iterator)
            step.assign_add(1)

    def batches(context=None):
        return tf.data.Dataset.from_tensor_slices({"x": rows, "label": labels}).repeat().batch(8)

    def trained(strategy, folder):
        step.assign(0)
        with strategy.scope():
            first = tf.keras.initializers.Constant(np.linspace(-1, 1, 12).reshape(4, 3))
            layer = tf.keras.layers.Dense(3, kernel_initializer=first)
            inputs = tf.keras.Input((4,), name="x")
            model = tf.keras.Model({"x": inputs}, layer(inputs))
            optimizer = tf.keras.optimizers.SGD(0.2, momentum=0.9)
            optimizer.build(model.trainable_variables)
            loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
            data = orbit.utils.make_distributed_dataset(strategy, batches)
            trainer = Trainer(data, "label", model, loss, optimizer)
            accuracy = tf.keras.metrics.SparseCategoricalAccuracy("accuracy")
            evaluator = SingleTaskEvaluator(data, "label", model, [accuracy])
        saved = tf.train.CheckpointManager(
            tf.train.Checkpoint(model=model, step=step), folder, 2, step_counter=step, checkpoint_interval=3
        )
        best = orbit.actions.NewBestMetric("accuracy")
        bests = []
        controller = orbit.Controller(
            strategy=strategy, trainer=trainer, evaluator=evaluator, global_step=step, steps_per_loop=3,
            checkpoint_manager=saved,
            eval_actions=[orbit.actions.ConditionalAction(best, lambda told: bests.append(float(told["accuracy"])))],
        )
        controller.train_and_evaluate(train_steps=6, eval_steps=4, eval_interval=3)
        kernel = np.asarray(layer.kernel)
        layer.kernel.assign(np.zeros((4, 3), "float32"))
        controller.restore_checkpoint()
        same = bool(np.array_equal(np.asarray(model.get_weights()[0]), kernel))
        names = [Path(path).name for path in saved.checkpoints]
        return [kernel.tolist(), bests, names, same, int(saved.checkpoint.save_counter)]

    one, several = tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    print(json.dumps([trained(one, sys.argv[1] + "/one"), trained(several, sys.argv[1] + "/several")]))
"""


@pytest.fixture(scope="module")
def sonnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package and its imports in a folder; skip the test if pip cannot get it."""
    pins = [SONNET, "absl-py==2.5.1", "tabulate==0.9.0"]
    return install(tmp_path_factory.mktemp("sonnet"), pins, "--no-deps")


def test_sonnet_normalizes_over_replicas_with_gradients(sonnet: Path) -> None:
    kinds, told, average = run_for_json(NORMALIZED, str(sonnet))
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


@pytest.fixture(scope="module")
def similarity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package alone in a folder; skip the test if pip cannot get it."""
    return install(tmp_path_factory.mktemp("similarity"), [SIMILARITY], "--no-deps")


@KERAS
def test_similarity_contrasts_rows_of_all_replicas(similarity: Path) -> None:
    told, (each, da, db) = run_for_json(CONTRASTED, str(similarity))
    norms = [
        [1192.59668, 2367.89575],
        [3.94485, 4.52574],
        [3.57863, 5.89086],
        [9.94315, 13.45006],
        [3.0664, 4.93007],
        [4.23207, 2.89175, 2.3834],
        [177.49585, 490.68469, 198.02362],
        [0.59155, 1.01828, 0.64602],
        [113.32734, 65.4243, 73.15006],
    ]
    for found, wanted in zip(told, norms, strict=True):
        assert np.allclose(found, wanted, rtol=1e-5)
    assert np.allclose(each, [7.20581, 4.50893, 0.94138, 7.29756], atol=1e-5)
    first = [
        [5.63257, -0.80836, -1.27255],
        [5.32722, 3.27067, 3.29975],
        [0.55068, -0.7397, 0.02492],
        [-0.89874, 1.74198, -1.24744],
    ]
    second = [
        [0.41314, -0.12769, -0.74854],
        [-1.72883, 3.43121, -1.90169],
        [-0.4001, 0.23639, 0.63596],
        [0.81001, 1.77423, 0.20872],
    ]
    assert np.allclose(da, first, atol=1e-5)
    assert np.allclose(db, second, atol=1e-5)


@pytest.fixture(scope="module")
def orbit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package and its one import in a folder; skip the test if pip cannot get it."""
    return install(tmp_path_factory.mktemp("orbit"), [ORBIT, "absl-py==2.5.1"], "--no-deps")


@KERAS
def test_orbit_trains_evaluates_and_saves(orbit: Path) -> None:
    one, several = run_for_json(CONTROLLED, str(orbit))
    kernel = [
        [-0.8153446, -0.5494833, -1.0897176],
        [-0.8330579, -0.2921084, 0.3069845],
        [-0.2263974, 0.1661500, 0.8784292],
        [0.8690253, -0.2600601, 1.8455801],
    ]
    assert np.allclose(one[0], kernel, atol=1e-5)
    assert one[1:] == [[0.8125, 0.875], ["ckpt-3", "ckpt-6"], True, 2]
    kernel = [  # each replica has batches of its own
        [-0.8176666, -0.5233382, -1.1135406],
        [-0.8656651, -0.2538320, 0.3013152],
        [-0.2276998, 0.2008650, 0.8450166],
        [0.9226535, -0.2887333, 1.8206251],
    ]
    assert np.allclose(several[0], kernel, atol=1e-5)
    assert several[1:] == [[0.84375, 0.875], ["ckpt-3", "ckpt-6"], True, 2]
