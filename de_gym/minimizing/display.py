"""What a person at a terminal sees while a run goes on: a bar, and why the first call is slow."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from time import monotonic

from numba.core import event
from tqdm import tqdm

from de_gym.machine.compiling import SeldomCollecting
from de_gym.minimizing.evaluations import Evaluations
from de_gym.optimizers import Progress

_PATIENCE = 2.0
"""Seconds of compiling after which a word is due."""


class ProgressBar:
    """Observer: a bar over the budget with the best value, on terminals only."""

    def __init__(self, evaluations: Evaluations, max_evaluations: int) -> None:
        self._evaluations = evaluations
        self._bar = tqdm(total=max_evaluations, unit="evaluation", disable=None)

    def __call__(self, progress: Progress) -> None:
        """Show the generation."""
        self._bar.set_postfix(best=f"{self._evaluations.best_value:.6g}", refresh=False)
        self._bar.update(self._evaluations.num_points - self._bar.n)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()


class CompileListener(event.Listener):
    """Says once that kernels are being compiled, when that has taken long enough to wonder."""

    def __init__(self) -> None:
        self._depth, self._seconds, self._has_spoken = 0, 0.0, False

    def on_start(self, event: event.Event) -> None:
        """Begin to wait, unless this kernel is compiled inside another."""
        self._depth += 1
        if self._depth == 1 and not self._has_spoken:
            self._began = monotonic()
            self._timer = Timer(max(_PATIENCE - self._seconds, 0.0), self._speak)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: event.Event) -> None:
        """Stop waiting."""
        self._depth -= 1
        if self._depth == 0 and not self._has_spoken:
            self._timer.cancel()
            self._seconds += monotonic() - self._began

    def _speak(self) -> None:
        self._has_spoken = True
        print("de_gym: compiling kernels for the first use ...", file=sys.stderr, flush=True)


@contextmanager
def announced_compiling(listener: CompileListener | None = None) -> Iterator[None]:
    """Compile without looking for garbage all the time, and tell on stderr when it takes more than two seconds."""
    kind = "numba:compile"
    with event.install_listener(kind, listener or CompileListener()), event.install_listener(kind, SeldomCollecting()):
        yield
