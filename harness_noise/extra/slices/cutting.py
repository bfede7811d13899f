"""Means or differences slice by slice: of the questions that have one value of a field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ...analysis.comparison import matched_scores
from ...analysis.difference import Compared, run_difference
from ...analysis.mean import estimate_of
from ...analysis.ranges import score_range
from ...analysis.rows import RowDecision, decide_rows
from ...analysis.sample import group_parts, group_shares
from ...arrays import FloatArray, IntArray, columns_of
from ...data.matching import same_partition
from ...data.native_values import agreed_pairs
from ...data.notes import Note, merge_notes, texts
from ...data.numbers import number_text
from ...data.scores import Group, Run, Scores
from ...errors import InputError
from ...results.diagnostics import SCORED
from ...results.forms import Document, finite
from ...results.rows import SCORED_DIFFERENTLY, DifferenceSlice, Estimate, EstimateSlice, Heterogeneity
from ...settings import Adjust, Settings
from ...stats import decision
from ...stats.tolerances import FEW_DF, short_of
from ..known import (
    Runs,
    WithFields,
    check_known,
    field_names,
    level_text,
    numbers_or_none,
    stack_tasks,
    with_fields,
)
from . import stats as by_slice

Table = TypeVar("Table", bound=Document)

PARTS = 4
"""Slices that a number is cut into, at its quantiles."""
AS_THEY_ARE = 10
"""Values of a number up to which each is a slice of its own."""
MOST_CATEGORIES = 50
"""Values that a category may have for `auto` to try it."""


@dataclass(frozen=True, slots=True)
class Sliced:
    """The slices of a result, the tests of whether they differ, and notes."""

    slices: tuple[Any, ...]
    """`EstimateSlice`s of runs, `DifferenceSlice`s of pairs."""
    heterogeneity: tuple[Heterogeneity, ...]
    notes: tuple[Note, ...]

    def beside(self, result: Table) -> Table:
        """Return the result with these slices added. What is withheld of all questions is withheld of their slices."""
        table: Any = result  # a dataclass, as all that have slices
        apart = [row for row in getattr(table, "comparisons", ()) if SCORED in row.diagnostics]
        runs = {(*row.key, row.run_a, row.run_b) for row in apart}
        models = {(*row.key, row.model_a, row.model_b) for row in apart}
        slices, tests = self.slices, self.heterogeneity
        if apart:
            word = {"verdict": SCORED_DIFFERENTLY}
            slices = tuple(_withheld(x, **word) if (*x.key, x.run_a, x.run_b) in runs else x for x in slices)
            tests = tuple(_withheld(x) if (*x.key, x.model_a, x.model_b) in models else x for x in tests)
        notes = merge_notes(table.notes, self.notes)
        with_slices: Table = replace(table, slices=slices, heterogeneity=tests, notes=notes)
        return with_slices


def _withheld(row: Any, **fields: Any) -> Any:
    """Return the row marked as scored differently, with these fields replaced."""
    return replace(row, diagnostics=tuple(sorted({*row.diagnostics, SCORED})), **fields)


@dataclass(frozen=True, slots=True, eq=False)
class _Cut:
    """The questions that have a value of one field, and the slice of each."""

    field: str
    table: WithFields
    codes: IntArray
    names: tuple[str, ...]
    left_out: int


def slices_of_runs(runs: Sequence[Run], by: Sequence[str], settings: Settings) -> Sliced:
    """Return each run's means on every slice by the fields `by`, for tasks and groups. Refuse unknown fields.

    Args:
        runs: read with the fields (`ReadOptions.fields`).
        by: SPECs; `auto` tries every category of 2 … 50 values and every number.
        settings: as for `analyze`.

    Raises:
        InputError: a field that no question has or that has too many values, and settings that slices do not have.
    """
    measured: list[_Measured] = [(((part,),), (run,), None) for run in runs for part in run.scores]
    for run in runs:
        for group in run.groups:
            if parts := group_parts(run, group):
                measured.append((tuple((part,) for part in parts), (run,), group))
    return _sliced(measured, by, settings)


def slices_of_pairs(pairs: Sequence[tuple[Run, Run]], by: Sequence[str], settings: Settings) -> Sliced:
    """Return A − B of pairs on slices of shared questions by fields `by`, p adjusted by BH. Refuse unknown fields."""
    measured: list[_Measured] = []
    for pair in agreed_pairs(pairs)[0]:
        with suppress(InputError):  # groups and corpus metrics alone are shared
            measured += [((parts,), pair, None) for parts in matched_scores(*pair, alone=True)[0]]
        for group in pair[0].groups:
            both = [group_parts(run, group) for run in pair]
            if both[0] and both[1]:
                measured.append((tuple(zip(*both, strict=True)), pair, group))
    return _sliced(measured, by, settings)


_Measured: TypeAlias = "tuple[tuple[tuple[Scores, ...], ...], Runs, Group | None]"
"""Each run's scores on every task, the runs, and the group of the tasks."""


def _sliced(measured: Iterable[_Measured], by: Sequence[str], settings: Settings) -> Sliced:
    _check(settings)
    notes: list[Note] = []
    tables = []
    for tasks, runs, group in measured:
        each = [table for parts in tasks if (table := with_fields(parts, runs)) is not None and len(table)]
        if group is None or len(each) < len(tasks):
            tables += each if group is None else []
            continue
        tables.append(stack_tasks(each, group))
        if group_shares([table.parts[0] for table in each], group) is not None:
            said = "its tasks have weights of their own, but in its slices every question counts alike"
            notes.append(Note("slices_unweighted", said).of(group.name))
    check_known(tables, by, "`by`")
    cuts = [cut for table in tables for cut in divided(table, by, notes)]
    if not cuts:
        raise InputError(
            "; ".join(texts(notes))
            or f"`by='auto'`: no field is a number or a category of 2 to {MOST_CATEGORIES} values. The fields are "
            f"{field_names(tables)}"
        )
    method: Adjust = "none" if settings.adjust == "none" else "bh"
    sliced = [_slices_of(cut, settings) for cut in cuts]
    p = decision.adjusted([of_cut.p_equal for of_cut in sliced], method)
    whole = tuple(replace(of_cut.whole, p_adjusted=finite(float(x))) for of_cut, x in zip(sliced, p, strict=True))
    extras = [extra for of_cut in sliced for extra in of_cut.extras]
    if len(tables[0].parts) == 2:
        rows = decide_rows([row for of_cut in sliced for row in of_cut.differences], replace(settings, adjust=method))
        differences = tuple(DifferenceSlice(**columns_of(row), **more) for row, more in zip(rows, extras, strict=True))
        return Sliced(differences, whole, tuple(notes))
    rest = np.concatenate([of_cut.p_rest for of_cut in sliced])
    means = [row for of_cut in sliced for row in of_cut.means]
    numbered = zip(means, extras, rest, decision.adjusted(rest, method), strict=True)
    slices = tuple(
        EstimateSlice(**columns_of(row), **more, p_value=finite(float(p)), p_adjusted=finite(float(adjusted)))
        for row, more, p, adjusted in numbered
    )
    return Sliced(slices, whole, tuple(notes))


@dataclass(frozen=True, slots=True, eq=False)
class _Slices:
    """The rows of all slices of one field of one task."""

    means: list[Estimate]
    """The rows of one run."""
    differences: list[RowDecision]
    """The rows of two runs."""
    extras: list[dict[str, Any]]
    """The fields of a slice that its row lacks."""
    p_rest: FloatArray
    """p of "the mean is that of all other questions", for one run."""
    p_equal: float
    """p of "all slices have one mean"."""
    whole: Heterogeneity


def _slices_of(cut: _Cut, settings: Settings) -> _Slices:
    c, samples, plan = cut.table.contrast("slices know")
    d, runs = c.d, cut.table.runs
    joint = by_slice.joint(d, cut.codes, plan.clusters)
    bounds = score_range([sample.ends for sample in samples], settings)
    noise = np.where(joint.identified, by_slice.pooled_unit(joint) / joint.sizes, np.nan)
    drawn = by_slice.shrink(joint.means, noise, settings.level)
    width = np.inf if bounds is None else bounds[1] - bounds[0]
    ends = bounds if bounds is not None and len(samples) == 1 else (-width, width)
    test = by_slice.heterogeneity(d, cut.codes, plan.clusters)
    p_rest = by_slice.against_rest(d, cut.codes, plan.clusters) if len(samples) == 1 else np.empty(0)
    p_equal = np.nan if test is None else test.p_value
    out = _Slices([], [], [], p_rest, p_equal, _heterogeneity(cut, test, drawn))
    for s, name in enumerate(cut.names):
        # the range of the metric is that of all slices
        parts = [replace(part, bounds=bounds) for part in cut.table.take(np.flatnonzero(cut.codes == s)).parts]
        if len(runs) == 1:
            out.means.append(estimate_of(parts, runs[0], settings))
        else:
            row = run_difference(Compared(parts[:1], parts[1:], *runs), settings)[0]
            out.differences.append(row.named(run_a=runs[0].name, run_b=runs[1].name))
        values = [np.nan] * 3 if drawn is None else [drawn.values[s], *np.clip([drawn.low[s], drawn.high[s]], *ends)]
        names = ("shrunken", "shrunken_ci_low", "shrunken_ci_high")
        shrunken = {name: finite(float(value)) for name, value in zip(names, values, strict=True)}
        out.extras.append({"field": cut.field, "slice": name, **shrunken})
    return out


def _heterogeneity(cut: _Cut, test: by_slice.EqualMeansTest | None, drawn: by_slice.Shrunken | None) -> Heterogeneity:
    """Return the output row with the figures of a computed test that all slices of one field have equal means."""
    return Heterogeneity(
        **cut.table.about,
        field=cut.field,
        n_slices=len(cut.names),
        n_left_out=cut.left_out,
        statistic=None if test is None else finite(test.statistic),
        df=None if test is None else finite(test.df),
        df_residual=None if test is None else finite(test.df_residual),
        p_value=None if test is None else finite(test.p_value),
        p_adjusted=None,
        spread=None if drawn is None else finite(drawn.spread),
        diagnostics=("few_clusters",) if test is not None and short_of(test.df_residual, FEW_DF) else (),
    )


def _check(settings: Settings) -> None:
    clashes = {
        "`unpaired`": settings.unpaired,
        "`questions_are='fixed'`": settings.questions_are == "fixed",
        "`repeats_are='runs'`": settings.repeats_are == "runs",
    }
    for clash in (name for name, chosen in clashes.items() if chosen):
        raise InputError(
            f"`by` takes the questions for a sample, answers for independent and two runs for paired, and {clash} does "
            "not: leave one of the two out"
        )


def divided(table: WithFields, by: Sequence[str], notes: list[Note]) -> Iterator[_Cut]:
    """Yield one division into slices for each field in `by`. Add to `notes` why a named one (not by `auto`) makes none.

    `auto` leaves out those that are there already.
    """
    seen: list[list[int]] = []
    for spec in dict.fromkeys([*(spec for spec in by if spec != "auto"), *(table.fields.auto if "auto" in by else ())]):
        named = spec in by
        values = table.fields.values.get(spec)
        if values is None or all(value is None for value in values):
            if named:
                notes.append(
                    Note("no_field", f"its questions have no {spec}, so it is not sliced by it").of(table.name)
                )
            continue
        rows = np.array([i for i, value in enumerate(values) if value is not None], dtype=np.intp)
        names, order = _slice_names([values[i] for i in rows], named)
        problem = _problem(len(order), len(rows))
        if problem is not None or (not named and len(order) > MOST_CATEGORIES):
            notes += [Note("no_slices", f"`by` {spec} {problem}").of(table.name)] if named else []
            continue
        index = {name: code for code, name in enumerate(order)}
        codes = np.array([index[name] for name in names])
        partition = np.full(len(table), -1)
        partition[rows] = codes
        if not named and any(same_partition(partition.tolist(), other) for other in seen):
            continue
        seen.append(partition.tolist())
        left_out = len(table) - len(rows)
        if left_out and named:
            said = f"{left_out} of {len(table)} questions have no {spec} and are in no slice"
            notes.append(Note("not_in_a_slice", said).of(table.name))
        yield _Cut(spec, table.take(rows), codes, tuple(order), left_out)


def _problem(n_values: int, n: int) -> str | None:
    """Return why a field with this many values makes no useful slices, in words. None if it does."""
    if n_values < 2:
        return "divides nothing: it is the same for every question"
    if 2 * n_values > n:
        return (
            f"has {n_values} different values for {n} questions, too few in each to say anything: name a coarser field"
        )
    return None


def _slice_names(values: Sequence[Any], named: bool) -> tuple[list[str], list[str]]:
    """Return each question's slice name, and all slice names in order. Many numbers are cut at quartiles.

    A number of more than ten values is cut at its quartiles; `auto` passes over one that only counts the questions.
    Texts that differ and are one number (1.1 and 1.10) are categories.
    """
    numeric = numbers_or_none(values)
    if numeric is None:
        names = [level_text(value) for value in values]
        return names, sorted(set(names))
    distinct, at = np.unique(numeric, return_inverse=True)
    if len(distinct) <= AS_THEY_ARE and len(named_so := {level_text(value) for value in values}) > len(distinct):
        return [level_text(value) for value in values], sorted(named_so)  # versions: 1.1 and 1.10
    if len(distinct) <= AS_THEY_ARE:
        texts = number_texts(distinct)
        return [texts[i] for i in at.tolist()], list(dict.fromkeys(texts))
    if not named and bool((np.diff(np.sort(numeric)) == 1).all()):
        return [""] * len(numeric), [""]
    cuts = np.unique(np.quantile(numeric, np.arange(1, PARTS) / PARTS))
    codes = np.searchsorted(cuts, numeric, side="left")
    used, at = np.unique(codes, return_inverse=True)
    ends = np.array([(numeric[codes == code].min(), numeric[codes == code].max()) for code in used])
    shown, where = np.unique(ends, return_inverse=True)
    texts = number_texts(shown)
    pairs = [(texts[low], texts[high]) for low, high in where.reshape(-1, 2).tolist()]
    names = [low if low == high else f"{low} … {high}" for low, high in pairs]
    return [names[i] for i in at.tolist()], list(dict.fromkeys(names))


def number_texts(numbers: FloatArray) -> list[str]:
    """Return numbers as short texts (six digits or more), with enough digits that all stay different.

    A whole number stays as it is."""
    several = len({number_text(number) for number in numbers.tolist()})
    for digits in range(6, 15):
        texts = [number_text(x) if x.is_integer() else f"{x:.{digits}g}" for x in numbers.tolist()]
        if len(set(texts)) >= several:
            return texts
    return [number_text(number) for number in numbers.tolist()]
