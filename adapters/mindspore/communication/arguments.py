"""Validation of the arguments of the functions on ranks and groups, in MindSpore's words."""

from __future__ import annotations

from collshim.adapting.refusing import refuse
from collshim.mindspore._c_expression import GroupOptions
from collshim.mindspore.communication.groups import Group


def require_name(function: str, group: object) -> None:
    """Refuse a group that is not a string."""
    if not isinstance(group, str):
        text = f"For '{function}', the argument 'group' must be type of string, but got 'group' type : "
        refuse(TypeError, f"{text}{type(group)}.")


def require_int(function: str, what: str, value: object) -> None:
    """Refuse a rank that is not an int, or negative."""
    if not isinstance(value, int) or value < 0:
        text = f"For '{function}', the argument '{what}' must be type of int, but got '{what}' type : "
        refuse(TypeError, f"{text}{type(value)}, {value!r}.")


def require_same(group: Group, rank_ids: object) -> None:
    """Refuse to create a group again with a different list."""
    if rank_ids != group.ranks:
        refuse(
            ValueError,
            f"The group {group.name} has been created, the rank_list is {group.ranks}, but current rank_list "
            f"for the group is {rank_ids}",
        )


def require_ranks(group: str, rank_ids: object, options: object) -> None:
    """Refuse ``rank_ids`` that are not a list of distinct ints from 0 on, and ``options`` that are no GroupOptions."""
    start = "For 'create_group', the argument "
    if not isinstance(rank_ids, list):
        text = f"{start}'rank_ids' must be type of list, but got 'rank_ids' type : {type(rank_ids)}."
        refuse(TypeError, text)
    if not rank_ids:
        text = f"{start}'rank_ids' size should be greater than 1, but got 'rank_ids' size : 0."
        refuse(ValueError, text)
    if not all(isinstance(rank, int) and rank >= 0 for rank in rank_ids):
        refuse(TypeError, f"{start}'rank_ids' must be a list of int, none negative, but got {rank_ids}.")
    if len(set(rank_ids)) != len(rank_ids):
        refuse(ValueError, f"List rank_ids in Group {group} has duplicate data!")
    if options is not None and not isinstance(options, GroupOptions):
        text = f"{start}'options' must be type of GroupOptions, but got 'options' type : {type(options)}."
        refuse(TypeError, text)
