"""Traces the operations of torch that a step calls: switches dropout off, finds the losses, and keeps results."""

from __future__ import annotations

import hashlib
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor
from torch._ops import OpOverload
from torch.autograd.graph import GradientEdge
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from collshim.errors import CollshimError
from collshim.invariance import own_random
from collshim.invariance.parameters import Parameters, address_of, is_distributed, local
from collshim.invariance.records import AFTER, BACKWARD, FORWARD, GRADIENT, Draw, Event, RankRecord

MOST_ELEMENTS = 1 << 22
"""The number of elements of the largest tensor that a trace keeps."""

_MOST_BYTES = 1 << 29
"""The memory that the tensors of one rank's trace may take."""

_DROPOUTS = {
    functional.dropout,
    functional.dropout1d,
    functional.dropout2d,
    functional.dropout3d,
    functional.alpha_dropout,
    functional.feature_alpha_dropout,
    torch.dropout,
}
_HOOKS = (Tensor.register_hook, Tensor.register_post_accumulate_grad_hook)
_SETS_GRADIENT = Tensor.grad.__set__  # type: ignore[union-attr]
_COARSE = (torch.bfloat16, torch.float16)
_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
"""Functions whose only float argument is the dropout probability."""

_DROPOUT_OF_ATTENTION = 4
"""The position of ``dropout_p`` among the arguments of ``scaled_dot_product_attention``."""

_RANDOM = {
    *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "bernoulli", "multinomial"),
    *("normal", "poisson", "normal_", "uniform_", "bernoulli_", "exponential_", "random_", "cauchy_", "log_normal_"),
    *("geometric_", "rrelu", "gumbel_softmax", "trunc_normal_", "kaiming_uniform_", "xavier_uniform_"),
}
_OF_TORCH = f"{Path(torch.__file__).parent}{os.sep}"
_OF_COLLSHIM = f"{Path(__file__).resolve().parent.parent}{os.sep}"
_OF_MODULES = f"{_OF_TORCH}nn{os.sep}modules{os.sep}"
_POSTING = ("distributed_c10d.py", "c10d_logger.py")
_OF_PYTHON = f"{Path(os.__file__).parent}{os.sep}"
_MOST_LINES = 8
_OF_ITSELF = tuple(f"{_OF_TORCH}{folder}{os.sep}" for folder in ("distributed", "optim", f"nn{os.sep}parallel"))
"""The parts of torch that count as its own parallel code."""


def _is_programs(path: str) -> bool:
    """Return whether a file belongs to neither torch, collshim nor Python."""
    is_of_python = path.startswith(_OF_PYTHON) and "-packages" not in path
    is_around = path.startswith((_OF_TORCH, _OF_COLLSHIM, "<frozen")) or path.endswith("typing_extensions.py")
    return not (is_of_python or is_around)


def program_lines() -> tuple[tuple[str, ...], bool]:
    """Return the program's lines on the call stack, innermost first, and whether torch's parallel code is on it."""
    frame: Any = sys._getframe(1)
    inside, in_module, found = False, False, list[str]()
    while frame is not None and len(found) < _MOST_LINES:
        path = frame.f_code.co_filename
        if not _is_programs(path):
            in_module = in_module or path.startswith(_OF_MODULES)
            own = path.startswith(_OF_ITSELF) and not path.endswith(_POSTING)
            inside = inside or (own and not found and not in_module)
            if path.startswith(_OF_COLLSHIM) and found and path.endswith("program.py"):
                break
        else:
            found.append(f"{path}:{frame.f_lineno}")
        frame = frame.f_back
    return tuple(found) or ("unknown:0",), inside


class Trace(TorchFunctionMode):
    """The operations of one rank.

    Args:
        record: the rank's record, to which the trace adds.
        parameters: the parameters that the step has used so far.
        keeps: whether to keep the results of all operations.
        keeps_dropout: whether dropout is left on.

    Attributes:
        phase: see ``records``.
        losses: the losses from which the backward passes started.
        is_paused: whether operations are not recorded.
    """

    def __init__(self, record: RankRecord, parameters: Parameters, *, keeps: bool, keeps_dropout: bool) -> None:
        super().__init__()
        self.record, self.parameters = record, parameters
        parameters.on_arrival = self._gradient_arrived
        self.keeps = keeps
        self.phase = FORWARD
        self.losses: list[float] = []
        self._keeps_dropout = keeps_dropout
        self._turns: Counter[tuple[str, tuple[str, ...], str]] = Counter()
        self._made_by: dict[int, int] = {}
        self._bytes = 0
        self._unread: list[tuple[Any, Any, int]] = []
        self._alive: list[Any] = []  # so that no address in _made_by is reused by another tensor
        self.is_paused = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """See ``TorchFunctionMode``."""
        kwargs = kwargs or {}
        is_ours = sys._getframe(1).f_code.co_filename.startswith(_OF_COLLSHIM) or isinstance(func, OpOverload)
        if self.is_paused or is_ours:
            return func(*args, **kwargs)
        if not self._keeps_dropout:
            if func in _DROPOUTS and _is_on(args, kwargs):
                return self._without_dropout(func, args, kwargs)
            args, kwargs = _without_inner_dropout(func, args, kwargs)
        if not self.keeps:
            return self._note_dtype(func(*args, **kwargs))
        if func in _HOOKS:
            self.parameters.add_hook(args[0], program_lines()[0])
        self._read_finished()
        addresses = [address_of(local(leaf)) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        held = self._held(args)
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", str(func))
        if func == _SETS_GRADIENT and isinstance(args[1], Tensor):
            self._becomes_gradient(self.parameters.numbers_at(address_of(local(args[0]))), args[1])
        elif name.startswith("_foreach") and name.endswith("_"):
            for target in args[0]:
                self._keep(name, [address_of(local(target)), *addresses[len(args[0]) :]], target)
        elif name not in ("__get__", "__set__", "size", "dim"):
            self._keep(name, addresses, result, held)
        return result

    def _note_dtype(self, result: Any) -> Any:
        """Note whether an operation computes in lower precision than the parameters, as under autocast."""
        if isinstance(result, Tensor) and result.dtype in _COARSE and self.phase == FORWARD:
            self.record.coarsest = result.dtype
        return result

    @contextmanager
    def backward(self, outputs: Sequence[Tensor | GradientEdge], gradients: Sequence[Any]) -> Iterator[None]:
        """Record a backward pass inside the block, from these outputs with these gradients."""
        if self.phase != BACKWARD:
            self.record.backward, _ = program_lines()
            for output, gradient in zip(outputs, gradients, strict=False):
                self._end_at(output, gradient)
        before, self.phase = self.phase, BACKWARD
        try:
            with self:
                yield
        finally:
            self.phase = BACKWARD if before == BACKWARD else AFTER

    def _end_at(self, output: Tensor | GradientEdge, gradient: Any) -> None:
        """Record that the backward pass begins at this output, or at the graph edge that stands for it."""
        if isinstance(output, GradientEdge):
            self.parameters.add_leaves(leaves_of(output.node))
        elif not is_functorch_wrapped_tensor(output):  # vmap does not let elements be read
            if output.numel() == 1 and (gradient is None or bool((local(gradient) == 1).all())):
                self.losses.append(float(local(output)))
            self.parameters.add_leaves(leaves_of(output.grad_fn))
            if (maker := self._made_by.get(address_of(local(output)))) is not None:
                self.record.ends.append(maker)

    def forward_again(self) -> None:
        """Note that a forward pass begins after a backward pass."""
        if self.phase == AFTER and torch.is_grad_enabled():
            self.phase = FORWARD

    def _without_dropout(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Return the input, but draw the mask, so that the generator advances as it does with dropout."""
        lines, _ = program_lines()
        value = local(args[0])
        turn = self._turn(BACKWARD if self.phase == BACKWARD else FORWARD, lines, "dropout")
        if self.phase != BACKWARD:
            self.record.draws.append(Draw(lines, turn, _digest(value), _digest(own_random.state(value.device))))
        with torch.no_grad():
            func(value.clone(), *args[1:], **kwargs)
        return args[0]

    def _turn(self, phase: str, sites: tuple[str, ...], name: str) -> int:
        self._turns[phase, sites, name] += 1
        return self._turns[phase, sites, name] - 1

    def _held(self, args: Any) -> Tensor | None:
        """Return a DTensor argument's value outside the forward pass: a DTensor's own gradient is seen only reduced."""
        is_gradient = self.phase != FORWARD and bool(args) and is_distributed(args[0])
        return self.snapshot(args[0]) if is_gradient else None

    def _keep(self, name: str, addresses: Sequence[int], result: Any, held: Tensor | None = None) -> None:
        tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        kept = [leaf for leaf in tensors if (leaf.is_floating_point() or leaf.is_complex()) and not leaf.is_sparse]
        lines, is_torchs = program_lines()
        writes = self.phase != FORWARD and not tensors and name.rstrip("_") != name
        changes = writes and any(map(self.parameters.numbers_at, addresses))
        if is_torchs or not (kept or changes):
            return
        event = self._event(lines, name, addresses)
        event.is_random = name in _RANDOM
        event.is_in_place = any(address_of(local(leaf)) in addresses for leaf in kept)
        event.before = held if event.is_in_place else None
        event.needs_grad = any(leaf.requires_grad for leaf in kept)
        event.value = self.snapshot(kept) if isinstance(result, Tensor) else None
        if self.phase == FORWARD and isinstance(result, Tensor) and result.requires_grad and not result.is_leaf:
            result.register_hook(lambda gradient: self._arrived(event, gradient))
        self._alive += kept
        self._makes(event, len(self.record.events) - 1, kept)

    def _makes(self, event: Event, number: int, results: Sequence[Tensor]) -> None:
        """Remember which event made these tensors."""
        for leaf in results:
            address = address_of(local(leaf))
            self._made_by[address] = number
            if self.phase != FORWARD:
                event.written += self.parameters.gradients_at(address)

    def _gradient_arrived(self, number: int, gradient: Tensor) -> None:
        """Record the gradient of a parameter that a backward pass is about to accumulate."""
        self.parameters.records[number].arrived = len(self.record.events)
        self._becomes_gradient([number], gradient)

    def _becomes_gradient(self, numbers: Sequence[int], tensor: Tensor) -> None:
        """Record that a tensor becomes the gradient of parameters, if it is the result of an operation."""
        address = address_of(local(tensor))
        if self.keeps and not self.is_paused and self.phase != FORWARD and address in self._made_by:
            event = self._event(program_lines()[0], GRADIENT, [address])
            event.parameters = event.written = list(numbers)

    def _event(self, lines: tuple[str, ...], name: str, addresses: Sequence[int]) -> Event:
        turn = self._turn(self.phase, lines, name)
        event = Event(lines, name, self.phase, turn, in_graph=torch.is_grad_enabled())
        event.inputs = sorted({self._made_by[address] for address in addresses if address in self._made_by})
        event.parameters = sorted({n for address in addresses for n in self.parameters.numbers_at(address)})
        self.record.events.append(event)
        return event

    def _arrived(self, event: Event, gradient: Tensor) -> None:
        event.gradient = self.snapshot(gradient)
        event.arrived = len(self.record.events)

    def snapshot(self, tensors: Any) -> Tensor | None:
        """Return a copy of a tensor, or of several concatenated; None if it is too large to keep."""
        parts = [local(leaf) for leaf in tree_leaves(tensors) if isinstance(leaf, Tensor)]
        parts = [part for part in parts if part.is_floating_point() or part.is_complex()]
        total = sum(part.nbytes for part in parts)
        if not parts or self._bytes + total > _MOST_BYTES or any(part.numel() > MOST_ELEMENTS for part in parts):
            self.record.is_cut = self.record.is_cut or bool(parts)
            return None
        self._bytes += total
        if len(parts) == 1:
            return parts[0].cpu().clone()
        return torch.cat([part.cpu().reshape(-1) for part in parts])

    # ``calls.CallTrace`` calls these for collectives.

    def called(self, name: str, inputs: Any, ranks: Sequence[int]) -> Event:
        """Add a collective that is about to start, and return its event."""
        lines, is_torchs = program_lines()
        self._read_finished()
        tensors = [leaf for leaf in tree_leaves(inputs) if isinstance(leaf, Tensor)]
        event = self._event(lines, name, [address_of(local(tensor)) for tensor in tensors])
        event.ranks = tuple(ranks)
        event.in_graph, event.is_torchs = event.in_graph and not is_torchs, is_torchs
        event.before = self.snapshot(inputs)
        makers = [self.record.events[number] for number in event.inputs]
        has_graph = any(tensor.grad_fn is not None for tensor in tensors)
        event.needs_grad = has_graph or any(maker.needs_grad for maker in makers)
        return event

    def started(self, event: Event, work: Any, outputs: Any) -> None:
        """Note that a collective was started; its result is kept once it is complete."""
        self._alive.append(outputs)
        number = next(n for n in range(len(self.record.events) - 1, -1, -1) if self.record.events[n] is event)
        self._makes(event, number, [leaf for leaf in tree_leaves(outputs) if isinstance(leaf, Tensor)])
        self._unread.append((work, outputs, number))
        self._read_finished()

    def finish(self) -> None:
        """Keep the results that are complete by now."""
        self._read_finished()
        self._unread.clear()
        self._alive.clear()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Record no operations inside the block."""
        before, self.is_paused = self.is_paused, True
        try:
            yield
        finally:
            self.is_paused = before

    def _read_finished(self) -> None:
        """Keep the results of collectives that are complete by now: outputs have their values only after a wait."""
        unread, self._unread = self._unread, []
        for work, outputs, number in unread:
            if work.done():
                try:
                    result = work.wait()
                except CollshimError:  # the program's own wait raises it again
                    continue
                known = work.outputs if outputs is None else outputs
                self.record.events[number].value = self.snapshot(result if known is None else known)
            else:
                self._unread.append((work, outputs, number))


def _is_on(args: Any, kwargs: Any) -> bool:
    """Return whether a call of a dropout function drops anything."""
    return bool(args[2] if len(args) > 2 else kwargs.get("training", kwargs.get("train", True)))


def _without_inner_dropout(func: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return arguments with which an attention drops nothing; other functions' arguments are returned unchanged."""
    if getattr(func, "__name__", "") in _RECURRENT:
        return tuple(0.0 if isinstance(argument, float) else argument for argument in args), kwargs
    if func is functional.multi_head_attention_forward:
        return args, {**kwargs, "training": False}
    if func is not functional.scaled_dot_product_attention:
        return args, kwargs
    if len(args) > _DROPOUT_OF_ATTENTION:
        return (*args[:_DROPOUT_OF_ATTENTION], 0.0, *args[_DROPOUT_OF_ATTENTION + 1 :]), kwargs
    return args, {**kwargs, "dropout_p": 0.0}


def leaves_of(end: Any) -> Iterator[Tensor]:
    """Yield the leaf tensors of the autograd graph that ends at this node."""
    queue, seen = [end], set[Any]()
    while queue:
        node: Any = queue.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            yield node.variable
        queue.extend(following for following, _ in node.next_functions)


def _digest(tensor: Tensor) -> str:
    whole = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return hashlib.sha256(whole.numpy().tobytes()).hexdigest()[:16]
