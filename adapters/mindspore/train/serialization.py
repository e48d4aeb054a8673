"""``mindspore.save_checkpoint`` and ``load_checkpoint`` (source: MindSpore 2.10.0), with MindSpore's file formats."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from collshim.adapting.refusing import refuse
from collshim.log import warn_once
from collshim.mindspore._checkparam import check_bool
from collshim.mindspore.common.parameter import Parameter
from collshim.mindspore.nn.cell import Cell
from collshim.mindspore.tensor import settle
from collshim.mindspore.train import _checkpoint_file

__all__ = ["load_checkpoint", "load_param_into_net", "save_checkpoint"]


def save_checkpoint(
    save_obj: Any,
    ckpt_file_name: str,
    integrated_save: bool = True,
    async_save: bool | str = False,
    append_dict: dict[str, Any] | None = None,
    enc_key: bytes | None = None,
    enc_mode: str = "AES-GCM",
    choice_func: Callable[[str], bool] | None = None,
    crc_check: bool = False,
    format: str = "ckpt",
    **kwargs: Any,
) -> None:
    """Write parameters to a file that MindSpore can also read.

    Args:
        save_obj: a Cell; a list of parameters, or of dicts with ``name`` and ``data``; or a dict of them by name.
        ckpt_file_name: the file; the format's suffix is added if it is missing.
        integrated_save: has no effect: parameters are not divided over ranks.
        async_save: has no effect: the file is complete when the call returns.
        append_dict: more entries by name: numbers, strings, tensors.
        enc_key: must be None, so ``enc_mode`` has no effect: encryption is not supported.
        choice_func: a function of a parameter's name that returns whether to save the parameter.
        crc_check: whether the file has a checksum.
        format: "ckpt" or "safetensors".
        kwargs: have no effect.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: ``format`` has any other value.
        NotImplementedError: ``enc_key`` is passed.
        IsADirectoryError: there is a folder of that name.
    """
    _require_format("save_checkpoint", format)
    _refuse_key("save_checkpoint", "enc_key", enc_key)
    if not isinstance(save_obj, Cell | list | dict):
        text = f"the parameter 'save_obj' must be nn.Cell, list or dict, but got {type(save_obj)}"
        refuse(TypeError, f"For 'save_checkpoint', {text}")
    if not isinstance(ckpt_file_name, str):
        text = f"'ckpt_file_name' must be string, but got {type(ckpt_file_name)}"
        refuse(TypeError, f"For 'save_checkpoint', {text}")
    path = Path(ckpt_file_name).resolve()
    if path.is_dir():
        refuse(IsADirectoryError, f"For 'save_checkpoint', the `ckpt_file_name`: {path} is a directory")
    if not path.name.endswith(format):
        path = path.with_name(f"{path.name}.{format}")
    chosen = [(name, value) for name, value in _named(save_obj) if choice_func is None or choice_func(name)]
    entries = chosen + _appended(append_dict)
    pack = _checkpoint_file.pack_safetensors(entries) if format == "safetensors" else None
    _replace(path, _checkpoint_file.pack(entries, crc_check) if pack is None else pack)


def _replace(path: Path, content: bytes) -> None:
    """Write a read-only file, as MindSpore does; it appears only when it is complete."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    partial.write_bytes(content)
    partial.chmod(0o400)
    partial.replace(path)


def _named(save_obj: Any) -> list[tuple[str, Any]]:
    if isinstance(save_obj, Cell):
        return [(parameter.name, _settled(parameter)) for parameter in save_obj.get_parameters()]
    if isinstance(save_obj, list):
        return [_entry(each) for each in save_obj]
    found = []
    for name, value in save_obj.items():
        value = Parameter(value) if isinstance(value, np.ndarray) else value
        if not isinstance(name, str) or not isinstance(value, torch.Tensor | str):
            text = f"the key should be str and value should be Parameter, but got {type(name)} and {type(value)}"
            refuse(TypeError, f"For save_checkpoint, when save_obj is made up by dict, {text}")
        found.append((name, _settled(value)))
    return found


def _entry(each: Any) -> tuple[str, Any]:
    if isinstance(each, Parameter):
        return each.name, _settled(each)
    if isinstance(each, dict) and isinstance(each.get("name"), str) and isinstance(each.get("data"), torch.Tensor):
        return each["name"], _settled(each["data"])
    text = f"a list has Parameters, or dicts with a string 'name' and a tensor 'data', but got {type(each)}: {each}"
    refuse(TypeError, f"For save_checkpoint, {text}")


def _settled(value: Any) -> Any:
    settle(value)
    return value


def _appended(append_dict: dict[str, Any] | None) -> list[tuple[str, Any]]:
    if append_dict is None:
        return []
    if not isinstance(append_dict, dict):
        refuse(TypeError, f"For 'save_checkpoint', the 'append_dict' must be dict, but got {type(append_dict)}")
    for name, value in append_dict.items():
        if not isinstance(name, str) or not isinstance(value, int | float | bool | str | torch.Tensor):
            text = f"key: string, value: int, float or bool, but got key: {type(name)}, value: {type(value)}"
            refuse(TypeError, f"For 'save_checkpoint', the type of dict 'append_info' must be {text}")
    return [(name, value if isinstance(value, str) else torch.as_tensor(value)) for name, value in append_dict.items()]


def load_checkpoint(
    ckpt_file_name: str,
    net: Cell | None = None,
    strict_load: bool = False,
    filter_prefix: Any = None,
    dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM",
    specify_prefix: Any = None,
    choice_func: Callable[[str], bool] | None = None,
    crc_check: bool = False,
    remove_redundancy: bool = False,
    format: str = "ckpt",
) -> dict[str, Any]:
    """Return the parameters and strings in a file, by name.

    Args:
        ckpt_file_name: the file, written by ``save_checkpoint`` or by MindSpore.
        net: a Cell into which the values are also loaded, with ``load_param_into_net``.
        strict_load: see ``load_param_into_net``.
        filter_prefix: a prefix, or a list or tuple of them, of names to skip.
        dec_key: must be None, so ``dec_mode`` has no effect: encryption is not supported.
        specify_prefix: a prefix, or a list or tuple of them: only names with one of them are loaded.
        choice_func: a function of a parameter's name that returns whether to load the parameter; ignored if there is a
            prefix.
        crc_check: whether to check the checksum.
        remove_redundancy: must be False.
        format: "ckpt" or "safetensors".

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: there is no such file, it has a different format, or no parameter is left.
        NotImplementedError: ``dec_key`` is passed, or ``remove_redundancy`` is true.
    """
    _require_format("load_checkpoint", format)
    _refuse_key("load_checkpoint", "dec_key", dec_key)
    _refuse_redundancy("load_checkpoint", remove_redundancy)
    specified, filtered = _prefixes(specify_prefix), _prefixes(filter_prefix)
    content, path = _read(ckpt_file_name, format)
    if format == "safetensors":
        values = _checkpoint_file.unpack_safetensors(content, path)
    else:
        values = _checkpoint_file.unpack(content, path, crc_check)

    def is_chosen(name: str) -> bool:
        if specified or filtered:
            return (not specified or name.startswith(specified)) and not (filtered and name.startswith(filtered))
        return choice_func is None or choice_func(name)

    chosen = {name: value for name, value in values.items() if is_chosen(name)}
    found = {name: value if isinstance(value, str) else Parameter(value, name=name) for name, value in chosen.items()}
    if not found:
        text = "please check whether 'filter_prefix' or 'specify_prefix' are set correctly"
        refuse(ValueError, f"The loaded parameter dict is empty after filter or specify, {text}")
    if net is not None:
        load_param_into_net(net, found, strict_load)
    return found


def _read(name: Any, format: str) -> tuple[bytes, str]:
    if not isinstance(name, str):
        refuse(TypeError, f"For 'load_checkpoint', the argument 'ckpt_file_name' must be string, but got {type(name)}")
    if not name.endswith(f".{format}"):
        text = f"the checkpoint file should end with '.{format}', please input the correct 'ckpt_file_name'"
        refuse(ValueError, f"For 'load_checkpoint', {text}, but got {name!r}")
    path = Path(name).resolve()
    if not path.is_file():
        refuse(ValueError, f"For 'load_checkpoint', the checkpoint file: {path} does not exist")
    content = path.read_bytes()
    if not content:
        refuse(ValueError, f"For 'load_checkpoint', the checkpoint file {path} is empty")
    return content, str(path)


def _prefixes(given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    found = (given,) if isinstance(given, str) else given
    if not isinstance(found, list | tuple) or not all(isinstance(each, str) for each in found):
        text = f"must be string, list[string] or tuple[string], but got {given!r}"
        refuse(TypeError, f"For 'load_checkpoint', the type of 'specify_prefix' or 'filter_prefix' {text}")
    if not found or "" in found:
        refuse(
            ValueError, f"For 'load_checkpoint', 'specify_prefix' or 'filter_prefix' can't be empty, but got {given!r}"
        )
    return tuple(found)


def load_param_into_net(
    net: Cell, parameter_dict: dict[str, Any], strict_load: bool = False, remove_redundancy: bool = False
) -> tuple[list[str], list[str]]:
    """Copy values into a Cell's parameters of the same names, and return two lists of names.

    The first list has the Cell's parameters that received no value, the second the names in the dict that are not a
    parameter's. If the names in the dict are the Cell's with a common prefix, the prefix is ignored. ``strict_load``
    does not ignore a prefix, and refuses different dtypes.

    Raises:
        TypeError: an argument has the wrong type.
        RuntimeError: a value has a different shape, or its dtype cannot be converted.
        NotImplementedError: ``remove_redundancy`` is true.
    """
    if not isinstance(net, Cell):
        refuse(TypeError, f"For 'load_param_into_net', the argument 'net' should be a Cell, but got {type(net)}")
    if not isinstance(parameter_dict, dict):
        text = f"the argument 'parameter_dict' should be a dict, but got {type(parameter_dict)}"
        refuse(TypeError, f"For 'load_param_into_net', {text}")
    for name, value in parameter_dict.items():
        if not isinstance(name, str) or not isinstance(value, Parameter | str | list):
            text = f"should be a 'str' and 'Parameter', but got {type(name)} and {type(value)}"
            refuse(TypeError, f"For 'parameter_dict', the element in the argument 'parameter_dict' {text}")
    check_bool(strict_load, "strict_load", "load_param_into_net")
    _refuse_redundancy("load_param_into_net", remove_redundancy)
    parameters = {parameter.name: parameter for parameter in net.get_parameters()}
    taken = {name for name in parameters if isinstance(parameter_dict.get(name), Parameter)}
    for name in taken:
        _update(parameters[name], parameter_dict[name], strict_load)
    missing = [name for name in parameters if name not in taken]
    if not strict_load:
        _load_below_prefix(parameters, parameter_dict, missing)
    if missing:
        warn_once("load_param_into_net: these parameters of the Cell are not in parameter_dict: %s", missing)
    return missing, [name for name in parameter_dict if name not in taken]


def _load_below_prefix(parameters: dict[str, Any], given: dict[str, Any], missing: list[str]) -> None:
    """Load values whose names are those of missing parameters with a prefix; remove these from ``missing``."""
    while missing:
        prefixes = [name.removesuffix(wanted) for wanted in missing for name in given if name.endswith(wanted)]
        if not prefixes:
            return
        for wanted in [name for name in missing if prefixes[0] + name in given]:
            _update(parameters[wanted], given[prefixes[0] + wanted], False)
            missing.remove(wanted)


def _update(parameter: Any, value: Any, strict: bool) -> None:
    own, given = tuple(parameter.shape), tuple(value.shape)
    if given != own and (given[: len(own)] != own or set(given[len(own) :]) != {1}):
        text = f"should have the same shape as in the argument 'parameter_dict', but got {own} and {given}"
        refuse(RuntimeError, f"For 'load_param_into_net', {parameter.name} in the argument 'net' {text}")
    kinds = [_kind(parameter.dtype), _kind(value.dtype)]
    if parameter.dtype != value.dtype and (strict or kinds[0] != kinds[1] or kinds[0] == "another"):
        text = f"should have the same type as in 'parameter_dict', but got {parameter.dtype} and {value.dtype}"
        refuse(RuntimeError, f"For 'load_param_into_net', {parameter.name} in the argument 'net' {text}")
    parameter.set_data(value.reshape(own))


def _kind(dtype: torch.dtype) -> str:
    if dtype.is_floating_point:
        return "float"
    return "another" if dtype.is_complex or dtype is torch.bool else "int"


def _require_format(of: str, format: str) -> None:
    if format not in ("ckpt", "safetensors"):
        refuse(ValueError, f"For '{of}', the format must be 'safetensors' or 'ckpt', but got {format}.")


def _refuse_key(of: str, name: str, key: Any) -> None:
    if key is not None:
        refuse(NotImplementedError, f"{of}: files are not encrypted here: {name} should be None, but got {type(key)}")


def _refuse_redundancy(of: str, remove_redundancy: bool) -> None:
    if check_bool(remove_redundancy, "remove_redundancy", of):
        text = "parameters are not divided over ranks here: should be False"
        refuse(NotImplementedError, f"{of}: remove_redundancy is True, {text}")
