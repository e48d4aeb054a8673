"""Reads which rank this process is from its launcher's environment.

| launcher | rank, size | address |
| --- | --- | --- |
| torchrun, OneFlow's launcher, ``collshim run`` | RANK, WORLD_SIZE | MASTER_ADDR, MASTER_PORT |
| msrun | RANK_ID (or MS_NODE_ID), RANK_SIZE (or MS_WORKER_NUM) | MS_SCHED_HOST, MS_SCHED_PORT |
| a TensorFlow cluster | the task's index, the number of workers in TF_CONFIG | the first worker of TF_CONFIG |
| Open MPI's mpirun | OMPI_COMM_WORLD_RANK, ..._SIZE | MASTER_ADDR, MASTER_PORT, else this machine if all are here |
| MPICH's mpiexec | PMI_RANK, PMI_SIZE | as for mpirun |
| Flux | FLUX_TASK_RANK, FLUX_JOB_SIZE | as for mpirun |
| LSF's jsrun | JSM_NAMESPACE_RANK, JSM_NAMESPACE_SIZE | as for mpirun |
| Slurm's srun | SLURM_PROCID, SLURM_NTASKS | as for mpirun, else the first node of SLURM_STEP_NODELIST |

PMIX_RANK and PALS_RANKID give only the rank: without a size from another launcher they are an error. If Slurm is given
no port, it is derived from SLURM_JOB_ID. If no launcher sets anything, the world is a single rank. Two that contradict
each other are an error; their ports may differ, since each framework's service has its own. In torchrun's ranks the
variables from mpirun on are ignored: they started its agents, one on each machine.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from ipaddress import ip_address
from typing import Any, NamedTuple

from collshim.errors import WorldError

Environment = Mapping[str, str]

AGENT = "TORCHELASTIC_USE_AGENT_STORE"
"""The variable that is "True" if the launcher has a store, so that rank 0 need not start one."""

RECORD = "COLLSHIM_LAUNCHED"
"""The variable in which ``collshim run`` keeps the values that it has set, as JSON; a program may change them."""

_ERRORS = "TORCHELASTIC_ERROR_FILE"
"""The variable by which a rank of ``collshim run`` differs from a rank of a launcher that this rank has started."""

_DERIVED_PORT = 29400
"""The port on which rank 0 listens if mpirun or srun started all ranks on this machine and no port is set."""

_TORCHRUN = {
    "rank": "RANK",
    "size": "WORLD_SIZE",
    "local_rank": "LOCAL_RANK",
    "local_size": "LOCAL_WORLD_SIZE",
    "address": "MASTER_ADDR",
    "port": "MASTER_PORT",
}
_MSRUN = (
    {"rank": "RANK_ID", "size": "RANK_SIZE", "address": "MS_SCHED_HOST", "port": "MS_SCHED_PORT"},
    {"rank": "MS_NODE_ID", "size": "MS_WORKER_NUM"},
)
_LOCAL = frozenset(("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
_OF_LAUNCHERS = (
    *(frozenset(names.values()) - _LOCAL for names in (_TORCHRUN, *_MSRUN)),
    frozenset(("TF_CONFIG",)),
)
"""The variables of each launcher that ``collshim run`` imitates, by which it identifies ranks."""

_MPI = (
    {
        "rank": "OMPI_COMM_WORLD_RANK",
        "size": "OMPI_COMM_WORLD_SIZE",
        "local_rank": "OMPI_COMM_WORLD_LOCAL_RANK",
        "local_size": "OMPI_COMM_WORLD_LOCAL_SIZE",
    },
    {"rank": "PMI_RANK", "size": "PMI_SIZE", "local_rank": "MPI_LOCALRANKID", "local_size": "MPI_LOCALNRANKS"},
    {"rank": "FLUX_TASK_RANK", "size": "FLUX_JOB_SIZE", "local_rank": "FLUX_TASK_LOCAL_ID"},
    {
        "rank": "JSM_NAMESPACE_RANK",
        "size": "JSM_NAMESPACE_SIZE",
        "local_rank": "JSM_NAMESPACE_LOCAL_RANK",
        "local_size": "JSM_NAMESPACE_LOCAL_SIZE",
    },
    {"rank": "PMIX_RANK"},
    {"rank": "PALS_RANKID", "local_rank": "PALS_LOCAL_RANKID"},
)
_SLURM = {"rank": "SLURM_PROCID", "size": "SLURM_NTASKS", "local_rank": "SLURM_LOCALID"}
_HINTS = {"local_rank": "DEVICE_ID", "address": "SLURM_LAUNCH_NODE_IPADDR"}
"""Variables that may differ from those of the launchers, and are used if the launchers set none."""

_NODES = ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
_FIRST_NODE = re.compile(r"([^,\[]+)(?:\[(\d+)[^\]]*\]([^,]*))?")
"""Matches a list such as ``node[001-004,7]-ib,gpu2``: the text before the numbers, the first one, the text after."""

_SLURM_PORTS = range(15000, 25000)
"""The port is chosen by the job's number, so two jobs on a node usually use different ports."""

_TEXTS = ("address",)
_LAST_PORT = 2**16 - 1


class LaunchedRank(NamedTuple):
    """A rank's position among the processes of its world.

    ``agent_store`` says that the launcher serves the store at that port, as torch's elastic agent does.
    """

    rank: int
    size: int
    address: str
    port: int
    local_rank: int
    local_size: int
    agent_store: bool = False


class LauncherValue(NamedTuple):
    """A field's value in ``LaunchedRank`` according to one source, usually a launcher."""

    field: str
    value: Any
    by: str


Choice = LauncherValue | None
"""The value chosen for a field; None if no source has one."""


def read(
    rank: int | None,
    size: int | None,
    address: str | None,
    port: int | None,
    *,
    needs_address: bool,
    overrides: bool = False,
    environment: Environment = os.environ,
) -> LaunchedRank:
    """Return the arguments, completed from the environment; a single rank if neither says otherwise.

    With ``overrides`` the arguments, or else the first launcher's values, take precedence over the others.

    Raises:
        WorldError: an incomplete environment, a value that is not a number, a rank outside the world, or two sources
            that contradict each other, both shown.
        SystemExit: this process is not a rank: msrun also runs the script as its scheduler, whose process would end in
            MindSpore's ``init`` too.
    """
    if environment.get("MS_ROLE") == "MS_SCHED":
        raise SystemExit(0)
    for what, number in (("rank", rank), ("size", size), ("port", port)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            raise WorldError(f"the world's {what} is {number!r}, should be an int")
    environment = _as_changed(environment)
    arguments = {"rank": rank, "size": size, "address": address, "port": port}
    values = [LauncherValue(field, value, "the arguments") for field, value in arguments.items() if value is not None]
    values += _launchers(environment)
    choose = _first if overrides else _agree
    launched = _launched(values, choose, environment)
    if not needs_address or launched.size == 1:
        return launched
    host = (_first if address is not None else choose)("address", values)
    is_one_machine = _value(choose("local_size", values)) == launched.size
    return _with_address(launched, host, _first("port", values), is_one_machine, environment)


def _launched(values: Sequence[LauncherValue], choose: Callable[..., Choice], environment: Environment) -> LaunchedRank:
    """Return this rank; the address of rank 0 is not validated here."""
    rank, size = _value(choose("rank", values)), _value(choose("size", values))
    if rank is None and size is None:
        return LaunchedRank(0, 1, "", 0, 0, 1)
    if rank is None or size is None:
        raise WorldError(_incomplete(environment, "rank" if rank is None else "size"))
    if not 0 <= rank < size:
        raise WorldError(f"rank is {rank}, should be from 0 to {size - 1} in a world of {size}")
    local_rank = _value(choose("local_rank", values) or _first("local_rank", _named(environment, _HINTS)), rank)
    local_size = _value(choose("local_size", values), size)
    host, port = _value(_first("address", values), ""), _value(_first("port", values), 0)
    return LaunchedRank(rank, size, host, port, local_rank, local_size, has_launchers_store(environment, host, port))


def has_launchers_store(environment: Environment, host: str, port: int | str) -> bool:
    """Return whether the launcher's store listens at this address.

    It does not if a script that ``collshim run`` started starts ranks of its own, and chooses an address for them.
    """
    if environment.get(AGENT) != "True":
        return False
    were = _record(environment)
    if were is None or were.get(_ERRORS) != environment.get(_ERRORS):
        return True
    return were["MASTER_PORT"] == str(port) and _same(were["MASTER_ADDR"], host)


def record(environment: Environment) -> dict[str, str]:
    """Return ``RECORD`` for a rank with the variables that ``collshim run`` has set."""
    names = {_ERRORS}.union(*_OF_LAUNCHERS)
    return {RECORD: json.dumps({name: environment[name] for name in sorted(names) if name in environment})}


def _record(environment: Environment) -> dict[str, str] | None:
    text = environment.get(RECORD)
    found: dict[str, str] | None = None if text is None else json.loads(text)
    return found


def _as_changed(environment: Environment) -> Environment:
    """Return the environment without the values of ``collshim run``, if the program has set one launcher's variables.

    For example, a script starts TensorFlow's workers with a TF_CONFIG for each: their RANK is still the script's own.
    """
    were = _record(environment) or {}
    changed = {name for name, value in were.items() if environment.get(name, value) != value}
    kept = [names for names in _OF_LAUNCHERS if changed & names]
    if not kept:
        return environment
    dropped = frozenset[str]().union(*_OF_LAUNCHERS, _LOCAL) - frozenset[str]().union(*kept)
    return {name: value for name, value in environment.items() if name not in dropped}


def _with_address(
    launched: LaunchedRank, host: Choice, port: Choice, is_one_machine: bool, environment: Environment
) -> LaunchedRank:
    """Return ``launched`` with the address of rank 0."""
    if host is None and is_one_machine:
        host, port = LauncherValue("", "127.0.0.1", ""), port or LauncherValue("", _DERIVED_PORT, "")
    host = host or _first("address", [*_slurms(environment), *_named(environment, _HINTS)])
    port = port or _first("port", _slurms(environment))
    if host is None or port is None:
        missing, them = "MASTER_ADDR" if host is None else "MASTER_PORT", f"(rank {launched.rank} of {launched.size})"
        raise WorldError(f"{missing} is not set, should say where rank 0 listens {them}")
    if not host.value.strip():
        raise WorldError(f"the world's address is {host.value!r} by {host.by}, should be a host's name or number")
    if not 0 < port.value <= _LAST_PORT:
        raise WorldError(f"the world's port is {port.value} by {port.by}, should be from 1 to {_LAST_PORT}")
    return launched._replace(address=host.value, port=port.value)


def forget_others(environment: MutableMapping[str, str]) -> None:
    """Remove the variables of all launchers but torchrun's, which the code that starts ranks sets again."""
    named = [name for names in (*_MSRUN, *_MPI, _SLURM, _HINTS) for name in names.values()]
    for name in (*named, "TF_CONFIG", "MS_ROLE"):
        environment.pop(name, None)


def forget(environment: MutableMapping[str, str]) -> None:
    """Remove the variables of all launchers, torchrun's too, for ranks that are configured in another way."""
    forget_others(environment)
    for name in (*_TORCHRUN.values(), "TORCHELASTIC_RUN_ID", AGENT, RECORD):
        environment.pop(name, None)


def _value(choice: Choice, default: Any = None) -> Any:
    return default if choice is None else choice.value


def _first(field: str, values: Iterable[LauncherValue]) -> Choice:
    return next((value for value in values if value.field == field), None)


def _agree(field: str, values: Sequence[LauncherValue]) -> Choice:
    """Return the value that all sources of the field share; raise an error if they differ."""
    named = [value for value in values if value.field == field]
    if any(not _same(one.value, other.value) for one in named for other in named):
        shown = ", ".join(f"{one.value} by {one.by}" for one in named)
        raise WorldError(f"the world's {field.replace('_', ' ')} is {shown}; should be the same, or unset one of them")
    return named[0] if named else None


def _same(one: Any, other: Any) -> bool:
    """Return whether two numbers are equal, or whether two addresses may be of the same host."""
    if not (isinstance(one, str) and isinstance(other, str)):
        return bool(one == other)
    first, second = _normal(one), _normal(other)
    if _family(first) != _family(second):  # a name and an address, or two kinds of addresses
        return bool(first) == bool(second)
    shorter, longer = sorted((first, second), key=len)
    return first == second or (not _family(first) and longer.startswith(f"{shorter}."))


def _normal(host: str) -> str:
    text = host.strip().strip("[]").rstrip(".").lower()
    return "127.0.0.1" if text in ("localhost", "::1") else text


def _family(host: str) -> int:
    """Return 4 or 6 for a numeric address, 0 for a name."""
    try:
        return ip_address(host).version
    except ValueError:
        return 0


def _incomplete(environment: Environment, lacking: str) -> str:
    others = [name for names in _MPI for name in names.values()]
    known = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "RANK_ID", "RANK_SIZE", "TF_CONFIG", *others)
    given = ", ".join(f"{name}={environment[name]}" for name in known if name in environment) or "none of the usual"
    return f"the world's {lacking} is not known, should be passed or set by the launcher; the variables are: {given}"


def _launchers(environment: Environment) -> Iterator[LauncherValue]:
    """Yield all launchers' values; Slurm's only in a step of srun, since batch scripts have SLURM_PROCID too."""
    for names in (_TORCHRUN, *_MSRUN):
        yield from _named(environment, names)
    yield from _tensorflow(environment)
    if "TORCHELASTIC_RUN_ID" in environment:
        return
    for names in _MPI:
        yield from _named(environment, names)
    if "SLURM_STEP_ID" in environment:
        yield from _named(environment, _SLURM)
        if environment.get("SLURM_NNODES") == "1" and "SLURM_NTASKS" in environment:
            yield LauncherValue("local_size", _number(environment, "SLURM_NTASKS"), "SLURM_NTASKS on one node")


def _slurms(environment: Environment) -> Iterator[LauncherValue]:
    """Yield an address for rank 0 of a step on several nodes: all its tasks derive the same one."""
    name = next((name for name in _NODES if name in environment), None)
    if "SLURM_STEP_ID" not in environment or name is None or "SLURM_JOB_ID" not in environment:
        return
    found = _FIRST_NODE.match(environment[name])
    if found is not None:
        yield LauncherValue("address", "".join(part or "" for part in found.groups()), name)
    index = _number(environment, "SLURM_JOB_ID") % len(_SLURM_PORTS)
    yield LauncherValue("port", _SLURM_PORTS[index], "SLURM_JOB_ID")


def _named(environment: Environment, names: Mapping[str, str]) -> Iterator[LauncherValue]:
    for field, name in names.items():
        if name in environment and not (name == "MS_NODE_ID" and _is_a_label(environment)):
            yield LauncherValue(field, environment[name] if field in _TEXTS else _number(environment, name), name)


def _is_a_label(environment: Environment) -> bool:
    """Return whether MS_NODE_ID is a label: MindSpore allows any text there if RANK_ID gives the rank."""
    return "RANK_ID" in environment and not environment["MS_NODE_ID"].isdecimal()


def _number(environment: Environment, name: str) -> int:
    try:
        return int(environment[name])
    except ValueError as error:
        raise WorldError(f"{name} is {environment[name]!r}, should be a number") from error


def _tensorflow(environment: Environment) -> Iterator[LauncherValue]:
    text = environment.get("TF_CONFIG")
    if text is None:
        return
    try:
        config = json.loads(text)
        cluster, task = config["cluster"], config["task"]
        chiefs, kind = cluster.get("chief", []), task["type"]
        workers = [*chiefs, *cluster.get("worker", [])]
        rank = int(task["index"]) + (0 if kind == "chief" else len(chiefs))
        host, _, port = workers[0].rpartition(":")
        number = int(port)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise WorldError(f"TF_CONFIG is {text!r}, should be JSON with cluster and task: {error!r}") from error
    if kind not in ("chief", "worker"):
        raise WorldError(
            f"the task in TF_CONFIG is {kind!r}, should be 'chief' or 'worker': others are not ranks ({text})"
        )
    values = {"rank": rank, "size": len(workers), "address": host, "port": number}
    yield from (LauncherValue(field, value, "TF_CONFIG") for field, value in values.items())
