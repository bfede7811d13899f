"""The public functions on totals: `totals`, `compare_totals`, `gate_totals`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from ...analysis.sample import is_scored
from ...arrays import FloatArray, picked
from ...data.notes import Note
from ...data.scores import Run, Scores
from ...errors import InputError, check_one_of
from ...results.forms import finite
from ...settings import Settings
from ...stats.decision import holm
from ...stats.moments import run_component
from ...stats.power import noncentrality
from ..ground import needed, refuse_others
from ..published import check_mean
from . import stats
from .read import Key, TotalsOf, are_answers, read_totals
from .results import RunMean, Total, TotalDifference, Totals, TotalsComparison

Gate: TypeAlias = Any
GateRow: TypeAlias = Any
"""A result of another extra, which is asked for by its public name."""
Rule = Literal["regression", "no-loss"]
_NO_QUESTIONS = "totals of runs have no single questions or answers, which {} is about: leave it out"


def totals(
    *sources: Any,
    level: float = 0.95,
    range: tuple[float, float] | None = None,
    columns: Mapping[str, str] | None = None,
    **choices: Any,
) -> Totals:
    """Return how far the runs of a configuration differ, and where one further run lies (unknown for a single total).

    Parameters
    ----------
    *sources
        A table, or several, one after the other or in a list: a row for each run with a score, and `run`, `n`
        (questions), `task`, `metric` or `model` if it has them; a path, a DataFrame, or a list of dictionaries. Or
        answers: a run with several to each question, whose repeats are then the runs, or several runs of one model.
    level
        Coverage of the interval and of the limits of a further run.
    range
        Lowest and highest value of the metric; None: 0 to 1 if all scores lie there.
    columns
        What the columns are called, such as ``{"score": "acc"}``.
    **choices
        Of answers: how paths are read, see `Choices`. Other keywords of `analyze` are refused.

    Returns
    -------
    Totals
        A row for each model, task and metric. Of answers also the mean of each run (`run_means`); `sd_answers` is then
        an estimate. The estimand is these questions: totals say nothing of others.

    Raises
    ------
    InputError
        A table that cannot be used, answers of a single run with one to each question, or another keyword.

    References
    ----------
    Hahn & Meeker (1991), Statistical Intervals, §4.7.
    """
    tables = [table for source in sources for table in _tables(source)]
    if any(map(are_answers, tables)):
        return _totals_of_answers(tables, choices | {"level": level, "range": range, "columns": columns})
    refuse_others(_NO_QUESTIONS, choices)
    settings = Settings(level=level, range=range)
    rows = [_total(part, level) for one in tables for part in read_totals(one, columns or {}, settings.range)]
    return Totals(_settings(settings), tuple(rows), notes=_notes(rows))


def _totals_of_answers(sources: Sequence[Any], choices: Mapping[str, Any]) -> Totals:
    """Return totals of a run's repeats, or of several runs of a model, from answers. Refuse one answer of one run.

    Raises:
        InputError: there is one answer to each question, of one run.
    """
    from ...api.keywords import Request

    refuse_others("`totals` takes the means of runs and has no use for {}: leave it out", choices, _OF_READING)
    reading: Any = {name: value for name, value in choices.items() if name in (*_OF_READING, "progress", "say")}
    request = Request.of("analyze", None, reading | {"apart": True}, sources=sources)
    found = list(_by_model(request.runs(sources), request.settings.level))
    if not found:
        raise InputError(
            "`totals` takes a table with one score for each run, several answers to each question, or several runs of "
            "one model, and there is one answer to each question of one run"
        )
    rows = [row for row, _, _ in found]
    means = tuple(mean for _, each, _ in found for mean in each)
    lost = tuple(note for _, _, note in found if note is not None)
    return Totals(_settings(request.settings), tuple(rows), means, (*_notes(rows), *lost))


_OF_READING = (
    *("tasks", "metrics", "scorers", "only", "columns", "format_file", "follow_links", "missing", "range", "level"),
    *("measures", "prices", "apart"),
)


def compare_totals(
    a: Any,
    b: Any = None,
    *,
    level: float = 0.95,
    range: tuple[float, float] | None = None,
    columns: Mapping[str, str] | None = None,
    **others: Any,
) -> TotalsComparison:
    """Return A − B of two sets of totals on the same questions, by Welch's test.

    Parameters
    ----------
    a
        Totals of A, as of `totals`; without `b` a list of both, or one table of two models.
    b
        Totals of B.
    level, range, columns
        As of `totals`.
    **others
        Keywords of `compare`, which are about answers: refused.

    Returns
    -------
    TotalsComparison
        A row for each task and metric that both have.

    Raises
    ------
    InputError
        Fewer than two runs on a side, other numbers of questions, or a table that cannot be used.

    References
    ----------
    Welch (1947), Biometrika 34.
    """
    refuse_others(_NO_QUESTIONS, others)
    settings = Settings(level=level, range=range)
    first, second = _sides(_tables(a) if b is None else [a, b], columns or {}, settings)
    rows = [_difference(first[key], second[key], level) for key in first if key in second]
    if not rows:
        raise InputError("A and B have no task and metric in common")
    return TotalsComparison(_settings(settings), tuple(_verdicts(rows)), (_DIRECTION,))


def gate_totals(
    run: Any,
    against: Any = None,
    *,
    floor: float | None = None,
    margin: float | None = None,
    rule: Rule = "regression",
    level: float = 0.95,
    range: tuple[float, float] | None = None,
    columns: Mapping[str, str] | None = None,
    **others: Any,
) -> Gate:
    """Decide whether the totals of a run, or of several, are good enough.

    Parameters
    ----------
    run
        Totals of the new configuration: one run is held against the limit of a further run of the baseline, two or more
        by Welch's test.
    against
        Totals of the baseline, two runs or more.
    floor
        The mean that must be reached, instead of a baseline; it takes two runs or more.
    margin
        The loss that is accepted, on the metric's scale (0).
    rule
        ``"regression"`` fails where a loss is shown, ``"no-loss"`` passes only where one is excluded.
    level, range, columns
        As of `totals`; the gate is one-sided at (1 − level)/2.
    **others
        Keywords of `gate`, which are about answers: refused.

    Returns
    -------
    Gate
        `passed`, `outcome`, `sentence` and `rows`.

    Raises
    ------
    InputError
        Neither a baseline nor a floor, a baseline of one run, a score outside `range`, a keyword about answers, or a
        table that cannot be used.

    References
    ----------
    Hahn & Meeker (1991), Statistical Intervals, §4.7; Welch (1947), Biometrika 34.
    """
    refuse_others(_NO_QUESTIONS, others)
    check_one_of("rule", rule, Rule)
    settings = Settings(level=level, range=range, margin=margin or None)
    none = against is None or (isinstance(against, (list, tuple)) and not against)
    baseline = [] if none else _tables(against)
    if (floor is None) == (not baseline) or len(baseline) > 1:
        raise InputError("what must the totals reach? Give one table as `against`, or a `floor`")
    new = _totals_by_key(read_totals(_one(run), columns or {}, settings.range))
    if floor is not None:
        base: dict[Key, TotalsOf] = {}
    else:
        base = _totals_by_key(read_totals(baseline[0], columns or {}, settings.range))
        lost = [f"{' '.join(filter(None, key))}" for key in base if key not in new]
        if lost:
            raise InputError(f"the baseline has {lost[0]}, and the run lacks it")
    how = (floor, margin or 0.0, rule, (1 - level) / 2)
    rows = [_gate_row(part, base.get(key), *how) for key, part in new.items()]
    widths = [math.inf if part.bounds is None else part.bounds[1] - part.bounds[0] for part in new.values()]
    return _result_of_totals(
        _with_power(rows, widths, rule, margin or 0.0, (1 - level) / 2), settings, rule, margin or 0.0
    )


SHARED_P = 0.05
"""Below this p of the F test, the runs are said to differ by more than their answers."""
_ESTIMAND = Note("estimand", "the figures hold for these questions, not for other questions of their kind")
_DIRECTION = Note(
    "no_direction", "the table does not say whether higher or lower is better. Higher is taken to be better"
)


def _tables(source: Any) -> list[Any]:
    several = isinstance(source, (list, tuple)) and not all(isinstance(row, Mapping) for row in source)
    return list(source) if several else [source]


def _one(source: Any) -> Any:
    tables = _tables(source)
    if len(tables) != 1:
        raise InputError(f"a gate judges one table of totals, and {len(tables)} are given")
    return tables[0]


def _settings(settings: Settings) -> dict[str, Any]:
    known = {"level": settings.level} | ({} if settings.range is None else {"range": list(settings.range)})
    return known | ({} if settings.margin is None else {"margin": settings.margin})


def _notes(rows: Sequence[Total]) -> tuple[Note, ...]:
    unknown = any(row.higher_is_better is None for row in rows)
    return (_DIRECTION,) if unknown else ()


def _total(part: TotalsOf, level: float) -> Total:
    of = stats.spread(part.scores)
    sd = None
    if part.n is not None and part.bounds is not None:  # all right or all wrong: p(1 − p) is 0, and bounds nothing
        sd = stats.most_of_answers(of.mean, part.n, part.bounds) or None
    shared = sd is not None and stats.exceeds(of, sd)
    return Total(
        *part.key, "none", model=part.model, n_questions=part.n, sd_answers=sd, at_most=True,
        **_figures(of, level, part.bounds, {"shared_repeat_noise"} if shared else set()),
    )  # fmt: skip


def _figures(
    of: stats.SpreadOfTotals, level: float, bounds: stats.Bounds, codes: set[str], *, higher: bool | None = None
) -> dict[str, Any]:
    """Return a `Total`'s fields that follow from mean and SD: intervals, and limits for a further run.

    Args:
        of: these.
        level: of the limits.
        bounds: the metric's range.
        codes: further diagnostics.
        higher: whether higher is better.
    """
    code = {"single_run"} if of.R < 2 else {"equal_totals"} if of.varies_not else set[str]()
    df, low, high, near, far, worst = of.R - 1.0, *[math.nan] * 5
    if not code:
        t, one = stats.quantile((1 + level) / 2, df), of.sd * math.sqrt(1 + 1 / of.R)
        low, high = stats.limits(of.mean, t * of.se, bounds)
        near, far = stats.limits(of.mean, t * one, bounds)
        worst = stats.limits(of.mean, stats.quantile(level, df) * one, bounds)[higher is False]
    limits = {"ci_low": low, "ci_high": high, "next_low": near, "next_high": far, "next_worst": worst}
    known = {"se": of.se, "sd_runs": of.sd, "df": math.nan if code else df} | limits
    return {name: finite(value) for name, value in known.items()} | {
        "higher_is_better": higher, "n_runs": of.R, "mean": of.mean, "level": level, "range": bounds,
        "diagnostics": tuple(sorted(code | codes)), "_zero_one": bounds == (0.0, 1.0),
    }  # fmt: skip


def _by_model(runs: Sequence[Run], level: float) -> Iterator[tuple[Total, list[RunMean], Note | None]]:
    """Yield (total, run means, note or None) per model and metric with two runs, or with repeats of its only run."""
    models: dict[str, list[Run]] = {}
    for run in runs:
        models.setdefault(run.model, []).append(run)
    for model, of_model in models.items():
        for part in of_model[0].scores:
            same = [other for run in of_model for other in run.scores if other.key == part.key]
            names, table = _repeats(part) if len(of_model) == 1 else _several(of_model, same)
            if table.shape[1] > 1 and len(table):
                yield *_of_table(model, part, names, table, level), _note_on_left_out(model, same, len(table))


def _note_on_left_out(model: str, parts: Sequence[Scores], n: int) -> Note | None:
    """Return a note on how many questions not every run has answered, so that they are left out, or None."""
    every = {key for part in parts for key in picked(part.questions.keys, np.flatnonzero(is_scored(part)))}
    if len(every) <= n:
        return None
    said = (
        f"{parts[0].task} {parts[0].metric}: {len(every) - n:,} of {len(every):,} questions of {model} are left out, "
        "because not every run has answered them"
    )
    return Note("missing", said, parts[0].task)


def _repeats(part: Scores) -> tuple[list[str], FloatArray]:
    """Return the repeats' numbers and the (n, K) scores of questions that have all repeats."""
    return [str(j + 1) for j in range(part.values.shape[1])], part.values[~np.isnan(part.values).any(axis=1)]


def _several(runs: Sequence[Run], parts: Sequence[Scores]) -> tuple[list[str], FloatArray]:
    """Return runs' names and (n, R) question means on their common questions. Empty if a run lacks the scores."""
    if len(parts) < len(runs):
        return [], np.zeros((0, 0))
    places = [{key: i for i, key in enumerate(part.questions.keys)} for part in parts]
    common = [key for key in parts[0].questions.keys if all(key in place for place in places)]
    columns = []
    for part, place in zip(parts, places, strict=True):
        rows = part.values[[place[key] for key in common]]
        count = (~np.isnan(rows)).sum(axis=1)
        columns.append(np.nansum(rows, axis=1) / np.where(count, count, np.nan))
    table = np.stack(columns, axis=1)
    return [run.name for run in runs], table[~np.isnan(table).any(axis=1)]


def _of_table(
    model: str, part: Scores, names: Sequence[str], table: FloatArray, level: float
) -> tuple[Total, list[RunMean]]:
    n, means = len(table), table.mean(axis=0)
    zero_one = bool(np.isin(table, (0.0, 1.0)).all())
    bounds = part.bounds or ((0.0, 1.0) if zero_one and table.any() else None)
    found = run_component(table, np.full(n, 1 / n), np.zeros(n, dtype=np.intp))
    p = None if found is None else found.p_value
    codes = {"shared_repeat_noise"} if p is not None and p < SHARED_P else set[str]()
    figures = _figures(stats.spread(means), level, bounds, codes, higher=part.higher_is_better)
    sd = stats.of_answers_alone(table)
    row = Total(*part.key, model=model, n_questions=n, sd_answers=sd, at_most=False, **figures)
    each = [
        RunMean(*part.key, model=model, run=name, n_questions=n, mean=float(mean), _zero_one=row._zero_one)
        for name, mean in zip(names, means, strict=True)
    ]
    return row, each


def _totals_by_key(parts: Sequence[TotalsOf]) -> dict[Key, TotalsOf]:
    """Return {(task, metric): totals} of a table. Refuse one with several models.

    Raises:
        InputError: there are several models.
    """
    models = list(dict.fromkeys(part.model for part in parts))
    if len(models) > 1:
        raise InputError(f"a table of {len(models)} models ({', '.join(models[:3])}): give the rows of one")
    return {part.key: part for part in parts}


def _sides(
    tables: Sequence[Any], columns: Mapping[str, str], settings: Settings
) -> tuple[dict[Key, TotalsOf], dict[Key, TotalsOf]]:
    parts = [read_totals(one, columns, settings.range) for one in tables]
    if len(parts) == 1:
        models = list(dict.fromkeys(part.model for part in parts[0]))
        parts = [[part for part in parts[0] if part.model == model] for model in models]
    if len(parts) != 2:
        raise InputError(f"two sets of totals are compared, and {len(parts)} are given: name two tables")
    return _totals_by_key(parts[0]), _totals_by_key(parts[1])


def _checked(a: TotalsOf, b: TotalsOf, least_a: int) -> tuple[stats.SpreadOfTotals, stats.SpreadOfTotals]:
    """Return mean and SD of two sets of totals. Refuse other numbers of questions, and fewer runs than needed."""
    if a.n is not None and b.n is not None and a.n != b.n:
        raise InputError(f"{a.model} was asked {a.n:,} questions and {b.model} {b.n:,}: these are not the same ones")
    first, second = stats.spread(a.scores), stats.spread(b.scores)
    for of, part, least in ((first, a, least_a), (second, b, 2)):
        if least > of.R:
            raise InputError(
                f"{part.model} has one run, and two or more are needed to see how far its runs differ. Give more, or "
                "compare one new run with several by `harness-noise gate NEW --against OLD --totals`"
            )
    return first, second


def _difference(a: TotalsOf, b: TotalsOf, level: float) -> TotalDifference:
    first, second = _checked(a, b, 2)
    of, bounds = stats.welch(first, second), a.bounds if a.bounds == b.bounds else None
    width = None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])
    p = math.nan if math.isnan(of.se) else min(1.0, 2 * min(stats.tails(of, 0.0)))
    half = math.nan if math.isnan(of.se) else stats.quantile((1 + level) / 2, of.df) * of.se
    low, high = stats.limits(of.diff, half, width) if half == half else (math.nan, math.nan)
    return TotalDifference(
        task=a.key[0], metric=a.key[1], scorer="none", model_a=a.model, model_b=b.model, n_runs_a=first.R,
        n_runs_b=second.R, n_questions=a.n or b.n, mean_a=first.mean, mean_b=second.mean, diff=of.diff,
        se=finite(of.se), ci_low=finite(low), ci_high=finite(high), level=level, df=finite(of.df),
        statistic=finite(of.diff / of.se), p_value=finite(p), p_adjusted=None, sd_a=first.sd, sd_b=second.sd,
        verdict="not separable", diagnostics=("equal_totals",) if math.isnan(of.se) else (),
        _zero_one=bounds == (0.0, 1.0),
    )  # fmt: skip


def _verdicts(rows: Sequence[TotalDifference]) -> Iterator[TotalDifference]:
    """Yield rows with p adjusted by Holm and, if that is small, "A better" or "B better", else their own verdict."""
    adjusted = holm(np.array([math.nan if row.p_value is None else row.p_value for row in rows]))
    for row, p in zip(rows, adjusted.tolist(), strict=True):
        shown = p < 1 - row.level
        verdict = ("A better" if row.diff > 0 else "B better") if shown else row.verdict
        yield replace(row, p_adjusted=finite(p), verdict=verdict)


def _gate_row(a: TotalsOf, b: TotalsOf | None, floor: float | None, margin: float, rule: Rule, alpha: float) -> GateRow:
    row = needed("GateRow")(*a.key, "none", model=a.model, against="" if b is None else b.model, threshold=0.0 - margin,
                  n_questions=a.n or 0, _zero_one=a.bounds == (0.0, 1.0))  # fmt: skip
    of, quantity = stats.spread(a.scores), "A − B" if floor is None else "A"
    if floor is not None:
        check_mean("floor", floor, a.bounds, a.key[1])
        row = replace(row, quantity=quantity, threshold=floor - margin)
        distance = stats.Distance(of.mean - floor, of.se, of.R - 1.0)
    elif b is None:
        return replace(row, reason="the baseline lacks it")
    else:
        first, second = _checked(a, b, 1)
        distance = stats.next_run(first.mean, second) if first.R == 1 else stats.welch(first, second)
    estimate = distance.diff + (floor or 0.0)
    if math.isnan(distance.se):
        why = "one run does not show how far runs differ" if of.R < 2 and b is None else "all totals are equal"
        return replace(row, estimate=estimate, reason=f"{why}, so there is no limit")
    worse, better = stats.tails(distance, -margin)
    reach = stats.quantile(1 - alpha, distance.df) * distance.se
    limit = estimate + (reach if rule == "regression" else -reach)
    lost = False if rule == "no-loss" and worse < alpha else None
    return replace(
        row,
        estimate=estimate,
        se=distance.se,
        df=distance.df,
        limit=limit,
        passed=lost,
        p_value=worse if rule == "regression" else better,
    )


def _with_power(
    rows: Sequence[GateRow], widths: Sequence[float], rule: Rule, margin: float, alpha: float
) -> list[GateRow]:
    """Return the rows. Under the rule regression they get the loss seen with 80% power, None if beyond the range."""
    judged = sum(row.p_value is not None for row in rows)
    if rule != "regression" or not judged:
        return [*rows]
    out = []
    for row, width in zip(rows, widths, strict=True):
        loss = math.inf
        if row.se is not None and row.df is not None:
            loss = float(noncentrality(2 * alpha / judged, 0.8, row.df)) * row.se + margin
        out.append(replace(row, sees=loss if loss <= width and math.isfinite(loss) else None))
    return out


def _result_of_totals(rows: Sequence[GateRow], settings: Settings, rule: Rule, margin: float) -> Gate:
    """Return the gate's result from the p-values of all rows, which it adjusts, judges and sorts, failed ones first.

    What must hold for any row is adjusted, what must hold for every row is not.
    """
    alpha, judged = (1 - settings.level) / 2, [row for row in rows if row.p_value is not None]
    p = np.array([row.p_value for row in judged])
    p = holm(p) if rule == "regression" and len(p) else p
    loss = [row.passed for row in judged]  # of the rule no-loss: False where one is shown
    passed = [x >= alpha if rule == "regression" else x < alpha or no for x, no in zip(p.tolist(), loss, strict=True)]
    done = [replace(row, p_adjusted=x, passed=ok) for row, x, ok in zip(judged, p.tolist(), passed, strict=True)]
    every = [*done, *(row for row in rows if row.p_value is None)]
    outcome = "pass" if all(row.passed for row in every) else "cannot judge"
    outcome = "fail" if any(row.passed is False for row in every) else outcome
    every.sort(key=lambda row: (row.passed is not False, row.passed is True))
    return needed("Gate")(
        settings=_settings(settings), outcome=outcome, rule=rule, alpha=alpha, margin=margin, rows=tuple(every),
        adjust="holm" if rule == "regression" else "none", notes=(_ESTIMAND, _DIRECTION),
    )  # fmt: skip
