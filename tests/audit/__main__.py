"""The audit, which ends with 1 where it finds anything.

``python tests/audit --kills 20 --stops 20 --flips 2000 --cases 5000``: every kill, stop, damaged file and call follows
from the seed and its number; ``--first`` is the number to begin with, so that a large audit can be made in parts and a
finding be repeated alone.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import cases
import flips
import kills


def main() -> int:
    """Run the parts that are asked for, print a line of figures for each, and return whether anything was found."""
    parser = argparse.ArgumentParser(prog="python tests/audit", description=__doc__)
    counted = {
        "kills": "kills of both commands",
        "stops": "Ctrl-C and SIGTERM for both commands",
        "flips": "damaged files",
        "cases": "fuzzed calls",
    }
    for name, what in counted.items():
        parser.add_argument(f"--{name}", type=int, default=0, metavar="N", help=f"number of {what}")
    parser.add_argument("--seed", type=int, default=0, help="what everything follows from")
    parser.add_argument("--first", type=int, default=0, help="number of the first kill, file or call")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    found = 0
    for count, part, function in (
        (chosen.cases, cases, cases.fuzz),
        (chosen.flips, flips, flips.flip),
        (chosen.kills, kills, kills.kill),
        (chosen.stops, kills, kills.stop),
    ):
        if count:
            totals = function(count, chosen.seed, chosen.first)
            found += len(totals["findings"])
            print(part.summary(totals), flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
