"""What REINFORCE knows of a second process that does a part of its updates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Protocol

from torch import Tensor

from de_gym.arrays import IntArray

from .playing import Step


class SharedUpdate(ABC):
    """An update whose episodes two processes have played.

    Attributes:
        groups: The function of each run, (B,).
    """

    groups: IntArray

    @abstractmethod
    def steps(self) -> Iterator[Step]:
        """Yield the steps of all runs."""

    @abstractmethod
    def backward(self) -> Tensor | None:
        """Add the gradient of the loss to every ``grad`` of the policy, and return the log-probabilities (T, B).

        None where the other process has ended, and no ``grad`` has changed.
        """


class Partner(Protocol):
    """Plays updates by two processes."""

    def play(self, update: int) -> SharedUpdate | None:
        """Play the episodes of an update; None where one process has to do it alone."""
