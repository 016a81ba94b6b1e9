"""The picture of the ladder: the best methods of every number of coordinates and budget."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from de_gym.controllers import DEFAULT, available
from de_gym.evaluation.figures import LIGHT, Theme, themed_figure
from de_gym.evaluation.ladder import Ladder
from de_gym.evaluation.results import method_label

NUM_SHOWN = 8
"""Methods in a panel: the first ones, and the default wherever it stands."""

CAPTION = (
    "Average performance score: how many methods are significantly better; 95 % intervals.\n"
    "Red: the default of minimize. Blue: other controllers that were trained. Grey: nothing learned."
)


def ladder_chart(ladders: Sequence[Ladder], theme: Theme = LIGHT) -> bytes:
    """Return scores with their intervals as bars: budgets side by side, as many as a phone can show legibly."""
    budgets = sorted({ladder.per_coordinate for ladder in ladders})
    dimensions = sorted({ladder.protocol.dimension for ladder in ladders})
    size = (4.2 * max(1, len(budgets)), 0.7 + 2.3 * max(1, len(dimensions)))
    with themed_figure(theme, size) as (figure, picture):
        panels = figure.subplots(max(1, len(dimensions)), max(1, len(budgets)), squeeze=False)
        for axes in panels.ravel():
            axes.set_visible(False)
        for ladder in ladders:
            row, column = dimensions.index(ladder.protocol.dimension), budgets.index(ladder.per_coordinate)
            _draw_panel(panels[row, column], ladder, theme)
        figure.supxlabel(CAPTION, size=9)
    return picture.getvalue()


def shown_methods(ladder: Ladder) -> list[str]:
    """Return the names in a panel, the best first."""
    ranking = sorted(ladder.rungs, key=lambda name: ladder.rungs[name].score)
    shown = ranking[:NUM_SHOWN]
    return shown if DEFAULT in shown or DEFAULT not in ranking else [*shown[:-1], DEFAULT]


def _draw_panel(axes: Axes, ladder: Ladder, theme: Theme) -> None:
    names = shown_methods(ladder)[::-1]
    rungs = [ladder.rungs[name] for name in names]
    learned = set(available())
    colors = [
        theme.series[0] if name == DEFAULT else theme.series[1] if name in learned else theme.quiet for name in names
    ]
    scores = [rung.score for rung in rungs]
    below = [rung.score - rung.interval[0] for rung in rungs]
    above = [rung.interval[1] - rung.score for rung in rungs]
    axes.set_visible(True)
    axes.barh(range(len(names)), scores, color=colors, height=0.62, xerr=[below, above], ecolor=theme.text)
    labels = [f"{rung.place}  {method_label(name)}" for name, rung in zip(names, rungs, strict=True)]
    axes.set_yticks(range(len(names)), labels)
    for label, name in zip(axes.get_yticklabels(), names, strict=True):
        label.set_fontweight("bold" if name == DEFAULT else "normal")
    axes.set_ylim(len(names) - NUM_SHOWN - 0.5, len(names) - 0.5)  # bars of one height, however many there are
    axes.set_title(f"{ladder.title}: {len(ladder.rungs)} methods", size=9.5, loc="left")
    axes.grid(axis="y", visible=False)
    axes.set_xlim(left=0.0)
