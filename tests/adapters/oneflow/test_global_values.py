"""Global tensors: parts, values, layouts and gradients are those that OneFlow 0.9.0 gave on two ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collshim.oneflow as flow
from collshim.oneflow.framework.check_point_v2 import _broadcast_py_object, load, save
from collshim.oneflow.utils import global_view

pytestmark = pytest.mark.ranks(2)

S0, S1, B, P = flow.sbp.split(0), flow.sbp.split(1), flow.sbp.broadcast, flow.sbp.partial_sum


def both() -> Any:
    return flow.placement("cpu", [0, 1])


def rank() -> int:
    return flow.env.get_rank()


def counted(shape: tuple[int, ...], sbp: Any) -> Any:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return flow.tensor(values, placement=both(), sbp=sbp)


def summed(shape: tuple[int, ...]) -> Any:
    return counted(shape, B).to_global(sbp=P)


@pytest.mark.parametrize(
    ("sbp", "shape", "values"),
    [(S0, (4, 2), [[1, 1]] * 2 + [[2, 2]] * 2), (S1, (2, 4), [[1, 1, 2, 2]] * 2), (B, (2, 2), 1), (P, (2, 2), 3)],
)
def test_local_tensors_become_a_global_one(sbp: Any, shape: tuple[int, int], values: Any) -> None:
    local: Any = flow.ones(2, 2) * (rank() + 1)
    made = local.to_global(both(), sbp)
    assert (made.is_global, made.sbp, made.placement, tuple(made.shape)) == (True, (sbp,), both(), shape)
    assert made.numpy().tolist() == np.broadcast_to(values, shape).tolist()
    assert made.to_local().numpy().tolist() == np.full((2, 2), 1 if sbp == B else rank() + 1).tolist()


def test_parts_have_uneven_lengths() -> None:
    assert counted((3, 2), S0).to_local().shape == ((2, 2), (1, 2))[rank()]
    with pytest.raises(RuntimeError, match="has no 2 parts along that axis"):
        counted((1, 2), S0)


def test_whole_becomes_parts_of_a_sum() -> None:
    assert summed((2,)).to_local().numpy().tolist() == ([0, 1], [0, 0])[rank()]
    assert counted((2,), S0).to_global(sbp=P).to_local().numpy().tolist() == ([0, 0], [0, 1])[rank()]


def test_rank_outside_of_the_placement_has_no_part() -> None:
    made = flow.ones(2, placement=flow.placement("cpu", [0]), sbp=B)
    assert made.to_local().numpy().tolist() == ([1, 1], [])[rank()]
    assert made.to_global(both(), S0).to_local().numpy().tolist() == [1]


def test_module_may_be_spread_again() -> None:
    module = flow.nn.Linear(2, 4).to_global(both(), B)
    assert module.to_global(both(), S0).weight.shape == (4, 2)
    assert module.weight.to_local().shape == (2, 2)
    assert module.to_global(sbp=B).weight.to_local().shape == (4, 2)


def test_matrices_may_be_transposed_as_they_are_multiplied() -> None:
    rows, columns = counted((2, 4), B), counted((6, 4), S0)
    product = flow._C.matmul(rows, columns, transpose_b=True, alpha=2.0)
    assert product.sbp == (S1,)
    np.testing.assert_allclose(product.numpy(), 2 * rows.numpy() @ columns.numpy().T)
    batch = flow.ones(3, 4, 2)
    assert flow.matmul(rows, columns, transpose_b=True, alpha=2.0).numpy().tolist() == product.numpy().tolist()
    assert flow._C.batch_matmul(batch, flow.ones(3, 4, 5), transpose_a=True).numpy().tolist() == [[[4.0] * 5] * 2] * 3


def test_rows_are_normalized() -> None:
    rows, weight, bias = counted((4, 2), S0), counted((2,), B), flow.ones(2, placement=both(), sbp=B)
    normal = flow._C.layer_norm(rows, begin_norm_axis=1, begin_params_axis=1, epsilon=0.0)
    assert (normal.sbp, normal.numpy().tolist()) == ((S0,), [[-1, 1]] * 4)
    affine = flow._C.layer_norm_affine(rows, weight, bias, begin_norm_axis=1, begin_params_axis=1, epsilon=0.0)
    assert affine.numpy().tolist() == [[1, 2]] * 4


LAYOUTS: dict[str, tuple[Callable[[], Any], Any]] = {
    "relu": (lambda: flow.relu(counted((4, 4), S1)), S1),
    "relu of a sum": (lambda: flow.relu(summed((2, 2))), S0),
    "times a number": (lambda: summed((2, 2)) * 2, P),
    "sums added": (lambda: summed((2, 2)) + summed((2, 2)), P),
    "a sum and a number": (lambda: summed((2, 2)) + 1, S0),
    "split and whole": (lambda: counted((4, 4), S0) + counted((4, 4), B), B),
    "split and a whole row": (lambda: counted((4, 4), S0) + counted((4,), B), S0),
    "two axes": (lambda: counted((4, 4), S1) + counted((4, 4), S0), S0),
    "rows": (lambda: flow.matmul(counted((4, 4), S0), counted((4, 4), B)), S0),
    "columns": (lambda: flow.matmul(counted((4, 4), B), counted((4, 4), S1)), S1),
    "inner": (lambda: flow.matmul(counted((4, 4), S1), counted((4, 4), S0)), P),
    "sum": (lambda: counted((4, 4), S0).sum(), P),
    "sum along": (lambda: counted((4, 4), S0).sum(1), S0),
    "sum kept": (lambda: counted((4, 4), S1).sum(0, keepdim=True), S1),
    "mean": (lambda: counted((4, 4), S0).mean(), P),
    "max": (lambda: counted((4, 4), S0).max(), B),
    "argmax": (lambda: counted((4, 4), S0).argmax(1), S0),
    "softmax": (lambda: flow.softmax(counted((4, 4), S1), -1), S0),
    "transpose": (lambda: counted((4, 4), S0).transpose(0, 1), S1),
    "attribute T": (lambda: counted((4, 2), S0).T, S1),
    "attribute T of a sum": (lambda: summed((2, 4)).T, P),
    "reshape": (lambda: counted((4, 4), S0).reshape(2, 8), S0),
    "unsqueeze": (lambda: counted((4, 4), S0).unsqueeze(0), S1),
    "cat": (lambda: flow.cat([counted((4, 4), S0)] * 2, 0), S1),
    "row": (lambda: counted((4, 4), S0)[0], P),
    "column": (lambda: counted((4, 4), S0)[:, 0], S0),
    "comparison": (lambda: counted((4, 4), S0) > 3, S0),
    "chunk": (lambda: flow.chunk(counted((4, 4), S0), 2, 1)[1], S0),
    "loss": (lambda: flow.nn.MSELoss()(counted((4, 2), S0), counted((4, 2), S0) + 1), P),
    "linear": (lambda: flow.nn.Linear(2, 2).to_global(both(), B)(counted((4, 2), S0)), S0),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_result_is_spread(name: str) -> None:
    call, sbp = LAYOUTS[name]
    result = call()
    assert result.sbp == (sbp,)
    if sbp == P:  # the parts add up
        whole = result.to_local().to_global(both(), P).numpy()
        np.testing.assert_allclose(whole, result.numpy(), rtol=1e-6)


def test_what_was_moved_is_a_new_tensor_and_contiguous() -> None:
    moves: list[Callable[[Any], Any]]
    moves = [lambda x: x.transpose(0, 1), lambda x: x[0], lambda x: x.view(-1), lambda x: flow.chunk(x, 2)[0]]
    for moved in moves:
        whole = counted((4, 2), S0)
        assert moved(whole).is_contiguous()
        moved(whole).mul_(2)
        assert whole.numpy().tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    viewed = counted((2, 3, 4), S0).transpose(1, 2).view(8, 3)  # as LiBai joins the heads of attention
    assert (viewed.sbp, viewed.numpy()[1].tolist()) == ((S0,), [1, 5, 9])
    detached = counted((2,), B)
    detached.detach().add_(1)
    assert detached.numpy().tolist() == [1, 2]


def test_slices_are_gathered_by_their_numbers() -> None:
    table, numbers = counted((3, 2), S1), flow.tensor([[2, 0], [1, 1]], placement=both(), sbp=S0)
    assert flow._C.gather(counted((3, 2), B), numbers, axis=0).sbp == (S0,)
    assert flow._C.gather(table, numbers, axis=0).numpy().tolist() == [[[4, 5], [0, 1]], [[2, 3], [2, 3]]]
    assert flow._C.gather(flow.tensor([[1.0, 2.0]]), flow.tensor([1, 0, 1]), -1).numpy().tolist() == [[2, 1, 2]]


@pytest.mark.parametrize(
    ("sbp", "expected"),
    [
        (S0, ([[0, 2], [4, 6]], [[2, 4], [6, 8]])),
        (B, ([[0, 2], [4, 6]], [[0, 0], [0, 0]])),
        (P, ([[2, 6], [10, 14]], [[2, 6], [10, 14]])),
    ],
)
def test_gradient_of_the_parts(sbp: Any, expected: Any) -> None:
    own: Any = (flow.arange(4, dtype=flow.float32).reshape(2, 2) + rank()).requires_grad_()
    (own.to_global(both(), sbp) ** 2).sum().backward()
    assert own.grad.numpy().tolist() == expected[rank()]


def test_gradient_through_the_parts() -> None:
    own: Any = flow.ones(2, 2).requires_grad_()
    whole = own.to_global(both(), S0).to_global(sbp=B)
    (whole.to_local() * (rank() + 1)).sum().backward()
    assert own.grad.numpy().tolist() == [[3, 3]] * 2


def test_model_is_trained_on_global_data() -> None:
    model = flow.nn.Linear(2, 2)
    flow.nn.init.constant_(model.weight, 0.5)
    flow.nn.init.constant_(model.bias, 0.1)
    model.to_global(both(), B)
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = flow.nn.MSELoss()(model(counted((4, 2), S0)), counted((4, 2), S0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert isinstance(model.weight, flow.nn.Parameter)
    assert (model.weight.sbp, model.weight.grad.sbp) == ((B,), (B,))
    np.testing.assert_allclose(model.weight.numpy(), [[-0.4198, -0.6844], [1.1132, 1.2896]], atol=1e-4)


def test_parameter_may_be_split() -> None:
    first, second = flow.nn.Parameter(counted((2, 4), S1)), flow.nn.Parameter(counted((4, 2), S0))
    hidden = flow.matmul(counted((4, 2), B), first)
    result = flow.matmul(hidden, second)
    result.sum().backward()
    assert (hidden.sbp, result.sbp) == ((S1,), (P,))
    assert (first.grad.to_local().shape, second.grad.to_local().shape) == ((2, 2), (2, 2))


def test_wrong_arguments_are_refused() -> None:
    local: Any = flow.ones(2, 2)
    for wrong in ({"sbp": B}, {"placement": both()}):
        with pytest.raises(RuntimeError, match="needs a placement and an sbp"):
            local.to_global(**wrong)
    with pytest.raises(TypeError, match="Invalid parameter placement with type <class 'str'>"):
        local.to_global("cpu", B)
    with pytest.raises(TypeError, match="Invalid parameter sbp"):
        local.to_global(both(), "split")
    with pytest.raises(RuntimeError, match=r"one for each dimension of ranks \(2 vs 1\)"):
        local.to_global(both(), [B, B])
    with pytest.raises(RuntimeError, match="global, local"):
        _ = counted((2, 2), B) + local


def test_text_tells_placement_and_sbp() -> None:
    expected = 'tensor([0., 1.], placement=oneflow.placement(type="cpu", ranks=[0, 1]),\n       sbp=(oneflow.sbp.'
    assert repr(counted((2,), B)) == f"{expected}broadcast,), dtype=oneflow.float32)"


def test_containers_are_converted() -> None:
    given = {"a": flow.ones(2), "b": [1]}
    made = global_view.to_global(given, placement=both(), sbp=S0, warn_on_non_tensor_leaf=False)
    assert (made["a"].shape, made["b"]) == ((4,), [1])
    assert global_view.to_local([made["a"]])[0].shape == (2,)


def test_file_is_loaded_as_global_tensors(tmp_path: Any) -> None:
    path = tmp_path / str(rank())
    save({"a": flow.arange(4)}, path)
    found = load(path, map_location=both())["a"]
    assert (found.sbp, found.numpy().tolist()) == ((B,), [0, 1, 2, 3])


@pytest.mark.parametrize("sbp", [S0, S1, P])
def test_batch_norm_normalizes_each_ranks_rows(sbp: Any) -> None:
    layer: Any = flow.nn.BatchNorm1d(2)
    layer.to_global(both(), B)
    result = layer(
        flow.tensor([[1.0, 4.0], [3.0, 2.0], [9.0, 5.0], [7.0, 6.0]], placement=both(), sbp=B).to_global(sbp=sbp)
    )
    assert result.sbp == (S0,)
    assert result.numpy() == pytest.approx(np.array([[-1, 1], [1, -1], [1, -1], [-1, 1]]), abs=1e-4)
    assert layer.running_mean.to_local().tolist() == pytest.approx([[0.2, 0.3], [0.8, 0.55]][rank()])
    layer.eval()
    assert layer(counted((4, 2), S0)).sbp == (S0,)


@pytest.mark.parametrize(("reduction", "parts"), [("mean", [1.25, 2.5]), ("sum", [5, 10])])
def test_parts_of_a_loss_are_those_of_each_ranks_elements(reduction: str, parts: list[float]) -> None:
    target = flow.tensor([[1.0, 3.0], [3.0, 0.0]], placement=both(), sbp=S0)  # differences 1, 2, 1, -3 from 0, 1, 2, 3
    loss: Any = flow.nn.functional.mse_loss(counted((2, 2), S0), target, reduction=reduction)
    assert (loss.sbp, loss.to_local().item()) == ((P,), parts[rank()])
    assert loss.item() == sum(parts)


def test_state_has_the_parameters_themselves_which_are_local_or_global() -> None:
    module: Any = flow.nn.Linear(2, 2)
    state = module.state_dict()
    assert state["weight"] is module.weight
    module.to_global(both(), B)
    with pytest.raises(RuntimeError, match="mismatch for \"weight\": the checkpoint's is local, the module's global"):
        module.load_state_dict(state)
    with pytest.raises(RuntimeError, match="mismatch for \"bias\": the checkpoint's is global, the module's local"):
        flow.nn.Linear(2, 2).load_state_dict(module.state_dict())
    with pytest.raises(AssertionError, match="the tensor is global, and other is not"):
        counted((2,), B).copy_(flow.ones(2))


def test_global_module_becomes_local() -> None:
    module: Any = flow.nn.Linear(2, 4)
    module.to_global(both(), S0).to_local()
    assert isinstance(module.weight, flow.nn.Parameter)
    assert (module.weight.is_global, tuple(module.weight.shape)) == (False, (4, 2))


WRITES: dict[str, Callable[[Any], Any]] = {
    "add_": lambda x: x.add_(1),
    "sub_": lambda x: x.sub_(other=1),
    "__isub__": lambda x: x.__isub__(1),
    "clamp_": lambda x: x.clamp_(0, 1),
    "relu_": lambda x: flow.nn.functional.relu(x, inplace=True),
    "masked_fill_": lambda x: x.masked_fill_(x > 0, 0.0),
    "__setitem__": lambda x: x.__setitem__(x > 0, 0.0),
    "normal_": lambda x: flow.nn.init.normal_(x),
}


@pytest.mark.parametrize("name", WRITES)
def test_write_in_place_that_ends_a_sum_is_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match="cannot change a partial_sum in place"):
        WRITES[name](summed((2,)))
    WRITES[name](counted((2,), B))


def test_write_in_place_that_keeps_a_sum_is_possible() -> None:
    total = summed((2,))
    total.add_(total).mul_(2)
    total[1] = 7.0
    assert (total.sbp, total.numpy().tolist()) == ((P,), [0, 7])


MIXED: dict[str, Callable[[Any], Any]] = {
    "parameter": lambda x: x + flow.nn.Parameter(flow.ones(2)),
    "layer": lambda x: flow.nn.Linear(2, 2)(x),
}


@pytest.mark.parametrize("name", MIXED)
def test_local_parameter_beside_a_global_tensor_is_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match="inconsistent attributes"):
        MIXED[name](counted((2, 2), B))


def test_new_tensors_have_the_layout_of_their_model() -> None:
    assert counted((2, 2), S0).new_zeros(4).sbp == (S0,)
    assert counted((2, 2), B).new_full((2,), 3.0).sbp == (B,)


def test_tensors_are_converted_by_tensor() -> None:
    made: Any = flow.tensor(flow.ones(2), placement=both(), sbp=S0)
    assert (made.sbp, tuple(made.shape)) == ((S0,), (4,))
    part: Any = flow.tensor(counted((4,), S0))
    assert (part.is_global, part.tolist()) == (False, [[0, 1], [2, 3]][rank()])


def test_conversions_refuse_wrong_arguments() -> None:
    local, spread = flow.ones(2), counted((2,), B)
    wrong: list[tuple[type[Exception], Callable[[], Any]]] = [
        (AssertionError, lambda: flow.to_global(3, both(), B)),
        (AssertionError, lambda: flow.to_local(local)),
        (AssertionError, lambda: flow.local_to_global(spread, both(), B)),
        (AssertionError, lambda: flow.global_to_global(local, both(), B)),
        (ValueError, lambda: flow.to_global(local, both())),
        (TypeError, lambda: spread.to_global(sbp=B, copy=True)),
        (TypeError, lambda: spread.global_to_global(sbp=B, more=1)),
    ]
    for kind, call in wrong:
        with pytest.raises(kind):
            call()
    assert spread.to_local(copy=True).tolist() == flow.to_local(spread).tolist() == [0, 1]
    assert flow.local_to_global(local, both(), B).sbp == spread.global_to_global(both(), B).sbp


def test_state_of_a_global_module_is_saved_and_loaded(tmp_path_factory: Any) -> None:
    path = f"{_broadcast_py_object(str(tmp_path_factory.mktemp('state')))}/state"
    first: Any = flow.nn.Linear(2, 2)
    second: Any = flow.nn.Linear(2, 2)
    for module in (first, second):
        module.to_global(both(), B)
    save(first.state_dict(), path, global_dst_rank=0)
    flow.comm.barrier()
    second.load_state_dict(load(path, global_src_rank=0))
    assert second.weight.is_global
    assert second.weight.numpy().tolist() == first.weight.numpy().tolist()
