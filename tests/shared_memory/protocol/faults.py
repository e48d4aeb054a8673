"""Small faults of the protocol, each an edit of a copy of ``slots.h``, and the pauses between its steps."""

from __future__ import annotations

from typing import NamedTuple

RACE, WRONG, LATE = "a data race", "a wrong value", "a wait until the deadline"
"""The ways in which the driver shows a fault."""


class Edit(NamedTuple):
    """A text of ``slots.h`` that occurs there once, and what takes its place."""

    old: str
    new: str


class Fault(NamedTuple):
    """A fault, which a switch of the compiler or an edit makes.

    Attributes:
        ways: the ways in which it may show.
        edit: the edit; None if the switch makes the fault in the driver.
    """

    ways: tuple[str, ...]
    edit: Edit | None
    switch: str = ""


_LOOK = "    if (atomic_load_explicit(&counter->sleepers, memory_order_relaxed) > 0)\n"
_STORE = "    atomic_store_explicit(&counter->value, value, memory_order_release);\n"
_WHY = "/* between this store and the load of `sleepers`; see `sleep_on` */"
FENCE = f"    atomic_thread_fence(memory_order_seq_cst); {_WHY}\n"
_COUNT = "    atomic_fetch_add_explicit(&counter->sleepers, 1, memory_order_seq_cst);\n"
_SLEEP = "    if (load(counter) == seen) syscall(SYS_futex, &counter->value, FUTEX_WAIT, seen,"
_COPY = "    if (data) memcpy(data_of(ring, slot), data, data_bytes);\n"
_POST = "    advance(counter_of(ring, ring->rank, POSTED), number + 1);\n"
_PASSED = "if (!is_before(number, load(counter_of(ring, rank, which)))) return false;"
_ROOM = "if (!is_before(number, load(counter_of(ring, rank, RELEASED)) + ring->slots)) return false;"
_ROOM_OF_ALL = "has_room(const ring_t *ring, uint32_t number) {\n    for (uint32_t rank = 0;"
_STAGE = "    atomic_store_explicit(&counter_of(ring, ring->rank, STAGE)->value, number + 1, memory_order_relaxed);\n"
_BEFORE = "return (int32_t)(one - other) < 0;"

PAUSES = (
    Edit(FENCE, f"    linger();\n{FENCE}"),
    Edit(_LOOK, f"    linger();\n{_LOOK}"),
    Edit(_COUNT, f"{_COUNT}    linger();\n"),
    Edit("syscall(SYS_futex, &counter->value, FUTEX_WAIT", "linger(), syscall(SYS_futex, &counter->value, FUTEX_WAIT"),
    Edit(_POST, f"    linger();\n{_POST}"),
)

FAULTS = {
    "a slot is read before it is posted": Fault(
        (RACE, WRONG), Edit(_PASSED, "if (is_before(load(counter_of(ring, rank, which)), number)) return false;")
    ),
    "POSTED is set before the data is written": Fault((RACE, WRONG), Edit(_COPY + _POST, _POST + _COPY)),
    "a counter is stored without release": Fault((RACE,), Edit(_STORE, _STORE.replace("release", "relaxed"))),
    "a counter is loaded without acquire": Fault(
        (RACE,),
        Edit("(&counter->value, memory_order_acquire)", "(&counter->value, memory_order_relaxed)"),
    ),
    "a slot is released before it is read": Fault((RACE, WRONG), None, "-DRELEASED_BEFORE_READ"),
    "room is found one call too early": Fault((RACE, WRONG), Edit(_ROOM, _ROOM.replace("slots)", "slots + 1)"))),
    "room depends on some ranks only": Fault(
        (RACE, WRONG), Edit(_ROOM_OF_ALL, _ROOM_OF_ALL.replace("rank = 0", "rank = ring->rank"))
    ),
    "a call is posted one number too late": Fault((LATE,), Edit(_POST, _POST.replace("number + 1", "number"))),
    "a call is posted one number too early": Fault(
        (RACE, WRONG), Edit(_POST, _POST.replace("number + 1", "number + 2"))
    ),
    "slots are used modulo another number": Fault(
        (RACE, WRONG), Edit("number % ring->slots;", "number % (ring->slots / 2 + 1);")
    ),
    "counters do not wrap around": Fault((LATE, RACE, WRONG), Edit(_BEFORE, "return one < other;")),
    "a STAGE is left behind": Fault((RACE, WRONG), Edit(_STAGE, "")),
    "no rank is woken": Fault((LATE,), Edit(_LOOK, "    if (false)\n")),
    "one rank is woken of several": Fault((LATE,), Edit("FUTEX_WAKE, INT_MAX", "FUTEX_WAKE, 1")),
    "a sleeper is not counted": Fault((LATE,), Edit(_COUNT, _COUNT.replace("1,", "0,"))),
    "a sleeper looks only before it is counted": Fault(
        (LATE,), Edit(_SLEEP, _SLEEP.replace("FUTEX_WAIT, seen", "FUTEX_WAIT, load(counter)"))
    ),
    "sleepers are looked for before the store": Fault(  # what the processor may do without the fence
        (LATE,),
        Edit(
            _STORE + FENCE + _LOOK,
            _LOOK.replace("if (", "bool wakes = (").replace("\n", ";\n")
            + "    linger();\n"
            + _STORE
            + "    if (wakes)\n",
        ),
    ),
}
