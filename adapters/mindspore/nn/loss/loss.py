"""Losses of ``mindspore.nn`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_bool, check_float, check_int
from collshim.mindspore.common.dtype import dtype_name
from collshim.mindspore.nn.cell import Cell
from collshim.mindspore.slopes import cross_entropy_of_rows

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "DiceLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LossBase",
    "MAELoss",
    "MSELoss",
    "NLLLoss",
    "RMSELoss",
    "SmoothL1Loss",
    "SoftmaxCrossEntropyWithLogits",
]
_FLOATS = (torch.float16, torch.float32)


class LossBase(Cell):
    """The base of losses; ``get_loss`` reduces a loss's elements.

    Args:
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: ``reduction`` has any other value.
    """

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            text = f"the 'reduction' must be in ['mean', 'sum', 'none'], but got {reduction}"
            refuse(ValueError, f"For {self.cls_name!r}, {text}")
        self.reduction = reduction

    def get_axis(self, x: Any) -> tuple[int, ...]:
        """Return the indices of all axes."""
        return tuple(range(x.dim()))

    def get_loss(self, x: Any, weights: Any = 1.0) -> Any:
        """Return ``x * weights``, or its mean or sum, computed in float32, in the dtype of ``x``."""
        weighted = x.to(torch.float32) * weights
        if self.reduction == "mean":
            weighted = weighted.mean()
        elif self.reduction == "sum":
            weighted = weighted.sum()
        return weighted.to(x.dtype)

    def _require_tensors(self, **inputs: Any) -> None:
        for name, value in inputs.items():
            if not isinstance(value, torch.Tensor):
                text = f"the '{name}' must be Tensor, but got {type(value).__name__}"
                refuse(TypeError, f"For {self.cls_name!r}, {text}")

    def _require_dtype(self, name: str, dtype: torch.dtype, known: tuple[torch.dtype, ...]) -> None:
        if dtype not in known:
            text = (
                f"the dtype of '{name}' must be in [{', '.join(map(dtype_name, known))}], but got {dtype_name(dtype)}"
            )
            refuse(TypeError, f"For {self.cls_name!r}, {text}")


class CrossEntropyLoss(LossBase):
    """The cross entropy of ``softmax(logits)`` and labels.

    Args:
        weight: a weight for each class.
        ignore_index: a class that the loss ignores; without effect if labels are probabilities.
        reduction: "mean" (weighted by the labels' weights), "sum" or "none".
        label_smoothing: the share of each label that is spread over all classes.

    Raises:
        TypeError: an argument has the wrong type or dtype: logits must be float16 or float32, class indices int32.
        ValueError: a number is out of range; in a call, the shapes do not match.
    """

    def __init__(
        self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0
    ) -> None:
        super().__init__(reduction)
        self.ignore_index = check_int(ignore_index, "ignore_index", self.cls_name)
        self.label_smoothing = check_float(label_smoothing, "label_smoothing", self.cls_name, 0.0, 1.0)
        if weight is not None:
            self._require_tensors(weight=weight)
            self._require_dtype("weight", weight.dtype, _FLOATS)
        self.weight = weight

    def construct(self, logits: Any, labels: Any) -> Any:
        """Return the loss of logits ``(N, C, ...)``, and classes ``(N, ...)`` or probabilities ``(N, C, ...)``."""
        self._require_tensors(logits=logits, labels=labels)
        self._require_dtype("logits", logits.dtype, _FLOATS)
        if logits.dim() == labels.dim():
            self._require_dtype("labels", labels.dtype, _FLOATS)
            fits = tuple(logits.shape) == tuple(labels.shape)
        else:
            self._require_dtype("labels", labels.dtype, (torch.int32,))
            fits = labels.dim() == logits.dim() - 1
            fits &= logits.dim() == 1 or (logits.shape[0], *logits.shape[2:]) == tuple(labels.shape)
            labels = labels.long()
        if not fits:
            text = "'labels' must have the shape of 'logits', (N, C, ...), or (N, ...)"
            refuse(ValueError, f"For {self.cls_name!r}, {text}, but got {tuple(labels.shape)}, {tuple(logits.shape)}")
        arguments: Any = {"reduction": self.reduction}
        if not labels.is_floating_point():
            arguments["ignore_index"] = self.ignore_index
        smoothing = self.label_smoothing
        return functional.cross_entropy(logits, labels, self.weight, label_smoothing=smoothing, **arguments)


class SoftmaxCrossEntropyWithLogits(LossBase):
    """The cross entropy of ``softmax(logits)`` and labels, row by row.

    Args:
        sparse: whether labels are classes, of shape (N,), rather than probabilities, of shape (N, C).
        reduction: "mean", "sum" or "none".

    Raises:
        TypeError: ``sparse`` is not a bool; in a call, an input is not a tensor.
        ValueError: the shapes do not match.
    """

    def __init__(self, sparse: bool = False, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.sparse = check_bool(sparse, "sparse", self.cls_name)

    def construct(self, logits: Any, labels: Any) -> Any:
        """Return the loss of logits (N, C) and labels."""
        self._require_tensors(logits=logits, labels=labels)
        if tuple(labels.shape) != tuple(logits.shape)[: 1 if self.sparse else None] or logits.dim() != 2:
            wanted = "(N,)" if self.sparse else "(N, C)"
            text = (
                f"'logits' must be (N, C) and 'labels' {wanted}, but got {tuple(logits.shape)}, {tuple(labels.shape)}"
            )
            refuse(ValueError, f"For {self.cls_name!r}, {text}")
        if self.sparse:
            return self.get_loss(functional.cross_entropy(logits, labels.long(), reduction="none"))
        return self.get_loss(cross_entropy_of_rows(logits, labels))


class MSELoss(LossBase):
    """The squared error of logits and labels."""

    def construct(self, logits: Any, labels: Any) -> Any:
        """Return the loss."""
        self._require_tensors(logits=logits, labels=labels)
        return self.get_loss(torch.square(logits - labels))


class L1Loss(LossBase):
    """The absolute error of logits and labels."""

    def construct(self, logits: Any, labels: Any) -> Any:
        """Return the loss."""
        self._require_tensors(logits=logits, labels=labels)
        return self.get_loss(torch.abs(logits - labels))


class MAELoss(L1Loss):
    """The absolute error of logits and labels."""


class RMSELoss(LossBase):
    """The root of the mean squared error of logits and labels."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, logits: Any, label: Any) -> Any:
        """Return the loss."""
        self._require_tensors(logits=logits, label=label)
        return torch.sqrt(torch.square(logits - label).mean())


class HuberLoss(LossBase):
    """Half the squared error up to ``delta``; beyond, ``delta * (error - delta / 2)``."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def construct(self, logits: Any, labels: Any) -> Any:
        """Return the loss."""
        self._require_tensors(logits=logits, labels=labels)
        error = torch.abs(logits - labels)
        return self.get_loss(
            torch.where(error <= self.delta, 0.5 * error * error, self.delta * (error - 0.5 * self.delta))
        )


class KLDivLoss(LossBase):
    """The divergence ``labels * (log(labels) - logits)`` of log-probabilities and labels; 0 for a label 0.

    "batchmean" divides the sum by the number of rows. Labels have no gradient.
    """

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__("sum" if reduction == "batchmean" else reduction)
        self.reduction = reduction

    def construct(self, logits: Any, labels: Any) -> Any:
        """Return the loss."""
        self._require_tensors(logits=logits, labels=labels)
        losses = functional.kl_div(logits, labels.detach(), reduction="none")
        if self.reduction == "batchmean":
            return losses.sum() / logits.shape[0]
        return self.get_loss(losses)


class DiceLoss(LossBase):
    """1 minus twice the overlap of logits and labels over their sums of squares, to which ``smooth`` is added.

    Raises:
        ValueError: in a call, the shapes differ.
    """

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        self.smooth = smooth

    def construct(self, logits: Any, label: Any) -> Any:
        """Return the loss."""
        self._require_tensors(logits=logits, label=label)
        if tuple(logits.shape) != tuple(label.shape):
            text = f"must have the same shape, but got {tuple(logits.shape)}, {tuple(label.shape)}"
            refuse(ValueError, f"For 'DiceLoss', 'logits' and 'label' {text}")
        overlap = (logits * label).sum()
        return 1 - 2 * overlap / ((logits * logits).sum() + (label * label).sum() + self.smooth)


class SmoothL1Loss(LossBase):
    """The absolute error minus ``beta / 2``; for an error below ``beta``, its square over ``2 * beta``.

    Raises:
        ValueError: ``beta`` is not positive.
    """

    def __init__(self, beta: float = 1.0, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.beta = check_float(float(beta), "beta", self.cls_name, 0.0, ends="(]")

    def construct(self, logits: Any, labels: Any) -> Any:
        """Return the loss."""
        self._require_tensors(logits=logits, labels=labels)
        return functional.smooth_l1_loss(logits, labels, reduction=self.reduction, beta=self.beta)


class NLLLoss(LossBase):
    """The negative log-likelihood of the labels; for the arguments, see CrossEntropyLoss."""

    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.ignore_index = check_int(ignore_index, "ignore_index", self.cls_name)
        self.weight = weight

    def construct(self, logits: Any, labels: Any) -> Any:
        """Return the loss of log-probabilities ``(N, C, ...)`` and classes ``(N, ...)``."""
        self._require_tensors(logits=logits, labels=labels)
        arguments: Any = {"ignore_index": self.ignore_index, "reduction": self.reduction}
        return functional.nll_loss(logits, labels.long(), self.weight, **arguments)


class BCELoss(LossBase):
    """The binary cross entropy of probabilities and labels; ``weight`` has their shape."""

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def construct(self, logits: Any, labels: Any) -> Any:
        """Return the loss."""
        self._require_tensors(logits=logits, labels=labels)
        return functional.binary_cross_entropy(logits, labels, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(LossBase):
    """The binary cross entropy of ``sigmoid(logits)`` and labels; ``pos_weight`` weights the positive labels."""

    def __init__(self, reduction: str = "mean", weight: Any = None, pos_weight: Any = None) -> None:
        super().__init__(reduction)
        self.weight, self.pos_weight = weight, pos_weight

    def construct(self, logits: Any, labels: Any) -> Any:
        """Return the loss."""
        self._require_tensors(logits=logits, labels=labels)
        arguments: Any = {"reduction": self.reduction, "pos_weight": self.pos_weight}
        return functional.binary_cross_entropy_with_logits(logits, labels, self.weight, **arguments)
