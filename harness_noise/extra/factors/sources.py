"""Noise by factor for runs and arrays: prompt, seed, judge, and which one to spend answers on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ...analysis.sample import checked_names
from ...arrays import NamesLike
from ...data.clusters import split_crossed
from ...data.native_values import are_zero_one
from ...data.notes import Note
from ...data.numbers import number_array
from ...data.questions import occurrences
from ...data.scores import Run, Scores
from ...data.units import PERCENT, Scale, decimals
from ...errors import InputError, check_count
from ...stats.contrast import cluster_codes
from .judges import with_judges
from .results import FactorRow, Factors
from .stats import RESIDUAL, Component, components, reduction

FEW_LEVELS = 5
"""Levels below which a factor's variance is too little known to advise where answers help."""
SCORER = "scorer"
RUN_LEVEL = ("task", "model", "run", SCORER)
"""Columns that every run has: `--factor prompt=task` where the tasks are variants of one prompt, `judge=scorer` where
several scorers graded the same answers."""


def factor_noise(
    scores: ArrayLike,
    questions: NamesLike,
    factors: Mapping[str, NamesLike],
    more: int = 1000,
    *,
    zero_one: bool | None = None,
) -> Factors:
    """Estimate the variance each factor (prompt, seed, judge) adds to N answers, NaN dropped. ValueError at bad input.

    Args:
        scores: (N,) scores; NaN is left out.
        questions: (N,) which question each answers.
        factors: name → (N,) level of each answer. A factor nested in another needs levels that are
            unique within it: name them ("prompt 1/seed 3").
        more: how many answers the advice is about.
        zero_one: the answers are right or wrong, shown in per cent. None: where the scores are 0 and 1.

    Raises:
        ValueError: lengths that differ, no factor, an infinite score, fewer than two scores, or `more` below 1.
    """
    check_count("more", more)
    y = number_array(scores)
    if not factors:
        raise ValueError("name at least one factor")
    if y.ndim != 1 or any(len(column) != len(y) for column in (questions, *factors.values())):
        raise ValueError("scores, questions and every factor must be of one length")
    kept = ~np.isnan(y)
    coded = [
        (name, cluster_codes(checked_names(name, levels, len(y), "answer"))[0][kept])
        for name, levels in (("question", questions), *factors.items())
    ]
    y = y[kept]
    variances = components(y, coded)
    whole = sum(max(0.0, component.variance or 0.0) for component in variances)
    variance = sum(max(0.0, component.var_mean or 0.0) for component in variances)
    few = [component for component in variances if len(component.parts) == 1 and 1 < component.levels < FEW_LEVELS]
    gains = {} if few or variance <= 0 else _gains(variances, len(y), more, variance)
    rows = tuple(_factor_row(component, whole, gains.get(component.name)) for component in variances)
    if zero_one is None:
        zero_one = bool(np.isin(y, (0.0, 1.0)).all()) and 0 < y.mean() < 1
    advice = _no_advice_sentence(few, variances, zero_one=zero_one) if few else _advice(gains, more)
    return Factors(
        len(y),
        float(y.mean()),
        rows,
        advice,
        tuple(Note("few_levels", _few_levels_sentence(component)) for component in few),
        zero_one,
    )


def _gains(variances: Sequence[Component], answers: int, more: int, variance: float) -> dict[str, float]:
    """Return {factor: share of the mean's variance that `more` answers at new levels remove}, without unknown ones."""
    gains: dict[str, float] = {}
    for component in variances:
        if len(component.parts) == 1 or component.name == RESIDUAL:
            gain = reduction(variances, component.name, answers, more)
            gains |= {} if gain is None else {component.name: gain / variance}
    return gains


def _factor_row(component: Component, whole: float, gain: float | None) -> FactorRow:
    """Return one factor's output row: its variance, limits, share of an answer's variance, SE of the mean, and gain."""
    return FactorRow(
        component.name,
        component.variance,
        component.low,
        component.high,
        max(0.0, component.variance) / whole if component.variance is not None and whole > 0 else None,
        component.df,
        component.levels,
        max(0.0, component.var_mean) ** 0.5 if component.var_mean is not None else None,
        gain,
        component.diagnostics,
    )


def _no_advice_sentence(few: Sequence[Component], components: Sequence[Component], *, zero_one: bool) -> str:
    """Return a sentence that factors have too few levels for advice, and which factor adds most so far."""
    names = [f"{component.name} has only {component.levels} levels" for component in few]
    text = f"{' and '.join(names)}, so no advice can be given yet"
    most = max(components, key=lambda component: component.var_mean or 0.0)
    if not most.var_mean or most.var_mean <= 0:
        return f"{text}."
    se = most.var_mean**0.5
    added = (PERCENT if zero_one else Scale()).text(se, decimals(se), unit=True)
    return f"{text}. So far the {most.name} adds most (SE {added})."


def _few_levels_sentence(component: Component) -> str:
    """Return a sentence that a factor has few levels, and between which limits its variance lies."""
    text = f"{component.name} has {component.levels} levels"
    if component.high is None or component.low is None:
        return f"{text}, too few to say how large its variance is."
    width = f", {component.high / component.low:,.0f} times as large" if component.low > 0 else ""
    low = max(0.0, component.low)
    return f"{text}: its variance lies anywhere between {low:.2g} and {component.high:.2g}{width} (95% interval)."


def _advice(gains: Mapping[str, float], more: int) -> str:
    best = max(gains, key=lambda name: (gains[name], name == "question"), default=None)
    if best is None or gains[best] <= 0:
        return "Nothing here varies enough to say where more answers would help."
    places = {"question": "new questions", RESIDUAL: "further answers in the same places"}
    return (
        f"The next {more:,} answers help most on {places.get(best, f'new levels of {best}')}: they lower the variance "
        f"of the mean by {100 * gains[best]:.0f}%."
    )


def factors_of_runs(runs: Sequence[Run], factors: Mapping[str, str], more: int = 1000) -> Factors:
    """Estimate the variance that each factor adds, over all runs' answers. Refuse several metrics, crossed clusters.

    A question key that comes in two tasks or runs is one question.

    Args:
        runs: read with the columns that `factors` names.
        factors: name → column of a score table, or `task`, `model`, `run`.
        more: how many answers the advice is about.

    Raises:
        InputError: more than one metric, or a column that a run does not have.
    """
    judged = SCORER in factors.values()
    kinds = {(part.metric, "" if judged else part.scorer) for run in runs for part in run.scores}
    if len(kinds) != 1:
        names = ", ".join(sorted(" / ".join(filter(None, kind)) for kind in kinds)) or "none"
        named = "`metrics`" if judged else "`metrics` and `scorers`, or make the judge a factor, `factors` judge=scorer"
        raise InputError(f"noise by factor is of one metric. There are {names}: name one with {named}")
    scores: list[np.ndarray] = []
    questions: list[str] = []
    levels: dict[str, list[str]] = {name: [] for name in factors}
    answers: list[str] = []
    parts = [(run, part) for run in runs for part in run.scores]
    by_text = len(parts) > 1 and all(part.questions.inputs is not None for _, part in parts)
    for run, part in parts:
        if split_crossed(part.clusters) is not None:
            raise InputError(
                f"{run.name}: noise by factor takes no crossed clusters: name either way as a factor, `factors` "
                "NAME=COLUMN, and leave `cluster` out"
            )
        K = part.values.shape[1]
        scores.append(part.values.ravel())
        keys = occurrences(part.questions.inputs or ()) if by_text else part.questions.keys
        questions += [key for key in keys for _ in range(K)]
        answers += [f"{run.name}\x1f{part.task}\x1f{key}\x1f{j}" for key in part.questions.keys for j in range(K)]
        for name, column in factors.items():
            levels[name] += _levels_of_factor(run, part, name, column)
    if judged and len(set(answers)) > len(set(questions)):  # several judges graded the same answers
        levels = {"answer": answers} | levels
    zero_one = are_zero_one([part for _, part in parts])
    result = factor_noise(np.concatenate(scores), questions, levels, more, zero_one=zero_one)
    return with_judges(result, runs) if judged else result


def _levels_of_factor(run: Run, part: Scores, name: str, column: str) -> list[str]:
    """Return one factor's level (prompt, model, task, …) for each answer of the scores. Refuse unknown columns."""
    if part.factors is not None and column in part.factors:
        return [level for row in part.factors[column] for level in row]
    of_all = {"task": part.task, "model": run.model, "run": run.name, SCORER: part.scorer}
    if column in of_all:
        return [of_all[column]] * part.values.size
    have = ", ".join([*(part.factors or ()), *RUN_LEVEL])
    raise InputError(f"{run.name}: `factors` {name}={column}: there is no such column. There are {have}")
