"""The picture of the loss curves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from collshim.demo.curves import Curves
from collshim.errors import ArgumentValueError

MARKERS = "osD^v"
COLOURS = ("#2a6f97", "#c8553d", "#588157", "#8d5a97", "#d4a017")


def require_place(path: Path) -> None:
    """Raise an error if no picture can be written to this path.

    Raises:
        ArgumentValueError: its folder does not exist, or its suffix is not a known format.
    """
    if not path.parent.is_dir():
        raise ArgumentValueError(f"picture: {path.parent} is not a folder")
    formats = sorted(Figure().canvas.get_supported_filetypes())
    if path.suffix[1:].lower() not in formats:
        wanted = ", ".join(formats)
        raise ArgumentValueError(f"picture: {path.name} ends in {path.suffix!r}, should end in one of {wanted}")


def draw(curves: Curves, path: Path) -> None:
    """Draw the five curves and that of one process; markers are on different steps, so that equal curves show."""
    figure = Figure(figsize=(9, 6.2), layout="constrained")
    upper, lower = figure.subplots(2, 1, height_ratios=[3, 1], sharex=True)
    _draw_losses(upper, curves)
    _draw_differences(lower, curves)
    for axes in (upper, lower):
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle("One training on four ranks, in the words of five frameworks", fontsize=13)
    with rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": "collshim"}
    ):  # an SVG has text, and the same names each time
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)


def _draw_losses(axes: Axes, curves: Curves) -> None:
    axes.plot(curves.single, color="#cfcfcf", linewidth=8, label="one process, same batches")
    for index, framework in enumerate(curves.frameworks()):
        _draw_one(axes, curves.of(framework), framework, index)
    axes.set_ylabel("loss")
    axes.legend(frameon=False)
    axes.text(0.02, 0.04, _caption(curves), transform=axes.transAxes, color="#555555")


def _draw_differences(axes: Axes, curves: Curves) -> None:
    axes.axhline(0, color="#cfcfcf", linewidth=8)
    for index, framework in enumerate(curves.frameworks()):
        pairs = zip(curves.of(framework), curves.single, strict=True)
        _draw_one(axes, [one - other for one, other in pairs], framework, index)
    axes.set_xlabel("step")
    axes.set_ylabel("loss minus that\nof one process")


def _draw_one(axes: Axes, values: Sequence[float], framework: str, index: int) -> None:
    """Draw a thin line with a marker on every fifth step; each framework begins one step later."""
    places = slice(index, None, len(MARKERS))
    axes.plot(
        values,
        color=COLOURS[index],
        linewidth=1,
        marker=MARKERS[index],
        markersize=6,
        markevery=places,
        label=framework,
    )


def _caption(curves: Curves) -> str:
    count, all_of_them = curves.count_equal(), len(curves.frameworks())
    return f"{count} of {all_of_them} curves are bitwise equal: each shows a fifth of its markers"
