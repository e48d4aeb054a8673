"""Cells, optimizers, checkpoints, Model and callbacks of ``collshim.mindspore``: names, texts and refusals."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import collshim
import collshim.mindspore as ms
import collshim.mindspore.dataset as ds
from collshim.mindspore import Parameter, Tensor, nn, ops
from collshim.mindspore.communication import get_rank, init
from collshim.mindspore.train import Accuracy, CheckpointConfig, LambdaCallback, LossMonitor, Model, ModelCheckpoint
from tests.adapters.conftest import Refused, Run

pytestmark = pytest.mark.unranked


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.scale = Parameter(Tensor([2.0]))
        self.layers = nn.SequentialCell(nn.Dense(3, 2), nn.ReLU(), nn.BatchNorm1d(2))
        self.more = nn.CellList([nn.Dense(2, 1, has_bias=False)])
        self.unseen = [nn.Dense(2, 1)]

    def construct(self, x: Tensor) -> Any:
        return self.more[0](self.layers(x)) * self.scale


def test_parameters_are_named_by_their_attributes() -> None:
    names = ["scale", "layers.0.weight", "layers.0.bias"]
    names += [f"layers.2.{name}" for name in ("moving_mean", "moving_variance", "gamma", "beta")]
    assert [parameter.name for parameter in Net().get_parameters()] == [*names, "more.0.weight"]


def test_unnamed_parameter_has_a_number() -> None:
    assert Parameter([1.0]).name.startswith("Parameter#")


def test_cells_print_as_in_mindspore() -> None:
    cell = nn.SequentialCell(OrderedDict(dense=nn.Dense(3, 2, activation="relu"), drop=nn.Dropout(p=0.2)))
    dense = "  (dense): Dense(\n    input_channels=3, output_channels=2, has_bias=True, activation=ReLU()\n"
    assert repr(cell) == f"SequentialCell(\n{dense}    (activation): ReLU()\n  )\n  (drop): Dropout(p=0.2)\n)"


def test_appended_and_deleted_cells_are_numbered() -> None:
    cells = nn.SequentialCell(nn.Dense(1, 1, has_bias=False), nn.ReLU())
    cells.append(nn.Dense(1, 1, has_bias=False))
    assert [parameter.name for parameter in cells.get_parameters()] == ["0.weight", "2.weight"]
    del cells[0]
    assert [parameter.name for parameter in cells.get_parameters()] == ["1.weight"]
    assert len(cells) == 2


@pytest.mark.parametrize(
    ("theirs", "call"),
    [
        (TypeError, lambda: nn.Dense(1.5, 2)),  # type: ignore[arg-type]
        (ValueError, lambda: nn.Dense(0, 2)),
        (ValueError, lambda: nn.Dense(2, 3, weight_init=Tensor(np.ones((2, 3), np.float32)))),
        (KeyError, lambda: nn.Dense(2, 3, activation="none")),
        (ValueError, lambda: nn.Conv2d(3, 4, 3, group=2)),
        (ValueError, lambda: nn.Conv2d(3, 4, 3, padding=1)),
        (ValueError, lambda: nn.BatchNorm2d(4, momentum=1.5)),
        (ValueError, lambda: nn.BatchNorm2d(4)(Tensor(np.ones((2, 4), np.float32)))),
        (ValueError, lambda: nn.MaxPool2d(2, padding=1)),
        (ValueError, lambda: nn.Dropout(p=1.0)),
        (ValueError, lambda: nn.MSELoss("max")),
        (TypeError, lambda: nn.CrossEntropyLoss()(Tensor(np.ones((2, 3), np.float32)), Tensor([1, 2]))),
        (ValueError, lambda: nn.SGD([])),
        (TypeError, lambda: nn.SGD([1.0])),
        (ValueError, lambda: nn.SGD([Parameter([1.0], name="w")], nesterov=True)),
        (ValueError, lambda: nn.Adam([Parameter([1.0], name="w")], beta1=1.0)),
        (RuntimeError, lambda: nn.SGD([{"params": [parameter := Parameter([1.0], name="w"), parameter]}])),
        (NotImplementedError, lambda: Model(Net(), boost_level="O1")),
        (ValueError, lambda: Model(Net(), metrics={"acc"})),
        (ValueError, lambda: Model(Net()).eval(None)),
        (KeyError, lambda: nn.get_metric_fn("roc")),
        (TypeError, lambda: ds.GeneratorDataset(1, ["a"])),
        (ValueError, lambda: ds.NumpySlicesDataset([1, 2], num_shards=2)),
        (NotImplementedError, lambda: ds.vision.Resize(3, ds.vision.Inter.AREA)),
        (NotImplementedError, lambda: ms.set_ps_context(enable_ps=True)),
        (ValueError, lambda: ms.set_auto_parallel_context(unknown=1)),
        (ValueError, lambda: ms.jit(None, capture_mode="none")),
    ],
)
def test_wrong_arguments_are_refused(refused: Refused, theirs: type[Exception], call: Any) -> None:
    refused(theirs, call)


def test_layers_with_weights_of_the_same_seed_are_the_same() -> None:
    def weights() -> Any:
        ms.set_seed(3)
        return nn.Dense(4, 2).weight.tolist()

    assert weights() == weights()
    first, second = collshim.launch(weights, 2)
    assert first == second == weights()


def test_dropout_scales_what_it_keeps() -> None:
    ms.set_seed(0)
    found = nn.Dropout(p=0.25).set_train()(Tensor(np.ones(1000, np.float32))).asnumpy()
    assert set(found.tolist()) == {0.0, float(np.float32(1 / 0.75))}
    assert 0.65 < (found > 0).mean() < 0.85


def test_learning_rate_list_ends_with_an_error(refused: Refused) -> None:
    parameter = Parameter([1.0], name="w")
    optimizer = nn.SGD([parameter], [0.5])
    optimizer((Tensor([1.0]),))
    assert parameter.tolist() == [0.5]
    assert "has 1 steps" in refused(RuntimeError, lambda: optimizer((Tensor([1.0]),)))


@pytest.mark.parametrize("format", ["ckpt", "safetensors"])
def test_checkpoint_restores_parameters(tmp_path: Path, format: str) -> None:
    path, cell, other = str(tmp_path / "net"), Net(), Net()
    ms.save_checkpoint(cell, path, append_dict={"epoch": 3}, crc_check=True, format=format)
    loaded = ms.load_checkpoint(f"{path}.{format}", crc_check=True, format=format)
    assert int(loaded.pop("epoch")) == 3
    assert ms.load_param_into_net(other, loaded) == ([], [])
    assert all(torch.equal(one, two) for one, two in zip(cell.get_parameters(), other.get_parameters(), strict=True))


def test_checkpoint_is_mindspores_file(tmp_path: Path) -> None:
    values: dict[str, Any] = {"s": Parameter(1.5), "i": Parameter(Tensor([1, 2])), "t": "hi"}
    values["b"] = Parameter(Tensor([1.0], ms.bfloat16))
    ms.save_checkpoint(values, str(tmp_path / "a"))
    content = b"\n\x14\n\x01s\x12\x0f\x12\x07Float32\x1a\x04\x00\x00\xc0?"
    content += b"\n \n\x01i\x12\x1b\x08\x02\x12\x05Int64\x1a\x10\x01" + b"\0" * 7 + b"\x02" + b"\0" * 7
    content += b"\n\x16\n\x01t\x12\x11\x08\x00\x12\x03str\x1a\x08h\x00\x00\x00i\x00\x00\x00"
    content += b"\n\x15\n\x01b\x12\x10\x08\x01\x12\x08BFloat16\x1a\x02\x80?"
    assert (tmp_path / "a.ckpt").read_bytes() == content
    assert ms.load_checkpoint(str(tmp_path / "a.ckpt"))["t"] == "hi"


def test_damaged_checkpoint_is_refused(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "a.ckpt"
    ms.save_checkpoint(Net(), str(path), crc_check=True)
    content = bytearray(path.read_bytes())
    content[30] ^= 1
    path.unlink()
    path.write_bytes(content)
    assert "crc check" in refused(ValueError, lambda: ms.load_checkpoint(str(path), crc_check=True))
    path.write_bytes(content[:20])
    assert "corrupted" in refused(ValueError, lambda: ms.load_checkpoint(str(path)))


def test_parameters_of_another_shape_are_not_loaded(refused: Refused) -> None:
    refused(RuntimeError, lambda: ms.load_param_into_net(nn.Dense(2, 1), {"weight": Parameter([[1.0]])}))
    prefixed = {"net.weight": Parameter([[1.0, 2.0]]), "net.bias": Parameter([3.0])}
    assert ms.load_param_into_net(cell := nn.Dense(2, 1), prefixed) == ([], ["net.weight", "net.bias"])
    assert cell.weight.tolist() == [[1.0, 2.0]]


def rows(count: int = 12) -> Any:
    values = np.arange(3.0 * count, dtype=np.float32).reshape(count, 3) / 30
    return ds.NumpySlicesDataset((values, values.sum(1, keepdims=True)), ["x", "y"], shuffle=False).batch(4)


def model(**arguments: Any) -> Model:
    layer = nn.Dense(3, 1, weight_init="ones", bias_init="zeros")
    return Model(layer, nn.MSELoss(), nn.SGD(layer.trainable_params(), 0.1), **arguments)


def test_callbacks_are_called_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []
    moments = ("train_begin", "train_epoch_begin", "train_step_end", "train_epoch_end", "train_end")
    callback = LambdaCallback(**{f"on_{name}": lambda _, name=name: seen.append(name) for name in moments})
    model().train(2, rows(), callbacks=[callback, LossMonitor(3)])
    epoch = ["train_epoch_begin", *["train_step_end"] * 3, "train_epoch_end"]
    assert seen == ["train_begin", *epoch, *epoch, "train_end"]
    assert [line.partition(",")[0] for line in capsys.readouterr().out.splitlines()] == [
        "epoch: 1 step: 3",
        "epoch: 2 step: 3",
    ]


def test_fit_evaluates_between_epochs() -> None:
    found: list[Any] = []
    callback = LambdaCallback(on_train_epoch_end=lambda context: found.append(dict(context.original_args())))
    model(metrics={"mse"}).fit(2, rows(), rows(), callbacks=callback)
    assert [sorted(facts["eval_results"]) for facts in found] == [["eval_loss", "mse"]] * 2


def test_missing_parameter_of_a_callback_is_a_key_error() -> None:
    def ask(context: Any) -> None:
        with pytest.raises(KeyError, match=r"have no 'cur_epoch_num': they have .*batch_num"):
            hasattr(context.original_args(), "cur_epoch_num")

    model().train(1, rows(), callbacks=LambdaCallback(on_train_begin=ask))


def test_model_stops_when_asked() -> None:
    steps: list[int] = []

    def stop(context: Any) -> None:
        steps.append(context.original_args().cur_step_num)
        context.request_stop()

    model().train(3, rows(), callbacks=LambdaCallback(on_train_step_end=stop))
    assert steps == [1]


def test_checkpoints_of_a_training_are_few_and_numbered(tmp_path: Path) -> None:
    for _ in range(2):
        config = CheckpointConfig(save_checkpoint_steps=2, keep_checkpoint_max=2, append_info=["epoch_num"])
        model().train(2, rows(), callbacks=ModelCheckpoint("net", str(tmp_path), config))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["net-2_1.ckpt", "net-2_3.ckpt", "net_1-2_1.ckpt", "net_1-2_3.ckpt"]
    assert int(ms.load_checkpoint(str(tmp_path / "net-2_3.ckpt"))["epoch_num"]) == 2


def test_accuracy_counts_right_classes() -> None:
    outputs = np.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]])
    assert Accuracy()(outputs, np.array([1, 0, 0])) == pytest.approx(2 / 3)
    assert Accuracy()(outputs, np.array([[0, 1], [1, 0], [0, 1]])) == 1.0


def test_train_one_step_cell_sums_without_gradients_mean(run: Run) -> None:
    def step() -> Any:
        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=False)
        layer = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
        step = nn.TrainOneStepCell(
            nn.WithLossCell(layer, lambda out, label: (out * label).sum()), nn.SGD(layer.trainable_params(), 1.0)
        )
        step(Tensor([[1.0]]), Tensor([[1.0 + get_rank()]]))
        return layer.weight.tolist()

    assert run(step, 2) == [[[-3.0]]] * 2


def test_gradients_accumulate_over_steps() -> None:
    parameter = Parameter([1.0], name="w")
    optimizer = nn.SGD([parameter], 0.5)
    held = optimizer.parameters.clone(prefix="accumulate_", init="zeros")
    for value in (1.0, 2.0):
        ops.HyperMap()(ops.partial(ops.assign_add), held, (Tensor([value]),))
    optimizer(held)
    assert (parameter.tolist(), held[0].name) == ([-0.5], "accumulate_.w")


def test_jit_leaves_functions_as_they_are() -> None:
    def doubled(x: Any) -> Any:
        return x * 2

    assert ms.jit(doubled) is doubled
    assert ms.jit(backend="ms_backend", jit_level="O1")(doubled) is doubled
    assert ms.__version__ == "2.10.0"
