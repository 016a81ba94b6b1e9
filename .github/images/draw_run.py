"""Draw the animation of the front page: ``python .github/images/draw_run.py``, which writes run.gif beside itself.

The default controller and jSO on the same random landscape in two dimensions, which no training has seen: of several
runs the one in the middle.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from de_gym import make_suite
from de_gym.controllers import DEFAULT, load
from de_gym.optimizers import METHODS, AdaptiveDE, Optimizer, run
from de_gym.optimizers.running import Progress
from de_gym.problems import Problem

SUITE, NUMBER = "random:20000", 18
MAX_EVALUATIONS, NUM_FRAMES, RECENT, NUM_RUNS = 600, 45, 24, 11
INK, RED, BLUE, PAPER = "#24292f", "#d1242f", "#0969da", "#ffffff"


class Points:
    """Observer that keeps every point a run evaluates, and its error."""

    def __init__(self, problem: Problem) -> None:
        self.optimum, self.points, self.errors = problem.optimum, [], []

    def __call__(self, progress: Progress) -> None:
        """Take note of a generation."""
        self.points.extend(progress.trials.points.copy())
        self.errors.extend(progress.values - self.optimum)


def watch(make_optimizer: Callable[[], Optimizer], problem: Problem) -> Points:
    """Return what the run evaluates that ends in the middle of several."""
    seen = []
    for seed in range(NUM_RUNS):
        points = Points(problem)
        run(make_optimizer(), problem, num_runs=1, seed=seed, max_evaluations=MAX_EVALUATIONS, observers=[points])
        seen.append(points)
    return sorted(seen, key=lambda points: min(points.errors))[NUM_RUNS // 2]


def draw_landscape(axes: Axes, problem: Problem) -> None:
    """Draw the levels of the function, the deeper the darker."""
    grid = np.linspace(problem.lower[0], problem.upper[0], 140)
    mesh = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    depth = np.log10(problem.evaluate(mesh) - problem.optimum + 1e-3).reshape(140, 140)
    axes.contourf(grid, grid, depth, levels=14, cmap="bone")
    axes.plot(*problem.optimal_position, "x", color=PAPER, markersize=9, markeredgewidth=2)
    axes.set(xticks=[], yticks=[], aspect="equal")


def frame(count: int, seen: dict[str, Points], problem: Problem) -> Image.Image:
    """Return the picture after ``count`` evaluations."""
    figure = Figure(figsize=(9.6, 3.4), layout="constrained", facecolor=PAPER)
    panels = figure.subplots(1, 3, width_ratios=[1, 1, 1.25])
    for axes, (name, points), color in zip(panels, seen.items(), (RED, BLUE), strict=False):
        draw_landscape(axes, problem)
        recent = np.array(points.points[max(0, count - RECENT) : count])
        axes.scatter(*recent.T, s=16, color=color, edgecolors=PAPER, linewidths=0.5, zorder=3)
        axes.set_title(name, color=color, size=11, weight="bold")
        best = np.minimum.accumulate(points.errors)
        panels[2].plot(np.arange(1, count + 1), best[:count], color=color, linewidth=2, label=name)
    panels[2].set(yscale="log", xlim=(0, MAX_EVALUATIONS), ylim=(1e-8, 1e3), xlabel="evaluations")
    panels[2].set_title("best error", size=11, color=INK)
    panels[2].grid(alpha=0.3)
    file = BytesIO()
    figure.savefig(file, format="png", dpi=100)
    return Image.open(file).convert("P", palette=Image.Palette.ADAPTIVE, colors=64)


def main() -> None:
    """Write the animation; its last picture stays for a while."""
    problem = make_suite(SUITE, 2, [NUMBER])[NUMBER]
    seen = {
        "learned (the default)": watch(lambda: AdaptiveDE(controller=load(DEFAULT)), problem),
        "jSO": watch(METHODS["jso"], problem),
    }
    length = min(len(points.points) for points in seen.values())
    counts = np.unique(np.linspace(20, length, NUM_FRAMES).astype(int))
    frames = [frame(int(count), seen, problem) for count in counts]
    durations = [110] * (len(frames) - 1) + [2500]
    path = Path(__file__).with_name("run.gif")
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=durations, loop=0, optimize=True)


if __name__ == "__main__":
    main()
