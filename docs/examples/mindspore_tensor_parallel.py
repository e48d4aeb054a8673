"""Two linear layers, one divided by columns and one by rows; their Cells define their own gradients (``bprop``)."""

import numpy as np

import collshim
import collshim.mindspore as ms
from collshim.mindspore import Parameter, Tensor, nn, ops
from collshim.mindspore.communication import get_group_size, get_rank, init


class Copied(nn.Cell):
    """The identity; the gradient is the sum over all ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.all_reduce = ops.AllReduce()

    def construct(self, x: Tensor) -> Tensor:
        """Return the input."""
        return x

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        """Return the sum of all ranks' gradients."""
        return (self.all_reduce(dout),)


class Summed(nn.Cell):
    """The sum over all ranks; the gradient is the gradient of the output."""

    def __init__(self) -> None:
        super().__init__()
        self.all_reduce = ops.AllReduce()

    def construct(self, x: Tensor) -> Tensor:
        """Return the sum of all ranks' inputs."""
        output: Tensor = self.all_reduce(x)
        return output

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        """Return the output's gradient."""
        return (dout,)


class TwoLayers(nn.Cell):
    """``(x @ first) @ second``; every rank has some columns of ``first`` and the same rows of ``second``."""

    def __init__(self, first: np.ndarray, second: np.ndarray) -> None:
        super().__init__()
        self.first, self.second = Parameter(first), Parameter(second)
        self.copied, self.summed = Copied(), Summed()

    def construct(self, x: Tensor) -> Tensor:
        """Return the layers' outputs, the same on all ranks."""
        output: Tensor = self.summed(ops.matmul(ops.matmul(self.copied(x), self.first), self.second))
        return output


def main() -> float:
    """Return the largest difference from NumPy's results for the whole layers, in outputs and in gradients."""
    init()
    random = np.random.default_rng(0)
    x, first, second = (random.normal(size=shape).astype(np.float32) for shape in ((5, 4), (4, 8), (8, 3)))
    width = 8 // get_group_size()
    own = slice(get_rank() * width, (get_rank() + 1) * width)
    net = TwoLayers(first[:, own], second[own])
    value, (of_x, (of_first, of_second)) = ms.value_and_grad(net, 0, net.trainable_params())(Tensor(x))
    ones = np.ones((5, 3), np.float32)
    of_layers = (x.T @ ones @ second.T)[:, own], ((x @ first).T @ ones)[own]
    wanted = (x @ first @ second, ones @ second.T @ first.T, *of_layers)
    found = (value, of_x, of_first, of_second)
    return max(float(np.abs(one.asnumpy() - other).max()) for one, other in zip(found, wanted, strict=True))


if __name__ == "__main__":
    assert max(collshim.launch(main, 2)) < 1e-4
    print("the outputs and the gradients of the whole layers, beside NumPy's")
