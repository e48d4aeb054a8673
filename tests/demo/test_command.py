"""The command line if no rank is started."""

from __future__ import annotations

import sys

import pytest

from collshim import __version__
from collshim.__main__ import main


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"collshim {__version__}\n"


def test_commands_are_listed_without_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "demo" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["run", "conformance", "demo", "faults", "info"])
def test_unknown_option_is_refused_with_the_usage(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([command, "--bogus", *["script.py"] * (command == "run")])
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith(f"usage: collshim {command} ")
    assert error.endswith(f"collshim {command}: error: unrecognized arguments: --bogus\n")


@pytest.mark.parametrize(
    ("modules", "packages"),
    [
        (["rich"], ["rich"]),
        (["sklearn"], ["scikit-learn"]),
        (["matplotlib"], ["matplotlib"]),
        (["rich", "sklearn"], ["rich", "scikit-learn"]),
    ],
)
def test_missing_package_is_named_with_its_installation(
    modules: list[str], packages: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)  # Python's mark of a missing module
    assert main(["demo"]) == 2
    named, given = " and ".join(packages), " ".join(packages)
    text = f"collshim demo: needs {named}, not installed here: pip install {given}\n"
    assert capsys.readouterr() == ("", text)


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--picture", "nowhere/curves.png", "picture: nowhere is not a folder"),
        ("--picture", "curves.xyz", "picture: curves.xyz ends in '.xyz', should end in one of"),
        ("--expected", "nowhere", "expected results: nowhere/pytorch.json cannot be read, should be JSON"),
    ],
)
def test_unwritable_path_is_refused_before_anything_runs(
    option: str, value: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", option, value]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith(f"collshim demo: {told}")
