"""The picture of a run so far: error curve, what the agent set, the populations in two dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de_gym.arrays import FloatArray
from de_gym.problems import Problem

_ERROR_COLOR, _BEST_COLOR = "#333333", "#d62728"
_CONTROL_COLORS = ("#b5541c", "#1f6f8b", "#5b8c3a", "#7a4fa3", "#b08900", "#8c564b", "#4c4c4c")
_POPULATION_MARKERS = ("o", "^")


class RunPicture:
    """Records one run and draws it; created only when an environment renders."""

    def __init__(self, problem: Problem) -> None:
        """Begin the record of a run on ``problem``."""
        self._problem = problem
        self._populations: Mapping[str, FloatArray] = {}
        self._errors: list[float] = []
        self._parameters: list[Mapping[str, FloatArray]] = []

    def set_parameters(self, parameters: Mapping[str, FloatArray]) -> None:
        """Take what the agent sets in the generation that follows: one number per name, or one per rank."""
        self._parameters.append(parameters)

    def record(self, populations: Mapping[str, FloatArray], error: float) -> None:
        """Add a generation: its populations, best first, each (N, D), and its best error."""
        self._populations = populations
        self._errors.append(error)

    def draw(self, figure: Any) -> None:
        """Draw the run so far on a matplotlib figure."""
        figure.clear()
        error_axes, control_axes, population_axes = figure.subplots(1, 3)
        self._draw_errors(error_axes)
        self._draw_controls(control_axes)
        self._draw_population(population_axes)
        figure.suptitle(f"{self._problem.name}, generation {len(self._errors) - 1}", fontsize=11)

    def _draw_errors(self, axes: Any) -> None:
        # Solved runs reach an error of zero, which a logarithmic axis cannot show.
        axes.semilogy(np.maximum(self._errors, 1e-9), color=_ERROR_COLOR, linewidth=1.8)
        axes.set(title="best error", xlabel="generation")
        axes.set_xlim(0, max(len(self._errors) - 1, 1))
        axes.grid(alpha=0.3, which="major")

    def _draw_controls(self, axes: Any) -> None:
        axes.grid(alpha=0.3)
        if not self._parameters:
            return
        if all(len(numbers) == 1 for numbers in self._parameters[-1].values()):
            self._draw_controls_over_time(axes)
        else:
            self._draw_controls_by_rank(axes)

    def _draw_controls_by_rank(self, axes: Any) -> None:
        for (name, numbers), color, marker in zip(self._parameters[-1].items(), _CONTROL_COLORS, "os", strict=False):
            axes.scatter(np.arange(1, len(numbers) + 1), numbers, s=14, color=color, label=name, marker=marker)
        title = " and ".join(self._parameters[-1])
        axes.set(title=f"{title} by rank", xlabel="rank (1 = best)", ylim=(-0.05, 1.2), yticks=np.linspace(0, 1, 6))
        axes.legend(loc="upper center", frameon=False, ncols=2)

    def _draw_controls_over_time(self, axes: Any) -> None:
        # As many as can be told apart: those that moved most.
        names = list(self._parameters[-1])
        series = {name: np.array([float(numbers[name][0]) for numbers in self._parameters]) for name in names}
        moving = sorted(names, key=lambda name: -float(np.ptp(series[name])))[: len(_CONTROL_COLORS)]
        for name, color in zip((name for name in names if name in moving), _CONTROL_COLORS, strict=False):
            axes.plot(np.arange(1, len(self._parameters) + 1), series[name], color=color, linewidth=1.2, label=name)
        axes.set(title="controls", xlabel="generation", ylim=(-1.05, 1.6))
        axes.legend(loc="upper center", frameon=False, ncols=2, fontsize=6, handlelength=1.2, columnspacing=0.8)

    def _draw_population(self, axes: Any) -> None:
        vertical = 1 if self._problem.dimension > 1 else 0
        for (name, points), marker in zip(self._populations.items(), _POPULATION_MARKERS, strict=False):
            shades = np.linspace(0.0, 1.0, len(points))
            label = name if len(self._populations) > 1 else None
            axes.scatter(points[:, 0], points[:, vertical], c=shades, cmap="viridis", s=16, marker=marker, label=label)
        best = next(iter(self._populations.values()))[0]
        axes.scatter(best[0], best[vertical], marker="*", s=130, color=_BEST_COLOR, label="best")
        title = " and ".join(self._populations)
        axes.set(title=title, xlabel="coordinate 1", ylabel=f"coordinate {vertical + 1}")
        axes.set_xlim(self._problem.lower[0], self._problem.upper[0])
        axes.set_ylim(self._problem.lower[vertical], self._problem.upper[vertical])
        axes.legend(loc="upper right", framealpha=0.9)
        axes.grid(alpha=0.3)


def new_figure() -> Any:
    """Return an off-screen figure of 960 x 320 pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 3.2), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def to_pixels(figure: Any) -> NDArray[np.uint8]:
    """Return the drawn figure as an array (height, width, 3)."""
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3].copy()


class Window:
    """An on-screen figure for ``render_mode="human"``."""

    def __init__(self) -> None:
        import matplotlib.pyplot as plt

        self._plt = plt
        plt.ion()
        self.figure = plt.figure(figsize=(9.6, 3.2), dpi=100, layout="constrained")

    def show(self, seconds: float) -> None:
        """Bring the drawing on the screen and give the window time to react."""
        self.figure.canvas.draw_idle()
        self._plt.pause(seconds)

    def close(self) -> None:
        """Close the window."""
        self._plt.close(self.figure)
