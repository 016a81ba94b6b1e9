"""The picture of a run so far: error curve, F and CR by rank, the population in two dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from de_gym.arrays import FloatArray
from de_gym.problems import Problem

_FACTOR_COLOR, _RATE_COLOR, _ERROR_COLOR = "#b5541c", "#1f6f8b", "#333333"


class RunPicture:
    """Records one run and draws it; created only when an environment renders."""

    def __init__(self, problem: Problem, positions: FloatArray, error: float) -> None:
        """Start the record with the initial population (N, D) and its best error."""
        self._problem = problem
        self._positions = positions
        self._errors = [error]
        self._scale_factors = self._crossover_rates = np.empty(0)

    def set_parameters(self, parameters: FloatArray) -> None:
        """Take F and CR by rank, shape (2N,), of the generation that follows."""
        self._scale_factors, self._crossover_rates = np.split(parameters, 2)

    def record(self, positions: FloatArray, error: float) -> None:
        """Add a generation: its population (N, D) and best error."""
        self._positions = positions
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
        ranks = np.arange(1, len(self._scale_factors) + 1)
        axes.scatter(ranks, self._scale_factors, s=14, color=_FACTOR_COLOR, label="F")
        axes.scatter(ranks, self._crossover_rates, s=14, color=_RATE_COLOR, label="CR", marker="s")
        axes.set(title="F and CR by rank", xlabel="rank (1 = best)", ylim=(-0.05, 1.2), yticks=np.linspace(0, 1, 6))
        axes.legend(loc="upper center", frameon=False, ncols=2)
        axes.grid(alpha=0.3)

    def _draw_population(self, axes: Any) -> None:
        vertical = 1 if self._problem.dimension > 1 else 0
        shades = np.linspace(0.0, 1.0, len(self._positions))
        axes.scatter(self._positions[:, 0], self._positions[:, vertical], c=shades, cmap="viridis", s=16)
        axes.scatter(
            self._positions[0, 0], self._positions[0, vertical], marker="*", s=130, color="#d62728", label="best"
        )
        axes.set(title="population", xlabel="coordinate 1", ylabel=f"coordinate {vertical + 1}")
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
