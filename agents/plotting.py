"""The picture of a training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from de_gym.arrays import FloatArray

SMOOTHING_SHARE = 0.05  # of all updates, averaged for the thick line


def plot_training(rows: list[dict[str, float]], path: Path, title: str) -> None:
    """Draw return, error and collapse signals over the updates, and write the picture to ``path``."""
    updates = np.array([row["update"] for row in rows])
    panels = (
        ("mean return of an episode", ("return",)),
        ("mean log10 error at its end", ("log10_error",)),
        ("share", ("clipped_share", "zero_return_share")),
    )
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    for axes, (label, names) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        for name in names:
            values = np.array([row[name] for row in rows])
            (line,) = axes.plot(updates, _smoothed(values), linewidth=2, label=name.replace("_", " "))
            axes.plot(updates, values, linewidth=0.7, alpha=0.35, color=line.get_color())
        axes.set(xlabel="update", ylabel=label)
        axes.grid(alpha=0.3)
        if len(names) > 1:
            axes.legend()
            axes.set_ylim(-0.02, 1.02)
    figure.suptitle(title)
    figure.savefig(path, dpi=120)


def _smoothed(values: FloatArray) -> FloatArray:
    """Return the running mean over the last few values."""
    window = max(1, int(SMOOTHING_SHARE * len(values)))
    sums = np.cumsum(np.concatenate([[0.0], values]))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    means: FloatArray = (sums[ends] - sums[starts]) / (ends - starts)
    return means
