"""Regression of question means, or of differences, on what is known of the questions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from ...analysis.comparison import matched_scores
from ...analysis.drawing import NOT_RANDOM, UNEQUAL
from ...analysis.sample import Sample
from ...analysis.scoring import differently_note, scored_differently, scoring_of
from ...arrays import BoolArray, FloatArray
from ...data.clusters import spec_in_words
from ...data.notes import Note, merge_notes
from ...data.scores import Run, Scores
from ...errors import InputError
from ...io.joining import check_clusters
from ...results.diagnostics import SCORED, STOPPED, UNSPLIT
from ...results.forms import finite
from ...settings import Settings
from ...stats import decision
from ...stats.contrast import Design, QuestionStats, repeat_codes
from ...stats.intervals import effective_flips, t_limits
from ...stats.tolerances import FEW_DF, FEWEST_DF, RARE_CATEGORY, ROUNDING, short_of
from ..known import Runs, WithFields, check_known, level_text, numbers_or_none, with_fields
from .results import INTERCEPT, Coefficient, Fit, Regression
from .stats import LinearFit, dependent_columns, regress, repeat_weights

MOST_LEVELS = 100
_OF_ASKED = frozenset({STOPPED, NOT_RANDOM, UNEQUAL})
"""Codes of the questions that a run asked, which a regression on them has as well."""


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """One column of the design matrix."""

    field: str
    values: FloatArray
    value: str | None = None
    reference: str | None = None


_CATEGORY = re.compile(r"C\((.+)\)")


def as_categories(on: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split fields such as `C(level)`: return all names without `C(…)`, and those that had it (categories)."""
    matches = [_CATEGORY.fullmatch(spec) for spec in on]
    named = [spec if match is None else match[1] for spec, match in zip(on, matches, strict=True)]
    return tuple(named), tuple(spec for spec, match in zip(named, matches, strict=True) if match)


def regress_runs(
    run: Run, other: Run | None, on: Sequence[str], settings: Settings, categories: Sequence[str] = ()
) -> Regression:
    """Regress question means of `run`, or differences to `other`, on questions' fields. Refuse `auto`, none, unknown.

    Args:
        run: A, read with the fields (`ReadOptions.fields`).
        other: B; None: the means of one run.
        on: SPECs; those whose values are all numbers enter as they are, all others by treatment contrasts
            against their most frequent value.
        settings: `level` and `adjust`.
        categories: SPECs among `on` whose numbers are names.

    Raises:
        InputError: a field that no question has, that is the same everywhere, that others determine, or that has
            too many values; questions clustered in two crossed ways.
    """
    if not on or "auto" in on:
        raise InputError("regress needs the fields by name (`on=['FIELD']`): auto would regress on all of them at once")
    settings.check("regress")
    check_clusters(settings.cluster, [run] if other is None else [run, other])
    runs: Runs = (run,) if other is None else (run, other)
    matched: list[tuple[Scores, ...]] = [(part,) for part in run.scores]
    notes = [note for side in runs for note in side.notes]
    if other is not None:
        pairs, remarks = matched_scores(run, other, alone=True)
        matched, notes = [*pairs], [*notes, *remarks]
    read = [with_fields(parts, runs) for parts in matched]
    tables = [table for table in read if table is not None and len(table)]
    check_known(tables, on, "`on`")
    coefficients: list[Coefficient] = []
    fits: list[Fit] = []
    for table in tables:
        absent = [spec for spec in on if all(value is None for value in table.fields.values.get(spec, ()))]
        if absent:
            said = f"left out, for its questions have no {', '.join(absent)}"
            notes.append(Note("no_field", said).of(table.name))
            continue
        rows, fit, remarks = _explained(table, on, categories, settings)
        coefficients += rows
        fits.append(fit)
        notes += remarks
    return Regression(settings.to_dict(), _adjusted(coefficients, settings), tuple(fits), merge_notes(notes))


def _explained(
    table: WithFields, on: Sequence[str], categories: Sequence[str], settings: Settings
) -> tuple[list[Coefficient], Fit, list[Note]]:
    whole = np.array([all(table.fields.values[spec][i] is not None for spec in on) for i in range(len(table))])
    kept = table.take(np.flatnonzero(whole))
    left_out = len(table) - len(kept)
    notes = []
    if left_out:
        said = f"{left_out} of {len(table)} questions lack a value of {', '.join(on)}: left out"
        notes.append(Note("no_field", said).of(table.name))
    columns = [_Column(INTERCEPT, np.ones(len(kept)))]
    for spec in on:
        columns += _columns(kept, spec, spec in categories)
    X = np.column_stack([column.values for column in columns])
    _check(kept, columns, X)
    c, samples, plan = kept.contrast("regress knows")
    stats = [sample.stats for sample in samples]
    of_repeats = {code for code, has in repeat_codes(stats, plan.strata).items() if has.any()}
    first = regress(c.d, X, plan.clusters)
    if plan.clustered:
        named = dict.fromkeys(column.field for column in columns if column.value is not None)
        clusters = [spec for spec in named if _is_cluster(kept.fields.values[spec], plan)]
        notes += [Note("field_is_cluster", _CLUSTER.format(spec)).of(table.name) for spec in clusters]
    weights = _weights(samples, first, len(columns)) if not of_repeats & UNSPLIT else None
    final = first if weights is None else regress(c.d, X, plan.clusters, weights)
    rounding = ROUNDING * max(1.0, float(np.abs(c.d).max(initial=0.0)))
    residuals = np.where(np.abs(final.residuals) > rounding, final.residuals, 0)
    flat = not residuals.any()
    rare = set() if flat else _rare(columns, residuals, plan)
    codes = of_repeats & {"missing_repeats", "partly_single_repeat"} | ({"zero_variance"} if flat else set())
    codes |= {code for part in table.parts for code in part.diagnostics} & _OF_ASKED
    equal = scoring_of(*table.parts).equal if len(table.parts) == 2 else None
    if equal is not None and scored_differently(equal):
        codes.add(SCORED)
        notes.append(differently_note(f"{table.name}, {' − '.join(run.model for run in table.runs)}", equal))
    fit = Fit(
        **kept.about,
        higher_is_better=kept.parts[0].higher_is_better,
        n_questions=len(kept),
        n_left_out=left_out,
        n_clusters=plan.n_clusters,
        cluster=spec_in_words(kept.parts[0].cluster_spec) if plan.clustered else None,
        weighted=weights is not None,
        r2=finite(final.r2),
        diagnostics=tuple(sorted(codes)),
    )
    rows = _coefficients(columns, final, kept.about, settings.level, flat=flat, rare=rare)
    rows = [replace(row, diagnostics=tuple(sorted({*row.diagnostics, *(codes & {SCORED})}))) for row in rows]
    return rows, fit, notes


def _rare(columns: Sequence[_Column], residuals: FloatArray, plan: Design) -> set[int]:
    """Return the indexes of columns of two values (categories) with too few varying questions for a standard error.

    Four right answers of four say nothing of their spread, and a standard error made of them is far too small; so the
    residuals count, and not the questions.
    """

    def varies_in_few(rows: BoolArray) -> bool:
        sums = np.bincount(plan.clusters[rows], weights=residuals[rows]).astype(np.float64)
        return not float(effective_flips(sums)) >= RARE_CATEGORY

    rare = set[int]()
    # a category is told by name, or by a number with two values
    for field in dict.fromkeys(column.field for column in columns[1:] if len(np.unique(column.values)) == 2):
        levels = {j: column.values == column.values.max() for j, column in enumerate(columns) if column.field == field}
        reference = ~np.any(list(levels.values()), axis=0)
        rare |= set(levels) if varies_in_few(reference) else {j for j, rows in levels.items() if varies_in_few(rows)}
    return rare


_CLUSTER = (
    "{} is the cluster itself, each of its values being one cluster, so its effect cannot be told from the "
    "clusters: name a field that varies inside them, or one whose values several clusters share"
)


def _is_cluster(values: Sequence[object], plan: Design) -> bool:
    """Return True if a field's values divide the questions exactly as the clusters do."""
    codes = plan.clusters.tolist()
    both = set(zip(map(level_text, values), codes, strict=True))
    return len(both) == len({value for value, _ in both}) == len({code for _, code in both})


def _columns(table: WithFields, spec: str, category: bool) -> list[_Column]:
    """Return a field's design columns: one, or one per value but the commonest. Refuse a constant and many values."""
    values = table.fields.values[spec]
    numeric = None if category else numbers_or_none(values)
    texts = [level_text(value) for value in values]
    if len(set(texts if numeric is None else numeric.tolist())) < 2:
        what = f"it is {texts[0]} for every question" if texts else "no question is left that has every field"
        raise InputError(f"{table.name}: `on` {spec} explains nothing: {what}. Leave it out, or narrow with `tasks`")
    if numeric is not None:
        return [_Column(spec, numeric)]
    count = Counter(texts)
    if len(count) > MOST_LEVELS:
        raise InputError(
            f"{table.name}: `on` {spec} has {len(count)} different values for {len(table)} questions, which is no "
            f"category to learn from (at most {MOST_LEVELS}): name a coarser field, or a number"
        )
    reference = min(count, key=lambda level: (-count[level], level))
    array = np.array(texts, dtype=object)
    return [
        _Column(spec, (array == level).astype(np.float64), level, reference)
        for level in sorted(count)
        if level != reference
    ]


def _check(table: WithFields, columns: Sequence[_Column], X: FloatArray) -> None:
    """Refuse a regression with dependent columns, or with too few questions for its coefficients."""
    if len(table) <= len(columns):
        raise InputError(
            f"{table.name}: {len(table)} questions for {len(columns)} coefficients: name fewer fields, or coarser ones"
        )
    # a number of tiny relative spread is not a constant: it is centred before columns are compared
    centred = np.column_stack([X[:, :1], X[:, 1:] - X[:, 1:].mean(axis=0)])
    if tied := dependent_columns(centred):
        column = columns[tied[0]]
        what = column.field if column.value is None else f"{column.field} = {column.value}"
        before = ", ".join(dict.fromkeys(other.field for other in columns[1 : tied[0]] if other.field != column.field))
        raise InputError(
            f"{table.name}: `on` {column.field} cannot be told apart from {before or 'the rest'}: these determine "
            f"{what} on every question. Leave one of them out"
        )


def _weights(samples: Sequence[Sample], first: LinearFit, p: int) -> FloatArray | None:
    """Return (n,) regression weights of questions by their numbers of answers. None if all have equally many.

    Args:
        samples: the runs of the regression, on the same questions.
        first: the fit without weights, whose residuals show how far questions differ.
        p: its coefficients.
    """
    counts = [sample.stats.count for sample in samples]
    if all(count.min() == count.max() for count in counts):
        return None
    noise = sum((_pooled(sample.stats) / sample.stats.count for sample in samples), start=np.zeros(len(samples[0])))
    spread = float(first.residuals @ first.residuals) / (len(first.residuals) - p)
    return repeat_weights(spread, noise)


def _pooled(stats: QuestionStats) -> float:
    """Return the variance of one answer, pooled over questions with several answers. 0 without any."""
    several = stats.count > 1
    freedom = stats.count[several] - 1
    return float(freedom @ stats.var[several]) / float(freedom.sum()) if several.any() else 0.0


def _coefficients(
    columns: Sequence[_Column], final: LinearFit, about: Mapping[str, Any], level: float, *, flat: bool, rare: set[int]
) -> list[Coefficient]:
    """Return the rows of one regression's coefficients, the intercept first, p not yet adjusted."""
    estimate, se = final.coefficients, np.sqrt(np.maximum(final.variances, 0.0))
    varies = (se > 1e-12 * np.maximum(1.0, np.abs(estimate))) & (not flat)
    used = np.where(varies, se, np.nan)
    limits, statistic = t_limits(estimate, used, final.df, level), estimate / used
    p = 2 * special.stdtr(final.df, -np.abs(statistic))
    flags = {
        "too_few_clusters": ~final.identified,
        "few_clusters": short_of(final.df, FEW_DF),
        "few_df": short_of(final.df, FEWEST_DF),
        "zero_variance": final.identified & ~varies,
        "rare_category": final.identified & np.isin(np.arange(len(columns)), list(rare)),
    }
    numbers = {"coefficient": estimate, "se": se, "ci_low": limits.low, "ci_high": limits.high, "df": final.df}
    numbers |= {"statistic": statistic, "p_value": p, "p_adjusted": p}
    rows = []
    for j, column in enumerate(columns):
        values: dict[str, Any] = {name: finite(float(each[j])) for name, each in numbers.items()}
        row = Coefficient(
            **about,
            **values,
            field=column.field,
            value=column.value,
            reference=column.reference,
            n_value=None if column.value is None else int(column.values.sum()),
            level=level,
            diagnostics=tuple(sorted(code for code, has in flags.items() if has[j])),
        )
        rows.append(row)
    return rows


def _adjusted(rows: Sequence[Coefficient], settings: Settings) -> tuple[Coefficient, ...]:
    """Return the rows with p adjusted over all coefficients except intercepts."""
    p = [np.nan if row.p_value is None or row.field == INTERCEPT else row.p_value for row in rows]
    adjusted = decision.adjusted(p, settings.adjust)
    return tuple(replace(row, p_adjusted=finite(value)) for row, value in zip(rows, adjusted, strict=True))
