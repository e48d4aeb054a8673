"""``Callback`` and ``RunContext`` of ``mindspore.train`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from collshim.adapting.refusing import refuse
from collshim.errors import ArgumentError, also

__all__ = ["Callback", "Callbacks", "Facts", "LambdaCallback", "RunContext"]
_MOMENTS = [f"{mode}_{what}" for mode in ("train", "eval") for what in ("begin", "epoch_begin", "step_begin")]
_MOMENTS = [f"on_{moment}" for begin in _MOMENTS for moment in (begin, begin.replace("begin", "end"))]


class Callback:
    """The base of callbacks: a ``Model`` calls its methods during training and evaluation, with a RunContext.

    ``begin``, ``epoch_begin``, ``step_begin`` and the ``end`` methods are called in both; ``on_train_begin`` and
    the like in one of the two.
    """

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *err: object) -> None:
        return None

    def begin(self, run_context: Any) -> None:
        """Run before training or evaluation."""

    def epoch_begin(self, run_context: Any) -> None:
        """Run before each epoch."""

    def epoch_end(self, run_context: Any) -> None:
        """Run after each epoch."""

    def step_begin(self, run_context: Any) -> None:
        """Run before each step."""

    def step_end(self, run_context: Any) -> None:
        """Run after each step."""

    def end(self, run_context: Any) -> None:
        """Run after training or evaluation."""


def _at(short: str) -> Callable[[Callback, Any], None]:
    def moment(self: Callback, run_context: Any) -> None:
        getattr(self, short)(run_context)

    moment.__doc__ = f"Call ``{short}``."
    return moment


for _name in _MOMENTS:
    setattr(Callback, _name, _at(_name.split("_", 2)[2]))


class LambdaCallback(Callback):
    """A callback made of functions, one for each method."""

    def __init__(
        self,
        on_train_epoch_begin: Any = None,
        on_train_epoch_end: Any = None,
        on_train_step_begin: Any = None,
        on_train_step_end: Any = None,
        on_train_begin: Any = None,
        on_train_end: Any = None,
        on_eval_epoch_begin: Any = None,
        on_eval_epoch_end: Any = None,
        on_eval_step_begin: Any = None,
        on_eval_step_end: Any = None,
        on_eval_begin: Any = None,
        on_eval_end: Any = None,
    ) -> None:
        given = dict(locals())
        for name in _MOMENTS:
            setattr(self, name, given[name] or (lambda run_context: None))


class Facts(dict[str, Any]):
    """The state that a Model passes to its callbacks, as dict entries and as attributes.

    A missing attribute is a KeyError, as in MindSpore, even for ``hasattr``: use ``in`` or ``get``.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            text = f"the callbacks' parameters have no {name!r}: they have {', '.join(self)}"
            raise also(ArgumentError, KeyError)(text) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class RunContext:
    """The argument of callbacks, which can read the run's state and stop the run.

    Raises:
        TypeError: ``original_args`` is not a dict.
    """

    def __init__(self, original_args: Any) -> None:
        if not isinstance(original_args, dict):
            text = f"should be dict type, but got {type(original_args)}"
            refuse(TypeError, f"The argument 'original_args' of RunContext {text}")
        self._original_args = original_args
        self._stop_requested = False

    def original_args(self) -> Any:
        """Return the run's state: ``cur_epoch_num``, ``cur_step_num``, ``net_outputs``, and so on."""
        return self._original_args

    def request_stop(self) -> None:
        """Make the Model stop after this step."""
        self._stop_requested = True

    def get_stop_requested(self) -> bool:
        """Return whether a callback has requested a stop."""
        return self._stop_requested


class Callbacks:
    """The callbacks of a run.

    Args:
        given: None, a callback, or a list of them.

    Raises:
        TypeError: an entry is not a Callback.
    """

    def __init__(self, given: Any) -> None:
        self.each = [] if given is None else list(given) if isinstance(given, list | tuple) else [given]
        for callback in self.each:
            if not isinstance(callback, Callback):
                text = f"must be Callback or a list of them, but got {type(callback)}"
                refuse(TypeError, f"When the 'callbacks' is a list, the element in 'callbacks' {text}")

    def at(self, moment: str, run_context: RunContext) -> None:
        """Call the method of this name, such as "on_train_begin", on all callbacks."""
        for callback in self.each:
            getattr(callback, moment)(run_context)
