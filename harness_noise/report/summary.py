"""What a person is shown of a result: sections of labelled columns, digits that follow the SE.

Every renderer draws these sections and nothing else; the complete numbers are in JSON and CSV.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ..io.paths import telling_parts
from ..results.plan import Plan
from ..results.rows import Analysis, Comparison, Difference, Estimate
from . import slices
from .columns import (
    MISSING,
    Column,
    Section,
    Summary,
    _drop_empty,
    _legend,
    _level,
    _marks,
    by_test,
    count,
    data_noise,
    decimals,
    estimand_line,
    if_missing,
    interval,
    mean_interval_name,
    metric_name,
    names_of,
    number,
    p_text,
    plain,
    shorten,
    span,
)
from .sentences import sentence
from .sequential import full_section, look_section, stopping

if TYPE_CHECKING:
    from ..results.arena import Arena
    from ..results.explanation import Explanation
    from ..results.factors import Factors

    Result: TypeAlias = Analysis | Comparison | Plan | Factors | Arena | Explanation


def summarise(table: Result) -> Summary:
    """The display form of a result."""
    if isinstance(table, Analysis):
        return _analysis(table)
    if isinstance(table, Comparison):
        return _comparison(table)
    if isinstance(table, Plan):
        from . import planning

        return planning.summarise(table)
    from ..results.explanation import Explanation
    from ..results.factors import Factors

    if isinstance(table, Factors):
        return _factors(table)
    if isinstance(table, Explanation):
        from . import explanation

        return explanation.summarise(table)
    from . import arena_summary

    return arena_summary.summarise(table)


def _factors(table: Factors) -> Summary:
    marks = _marks(item.diagnostics for item in table.factors)
    rows = [
        (
            plain(item.factor),
            number(item.var, decimals(item.var)),
            interval(item.var_low, item.var_high, decimals(item.var, item.var_high)),
            MISSING if item.share is None else f"{100 * item.share:.1f} %",
            number(item.se, decimals(item.se)),
            f"{item.df:g}",
            str(item.levels),
            MISSING if item.gain is None else f"{100 * item.gain:.1f} %",
            " ".join(marks[code] for code in item.diagnostics),
        )
        for item in table.factors
    ]
    columns = (
        Column("Source", text=True),
        Column("variance", hint="variance component of one answer"),
        Column("95 % interval", hint="of the variance component"),
        Column("share", hint="of the sum of all components"),
        Column("SE", hint="what it adds to the standard error of the mean of all these answers"),
        Column("df"),
        Column("levels"),
        Column("gain", hint="by how much 1,000 more answers on new levels of it lower the variance of the mean"),
        _NOTES,
    )
    digits = decimals(max((item.se or 0.0 for item in table.factors), default=None))
    title = f"{table.n_answers} answers, mean {number(table.mean, digits)}"
    shown = _drop_empty(columns, rows, ("",))
    return Summary((Section(title, *shown),), _legend(marks), (table.advice, *table.notes))


_SE = Column("SE", hint="standard error of the mean that was measured")
_TOTAL = Column("total", hint="standard error with one answer per question")
_DATA = Column("data", hint="standard error that is left with infinitely many answers per question")
_PREDICTION = Column("prediction", hint="what the model's own randomness adds at one answer per question")
_NOTES = Column("", text=True, hint="letters refer to the notes below")


def _analysis(table: Analysis) -> Summary:
    rows, marks = [], _marks_of(table, table.estimates)
    several = len({(item.model, item.run) for item in table.estimates}) > 1
    level, clustered = _level(table.estimates), any(item.cluster for item in table.estimates)
    methods = {name for item in table.estimates if (name := mean_interval_name(item))}
    runs = _run_names(table.estimates)
    for item in table.estimates:
        digits = decimals(item.se, item.mean)
        rows.append(
            (
                plain(item.model) if several else "",
                plain(runs.get((item.model, item.run), "")),
                plain(item.task),
                metric_name(item.metric, item.scorer),
                number(item.mean, digits),
                interval(item.ci_low, item.ci_high, digits),
                mean_interval_name(item) if len(methods) > 1 else "",
                number(item.se, digits),
                number(item.se_total, digits),
                data_noise(item, digits),
                number(item.se_prediction, digits),
                str(item.n_questions) if item.n_questions else MISSING,
                span(item.repeats_min, item.repeats_max) if item.n_questions else MISSING,
                (str(item.n_clusters) if item.cluster else MISSING) if clustered else "",
                number(item.design_effect, 2) if item.cluster else (MISSING if clustered else ""),
                str(item.n_missing) if item.n_missing else "",
                if_missing(item, digits),
                " ".join(marks[code] for code in item.diagnostics),
            )
        )
    columns = (
        Column("Model", text=True),
        Column("Run", text=True, hint="what tells the runs of one model apart"),
        Column("Task", text=True),
        Column("Metric", text=True),
        Column("Mean"),
        Column(f"{level} CI"),
        Column("interval", text=True, hint="method of the interval, and degrees of freedom of Student's t"),
        _SE,
        _TOTAL,
        _DATA,
        _PREDICTION,
        Column("n", hint="questions"),
        Column("K", hint="scored answers per question"),
        Column("G", hint="clusters"),
        Column("deff", hint="design effect: how much clustering inflates the variance"),
        Column("missing", hint="answers without a score"),
        Column("if wrong … right", hint="the mean if all missing answers were wrong, and if all were right"),
        _NOTES,
    )
    shown = _drop_empty(columns, rows, ("Model", "Run", "interval", "G", "deff", "missing", "if wrong … right", ""))
    # one sentence for each task and group of each run, about its first metric
    first: dict[tuple[str, str, str], Estimate] = {}
    for item in table.estimates:
        if item.se is not None:
            first.setdefault((item.model, item.run, item.task), item)
    more, said = stopping(table, marks)
    sentences = [*said, *map(sentence, first.values()), *slices.sentences(table), *estimand_line(table.estimates)]
    sections = (Section("", *shown), *slices.sections(table, marks), *more)
    return Summary(sections, _legend(marks, table.estimates), tuple(sentences))


def _marks_of(table: Analysis | Comparison, rows: Sequence[Estimate] | Sequence[Difference]) -> dict[str, str]:
    """The marks of all rows and of their slices."""
    return _marks(item.diagnostics for item in (*rows, *table.slices, *table.heterogeneity, *table.full_benchmark))


def _run_names(items: Sequence[Estimate]) -> dict[tuple[str, str], str]:
    """(model, run) → what tells the run apart, where the model's name does not."""
    models: dict[str, dict[str, None]] = {}
    for item in items:
        models.setdefault(item.model, {})[item.run] = None
    return {
        (model, run): part
        for model, runs in models.items()
        if len(runs) > 1
        for run, part in zip(runs, telling_parts(list(runs)), strict=True)
    }


_Cells: TypeAlias = "Sequence[tuple[Column, Callable[[Difference], str]]]"
"""The columns of a table, each with what it shows of a row."""


def _filled(items: Sequence[Difference], cells: _Cells) -> tuple[tuple[Column, ...], tuple[tuple[str, ...], ...]]:
    """Columns and rows, without the columns that need not be there and say nothing."""
    optional = ("p adj.", "unpaired n", "G", "missing", "corr.", "")
    rows = [tuple(cell(item) for _, cell in cells) for item in items]
    return _drop_empty(tuple(column for column, _ in cells), rows, optional)


def _comparison(table: Comparison) -> Summary:
    items = table.differences
    marks = _marks_of(table, items)
    several = len({(item.model_a, item.run_a, item.model_b, item.run_b) for item in items}) > 1
    names: _Cells = [
        (Column("Task", text=True), lambda x: plain(x.task)),
        (Column("Metric", text=True), lambda x: metric_name(x.metric, x.scorer)),
    ]
    if several:
        names = [(Column("A − B", text=True), lambda x: plain(" − ".join(names_of(x)))), *names]
    adjusted = len(items) > 1 and table.settings.get("adjust") != "none"
    results = _filled(items, [*names, *_results(_level(items), marks, adjusted=adjusted)])
    title = plain("A = {}, B = {}".format(*names_of(items[0]))) if items and not several else ""
    noise = _filled(items, [*names, *_NOISE])
    sections = [Section(title, *results), Section("Noise of A − B (standard errors)", *noise)]
    sections += slices.sections(table, marks)
    if table.sequential:
        sections.append(look_section(table.sequential))
    if table.full_benchmark:
        sections.append(full_section(table.full_benchmark, marks))
    if table.combined:
        sections.append(_combined(table))
    if table.flips:
        sections.append(_flips(table))
    sentences = [sentence(item) for item in items if item.se is not None][:1]
    sentences += [f"{item.method}: {item.note}." for item in table.combined if item.note]
    sentences += [*taken_back(table), *slices.sentences(table), *estimand_line(items)]
    return Summary(tuple(sections), _legend(marks, items), tuple(sentences))


def _digits(item: Difference) -> int:
    return decimals(item.se, item.diff or item.mean_a)


def _results(level: str, marks: Mapping[str, str], *, adjusted: bool) -> _Cells:
    return [
        (Column("A"), lambda x: number(x.mean_a, _digits(x))),
        (Column("B"), lambda x: number(x.mean_b, _digits(x))),
        (Column("A − B"), lambda x: number(x.diff, _digits(x))),
        (
            Column(f"{level} CI", hint="of the paired difference"),
            lambda x: interval(x.ci_low, x.ci_high, _digits(x)),
        ),
        (Column("p", hint="two-sided"), lambda x: p_text(x.p_value)),
        (
            Column("p adj.", hint="adjusted for the rows of its family; the verdict follows it"),
            lambda x: p_text(x.p_adjusted) if adjusted else "",
        ),
        (Column("Test", text=True, hint="what p and the interval come from"), by_test),
        (Column("Verdict", text=True), lambda x: x.verdict),
        (_NOTES, lambda x: " ".join(marks[code] for code in x.diagnostics)),
    ]


_NOISE: _Cells = (
    (
        Column("SE", hint="standard error of the paired difference"),
        lambda x: number(x.se, _digits(x)),
    ),
    (_TOTAL, lambda x: number(x.se_total, _digits(x))),
    (_DATA, lambda x: data_noise(x, _digits(x))),
    (_PREDICTION, lambda x: number(x.se_prediction, _digits(x))),
    (
        Column("unpaired", hint="standard error if the pairing were ignored"),
        lambda x: number(x.se_unpaired, _digits(x)),
    ),
    (
        Column("MDE", hint="smallest difference that is detected with 80 % power"),
        lambda x: number(x.mde, _digits(x)),
    ),
    (Column("corr.", hint="correlation of the two runs' question means"), lambda x: number(x.correlation, 2)),
    (
        Column("wins A : B : ties", hint="expected over all pairs of answers"),
        lambda x: MISSING if x.wins_a is None else f"{count(x.wins_a)} : {count(x.wins_b)} : {count(x.ties)}",
    ),
    (Column("n", hint="questions that both runs have"), lambda x: str(x.n_questions)),
    (
        Column("unpaired n", hint="questions that only A has + that only B has"),
        lambda x: f"{x.n_only_a} + {x.n_only_b}" if x.n_only_a or x.n_only_b else "",
    ),
    (Column("K", hint="scored answers per question"), lambda x: span(*sorted((x.repeats_a, x.repeats_b)))),
    (Column("G", hint="clusters"), lambda x: str(x.n_clusters) if x.cluster else ""),
    (Column("missing", hint="answers without a score"), lambda x: str(x.n_missing) if x.n_missing else ""),
)


def taken_back(table: Comparison) -> list[str]:
    """Which rows have another verdict than their own interval would give, and why."""
    rows = [item for item in table.differences if "not_after_adjustment" in item.diagnostics]
    if not rows:
        return []
    method = {"holm": "Holm's", "bh": "Benjamini and Hochberg's"}.get(str(table.settings.get("adjust")), "the")
    names = [" ".join(part for part in (item.task, metric_name(item.metric, item.scorer)) if part) for item in rows]
    where = ", ".join(names[:6]) + (f" and {len(rows) - 6} more" if len(rows) > 6 else "")
    which, are, verdicts = ("these rows", "they are", "verdicts follow") if len(rows) > 1 else (
        "this row", "it is", "verdict follows"
    )  # fmt: skip
    return [
        f"{where}: the interval of {which} alone would show a difference, but among the rows that are tested together "
        f"{are} not significant ({method} adjustment), and the {verdicts} that."
    ]


def _combined(table: Comparison) -> Section:
    columns = (
        Column("Method", text=True),
        Column("n", hint="tasks or models"),
        Column("A − B"),
        Column("SE"),
        Column("df", hint="of the t test; none: another distribution"),
        Column("p"),
        Column("p heterogeneity", hint="Cochran's Q: small where the tasks do not share one difference"),
    )
    rows = tuple(
        (
            item.method,
            str(item.n),
            number(item.diff, decimals(item.se)),
            number(item.se, decimals(item.se)),
            number(item.df, 0),
            p_text(item.p_value),
            p_text(item.heterogeneity_p),
        )
        for item in table.combined
    )
    return Section("All rows together (above 0: A is better)", columns, rows)


def _flips(table: Comparison) -> Section:
    several = len({(flip.task, flip.metric, flip.scorer) for flip in table.flips}) > 1
    columns = (
        Column("Task", text=True),
        Column("Question", text=True),
        Column("Cluster", text=True),
        Column("A"),
        Column("B"),
        Column("A − B"),
    )
    rows = [
        (
            f"{plain(flip.task)} {metric_name(flip.metric, flip.scorer)}" if several else "",
            shorten(flip.text or flip.question, 60),
            shorten(flip.cluster or "", 24),
            number(flip.mean_a, 2),
            number(flip.mean_b, 2),
            number(flip.diff, 2),
        )
        for flip in table.flips
    ]
    return Section("Questions that flipped most", *_drop_empty(columns, rows, ("Task", "Cluster")))
