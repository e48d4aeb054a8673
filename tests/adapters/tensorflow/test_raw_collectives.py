"""The collectives of ``tf.raw_ops``: ranks, replicas and logical devices; expected: TensorFlow 2.21 on four CPUs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import collshim
import collshim.tensorflow as tf
from collshim import world
from collshim.tensorflow.raw_ops import groups
from tests.adapters.tensorflow.conftest import Program, run_mirrored

Body = Callable[[int], Any]
Runner = Callable[[int, Body], list[Any]]

KEYS = {"group_key": 1, "instance_key": 1}
TOKENS = {**KEYS, "ordering_token": []}
REDUCTION = {**TOKENS, "merge_op": "Add", "final_op": "Id"}
INTERNAL, INVALID = tf.errors.InternalError, tf.errors.InvalidArgumentError


def on_devices(size: int, body: Body, numbers: list[int] | None = None) -> list[Any]:
    """Return the results, or errors, of a thread for each device; ``numbers`` are the devices' own."""
    results: list[Any] = [None] * size

    def work(place: int, number: int) -> None:
        with tf.device(f"CPU:{number}"):
            results[place] = caught(lambda: body(place))

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(numbers or range(size))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def on_ranks(size: int, body: Body) -> list[Any]:
    """Return the results, or errors, of ranks that are threads."""
    return collshim.launch(lambda: caught(lambda: body(collshim.current().rank)), size, timeout=200)


def on_replicas(size: int, body: Body) -> list[Any]:
    """Return the results, or errors, of replicas; their kinds may differ."""
    found: dict[int, Any] = {}

    def replica() -> None:
        rank = collshim.current().rank
        found[rank] = caught(lambda: body(rank))

    run_mirrored(size, replica)
    return [found[rank] for rank in range(size)]


def caught(fn: Callable[[], Any]) -> Any:
    """Return the result of ``fn``, with tensors as a list or number, or its error."""
    try:
        return plain(fn())
    except Exception as error:
        return error


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value.numpy().tolist() if isinstance(value, tf.Tensor) else value


@pytest.fixture(params=[on_devices, on_ranks, on_replicas])
def members(request: pytest.FixtureRequest, four_cpus: None) -> Runner:
    """Return a function that runs a body on each member."""
    found: Runner = request.param
    return found


def reduce(value: Any, size: int = 2, **more: Any) -> Any:
    return tf.raw_ops.CollectiveReduceV2(input=value, group_size=size, **{**REDUCTION, **more})


def gather(value: Any, size: int = 2, **more: Any) -> Any:
    return tf.raw_ops.CollectiveGatherV2(input=value, group_size=size, **{**TOKENS, **more})


def are_all(found: list[Any], kind: type[Exception], text: str) -> bool:
    return all(isinstance(one, kind) and text in str(one) for one in found)


@pytest.mark.parametrize(
    ("merge_op", "final_op", "expected"),
    [
        ("Add", "Id", [-9, 6, 15]),
        ("Add", "Div", [-4, 3, 7]),
        ("Mul", "Id", [18, 8, 50]),
        ("Max", "Div", [-1, 2, 5]),
        ("Min", "Id", [-6, 2, 5]),
    ],
)
def test_reduction(members: Runner, merge_op: str, final_op: str, expected: list[int]) -> None:
    ops: dict[str, Any] = {"merge_op": merge_op, "final_op": final_op}

    def body(rank: int) -> Any:
        value = tf.constant([-3, 2, 5]) * (rank + 1)
        older = tf.raw_ops.CollectiveReduce(input=value, group_size=2, **KEYS, **ops, subdiv_offsets=[0])
        return [older, reduce(value, **ops)]

    assert members(2, body) == [[expected, expected]] * 2


def test_floats_are_divided(members: Runner) -> None:
    dtypes = (tf.float16, tf.bfloat16, tf.float32, tf.float64)

    def body(rank: int) -> Any:
        values = enumerate(tf.cast([1 + rank], dtype) for dtype in dtypes)
        return [reduce(value, final_op="Div", instance_key=key) for key, value in values]

    assert members(2, body) == [[[1.5]] * 4] * 2


def test_gather(members: Runner) -> None:
    def body(rank: int) -> Any:
        value = tf.constant([[rank, 7]])
        return [tf.raw_ops.CollectiveGather(input=value, group_size=3, **KEYS, shape=[3, 2]), gather(value, 3)]

    assert members(3, body) == [[[[0, 7], [1, 7], [2, 7]]] * 2] * 3


def test_broadcast(members: Runner) -> None:
    def body(rank: int) -> Any:
        value = tf.constant([True, False])
        if rank == 1:
            older = tf.raw_ops.CollectiveBcastSend(input=value, group_size=3, **KEYS, shape=[2])
            return [older, tf.raw_ops.CollectiveBcastSendV2(input=value, group_size=3, **KEYS)]
        older = tf.raw_ops.CollectiveBcastRecv(T=tf.bool, group_size=3, **KEYS, shape=[2])
        return [older, tf.raw_ops.CollectiveBcastRecvV2(T=tf.bool, group_size=3, **KEYS, shape=tf.constant([2]))]

    assert members(3, body) == [[[True, False]] * 2] * 3


def test_all_to_all(members: Runner) -> None:
    def body(rank: int) -> Any:
        value = tf.constant([[1, 2], [3, 4]]) * (rank + 1)
        return tf.raw_ops.CollectiveAllToAllV2(input=value, group_size=2, **TOKENS)

    assert members(2, body) == [[[1, 2], [2, 4]], [[3, 4], [6, 8]]]


def test_groups_of_a_part(members: Runner) -> None:
    def body(rank: int) -> Any:
        assignment = [[0, 2], [3, 1]]
        group = tf.raw_ops.CollectiveAssignGroupV2(group_assignment=assignment, device_index=rank, base_key=10)
        return [gather(tf.constant([rank]), *group[:1], group_key=group.group_key, instance_key=key) for key in (3, 3)]

    assert members(4, body) == [[[0, 2]] * 2, [[1, 3]] * 2] * 2


def test_communicators(members: Runner) -> None:
    def body(rank: int) -> Any:
        handle = tf.raw_ops.CollectiveInitializeCommunicator(group_key=5, rank=1 - rank, group_size=2)
        arguments = {"communicator": handle, "group_assignment": []}
        total = tf.raw_ops.CollectiveReduceV3(input=tf.constant([rank]), reduction="Add", **arguments)
        rows = tf.raw_ops.CollectiveAllToAllV3(input=tf.constant([1, 2]) * (rank + 1), **arguments)
        return [total, rows, f'name="5:r000{1 - rank}"' in repr(handle)]

    assert members(2, body) == [[[1], [2, 1], True], [[1], [4, 2], True]]


def test_errors_between_members(members: Runner) -> None:
    cast = (tf.float32, tf.int32)
    cases: list[tuple[Body, type[Exception], str]] = [
        (lambda rank: reduce(tf.cast([1], cast[rank])), INTERNAL, "rank 0 of the group has float32, rank 1"),
        (lambda rank: (reduce, gather)[rank](tf.constant([1])), INTERNAL, "the kind of collective: rank 0"),
        (lambda rank: reduce(tf.constant([1]), instance_key=rank), INTERNAL, "disagree on instance_key"),
        (lambda rank: reduce(tf.ones([1, 2][rank:])), INVALID, "Shape mismatch in the collective: "),
        (lambda rank: gather(tf.ones([rank + 1])), INVALID, "have shapes [[1], [2]], must have the same"),
        (lambda rank: reduce(tf.ones([1]), merge_op=("Add", "Max")[rank]), INVALID, "merge_op and final_op"),
        (lambda rank: reduce(tf.ones([1]), final_op=("Id", "Div")[rank]), INVALID, "merge_op and final_op"),
        (lambda rank: send(), INTERNAL, "already has source 0, received second claim from 1"),
        (lambda rank: receive(), INTERNAL, "found no source for broadcast"),
        (lambda rank: tf.raw_ops.CollectiveAllToAllV2(input=[1], group_size=2, **TOKENS), INVALID, "size (1) must be"),
        (lambda rank: communicator(0), INVALID, "Duplicate ranks specified for group members. Received ranks: 0,0"),
        (lambda rank: [communicator(rank), communicator(rank)], tf.errors.AlreadyExistsError, "has a communicator"),
    ]
    for body, kind, text in cases:
        found = members(2, body)
        assert are_all(found, kind, text), found
        if members is on_devices:
            forget()


def test_calls_of_one_instance_key_are_alike(members: Runner) -> None:
    def body(rank: int) -> Any:
        total = reduce(tf.constant([2.0]))
        with pytest.raises(INTERNAL, match=r"instance 1 was reduce of float32 \[1\] before, got reduce of int32$"):
            reduce(tf.constant([2]))
        with pytest.raises(INTERNAL, match="before, got gather of float32"):
            gather(tf.constant([2.0]))
        with pytest.raises(INVALID, match=r"Shape mismatch in the collective: .* before, got \[2\]"):
            reduce(tf.ones([2]))
        return [total, reduce(tf.constant([2.0]), merge_op="Max"), reduce(tf.constant(1), group_key=2)]

    assert members(2, body) == [[[4.0], [2.0], 2]] * 2


def send() -> Any:
    return tf.raw_ops.CollectiveBcastSendV2(input=[1], group_size=2, **KEYS)


def receive() -> Any:
    return tf.raw_ops.CollectiveBcastRecvV2(T=tf.int32, group_size=2, shape=[1], **KEYS)


def communicator(rank: int) -> Any:
    return tf.raw_ops.CollectiveInitializeCommunicator(group_key=1, rank=rank, group_size=2)


def forget() -> None:
    """Forget the groups of the devices."""
    world.current().state.pop(groups._DEVICES).close()


def test_members_agree_again_after_an_error(members: Runner) -> None:
    def body(rank: int) -> Any:
        with pytest.raises(INVALID):
            gather(tf.ones([rank + 1]))
        return gather(tf.constant([rank]))

    assert members(2, body) == [[0, 1]] * 2


def test_sizes_that_differ(members: Runner) -> None:
    found = members(4, lambda rank: reduce(tf.constant([1]), rank + 1) if rank in (1, 2) else None)
    assert are_all(found[1:3], INTERNAL, "is joining a group with size ")


def test_full_group_refuses_others(members: Runner) -> None:
    def body(rank: int) -> Any:
        if rank < 2:
            return [reduce(tf.constant([1])), gather(tf.constant([rank]), 3, group_key=2)]
        gather(tf.constant([rank]), 3, group_key=2)
        with pytest.raises(INTERNAL, match="is joining a group with size 3, but that group has size 2"):
            reduce(tf.constant([1]), 3)
        return reduce(tf.constant([1]))

    found = members(3, body)
    assert found[:2] == [[[2], [0, 1, 2]]] * 2
    assert are_all(found[2:], INTERNAL, "is joining a group that is already full (group_key=1)")


def test_members_are_ordered_by_device(four_cpus: None) -> None:
    assert on_devices(3, lambda place: gather(tf.constant([place]), 3), [2, 0, 1]) == [[1, 2, 0]] * 3


def test_a_size_stays(four_cpus: None) -> None:
    assert on_devices(2, lambda place: reduce(tf.constant([1]))) == [[2]] * 2
    assert are_all(on_devices(3, lambda place: reduce(tf.constant([1]), 3)), INTERNAL, "but that group has size 2")


def test_single_members(four_cpus: None) -> None:
    with tf.device("GPU:7"):  # there is none: the first device
        assert plain(reduce(tf.constant([2, 3]), 1, final_op="Div")) == [2, 3]
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        assert plain(gather(tf.zeros([0, 3]), 1, group_key=2)) == []
    assert plain(tf.raw_ops.CollectiveBcastSendV2(input=[2], group_size=1, group_key=3, instance_key=1)) == [2]
    with pytest.raises(INVALID, match="group_size is 5, should be at most the number of ranks, or of devices: 4"):
        reduce(tf.constant([1]), 5, group_key=4)


def test_absent_members_pass_the_deadline(members: Runner) -> None:
    late = tf.errors.DeadlineExceededError
    found = members(3, lambda rank: reduce(tf.constant([1]), timeout_seconds=0.2) if rank == 0 else None)
    assert are_all(found[:1], late, "1 of the 2 members of group 1 joined within 0.2 s")


def test_absent_calls_pass_the_deadline(four_cpus: None) -> None:
    def body(place: int) -> Any:
        reduce(tf.constant([1]))
        return None if place else reduce(tf.constant([1]), instance_key=2, timeout_seconds=0.2)

    found = on_devices(2, body)
    assert are_all(found[:1], tf.errors.DeadlineExceededError, "CollectiveReduceV2: ")


def test_failed_replica_ends_the_wait_for_members() -> None:
    def body() -> Any:
        if collshim.current().rank == 1:
            raise KeyError("boom")
        return reduce(tf.constant([1])) if collshim.current().rank == 0 else None

    with pytest.raises(KeyError, match="boom"):
        tf.distribute.MirroredStrategy(["GPU:0", "GPU:1", "GPU:2"]).run(body)


def test_part_of_a_world_has_only_its_own_group() -> None:
    def body() -> Any:
        part = collshim.current().split([0, 1])
        if part is None:
            return None
        with world.use(part):
            return [caught(lambda: gather(tf.constant([part.rank]))), caught(lambda: reduce([1], 1, group_key=2))]

    found = collshim.launch(body, 3, timeout=200)
    assert [one[0] for one in found[:2]] == [[0, 1]] * 2
    assert are_all([one[1] for one in found[:2]], INTERNAL, "joining a group with size 1, but that group has size 2")


def test_no_gradient(members: Runner) -> None:
    def body(rank: int) -> Any:
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = reduce(x) * 2
        return tape.gradient(y, x)

    found = members(2, body)
    assert are_all(found, LookupError, "gradient registry has no entry for: CollectiveReduceV2")


PROCESSES = """
import collshim
import collshim.tensorflow as tf


def body():
    rank = collshim.current().rank
    keys = {"group_size": 2, "group_key": 1 + rank % 2, "instance_key": 1, "ordering_token": []}
    part = tf.raw_ops.CollectiveGatherV2(input=tf.constant([rank]), **keys)
    whole = {**keys, "group_size": 4, "group_key": 9, "merge_op": "Max", "final_op": "Id"}
    return [part.tolist(), tf.raw_ops.CollectiveReduceV2(input=tf.constant(rank), **whole).tolist()]


if __name__ == "__main__":
    print(collshim.launch(body, 4, ranks="processes"))
"""


@pytest.mark.processes
def test_processes(program: Program) -> None:
    seen = program(PROCESSES)
    assert seen.stdout == "[[[0, 2], 3], [[1, 3], 3], [[0, 2], 3], [[1, 3], 3]]\n", seen.stderr
