"""The audit, which ends with 1 where it finds anything.

``python tests/audit --kills 20 --stops 20 --flips 2000 --cases 5000``: every kill, stop, damaged file and call follows
from the seed and its number; ``--first`` is the number to begin with, so that a finding can be repeated alone. With
``--keep FILE`` the same command goes on where it was stopped. ``--writes`` ends both commands at each of their writes.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import cases
import disks
import flips
import kills
import writes
from findings import Findings

PARTS = {
    "cases": (cases, cases.fuzz, "number of fuzzed calls"),
    "flips": (flips, flips.flip, "number of damaged files"),
    "kills": (kills, kills.kill, "number of kills of both commands"),
    "stops": (kills, kills.stop, "number of Ctrl-C and SIGTERM for both commands"),
    "disks": (disks, disks.fill, "number of disks that are too small, which only root can mount"),
    "writes": (writes, writes.end_at_writes, "of the writes of a run, every N-th ends it"),
}


def main() -> int:
    """Run the parts that are asked for, print a line of figures for each, and return whether anything was found."""
    parser = argparse.ArgumentParser(prog="python tests/audit", description=__doc__)
    for name, (_, _, what) in PARTS.items():
        parser.add_argument(f"--{name}", type=int, default=0, metavar="N", help=what)
    parser.add_argument("--seed", type=int, default=0, help="what everything follows from")
    parser.add_argument("--first", type=int, default=0, help="number of the first kill, file or call")
    parser.add_argument("--keep", type=Path, help="file that keeps what was found so far")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    found = 0
    for name, (part, function, _) in PARTS.items():
        if count := getattr(chosen, name):
            totals = Findings(name, chosen.seed, chosen.keep)
            function(count, chosen.first, totals, chosen.seed)
            found += len(totals.all)
            print(part.summary(totals), flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
