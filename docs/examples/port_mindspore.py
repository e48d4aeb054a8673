"""A training with MindSpore's names, whose port to torch is port_torch.py: collshim run -n 2 port_mindspore.py."""

from __future__ import annotations

import numpy as np

import collshim.mindspore as ms
import collshim.mindspore.dataset as ds
from collshim.mindspore import Tensor, nn, ops
from collshim.mindspore.communication import get_group_size, get_rank, init

STEPS, ROWS = 12, 16


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Return the points of all steps, and the class of each."""
    points = np.random.default_rng(0).normal(size=(STEPS * ROWS, 2)).astype(np.float32)
    return points, (points[:, 0] > points[:, 1]).astype(np.int32)


def initial(shape: tuple[int, ...]) -> np.ndarray:
    """Return a parameter's first values, which are the same in every run."""
    return np.random.default_rng(sum(shape)).normal(scale=0.5, size=shape).astype(np.float32)


def train(batch: tuple[np.ndarray, np.ndarray]) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Train on this rank's rows of each step; return the losses over all ranks, and the last gradients."""
    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    size = get_group_size()
    rows = ds.NumpySlicesDataset(batch, ["x", "y"], shuffle=False, num_shards=size, shard_id=get_rank())
    net = nn.SequentialCell(nn.Dense(2, 8), nn.ReLU(), nn.Dense(8, 2))
    for parameter in net.get_parameters():
        parameter.set_data(Tensor(initial(tuple(parameter.shape))))
    loss_of = nn.CrossEntropyLoss()
    optimizer = nn.SGD(net.trainable_params(), 0.1, momentum=0.9)
    reducer = nn.DistributedGradReducer(optimizer.parameters)  # averages the gradients
    forward = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
    losses, gradients = [], ()
    for x, y in rows.batch(ROWS // size).create_tuple_iterator():
        loss, gradients = forward(x, y)
        gradients = reducer(gradients)
        optimizer(gradients)
        losses.append(ops.AllReduce(ops.ReduceOp.SUM)(loss) / size)
    return losses, dict(zip((one.name for one in optimizer.parameters), gradients, strict=True))


if __name__ == "__main__":
    found, _ = train(batch())
    if get_rank() == 0:
        print([round(float(loss), 5) for loss in found])
