"""The quickstart, with a loss of primitives, and the gradients of two batches accumulated: ``python quickstart.py``.

Reads MNIST's files in the folder TUTORIAL_DATA, and writes losses and weights there.
"""

import os

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.dataset import MnistDataset, transforms, vision
from mindspore.ops import composite as C
from mindspore.ops import functional as F

FOLDER = os.environ["TUTORIAL_DATA"]
ms.set_seed(1)


def datapipe(usage, batch_size):
    """Return batches of images and labels."""
    image_transforms = [
        vision.Rescale(1.0 / 255.0, 0),
        vision.Normalize(mean=(0.1307,), std=(0.3081,)),
        vision.HWC2CHW(),
    ]
    dataset = MnistDataset(FOLDER, usage=usage, shuffle=False)
    dataset = dataset.map(image_transforms, "image").map(transforms.TypeCast(ms.int32), "label")
    return dataset.batch(batch_size)


class SoftmaxCrossEntropyExpand(nn.Cell):
    """The cross entropy, primitive by primitive."""

    def __init__(self):
        super().__init__()
        self.exp, self.log, self.onehot = ops.Exp(), ops.Log(), ops.OneHot()
        self.sum, self.max = ops.ReduceSum(keep_dims=True), ops.ReduceMax(keep_dims=True)
        self.mean, self.sub, self.div = ops.ReduceMean(keep_dims=False), ops.Sub(), ops.RealDiv()
        self.on_value, self.off_value = Tensor(1.0, ms.float32), Tensor(0.0, ms.float32)

    def construct(self, logit, label):
        """Return the mean loss."""
        exp = self.exp(self.sub(logit, self.max(logit, -1)))
        softmax = self.div(exp, self.sum(exp, -1))
        label = self.onehot(label, ops.shape(logit)[1], self.on_value, self.off_value)
        loss = ops.ReduceSum()(ops.Mul()(self.log(softmax), label), -1)
        return self.mean(ops.Mul()(F.scalar_to_tensor(-1.0), loss), -1)


class Network(nn.Cell):
    """Three layers."""

    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.dense_relu_sequential = nn.SequentialCell(
            nn.Dense(28 * 28, 8), nn.ReLU(), nn.Dense(8, 8), nn.ReLU(), nn.Dense(8, 10)
        )

    def construct(self, x):
        """Return the logits."""
        return self.dense_relu_sequential(self.flatten(x))


class Accumulator:
    """Sums gradients, and updates after every ``steps`` of them."""

    def __init__(self, optimizer, steps):
        self.optimizer, self.steps = optimizer, steps
        self.inner_grads = optimizer.parameters.clone(prefix="accumulate_", init="zeros")
        self.zeros = optimizer.parameters.clone(prefix="zeros_", init="zeros")
        self.counter = Parameter(Tensor(1, ms.int32), "counter_")
        self.map = ops.HyperMap()

    def __call__(self, grads):
        self.map(ops.partial(ops.assign_add), self.inner_grads, grads)
        if self.counter % self.steps == 0:
            self.optimizer(self.inner_grads)
            self.map(ops.partial(ops.assign), self.inner_grads, self.zeros)
        ops.assign_add(self.counter, Tensor(1, ms.int32))


clip_grad = C.MultitypeFuncGraph("clip_grad")


@clip_grad.register("Number", "Tensor")
def _clip_grad(bound, grad):
    return C.clip_by_value(grad, Tensor(-bound), Tensor(bound))


model = Network()
print(model)
for index, parameter in enumerate(model.get_parameters()):
    start = np.random.RandomState(index).normal(0, 0.1, parameter.shape)
    parameter.set_data(Tensor(start.astype(np.float32)))

loss_fn = SoftmaxCrossEntropyExpand()
optimizer = nn.SGD(model.trainable_params(), 1e-1)
accumulator = Accumulator(optimizer, 2)


def forward_fn(data, label):
    """Return half the loss, and the logits."""
    logits = model(data)
    return loss_fn(logits, label) / 2, logits


grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)
train, test = datapipe("train", 8), datapipe("test", 4)
losses = []
for _ in range(3):
    model.set_train()
    for batch, (data, label) in enumerate(train.create_tuple_iterator()):
        (loss, _), grads = grad_fn(data, label)
        accumulator(C.HyperMap()(F.partial(clip_grad, 0.05), grads))
        losses.append(loss.asnumpy())
        print(f"loss: {losses[-1]:>7f}  [{batch:>3d}/{train.get_dataset_size():>3d}]")

model.set_train(False)
total = correct = 0
for row in test.create_dict_iterator():
    pred = model(row["image"])
    total += len(row["label"])
    correct += (pred.argmax(1) == row["label"]).asnumpy().sum()
print(f"Accuracy: {100 * correct / total:>0.1f}%")
weights = {name: parameter.asnumpy() for name, parameter in model.parameters_and_names()}
found = {"losses": np.array(losses), "metrics": np.array([correct, total]), **weights}
np.savez(os.path.join(FOLDER, "quickstart-0-of-1.npz"), **found)
