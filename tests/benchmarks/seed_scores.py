"""Scores of the presets over training seeds: each controller alone among the paper's algorithms, and the interval.

The stored errors were made by ``train.py --preset PRESET --seeds 0 1 2 3 4`` and ``evaluate.py --add-to`` of the
controllers that it exported.
"""

from __future__ import annotations

import sys
from pathlib import Path

from agents.measuring import summarize_seeds
from de_gym.evaluation import PROTOCOLS, shipped_results
from de_gym.evaluation.score_tables import compare_alone, stored_methods, title

FOLDER = Path(__file__).parents[1] / "reference" / "seeds"
PRESETS = ("short", "quick")


def main() -> int:
    """Print a table for every protocol that has stored errors."""
    for protocol in PROTOCOLS.values():
        if not (FOLDER / f"{protocol.table}.npz").exists() or protocol is PROTOCOLS["ladder-cec17-10d"]:
            continue
        algorithms, _ = stored_methods(protocol)
        print(f"{title(protocol)}, score among {len(algorithms) + 1}:\n")
        print("| preset | mean | interquartile mean | 95 % interval | each seed |\n|---|--:|--:|---|---|")
        trained = shipped_results(protocol, [FOLDER])
        for preset in PRESETS:
            own = [method for method in trained if method.name.startswith(f"{preset}-reinforce-seed")]
            scores = [compare_alone(method, algorithms, protocol).scores[method.name] for method in own]
            if scores:
                found = summarize_seeds(scores)
                each = ", ".join(f"{score:.2f}" for score in scores)
                interval = f"{found.lower:.2f} to {found.upper:.2f}"
                print(f"| `{preset}` | {found.mean:.2f} | {found.interquartile_mean:.2f} | {interval} | {each} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
