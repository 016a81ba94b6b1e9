"""Fuzzed calls: every answer is right or a ``ValueError`` or ``TypeError`` of one sentence that names the argument.

Cases run in child processes, so that a crash or a hang is a finding too and the next case still runs.
"""

from __future__ import annotations

import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from findings import Findings

_SLICE = 2500  # cases of a child, whose memory must not grow for ever
_SILENCE = 300.0  # seconds after which a case counts as hanging; a kernel that is compiled takes long
_MEMORY = 6 * 2**30


def fuzz(count: int, seed: int, first: int) -> dict[str, Any]:
    """Run the cases ``first`` to ``first + count - 1`` and return the figures and the findings."""
    totals: dict[str, Any] = {"calls": 0, "constructions": 0, "answers": 0, "refusals": 0, "findings": Findings()}
    begin, last = first, first + count
    while begin < last:
        end = min(begin + _SLICE, last)
        begin = _run_slice(begin, end, seed, totals)
        print(f"up to case {begin}: {_figures(totals)}", file=sys.stderr, flush=True)
    return totals


def _run_slice(begin: int, end: int, seed: int, totals: dict[str, Any]) -> int:
    """Run cases in a child, add what it reports, and return the case to go on with."""
    with tempfile.TemporaryDirectory() as folder:
        progress, report = Path(folder) / "progress", Path(folder) / "report"
        progress.write_bytes(struct.pack("<q", begin - 1))
        report.touch()
        arguments = [sys.executable, __file__, str(begin), str(end), str(seed), str(progress), str(report)]
        child = subprocess.Popen(arguments, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        reached, ended = _watch(child, progress)
        for line in report.read_text().splitlines():
            _add(totals, json.loads(line))
        if ended and child.returncode == 0:
            return end
        kind = "crash" if ended else "hang"
        errors = b"" if child.stderr is None else child.stderr.read()[-300:]
        target, shown = describe(reached, seed)
        _add(totals, {"kind": kind, "case": reached, "target": target, "what": f"{shown} {errors!r}"})
        return reached + 1


def _watch(child: subprocess.Popen[bytes], progress: Path) -> tuple[int, bool]:
    """Wait for a child and return the case it reached, and whether it ended by itself."""
    reached, since = -1, time.monotonic()
    while child.poll() is None:
        now = struct.unpack("<q", progress.read_bytes())[0]
        if now != reached:
            reached, since = now, time.monotonic()
        elif time.monotonic() - since > _SILENCE + (30.0 if reached < 0 else 0.0):
            child.kill()
            child.wait()
            return reached, False
        time.sleep(0.1)
    return struct.unpack("<q", progress.read_bytes())[0], True


def _add(totals: dict[str, Any], entry: dict[str, Any]) -> None:
    if entry["kind"] == "figures":
        for key in ("calls", "constructions", "answers", "refusals"):
            totals[key] += entry[key]
    else:
        totals["findings"].note(f"{entry['kind']}, case {entry['case']}, {entry['target']}: {entry['what']}")


def describe(number: int, seed: int) -> tuple[str, str]:
    """Return the target and the fuzzed arguments of a case in words."""
    target, arguments, wild_names, _ = draw(number, seed)
    return target.name, ", ".join(f"{name}={_shown(arguments[name])}" for name in wild_names)


def draw(number: int, seed: int) -> tuple[Any, dict[str, Any], list[str], np.random.Generator]:
    """Return target, arguments, names of those that are fuzzed, and the generator of a case."""
    from targets import TARGETS
    from values import wild

    rng = np.random.default_rng([seed, number])
    weights = np.array([target.weight for target in TARGETS])
    target = TARGETS[int(rng.choice(len(TARGETS), p=weights / weights.sum()))]
    names = list(target.arguments)
    wild_names = [names[i] for i in rng.choice(len(names), min(len(names), int(rng.integers(1, 3))), replace=False)]
    given = [name for name in names if rng.random() < 0.6 or target.arguments[name].verdict(None) is False]
    needed = [name for name in names if target.name in _COMPLETE]
    arguments = {}
    for name in names:
        if name in wild_names:
            arguments[name] = wild(rng) if rng.random() < 0.9 else target.arguments[name].usual(rng)
        elif name in given or name in needed:
            arguments[name] = target.arguments[name].usual(rng)
    if target.name.startswith("make"):
        _tame(arguments, wild_names)
    return target, arguments, wild_names, rng


_COMPLETE = (
    "DEParamControl-v0 reset", "DEParamControl-v0 vector reset", "AdaptiveDEControl-v0 reset",
    "AdaptiveDEControl-v0 vector reset", "make_suite", "make_optimizer", "ask and tell", "make_methods", "load",
    "fixed controllers", "Protocol", "from_function",
)  # fmt: skip


def _tame(arguments: dict[str, Any], wild_names: list[str]) -> None:
    """Leave out arguments that only exist to be refused, and make environments cheap."""
    for name in ("popsize", "rewards"):
        if name in arguments and name not in wild_names:
            del arguments[name]


def judge(number: int, seed: int) -> tuple[str, str, bool]:
    """Return the outcome of a case, what was seen, and whether it constructed something."""
    target, arguments, wild_names, rng = draw(number, seed)
    verdicts = {name: _verdict(target.arguments[name].verdict, arguments[name]) for name in wild_names}
    forbidden = [name for name, verdict in verdicts.items() if verdict is False]
    try:
        target.call(rng, **arguments)
    except (ValueError, TypeError) as error:
        # What a caller's own function raises names the function at most.
        own = [value.__name__ for value in (arguments[name] for name in wild_names) if hasattr(value, "__name__")]
        words = [*own, *(word for name in wild_names for word in (name, *target.arguments[name].words))]
        if (problem := _badly_said(error, words)) and not _is_gymnasiums(error):
            return "vague", f"{problem}: {type(error).__name__}: {str(error)[:300]}", target.constructs
        if all(verdicts.values()) and None not in verdicts.values():
            return "refused", f"{type(error).__name__}: {str(error)[:300]}", target.constructs
        return "refusal", "", target.constructs
    except MemoryError:
        return "refusal", "", target.constructs  # what the machine has not got
    except RuntimeError as error:
        if "raised" in str(error) and "unction" in str(error):
            return "refusal", "", target.constructs  # a function of the caller's own that fails
        return "other error", f"{type(error).__name__}: {str(error)[:300]}", target.constructs
    except Exception as error:
        if _is_gymnasiums(error):
            return "refusal", "", target.constructs
        return "other error", f"{type(error).__name__}: {str(error)[:300]}", target.constructs
    if forbidden:
        return "silent", f"accepted {', '.join(forbidden)}", target.constructs
    return "answer", "", target.constructs


def _is_gymnasiums(error: BaseException) -> bool:
    """Return whether an error comes from Gymnasium's own checks, before our code is reached."""
    innermost = traceback.extract_tb(error.__traceback__)[-1].filename
    return "gymnasium" in innermost


def _verdict(verdict: Any, value: Any) -> bool | None:
    try:
        answer = verdict(value)
        return None if answer is None else bool(answer)
    except Exception:
        return None


def _badly_said(error: Exception, words: list[str]) -> str:
    """Return what is wrong with a message, if anything."""
    message = str(error)
    if "\n" in message.strip():
        return "more than one line"
    if len(message) > 1500:
        return f"{len(message)} characters"
    if not message.endswith((".", "?", ")")):
        return "not a sentence"
    if not any(word in message for word in words):
        return f"does not name {' or '.join(words)}"
    return ""


def _shown(value: Any) -> str:
    try:
        return repr(value)[:80]
    except Exception:
        return f"<{type(value).__name__}>"


def _child(begin: int, end: int, seed: int, progress: str, report: str) -> None:
    """Run cases, with the present one in ``progress`` and findings in ``report``."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    warnings.simplefilter("ignore")
    figures = {"kind": "figures", "calls": 0, "constructions": 0, "answers": 0, "refusals": 0}
    place = os.open(progress, os.O_WRONLY)
    with open(report, "a", buffering=1) as file:
        for number in range(begin, end):
            os.pwrite(place, struct.pack("<q", number), 0)
            started = time.process_time()
            outcome, what, constructs = judge(number, seed)
            if time.process_time() - started > 60.0:
                outcome, what = "slow", f"{time.process_time() - started:.0f} s"
            figures["calls"] += 1
            figures["constructions"] += constructs
            figures["answers"] += outcome == "answer"
            figures["refusals"] += outcome == "refusal"
            if outcome not in ("answer", "refusal"):
                target, shown = describe(number, seed)
                entry = {"kind": outcome, "case": number, "target": target, "what": f"{shown} -> {what}"}
                file.write(json.dumps(entry) + "\n")
        file.write(json.dumps(figures) + "\n")


def _figures(totals: dict[str, Any]) -> str:
    return (
        f"{totals['calls']} calls, {totals['constructions']} of them constructions; {totals['answers']} "
        f"answers, {totals['refusals']} refusals in one sentence, {len(totals['findings'])} findings"
    )


def summary(totals: dict[str, Any]) -> str:
    """Return the line of figures."""
    return f"cases: {_figures(totals)}"


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
    _child(*map(int, sys.argv[1:4]), *sys.argv[4:6])
