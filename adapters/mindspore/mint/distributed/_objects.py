"""Collectives of Python objects. Conventions of MindSpore 2.10.0: ranks are global, every rank passes full lists."""

from __future__ import annotations

from typing import Any

from collshim.adapting.refusing import refuse
from collshim.mindspore.communication.comm_func.arguments import root_in
from collshim.mindspore.mint.distributed._arguments import group_and_peer, group_of, require_length, require_rank


def all_gather_object(object_list: list[Any], obj: Any, group: str | None = None) -> None:
    """Gather all ranks' objects into every rank's list.

    Raises:
        TypeError: if ``object_list`` is not a list with one place per rank; if ``group`` is not a string; if pickle
            cannot save ``obj``.
        RuntimeError: if this rank is not initialised, or the group does not exist.
    """
    members = group_of(group)
    _require_list("object_list", object_list)
    require_length("The len of argument object_list", object_list, members)
    object_list[:] = members.communicator.all_gather_object(obj).wait()


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: str | None = None
) -> None:
    """Gather all ranks' objects into rank ``dst``'s list; the other ranks' lists do not change, and may be None.

    Raises:
        TypeError: if ``object_gather_list`` is not a list with one place per rank; if ``dst`` is not an int; if
            ``group`` is not a string; if pickle cannot save ``obj``.
        RuntimeError: if this rank is not initialised, the group does not exist, or ``dst`` is not in it.
    """
    members = group_of(group)
    require_rank("gather_object", "dst", dst)
    root = root_in(members, dst)
    if object_gather_list is not None or members.communicator.rank == root:
        _require_list("object_gather_list", object_gather_list)
        require_length("The len of object_gather_list", object_gather_list or [], members)
    gathered = members.communicator.gather_object(obj, root).wait()
    if gathered is not None and object_gather_list is not None:
        object_gather_list[:] = gathered


def broadcast_object_list(object_list: list[Any], src: int = 0, group: str | None = None, device: Any = None) -> None:
    """Copy rank ``src``'s objects to every rank's list; ``device`` is ignored.

    Raises:
        TypeError: if ``object_list`` is not a list, or is empty; if ``src`` is not an int, or ``group`` not a string;
            if pickle cannot save an object.
        RuntimeError: if this rank is not initialised; if the group does not exist; if ``src`` is not in it; if the
            lists' lengths differ.
    """
    members = group_of(group)
    require_rank("broadcast_object_list", "src", src)
    _require_list("object_list", object_list)
    if not object_list:
        refuse(TypeError, "The object_list can not be empty.")
    root = root_in(members, src)
    given = object_list if members.communicator.rank == root else None
    _fill(object_list, members.communicator.broadcast_object(given, root).wait())


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None,
    src: int = 0,
    group: str | None = None,
) -> None:
    """Copy the r-th object of rank ``src``'s input list to the start of rank r's output list; ignore other inputs.

    Raises:
        TypeError: if the output is not a list, or is empty; if, on ``src``, the input is not a list of one object
            per rank; if ``src`` is not an int; if ``group`` is not a string.
        RuntimeError: if this rank is not initialised, the group does not exist, or ``src`` is not in it.
    """
    members = group_of(group)
    require_rank("scatter_object_list", "src", src)
    _require_list("scatter_object_output_list", scatter_object_output_list)
    if not scatter_object_output_list:
        refuse(TypeError, "The scatter_object_output_list can not be empty list.")
    root, given = root_in(members, src), None
    if members.communicator.rank == root:
        _require_list("scatter_object_input_list", scatter_object_input_list)
        given = scatter_object_input_list or []
        require_length("The len of scatter_object_input_list", given, members)
    scatter_object_output_list[0] = members.communicator.scatter_object(given, root).wait()


def send_object_list(object_list: list[Any], dst: int, group: str | None = None, device: Any = None) -> None:
    """Send the objects to rank ``dst``, whose next ``recv_object_list`` receives them; ``device`` is ignored.

    Raises:
        TypeError: if ``object_list`` is not a list, ``dst`` not an int, or ``group`` not a string; if pickle cannot
            save an object.
        ValueError: if ``dst`` is this rank.
        KeyError: if the group does not exist, or ``dst`` is not in it.
        RuntimeError: if this rank is not initialised.
    """
    require_rank("send_object_list", "dst", dst)
    _require_list("object_list", object_list)
    members, peer = group_and_peer(group, dst, sends=True)
    members.communicator.send_object(object_list, peer).wait()


def recv_object_list(object_list: list[Any], src: int = 0, group: str | None = None, device: Any = None) -> int:
    """Receive the objects that rank ``src`` sends next in the list; return 0. ``device`` is ignored.

    Raises:
        TypeError: if ``object_list`` is not a list, ``src`` not an int, or ``group`` not a string.
        KeyError: if the group does not exist, or ``src`` is not in it.
        RuntimeError: if this rank is not initialised, or the number of objects is not the list's length.
    """
    require_rank("recv_object_list", "src", src)
    _require_list("object_list", object_list)
    members, peer = group_and_peer(group, src)
    _fill(object_list, members.communicator.recv_object(peer).wait())
    return 0


def _require_list(what: str, value: Any) -> None:
    if not isinstance(value, list):
        refuse(TypeError, f"The {what} must be type of list, but got {type(value)}.")


def _fill(object_list: list[Any], objects: Any) -> None:
    if not isinstance(objects, list) or len(objects) != len(object_list):
        came = len(objects) if isinstance(objects, list) else type(objects)
        refuse(
            RuntimeError,
            f"The object_list must have as many places as objects received, {came}, but has {len(object_list)}",
        )
    object_list[:] = objects
