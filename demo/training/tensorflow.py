"""Data-parallel training with TensorFlow's functions: a step runs on every replica, and takes the mean itself."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import cross_entropy

import collshim.tensorflow as tf
from collshim.demo.training.digits import Digits
from collshim.demo.training.model import descend, flat_gradient, make_model


def train(digits: Digits) -> list[float]:
    """Train, and return the loss of every step over all replicas."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    model = make_model()

    @tf.function
    def step(images: Tensor, labels: Tensor) -> Tensor:
        ctx = tf.distribute.get_replica_context()
        replica, replicas = ctx.replica_id_in_sync_group, ctx.num_replicas_in_sync
        loss: Tensor = cross_entropy(model(images[replica::replicas]), labels[replica::replicas])
        gradient, loss = flat_gradient(loss, model), loss.detach()
        gradient, loss = ctx.all_reduce("MEAN", [gradient, loss])
        descend(model, gradient)
        return loss

    return [strategy.run(step, args=batch).item() for batch in digits.batches()]
