"""Repeated calls on arrays that are known only by DLPack: recognized, converted once each, refused as at first."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import collshim
from collshim import ArgumentTypeError, ArgumentValueError, Communicator
from collshim.arrays import as_output, as_torch, dlpack, register_kind
from collshim.calls import validation
from collshim.work import COMPLETE, followed
from tests.engine.foreign import Foreign


class Counted(Foreign):
    """An array that counts its capsules, with a shape as CuPy's has."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        super().__init__(array)
        self.shape, self.capsules = array.shape, 0

    def __dlpack__(self, **options: Any) -> Any:
        self.capsules += 1
        return super().__dlpack__(**options)


register_kind(Counted, lambda tensor: Counted(tensor.numpy()))


def made(*shape: int, fill: float = 1.0) -> Counted:
    return Counted(np.full(shape, fill, np.float32))


def values(found: Any) -> Any:
    return [values(item) for item in found] if isinstance(found, list) else (type(found), found.array.tolist())


FORMS: dict[str, tuple[Callable[[Communicator, Any, Any], Any], Callable[[], Any], Callable[[], Any]]] = {
    "in place": (lambda c, x, out: c.all_reduce(x, out=x), lambda: made(2), lambda: None),
    "into an output": (lambda c, x, out: c.all_reduce(x, out=out), lambda: made(2), lambda: made(2)),
    "a fresh result": (lambda c, x, out: c.all_reduce(x), lambda: made(2), lambda: None),
    "a stacked result": (lambda c, x, out: c.all_gather(x), lambda: made(2), lambda: None),
    "a list of outputs": (lambda c, x, out: c.all_gather(x, out=out), lambda: made(2), lambda: [made(2), made(2)]),
    "parts end to end": (lambda c, x, out: c.reduce_scatter(x, out=out), lambda: made(4), lambda: made(2)),
    "a list of parts": (lambda c, x, out: c.all_to_all(x, out=out), lambda: [made(2)] * 2, lambda: [made(2), made(2)]),
}


def arrays_of(*found: Any) -> list[Counted]:
    return [one for item in found for one in (arrays_of(*item) if isinstance(item, list) else [item]) if one]


@pytest.mark.parametrize("form", FORMS)
def test_each_array_of_a_repeated_call_is_converted_once(form: str) -> None:
    call, make_input, make_output = FORMS[form]

    def calls() -> Any:
        comm, found = collshim.current().communicator, []
        for _ in range(3):
            x, out = make_input(), make_output()
            result = call(comm, x, out).wait()
            own = {id(one): one for one in arrays_of(x, out)}
            known = [one for one in own.values() if one.capsules]
            used = max(one.capsules for one in known)
            uses = max(arrays_of(x, out).count(one) for one in known)
            found.append((values(result), used // uses))
        return found

    for first, second, third in collshim.launch(calls, 2, timeout=200):
        assert first[0] == second[0] == third[0]
        assert second[1] == third[1] == 1


def test_send_needs_no_way_back() -> None:
    """Recognized from a tensor's messages, too."""

    def calls() -> Any:
        comm, out = collshim.current().communicator, np.zeros(2)
        for given in (torch.ones(2, dtype=torch.float64), Foreign(np.full(2, 3.0)), Foreign(np.full(2, 4.0))):
            if comm.rank:
                comm.recv(0, out=out).wait()
            else:
                comm.send(given, 1).wait()
        return out.tolist()

    assert collshim.launch(calls, 2, timeout=200)[1] == [4.0, 4.0]


def read_only() -> Foreign:
    array = np.ones(2, np.float32)
    array.flags.writeable = False
    return Foreign(array)


REFUSED: dict[str, tuple[Callable[[Communicator], Any], type[Exception], str]] = {
    "read-only": (lambda c: c.all_reduce(made(2), out=read_only()), ArgumentValueError, "read-only Foreign"),
    "backwards": (lambda c: c.all_reduce(Foreign(np.ones(2, np.float32)[::-1])), ArgumentValueError, "be negative"),
    "no way back": (lambda c: c.all_reduce(Foreign(np.ones(2, np.float32))), ArgumentTypeError, "register_kind"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_stay_the_same_once_such_calls_are_known(name: str) -> None:
    call, kind, text = REFUSED[name]

    def calls() -> list[str]:
        comm, texts = collshim.current().communicator, []
        for _ in range(2):
            with pytest.raises(kind, match=text) as refused:
                call(comm)
            texts.append(str(refused.value))
            comm.all_reduce(torch.ones(2)).wait()
            comm.all_reduce(made(2), out=made(2)).wait()
        return texts

    (texts,) = collshim.launch(calls, 1)
    assert texts[0] == texts[1]
    assert "all_reduce: " in texts[0]


def test_read_only_array_is_read() -> None:
    def calls() -> Any:
        comm = collshim.current().communicator
        out = made(2, fill=0)
        for _ in range(2):
            comm.all_reduce(read_only(), out=out).wait()
        return out.array.tolist()

    assert collshim.launch(calls, 1) == [[1.0, 1.0]]


def test_torch_before_dlpack_1_gets_capsules_without_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dlpack.TAKES_VERSIONS is ("max_version" in torch.Tensor.__dlpack__.__code__.co_varnames)
    monkeypatch.setattr(dlpack, "TAKES_VERSIONS", False)
    asked: list[Any] = []

    class Asked(Foreign):
        def __dlpack__(self, **options: Any) -> Any:
            asked.append(options.get("max_version"))
            return super().__dlpack__(**options)

    given = Asked(np.ones(2))
    assert as_torch(given).tolist() == [1.0, 1.0]
    assert asked == [None]
    assert as_output(given).data_ptr() == given.array.ctypes.data
    assert asked[1:] == [None, (1, 0)]


class Silent(Foreign):
    """An array whose capsules without a version do not say that it is read-only."""

    def __dlpack__(self, **options: Any) -> Any:
        array = self.array if options else np.zeros(2)
        return array.__dlpack__(**options)


def test_torch_before_dlpack_1_does_not_write_what_is_read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dlpack, "TAKES_VERSIONS", False)
    with pytest.raises(ArgumentValueError, match="read-only Silent"):
        as_output(Silent(read_only().array))


class Unshared(Foreign):
    """A read-only array, of which capsules without a version have a copy or, if ``copies`` is False, nothing."""

    copies = True

    def __dlpack__(self, **options: Any) -> Any:
        if options.pop("copy", False):
            if not self.copies:
                raise TypeError("got an unexpected keyword argument 'copy'")
            return self.array.copy().__dlpack__(**options)
        if not options:
            raise BufferError("it is read-only")
        return super().__dlpack__(**options)


def test_torch_before_dlpack_1_reads_a_copy_of_what_is_read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dlpack, "TAKES_VERSIONS", False)
    given = Unshared(np.ones(2))
    assert as_torch(given).tolist() == [1.0, 1.0]
    assert as_torch(given).data_ptr() != given.array.ctypes.data
    given.copies = False
    with pytest.raises(ArgumentTypeError, match="it is read-only"):
        as_torch(given)


def test_stream_follows_at_once_if_the_call_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """All calls that are over share one work, which must keep no view of a caller's."""
    seen: list[Any] = []
    monkeypatch.setattr("collshim.work.stream_follower", lambda owner: seen.append)
    owner = made(1)
    assert followed(COMPLETE, owner) is COMPLETE
    assert seen == [owner]
    assert COMPLETE.wait() is None
    assert seen == [owner]


def test_validation_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    def calls() -> Any:
        comm, x = collshim.current().communicator, made(2)
        comm.all_reduce(x, out=x).wait()
        monkeypatch.setattr(validation, "reduce_op_of", None)
        return [comm.all_reduce(x, out=x).wait() is x, comm.all_reduce(x, out=made(2)).wait() is x]

    assert collshim.launch(calls, 1) == [[True, False]]


LISTS: dict[str, Callable[[Communicator, list[torch.Tensor], list[torch.Tensor]], Any]] = {
    "all_gather": lambda c, x, y: c.all_gather(x[0], out=y),
    "gather": lambda c, x, y: c.gather(x[0], 0, out=y if c.rank == 0 else None),
    "scatter": lambda c, x, y: c.scatter(x if c.rank == 0 else None, 0, out=y[0]),
    "reduce_scatter": lambda c, x, y: c.reduce_scatter(x, out=y[0]),
    "all_to_all": lambda c, x, y: c.all_to_all(x, out=y),
}


def lists_of(kind: str, rank: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return an input and an output list, each of two tensors: as remembered, or not."""
    x, y = torch.arange(8.0).view(4, 2) + 10 * rank, torch.zeros(4, 2)
    if kind == "in place":
        return [x[0], x[1]], [x[0], x[1]]
    if kind == "overlapping":
        whole = torch.arange(3.0)
        return [whole[:2], whole[1:]], [y[0], y[1]]
    if kind == "strided":
        return [x[:2, 0], x[:2, 1]], [y[:2, 0], y[:2, 1]]
    if kind == "longer":
        return [x[:2].flatten(), x[2:].flatten()], [y[:2].flatten(), y[2:].flatten()]
    if kind == "of another dtype":
        return [x[0].double(), x[1].double()], [y[0].double(), y[1].double()]
    return [x[0].clone(), x[1].clone()], [y[0].clone(), y[1].clone()]


def list_calls(name: str) -> Any:
    comm, found = collshim.current().communicator, []
    kinds = ("apart", "apart", "in place", "apart", "overlapping", "strided", "longer", "apart", "of another dtype")
    for kind in kinds:
        x, y = lists_of(kind, comm.rank)
        given = [each.clone() for each in x]
        LISTS[name](comm, x, y).wait()
        found.append(([each.tolist() for each in given], [each.tolist() for each in y]))
    return found


def wanted_of(name: str, given: list[list[list[float]]], rank: int) -> list[list[float]] | None:
    """Return what a rank's outputs are, of which those of one result are only the first; None if it gets nothing."""
    sums = [[float(sum(column)) for column in zip(*part, strict=True)] for part in zip(*given, strict=True)]
    firsts = [own[0] for own in given]
    results: dict[str, list[list[float]] | None] = {
        "all_gather": firsts,
        "gather": None if rank else firsts,
        "scatter": [given[0][rank]],
        "reduce_scatter": [sums[rank]],
        "all_to_all": [own[rank] for own in given],
    }
    return results[name]


@pytest.mark.parametrize("transport", ["threads", pytest.param("processes", marks=pytest.mark.processes)])
@pytest.mark.parametrize("name", LISTS)
def test_lists_like_earlier_ones_have_their_own_results(name: str, transport: Any) -> None:
    ranks = collshim.launch(partial(list_calls, name), 2, ranks=transport, timeout=200)
    for turn, each in enumerate(zip(*ranks, strict=True)):
        given = [own for own, _ in each]
        for rank, (_, found) in enumerate(each):
            wanted = wanted_of(name, given, rank)
            assert wanted is None or found[: len(wanted)] == wanted, (turn, rank)


def test_lists_are_recognized_by_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    def calls() -> Any:
        comm, x, y = collshim.current().communicator, [torch.ones(2)], [torch.zeros(2)]
        for call in LISTS.values():
            for _ in range(2):
                call(comm, x, y).wait()
        monkeypatch.setattr(type(comm), "_repeat_by_look", None)
        for call in LISTS.values():
            call(comm, x, y).wait()
            call(comm, [torch.ones(2)], [torch.zeros(2)]).wait()
        return True

    assert collshim.launch(calls, 1) == [True]


def test_parts_end_to_end_are_recognized_by_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    def calls() -> Any:
        comm, x, y = collshim.current().communicator, torch.arange(4.0), torch.zeros(4)
        for _ in range(2):
            comm.reduce_scatter(x, out=y).wait()
            comm.all_to_all(x, out=y).wait()
        monkeypatch.setattr(type(comm), "_repeat_by_look", None)
        return [call(x, out=torch.zeros(4)).wait().tolist() for call in (comm.reduce_scatter, comm.all_to_all)]

    assert collshim.launch(calls, 1) == [[[0.0, 1.0, 2.0, 3.0]] * 2]


def test_memory_that_was_freed_is_not_taken_for_a_list_seen_earlier() -> None:
    def calls() -> Any:
        comm, x, y = collshim.current().communicator, [torch.ones(2)], [torch.zeros(2)]
        for _ in range(2):
            comm.all_to_all(x, out=y).wait()
        x[0].untyped_storage().resize_(0)
        with pytest.raises(ArgumentTypeError, match="memory was freed"):
            comm.all_to_all(x, out=y)
        return True

    assert collshim.launch(calls, 1) == [True]
