"""Data parallel with ``Model.train``: ``msrun --worker_num 2 ... model.py`` or ``collshim run --as mindspore -n 2``.

Reads MNIST's files in the folder TUTORIAL_DATA, and writes each rank's metrics and weights there.
"""

import os

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import context, nn, ops
from mindspore.communication import get_group_size, get_rank, init
from mindspore.dataset import transforms, vision
from mindspore.train import Accuracy, CheckpointConfig, LossMonitor, Model, ModelCheckpoint, TimeMonitor

FOLDER = os.environ["TUTORIAL_DATA"]
STRAY = float(os.environ.get("TUTORIAL_STRAY", "0"))

context.set_context(mode=context.PYNATIVE_MODE, device_target="CPU")
init()
ms.set_seed(1)
context.set_auto_parallel_context(
    parallel_mode=context.ParallelMode.DATA_PARALLEL, gradients_mean=True, parameter_broadcast=True
)


class LeNet5(nn.Cell):
    """Convolutions, poolings and layers."""

    def __init__(self, num_class=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 8, 5, stride=2, has_bias=True)
        self.relu = nn.ReLU()
        self.max_pool2d = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(8 * 4 * 4, 12, activation="relu")
        self.fc2 = nn.Dense(12, num_class)

    def construct(self, x):
        """Return the logits."""
        x = self.max_pool2d(self.relu(self.conv1(x)))
        x = self.relu(self.conv2(x))
        x = ops.ReLU()(self.max_pool2d(nn.AvgPool2d(2, 1, pad_mode="same")(x)) if x.shape[-1] > 8 else x)
        return self.fc2(self.fc1(self.flatten(x[:, :, :4, :4])))


def create_dataset(batch_size, usage):
    """Return this rank's batches of images and labels."""
    dataset = ds.MnistDataset(FOLDER, usage, shuffle=False, num_shards=get_group_size(), shard_id=get_rank())
    dataset = dataset.map(transforms.TypeCast(ms.int32), input_columns="label")
    image_transforms = [vision.Resize((24, 24)), vision.Rescale(1 / 255.0, 0.0), vision.HWC2CHW()]
    dataset = dataset.map(operations=image_transforms, input_columns="image")
    return dataset.batch(batch_size, drop_remainder=True)


net = LeNet5()
for index, parameter in enumerate(net.get_parameters()):
    # Rank 0's weights count, since parameter_broadcast is set; with TUTORIAL_STRAY the others begin with other ones.
    start = np.random.RandomState(index).normal(0, 0.2, parameter.shape)
    parameter.set_data(ms.Tensor((start + STRAY * get_rank()).astype(np.float32)))

loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
opt = nn.Momentum(filter(lambda x: x.requires_grad, net.get_parameters()), 0.05, 0.9, weight_decay=1e-3)
model = Model(net, loss_fn=loss, optimizer=opt, metrics={"Accuracy": Accuracy(), "loss": nn.Loss()}, amp_level="O0")
config = CheckpointConfig(save_checkpoint_steps=2, keep_checkpoint_max=2)
folder = os.path.join(FOLDER, f"model-{get_rank()}-of-{get_group_size()}")
checkpoints = ModelCheckpoint(prefix="lenet", directory=folder, config=config)
train = create_dataset(8 // get_group_size(), "train")
model.train(2, train, callbacks=[LossMonitor(2), TimeMonitor(), checkpoints], dataset_sink_mode=False)
metrics = model.eval(create_dataset(4 // get_group_size(), "test"), dataset_sink_mode=False)
print(metrics)

files = sorted(name for name in os.listdir(folder) if name.endswith(".ckpt"))
saved = ms.load_checkpoint(checkpoints.latest_ckpt_file_name)
arrays = {key: value.asnumpy() for key, value in saved.items()}
found = np.array([metrics["Accuracy"], metrics["loss"]])
np.savez(f"{folder}.npz", metrics=found, files=np.array(files), **arrays)
