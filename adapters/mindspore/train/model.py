"""``mindspore.train.Model`` (source: MindSpore 2.10.0): training and evaluation over datasets."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NoReturn

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_bool, check_int
from collshim.mindspore.communication import comm_func
from collshim.mindspore.communication.management import get_group_size, is_initialized
from collshim.mindspore.context import ParallelMode, get_auto_parallel_context
from collshim.mindspore.nn.cell import Cell
from collshim.mindspore.nn.wrap.cell_wrapper import WithEvalCell, WithLossCell
from collshim.mindspore.train.amp import build_train_network, require_options
from collshim.mindspore.train.callback import __all__ as _OWN_CALLBACKS
from collshim.mindspore.train.callback.callback import Callbacks, Facts, RunContext
from collshim.mindspore.train.metrics.metrics import Loss, get_metrics

__all__ = ["Model"]
_ONLY_IN_TRAINING = {*_OWN_CALLBACKS} - {"TimeMonitor"}
"""The names of the callbacks that ``fit`` does not call while it evaluates; MindSpore looks at the name too."""
_DIVIDED = (ParallelMode.DATA_PARALLEL, ParallelMode.HYBRID_PARALLEL)


class Model:
    """A network with its loss, its optimizer and its metrics.

    If ``set_auto_parallel_context`` set the mode "data_parallel" or "hybrid_parallel" before, the ranks train
    together: see TrainOneStepCell. With ``parameter_broadcast``, every rank starts training with rank 0's parameters.

    Args:
        network: a Cell; it returns the loss itself if ``loss_fn`` is None.
        loss_fn: the loss of the network's output and a label.
        optimizer: the optimizer; None if the network makes the steps itself.
        metrics: a dict of Metrics, or a set of their names.
        eval_network: the Cell to evaluate; None for the network with ``loss_fn``.
        eval_indexes: the positions of the loss, the outputs and the labels in the results of ``eval_network``.
        amp_level: the level of mixed precision: see ``amp.build_train_network``.
        boost_level: "O0".
        kwargs: ``loss_scale_manager`` and ``keep_batchnorm_fp32``: see ``amp.build_train_network``.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: there are metrics, but neither ``loss_fn`` nor ``eval_network``; or a keyword is unknown.
        NotImplementedError: ``boost_level`` is not "O0".
    """

    def __init__(
        self,
        network: Cell,
        loss_fn: Any = None,
        optimizer: Any = None,
        metrics: Any = None,
        eval_network: Cell | None = None,
        eval_indexes: list[int] | None = None,
        amp_level: str = "O0",
        boost_level: str = "O0",
        **kwargs: Any,
    ) -> None:
        require_options(amp_level, boost_level, kwargs)
        if not isinstance(network, Cell):
            refuse(TypeError, f"For 'Model', the type of 'network' must be 'Cell', but got {type(network)}")
        self._network, self._loss_fn, self._optimizer = network, loss_fn, optimizer
        self._parallel_mode = get_auto_parallel_context("parallel_mode")
        self._broadcasts = get_auto_parallel_context("parameter_broadcast")
        self._train_network = network if loss_fn is None else WithLossCell(network, loss_fn)
        if optimizer is not None:
            self._train_network = build_train_network(network, optimizer, loss_fn, amp_level, boost_level, **kwargs)
        self._metrics = get_metrics(metrics)
        self._eval_network, self._eval_indexes = eval_network, eval_indexes
        if self._metrics and eval_network is None:
            if loss_fn is None:
                refuse(ValueError, "If `metrics` is set, `eval_network` or `loss_fn` must not be None.")
            self._eval_network, self._eval_indexes = WithEvalCell(network, loss_fn), [0, 1, 2]
        if self._eval_indexes is not None and len(self._eval_indexes) != 3:
            text = f"must be a list of three or None, but got {eval_indexes!r}"
            refuse(ValueError, f"The argument 'eval_indexes' {text}")

    @property
    def train_network(self) -> Cell:
        """The Cell that runs a training step."""
        return self._train_network

    @property
    def predict_network(self) -> Cell:
        """The network."""
        return self._network

    @property
    def eval_network(self) -> Cell | None:
        """The Cell that is evaluated."""
        return self._eval_network

    def train(
        self,
        epoch: int,
        train_dataset: Any,
        callbacks: Any = None,
        dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
    ) -> None:
        """Train until ``epoch`` epochs are complete.

        Args:
            epoch: the number of epochs.
            train_dataset: a Dataset of data and labels, or of the network's inputs if there is no ``loss_fn``.
            callbacks: a Callback or a list of them.
            dataset_sink_mode: has no other effect: rows are read one after the other, as in MindSpore on the CPU.
            sink_size: the ``batch_num`` that callbacks read in this mode; -1 for the number of batches.
            initial_epoch: the number of epochs that are already complete.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: a number is out of range, the dataset is empty, or its rows have the wrong number of values.
        """
        self._train("train", epoch, train_dataset, Callbacks(callbacks), (dataset_sink_mode, sink_size, initial_epoch))

    def fit(
        self,
        epoch: int,
        train_dataset: Any,
        valid_dataset: Any = None,
        valid_frequency: Any = 1,
        callbacks: Any = None,
        dataset_sink_mode: bool = False,
        valid_dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
    ) -> None:
        """Train as ``train`` does, and evaluate after every ``valid_frequency`` epochs, or after the epochs in a list.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: as in ``train``; or there is a dataset to evaluate, but no metric.
        """
        check_bool(valid_dataset_sink_mode, "valid_dataset_sink_mode", "Model.fit")
        if not isinstance(valid_frequency, int | list):
            text = f"must be a list or an integer, but got type {type(valid_frequency)}"
            refuse(TypeError, f"For 'Model.fit', the type of 'valid_frequency' {text}")
        if valid_dataset is not None and not self._metrics:
            refuse(ValueError, "For 'Model.fit', if valid_dataset is not None, the argument 'metrics' can not be empty")
        sinking, valid = (dataset_sink_mode, sink_size, initial_epoch), (valid_dataset, valid_frequency)
        self._train("fit", epoch, train_dataset, Callbacks(callbacks), sinking, valid)

    def _train(
        self,
        of: str,
        epoch: int,
        dataset: Any,
        callbacks: Callbacks,
        sinking: tuple[bool, int, int],
        valid: tuple[Any, Any] = (None, 1),
    ) -> None:
        facts = self._facts("train", dataset, callbacks)
        initial = _require_epochs(f"Model.{of}", epoch, sinking, facts.batch_num)
        if sinking[0] and sinking[1] > 0:
            facts.batch_num = sinking[1]
        facts.update(epoch_num=epoch - initial, train_network=self._train_network, train_dataset=dataset)
        self._share_parameters()
        run_context = RunContext(facts)
        batches = dataset.create_tuple_iterator(num_epochs=epoch - initial)
        with _entered(callbacks):
            callbacks.at("on_train_begin", run_context)
            for number in range(initial, epoch):
                facts.cur_epoch_num = number + 1
                self._train_epoch(batches, callbacks, run_context)
                self._evaluate_between(valid, facts, callbacks)
                callbacks.at("on_train_epoch_end", run_context)
                facts.pop("metrics", None)
                facts.pop("eval_results", None)
                if run_context.get_stop_requested():
                    break
            callbacks.at("on_train_end", run_context)

    def _train_epoch(self, batches: Any, callbacks: Callbacks, run_context: RunContext) -> None:
        facts = run_context.original_args()
        callbacks.at("on_train_epoch_begin", run_context)
        for batch in batches:
            if self._loss_fn is not None and len(batch) != 2:
                text = f"'train_dataset' should return two elements, but got {len(batch)}"
                refuse(ValueError, f"When 'loss_fn' is not None, {text}")
            facts.cur_step_num += 1
            facts.train_dataset_element = tuple(batch)
            callbacks.at("on_train_step_begin", run_context)
            self._train_network.set_train()
            facts.net_outputs = self._train_network(*batch)
            callbacks.at("on_train_step_end", run_context)
            if run_context.get_stop_requested():
                return

    def _evaluate_between(self, valid: tuple[Any, Any], facts: Any, callbacks: Callbacks) -> None:
        dataset, frequency = valid
        now = facts.cur_epoch_num
        if dataset is None or (now not in frequency if isinstance(frequency, list) else now % frequency):
            return
        own = Callbacks([each for each in callbacks.each if type(each).__name__ not in _ONLY_IN_TRAINING])
        facts.metrics, loss = self._evaluate(dataset, own)
        facts.eval_results = {**copy.deepcopy(facts.metrics), "eval_loss": loss}

    def eval(self, valid_dataset: Any, callbacks: Any = None, dataset_sink_mode: bool = False) -> dict[str, Any]:
        """Evaluate the network on the dataset, and return this rank's metrics, by name.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: there are no metrics.
        """
        check_bool(dataset_sink_mode, "dataset_sink_mode", "Model.eval")
        if not self._metrics:
            refuse(ValueError, "For Model.eval, the model argument 'metrics' can not be None or empty.")
        own = Callbacks(callbacks)
        with _entered(own):
            return self._evaluate(valid_dataset, own)[0]

    def _evaluate(self, dataset: Any, callbacks: Callbacks) -> tuple[dict[str, Any], Any]:
        """Return the metrics, and the last batch's loss, MindSpore's "eval_loss", if it is known."""
        facts = self._facts("eval", dataset, callbacks)
        facts.update(eval_network=self._eval_network, valid_dataset=dataset)
        run_context, loss = RunContext(facts), Loss()
        for metric in self._metrics.values():
            metric.clear()
        network = self._eval_network or self._network
        network.set_train(False)
        callbacks.at("on_eval_begin", run_context)
        callbacks.at("on_eval_epoch_begin", run_context)
        for batch in dataset.create_tuple_iterator(num_epochs=1):
            facts.cur_step_num += 1
            facts.eval_dataset_element = tuple(batch)
            callbacks.at("on_eval_step_begin", run_context)
            with torch.no_grad():
                facts.net_outputs = network(*batch)
            callbacks.at("on_eval_step_end", run_context)
            self._update_metrics(facts.net_outputs, loss)
            if run_context.get_stop_requested():
                break
        callbacks.at("on_eval_epoch_end", run_context)
        facts.metrics = {name: metric.eval() for name, metric in self._metrics.items()}
        callbacks.at("on_eval_end", run_context)
        return facts.metrics, loss.eval() if self._eval_indexes is not None else None

    def _update_metrics(self, outputs: Any, loss: Loss) -> None:
        results = (outputs,) if isinstance(outputs, torch.Tensor) else outputs
        if not isinstance(results, tuple):
            refuse(ValueError, f"The argument 'outputs' should be tuple, but got {type(results)}.")
        if self._eval_indexes is None:
            for metric in self._metrics.values():
                metric.update(*results)
            return
        if len(results) < 3:
            refuse(ValueError, f"The length of 'outputs' must be >= 3, but got {len(results)}")
        of_loss, output, label = (results[index] for index in self._eval_indexes)
        loss.clear()
        loss.update(of_loss)
        for metric in self._metrics.values():
            metric.update(of_loss) if isinstance(metric, Loss) else metric.update(output, label)

    def predict(self, *predict_data: Any, backend: str | None = None, config: Any = None) -> Any:
        """Return the network's outputs.

        Raises:
            TypeError: an input is not a tensor, a number, a string or None.
            ValueError: a tensor is empty, or ``backend`` is neither None nor "lite".
        """
        if backend not in (None, "lite"):
            refuse(ValueError, f"For Model.predict, `backend` should be 'lite' or None, but got {backend}")
        for item in predict_data:
            if isinstance(item, torch.Tensor):
                if item.numel() == 0:
                    refuse(ValueError, "The input data can not be empty.")
            elif not isinstance(item, int | float | str | None):
                refuse(
                    TypeError, f"The types of input data must be Tensor, None, int, float or str, but got {type(item)}"
                )
        self._network.set_train(False)
        with torch.no_grad():
            return self._network(*predict_data)

    def build(
        self,
        train_dataset: Any = None,
        valid_dataset: Any = None,
        sink_size: int = -1,
        epoch: int = 1,
        sink_mode: bool = True,
    ) -> None:
        """Do nothing: nothing is compiled."""

    def infer_train_layout(self, train_dataset: Any, dataset_sink_mode: bool = True, sink_size: int = -1) -> NoReturn:
        """Raise NotImplementedError: parameters are not divided over ranks."""
        refuse(NotImplementedError, "Model.infer_train_layout: parameters are not divided over ranks here")

    def _facts(self, mode: str, dataset: Any, callbacks: Callbacks) -> Facts:
        """Return the state for the callbacks of a new run."""
        facts = Facts(mode=mode, network=self._network, loss_fn=self._loss_fn, optimizer=self._optimizer)
        facts.update(parallel_mode=self._parallel_mode, list_callback=callbacks.each, cur_step_num=0)
        facts.update(batch_num=dataset.get_dataset_size(), dataset_sink_mode=False)
        facts.device_number = get_group_size() if self._parallel_mode in _DIVIDED else 1
        return facts

    def _share_parameters(self) -> None:
        """Broadcast rank 0's parameters, if ranks train together and ``parameter_broadcast`` was set."""
        if self._broadcasts and self._parallel_mode in _DIVIDED and is_initialized():
            for parameter in self._train_network.get_parameters():
                with torch.no_grad():
                    parameter.copy_(comm_func.broadcast(parameter.detach(), 0))


@contextmanager
def _entered(callbacks: Callbacks) -> Iterator[None]:
    with ExitStack() as stack:
        for callback in callbacks.each:
            stack.enter_context(callback)
        yield


def _require_epochs(of: str, epoch: Any, sinking: tuple[Any, Any, Any], batches: int) -> int:
    """Refuse numbers that are out of range, and return the number of epochs that are already complete."""
    sink_mode, sink_size, initial = sinking
    check_bool(sink_mode, "dataset_sink_mode", of)
    check_int(epoch, "epoch", of, least=1)
    check_int(initial, "initial_epoch", of, least=0)
    check_int(sink_size, "sink_size", of)
    if sink_size < -1 or sink_size == 0:
        refuse(ValueError, f"For '{of}', The argument 'sink_size' must be -1 or positive, but got {sink_size}.")
    if initial >= epoch:
        text = f"'epoch' must bigger than parameter 'initial_epoch', but got {epoch} and {initial}"
        refuse(ValueError, f"For '{of}', the parameter {text}")
    if batches == 0:
        refuse(ValueError, "There is no valid data in dataset, please check dataset file firstly.")
    return int(initial)
