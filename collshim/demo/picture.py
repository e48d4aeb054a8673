"""The picture of the loss curves."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from collshim.demo.curves import TOLERANCE, Curves

MARKERS = "osD^v"
COLOURS = ("#2a6f97", "#c8553d", "#588157", "#8d5a97", "#d4a017")


def draw(curves: Curves, path: Path) -> None:
    """Draw the five curves and that of one process; markers sit on different steps, so that equal curves show."""
    figure = Figure(figsize=(9, 6.2), layout="constrained")
    upper, lower = figure.subplots(2, 1, height_ratios=[3, 1], sharex=True)
    _draw_losses(upper, curves)
    _draw_differences(lower, curves)
    figure.suptitle("One training on four ranks, in five frameworks' words", fontsize=13)
    figure.savefig(path, dpi=150)


def _draw_losses(axes: Axes, curves: Curves) -> None:
    axes.plot(curves.single, color="#cccccc", linewidth=7, label="one process, same batches")
    axes.plot(curves.of(curves.frameworks()[0]), color="#333333", linewidth=1)
    step = len(curves.frameworks())
    for index, framework in enumerate(curves.frameworks()):
        losses = curves.of(framework)
        places = range(index, len(losses), step)
        style = {"marker": MARKERS[index], "color": COLOURS[index], "markersize": 6.0, "linestyle": "none"}
        axes.plot(places, [losses[place] for place in places], label=framework, **style)
    axes.set_ylabel("loss")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_differences(axes: Axes, curves: Curves) -> None:
    for index, framework in enumerate(curves.frameworks()):
        pairs = zip(curves.of(framework), curves.single, strict=True)
        differences = [one - other for one, other in pairs]
        width = 1.0 + 2.2 * (len(curves.frameworks()) - 1 - index)
        axes.plot(differences, color=COLOURS[index], linewidth=width)
    axes.set_xlabel("step")
    axes.set_ylabel("minus one process")
    axes.spines[["top", "right"]].set_visible(False)
