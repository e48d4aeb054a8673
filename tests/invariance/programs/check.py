"""Runs the programs on gloo processes and compares them with one rank: `python check.py [NAMES]`."""

from __future__ import annotations

import importlib
import os
import re
import socket
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))  # also in the processes, which import this module anew

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.distributed.fsdp import FullyShardedDataParallel  # noqa: E402
from torch.distributed.tensor import DTensor  # noqa: E402

Values = dict[str, Tensor]
WRAPPERS = re.compile(r"(^|\.)(module|_fsdp_wrapped_module|_orig_mod)(?=\.)")


def whole(value: Tensor) -> Tensor:
    """Copy a value, gathered from all ranks if it is a DTensor."""
    return (value.full_tensor() if isinstance(value, DTensor) else value).detach().clone()


def read(model: Any, what: str) -> Values:
    """Read the gradients (or the parameters) of a model, each under its name without wrappers."""
    if isinstance(model, FullyShardedDataParallel):
        with FullyShardedDataParallel.summon_full_params(model, with_grads=True):
            return read(list(model.named_parameters()), what)
    if isinstance(model, dict):
        model = [
            (f"{key}.{name}" if name else key, parameter)
            for key, value in model.items()
            for name, parameter in (value.named_parameters() if isinstance(value, nn.Module) else [("", value)])
        ]
    elif isinstance(model, nn.Module):
        model = list(model.named_parameters())
    values = ((name, parameter.grad if what == "gradients" else parameter) for name, parameter in model)
    return {WRAPPERS.sub("", name).lstrip("."): whole(value) for name, value in values if value is not None}


def work(rank: int, world: int, port: int, names: Sequence[str], folder: str) -> None:
    """Run the programs as one rank of a world, and save what they leave behind."""
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    nn.Dropout.forward = nn.Identity.forward  # type: ignore[assignment, method-assign] # masks can't agree between worlds
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(world))
    dist.init_process_group("gloo")
    for name in names:
        program = importlib.import_module(name)
        if world not in getattr(program, "RANKS", (1, 2, 4)):
            continue
        torch.manual_seed(0)
        try:
            model = program.step(program.batch())[1]
            result: Any = read(model, getattr(program, "COMPARE", "gradients"))
        except Exception:
            result = traceback.format_exc()
        torch.save(result, f"{folder}/{name}.{world}.{rank}")
        dist.barrier()
    dist.destroy_process_group()


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def place(value: Tensor, reference: Tensor, rank: int) -> Tensor:
    """Cut out of the one-rank value what a rank's shard should equal."""
    for dim, (part, full) in enumerate(zip(value.shape, reference.shape, strict=True)):
        if part != full:
            shards = full // part
            return reference.chunk(shards, dim)[rank % shards]
    return reference


def differ(name: str, world: int, folder: str) -> set[str]:
    """Name the parameters that differ from the one-rank run on some rank, or are on no rank."""
    reference = torch.load(f"{folder}/{name}.1.0")
    if isinstance(reference, str):
        raise RuntimeError(reference)
    wrong, seen = set(), set()
    for rank in range(world):
        values = torch.load(f"{folder}/{name}.{world}.{rank}")
        if isinstance(values, str):
            raise RuntimeError(values)
        seen |= set(values)
        for key, value in values.items():
            expected = place(value, reference[key], rank)
            scale = reference[key].abs().max()
            if not (value - expected).abs().max() <= 1e-5 * scale + 1e-7:  # NaN differs too
                wrong.add(key)
    return wrong | (set(reference) - seen)


def judge(name: str, folder: str) -> bool:
    """Print what a program did in each world, and tell whether that is what it should do."""
    program = importlib.import_module(name)
    fine, notes = True, []
    for world in getattr(program, "RANKS", (1, 2, 4)):
        if world == 1:
            continue
        try:
            wrong = differ(name, world, folder)
        except RuntimeError as error:
            fine = False
            notes.append(f"{world} ranks: {str(error).strip()}")
            continue
        fine &= set(program.PARAMETERS) <= wrong if name.startswith("fault_") else not wrong
        notes.append(f"{world} ranks: {f'{len(wrong)} differ' if wrong else 'equal'}")
        if name.startswith("fault_") != bool(wrong) or not set(getattr(program, "PARAMETERS", ())) <= wrong:
            notes.append(f"wrong are {', '.join(sorted(wrong))}")
    if name.startswith("fault_"):
        fine &= Path(str(program.__file__)).read_text().count("# fault\n") == 1
    print("ok  " if fine else "BAD ", name, "; ".join(notes), flush=True)
    return fine


def main() -> None:
    """Run the named programs, or all, in worlds of 1, 2 and 4 ranks."""
    names = sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*_*.py") if path.stem.startswith(("c", "f")))
    # The command knows how their values belong to those of one rank.
    names = [name for name in names if "OWN_VALUES" not in (FOLDER / f"{name}.py").read_text(encoding="utf-8")]
    with tempfile.TemporaryDirectory() as folder:
        for world in (1, 2, 4):
            mp.spawn(work, (world, free_port(), names, folder), nprocs=world)
        bad = [name for name in names if not judge(name, folder)]
    sys.exit(f"not as they should be: {', '.join(bad)}" if bad else 0)


if __name__ == "__main__":
    main()
