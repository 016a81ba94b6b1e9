"""The picture of what the default controller does along a run, by kind of problem."""

from __future__ import annotations

import numpy as np

from de_gym.evaluation.figures import LIGHT, Theme, themed_figure
from de_gym.evaluation.insight import NUM_BINS, Insight
from de_gym.problems.random_suite import KINDS

_KINDS = ("landscape", "hybrid", "composition", "peaks")
"""Those of which there are enough problems, and the one that differs most from them."""


def insight_chart(content: Insight, theme: Theme = LIGHT) -> bytes:
    """Return the mean residual of every control over the budget: a column per case, a line per kind of problem."""
    cases, controls = list(content.residuals), content.controls
    spent = (np.arange(NUM_BINS) + 0.5) / NUM_BINS
    with themed_figure(theme, (2.1 * len(cases), 0.8 + 0.85 * len(controls))) as (figure, picture):
        panels = figure.subplots(len(controls), len(cases), sharex=True, sharey=True, squeeze=False)
        for row, control in enumerate(controls):
            for column, case in enumerate(cases):
                axes = panels[row, column]
                for number, kind in enumerate(_KINDS):
                    values = content.residuals[case][list(KINDS).index(kind), :, row]
                    axes.plot(spent, values, color=theme.series[number], linewidth=1.3, label=kind)
                axes.axhline(0.0, color=theme.quiet, linewidth=0.8, zorder=0)
                if row == 0:
                    axes.set_title(f"n = {case.dimension}, {case.per_coordinate:,} n", size=8.5)
            panels[row, 0].set_ylabel(control.replace("_", "\n"), size=8, rotation=0, ha="right", va="center")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(_KINDS), frameon=False, fontsize=8)
        figure.supxlabel("share of the budget spent; 0 leaves the rule of L-SRTDE alone", size=9)
    return picture.getvalue()
