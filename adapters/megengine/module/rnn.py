"""Recurrent layers (source: MegEngine 1.13.0, ``megengine.module.rnn``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from collshim.errors import ArgumentValueError, CollshimError, also
from collshim.megengine.core.tensor.values import Value, operands
from collshim.megengine.functional._layers import dropout
from collshim.megengine.functional.tensor import zeros
from collshim.megengine.module import init
from collshim.megengine.module.module import Module
from collshim.megengine.tensor import Parameter, Tensor, computes

__all__ = ["LSTM", "RNN", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_STEPS: dict[str, Callable[[Value], Value]] = {"tanh": torch.tanh, "relu": torch.relu, "identity": lambda value: value}
_SEQUENCES: dict[str, Callable[..., Any]] = {"tanh": torch.rnn_tanh, "relu": torch.rnn_relu}


def _function(nonlinearity: str, functions: dict[str, Callable[..., Any]]) -> Callable[..., Any]:
    if nonlinearity not in functions:
        raise also(ArgumentValueError, RuntimeError)(
            f"nonlinearity is {nonlinearity!r}, should be one of {sorted(functions)}"
        )
    return functions[nonlinearity]


def _reset_uniformly(module: Module, hidden_size: int) -> None:
    bound = hidden_size**-0.5
    for parameter in module.parameters():
        init.uniform_(parameter, -bound, bound)


@computes
def _gates(inp: Any, weight_ih: Any, bias_ih: Any, hidden: Any, weight_hh: Any, bias_hh: Any) -> Value:
    return F.linear(*operands(inp, weight_ih, bias_ih)) + F.linear(*operands(hidden, weight_hh, bias_hh))


@computes
def _lstm_step(gates: Value, cell: Value) -> tuple[Value, Value]:
    into, forget, new, out = gates.chunk(4, -1)
    cell = torch.sigmoid(forget) * cell + torch.sigmoid(into) * torch.tanh(new)
    return torch.sigmoid(out) * torch.tanh(cell), cell


class RNNCellBase(Module):
    """The base class of cells: a weight (gates, in) and one (gates, hidden), and their biases, which may be zeros.

    The initial values are uniform, from ``-hidden_size ** -0.5`` to ``hidden_size ** -0.5``.
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        size = self.gate_hidden_size = num_chunks * hidden_size
        self.weight_ih = Parameter(np.zeros((size, input_size), np.float32))
        self.weight_hh = Parameter(np.zeros((size, hidden_size), np.float32))
        kind = Parameter if bias else Tensor
        self.bias_ih, self.bias_hh = kind(np.zeros(size, np.float32)), kind(np.zeros(size, np.float32))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the parameters."""
        _reset_uniformly(self, self.hidden_size)

    def _compute_gates(self, inp: Tensor, hidden: Tensor) -> Tensor:
        weights = self.weight_ih, self.bias_ih, hidden, self.weight_hh, self.bias_hh
        return _gates(inp, *weights)  # type: ignore[no-any-return]

    def _zeros(self, inp: Tensor) -> Tensor:
        return zeros((inp.shape[0], self.hidden_size))


class RNNCell(RNNCellBase):
    """One step of ``RNN`` for an input (N, in); the state is (N, hidden), and zeros by default."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh") -> None:
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, bias, 1)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next state."""
        compute = computes(_function(self.nonlinearity, _STEPS))
        return compute(self._compute_gates(input, self._zeros(input) if hx is None else hx))  # type: ignore[no-any-return]


class LSTMCell(RNNCellBase):
    """One step of ``LSTM`` for an input (N, in); the state and the cell are (N, hidden), and zeros by default."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__(input_size, hidden_size, bias, 4)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Return the next state and cell."""
        hidden, cell = (self._zeros(input), self._zeros(input)) if hx is None else hx
        return _lstm_step(self._compute_gates(input, hidden), cell)  # type: ignore[no-any-return]


class RNNBase(Module):
    """The base class of layers for sequences (T, N, in), or (N, T, in) with ``batch_first``.

    All weights are in ``_flatten_weights``: in memory order, for each layer and direction, those of the input and of
    the state, then their biases. The weights in ``cells`` only exist for ``state_dict``, as in MegEngine.

    Raises:
        ValueError: ``dropout`` is not a number from 0 to 1, or ``proj_size`` is not from 0 to ``hidden_size - 1``.
        NotImplementedError: ``proj_size`` is above 0.
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0, bidirectional: bool = False, proj_size: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        if not isinstance(dropout, int | float) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ArgumentValueError(f"dropout is {dropout}, should be a float from 0 to 1")
        if not 0 <= proj_size < hidden_size:
            raise ArgumentValueError(f"proj_size is {proj_size}, should be from 0 to less than hidden_size")
        if proj_size:
            raise also(CollshimError, NotImplementedError)(f"proj_size is {proj_size}: projections are not supported")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.num_directions, self.proj_size = bidirectional, 2 if bidirectional else 1, proj_size
        self.cells = [[self.create_cell(layer) for _ in range(self.num_directions)] for layer in range(num_layers)]
        size = self.cells[0][0].gate_hidden_size
        count = sum(shape[0] * (shape[1] if len(shape) > 1 else 1) for shape in self._shapes()) // size
        self._flatten_weights = Parameter(np.zeros((size, count), np.float32))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the parameters."""
        _reset_uniformly(self, self.hidden_size)

    def create_cell(self, layer: int) -> Any:
        """Return a cell for the shapes of a layer; subclasses implement this."""
        raise NotImplementedError

    def init_hidden(self, batch_size: int) -> Any:
        """Return the initial states of a batch, zeros."""
        return zeros((self.num_directions * self.num_layers, batch_size, self.hidden_size))

    def _input_size(self, layer: int) -> int:
        return self.num_directions * self.hidden_size if layer else self.input_size

    def _shapes(self) -> Iterator[tuple[int, ...]]:
        """Yield the shapes of the weights in the order of ``_flatten_weights``."""
        for cell in (cell for layer in self.cells for cell in layer):
            biases = (cell.bias_ih.shape, cell.bias_hh.shape) if self.bias else ()
            yield from (cell.weight_ih.shape, cell.weight_hh.shape, *biases)

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Any]:
        """Return the output of the last layer at each step, and the states of all layers after the last step."""
        inp = input.transpose(1, 0, 2) if self.batch_first else input
        states = self.init_hidden(inp.shape[1]) if hx is None else hx
        output, last = self.apply_op(inp, states)
        return output.transpose(1, 0, 2) if self.batch_first else output, last

    def apply_op(self, input: Tensor, hx: Any) -> tuple[Tensor, Any]:
        """Compute ``forward`` for an input (T, N, in); subclasses implement this."""
        raise NotImplementedError

    def _layer_by_layer(self, function: Callable[..., Any], inp: Tensor, states: list[Tensor]) -> list[Tensor]:
        """Return the output and the last states; ``function`` computes one layer and returns its output and states."""
        last: list[list[Tensor]] = []
        for layer in range(self.num_layers):
            own = slice(layer * self.num_directions, (layer + 1) * self.num_directions)
            weights = _layer_weights(self._flatten_weights, list(self._shapes()), layer, self.num_layers)
            inp, *found = _layer(
                function, inp, [state[own] for state in states], weights, self.bias, self.bidirectional
            )
            last.append(found)
            if layer < self.num_layers - 1 and self.training:
                inp = dropout(inp, self.dropout)
        return [inp, *(_joined(list(parts)) for parts in zip(*last, strict=True))]


@computes
def _layer_weights(flat: Value, shapes: list[tuple[int, ...]], layer: int, layers: int) -> list[Value]:
    sizes = [int(np.prod(shape)) for shape in shapes]
    weights = [part.reshape(shape) for part, shape in zip(flat.reshape(-1).split(sizes), shapes, strict=True)]
    count = len(weights) // layers
    return weights[layer * count : (layer + 1) * count]


@computes
def _layer(
    function: Callable[..., Any], inp: Value, states: list[Value], weights: list[Value], bias: bool, both: bool
) -> Any:
    inp, *weights = operands(inp, *weights)
    return function(inp, states if len(states) > 1 else states[0], weights, bias, 1, 0.0, True, both, False)


@computes
def _joined(parts: list[Value]) -> Value:
    return torch.cat(parts)


class RNN(RNNBase):
    """Elman's network; the keyword ``nonlinearity`` is ``"tanh"`` or ``"relu"``. The states are (layers, N, hidden)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        super().__init__(*args, **kwargs)

    def create_cell(self, layer: int) -> RNNCell:
        """Return a cell for the shapes of a layer."""
        return RNNCell(self._input_size(layer), self.hidden_size, self.bias, self.nonlinearity)

    def apply_op(self, input: Tensor, hx: Tensor) -> tuple[Tensor, Tensor]:
        """Compute ``forward`` for an input (T, N, in)."""
        output, last = self._layer_by_layer(_function(self.nonlinearity, _SEQUENCES), input, [hx])
        return output, last


class LSTM(RNNBase):
    """Long short-term memory; the state and the cell are a tuple of tensors (layers, N, hidden)."""

    def create_cell(self, layer: int) -> LSTMCell:
        """Return a cell for the shapes of a layer."""
        return LSTMCell(self._input_size(layer), self.hidden_size, self.bias)

    def init_hidden(self, batch_size: int) -> tuple[Tensor, Tensor]:
        """Return the initial states and cells of a batch, zeros."""
        return super().init_hidden(batch_size), super().init_hidden(batch_size)

    def apply_op(self, input: Tensor, hx: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Compute ``forward`` for an input (T, N, in)."""
        output, hidden, cell = self._layer_by_layer(torch.lstm, input, list(hx))
        return output, (hidden, cell)
