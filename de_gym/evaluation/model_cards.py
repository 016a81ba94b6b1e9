"""What is known of every controller that comes with the package, from its file and the stored results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files

import numpy as np

from de_gym.controllers import DEFAULT, RecurrentController, ResidualController, available, load
from de_gym.controllers.pretrained import CHECKSUMS
from de_gym.evaluation.ladder import Ladder
from de_gym.evaluation.score_tables import CONTROLLERS, studies
from de_gym.evaluation.table import Cell, Table, interval_text, table
from de_gym.tensor_files import read_tensor_file


def controllers_table() -> Table:
    """Return one row per shipped controller, the default first: what it is for, and its size."""
    rows = []
    for name in _names():
        size, _ = _size(name)
        individuals = load(name).population_size
        shown = f"**`{name}`**" if name == DEFAULT else f"`{name}`"
        rows.append([Cell(shown), Cell(_description(name)), _whole(individuals, "any"), Cell(f"{size:,}", size)])
    return table(["name", "what it is", "individuals", "trained numbers"], rows, "llrr")


def model_cards(ladders: Sequence[Ladder]) -> str:
    """Return a card in Markdown for every shipped controller."""
    return "\n\n".join(_card(name, ladders) for name in _names())


def _card(name: str, ladders: Sequence[Ladder]) -> str:
    size, num_bytes = _size(name)
    facts = {
        "What it is": f"{_description(name)}.",
        "Made by": training_commands().get(name, "not noted") + ".",
        "Size": f"{size:,} trained numbers, {num_bytes / 1000:,.1f} kB of safetensors; reading it runs no code.",
        **_training(name),
        "Results": _results(name, ladders),
        "sha256": f"`{CHECKSUMS[name]}`",
    }
    lines = "\n".join(f"- **{title}**: {text}" for title, text in facts.items() if text)
    return f"## {name}\n\n{lines}"


def _training(name: str) -> dict[str, str]:
    """Return on what a controller was trained, and what it got better at."""
    controller = load(name)
    if not isinstance(controller, RecurrentController):
        known = ", ".join(f"{key.replace('_', ' ')} {_shown(value)}" for key, value in _plain(controller.info).items())
        return {
            "Trained on": "random problems and functions of CEC'13, drawn anew in every generation; nothing of CEC'17.",
            "Training": f"{known}." if known else "",
            "Made for": "any number of coordinates, any budget, any population size.",
            "Local search": _local_search(controller),
        }
    settings, measured = controller.info.env_settings, controller.info.results
    returns = [
        f"{means['trained']:.3f} on {kind} functions (untrained {means['untrained']:.3f}, random {means['random']:.3f})"
        for kind, means in ((kind, entry["mean_return"]) for kind, entry in measured.items())  # type: ignore[index]
    ]
    return {
        "Trained on": f"{settings.get('suite')} in {settings.get('dimension')} dimensions, functions "
        f"{_ranges(settings.get('functions'))}; seed {controller.info.seed}, which is the only one.",
        "Made for": f"populations of exactly {controller.population_size}; best in runs as long as those it was "
        "trained on.",
        "Mean returns": f"{'; '.join(returns)}." if returns else "",
    }


def _local_search(controller: ResidualController) -> str:
    """Return where a descent may take over, by the budgets and dimensions of the maps."""
    shares = controller.descent_shares[0].reshape(len(controller.budgets), len(controller.dimensions))
    if not shares.any():
        return ""
    rows = [
        f"{_significant(1e4 * 10**budget)} n: {', '.join(f'{share:.0%}' for share in row)}"
        for budget, row in zip(controller.budgets, shares, strict=True)
    ]
    sizes = ", ".join(_significant(10 * 10**dimension) for dimension in controller.dimensions)
    return f"chosen, not trained: last part of a run in which a descent may begin, for n of {sizes}: {'; '.join(rows)}."


def _significant(value: float) -> str:
    """Return a number to two digits: 130, 10,000, 32."""
    return f"{float(f'{value:.2g}'):,.0f}"


def _results(name: str, ladders: Sequence[Ladder]) -> str:
    """Return score, interval and place under every protocol that has it."""
    parts = []
    for ladder in ladders:
        if rung := ladder.rungs.get(name):
            score = f"{rung.score:.2f} ({interval_text(*rung.interval)})"
            parts.append(f"{ladder.title}: {score}, place {rung.place} of {len(ladder.rungs)}")
    return f"average performance score on CEC'17, {'; '.join(parts)}." if parts else ""


def training_commands() -> dict[str, str]:
    """Return how each controller was trained, from the list beside the weights."""
    text = files("de_gym.controllers").joinpath("weights", "README.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {row[0]: row[2].partition(": ")[0] for row in rows if row[0] in CHECKSUMS}


def _names() -> list[str]:
    return sorted(available(), key=lambda name: (name != DEFAULT, name))


def _description(name: str) -> str:
    described = [study[name] for heading, study in studies().items() if name in study and heading == CONTROLLERS]
    elsewhere = [f"{heading} {study[name]}" for heading, study in studies().items() if name in study]
    return (described or elsewhere or ["trained by the command below"])[0]


def _size(name: str) -> tuple[int, int]:
    """Return how many trained numbers a controller's file holds, and its bytes."""
    with as_file(files("de_gym.controllers") / "weights" / f"{name}.safetensors") as path:
        tensors = read_tensor_file(path).tensors
        trained = [tensor for key, tensor in tensors.items() if key != "descent_shares"]
        return int(sum(np.size(tensor) for tensor in trained)), path.stat().st_size


def _plain(info: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in info.items() if isinstance(value, int | float) and key != "seed"}


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _whole(value: int | None, missing: str) -> Cell:
    return Cell(missing) if value is None else Cell(str(value), value)


def _ranges(numbers: object) -> str:
    """Return function numbers as one range where they are one.

    >>> _ranges([1, 2, 3]), _ranges([1, 3])
    ('f1 to f3', 'f1, f3')
    """
    listed = [int(number) for number in numbers] if isinstance(numbers, list | tuple) else []
    if listed == list(range(listed[0], listed[-1] + 1)) if listed else False:
        return f"f{listed[0]} to f{listed[-1]}"
    return ", ".join(f"f{number}" for number in listed)
