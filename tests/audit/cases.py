"""Fuzzed calls: every answer is right or a ``ValueError`` or ``TypeError`` of one sentence that names the argument.

Cases run in forks of this process, so that a crash or a hang is a finding too and the next case still runs.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from findings import Findings

_SLICE = 2000  # cases of a child, whose memory must not grow for ever
_WARM = 400  # cases of this process, so that its forks find kernels loaded
_SILENCE = 300.0  # seconds after which a case counts as hanging; a kernel that is compiled takes long
_ENOUGH_CALLS = 300  # of a target, some of which must be answered
_MEMORY = 4 * 2**30  # addresses, of which a child touches a small part


def fuzz(count: int, first: int, totals: Findings, seed: int) -> None:
    """Run the cases ``first`` to ``first + count - 1`` that are not done."""
    _load_kernels(seed)
    for begin in range(first, first + count, _SLICE):
        end = min(begin + _SLICE, first + count)
        if (unit := f"cases {begin} to {end - 1}") not in totals:
            totals.add(unit, *_run_slice(begin, end, seed))
            print(f"up to case {end - 1}: {_figures(totals)}", file=sys.stderr, flush=True)
    if (unit := "targets without an answer") not in totals:
        totals.add(unit, {}, _never_answered(totals))


def _never_answered(totals: Findings) -> list[str]:
    """Return the targets of which every call was refused: what follows the door is then not audited at all."""
    refused = {name.removeprefix("refusals of "): n for name, n in totals.figures.items() if "refusals of" in name}
    return [
        f"all of {number} calls of {target} were refused"
        for target, number in sorted(refused.items())
        if number >= _ENOUGH_CALLS and not totals.figures[f"answers of {target}"]
    ]


def _load_kernels(seed: int) -> None:
    """Run cases of another seed, of which nothing is noted."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, limits[1]))
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        for number in range(_WARM):
            judge(number, seed + 1)
    resource.setrlimit(resource.RLIMIT_AS, limits)


def _run_slice(begin: int, end: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Run cases in children, each beginning behind the case that ended the last one."""
    figures: Counter[str] = Counter()
    findings: list[str] = []
    while begin < end:
        with tempfile.TemporaryDirectory() as folder:
            progress, report = Path(folder) / "progress", Path(folder) / "report"
            progress.write_bytes(struct.pack("<q", begin))
            report.touch()
            child = _fork(begin, end, seed, Path(folder))
            reached, code = _watch(child, progress)
            for line in report.read_text().splitlines():
                entry = json.loads(line)
                figures.update(entry["figures"])
                findings += [entry["finding"]] if "finding" in entry else []
            if code != 0:
                kind = "hang" if code is None else f"crash ({code})"
                target, shown = describe(reached, seed)
                said = (Path(folder) / "errors").read_text(errors="replace")[-300:]
                findings.append(f"{kind}, case {reached}, {target}: {shown} {said!r}")
            begin = end if code == 0 else reached + 1
    return figures, findings


def _fork(begin: int, end: int, seed: int, folder: Path) -> int:
    """Start a child that runs cases in ``folder``."""
    if child := os.fork():
        return child
    code = 70
    try:
        os.setsid()
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open("errors", os.O_WRONLY | os.O_CREAT), 2)
        _run_cases(begin, end, seed, folder)
        code = 0
    finally:
        os._exit(code)


def _watch(child: int, progress: Path) -> tuple[int, int | None]:
    """Wait for a child and return the case it reached, and how it ended: None where it hung."""
    reached, since = -1, time.monotonic()
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        now = struct.unpack("<q", progress.read_bytes())[0]
        if done:
            return now, os.waitstatus_to_exitcode(status)
        if now != reached:
            reached, since = now, time.monotonic()
        elif time.monotonic() - since > _SILENCE:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return reached, None
        time.sleep(0.1)


def describe(number: int, seed: int) -> tuple[str, str]:
    """Return the target and the fuzzed arguments of a case in words."""
    target, arguments, wild_names, _ = draw(number, seed)
    return target.name, ", ".join(f"{name}={_shown(arguments[name])}" for name in wild_names)


def draw(number: int, seed: int) -> tuple[Any, dict[str, Any], list[str], np.random.Generator]:
    """Return target, arguments, names of those that are fuzzed, and the generator of a case."""
    from own_code import OWN_TARGETS
    from targets import TARGETS
    from values import wild

    rng = np.random.default_rng([seed, number])
    targets = [*TARGETS, *OWN_TARGETS]
    weights = np.array([target.weight for target in targets])
    target = targets[int(rng.choice(len(targets), p=weights / weights.sum()))]
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
    "fixed controllers", "Protocol", "from_function", "from_policy", "register_suite", "Observation", "ProblemBatch",
    "controlled",
)  # fmt: skip


def _tame(arguments: dict[str, Any], wild_names: list[str]) -> None:
    """Leave out arguments that only exist to be refused, and make environments cheap."""
    for name in ("popsize", "rewards"):
        if name in arguments and name not in wild_names:
            del arguments[name]


def judge(number: int, seed: int) -> tuple[str, str, Any]:
    """Return the outcome of a case, what was seen, and its target."""
    target, arguments, wild_names, rng = draw(number, seed)
    verdicts = {name: _verdict(target.arguments[name].verdict, arguments[name]) for name in wild_names}
    forbidden = [name for name, verdict in verdicts.items() if verdict is False]
    try:
        target.call(rng, **arguments)
    except (ValueError, TypeError) as error:
        # What a caller's own function raises names the function at most.
        own = [value.__name__ for value in (arguments[name] for name in wild_names) if hasattr(value, "__name__")]
        if str(error).startswith(tuple(own)) and own:
            return "refusal", "", target
        words = [*own, *(word for name in wild_names for word in (name, *target.arguments[name].words))]
        if (problem := _badly_said(error, words)) and not _is_gymnasiums(error):
            return "vague", f"{problem}: {type(error).__name__}: {str(error)[:300]}", target
        if all(verdicts.values()) and None not in verdicts.values():
            return "refused", f"{type(error).__name__}: {str(error)[:300]}", target
        return "refusal", "", target
    except MemoryError:
        return "refusal", "", target  # what the machine has not got
    except RuntimeError as error:
        if "raised" in str(error) and "unction" in str(error):
            return "refusal", "", target  # a function of the caller's own that fails
        return "other error", f"{type(error).__name__}: {str(error)[:300]}", target
    except Exception as error:
        if _is_gymnasiums(error):
            return "refusal", "", target
        return "other error", f"{type(error).__name__}: {str(error)[:300]}", target
    if forbidden:
        return "silent", f"accepted {', '.join(forbidden)}", target
    return "answer", "", target


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


def _run_cases(begin: int, end: int, seed: int, folder: Path) -> None:
    """Run cases, with the present one in a file ``progress`` and what was seen in a file ``report``."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    place = os.open(folder / "progress", os.O_WRONLY)
    with open(folder / "report", "a", buffering=1) as file:
        for number in range(begin, end):
            os.pwrite(place, struct.pack("<q", number), 0)
            started = time.process_time()
            outcome, what, target = judge(number, seed)
            if time.process_time() - started > 60.0:
                outcome, what = "slow", f"{time.process_time() - started:.0f} s"
            figures = {"calls": 1, "constructions": int(target.constructs), f"{outcome}s": 1}
            entry: dict[str, object] = {"figures": figures | {f"{outcome}s of {target.name}": 1}}
            if outcome not in ("answer", "refusal"):
                entry["finding"] = f"{outcome}, case {number}, {target.name}: {describe(number, seed)[1]} -> {what}"
            file.write(json.dumps(entry) + "\n")


def _figures(totals: Findings) -> str:
    names = {"calls": "calls", "constructions": "of them constructions", "answers": "answers"}
    each = [f"{totals.figures[name]} {what}" for name, what in names.items()]
    return f"{', '.join(each)}, {totals.figures['refusals']} refusals in one sentence"


def summary(totals: Findings) -> str:
    """Return the line of figures."""
    return f"cases: {_figures(totals)}, {len(totals.all)} findings"
