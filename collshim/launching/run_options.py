"""The options of ``collshim run``: its own, and torchrun's, which it accepts too."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

_NAMED = {
    "training_script": ("SCRIPT", "the program to run: a file, or a module's name if you pass -m"),
    "training_script_args": ("ARGUMENT", "arguments for the program"),
    "module": (None, "run a module, like `python -m`"),
}
"""torchrun's arguments as the help and errors name them."""

_COUNTED = ("auto", "cpu", "gpu")
"""The values for which torchrun starts a rank per CPU or GPU."""


class _ShowTorchruns(argparse.Action):
    """``--help-torchrun``: show the help with torchrun's own texts, and exit."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        for action, text in _hidden.items():
            action.help = text
        parser.print_help()
        parser.exit()


_hidden: dict[argparse.Action, str | None] = {}
"""torchrun's options that the help does not show, and their texts."""


def parsers() -> list[argparse.ArgumentParser]:
    """Return the parsers whose options the command accepts in addition to its own: torchrun's."""
    from torch.distributed.run import get_args_parser

    parser = get_args_parser()
    for action in parser._actions:
        if action.dest in _NAMED:
            action.metavar, action.help = _NAMED[action.dest]
            action.required = not action.option_strings and action.nargs is None
        elif action.dest != "help":
            _hidden[action], action.help = action.help, argparse.SUPPRESS
    return [parser]


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of ``collshim run`` that torchrun lacks, or interprets differently."""
    from torch.distributed.argparse_util import env  # torchrun's: the default is PET_MASTER_ADDR

    command.usage = "%(prog)s [-n N] [OPTION ...] SCRIPT [ARGUMENT ...]"
    command.epilog = "All options of torchrun work too; --help-torchrun lists them."
    parser = command.add_argument_group("ranks")
    ranks = 'number of ranks on this machine (default: 1); "gpu", "cpu" or "auto": one rank per GPU or CPU'
    _add(parser, "-n", "--nproc-per-node", "-np", "--ranks", type=_ranks, default="1", metavar="N", help=ranks)
    machines = "number of machines (default: 1), or MIN:MAX"
    _add(parser, "--nnodes", type=_machines, default="1", metavar="N", help=machines)
    number = partial(_at_least, 0)
    _add(parser, "--node-rank", type=number, default=0, metavar="R", help="number of this machine, from 0 (default: 0)")
    address = "address of machine 0 (default: this machine)"
    _add(parser, "--master-addr", action=env, default="127.0.0.1", metavar="ADDRESS", help=address)
    port = "port of machine 0 (default on one machine: a free port)"
    _add(parser, "--master-port", type=number, metavar="PORT", help=port)
    _add_frameworks(command.add_argument_group("frameworks"))
    _add_output(command.add_argument_group("output"))
    command.add_argument(
        "--help-torchrun", action=_ShowTorchruns, nargs=0, help="show this help with torchrun's options, and exit"
    )


def _add(parser: argparse._ArgumentGroup, *names: str, **how: Any) -> None:
    """Add an option; torchrun's spelling of it with underscores, and names after the first two, are not shown."""
    spelled = [name.replace("-", "_").replace("__", "--", 1) for name in names if "-" in name[2:]]
    parser.add_argument(*names[:2], **how)
    dest = parser._group_actions[-1].dest
    if others := [*names[2:], *spelled]:
        hidden: dict[str, Any] = {**how, "help": argparse.SUPPRESS, "default": argparse.SUPPRESS, "dest": dest}
        parser.add_argument(*others, **hidden)


def _add_output(parser: argparse._ArgumentGroup) -> None:
    plain = "print the ranks' output without the rank in front of each line"
    parser.add_argument("--no-prefix", action="store_true", help=plain)
    full = "show collshim's own lines in tracebacks"
    parser.add_argument("--full-trace", action="store_true", help=full)
    logs = "write each rank's output to files in DIR"
    _add(parser, "--log-dir", type=Path, metavar="DIR", help=logs)


def _add_frameworks(parser: argparse._ArgumentGroup) -> None:
    parser.add_argument(
        "--as",
        dest="frameworks",
        action="append",
        default=[],
        metavar="FRAMEWORK",
        help="let `import FRAMEWORK` in the script import collshim.FRAMEWORK",
    )
    parser.add_argument(
        "--patch",
        dest="patches",
        action="append",
        default=[],
        metavar="FRAMEWORK",
        help="use the real FRAMEWORK, which must be installed, and let collshim carry out its collectives",
    )
    parser.add_argument(
        "--device", choices=["cpu"], help="the device that names of accelerators mean if there are no accelerators"
    )
    devices = "with --device, how many accelerators the program sees (default: one per local rank)"
    parser.add_argument("--devices", type=partial(_at_least, 1), metavar="N", help=devices)


def _at_least(least: int, text: str) -> int:
    expected = f"is {text!r}, should be a number of at least {least}"
    try:
        number = int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(expected) from error
    if number < least:
        raise argparse.ArgumentTypeError(expected)
    return number


def _ranks(text: str) -> str:
    return text if text in _COUNTED else str(_at_least(1, text))


def _machines(text: str) -> str:
    return ":".join(str(_at_least(1, part)) for part in text.split(":", 1))
