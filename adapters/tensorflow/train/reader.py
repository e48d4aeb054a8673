"""The reader of a checkpoint's values that ``tf.train.load_checkpoint`` returns. Source: TensorFlow 2.21."""

from __future__ import annotations

from typing import Any

from collshim.tensorflow.data_types import DType
from collshim.tensorflow.errors import NotFoundError
from collshim.tensorflow.tensor import adopt
from collshim.tensorflow.train import files


class CheckpointReader:
    """Reads the values of one checkpoint."""

    def __init__(self, prefix: str) -> None:
        self._described, self._prefix = files.described(prefix), prefix

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Return each value's shape by its key."""
        return {key: shape for key, (_, shape) in self._described.items()}

    def get_variable_to_dtype_map(self) -> dict[str, Any]:
        """Return each value's dtype by its key."""
        return {key: DType(tensor.dtype) for key, tensor in files.read(self._prefix).tensors.items()}

    def has_tensor(self, tensor_str: str) -> bool:
        """Return whether the checkpoint has a value with this key."""
        return tensor_str in self._described

    def get_tensor(self, tensor_str: str) -> Any:
        """Return a value as a NumPy array.

        Raises:
            NotFoundError: there is no such value.
        """
        tensors = files.read(self._prefix).tensors
        if tensor_str not in tensors:
            raise NotFoundError(None, None, f"Key {tensor_str} not found in checkpoint")
        return adopt(tensors[tensor_str]).numpy()
