"""Layers, losses and functions whose numbers are recorded with the real MindSpore; each case takes its package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

Arrays = dict[str, Any]


def numbers(*shape: int, seed: int = 0) -> Any:
    """Return reproducible float32 numbers."""
    return np.random.RandomState(seed).normal(size=shape).astype(np.float32)


def fill(cell: Any, ms: Any) -> Any:
    """Give a Cell's parameters reproducible values, and return it."""
    for index, parameter in enumerate(cell.get_parameters()):
        values = numbers(*parameter.shape, seed=index + 1)
        parameter.set_data(ms.Tensor(np.abs(values) if "variance" in parameter.name else values))
    return cell


def trained(cell: Any, ms: Any, *inputs: Any) -> Arrays:
    """Return a Cell's output, the gradients of a sum that weighs the output, and the parameters afterwards."""
    tensors = [ms.Tensor(each) for each in inputs]

    def weighed(*args: Any) -> Any:
        output = cell(*args)
        return (output * ms.Tensor(numbers(*output.shape, seed=9))).sum()

    weights = cell.trainable_params()
    found: Arrays = {"output": cell(*tensors)}
    if weights:
        of_input, of_weights = ms.grad(weighed, 0, weights)(*tensors)
        found |= {f"of {weight.name}": grad for weight, grad in zip(weights, of_weights, strict=True)}
    else:
        of_input = ms.grad(weighed)(*tensors)
    found["of input"] = of_input
    found |= {parameter.name: parameter for parameter in cell.get_parameters() if not parameter.requires_grad}
    return found


_IMAGE = (2, 4, 7, 6)
LAYERS: dict[str, tuple[str, tuple[int, ...]]] = {
    "Dense": ("nn.Dense(4, 3)", (5, 4)),
    "Dense of three axes": ("nn.Dense(4, 3, has_bias=False, activation='relu')", (2, 5, 4)),
    "Conv2d": ("nn.Conv2d(4, 6, 3)", _IMAGE),
    "Conv2d of even kernel and stride": ("nn.Conv2d(4, 6, (2, 4), stride=(2, 3), has_bias=True)", _IMAGE),
    "Conv2d valid": ("nn.Conv2d(4, 6, 3, pad_mode='valid', dilation=2, group=2)", _IMAGE),
    "Conv2d pad": ("nn.Conv2d(4, 6, 3, stride=2, pad_mode='pad', padding=1)", _IMAGE),
    "Conv2d pad of four": ("nn.Conv2d(4, 6, 3, pad_mode='pad', padding=(1, 0, 2, 1))", _IMAGE),
    "BatchNorm2d training": ("nn.BatchNorm2d(4).set_train()", _IMAGE),
    "BatchNorm2d": ("nn.BatchNorm2d(4)", _IMAGE),
    "BatchNorm2d of batch": ("nn.BatchNorm2d(4, momentum=0.7, use_batch_statistics=True, affine=False)", _IMAGE),
    "BatchNorm1d": ("nn.BatchNorm1d(4).set_train()", (5, 4)),
    "LayerNorm": ("nn.LayerNorm((6,))", _IMAGE),
    "LayerNorm of two axes": ("nn.LayerNorm((7, 6), begin_norm_axis=2, begin_params_axis=2)", _IMAGE),
    "MaxPool2d": ("nn.MaxPool2d(2, 2)", _IMAGE),
    "MaxPool2d same": ("nn.MaxPool2d(3, 2, pad_mode='same')", _IMAGE),
    "MaxPool2d pad": ("nn.MaxPool2d((3, 2), (2, 1), pad_mode='pad', padding=1, ceil_mode=True)", _IMAGE),
    "AvgPool2d": ("nn.AvgPool2d(2, 2)", _IMAGE),
    "AvgPool2d same": ("nn.AvgPool2d(3, 2, pad_mode='same')", _IMAGE),
    "AvgPool2d pad": ("nn.AvgPool2d(3, 2, pad_mode='pad', padding=1, count_include_pad=False)", _IMAGE),
    "AdaptiveAvgPool2d": ("nn.AdaptiveAvgPool2d((3, None))", _IMAGE),
    "Flatten": ("nn.Flatten()", _IMAGE),
    "ReLU": ("nn.ReLU()", (3, 4)),
    "ReLU6": ("nn.ReLU6()", (3, 4)),
    "Sigmoid": ("nn.Sigmoid()", (3, 4)),
    "Tanh": ("nn.Tanh()", (3, 4)),
    "SiLU": ("nn.SiLU()", (3, 4)),
    "ELU": ("nn.ELU()", (3, 4)),
    "LeakyReLU": ("nn.LeakyReLU()", (3, 4)),
    "GELU": ("nn.GELU()", (3, 4)),
    "GELU exact": ("nn.GELU(approximate=False)", (3, 4)),
    "Softmax": ("nn.Softmax(axis=1)", (3, 4)),
    "LogSoftmax": ("nn.LogSoftmax()", (3, 4)),
    "Dropout outside of training": ("nn.Dropout(p=0.5)", (3, 4)),
}
LOSSES = {
    "CrossEntropyLoss": ("nn.CrossEntropyLoss()", "classes"),
    "CrossEntropyLoss weighed": ("nn.CrossEntropyLoss(weight=ms.Tensor(weights), label_smoothing=0.1)", "classes"),
    "CrossEntropyLoss ignoring": ("nn.CrossEntropyLoss(ignore_index=1, reduction='sum')", "classes"),
    "CrossEntropyLoss of probabilities": ("nn.CrossEntropyLoss(label_smoothing=0.2)", "probabilities"),
    "SoftmaxCrossEntropyWithLogits": ("nn.SoftmaxCrossEntropyWithLogits()", "probabilities"),
    "SoftmaxCrossEntropyWithLogits sparse": ("nn.SoftmaxCrossEntropyWithLogits(sparse=True)", "classes"),
    "SoftmaxCrossEntropyWithLogits mean": ("nn.SoftmaxCrossEntropyWithLogits(True, 'mean')", "classes"),
    "MSELoss": ("nn.MSELoss()", "numbers"),
    "L1Loss": ("nn.L1Loss('sum')", "numbers"),
    "SmoothL1Loss": ("nn.SmoothL1Loss(0.5)", "numbers"),
    "BCEWithLogitsLoss": ("nn.BCEWithLogitsLoss()", "probabilities"),
    "NLLLoss": ("nn.NLLLoss()", "classes"),
}
FUNCTIONS = (
    "ops.clip_by_norm(x, 0.5)",
    "ops.clip_by_norm((x, x * 3), 2.5)[1]",
    "ops.clip_by_norm(x, 100.0)",
    "ops.clip_by_global_norm((x, x * 3), 0.5)[1]",
    "ops.clip_by_value(x, -0.5, 0.5)",
    "ops.one_hot(ms.Tensor([0, 2, 5], ms.int32), 3)",
    "ops.one_hot(ms.Tensor([0, 2], ms.int32), 3, ms.Tensor(1.5), ms.Tensor(0.5), 0)",
    "ops.ReduceMean()(x)",
    "ops.ReduceMean(keep_dims=True)(x, 1)",
    "ops.ReduceSum()(x, (0, 1))",
    "ops.ReduceMax()(x, -1)",
    "ops.mean(x, 0)",
    "ops.sum(x, 1, True)",
    "ops.argmax(x, 1)",
    "ops.Argmax()(x)",
    "x.argmax(1)",
    "ops.softmax(x, 0)",
    "ops.squeeze(x.reshape((3, 1, 4)), 1)",
    "ops.tile(x, (2, 1))",
    "ops.transpose(x, (1, 0))",
    "ops.BiasAdd()(x, ms.Tensor([1.0, 2.0, 3.0, 4.0]))",
    "ops.SoftmaxCrossEntropyWithLogits()(x, ops.softmax(x))[0]",
    "ops.SoftmaxCrossEntropyWithLogits()(x, ops.softmax(x * 2))[1]",
    "ops.binary_cross_entropy_with_logits(x, ops.sigmoid(x * 2), ops.ones_like(x), ops.ones_like(x))",
    "ops.gelu(x)",
    "ops.concat((x, x), 1)",
    "ops.Concat()((x, x))",
    "ops.fill(ms.float32, (2,), 3)",
    "ops.full((2,), 3.0, dtype=ms.float32)",
    "ops.arange(2, 5)",
    "ops.flatten(x.reshape((3, 2, 2)))",
    "ops.HyperMap()(ops.partial(ops.mul, x), [x, x])[1]",
    "ops.GradOperation()(ops.square)(x)",
    "ops.GradOperation(sens_param=True)(ops.square)(x, x)",
    "ops.assign_add(ms.Parameter(x), x)",
    "ops.stop_gradient(x)",
)
RATES = {
    "exponential_decay_lr": "nn.exponential_decay_lr(0.1, 0.9, 7, 2, 1)",
    "exponential_decay_lr in stairs": "nn.exponential_decay_lr(0.1, 0.9, 7, 2, 2, True)",
    "cosine_decay_lr": "nn.cosine_decay_lr(0.01, 0.1, 7, 2, 2)",
    "polynomial_decay_lr": "nn.polynomial_decay_lr(0.1, 0.01, 8, 2, 2, 0.5)",
    "polynomial_decay_lr renewed": "nn.polynomial_decay_lr(0.1, 0.01, 8, 2, 2, 0.5, True)",
    "piecewise_constant_lr": "nn.piecewise_constant_lr([2, 5], [0.1, 0.05])",
    "warmup_lr": "nn.warmup_lr(0.1, 7, 2, 2)",
}
SCHEDULES = {
    "ExponentialDecayLR": "nn.ExponentialDecayLR(0.1, 0.9, 4)",
    "NaturalExpDecayLR": "nn.NaturalExpDecayLR(0.1, 0.9, 4, True)",
    "InverseDecayLR": "nn.InverseDecayLR(0.1, 0.9, 4)",
    "CosineDecayLR": "nn.CosineDecayLR(0.01, 0.1, 4)",
    "PolynomialDecayLR": "nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5)",
    "PolynomialDecayLR renewed": "nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5, True)",
    "WarmUpLR": "nn.WarmUpLR(0.1, 4)",
}
OPTIMIZERS = {
    "SGD": "nn.SGD(params, 0.1)",
    "SGD momentum": "nn.SGD(params, 0.1, momentum=0.9, dampening=0.3, weight_decay=0.1, loss_scale=2.0)",
    "SGD nesterov": "nn.SGD(params, [0.1, 0.2, 0.3], momentum=0.9, nesterov=True)",
    "Momentum": "nn.Momentum(params, 0.1, 0.9, weight_decay=0.1)",
    "Momentum of a schedule": "nn.Momentum(params, nn.ExponentialDecayLR(0.1, 0.5, 2), 0.9)",
    "Adam": "nn.Adam(params, 0.1)",
    "Adam nesterov": "nn.Adam(params, 0.1, weight_decay=0.1, use_nesterov=True, loss_scale=4.0)",
    "AdamWeightDecay": "nn.AdamWeightDecay(params, 0.1, weight_decay=0.1)",
    "groups": "nn.Momentum([{'params': params[:1], 'lr': 0.5, 'weight_decay': 0.2, 'grad_centralization': True}, "
    "{'params': params[1:]}, {'order_params': params}], 0.1, 0.9, weight_decay=0.01)",
}


def _of_layer(expression: str, shape: tuple[int, ...], ms: Any) -> Arrays:
    return trained(fill(eval(expression, {"ms": ms, "nn": ms.nn}), ms), ms, numbers(*shape))


def _of_loss(expression: str, kind: str, ms: Any) -> Arrays:
    logits = numbers(5, 3)
    labels = {
        "classes": np.array([0, 2, 1, 1, 0], np.int32),
        "probabilities": np.abs(numbers(5, 3, seed=2)) / np.abs(numbers(5, 3, seed=2)).sum(1, keepdims=True),
        "numbers": numbers(5, 3, seed=2),
    }[kind]
    loss = eval(expression, {"ms": ms, "nn": ms.nn, "weights": np.array([1, 2, 0.5], np.float32)})
    value, gradient = ms.value_and_grad(lambda x: loss(x, ms.Tensor(labels)))(ms.Tensor(logits))
    return {"loss": value, "gradient": gradient}


def _of_optimizer(expression: str, ms: Any) -> Arrays:
    cell = fill(ms.nn.SequentialCell(ms.nn.Dense(3, 2), ms.nn.LayerNorm((2,))), ms)
    params = cell.trainable_params()
    optimizer = eval(expression, {"nn": ms.nn, "params": params})
    for step in range(3):
        optimizer(tuple(ms.Tensor(numbers(*one.shape, seed=20 + step)) for one in params))
    return {parameter.name: parameter for parameter in optimizer.get_parameters()}


def _of_expression(expression: str, ms: Any) -> Arrays:
    return {"result": eval(expression, {"ms": ms, "nn": ms.nn, "ops": ms.ops, "x": ms.Tensor(numbers(3, 4))})}


def _of_schedule(expression: str, ms: Any) -> Arrays:
    schedule = eval(expression, {"nn": ms.nn})
    return {str(step): schedule(ms.Tensor([step], ms.int32)) for step in (0, 1, 3, 4, 9)}


def cases() -> Iterator[tuple[str, Callable[[Any], Arrays]]]:
    """Yield names and functions of MindSpore's package that return arrays by name."""
    for name, (text, shape) in LAYERS.items():
        yield name, partial(_of_layer, text, shape)
    for name, (text, kind) in LOSSES.items():
        yield name, partial(_of_loss, text, kind)
    for name, text in OPTIMIZERS.items():
        yield f"optimizer {name}", partial(_of_optimizer, text)
    for text in FUNCTIONS:
        yield text, partial(_of_expression, text)
    for name, text in RATES.items():
        yield name, partial(_of_expression, text)
    for name, text in SCHEDULES.items():
        yield name, partial(_of_schedule, text)
