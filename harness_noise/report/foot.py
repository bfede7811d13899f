"""What stands at the foot of every page: when it was made, from which runs, by which command, and how, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..results.rows import Difference, Estimate
from ..settings import ESTIMATORS
from .columns import shorten

RUNS = 40
_TESTS = {
    "t": "the t test",
    "sign": "the exact sign test",
    "permutation": "a permutation test",
    "bootstrap": "the bootstrap",
    "wild": "the wild cluster bootstrap",
}
_ADJUST = {
    "holm": "p-values are adjusted by Holm's method",
    "bh": "p-values are adjusted by Benjamini and Hochberg's method",
    "none": "p-values are not adjusted",
}


@dataclass(frozen=True, slots=True)
class Foot:
    """The provenance of a page."""

    made: str
    """The day."""
    command: str | None
    """As it was typed, where there was one."""
    runs: tuple[tuple[str, str], ...]
    """(model, where it was read from)."""
    more_runs: int
    words: str
    """The settings in a few sentences."""
    settings: list[tuple[str, str]]
    """All of them."""


def foot(
    settings: Mapping[str, Any],
    items: Sequence[Estimate | Difference],
    runs: Iterable[tuple[str, str]],
    command: str | None,
) -> Foot:
    """The foot of a page of these rows and (model, path) runs."""
    found = list(dict.fromkeys((model, path) for model, path in runs if path))
    now = datetime.now().astimezone()
    return Foot(
        f"{now.day} {now:%B %Y}",
        command,
        tuple((shorten(model, 60), shorten(path, 200)) for model, path in found[:RUNS]),
        max(0, len(found) - RUNS),
        in_words(settings, items),
        rows(settings),
    )


def in_words(settings: Mapping[str, Any], items: Sequence[Estimate | Difference]) -> str:
    """How the numbers of these rows were computed."""
    level = f"{100 * float(settings.get('level') or 0.95):g} %"
    compared = [item for item in items if isinstance(item, Difference)]
    bare = any(item.test in ("fisher", "reference") for item in compared)
    out = [_paired(compared)] if compared else []
    if settings.get("questions_are") == "fixed":
        out.append("The questions are all there is; the noise is that of the repeated answers alone.")
    elif settings.get("se") in ESTIMATORS and items and not bare:
        specs = list(dict.fromkeys(shorten(item.cluster, 60) for item in items if item.cluster))
        of = f"clustered by {', '.join(specs[:4])}" if specs else "independent of each other"
        out.append(f"Questions are a sample, {of}; standard errors are {ESTIMATORS[settings['se']]}.")
    method = settings.get("interval")
    text = f"Intervals have {level} coverage" + ("" if method in (None, "auto") else f" (method: {method})")
    if compared and not bare and settings.get("test") in _TESTS:
        text += f"; differences are tested by {_TESTS[settings['test']]}"
    if len(items) > 1 and compared and settings.get("adjust") in _ADJUST:
        text += f"; {_ADJUST[settings['adjust']]}"
    out.append(text + ".")
    if settings.get("margin") is not None:
        out.append(f"Two models are equivalent if they differ by less than {settings['margin']:g}.")
    if settings.get("repeats_are") == "runs":
        out.append("Repeats are runs that move all questions together.")
    missing = {"drop": "are left out and counted", "zero": "count as wrong"}.get(str(settings.get("missing")))
    if missing and not bare:
        out.append(f"Answers without a score {missing}.")
    return " ".join(out)


def _paired(items: Sequence[Difference]) -> str:
    """What is compared with what."""
    if any("reference_noise" in item.diagnostics for item in items):
        return "Two numbers are compared; their noise is that of the benchmark's profile."
    if any(item.test == "fisher" for item in items):
        return "Two counts are compared; which question is which is not known."
    if any("unpaired" in item.diagnostics for item in items):
        return "Two samples of different questions are compared."
    return "Differences are paired: question by question, over the questions that both have answered."


def rows(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The settings as a page lists them, without those that were left open."""
    return [
        (str(name), "yes" if value is True else "no" if value is False else str(value))
        for name, value in settings.items()
        if value is not None
    ]
