"""all_gather_object, gather_object, broadcast_object_list, scatter_object_list, send_object_list, recv_object_list.

Conventions of torch 2.13.0, with ``weights_only`` of 2.14. Objects are sent pickled, and each rank unpickles its own
copies, so use these functions only between ranks that trust each other. With ``weights_only``, the same on every rank,
objects are saved by ``torch.save`` and restored by ``torch.load(weights_only=True)``, which makes only tensors,
numbers, text and containers. Ranks may pass objects of unequal size; a whole list is one message.
"""

from __future__ import annotations

from typing import Any

import collshim.work
from collshim.adapting.refusing import refuse
from collshim.errors import ArgumentTypeError, CollshimError, MismatchError, also
from collshim.settings import get as current_options
from collshim.settings import options
from collshim.torch.distributed.membership import Group, ProcessGroup, group_of, rank_in, refuse_outside, warn_outside
from collshim.torch.distributed.point_to_point import refuse_self
from collshim.torch.distributed.posting import Call, post_and_wait
from collshim.torch.distributed.weights import load, match_installed_signature, save


@match_installed_signature
def all_gather_object(object_list: list[Any], obj: Any, group: Group = None, weights_only: bool = False) -> None:
    """Copy rank r's ``obj`` to every rank's ``object_list[r]``.

    Args:
        object_list: a list with at least one place per rank of the group.
        obj: any object that pickle can save.
        group: the group of ranks that take part; None for all ranks.
        weights_only: see the module's docstring.

    Returns:
        None. On a rank outside the group there is also a UserWarning, and the list does not change.

    Raises:
        IndexError: the list is too short; its places are filled nevertheless.
        AttributeError, TypeError, pickle.PicklingError: pickle cannot save ``obj``.
        ValueError: the default group is not initialized.
        RuntimeError: the ranks' calls disagree, or a rank is missing.
    """
    process_group = group_of(group)
    if process_group is None:
        warn_outside("all_gather_object")
        return
    given = save(obj, weights_only)
    copies = _exchange(process_group, "all_gather", lambda comm: comm.all_gather_object(given), weights_only).result()
    _fill("all_gather_object: object_list", object_list, [load(copy, weights_only) for copy in copies])


@match_installed_signature
def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Group = None,
    group_dst: int | None = None,
    weights_only: bool = False,
) -> None:
    """Copy rank r's ``obj`` to the destination's ``object_gather_list[r]``.

    Args:
        obj: any object that pickle can save.
        object_gather_list: on the destination, a list with at least one place per rank; on other ranks None, or empty.
        dst, group_dst: the destination, as a global rank or as a rank in the group; global rank 0 by default.
        group: the group of ranks that take part; None for all ranks.
        weights_only: see the module's docstring.

    Returns:
        None. On a rank outside the group there is also a UserWarning.

    Raises:
        ValueError: the destination has no list, or another rank has one; both ``dst`` and ``group_dst`` are passed; the
            default group is not initialized.
        IndexError, AttributeError, TypeError, RuntimeError: as for ``all_gather_object``.
    """
    process_group = group_of(group)
    root = rank_in(process_group, 0 if dst is None and group_dst is None else dst, group_dst)
    if process_group is None:
        warn_outside("gather_object")
        return
    is_root = root == process_group.rank()
    if is_root and not object_gather_list:
        refuse(ValueError, "Argument ``gather_list`` must be specified on destination rank.")
    if object_gather_list and not is_root:
        refuse(ValueError, "Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    given = save(obj, weights_only)
    copies = _exchange(process_group, "gather", lambda comm: comm.gather_object(given, root), weights_only).result()
    if is_root and object_gather_list is not None:
        objects = [load(copy, weights_only) for copy in copies]
        _fill("gather_object: object_gather_list", object_gather_list, objects)


@match_installed_signature
def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Group = None,
    device: Any = None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    """Copy the source's objects to every rank's ``object_list``; the source's own list keeps its objects.

    Args:
        object_list: a list of the same length on every rank; written in place.
        src, group_src: the source, as a global rank or as a rank in the group; global rank 0 by default.
        group: the group of ranks that take part; None for all ranks.
        device: accepted, but has no effect.
        weights_only: see the module's docstring.

    Returns:
        None. On a rank outside the group there is also a UserWarning.

    Raises:
        ValueError: both ``src`` and ``group_src`` are passed, or the source is outside the group; the default group is
            not initialized.
        RuntimeError: the lists' lengths differ; the ranks' calls disagree, or a rank is missing.
        AttributeError, TypeError, pickle.PicklingError: on the source, if pickle cannot save an object.
    """
    process_group = group_of(group)
    root = rank_in(process_group, 0 if src is None and group_src is None else src, group_src)
    if process_group is None:
        warn_outside("broadcast_object_list")
        return
    given = [save(one, weights_only) for one in object_list]
    work = _exchange(process_group, "broadcast", lambda comm: comm.broadcast_object(given, root), weights_only)
    if root != process_group.rank():
        _replace("broadcast_object_list", object_list, work.result(), weights_only)


@match_installed_signature
def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Group = None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    """Copy the source's r-th object to rank r's ``scatter_object_output_list[0]``.

    Args:
        scatter_object_output_list: a list with at least one place.
        scatter_object_input_list: on the source, a list with one object per rank; ignored on other ranks.
        src, group_src: the source, as a global rank or as a rank in the group; global rank 0 by default.
        group: the group of ranks that take part; None for all ranks.
        weights_only: see the module's docstring.

    Returns:
        None. On a rank outside the group there is also a UserWarning.

    Raises:
        ValueError: the output is not a list, or is empty; the source has no input; both ``src`` and ``group_src`` are
            passed; the default group is not initialized.
        RuntimeError: the input's length does not fit; the ranks' calls disagree, or a rank is missing.
        AttributeError, TypeError, pickle.PicklingError: on the source, if pickle cannot save an object.
    """
    process_group = group_of(group)
    root = rank_in(process_group, 0 if src is None and group_src is None else src, group_src)
    if process_group is None:
        warn_outside("scatter_object_list")
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        refuse(ValueError, "Expected argument scatter_object_output_list to be a list of size at least 1.")
    objects = None
    if root == process_group.rank():
        objects = scatter_object_input_list
        if objects is None:
            refuse(ValueError, "source rank must provide non-None scatter_object_input_list")
    given = [save(one, True) for one in objects] if weights_only and objects is not None else objects
    work = _exchange(process_group, "scatter", lambda comm: comm.scatter_object(given, root), weights_only)
    scatter_object_output_list[0] = load(work.result(), weights_only)


@match_installed_signature
def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Group = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
    weights_only: bool = False,
) -> None:
    """Send copies of the objects to the destination, which calls ``recv_object_list``.

    Args:
        object_list: objects that pickle can save.
        dst, group_dst: the destination, as a global rank or as a rank in the group; pass exactly one of them.
        group: the group of ranks that take part; None for all ranks.
        device, use_batch: accepted, but has no effect.
        weights_only: see the module's docstring.

    Raises:
        ValueError: both or neither of ``dst`` and ``group_dst`` are passed; the destination is outside the group, or is
            this rank; this rank is outside the group; the default group is not initialized.
        RuntimeError: the receiver's call does not match, or the receiver did not arrive.
        AttributeError, TypeError, pickle.PicklingError: pickle cannot save an object.
    """
    process_group = group_of(group)
    if process_group is None:
        refuse_outside()
    destination = rank_in(process_group, dst, group_dst)
    refuse_self(process_group, destination, "destination")
    given = [save(one, weights_only) for one in object_list]
    _exchange(process_group, "send", lambda comm: comm.send_object(given, destination), weights_only)


@match_installed_signature
def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Group = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
    weights_only: bool = False,
) -> int:
    """Receive copies of the source's objects in ``object_list``.

    Args:
        object_list: a list as long as the sender's; written in place.
        src, group_src: the source, as a global rank or as a rank in the group; any rank if neither is passed, as torch
            documents, although torch 2.13 refuses it.
        group: the group of ranks that take part; None for all ranks.
        device, use_batch: accepted, but has no effect.
        weights_only: see the module's docstring.

    Returns:
        The source's global rank.

    Raises:
        ValueError: both ``src`` and ``group_src`` are passed; the source is outside the group, or is this rank; this
            rank is outside the group; the default group is not initialized.
        RuntimeError: the lists' lengths differ; the source sent a message that does not match, or none.
    """
    process_group = group_of(group)
    if process_group is None:
        refuse_outside()
    source = None if src is None and group_src is None else rank_in(process_group, src, group_src)
    if source is not None:
        refuse_self(process_group, source, "source")
    work = _exchange(process_group, "recv", lambda comm: comm.recv_object(source), weights_only)
    _replace("recv_object_list", object_list, work.result(), weights_only)
    return process_group.communicator.ranks[work.source if work.source is not None else source or 0]


def _exchange(process_group: ProcessGroup, title: str, call: Call, weights_only: bool) -> collshim.work.Work[Any]:
    """Post a call and wait for it; an error of pickle's is raised with pickle's class too."""
    allowed = current_options().objects
    try:
        with options(objects="safe" if weights_only and allowed == "any" else allowed):
            return post_and_wait(process_group, title, call)
    except ArgumentTypeError as error:
        if not isinstance(error.__cause__, Exception):
            raise
        raise also(ArgumentTypeError, type(error.__cause__))(*error.args) from error.__cause__


def _fill(what: str, places: list[Any] | dict[int, Any], copies: list[Any]) -> None:
    """Fill a list's places, or a dict's, which torch accepts even if it is empty."""
    for rank, copy in enumerate(copies):
        if rank < len(places) or isinstance(places, dict):
            places[rank] = copy
    if not isinstance(places, dict) and len(places) < len(copies):
        text = f"list assignment index out of range: {what} has {len(places)} places, should have {len(copies)}"
        raise also(CollshimError, IndexError)(text)


def _replace(function: str, objects: list[Any], copies: Any, weights_only: bool) -> None:
    if not isinstance(copies, list) or len(copies) != len(objects):
        length = len(copies) if isinstance(copies, list) else type(copies).__qualname__
        raise MismatchError(f"{function}: the list's length is {len(objects)}, the source's is {length}")
    for place, copy in enumerate(copies):  # torch also accepts a dict
        objects[place] = load(copy, weights_only)
