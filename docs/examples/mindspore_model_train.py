"""``Model.train`` over datasets in shards, with MindSpore's names, on CPU ranks: as one rank trains on all rows."""

import numpy as np

import collshim
import collshim.mindspore as ms
import collshim.mindspore.dataset as ds
from collshim.mindspore import nn
from collshim.mindspore.communication import get_group_size, get_rank, init
from collshim.mindspore.train import Accuracy, LossMonitor, Model


def shard(batch_size: int) -> ds.Dataset:
    """Return this rank's batches: points, and whether they lie above a line."""
    points = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)
    labels = (points[:, 0] + 0.5 * points[:, 1] > 0).astype(np.int32)
    rows = ds.NumpySlicesDataset((points, labels), ["point", "label"], num_shards=get_group_size(), shard_id=get_rank())
    return rows.batch(batch_size // get_group_size())


def main() -> tuple[list[float], float]:
    """Return the weights, and this rank's accuracy."""
    init()
    ms.set_seed(1)
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    network = nn.SequentialCell(nn.Dense(2, 8), nn.ReLU(), nn.Dense(8, 2))
    optimizer = nn.Momentum(network.trainable_params(), 0.1, 0.9)
    model = Model(network, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy": Accuracy()})
    monitors = [LossMonitor(per_print_times=40)] if get_rank() == 0 else []
    model.train(10, shard(16), callbacks=monitors)
    weights = np.concatenate([parameter.asnumpy().ravel() for parameter in network.get_parameters()])
    return weights.tolist(), float(model.eval(shard(16))["accuracy"])


if __name__ == "__main__":
    (one,) = collshim.launch(main, 1)
    for weights, accuracy in collshim.launch(main, 2):
        assert np.allclose(weights, one[0], atol=1e-5)
        assert accuracy > 0.9
    print("two ranks end with the weights of one rank on all rows")
