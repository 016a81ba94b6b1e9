"""What an audit found: printed at once, and kept where it was asked for, so that a stopped audit goes on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path


class Findings:
    """Figures and findings of the units of one part of an audit."""

    def __init__(self, part: str, seed: int, kept: Path | None = None) -> None:
        """Begin with what ``kept`` holds of the part under the same seed."""
        self._label, self._kept = {"part": part, "seed": seed}, kept
        self._units: set[str] = set()
        self.figures: Counter[str] = Counter()
        self.all: list[str] = []
        lines = kept.read_text().splitlines() if kept is not None and kept.exists() else []
        for line in lines:
            entry = json.loads(line)
            if {name: entry[name] for name in self._label} == self._label:
                self._take(entry["unit"], entry["figures"], entry["findings"])

    def __contains__(self, unit: object) -> bool:
        """Return whether a unit is done."""
        return str(unit) in self._units

    def add(self, unit: object, figures: Mapping[str, int], findings: Sequence[str]) -> None:
        """Note the figures of a unit and what it found."""
        self._take(str(unit), figures, findings)
        if self._kept is not None:
            entry = {**self._label, "unit": str(unit), "figures": dict(figures), "findings": list(findings)}
            with self._kept.open("a") as file:
                file.write(json.dumps(entry) + "\n")

    def _take(self, unit: str, figures: Mapping[str, int], findings: Sequence[str]) -> None:
        self._units.add(unit)
        self.figures.update(figures)
        self.all += findings
        for finding in findings:
            print(f"  {unit}: {finding}", flush=True)
