"""What a person is shown of a result: sections of labelled columns, digits that follow the SE.

Every renderer draws these sections and nothing else; the complete numbers are in JSON and CSV.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ..io.paths import telling_parts
from ..results.rows import Analysis, Comparison, Difference, Estimate, Flip
from . import slices
from .columns import (
    MISSING,
    Column,
    Section,
    Summary,
    borrowed_line,
    by_test,
    count,
    data_noise,
    decimals,
    digits_of,
    drop_empty,
    estimand_line,
    if_missing,
    interval,
    legend_of,
    level_of,
    marks_of,
    mean_interval_name,
    metric_name,
    names_of,
    number,
    of_each,
    p_text,
    plain,
    shorten,
    span,
)
from .sentences import FEW, closing_line, sentence, shown_rows, verdict_lines
from .sequential import full_section, look_section, stopping
from .words import NOTES, difference_column, mean_column

if TYPE_CHECKING:
    from ..results.arena import Arena
    from ..results.explanation import Explanation, Factors
    from ..results.plan import Plan


Result: TypeAlias = "Analysis | Comparison | Plan | Factors | Arena | Explanation"


def summarise(table: Result, *, brief: bool = False, wide: bool = False) -> Summary:
    """The display form of a result.

    Args:
        table: the result.
        brief: of many rows those that say something, and of sentences a few.
        wide: questions and answers whole.
    """
    if isinstance(table, Analysis):
        return _analysis(table, brief=brief)
    if isinstance(table, Comparison):
        return _comparison(table, brief=brief, wide=wide)
    from ..results.explanation import Explanation, Factors
    from ..results.plan import Plan

    if isinstance(table, Plan):
        from . import planning

        return planning.summarise(table)
    if isinstance(table, Factors):
        return _factors(table)
    if isinstance(table, Explanation):
        from . import explanation

        return explanation.summarise(table)
    from . import arena_summary

    return arena_summary.summarise(table)


def _factors(table: Factors) -> Summary:
    marks = marks_of(item.diagnostics for item in table.factors)
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
        Column("df", hint="degrees of freedom", rank=2),
        Column("levels", hint="how many of them there are"),
        Column("gain", hint="how much lower 1,000 more answers on new levels make the variance of the mean", rank=1),
        NOTES,
    )
    digits = decimals(max((item.se or 0.0 for item in table.factors), default=None))
    title = f"{table.n_answers} answers, mean {number(table.mean, digits)}"
    shown = drop_empty(columns, rows, ("",))
    return Summary((Section(title, *shown),), legend_of(marks), table.notes, (table.advice,))


NO_SAMPLES = (
    "There are no error bars, because the answers to the single questions are not there. What to do: keep them with "
    "--log_samples (lm-eval) and run again; or compare two such numbers by the noise of their benchmark, as in "
    "harness-noise compare 0.71 0.68 --reference gpqa_diamond."
)
NOT_SCORED = (
    "There are no means and no error bars, because the run only predicted: the answers are there, but nothing was "
    "scored. What to do: run again without --predict_only (with lm-eval's --use_cache, greedy answers are not asked "
    "for again), or score the answers yourself and read them as a table."
)
SENTENCES = 1
"""Sentences for a paper below a terminal's table."""


def _analysis(table: Analysis, *, brief: bool) -> Summary:
    rows, marks = [], _marks_of(table, table.estimates)
    several = len({(item.model, item.run) for item in table.estimates}) > 1
    level, clustered = level_of(table.estimates), any(item.cluster for item in table.estimates)
    methods = {name for item in table.estimates if (name := mean_interval_name(item))}
    runs = _run_names(table.estimates)
    for item in table.estimates:
        model, run = plain(item.model) if several else "", plain(runs.get((item.model, item.run), ""))
        method = mean_interval_name(item) if len(methods) > 1 else ""
        rows.append(
            (model, run, *_estimate_cells(item, method, clustered), " ".join(marks[c] for c in item.diagnostics))
        )
    keys = ("mean", "ci", "interval", "se", "total", "data", "prediction", "n", "k", "g", "deff", "missing")
    columns = (
        Column("Model", text=True),
        Column("Run", text=True, hint="what tells the runs of one model apart"),
        Column("Task", text=True),
        Column("Metric", text=True),
        *(mean_column(key, level) for key in (*keys, "if_missing")),
        NOTES,
    )
    shown = drop_empty(columns, rows, ("Model", "Run", "interval", "G", "deff", "missing", "if wrong … right", ""))
    # one sentence for each task and group of each run, about its first metric
    first: dict[tuple[str, str, str], Estimate] = {}
    for item in table.estimates:
        if item.se is not None:
            first.setdefault((item.model, item.run, item.task), item)
    written = list(map(sentence, first.values()))
    if brief and len(written) > SENTENCES:
        written[SENTENCES:] = ["Such a sentence of every row: --format sentence."]
    stopped, said = stopping(table, marks)
    sentences = [*said, *written, *slices.sentences(table), *estimand_line(table.estimates)]
    lead = [
        closing_line(item, who=" ".join([item.model, runs.get((item.model, item.run), "")]).strip() if several else "")
        for item in (table.estimates if len(table.estimates) <= FEW else ())
    ]
    more = [*slices.sections(table, marks), *stopped]
    notes = legend_of(marks, (*table.estimates, *table.slices))
    first_table = Section("", *shown)
    if brief and table.estimates and all("skipped_metric" in item.diagnostics for item in table.estimates):
        why = NOT_SCORED if any("predict_only" in note for note in table.notes) else NO_SAMPLES
        return Summary(tuple(more), (), (why,), tuple(lead))  # instead of a table of dashes
    return Summary((first_table, *more), notes, tuple(sentences), tuple(lead))


def _estimate_cells(item: Estimate, method: str, clustered: bool) -> tuple[str, ...]:
    """The cells of an estimate from its task to its missing answers."""
    digits = decimals(item.se, item.mean)
    return (
        plain(item.task),
        metric_name(item.metric, item.scorer),
        number(item.mean, digits),
        interval(item.ci_low, item.ci_high, digits),
        method,
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
    )


def _marks_of(table: Analysis | Comparison, rows: Sequence[Estimate] | Sequence[Difference]) -> dict[str, str]:
    """The marks of all rows and of their slices."""
    return marks_of(item.diagnostics for item in (*rows, *table.slices, *table.heterogeneity, *table.full_benchmark))


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
    return drop_empty(tuple(column for column, _ in cells), rows, optional)


def _comparison(table: Comparison, *, brief: bool, wide: bool) -> Summary:
    every = table.differences
    items = shown_rows(table) if brief else list(every)
    marks = _marks_of(table, items)
    several = len({(item.model_a, item.run_a, item.model_b, item.run_b) for item in every}) > 1
    names: _Cells = [
        (Column("Task", text=True), lambda x: plain(x.task)),
        (Column("Metric", text=True), lambda x: metric_name(x.metric, x.scorer)),
    ]
    if several:
        names = [(Column("A − B", text=True), lambda x: plain(" − ".join(names_of(x)))), *names]
    adjusted = len(every) > 1 and table.settings.get("adjust") != "none"
    results = _filled(items, [*names, *_results(level_of(every), marks, adjusted=adjusted)])
    known = every and not several and names_of(every[0]) != ("A", "B")
    title = plain("A = {}, B = {}".format(*names_of(every[0]))) if known else ""
    left = len(every) - len(items)
    more = f"{left} more rows: --details shows them, --format csv has them all." if left else ""
    sections = [Section(title, *results, more=more)] if items or not left else [Section(title, (), (), more=more)]
    sections.append(Section("Noise of A − B (standard errors)", *_filled(items, [*names, *_NOISE]), detail=True))
    sections += slices.sections(table, marks)
    if table.sequential:
        sections.append(look_section(table.sequential))
    if table.full_benchmark:
        sections.append(full_section(table.full_benchmark, marks))
    if table.combined:
        sections.append(_combined(table))
    if table.flips and not wide:
        sections.append(flip_table(table.flips))
    sentences = [f"{item.method}: {item.note}." for item in table.combined if item.note]
    sentences += [*taken_back(table), *slices.sentences(table), *estimand_line(every)]
    sentences += borrowed_line(every)
    notes = legend_of(marks, (*items, *table.slices))
    listings = flip_listings(table.flips) if wide else ()
    return Summary(tuple(sections), notes, tuple(sentences), tuple(verdict_lines(table)), listings)


def _results(level: str, marks: Mapping[str, str], *, adjusted: bool) -> _Cells:
    return [
        (difference_column("a"), lambda x: number(x.mean_a, digits_of(x))),
        (difference_column("b"), lambda x: number(x.mean_b, digits_of(x))),
        (difference_column("diff"), lambda x: number(x.diff, digits_of(x))),
        (difference_column("ci", level), lambda x: interval(x.ci_low, x.ci_high, digits_of(x))),
        (difference_column("p"), lambda x: p_text(x.p_value)),
        (difference_column("p_adj"), lambda x: p_text(x.p_adjusted) if adjusted else ""),
        (difference_column("test"), by_test),
        (difference_column("verdict"), lambda x: x.verdict),
        (NOTES, lambda x: " ".join(marks[code] for code in x.diagnostics)),
    ]


_NOISE: _Cells = (
    (difference_column("se"), lambda x: number(x.se, digits_of(x))),
    (difference_column("total"), lambda x: number(x.se_total, digits_of(x))),
    (difference_column("data"), lambda x: data_noise(x, digits_of(x))),
    (difference_column("prediction"), lambda x: number(x.se_prediction, digits_of(x))),
    (difference_column("unpaired"), lambda x: number(x.se_unpaired, digits_of(x))),
    (difference_column("mde"), lambda x: number(x.mde, digits_of(x))),
    (difference_column("corr"), lambda x: number(x.correlation, 2)),
    (
        difference_column("wins"),
        lambda x: MISSING if x.wins_a is None else f"{count(x.wins_a)} : {count(x.wins_b)} : {count(x.ties)}",
    ),
    (difference_column("n"), lambda x: str(x.n_questions)),
    (difference_column("only"), lambda x: f"{x.n_only_a} + {x.n_only_b}" if x.n_only_a or x.n_only_b else ""),
    (difference_column("k"), lambda x: of_each(x.repeats_a, x.repeats_b)),
    (difference_column("g"), lambda x: str(x.n_clusters) if x.cluster else ""),
    (difference_column("missing"), lambda x: str(x.n_missing) if x.n_missing else ""),
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


TITLE = "Questions that flipped most"
Listing = tuple[str, tuple[tuple[str, str], ...]]
"""A heading, and what stands below it: labels with their texts."""


def flip_table(flips: Sequence[Flip]) -> Section:
    """One row for each question; of the answers the most frequent one's end, where the result stands."""
    several = len({(flip.task, flip.metric, flip.scorer) for flip in flips}) > 1
    columns = (
        Column("Task", text=True),
        Column("id", text=True, hint="what the harness calls the question", rank=5),
        Column("Question", text=True, hint="its beginning; --wide shows it whole"),
        Column("Cluster", text=True, rank=4),
        Column("Target", text=True, hint="the answer that is right", rank=1),
        Column("A says", text=True, hint="the end of A's most frequent answer; --wide shows all", rank=2),
        Column("B says", text=True, hint="the same of B", rank=2),
        Column("A", hint="A's mean score on the question"),
        Column("B", hint="B's mean score on it"),
        Column("A − B", hint="the difference"),
    )
    rows = [
        (
            f"{plain(flip.task)} {metric_name(flip.metric, flip.scorer)}" if several else "",
            shorten(flip.question, 12) if flip.text is not None else "",
            shorten(flip.text or flip.question, 60),
            shorten(flip.cluster or "", 24),
            shorten(flip.target or "", 16),
            _ending(flip.answers_a),
            _ending(flip.answers_b),
            number(flip.mean_a, 2),
            number(flip.mean_b, 2),
            number(flip.diff, 2),
        )
        for flip in flips
    ]
    optional = ("Task", "id", "Cluster", "Target", "A says", "B says")
    return Section(TITLE, *drop_empty(columns, rows, optional))


def flip_listings(flips: Sequence[Flip]) -> tuple[Listing, ...]:
    """Every question whole, with its target and all answers."""
    out = []
    for i, flip in enumerate(flips, 1):
        name = " ".join(filter(None, (flip.task, metric_name(flip.metric, flip.scorer))))
        cluster = f", cluster {flip.cluster}" if flip.cluster else ""
        scores = f"{number(flip.mean_a, 2)} against {number(flip.mean_b, 2)}"
        lines = [("Question", flip.text or "not in the log")]
        lines += [("Target", flip.target)] if flip.target is not None else []
        lines += [(flip.model_a, text) for text in _counted(flip.answers_a)]
        lines += [(flip.model_b, text) for text in _counted(flip.answers_b)]
        shown = tuple((plain(label), _lines(text)) for label, text in lines)
        out.append((plain(f"{i}. {name}, {flip.question}{cluster}: {scores}"), shown))
    return tuple(out)


def _counted(answers: Sequence[str]) -> list[str]:
    """Each different answer once, with how often it came where that says something."""
    found = Counter(answers)
    return [f"({n} of {len(answers)}) {text}" if len(answers) > 1 else text for text, n in found.most_common()]


def _lines(text: str) -> str:
    """Without control characters, line by line."""
    return "\n".join(filter(None, map(plain, text.splitlines()))) or "(empty)"


def _ending(answers: Sequence[str], width: int = 16) -> str:
    if not answers:
        return ""
    text = plain(Counter(answers).most_common(1)[0][0])
    return text if len(text) <= width else "…" + text[1 - width :]
