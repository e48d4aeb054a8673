"""``collshim`` at the command line, and ``python -m collshim``.

A command's options are added only when it is called: they import torch, which takes two seconds.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from collshim import __version__
from collshim.errors import ArgumentError, CollshimError
from collshim.output import write_everything

_SIGINT, _SIGPIPE = 130, 141


class _Command(NamedTuple):
    """A command.

    Attributes:
        help: a description.
        add_options: adds its options.
        needs: the packages that it needs, by the modules that they install.
        parsers: makes parsers whose options it accepts too.
        takes_rest: whether the words after ``--`` are for the program that it runs, as ``arguments``.
    """

    help: str
    add_options: Callable[[argparse.ArgumentParser], None]
    needs: Mapping[str, str] = MappingProxyType({})
    parsers: Callable[[], list[argparse.ArgumentParser]] = list
    takes_rest: bool = False


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        Its exit code: 0, 1 if a check fails, 2 if it cannot start, 130 after Ctrl-C, 141 if its output is not read.
    """
    write_everything()
    try:
        return _call(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        return _SIGINT


def _call(words: Sequence[str]) -> int:
    called = next((word for word in words if not word.startswith("-")), "")
    with _interruptible():
        parser, commands = _parser((called,))
    words, rest = _split(called, words)
    chosen, unknown = parser.parse_known_args(words)
    if unknown:
        commands.get(chosen.command, parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    if rest:
        chosen.arguments = [*chosen.arguments, *rest]
    if not chosen.command:
        parser.print_help()
        return 0
    if missing := _missing(chosen.command):
        text = f"needs {' and '.join(missing)}, not installed here: pip install {' '.join(missing)}"
        print(f"collshim {chosen.command}: {text}", file=sys.stderr)
        return 2
    try:
        code = int(chosen.run(chosen))
        sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_has_left():
            raise
        # The shell's code for SIGPIPE, without a traceback at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _SIGPIPE
    except CollshimError as error:
        print(f"collshim {chosen.command}: {error}", file=sys.stderr)
        return 2 if isinstance(error, ArgumentError) else 1
    return code


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end the process at once: importing torch takes seconds, and may swallow a KeyboardInterrupt.

    A SIGINT that the process ignores, as a shell's job in the background does, stays ignored.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _missing(command: str) -> list[str]:
    """Return the packages that a command needs and that are not installed."""
    return [name for module, name in _COMMANDS[command].needs.items() if importlib.util.find_spec(module) is None]


def _split(called: str, words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return a command's own words, and those after ``--`` if they are for the program that it runs."""
    if called not in _COMMANDS or not _COMMANDS[called].takes_rest or "--" not in words:
        return words, ()
    place = list(words).index("--")
    return words[:place], words[place + 1 :]


def _reader_has_left() -> bool:
    poller = select.poll()
    poller.register(sys.stdout.fileno(), 0)  # errors are always reported
    return any(event & select.POLLERR for _, event in poller.poll(0))


def _parser(called: Container[str]) -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    """Return the parser of all commands, with the options of those called, and each command's own parser by name."""
    parser = argparse.ArgumentParser(
        prog="collshim",
        description="Run and check distributed programs: the collectives of five frameworks on one engine.",
    )
    parser.add_argument("--version", action="version", version=f"collshim {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for name, command in _COMMANDS.items():
        others = command.parsers() if name in called else []
        options = commands.add_parser(
            name, help=command.help, description=command.help, parents=others, conflict_handler="resolve"
        )
        if name in called:
            command.add_options(options)
    return parser, commands.choices


def _demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--picture",
        type=Path,
        default=Path("collshim-demo.png"),
        metavar="PATH",
        help="write the picture of the loss curves to PATH (default: %(default)s)",
    )
    parser.add_argument(
        "--expected",
        type=Path,
        metavar="DIR",
        help="compare with the results in DIR, a copy of collshim/demo/expected, instead of the documented ones",
    )
    parser.set_defaults(run=_start_demo)


def _start_demo(chosen: argparse.Namespace) -> int:
    from collshim.demo.command import run  # imported after the check of what it needs

    return run(chosen.picture, chosen.expected)


def _run(parser: argparse.ArgumentParser) -> None:
    from collshim.launching import run, run_options

    run_options.add_arguments(parser)
    parser.set_defaults(run=run.start)


def _torchruns() -> list[argparse.ArgumentParser]:
    from collshim.launching import run_options

    return run_options.parsers()


def _conformance(parser: argparse.ArgumentParser) -> None:
    from collshim.conformance.report import options

    parser.epilog = options.EPILOG
    options.add_arguments(parser)
    parser.set_defaults(run=_start_conformance)


def _start_conformance(chosen: argparse.Namespace) -> int:
    from collshim.conformance.report.command import start  # imports the suite

    return start(chosen)


def _faults(parser: argparse.ArgumentParser) -> None:
    from collshim.conformance.faults import command, options

    options.add_arguments(parser)
    parser.set_defaults(run=command.start)


def _invariance(parser: argparse.ArgumentParser) -> None:
    from collshim.invariance import command

    command.add_arguments(parser)
    parser.set_defaults(run=command.start)


def _check(parser: argparse.ArgumentParser) -> None:
    from collshim.checking import command

    command.add_arguments(parser)
    parser.set_defaults(run=command.start)


def _completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=["bash", "zsh", "tcsh"])
    parser.epilog = "For bash: collshim completion bash > ~/.local/share/bash-completion/completions/collshim"
    parser.set_defaults(run=_print_completion)


def _print_completion(chosen: argparse.Namespace) -> int:
    import shtab

    parser, _ = _parser([name for name in _COMMANDS if not _missing(name)])
    print(shtab.complete(parser, chosen.shell))
    return 0


def _log(parser: argparse.ArgumentParser) -> None:
    from collshim.logs import command

    command.add_arguments(parser)
    parser.set_defaults(run=command.start)


def _info(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_show_info)


def _test(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_start_test)


def _start_test(chosen: argparse.Namespace) -> int:
    from collshim.launching import self_test

    return self_test.start()


def _show_info(chosen: argparse.Namespace) -> int:
    from collshim.launching import info

    print("\n".join(info.lines(__version__)))
    return 0


_COMMANDS = {
    "test": _Command(
        "test the collectives between threads and between processes of this machine, in about ten seconds",
        _test,
    ),
    "demo": _Command(
        "run the frameworks' documented examples, and one training in all five frameworks, on four ranks here",
        _demo,
        {"rich": "rich", "sklearn": "scikit-learn", "matplotlib": "matplotlib"},
    ),
    "run": _Command(
        "run a script on several ranks, with the environment that each framework's launcher sets",
        _run,
        parsers=_torchruns,
    ),
    "conformance": _Command(
        "run the conformance suite on the adapters, your own module or a real framework, and show a grid of results",
        _conformance,
    ),
    "faults": _Command(
        "run programs with mistakes across ranks, and score the errors that collshim, torch or your own module raises",
        _faults,
    ),
    "invariance": _Command(
        "run a training step on 1, 2 and 4 ranks, compare the gradients, and name the line that makes them differ",
        _invariance,
        {"rich": "rich"},
        takes_rest=True,
    ),
    "check": _Command(
        "read scripts without running them, and report names that an adapter lacks and mistakes in calls",
        _check,
        {"libcst": "libcst", "rich": "rich"},
    ),
    "log": _Command(
        "show the calls of a program's ranks side by side, from the files in its COLLSHIM_LOG_DIR",
        _log,
        {"rich": "rich"},
    ),
    "completion": _Command(
        "print a script that lets a shell complete the command line of collshim", _completion, {"shtab": "shtab"}
    ),
    "info": _Command("show versions, backends, devices and the launcher's variables", _info),
}


if __name__ == "__main__":
    sys.exit(main())
