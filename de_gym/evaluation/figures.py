"""Pictures of a comparison, each as PNG bytes in a light or a dark theme; they draw and never compute statistics."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypedDict

import matplotlib
import matplotlib.ticker
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import LineStyleType

from de_gym.arrays import FloatArray
from de_gym.evaluation.comparison import Comparison
from de_gym.evaluation.curves import Curves
from de_gym.evaluation.paper import function_label
from de_gym.evaluation.parameters import NUM_CLUSTERS, ParameterTrace
from de_gym.evaluation.results import MethodResults, Results, method_label

# More lines than these cannot be told apart.
_MOST_RESIDUALS = 7


@dataclass(frozen=True)
class Theme:
    """Colours of a picture; the first of ``series`` is the reference's."""

    background: str
    text: str
    lines: str
    quiet: str
    series: tuple[str, ...]
    clusters: tuple[str, str, str]


LIGHT = Theme(
    background="#ffffff",
    text="#24292f",
    lines="#d8dee4",
    quiet="#8c959f",
    series=(
        "#d1242f",
        "#0969da",
        "#1a7f37",
        "#9a6700",
        "#8250df",
        "#0e7490",
        "#bf3989",
        "#57606a",
        "#5a6b00",
        "#b35900",
    ),
    clusters=("#1a7f37", "#bf8700", "#d1242f"),
)
DARK = Theme(
    background="#161b22",
    text="#e6edf3",
    lines="#30363d",
    quiet="#6e7681",
    series=(
        "#ff7b72",
        "#58a6ff",
        "#56d364",
        "#e3b341",
        "#bc8cff",
        "#39c5cf",
        "#f778ba",
        "#8b949e",
        "#b5d333",
        "#ffa657",
    ),
    clusters=("#56d364", "#e3b341", "#ff7b72"),
)
DASHES: tuple[LineStyleType, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)))


class LineStyle(TypedDict):
    """Keyword arguments of a curve."""

    color: str
    linestyle: LineStyleType
    linewidth: float
    zorder: float
    label: str


def score_bars(comparison: Comparison, theme: Theme = LIGHT) -> bytes:
    """Return the average performance scores as bars, the paper's beside them where it has any."""
    methods = comparison.ranking[::-1]
    places = np.arange(len(methods))
    with themed_figure(theme, (7.5, 0.9 + 0.34 * len(methods))) as (figure, picture):
        axes = figure.subplots()
        scores = [comparison.scores[method.name] for method in methods]
        axes.barh(
            places, scores, color=[_bar_color(comparison.results, method, theme) for method in methods], height=0.62
        )
        known = [place for place, method in enumerate(methods) if method.name in comparison.paper_scores]
        if known:
            printed = [comparison.paper_scores[methods[place].name] for place in known]
            axes.plot(printed, known, "D", color=theme.background, markeredgecolor=theme.text, label="in the paper")
            axes.legend(frameon=False, loc="upper right")
        # Not at the end of a bar, where the paper's diamond may stand, or seem to be what the number belongs to.
        names = [f"{method.label}   {score:.2f}" for method, score in zip(methods, scores, strict=True)]
        axes.set_yticks(places, names)
        axes.set_xlabel("average performance score: how many methods are significantly better")
        axes.grid(axis="y", visible=False)
        axes.set_xlim(0, 1.03 * max([1.0, *scores, *comparison.paper_scores.values()]))
    return picture.getvalue()


def runtime_curves(results: Results, theme: Theme = LIGHT) -> bytes:
    """Return the share of (function, run, target) triples solved as a function of the evaluations spent."""
    with themed_figure(theme, (7.5, 4.2)) as (figure, picture):
        axes = figure.subplots()
        highest = 0.1
        for method, curves in _recorded(results):
            shares = curves.shares.mean(axis=0)
            style = _style(results, method, theme)
            axes.plot(curves.grid / results.protocol.dimension, shares, drawstyle="steps-post", **style)
            highest = max(highest, shares[-1])
        axes.set(xscale="log", xlim=(1, None), ylim=(0, min(1.0, 1.1 * highest)))
        axes.set(xlabel="evaluations / dimension", ylabel="share of function, run, target triples")
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return picture.getvalue()


def convergence_curves(comparison: Comparison, theme: Theme = LIGHT) -> bytes:
    """Return the median error along the runs, one panel per function; the reference with its quartiles."""
    results = comparison.results
    functions, floor = results.protocol.functions, max(results.protocol.target_error, 1e-12)
    columns = min(5, len(functions))
    rows = math.ceil(len(functions) / columns)
    with themed_figure(theme, (max(2.5 * columns, 7.5), 1.95 * rows + 0.9)) as (figure, picture):
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for index, axes in enumerate(panels):
            if index >= len(functions):
                axes.set_visible(False)
                continue
            for method, curves in _recorded(results):
                known = np.isfinite(curves.quartiles[:, index]).all(axis=0)  # not before the initial population is
                grid = curves.grid[known]
                lower, median, upper = np.maximum(curves.quartiles[:, index, known], floor)
                style = _style(results, method, theme)
                axes.plot(grid, median, **style)
                if method.name == results.reference:
                    axes.fill_between(grid, lower, upper, color=style["color"], alpha=0.15, linewidth=0)
            axes.set(xscale="log", yscale="log")
            axes.set_title(function_label(results.protocol.suite, functions[index]), size=9, pad=3)
            axes.tick_params(labelsize=7)
            axes.yaxis.set_major_locator(matplotlib.ticker.LogLocator(numticks=5))
            axes.minorticks_off()
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=min(6, len(labels)), frameon=False)
        figure.supxlabel("evaluations", size=9)
        figure.supylabel("median error", size=9)
    return picture.getvalue()


def parameter_curves(traces: Sequence[ParameterTrace], theme: Theme = LIGHT) -> bytes:
    """Return mean F and CR along one run of each method, by fitness cluster, and below them what was adjusted."""
    num_rows = 3 if any(trace.residuals for trace in traces) else 2
    with themed_figure(theme, (min(4.2 * len(traces), 12.6) + 0.6, 2.3 * num_rows)) as (figure, picture):
        panels = figure.subplots(num_rows, len(traces), squeeze=False, sharex="col", sharey="row")
        for column, trace in enumerate(traces):
            if num_rows == 3:
                _draw_residuals(panels[2, column], trace, theme)
            for row, means in enumerate(trace.cluster_means()):
                axes = panels[row, column]
                for cluster in range(NUM_CLUSTERS):
                    axes.plot(
                        _smoothed(means[:, cluster]),
                        color=theme.clusters[cluster],
                        linewidth=1.3,
                        label=("best individuals", "middle", "worst")[cluster],
                    )
                axes.set_ylim(-0.03, 1.05)
            panels[0, column].set_title(method_label(trace.method), size=9.5)
            panels[-1, column].set_xlabel("generation")
        panels[0, 0].set_ylabel("mean $F$")
        panels[1, 0].set_ylabel("mean $CR$")
        if num_rows == 3:
            panels[2, 0].set_ylabel("residuals")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=NUM_CLUSTERS, frameon=False)
    return picture.getvalue()


def _draw_residuals(axes: Axes, trace: ParameterTrace, theme: Theme) -> None:
    """Draw those residuals along a run that can be told apart: the ones that moved most."""
    for (name, values), color in zip(trace.most_moved(_MOST_RESIDUALS).items(), theme.series, strict=False):
        axes.plot(_smoothed(values), color=color, linewidth=1.1, label=name.replace("_", " "))
    if trace.residuals:
        axes.legend(loc="upper center", ncols=2, frameon=False, fontsize=6, handlelength=1.2, columnspacing=0.8)
    else:
        axes.text(0.5, 0.5, "nothing is adjusted", transform=axes.transAxes, ha="center", color=theme.quiet, size=8)
    axes.set_ylim(-1.05, 1.9)


def _recorded(results: Results) -> list[tuple[MethodResults, Curves]]:
    """Return the methods whose course is known, the reference first."""
    kept = [(method, method.curves) for method in results.methods if method.curves is not None]
    return sorted(kept, key=lambda pair: pair[0].name != results.reference)


def _bar_color(results: Results, method: MethodResults, theme: Theme) -> str:
    """Return the reference's colour, another for other controllers, and a quiet one for the algorithms."""
    if method.name == results.reference:
        return theme.series[0]
    return theme.series[1] if method.settings.get("kind") == "controller" else theme.quiet


def method_color(results: Results, method: MethodResults, theme: Theme) -> tuple[str, int]:
    """Return a method's colour and how often the palette was used up before it."""
    if method.name == results.reference:
        return theme.series[0], 0
    place = [other.name for other in results.compared].index(method.name)
    others = theme.series[1:]
    return others[place % len(others)], place // len(others)


def _style(results: Results, method: MethodResults, theme: Theme) -> LineStyle:
    """Return how a method's curves look; the reference is thick and on top."""
    color, turn = method_color(results, method, theme)
    main = method.name == results.reference
    return {
        "color": color,
        "linestyle": DASHES[turn % len(DASHES)],
        "linewidth": 2.0 if main else 1.2,
        "zorder": 3.0 if main else 2.0,
        "label": method.label,
    }


def _smoothed(values: FloatArray, window: int = 9) -> FloatArray:
    """Return a centred running mean over what there is, so that single generations do not hide the trend."""
    if len(values) < 20 * window:
        return values
    weights = np.ones(window)
    present = np.convolve(np.isfinite(values).astype(float), weights, mode="same")
    total = np.convolve(np.nan_to_num(values), weights, mode="same")
    smooth: FloatArray = np.divide(total, present, out=np.full(len(values), np.nan), where=present > 0)
    return smooth


@contextmanager
def themed_figure(theme: Theme, size: tuple[float, float]) -> Iterator[tuple[Figure, io.BytesIO]]:
    """Give an empty figure in the theme and the file into which it is drawn at the end."""
    picture = io.BytesIO()
    with matplotlib.rc_context(
        {
            "font.size": 9,
            "axes.edgecolor": theme.lines,
            "axes.labelcolor": theme.text,
            "text.color": theme.text,
            "xtick.color": theme.text,
            "ytick.color": theme.text,
            "axes.facecolor": theme.background,
            "figure.facecolor": theme.background,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": theme.lines,
            "grid.linewidth": 0.6,
            "axes.axisbelow": True,
        }
    ):
        figure = Figure(figsize=size, layout="constrained")
        yield figure, picture
        # No creation date or version in the file: the same results give the same bytes.
        figure.savefig(picture, format="png", dpi=150, metadata={"Software": None})
