"""``ModelCheckpoint`` and ``CheckpointConfig`` of ``mindspore.train`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_bool, check_int
from collshim.mindspore.nn.cell import Cell
from collshim.mindspore.train.callback.callback import Callback
from collshim.mindspore.train.serialization import save_checkpoint

__all__ = ["CheckpointConfig", "ModelCheckpoint"]


class CheckpointConfig:
    """The settings of ModelCheckpoint: when it saves, and which files it keeps.

    Args:
        save_checkpoint_steps: the number of steps from file to file.
        save_checkpoint_seconds: the number of seconds from file to file, if ``save_checkpoint_steps`` is None or 0.
        keep_checkpoint_max: the maximum number of files; older ones are deleted.
        keep_checkpoint_per_n_minutes: keep one file for each period of this length, if ``keep_checkpoint_max`` is None
            or 0.
        integrated_save: has no effect; neither has ``async_save``: a file is complete when a step ends.
        saved_network: the Cell to save; None saves the network and the optimizer.
        append_info: a list of "epoch_num", "step_num", and a dict of more entries.
        enc_key: must be None; ``enc_mode`` has no effect.
        exception_save: must be False; so must ``remove_redundancy``.
        crc_check: whether files have a checksum.
        format: "ckpt" or "safetensors".
        kwargs: have no effect.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is negative, or the first four are all None or 0.
        NotImplementedError: an argument that must be None or False is not.
    """

    def __init__(
        self,
        save_checkpoint_steps: int | None = 1,
        save_checkpoint_seconds: int | None = 0,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_per_n_minutes: int | None = 0,
        integrated_save: bool = True,
        async_save: bool | str = False,
        saved_network: Cell | None = None,
        append_info: list[Any] | None = None,
        enc_key: bytes | None = None,
        enc_mode: str = "AES-GCM",
        exception_save: bool = False,
        crc_check: bool = False,
        remove_redundancy: bool = False,
        format: str = "ckpt",
        **kwargs: Any,
    ) -> None:
        counts = (save_checkpoint_steps, save_checkpoint_seconds, keep_checkpoint_max, keep_checkpoint_per_n_minutes)
        for count in counts:
            check_int(count or 0, "save_checkpoint_steps and the like", "CheckpointConfig", least=0)
        if not any(counts):
            text = "'save_checkpoint_steps', 'save_checkpoint_seconds', 'keep_checkpoint_max' and"
            text += " 'keep_checkpoint_per_n_minutes' can't be all None or 0"
            refuse(ValueError, f"For 'CheckpointConfig', the input arguments {text}")
        if not isinstance(saved_network, Cell | None):
            text = f"the type of 'saved_network' must be None or Cell, but got {type(saved_network)}"
            refuse(TypeError, f"For 'CheckpointConfig', {text}")
        for name, value in (("exception_save", exception_save), ("remove_redundancy", remove_redundancy)):
            if check_bool(value, name, "CheckpointConfig"):
                refuse(NotImplementedError, f"CheckpointConfig: {name} is True, and is not supported: should be False")
        if enc_key is not None:
            refuse(NotImplementedError, "CheckpointConfig: files are not encrypted here: enc_key should be None")
        self.save_checkpoint_steps = save_checkpoint_steps
        self.save_checkpoint_seconds = None if save_checkpoint_steps else save_checkpoint_seconds
        minutes = None if keep_checkpoint_max else keep_checkpoint_per_n_minutes
        self.keep_checkpoint_per_n_minutes = minutes
        self.keep_checkpoint_max = keep_checkpoint_max if keep_checkpoint_max or minutes else 1
        self.integrated_save = check_bool(integrated_save, "integrated_save", "CheckpointConfig")
        self.async_save, self.saved_network, self.format = async_save, saved_network, format
        self.enc_key, self.enc_mode = enc_key, enc_mode
        self.crc_check = check_bool(crc_check, "crc_check", "CheckpointConfig")
        self.append_dict = _appended(append_info)

    def get_checkpoint_policy(self) -> dict[str, Any]:
        """Return the settings that determine when files are saved and which are kept."""
        names = ("save_checkpoint_steps", "save_checkpoint_seconds", "keep_checkpoint_max")
        return {name: getattr(self, name) for name in (*names, "keep_checkpoint_per_n_minutes", "saved_network")}


def _appended(append_info: Any) -> dict[str, Any]:
    if append_info is None:
        return {}
    if not isinstance(append_info, list):
        refuse(TypeError, f"For 'CheckpointConfig', 'append_info' must be list, but got {type(append_info)}")
    found: dict[str, Any] = {}
    for entry in append_info:
        if entry in ("epoch_num", "step_num"):
            found[entry] = 0
        elif isinstance(entry, dict):
            found |= entry
        else:
            text = f"an element of 'append_info' must be 'epoch_num', 'step_num' or a dict, but got {entry!r}"
            refuse(ValueError if isinstance(entry, str) else TypeError, f"For 'CheckpointConfig', {text}")
    for name, value in found.items():
        if not isinstance(name, str) or not isinstance(value, int | float | bool | str | torch.Tensor):
            text = f"the dict 'append_info' must have strings and numbers, but got {type(name)}, {type(value)}"
            refuse(TypeError, f"For 'CheckpointConfig', {text}")
    return found


class ModelCheckpoint(Callback):
    """Save this rank's parameters in files ``prefix-epoch_step.ckpt`` during training and at its end.

    Ranks on one machine must use different directories or prefixes. The graph is not saved.

    Args:
        prefix: the files' prefix, followed by a number if files with this prefix exist; or a function that returns the
            file's name.
        directory: the folder, which is created if missing, None for the current one; or a function that returns it.
        config: a CheckpointConfig.

    Raises:
        TypeError: ``config`` is not a CheckpointConfig.
        ValueError: the prefix is not a string, or has a "/".
    """

    def __init__(self, prefix: Any = "CKP", directory: Any = None, config: CheckpointConfig | None = None) -> None:
        if not isinstance(config, CheckpointConfig | None):
            text = f"'config' should be 'CheckpointConfig', but got {type(config)}"
            refuse(TypeError, f"For 'ModelCheckpoint', the type of argument {text}")
        self._config = config or CheckpointConfig()
        self._prefix_of = prefix if callable(prefix) else None
        self._directory_of = directory if callable(directory) else None
        self._prefix = "" if callable(prefix) else _checked_prefix(prefix)
        self._directory = Path.cwd() if directory is None or callable(directory) else _folder(directory)
        if not callable(prefix) and not callable(directory):
            self._prefix = _free_prefix(self._directory, self._prefix)
        self._last_step, self._last_time, self._latest = 0, time.time(), ""
        self._append = dict(self._config.append_dict)
        self._before = {name: self._append.get(name, 0) for name in ("epoch_num", "step_num")}

    @property
    def latest_ckpt_file_name(self) -> str:
        """The path of the last file; "" before the first one."""
        return self._latest

    def step_end(self, run_context: Any) -> None:
        """Save a file, if one is due."""
        self._save(run_context.original_args(), False)

    def end(self, run_context: Any) -> None:
        """Save the last parameters, unless they are already saved."""
        self._save(run_context.original_args(), True)

    def _is_time(self, step: int, is_last: bool) -> bool:
        steps, seconds = self._config.save_checkpoint_steps, self._config.save_checkpoint_seconds
        if steps:
            return is_last or step >= self._last_step + steps
        if seconds and (is_last or time.time() - self._last_time > seconds):
            self._last_time = time.time()
            return True
        return False

    def _save(self, facts: Any, is_last: bool) -> None:
        step = facts.cur_step_num
        if facts.get("mode") == "eval" or step == self._last_step or not self._is_time(step, is_last):
            return
        directory = self._directory if self._directory_of is None else _folder(self._directory_of(facts))
        prefix = self._prefix if self._prefix_of is None else _checked_prefix(self._prefix_of(facts))
        name = prefix if self._prefix_of else f"{prefix}-{facts.cur_epoch_num}_{(step - 1) % facts.batch_num + 1}"
        self._delete_old(directory, prefix)
        for key, value in (("epoch_num", facts.cur_epoch_num), ("step_num", step)):
            if key in self._append:
                self._append[key] = self._before[key] + value
        path = str(directory / f"{name}.{self._config.format}")
        network = self._config.saved_network or facts.train_network
        settings: Any = {"crc_check": self._config.crc_check, "format": self._config.format}
        save_checkpoint(network, path, append_dict=self._append, **settings)
        self._last_step, self._latest = step, path

    def _delete_old(self, directory: Path, prefix: str) -> None:
        ending = f".{self._config.format}"
        files = [path for path in directory.iterdir() if path.suffix == ending and path.name.startswith(f"{prefix}-")]
        own = [path for path in files if not any(map(str.isalpha, path.stem.removeprefix(prefix)))]
        own.sort(key=os.path.getmtime)
        most, minutes = self._config.keep_checkpoint_max, self._config.keep_checkpoint_per_n_minutes
        if most and len(own) >= most:
            own[0].unlink()
        elif minutes:
            for path in [path for path in own if time.time() - path.stat().st_mtime < 60 * minutes][1:]:
                path.unlink()


def _checked_prefix(prefix: Any) -> str:
    if not isinstance(prefix, str) or "/" in prefix:
        text = f"it must be callable or string that does not contain '/', but got {prefix!r}"
        refuse(ValueError, f"For 'ModelCheckpoint', the argument 'prefix' for checkpoint file name is invalid, {text}")
    return prefix


def _folder(directory: Any) -> Path:
    if not isinstance(directory, str | os.PathLike) or not str(directory):
        text = f"it must be a path, but got {directory!r}"
        refuse(TypeError, f"For 'ModelCheckpoint', the argument 'directory' is invalid, {text}")
    path = Path(directory).resolve()
    path.mkdir(parents=True, exist_ok=True)
    return path


def _free_prefix(directory: Path, prefix: str) -> str:
    """Return the prefix, with a number if there are already files with it."""
    number = 0
    for path in directory.iterdir():
        if path.suffix in (".ckpt", ".safetensors") and path.name.startswith(prefix):
            between = path.name.removeprefix(prefix).partition("-")[0]
            if not between:
                number = max(number, 1)
            elif between[1:].isdigit():
                number = max(number, int(between[1:]) + 1)
    return f"{prefix}_{number}" if number else prefix
