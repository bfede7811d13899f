"""Match means with the harness's own values: by name, by the range that a name implies, by reproduction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import fsum

import numpy as np

from ..arrays import FloatArray
from ..errors import some_of
from . import doubled
from .notes import Note
from .scores import Run, Scores
from .units import PERCENT, Scale, is_proportion


def are_zero_one(parts: Sequence[Scores]) -> bool:
    """Return True if all scores are 0 or 1, or shares of right answers, so that they are shown in percent.

    A part that holds one value alone, 0 or 1, says nothing. The other parts say it, or a 0 here and a 1 there.
    """
    kinds = [_zero_one(part) for part in parts]
    if None not in kinds or False in kinds:
        return all(kinds)
    return True in kinds or len({float(x) for part in parts for x in _scored(part)[:1]}) == 2


def _scored(part: Scores) -> FloatArray:
    return part.values[~np.isnan(part.values)]


def _zero_one(part: Scores) -> bool | None:
    """Return True if these scores are 0/1 or shares, False if not, None if one constant value leaves it open."""
    if part.unit is not None or part.per is not None:
        return False
    if part.of_right:
        return True
    x = _scored(part)
    if "chance_corrected" in part.diagnostics:  # a wrong answer is worth less than 0, a right one still 1
        return bool(((x <= 0) | (x == 1)).all())
    named = is_proportion(part.metric)
    if part.bounds not in (None, (0.0, 1.0)):
        return False
    if part.corrected is not None:  # its values are not scores
        given = part.corrected.scores()
        return named or bool(np.isin(given[~np.isnan(given)], (0.0, 1.0)).all())
    if named:
        return bool(((x >= 0) & (x <= 1)).all())
    if not ((x == 0) | (x == 1)).all():
        return False
    return True if part.bounds is not None or (len(x) and (x != x[0]).any()) else None


def fitting_bounds(bounds: tuple[float, float] | None, values: FloatArray) -> tuple[float, float] | None:
    """Return the range `bounds` unchanged, or None if a score lies outside it."""
    scored = values[~np.isnan(values)]
    if bounds is None or (len(scored) and not (bounds[0] <= scored.min() and scored.max() <= bounds[1])):
        return None
    return bounds


def nearly_equal(ours: float, native: float, tolerance: float = 1e-9) -> bool:
    """Return True if two values are equal up to the rounding error of a floating-point sum."""
    return abs(ours - native) <= tolerance * max(1.0, abs(native))


_ROUNDED = 9
"""Decimals from which on a value counts as written in full."""


def reproduces(ours: float, native: float, *, percent: bool = True) -> bool:
    """Return True if our mean (or it in percent), rounded to the harness's decimals (4 or more, 2 in %), is its value.

    0.269230769… is 0.2692 rounded, and 26.92 in percent.

    Args:
        ours: on the scale of the scores.
        native: as reported.
        percent: whether one of the two may be a percentage of the other's scale.
    """
    if _agree(ours, native, _SHARE if abs(native) <= 1 else _PERCENT):
        return True
    # next to 0 every scale agrees with every other
    return percent and (
        (abs(native) >= 0.1 and _agree(100 * ours, native, _PERCENT))
        or (0.01 <= abs(native) <= 1 and _agree(ours / 100, native, _SHARE))
    )


def _agree(ours: float, native: float, fewest: int) -> bool:
    tolerance = 1e-9 * max(1.0, abs(native))
    decimals = len(f"{native:.12f}".rstrip("0").partition(".")[2])
    if decimals < _ROUNDED:
        tolerance += 0.5 * 10.0 ** -max(decimals, fewest)
    return abs(ours - native) <= tolerance


MISMATCH = "mean_mismatch"


def mean_of_questions(values: FloatArray) -> float:
    """Return the mean over questions of each question's mean over its answers. NaN if nothing is scored."""
    count = (~np.isnan(values)).sum(axis=1)
    scored = count > 0
    return float((np.nansum(values, axis=1)[scored] / count[scored]).mean()) if scored.any() else np.nan


def native_mean(part: Scores) -> float | None:
    """Return our mean to hold against the harness's: over all repeats, or the first. None if nothing is scored."""
    mean = mean_of_questions(part.values[:, :1] if part.native_is_first else part.values)
    return None if mean != mean else mean


def is_reproduced(part: Scores) -> bool:
    """Return True if the harness's own mean follows from the scores, or there is no such mean or no score."""
    ours = None if part.native is None else native_mean(part)
    return ours is None or part.native is None or reproduces(ours, part.native)


def drop_other_native(part: Scores) -> Scores:
    """Remove the harness's own mean if it averages over all answers, so that it cannot equal ours.

    It is the mean over answers, however many each question has, where missing ones are left out or count as 0.
    """
    if part.native is None or is_reproduced(part):
        return part
    scored = part.values[~np.isnan(part.values)]
    total, n = fsum(scored), len(scored) - part.n_zero
    right = any(reproduces(total / k, part.native) for k in {n, n + part.n_missing} - {0})
    return replace(part, native=None) if right else part


def means_as_text(part: Scores, *means: float | None) -> str:
    """Format means of these scores with four digits, joined by "and": "63.73% and 63.9%", "2.41"."""
    scale = PERCENT if are_zero_one([part]) else Scale()
    return " and ".join(f"{scale.times * mean:.4g}{scale.level}" for mean in means if mean is not None)


def check_native(run: Run) -> Run:
    """Return the run with `mean_mismatch` and a note if tasks' means are not the harness's, and `doubled_questions`.

    `doubled_questions` is put on the scores that need it, too.

    Mean mismatch is on all scores whose mean is not the harness's own value, and a note that says so.

    The code stays with the scores in whatever is made of them: comparisons, pairs, slices.
    """
    run = doubled.mark_doubled(run)
    odd = [part for part in (*run.scores, *run.parts) if not is_reproduced(part)]
    if not odd:
        return run

    def marked(part: Scores) -> Scores:
        fine = MISMATCH in part.diagnostics or is_reproduced(part)
        return part if fine else replace(part, diagnostics=(*part.diagnostics, MISMATCH))

    said = [f"{part.task} {part.metric} {means_as_text(part, part.native, native_mean(part))}" for part in odd]
    note = Note(
        MISMATCH,
        f"{run.name}: the scores that are here do not have the mean that the harness reports (reported and found: "
        f"{some_of(said, 3, '; ')}), so do not rely on what is made of them (mean_mismatch)",
    )
    notes = run.notes if note in run.notes else (*run.notes, note)
    return replace(run, scores=tuple(map(marked, run.scores)), parts=tuple(map(marked, run.parts)), notes=notes)


_SHARE, _PERCENT = 4, 2
"""Decimals that a harness keeps at least where it rounds: 0.2692, 26.92%."""


UNNAMED = "mean"
"""The metric of scores whose mean several native values equal."""


def agree_on_metrics(runs: Sequence[Run]) -> tuple[list[Run], list[Note]]:
    """Give runs one metric name and range per scorer, where a run alone leaves it open. Return runs and notes.

    A run that scores 0 throughout cannot tell its win rate from its mean reward; a run beside it can (`Scores.names`).
    Nor can it tell a share from a percentage: it takes the range from 0 to 1 that the scores of the others have.
    """
    common: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for run in runs:
        for part in run.scores:
            if part.names is not None:
                key = (run.harness, part.task, part.scorer)
                common[key] = tuple(name for name in common.get(key, part.names) if name in part.names)
    notes = [_unproven(task, scorer, names) for (_, task, scorer), names in common.items() if len(names) > 1]
    return _on_one_range([_renamed(run, common) for run in runs]), notes


def _on_one_range(runs: Sequence[Run]) -> list[Run]:
    """Return the runs, constant scores (all 0 or all 1) with range [0, 1] if other runs have scores between 0 and 1."""
    ends: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for run in runs:
        for part in run.scores:
            ends.setdefault(part.key, []).append(_score_limits(part))
    shares = {key for key, each in ends.items() if 0 <= min(x for x, _ in each) < max(x for _, x in each) <= 1}
    if not shares:
        return list(runs)

    def ranged(part: Scores) -> Scores:
        return (
            replace(part, bounds=(0.0, 1.0)) if part.key in shares and _score_limits(part) in ((0, 0), (1, 1)) else part
        )

    return [replace(run, scores=tuple(map(ranged, run.scores))) for run in runs]


def _score_limits(part: Scores) -> tuple[float, float]:
    """Return the lowest and highest score. (−∞, ∞) if the range is declared, or if nothing is scored."""
    if part.bounds is not None or part.corrected is not None or not part.values.size:
        return -np.inf, np.inf
    low, high = float(np.fmin.reduce(part.values, axis=None)), float(np.fmax.reduce(part.values, axis=None))
    return (-np.inf, np.inf) if np.isnan(low) else (low, high)


def _unproven(task: str, scorer: str, names: Sequence[str]) -> Note:
    """Return the note that it is unknown which of the task's metrics these scores are."""
    others = [name for name in names if name != UNNAMED]
    if len(others) > 1:
        said = (
            f"several metrics equal the mean of the scores of {scorer}: {', '.join(others)}. The row is called "
            f"{UNNAMED}, and you choose one with `metrics`"
        )
        return Note("metric_not_known", said).of(task)
    said = (
        f"nothing shows that the metric {others[0]} of {scorer} is the mean of its scores, because all scores "
        f"are equal or the log has no results. The row is called {UNNAMED}, and `metrics` names it if that is right"
    )
    return Note("metric_not_known", said).of(task)


def agreed_pairs(pairs: Sequence[tuple[Run, Run]]) -> tuple[list[tuple[Run, Run]], list[Note]]:
    """Return the pairs of runs after `agree_on_metrics` over all of them, and its notes."""
    runs, notes = agree_on_metrics([run for pair in pairs for run in pair])
    return list(zip(runs[::2], runs[1::2], strict=True)), notes


def _renamed(run: Run, common: dict[tuple[str, str, str], tuple[str, ...]]) -> Run:
    def named(part: Scores) -> Scores:
        names = common.get((run.harness, part.task, part.scorer)) if part.names is not None else None
        return part if names is None else replace(part, metric=names[0] if len(names) == 1 else UNNAMED, names=names)

    scores = tuple(map(named, run.scores))
    old = {(part.task, part.scorer, part.metric): new.metric for part, new in zip(run.scores, scores, strict=True)}
    if all(key[2] == metric for key, metric in old.items()):
        return run
    groups = []
    for group in run.groups:
        names = {old.get((task, group.scorer, group.metric), group.metric) for task in group.tasks}
        groups.append(replace(group, metric=names.pop()) if len(names) == 1 else group)
    stops = [
        {**record, "metric": old.get((record["task"], record["scorer"], record["metric"]), record["metric"])}
        for record in run.stops
    ]
    return replace(run, scores=scores, groups=tuple(groups), stops=tuple(stops))
