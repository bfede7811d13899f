"""Match means with the harness's own values: by name, by the range that a name implies, by reproduction."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..arrays import FloatArray
from ..errors import some_of
from .scores import Run, Scores


def is_proportion(metric: str) -> bool:
    """Whether a metric's name says that its scores are right or wrong: acc_norm, exact_match, correct, pass@1, … ."""
    words = set(re.split(r"[^a-z0-9]+", metric.lower()))
    return bool(words & {"acc", "accuracy", "em", "correct", "match", "pass", "passed"})


def fitting(bounds: tuple[float, float] | None, values: FloatArray) -> tuple[float, float] | None:
    """The range that a metric of this name has, or None if the scores show that it has another."""
    scored = values[~np.isnan(values)]
    if bounds is None or (len(scored) and not (bounds[0] <= scored.min() and scored.max() <= bounds[1])):
        return None
    return bounds


def close(ours: float, native: float, tolerance: float = 1e-9) -> bool:
    """Whether two values are one, but for the rounding of a sum."""
    return abs(ours - native) <= tolerance * max(1.0, abs(native))


_ROUNDED = 9
"""Decimals from which on a value counts as written in full."""


def reproduces(ours: float, native: float, *, percent: bool = True) -> bool:
    """Whether our mean is the value that a harness reports, on the scale and with the digits of that value.

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
    """Mean over questions of their means over repeats, of (n, K) scores with NaN where there is none; NaN of none."""
    count = (~np.isnan(values)).sum(axis=1)
    scored = count > 0
    return float((np.nansum(values, axis=1)[scored] / count[scored]).mean()) if scored.any() else np.nan


def native_mean(part: Scores) -> float | None:
    """The mean that the harness itself would report: over all repeats, or over repeat 0; None without a score."""
    mean = mean_of_questions(part.values[:, :1] if part.native_is_first else part.values)
    return None if mean != mean else mean


def is_reproduced(part: Scores) -> bool:
    """Whether the scores have the mean that the harness reports; True where it reports none."""
    ours = None if part.native is None else native_mean(part)
    return ours is None or part.native is None or reproduces(ours, part.native)


def checked(run: Run) -> Run:
    """The run with `mean_mismatch` on all scores whose mean is not the harness's own value, and a note that says so.

    The code stays with the scores in whatever is made of them: comparisons, pairs, slices.
    """
    odd = [part for part in (*run.scores, *run.parts) if not is_reproduced(part)]
    if not odd:
        return run

    def marked(part: Scores) -> Scores:
        fine = MISMATCH in part.diagnostics or is_reproduced(part)
        return part if fine else replace(part, diagnostics=(*part.diagnostics, MISMATCH))

    said = [f"{part.task} {part.metric} {part.native:.4g} and {native_mean(part):.4g}" for part in odd]
    note = (
        f"{run.name}: the scores that are here do not have the mean that the harness reports (reported and found: "
        f"{some_of(said, 3, '; ')}), so do not rely on what is made of them (mean_mismatch)"
    )
    notes = run.notes if note in run.notes else (*run.notes, note)
    return replace(run, scores=tuple(map(marked, run.scores)), parts=tuple(map(marked, run.parts)), notes=notes)


_SHARE, _PERCENT = 4, 2
"""Decimals that a harness keeps at least where it rounds: 0.2692, 26.92 %."""


UNNAMED = "mean"
"""The metric of scores whose mean several native values equal."""


def agreed(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """The runs with one metric for the same scorer of the same task, and a note where several native values fit.

    A run that scores 0 throughout cannot tell its win rate from its mean reward; a run beside it can (`Scores.names`).
    """
    common: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for run in runs:
        for part in run.scores:
            if part.names is not None:
                key = (run.harness, part.task, part.scorer)
                common[key] = tuple(name for name in common.get(key, part.names) if name in part.names)
    notes = [
        f"{task}: the mean of the scores of {scorer} may be any of its metrics {', '.join(names)}; "
        f"the row is called {UNNAMED}, and `metrics` names the right one"
        for (_, task, scorer), names in common.items()
        if len(names) > 1
    ]
    return [_renamed(run, common) for run in runs], notes


def agreed_pairs(pairs: Sequence[tuple[Run, Run]]) -> tuple[list[tuple[Run, Run]], list[str]]:
    """Pairs of runs whose metrics have names that all of them allow; see `agreed`."""
    runs, notes = agreed([run for pair in pairs for run in pair])
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
    sequential = [
        {**record, "metric": old.get((record["task"], record["scorer"], record["metric"]), record["metric"])}
        for record in run.sequential
    ]
    return replace(run, scores=scores, groups=tuple(groups), sequential=tuple(sequential))
