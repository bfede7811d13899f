"""Columns and sections, of which every table is made: how numbers are written, what each column is called and means.

One source for terminal, HTML, README and docs: `python -m harness_noise.report.columns > docs/columns.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from .. import extras
from ..results.diagnostics import SCORED, explained, meaning_of
from ..results.rows import Difference
from . import fmt

Words: TypeAlias = Callable[[str], str]
"""Rewrites a sentence that names parameters in backticks."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, and what it shows of each row."""

    heading: str
    cell: str | Callable[[Any], str] = field(default="", compare=False, repr=False)
    """The content of a row's cell: fields as the JSON has them (see `fields_text`), or a function of the row."""
    hint: str = ""
    """The meaning of the column, in one line."""
    rank: int = 0
    """The order in which columns leave a narrow terminal, the highest first. 0 never leaves."""
    text: bool = False
    """Text is set flush left, numbers flush right."""
    optional: bool = False
    """Leave the column out of a table in which it is empty."""
    detail: bool = False
    """A terminal shows it on request (`--details`)."""
    advice: bool = False
    """Its cells are sentences of ours, which may name parameters."""
    tone: Callable[[Any], str] | None = field(default=None, compare=False, repr=False)
    """The colour of a row's cell, if the renderer has colours: good, bad, unsure or sure, "" for most."""

    def text_of(self, row: Any) -> str:
        """Return the text of this column's cell for a row. Text columns show "" for a missing value."""
        if callable(self.cell):
            return self.cell(row)
        text = fields_text(row, self.cell)
        return "" if self.text and text == fmt.MISSING else text


TextColumn = partial(Column, text=True)
"""A column of names or words."""


@dataclass(frozen=True, slots=True)
class Section:
    """One table."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    detail: bool = False
    """A terminal shows it on request (`--details`)."""
    more: str = ""
    """A terminal's line below the table about rows that it leaves out."""
    tones: Mapping[tuple[int, str], str] = field(default_factory=dict)
    """(Row, heading of the column) → tone of the cell, where it has one."""
    stacked: bool = False
    """A single row that a terminal shows one figure below the other."""
    units: str = ""
    """The units of the numbers, if not the metric's own scale: "differences and SE in points"."""
    of: Sequence[Any] = field(default=(), compare=False, repr=False)
    """What the rows show, for tooltips. Empty: unknown."""
    below: tuple[str, ...] = ()
    """A paper's sentences on the table."""

    @property
    def heading(self) -> str:
        """Title of a table's section, followed by the units of its numbers."""
        return "; ".join(filter(None, (self.title, self.units)))

    def keeping(self, kept: Sequence[int]) -> Section:
        """Return the table reduced to the columns with these indexes."""
        rows = tuple(tuple(row[i] for i in kept) for row in self.rows)
        return replace(self, columns=tuple(self.columns[i] for i in kept), rows=rows)

    def worded(self, words: Words) -> Section:
        """Return the table with `words` applied to hints, cells of `advice` columns and `more`, as to name flags."""
        columns = tuple(replace(column, hint=words(column.hint)) for column in self.columns)
        advice = [column.advice for column in self.columns]
        rows = [tuple(words(cell) if own else cell for cell, own in zip(row, advice, strict=True)) for row in self.rows]
        return replace(self, columns=columns, rows=tuple(rows) if any(advice) else self.rows, more=words(self.more))

    def beside(self, other: Section) -> Section:
        """Return the table with the columns of `other` added, which has the same number of rows."""
        rows = tuple((*mine, *more) for mine, more in zip(self.rows, other.rows, strict=True))
        return replace(self, columns=(*self.columns, *other.columns), rows=rows, tones={**self.tones, **other.tones})


class Explanation(NamedTuple):
    """A diagnostic below a table."""

    mark: str
    """Its letter in the columns of codes."""
    code: str
    text: str
    """The meaning, and what to do."""
    meaning: str
    """The meaning alone, for a paper."""


@dataclass(frozen=True, slots=True)
class Summary:
    """All that is shown of a result."""

    sections: tuple[Section, ...]
    legend: tuple[Explanation, ...]
    """The diagnostics of the marks in the columns of codes."""
    sentences: tuple[str, ...]
    """Further sentences, below the tables."""
    lead: tuple[str, ...] = ()
    """The conclusions, above the tables."""
    tones: tuple[str, ...] = ()
    """The tone of each conclusion, as of a cell."""
    foot: tuple[str, ...] = ()
    """The last lines on a terminal."""
    codes: str = ""
    """A sentence that names the diagnostics of a single row, which has no legend."""
    more: str = ""
    """The place where more can be seen, instead of a terminal's own line."""
    listings: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    """Headings, each with (name, text) pairs that do not fit a table. They are shown below the tables."""

    def worded(self, words: Words) -> Summary:
        """Return the summary with `words` applied to its sentences and advice, for example to name flags."""
        return replace(
            self,
            sections=tuple(section.worded(words) for section in self.sections),
            legend=tuple(one._replace(text=words(one.text), meaning=words(one.meaning)) for one in self.legend),
            sentences=tuple(map(words, self.sentences)),
            lead=tuple(map(words, self.lead)),
            foot=tuple(map(words, self.foot)),
            more=words(self.more),
        )


def section(
    title: str,
    rows: Sequence[Any],
    columns: Sequence[Column],
    *,
    detail: bool = False,
    more: str = "",
) -> Section:
    """Return a table (`Section`) with one line per row. Optional columns without any value are dropped."""
    lines = tuple(tuple(column.text_of(row) for column in columns) for row in rows)
    filled = [any(line[i] not in ("", fmt.MISSING) for line in lines) for i in range(len(columns))]
    kept = [i for i, column in enumerate(columns) if filled[i] or not column.optional]
    toned = ((i, column.heading, column.tone(row)) for i, row in enumerate(rows) for column in columns if column.tone)
    tones = {(i, heading): tone for i, heading, tone in toned if tone}
    return Section(title, tuple(columns), lines, detail, more, tones, units=fmt.units_of(rows), of=rows).keeping(kept)


class Marks:
    """Letters for diagnostics, in order of appearance, the same in all tables of a page."""

    def __init__(self) -> None:
        self._clustered: dict[str, set[bool]] = {}
        """Code → whether the rows that have it count clusters."""
        self._right_or_wrong: dict[str, set[bool]] = {}
        """Code → whether the rows of questions that have it have scores that are right or wrong."""

    def __call__(self, codes: Sequence[str], clustered: bool | None = None) -> str:
        """Return the letters (`a b`) of a row's codes, all of them, assigned on first use and kept for the legend.

        Args:
            codes: its diagnostics.
            clustered: whether the row counts clusters; None: it is no row of questions.
        """
        for code in codes:
            kinds = self._clustered.setdefault(code, set())
            kinds |= set() if clustered is None else {clustered}
        return " ".join(_letter(i) for i, code in enumerate(self._clustered) if code in codes)

    def column(self) -> Column:
        """Return a table's last column, which shows the letters of each row's diagnostics."""
        return Column("", self._letters_of, "letters refer to the diagnostics below", text=True, optional=True)

    def _letters_of(self, row: Any) -> str:
        for code in fmt.shown_codes(row) if hasattr(row, "_zero_one") else ():
            self._right_or_wrong.setdefault(code, set()).add(bool(row._zero_one))
        return self(fmt.shown_codes(row), row.cluster is not None if hasattr(row, "cluster") else None)

    def legend(self) -> tuple[Explanation, ...]:
        """Return an `Explanation` (letter, code, text, meaning) of each code given a letter, in order of the letters.

        Clusters are named only if a row with the letter has them.
        """
        corrected = "judge_corrected" in self._clustered
        out = []
        for i, (code, kinds) in enumerate(self._clustered.items()):
            clustered = next(iter(kinds)) if len(kinds) == 1 else None
            graded = self._right_or_wrong.get(code) == {False}
            text = explained(code, clustered, corrected=corrected, graded=graded)
            out.append(Explanation(_letter(i), code, text, meaning_of(code, clustered, graded=graded)))
        return tuple(out)


def _letter(i: int) -> str:
    """Return the i-th letter mark: a … z, then aa … zz, and so on."""
    return chr(ord("a") + i % 26) * (1 + i // 26)


_ERRORS = ("se", "se_total", "se_prediction", "se_unpaired")
"""Standard errors. Of scores that are all equal they are 0, which is not shown."""


def fields_text(row: Any, names: str) -> str:
    """Return one or more fields of a row as a cell's text, formatted by kind (count, p, number). None: a dash.

    Args:
        row: of any result.
        names: a field, perhaps of a field (`judge.bias`); both ends of an interval, with a comma between them; or
            others that are shown together.
    """
    if names in _TOGETHER:
        return _TOGETHER[names](row)
    first, comma, second = names.partition(", ")
    if comma:
        return fmt.interval_text(row, getattr(row, first), getattr(row, second), mean=fmt.is_mean(row, first))
    value = row
    for name in names.split("."):
        value = getattr(value, name, None)
    if value is None or (names in _ERRORS and not value and "zero_variance" in row.diagnostics):
        return fmt.MISSING  # a standard error of 0 of equal scores is no certainty
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, str):
        return fmt.plain(value)
    if names == "df":
        return fmt.degrees(value)
    return fmt.p_text(value) if "p" in names.split("_") else fmt.shown(row, value, mean=fmt.is_mean(row, names))


def verdict_tone(row: Difference) -> str:
    """Return "good" if A is better, "bad" if B is better, else "", by which a row is coloured."""
    return {"A better": "good", "B better": "bad"}.get(row.verdict, "")


def significance_tone(row: Any) -> str:
    """Return "sure" if a row's adjusted p is significant and shows the models, not the scoring. Else ""."""
    shown = row.p_adjusted is not None and row.p_adjusted < 1 - row.level
    return "sure" if shown and SCORED not in getattr(row, "diagnostics", ()) else ""


_TOGETHER: dict[str, Callable[[Any], str]] = {
    "correlation": lambda row: fmt.number(row.correlation, 2),
    "design_effect": lambda row: fmt.number(row.design_effect, 2) if row.cluster else fmt.MISSING,
    "estimator": fmt.estimator_of,
    "interval, df": fmt.mean_interval_name,
    "judge.bias, judge.bias_se": fmt.bias,
    "judge.gain": lambda row: fmt.MISSING if row.judge is None else fmt.number(row.judge.gain, 2),
    "mean_if_missing_wrong, mean_if_missing_right": fmt.if_missing,
    "metric, scorer": lambda row: fmt.metric_name(row.metric, row.scorer) + fmt.unit_of(row),
    "n_clusters": lambda row: f"{row.n_clusters:,}" if row.cluster else fmt.MISSING,
    "n_missing": lambda row: f"{row.n_missing:,}" if row.n_missing else "",
    "n_only_a, n_only_b": lambda row: f"{row.n_only_a:,} + {row.n_only_b:,}" if row.n_only_a or row.n_only_b else "",
    "n_questions": lambda row: f"{row.n_questions:,}" if row.n_questions else fmt.MISSING,
    "repeats_a, repeats_b": lambda row: fmt.of_each(row.repeats_a, row.repeats_b),
    "repeats_min, repeats_max": lambda row: (
        fmt.span(row.repeats_min, row.repeats_max) if row.n_questions else fmt.MISSING
    ),
    "se_data": fmt.data_noise,
    "test, interval, df": fmt.by_test,
    "verdict": fmt.verdict_words,
    "wins_a, wins_b, ties": lambda row: (
        fmt.MISSING if row.wins_a is None else " : ".join(map(fmt.count, (row.wins_a, row.wins_b, row.ties)))
    ),
}
"""Fields → their display, if it is not that of other fields or if several are shown together."""

TASK = (TextColumn("Task", "task"), TextColumn("Metric", "metric, scorer"))
"""The columns that name a row."""

_LEFT = "SE left with infinitely many answers: the questions are a sample"
_DESIGN = "design effect of {}: how many times clustering inflates its variance"
CLUSTERS = Column("G", "n_clusters", "clusters: groups of questions that are right or wrong together", 3, optional=True)
_LABELS = {
    "judge": Column("judge", "judge.mean_judge", "the judge's own mean, or difference", 1, optional=True),
    "bias": Column(
        "correction",
        "judge.bias, judge.bias_se",
        "what human labels add to it, with its standard error",
        1,
        optional=True,
    ),
    "labelled": Column("labels", "judge.n_labelled", "questions with a label", 1, optional=True),
    "gain": Column(
        "gain", "judge.gain", "variance of the labels alone over that of the corrected estimate", 2, optional=True
    ),
}
"""The columns of a judge that human labels correct."""
_MISSING = Column("missing", "n_missing", "answers without a score", 1, optional=True)

MEANS: dict[str, Column] = {
    "mean": Column("Mean", "mean", "mean score over the questions and their answers"),
    "ci": Column("95% CI", "ci_low, ci_high", "confidence interval: where the true mean lies, with 95% confidence"),
    "interval": TextColumn(
        "interval",
        "interval, df",
        "how the interval was made, and the degrees of freedom of Student's t",
        6,
        optional=True,
    ),
    "se": Column("SE", "se", "standard error of the mean that was measured"),
    "total": Column("SE (1 answer)", "se_total", "SE with one answer per question, as leaderboards report it", 3),
    "data": Column("data", "se_data", _LEFT, 4, optional=True),
    "prediction": Column(
        "prediction",
        "se_prediction",
        "what the model's own randomness adds at one answer per question",
        4,
        optional=True,
    ),
    "n": Column("n", "n_questions", "questions", 2),
    "k": Column("K", "repeats_min, repeats_max", "scored answers per question", 2),
    "g": CLUSTERS,
    "deff": Column("deff", "design_effect", _DESIGN.format("this mean"), 5, optional=True),
    "estimator": TextColumn("estimator", "estimator", "variance estimator behind SE", 6, optional=True),
    "missing": _MISSING,
    "if_missing": Column(
        "if wrong … right",
        "mean_if_missing_wrong, mean_if_missing_right",
        "the mean if all missing answers were wrong, and if all were right",
        1,
        optional=True,
    ),
    **_LABELS,
}
"""Columns of `analyze`."""
NATIVE = {
    "mean": ("_avg", ""),
    "ci": ("_avg_ci_low_stderr, _avg_ci_high_stderr", "noise_ci_low, noise_ci_high"),
    "se": ("_avg_stderr", "noise_se"),
    "total": ("_total_stderr", "noise_total"),
    "data": ("_data_stderr, _data_upper_stderr", "noise_data, noise_data_upper"),
    "prediction": ("_prediction_stderr", "noise_prediction"),
}
"""Column → keys in lm-eval's results, after the metric's name, and metrics in Inspect's log with the same numbers."""

DIFFERENCES: dict[str, Column] = {
    "a": Column("A", "mean_a", "mean of the first run, over the questions that are compared"),
    "b": Column("B", "mean_b", "mean of the second run, the baseline"),
    "diff": Column("A − B", "diff", "difference of the two means"),
    "ci": Column("95% CI", "ci_low, ci_high", "where the true difference lies, with 95% confidence"),
    "p": Column("p", "p_value", "how often chance alone gives a difference as large (two-sided)", 2),
    "p_adj": Column(
        "p adj.",
        "p_adjusted",
        "p adjusted for the rows that are tested together. The verdict uses it",
        optional=True,
        tone=significance_tone,
    ),
    "p_sign": Column("p sign", "p_sign", "of the exact sign test", 5),
    "test": TextColumn("Test", "test, interval, df", "what p and the interval come from", 4),
    "verdict": TextColumn(
        "Verdict",
        "verdict",
        "conclusion from the adjusted p",
        tone=verdict_tone,
    ),
    "se": Column("SE", "se", "standard error of A − B", 3),
    "total": Column("SE (1 answer)", "se_total", "SE with one answer per question and run", 5),
    "data": Column("data", "se_data", _LEFT, 6, optional=True),
    "prediction": Column(
        "prediction", "se_prediction", "what the models' own randomness adds at one answer each", 6, optional=True
    ),
    "unpaired": Column("unpaired", "se_unpaired", "SE without pairing by question", 5),
    "mde": Column("detectable", "mde", "smallest true difference found with 80% power (MDE)", 2),
    "corr": Column("corr.", "correlation", "correlation of the two runs' question means", 6, optional=True),
    "wins": Column(
        "wins A : B : ties",
        "wins_a, wins_b, ties",
        "questions won by A, won by B, tied: averages over all pairs of answers",
        6,
    ),
    "n": Column("n", "n_questions", "questions that both runs have (unpaired: of both together)", 4),
    "only": Column("unpaired n", "n_only_a, n_only_b", "questions that only A has + that only B has", 4, optional=True),
    "k": Column("K", "repeats_a, repeats_b", "scored answers per question (A : B if they differ)", 5),
    "g": replace(CLUSTERS, rank=5),
    "deff": Column("deff", "design_effect", _DESIGN.format("A − B"), 6, optional=True),
    "missing": replace(_MISSING, rank=4),
    **{key: replace(column, rank=column.rank + 1) for key, column in _LABELS.items()},
}
"""Columns of `compare`, and of all pairs of many runs."""


def _chosen(columns: Mapping[str, Column], keys: str, level: str = "95%") -> list[Column]:
    """Return the columns with these keys, "95%" in their headings replaced by `level`."""

    def at_level(column: Column) -> Column:
        return replace(column, heading=column.heading.replace("95%", level), hint=column.hint.replace("95%", level))

    return [at_level(columns[key]) for key in keys.split()]


mean_columns, difference_columns = partial(_chosen, MEANS), partial(_chosen, DIFFERENCES)
"""Columns of `analyze`, and of `compare`: see `_chosen`."""

PAGE = """# Columns

This page says what the columns of every table mean, as the screen and HTML pages do. It names the same numbers in the
JSON, in lm-eval's results and in Inspect's logs. A terminal of 80 columns shows the most important ones. `--details`
shows all. All standard errors are on the metric's own scale.
"""
_PARTS: tuple[tuple[str, str, dict[str, Column], dict[str, tuple[str, str]]], ...] = (
    ("Of one run", "Tables of `analyze`", MEANS, NATIVE),
    ("Of two runs", "Tables of `compare`", DIFFERENCES, {}),
)


def page() -> str:
    """Return docs/columns.md: what each column of the tables means, with its names in JSON and logs."""
    out = [PAGE]
    for title, lead, columns, native in _PARTS:
        heads = ["column", "what it is", "JSON", *(["lm-eval", "Inspect"] if native else [])]
        rows = [f"## {title}\n\n{lead}{extras.words(lead)}.\n", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for key, column in columns.items():
            cells = [column.heading, column.hint, _code(str(column.cell))]
            if native:
                lm_eval, inspect = native.get(key, ("", ""))
                cells += [_code(lm_eval and "<metric>" + lm_eval.replace(", ", ", <metric>")), _code(inspect)]
            rows.append(f"| {' | '.join(cells)} |")
        out.append("\n".join(rows) + "\n")
    return "\n".join(out)


def _code(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", ") if name)


if __name__ == "__main__":
    print(page(), end="")
