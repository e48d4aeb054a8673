"""Data parallel with functions: ``msrun --worker_num 2 ... functional.py`` or ``collshim run --as mindspore -n 2``.

Reads MNIST's files in the folder TUTORIAL_DATA, and writes each rank's losses and weights there.
"""

import os

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from mindspore.dataset import transforms, vision

FOLDER = os.environ["TUTORIAL_DATA"]

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
init()
ms.set_seed(1)


class Network(nn.Cell):
    """Two layers."""

    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.layers = nn.SequentialCell(
            nn.Dense(28 * 28, 16, weight_init="normal", bias_init="zeros"), nn.ReLU(), nn.Dense(16, 10)
        )

    def construct(self, x):
        """Return the logits."""
        return self.layers(self.flatten(x))


def create_dataset(batch_size):
    """Return this rank's batches of images and labels."""
    dataset = ds.MnistDataset(FOLDER, usage="train", num_shards=get_group_size(), shard_id=get_rank())
    image_transforms = [vision.Rescale(1.0 / 255.0, 0), vision.Normalize((0.1307,), (0.3081,)), vision.HWC2CHW()]
    dataset = dataset.map(image_transforms, "image").map(transforms.TypeCast(ms.int32), "label")
    return dataset.batch(batch_size)


net = Network()
for index, parameter in enumerate(net.get_parameters()):
    start = np.random.RandomState(index).normal(0, 0.05, parameter.shape)
    parameter.set_data(ms.Tensor(start.astype(np.float32)))

data_set = create_dataset(8 // get_group_size())
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.SGD(net.trainable_params(), 1e-1)


def forward_fn(data, target):
    """Return the loss and the logits."""
    logits = net(data)
    return loss_fn(logits, target), logits


grad_fn = ms.value_and_grad(forward_fn, None, net.trainable_params(), has_aux=True)
grad_reducer = nn.DistributedGradReducer(optimizer.parameters)
net.set_train()

losses = []
for epoch in range(2):
    for step, (image, label) in enumerate(data_set):
        (loss_value, _), grads = grad_fn(image, label)
        grads = grad_reducer(grads)
        optimizer(grads)
        losses.append(float(loss_value))
        if step % 2 == 0:
            print(f"epoch: {epoch}, step: {step}, loss is {loss_value}")

name = f"functional-{get_rank()}-of-{get_group_size()}"
ms.save_checkpoint(net, os.path.join(FOLDER, f"{name}.ckpt"))
saved = ms.load_checkpoint(os.path.join(FOLDER, f"{name}.ckpt"))
other = Network()
assert ms.load_param_into_net(other, saved) == ([], [])
weights = {key: value.asnumpy() for key, value in other.parameters_dict().items()}
np.savez(os.path.join(FOLDER, f"{name}.npz"), losses=np.array(losses), **weights)
