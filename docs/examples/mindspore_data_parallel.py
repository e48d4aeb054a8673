"""Data-parallel training with MindSpore's names, on CPU ranks; every rank ends with the same weights."""

import numpy as np

import collshim
import collshim.mindspore as ms
from collshim.mindspore import Parameter, Tensor, nn, ops
from collshim.mindspore.common.initializer import initializer
from collshim.mindspore.communication import get_group_size, get_rank, init


class Linear(nn.Cell):
    """``x @ weight + bias``."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = Parameter(initializer("ones", [inputs, outputs]))
        self.bias = Parameter(initializer("zeros", [outputs]))
        self.matmul = ops.MatMul()

    def construct(self, x: Tensor) -> Tensor:
        """Return the layer's outputs."""
        return ops.add(self.matmul(x, self.weight), self.bias)


def main() -> list[float]:
    """Return the loss of the whole batch at each step."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    rows = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    own = slice(get_rank() * 8 // get_group_size(), (get_rank() + 1) * 8 // get_group_size())
    x, label = Tensor(rows[own]), Tensor(rows[own].sum(1, keepdims=True) * 2)
    net = Linear(3, 1)
    reducer = nn.DistributedGradReducer(net.trainable_params())
    step = ms.value_and_grad(lambda: ((net(x) - label) ** 2).mean(), None, net.trainable_params())
    losses = []
    for _ in range(20):
        loss, gradients = step()
        for parameter, gradient in zip(net.trainable_params(), reducer(gradients), strict=True):
            parameter.set_data(parameter - 0.1 * gradient)
        losses.append(float(ops.AllReduce()(loss).asnumpy()) / get_group_size())
    return losses


if __name__ == "__main__":
    first, second = collshim.launch(main, 2)
    assert first == second
    assert first[-1] < first[0] / 10
    print(f"the loss on every rank: {first[0]:.3f}, and after 20 steps {first[-1]:.3f}")
