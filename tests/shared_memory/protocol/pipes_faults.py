"""Small faults of the pipes, each an edit of a copy of ``pipes.h``, and the pauses between their steps."""

from __future__ import annotations

from tests.shared_memory.protocol.faults import LATE, RACE, WRONG, Edit, Fault

_WRITTEN = "    atomic_store_explicit(&pipe->written, written + skipped + record.total, memory_order_release);\n"
_COPY = "    if (record.data_bytes) memcpy(data_in(place), data, record.data_bytes);\n"
_ROOM = "written + skipped + record.total - taken > pipes->room"
_WAKES = "    return atomic_load_explicit(&sleeper->asleep, memory_order_relaxed) &&\n"
_FILLER = "    if (skipped) *record_at"
_REST = "    atomic_store_explicit(&sleeper_of(pipes, pipes->rank)->asleep, asleep, memory_order_relaxed);\n"
_DROPS = "taken + record->total, memory_order_release"
_SEES = "    if (atomic_load_explicit(&pipe->written, memory_order_acquire) == taken) return NULL;\n"
_ANY = "end = source < pipes->size ? source + 1 : pipes->size;"

PAUSES = (
    Edit(_WRITTEN, f"    linger();\n{_WRITTEN}    linger();\n"),
    Edit(_WAKES, f"    linger();\n{_WAKES}"),
    Edit(_REST, f"{_REST}    linger();\n"),
    Edit(_SEES, f"{_SEES}    linger();\n"),
)

FAULTS = {
    "a record is seen before it is written": Fault((RACE, WRONG), Edit(_COPY + _WRITTEN, _WRITTEN + _COPY)),
    "written bytes are stored without release": Fault((RACE,), Edit(_WRITTEN, _WRITTEN.replace("release", "relaxed"))),
    "written bytes are loaded without acquire": Fault((RACE,), Edit(_SEES, _SEES.replace("acquire", "relaxed"))),
    "taken bytes are loaded without acquire": Fault(
        (RACE,), Edit("(&pipe->taken, memory_order_acquire)", "(&pipe->taken, memory_order_relaxed)")
    ),
    "a record's memory is given back without release": Fault(
        (RACE,), Edit(_DROPS, _DROPS.replace("release", "relaxed"))
    ),
    "a filler is read after it was given back": Fault(
        (RACE, WRONG),
        Edit(
            "    taken += record->total; /* read before the store, which lets the writer write here */\n"
            "    atomic_store_explicit(&pipe->taken, taken, memory_order_release);\n"
            "    return record_at(pipes, pipe, taken);",
            "    atomic_store_explicit(&pipe->taken, taken + record->total, memory_order_release);\n"
            "    return record_at(pipes, pipe, taken + record->total);",
        ),
    ),
    "room is found where there is none": Fault((RACE, WRONG), Edit(_ROOM, _ROOM.replace("room", "room + UNIT"))),
    "what is skipped is not counted": Fault((RACE, WRONG), Edit(_ROOM, _ROOM.replace("skipped + ", ""))),
    "a record goes over the end": Fault((RACE, WRONG), Edit("left < record.total ? left : 0", "0")),
    "no filler says what is skipped": Fault((RACE, WRONG, LATE), Edit(_FILLER, "    if (false) *record_at")),
    "a pipe is written to in the wrong direction": Fault(
        (RACE, WRONG, LATE),
        Edit("uint64_t index = (uint64_t)source * pipes->size + target;", "uint64_t index = (uint64_t)target;"),
    ),
    "no rank is woken": Fault((LATE,), Edit(_WAKES, "    return false && sleeper &&\n")),
    "a sleeper is looked for before the record is there": Fault(  # what the processor may do without the fence
        (LATE,), None, "-DLOOKED_BEFORE_WRITTEN"
    ),
    "a rank sleeps without a word": Fault((LATE,), Edit(_REST, _REST.replace("asleep, memory", "false, memory"))),
    "a rank looks for some ranks only": Fault((LATE,), Edit(_ANY, _ANY.replace(": pipes->size", ": pipes->size - 1"))),
}
