"""``collshim`` at the command line, and ``python -m collshim``."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from collshim import ArgumentError, CollshimError, __version__, info, run

EXTRAS = "cli,examples"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code: 0, 1 where something it checks is not so, 2 where it cannot start."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if "run" not in chosen:
        parser.print_help()
        return 0
    missing = [name for module, name in chosen.needs.items() if importlib.util.find_spec(module) is None]
    if missing:
        text = f"needs {' and '.join(missing)}, not installed here: pip install 'collshim[{EXTRAS}]'"
        print(f"collshim {chosen.command}: {text}", file=sys.stderr)
        return 2
    try:
        return int(chosen.run(chosen))
    except CollshimError as error:
        print(f"collshim {chosen.command}: {error}", file=sys.stderr)
        return 2 if isinstance(error, ArgumentError) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="collshim", description="The collectives of five frameworks over one engine.")
    parser.add_argument("--version", action="version", version=f"collshim {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="", dest="command")
    _add_demo(commands)
    _add_run(commands)
    _add_conformance(commands)
    _add_faults(commands)
    text = "versions, backends, devices, and what the launcher says"
    commands.add_parser("info", help=text, description=text).set_defaults(run=_info, needs={})
    return parser


def _add_demo(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "run the frameworks' documented examples, and one training in five dialects, on four ranks of this machine"
    demo = commands.add_parser("demo", help=text, description=text)
    demo.add_argument(
        "--picture",
        type=Path,
        default=Path("collshim-demo.png"),
        metavar="PATH",
        help="where the picture of the loss curves goes (default: %(default)s)",
    )
    demo.add_argument(
        "--expected",
        type=Path,
        metavar="DIR",
        help="compare with the results in DIR, a copy of collshim/demo/expected, instead of the documented ones",
    )
    demo.set_defaults(run=_demo, needs={"rich": "rich", "sklearn": "scikit-learn", "matplotlib": "matplotlib"})


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "run a script as the ranks of one world, with every framework's environment set"
    ranks = commands.add_parser("run", help=text, description=text)
    run.add_arguments(ranks)
    ranks.set_defaults(run=run.start, needs={})


def _add_conformance(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from collshim.conformance.report import options

    text = "ask the adapters, or a real framework, every case of the suite, and show a grid of what came of it"
    suite = commands.add_parser("conformance", help=text, description=text, epilog=options.EPILOG)
    options.add_arguments(suite)
    suite.set_defaults(run=_conformance, needs={})


def _add_faults(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from collshim.conformance.faults import options

    text = "run programs that are wrong across ranks, and score the errors that collshim, torch or a module gives"
    faults = commands.add_parser("faults", help=text, description=text)
    options.add_arguments(faults)
    faults.set_defaults(run=_faults, needs={})


def _demo(chosen: argparse.Namespace) -> int:
    from collshim.demo.command import run  # after the look at what it needs

    return run(chosen.picture, chosen.expected)


def _info(chosen: argparse.Namespace) -> int:
    print("\n".join(info.lines(__version__)))
    return 0


def _conformance(chosen: argparse.Namespace) -> int:
    from collshim.conformance.report.command import start  # it imports what asks and compares

    return start(chosen)


def _faults(chosen: argparse.Namespace) -> int:
    from collshim.conformance.faults.command import start

    return start(chosen)


if __name__ == "__main__":
    sys.exit(main())
