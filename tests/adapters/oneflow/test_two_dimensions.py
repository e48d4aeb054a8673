"""Global tensors on two dimensions of ranks: parts, layouts and gradients are those of OneFlow 0.9.0 on four ranks.

Layouts are written with a letter for each dimension of ranks: a digit is a split axis, B is broadcast, P a partial sum.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collshim
import collshim.oneflow as flow
from collshim.oneflow.framework.check_point_v2 import load, save

pytestmark = pytest.mark.ranks(4)

LETTERS = {"0": flow.sbp.split(0), "1": flow.sbp.split(1), "B": flow.sbp.broadcast, "P": flow.sbp.partial_sum}
PAIRS = ["".join(pair) for pair in itertools.product("01BP", repeat=2)]


def grid() -> Any:
    return flow.placement("cpu", ranks=[[0, 1], [2, 3]])


def line() -> Any:
    return flow.placement("cpu", ranks=[0, 1, 2, 3])


def spread(letters: str) -> tuple[Any, ...]:
    return tuple(LETTERS[letter] for letter in letters)


def letters_of(tensor: Any) -> str:
    names = {**{sbp: letter for letter, sbp in LETTERS.items()}, flow.sbp.split(2): "2"}
    return "".join(names[sbp] for sbp in tensor.sbp)


def rank() -> int:
    return flow.env.get_rank()


def numbers(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def counted(shape: tuple[int, ...], letters: str) -> Any:
    place = grid() if len(letters) == 2 else line()
    whole = flow.tensor(numbers(*shape), placement=place, sbp=spread("B" * len(letters)))
    return whole.to_global(sbp=spread(letters))


def own_numbers() -> Any:
    return flow.tensor(numbers(4, 4)) + 100 * rank()


def cut_out(values: Any, letters: str) -> Any:
    """Return this rank's piece of values, along the axes that are split."""
    for letter, index in zip(letters, divmod(rank(), 2), strict=True):
        if letter.isdigit():
            values = np.array_split(values, 2, int(letter))[index]
    return values


def test_tensor_tells_how_it_is_spread() -> None:
    made = counted((4,), "0P")
    assert (made.is_global, made.sbp, made.placement) == (True, spread("0P"), grid())
    assert made.placement.hierarchy == (2, 2)
    expected = 'tensor([0., 1., 2., 3.],\n       placement=oneflow.placement(type="cpu", ranks=[[0, 1], [2, 3]]),\n'
    expected += "       sbp=(oneflow.sbp.split(dim=0), oneflow.sbp.partial_sum),\n       dtype=oneflow.float32"
    assert repr(made) == expected + ")"
    assert repr(made.detach().requires_grad_()) == expected + ", requires_grad=True)"


@pytest.mark.parametrize("shape", [(4, 4), (5, 6)])
def test_every_layout_becomes_every_other(shape: tuple[int, int]) -> None:
    values = numbers(*shape)
    for first, second in itertools.product(PAIRS, repeat=2):
        made = counted(shape, first).to_global(sbp=spread(second))
        part = made.to_local()
        assert letters_of(made) == second
        assert made.numpy().tolist() == values.tolist()
        assert part.to_global(grid(), spread(second)).numpy().tolist() == values.tolist()
        if "P" not in second:
            assert part.numpy().tolist() == cut_out(values, second).tolist()


# The rows and columns that the ranks' parts of sums have of a matrix of 4 x 4; elsewhere they have zeros.
ALL, NONE, LEFT, RIGHT = ((0, 4), (0, 4)), ((0, 0), (0, 0)), ((0, 4), (0, 2)), ((0, 4), (2, 4))
SUMS = {
    "01 BP": [LEFT, RIGHT, LEFT, RIGHT],
    "01 PP": [((0, 2), (0, 2)), ((0, 2), (2, 4)), ((2, 4), (0, 2)), ((2, 4), (2, 4))],
    "00 PP": [((index, index + 1), (0, 4)) for index in range(4)],
    "00 0P": [ALL, NONE, ALL, NONE],
    "11 1P": [ALL, NONE, ALL, NONE],
    "BB 0P": [ALL, NONE, ALL, NONE],
    "PP PB": [ALL, ALL, NONE, NONE],
    "P1 PB": [ALL, ALL, NONE, NONE],
}


@pytest.mark.parametrize("what", SUMS)
def test_parts_of_sums_are_oneflows(what: str) -> None:
    first, second = what.split()
    part = counted((4, 4), first).to_global(sbp=spread(second)).to_local()
    rows, columns = SUMS[what][rank()]
    expected = np.zeros((4, 4), np.float32)
    expected[slice(*rows), slice(*columns)] = numbers(4, 4)[slice(*rows), slice(*columns)]
    assert part.numpy().tolist() == cut_out(expected, second).tolist()


# What the ranks' tensors, each [[0, 1, 2, 3], ...] + 100 * rank, become: the shape, and the first row's ends.
WHOLES: dict[str, tuple[tuple[int, int], float, float]] = {
    "00": ((16, 4), 0, 3),
    "01": ((8, 8), 0, 103),
    "0B": ((8, 4), 0, 3),
    "0P": ((8, 4), 100, 106),
    "10": ((8, 8), 0, 203),
    "11": ((4, 16), 0, 303),
    "1B": ((4, 8), 0, 203),
    "1P": ((4, 8), 100, 506),
    "B0": ((8, 4), 0, 3),
    "B1": ((4, 8), 0, 103),
    "BB": ((4, 4), 0, 3),
    "BP": ((4, 4), 100, 106),
    "P0": ((8, 4), 200, 206),
    "P1": ((4, 8), 200, 406),
    "PB": ((4, 4), 200, 206),
    "PP": ((4, 4), 600, 612),
}


@pytest.mark.parametrize("letters", WHOLES)
def test_local_tensors_become_a_global_one(letters: str) -> None:
    shape, first, last = WHOLES[letters]
    made = own_numbers().to_global(grid(), spread(letters))
    row = made.numpy()[0]
    assert (tuple(made.shape), row[0], row[-1]) == (shape, first, last)
    if "B" not in letters:
        assert made.to_local().numpy().tolist() == own_numbers().numpy().tolist()


@pytest.mark.parametrize("letters", PAIRS)
def test_gradient_of_local_tensors(letters: str) -> None:
    own = own_numbers().requires_grad_()
    whole = own.to_global(grid(), spread(letters))
    (whole**2).sum().backward()
    index = divmod(rank(), 2)
    counts = all(letter != "B" or not place for letter, place in zip(letters, index, strict=True))
    expected = 2 * cut_out(whole.detach().numpy(), letters) if counts else np.zeros((4, 4))
    assert own.grad.numpy().tolist() == expected.tolist()


# The gradients of (part * part * (rank + 1)).sum(), where the parts have 1 on each diagonal.
@pytest.mark.parametrize(
    ("letters", "factors"), [("01", (1, 2, 3, 4)), ("0B", (3, 3, 7, 7)), ("B1", (4, 6, 4, 6)), ("BB", (10,) * 4)]
)
def test_gradient_of_the_parts(letters: str, factors: tuple[int, ...]) -> None:
    whole = counted((4, 4), letters).detach().requires_grad_()
    part = whole.to_local()
    (part * part * (rank() + 1)).sum().backward()
    assert letters_of(whole.grad) == letters
    expected = 2 * factors[rank()] * cut_out(numbers(4, 4), letters)
    assert whole.grad.to_local().numpy().tolist() == expected.tolist()


@pytest.mark.parametrize("first", PAIRS)
def test_gradient_is_spread_as_its_tensor(first: str) -> None:
    for second, gradient in itertools.product(("BB", "1P", "00"), (None, "P0", "B1")):
        whole = counted((4, 4), first).detach().requires_grad_()
        moved = whole.to_global(sbp=spread(second), grad_sbp=gradient and spread(gradient))
        (moved * moved).sum().backward()
        assert letters_of(whole.grad) == first
        assert whole.grad.numpy().tolist() == (2 * numbers(4, 4)).tolist()


# The layouts of results for those of the argument: 00 01 0B 0P 10 11 1B 1P B0 B1 BB BP P0 P1 PB PP.
RESULTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "times": (lambda x: x * 2, "00 01 0B 0P 10 11 1B 1P B0 B1 BB BP P0 P1 PB PP"),
    "square": (lambda x: x * x, "00 01 0B 0P 10 11 1B 1P B0 B1 BB BP P0 P1 PB PP"),
    "twice": (lambda x: x + x, "00 01 0B 0P 10 11 1B 1P B0 B1 BB BP P0 P1 PB PP"),
    "sum": (lambda x: x.sum(), "PP PP PB PP PP PP PB PP BP BP BB BP PP PP PB PP"),
    "sum along 0": (lambda x: x.sum(0), "PP P0 PB PP 0P 00 0B 0P BP B0 BB BP PP P0 PB PP"),
    "mean along 1": (lambda x: x.mean(1), "00 0P 0B 0P P0 PP PB PP B0 BP BB BP P0 PP PB PP"),
    "max": (lambda x: x.max(), "BB BB BB BB BB BB BB BB BB BB BB BB BB BB BB BB"),
    "softmax": (lambda x: flow.softmax(x, -1), "00 00 0B 00 00 00 0B 00 B0 B0 BB B0 00 00 0B 00"),
    "transpose": (lambda x: x.transpose(0, 1), "11 10 1B 1P 01 00 0B 0P B1 B0 BB BP P1 P0 PB PP"),
    "reshape": (lambda x: x.reshape(4, 16), "00 00 0B 0P 00 00 0B 0P B0 B0 BB BP P0 P0 PB PP"),
    "heads": (lambda x: x.reshape(8, 4, 2), "00 01 0B 0P 10 11 1B 1P B0 B1 BB BP P0 P1 PB PP"),
    "unsqueeze": (lambda x: x.unsqueeze(0), "11 12 1B 1P 21 22 2B 2P B1 B2 BB BP P1 P2 PB PP"),
    "cat": (lambda x: flow.cat([x, x], 0), "11 11 1B 1P 11 11 1B 1P B1 B1 BB BP P1 P1 PB PP"),
    "row": (lambda x: x[0], "PP P0 PB PP 0P 00 0B 0P BP B0 BB BP PP P0 PB PP"),
    "column": (lambda x: x[:, 0], "00 0P 0B 0P P0 PP PB PP B0 BP BB BP P0 PP PB PP"),
    "chunk": (lambda x: flow.chunk(x, 2, 1)[1], "00 00 0B 0P 00 00 0B 0P B0 B0 BB BP P0 P0 PB PP"),
    "module": (
        lambda x: flow.nn.Linear(8, 8).to_global(grid(), spread("BB"))(x),
        "00 0P 0B 0P P0 PP PB PP B0 BP BB BP P0 PP PB PP",
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_result_of_one_tensor_is_spread(name: str) -> None:
    call, expected = RESULTS[name]
    results = [call(counted((8, 8), letters)) for letters in PAIRS]
    assert " ".join(map(letters_of, results)) == expected
    for result in results:  # the parts make the whole
        whole = result.to_local().to_global(grid(), result.sbp).numpy()
        np.testing.assert_allclose(whole, result.detach().numpy(), rtol=1e-5, atol=1e-5)


# Layouts of two tensors that can be computed without communication, and some that cannot.
PRODUCTS = {
    "matmul": "0B BB 0B, 0B B1 01, BB B1 B1, B1 B0 BP, 01 B0 0P, 11 00 PP, B0 BB B0, PB BB PB, BB 11 11, 0B BP 0P",
    "add": "01 01 01, 0B 0B 0B, PP PP PP, 0P 0P 0P, BP BP BP, B1 B1 B1, BB 11 11, 00 BB 00",
    "add a row": "01 B0 01, 0B BB 0B, 1B 0B 1B, PP PP PP, B1 B0 B1, 11 00 11",
    "multiply": "0P 0B 0P, BP BB BP, PB BB PB, 01 01 01",
    "look up": "B0 0B 0P, B1 0B 01, BB 0B 0B, BB BB BB, B0 BB BP",
    "loss": "0B 0B PB, BB BB BB, 00 00 PP, B1 BB BP",
    "divergence": "0B 0B PB, 00 00 PP, BB BB BB",
}


def second_of(name: str, letters: str) -> Any:
    if name == "add a row":
        return counted((8,), letters)
    if name in ("look up", "loss"):
        return counted((8,), letters).long()
    return counted((8, 8), letters)


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "matmul": flow.matmul,
    "add": lambda x, y: x + y,
    "add a row": lambda x, y: x + y,
    "multiply": lambda x, y: x * y,
    "look up": lambda x, y: flow.nn.functional.embedding(y, x),
    "loss": lambda x, y: flow.nn.functional.cross_entropy(x / 64, y),
    "divergence": lambda x, y: flow.nn.functional.kl_div(x / 64, y / 64, reduction="sum"),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_result_of_two_tensors_is_spread(name: str) -> None:
    for first, second, expected in (case.split() for case in PRODUCTS[name].split(", ")):
        result = BINARY[name](counted((8, 8), first), second_of(name, second))
        assert (first, second, letters_of(result)) == (first, second, expected)
        whole = result.to_local().to_global(grid(), result.sbp).numpy()
        np.testing.assert_allclose(whole, result.numpy(), rtol=1e-5)
        serial = BINARY[name](flow.tensor(numbers(8, 8)), flow.tensor(second_of(name, "BB").numpy()))
        assert result.numpy().tolist() == serial.numpy().tolist()


# The parts on rank 0 of [[0, 1, 2, 3], ...], which one and two dimensions of ranks make of each other.
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("01", "0", [[0, 1, 2, 3]]),
        ("PP", "B", numbers(4, 4).tolist()),
        ("01", "P", [[0, 1, 0, 0], [4, 5, 0, 0], [0] * 4, [0] * 4]),
        ("0B", "P", [[0, 1, 2, 3], [4, 5, 6, 7], [0] * 4, [0] * 4]),
        ("1", "0P", [[0, 0, 2, 0], [4, 0, 6, 0]]),
        ("1", "PB", [[0, 1, 0, 0], [4, 5, 0, 0], [8, 9, 0, 0], [12, 13, 0, 0]]),
        ("P", "01", [[0, 1], [4, 5]]),
    ],
)
def test_dimensions_of_ranks_may_change(first: str, second: str, expected: Any) -> None:
    made = counted((4, 4), first).to_global(line() if len(second) == 1 else grid(), spread(second))
    part = made.to_local()
    assert part.to_global(made.placement, made.sbp).numpy().tolist() == numbers(4, 4).tolist()
    if rank() == 0:
        assert part.numpy().tolist() == expected


def test_ranks_may_change_their_order_or_be_others() -> None:
    crossed = flow.placement("cpu", ranks=[[0, 2], [1, 3]])
    made = counted((4, 4), "PP").to_global(crossed, spread("0P"))
    expected = numbers(4, 4)[:2] if rank() in (0, 2) else numbers(4, 4)[2:]
    assert made.to_local().numpy().tolist() == (expected * (rank() < 2)).tolist()
    column = flow.placement("cpu", ranks=[[3], [1]])
    part = made.to_global(column, spread("1B")).to_local().numpy().tolist()
    assert part == {3: numbers(4, 4)[:, :2].tolist(), 1: numbers(4, 4)[:, 2:].tolist()}.get(rank(), [])
    own: Any = flow.ones(2).requires_grad_()
    (own.to_global(column, spread("0P")) * 3).sum().backward()
    assert own.grad.numpy().tolist() == ([3, 3] if rank() in (1, 3) else [0, 0])


def test_three_dimensions_of_ranks() -> None:
    cube = flow.placement("cpu", ranks=[[[0, 1]], [[2, 3]]])
    made = flow.tensor(numbers(4, 4), placement=cube, sbp=spread("0B1"))
    assert made.to_local().numpy().tolist() == cut_out(numbers(4, 4), "01").tolist()
    assert letters_of(made.sum(0)) == "PB0"
    assert letters_of(made.transpose(0, 1)) == "1B0"


def test_module_and_file_have_two_dimensions(tmp_path: Any) -> None:
    module = flow.nn.Linear(4, 4).to_global(grid(), spread("B0"))
    assert (module.weight.sbp, module.weight.to_local().shape) == (spread("B0"), (4, 4))
    save({"a": flow.ones(4)}, tmp_path / str(rank()))
    assert load(tmp_path / str(rank()), map_location=grid())["a"].sbp == spread("BB")


@pytest.mark.parametrize("sbp", [spread("0"), spread("000"), LETTERS["B"]])
def test_each_dimension_needs_an_sbp(sbp: Any) -> None:
    with pytest.raises(RuntimeError, match=r"one for each dimension of ranks \(\d vs 2\).* \(rank \d of 4\)") as caught:
        counted((4, 4), "01").to_global(sbp=sbp)
    assert isinstance(caught.value, collshim.ArgumentError)
    with pytest.raises(AssertionError, match="one for each dimension of ranks"):
        flow.ones(4, 4, placement=grid(), sbp=sbp)
    with pytest.raises(RuntimeError, match="one for each dimension of ranks"):
        counted((4, 4), "01").to_global(sbp=spread("01"), grad_sbp=sbp)


def test_wrong_use_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"the shape \(3, 4\) has no 2 parts along that axis"):
        flow.ones(3, 4, placement=grid(), sbp=spread("00"))
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same placement"):
        _ = counted((4, 4), "01") + counted((4, 4), "0")
    with pytest.raises(RuntimeError, match="random source op only support broadcast or split"):
        flow.randn(4, placement=grid(), sbp=spread("BP"))
    with pytest.raises(TypeError, match="'grad_sbp' is an invalid keyword argument"):
        own_numbers().to_global(grid(), spread("00"), grad_sbp=spread("00"))


@pytest.mark.parametrize("letters", ["PP", "0P", "BP"])
def test_sum_may_be_changed_in_place(letters: str) -> None:
    made = own_numbers().to_global(grid(), spread(letters))
    kept = made.detach().numpy() * 3
    made.mul_(3)
    assert made.to_local().to_global(grid(), spread(letters)).numpy().tolist() == kept.tolist() == made.numpy().tolist()


def test_number_may_be_on_other_ranks() -> None:
    factor: Any = flow.tensor(2.0, placement=flow.placement("cpu", [1]), sbp=flow.sbp.broadcast)
    for product in (counted((4, 4), "01") * factor, factor * counted((4, 4), "01")):
        assert (product.placement, letters_of(product)) == (grid(), "01")
        assert product.numpy().tolist() == (2 * numbers(4, 4)).tolist()
