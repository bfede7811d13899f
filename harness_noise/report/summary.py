"""What a person is shown of a result: sections of labelled columns, digits that follow the SE.

Every renderer draws these sections and nothing else; the complete numbers are in JSON and CSV.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ..places import telling_parts
from ..results import DIAGNOSTICS, Analysis, Comparison, Difference, Estimate, Plan

if TYPE_CHECKING:
    from ..arena_results import Arena
    from ..factors import Factors

    Result: TypeAlias = Analysis | Comparison | Plan | Factors | Arena

MISSING = "–"
THESE_QUESTIONS = (
    "Estimand: these questions. Standard errors, intervals and p-values come from the repeated answers alone; nothing "
    "is said of other questions of their kind, and clusters play no part."
)
MOST_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class Column:
    label: str
    text: bool = False
    """Text is set flush left, numbers flush right."""
    hint: str = ""
    """What the column is, in one sentence."""


@dataclass(frozen=True, slots=True)
class Section:
    """One table."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Summary:
    sections: tuple[Section, ...]
    legend: tuple[tuple[str, str, str], ...]
    """(mark, diagnostic code, explanation) for the marks in the Notes columns."""
    sentences: tuple[str, ...]
    """Ready for a paper or a pull request."""


def summarise(table: Result) -> Summary:
    """The display form of a result."""
    if isinstance(table, Analysis):
        return _analysis(table)
    if isinstance(table, Comparison):
        return _comparison(table)
    if isinstance(table, Plan):
        from . import planning

        return planning.summarise(table)
    from ..factors import Factors

    if isinstance(table, Factors):
        return _factors(table)
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


def decimals(se: float | None, fallback: float | None = None) -> int:
    """Decimals that show two significant digits of the standard error, between 1 and MOST_DECIMALS."""
    scale = abs(se) if se else (abs(fallback) / 100 if fallback else None)
    if not scale or not math.isfinite(scale):
        return 3
    return min(MOST_DECIMALS, max(1, 1 - math.floor(math.log10(scale))))


def number(value: float | None, digits: int) -> str:
    if value is None:
        return MISSING
    text = f"{value:.{digits}f}"
    if digits == MOST_DECIMALS and 0 < abs(value) < 100 * 10**-digits:  # a small metric is not zero
        text = f"{value:.2e}"
    return text.replace("-", "−") if float(text) else text.lstrip("-")


def data_noise(item: Estimate | Difference, digits: int) -> str:
    """`se_data`; where its estimate is negative "< x", x its upper limit rounded up: noise below that is not seen."""
    if item.var_data is None or item.var_data >= 0 or item.se_data_upper is None:
        return number(item.se_data, digits)
    unit = 10.0**-digits
    return f"< {number(max(1, math.ceil(item.se_data_upper / unit - 1e-9)) * unit, digits)}"


_INTERVALS = {"wilson": "Wilson", "korn-graubard": "Korn–Graubard", "bootstrap": "bootstrap", "t": "t"}


def mean_interval_name(item: Estimate) -> str:
    """The interval's method and its degrees of freedom: "Wilson, t 19 df"."""
    if item.interval == "clopper-pearson":
        return "Clopper–Pearson"
    if item.interval not in _INTERVALS or item.df is None:
        return ""
    df = f"{degrees(item.df)} df"
    return f"t, {df}" if item.interval == "t" else f"{_INTERVALS[item.interval]}, t {df}"


def if_missing(item: Estimate, digits: int) -> str:
    """The mean if all missing answers were wrong, and if all were right, where that matters."""
    if "missing_matters" not in item.diagnostics:
        return ""
    return f"{number(item.mean_if_missing_wrong, digits)} … {number(item.mean_if_missing_right, digits)}"


def interval(low: float | None, high: float | None, digits: int) -> str:
    return MISSING if low is None or high is None else f"[{number(low, digits)}, {number(high, digits)}]"


def p_text(p: float | None) -> str:
    if p is None:
        return MISSING
    if p < 0.0001:
        return "< 0.0001"
    return f"{p:.4f}" if p < 0.001 else f"{p:.3f}"


def count(value: float | None) -> str:
    """A count that may be fractional: expected wins."""
    if value is None:
        return MISSING
    return f"{value:.0f}" if abs(value - round(value)) < 1e-9 else f"{value:.1f}"


def metric_name(metric: str, scorer: str) -> str:
    return plain(metric if scorer in ("none", "") else f"{metric}, {scorer}")


def span(low: int, high: int) -> str:
    return str(high) if low == high else f"{low}–{high}"


def _marks(codes: Iterable[Sequence[str]]) -> dict[str, str]:
    """A letter for every diagnostic in the table, in order of appearance."""
    found = list(dict.fromkeys(code for row in codes for code in row))
    return {code: _letter(i) for i, code in enumerate(found)}


def _letter(i: int) -> str:
    return chr(ord("a") + i % 26) * (1 + i // 26)


def _legend(
    marks: dict[str, str], rows: Sequence[Estimate] | Sequence[Difference] = ()
) -> tuple[tuple[str, str, str], ...]:
    """What the marks mean; of few degrees of freedom it says whether clusters or questions are few."""
    few = {item.cluster is not None for item in rows if "few_clusters" in item.diagnostics}
    what = {frozenset((True,)): "few clusters: ", frozenset((False,)): "few questions: "}.get(frozenset(few), "")
    return tuple(
        (mark, code, (what if code == "few_clusters" else "") + DIAGNOSTICS.get(code, ""))
        for code, mark in marks.items()
    )


def _drop_empty(columns: Sequence[Column], rows: Sequence[Sequence[str]], optional: Iterable[str]) -> tuple[
    tuple[Column, ...], tuple[tuple[str, ...], ...]
]:  # fmt: skip
    """Leave out the optional columns that say nothing in any row."""
    labels = set(optional)
    keep = [
        i
        for i, column in enumerate(columns)
        if column.label not in labels or any(row[i] not in ("", MISSING) for row in rows)
    ]
    return tuple(columns[i] for i in keep), tuple(tuple(row[i] for i in keep) for row in rows)


_SE = Column("SE", hint="standard error of the mean that was measured")
_TOTAL = Column("total", hint="standard error with one answer per question")
_DATA = Column("data", hint="standard error that is left with infinitely many answers per question")
_PREDICTION = Column("prediction", hint="what the model's own randomness adds at one answer per question")
_NOTES = Column("", text=True, hint="letters refer to the notes below")


def _analysis(table: Analysis) -> Summary:
    rows, marks = [], _marks(item.diagnostics for item in table.estimates)
    several = len({(item.model, item.run) for item in table.estimates}) > 1
    level = _level(table.estimates)
    clustered = any(item.cluster for item in table.estimates)
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
    sentences = [*map(sentence, first.values()), *estimand_line(table.estimates)]
    return Summary((Section("", *shown),), _legend(marks, table.estimates), tuple(sentences))


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


def _level(items: Sequence[Estimate] | Sequence[Difference]) -> str:
    return f"{100 * items[0].level:g} %" if items else "95 %"


def _comparison(table: Comparison) -> Summary:
    items = table.comparisons
    marks = _marks(item.diagnostics for item in items)
    pairs = {(item.model_a, item.run_a, item.model_b, item.run_b) for item in items}
    several = len(pairs) > 1
    adjusted = len(items) > 1 and table.settings.get("adjust") != "none"
    results, noise = [], []
    for item in items:
        digits = decimals(item.se, item.diff or item.mean_a)
        names = (
            plain(" − ".join(names_of(item))) if several else "",
            plain(item.task),
            metric_name(item.metric, item.scorer),
        )
        results.append(
            (
                *names,
                number(item.mean_a, digits),
                number(item.mean_b, digits),
                number(item.diff, digits),
                interval(item.ci_low, item.ci_high, digits),
                p_text(item.p_value),
                p_text(item.p_adjusted) if adjusted else "",
                by_test(item),
                item.verdict,
                " ".join(marks[code] for code in item.diagnostics),
            )
        )
        noise.append(
            (
                *names,
                number(item.se, digits),
                number(item.se_total, digits),
                data_noise(item, digits),
                number(item.se_prediction, digits),
                number(item.se_unpaired, digits),
                number(item.mde, digits),
                number(item.correlation, 2),
                MISSING if item.wins_a is None else f"{count(item.wins_a)} : {count(item.wins_b)} : {count(item.ties)}",
                str(item.n_questions),
                f"{item.n_only_a} + {item.n_only_b}" if item.n_only_a or item.n_only_b else "",
                span(*sorted((item.repeats_a, item.repeats_b))),
                str(item.n_clusters) if item.cluster else "",
                str(item.n_missing) if item.n_missing else "",
            )
        )
    pair = Column("A − B", text=True)
    names_columns = (pair, Column("Task", text=True), Column("Metric", text=True))
    first = (
        *names_columns,
        Column("A"),
        Column("B"),
        Column("A − B"),
        Column(f"{_level(items)} CI", hint="of the paired difference"),
        Column("p", hint="two-sided"),
        Column("p adj.", hint="adjusted for the rows of its family; the verdict follows it"),
        Column("Test", text=True, hint="what p and the interval come from"),
        Column("Verdict", text=True),
        _NOTES,
    )
    second = (
        *names_columns,
        Column("SE", hint="standard error of the paired difference"),
        _TOTAL,
        _DATA,
        _PREDICTION,
        Column("unpaired", hint="standard error if the pairing were ignored"),
        Column("MDE", hint="smallest difference that is detected with 80 % power"),
        Column("corr.", hint="correlation of the two runs' question means"),
        Column("wins A : B : ties", hint="expected over all pairs of answers"),
        Column("n", hint="questions that both runs have"),
        Column("unpaired n", hint="questions that only A has + that only B has"),
        Column("K", hint="scored answers per question"),
        Column("G", hint="clusters"),
        Column("missing", hint="answers without a score"),
    )
    optional = ("p adj.", "unpaired n", "G", "missing", "corr.", "")
    title = plain("A = {}, B = {}".format(*names_of(items[0]))) if items and not several else ""
    shown_first = _without_pair(*_drop_empty(first, results, optional), keep=several)
    shown_second = _without_pair(*_drop_empty(second, noise, optional), keep=several)
    sections = [Section(title, *shown_first), Section("Noise of A − B (standard errors)", *shown_second)]
    if table.combined:
        sections.append(_combined(table))
    if table.flips:
        sections.append(_flips(table))
    sentences = [sentence(item) for item in items if item.se is not None][:1]
    sentences += [f"{item.method}: {item.note}." for item in table.combined if item.note]
    return Summary(tuple(sections), _legend(marks, items), (*sentences, *taken_back(table), *estimand_line(items)))


def taken_back(table: Comparison) -> list[str]:
    """Which rows have another verdict than their own interval would give, and why."""
    rows = [item for item in table.comparisons if "not_after_adjustment" in item.diagnostics]
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


_TESTS = {
    "t": "t", "reference": "t", "sign": "sign test", "permutation": "permutation", "bootstrap": "bootstrap",
    "wild": "wild bootstrap",
    "fisher": "Fisher's exact", "bonett-price": "Bonett–Price", "agresti-caffo": "Agresti–Caffo",
}  # fmt: skip


def _named(what: str, item: Difference) -> str:
    name = _TESTS.get(what, what)
    if name == "t":
        return "t" if item.df is None else f"t, {degrees(item.df)} df"
    return f"cluster {name}" if what in ("bootstrap", "permutation", "wild") and item.cluster else name


def degrees(df: float) -> str:
    """Degrees of freedom: whole, or with one decimal where they are few."""
    return f"{df:.0f}" if df >= 100 or df == round(df) else f"{df:.1f}"


def interval_name(item: Difference) -> str:
    """Whose interval a comparison shows."""
    return _named(item.interval, item)


def by_test(item: Difference) -> str:
    """What p comes from, and what the interval, where that is something else."""
    test = item.test
    if item.p_value is None:
        test = "sign" if item.p_sign is not None and item.interval != "t" else item.interval
    if test == "none" or (item.p_value is None and item.ci_low is None and item.p_sign is None):
        return MISSING
    name, shown = _named(test, item), interval_name(item)
    return name if shown == name or item.interval == "none" else f"{name}; CI: {shown}"


def estimand_line(items: Iterable[Estimate | Difference]) -> list[str]:
    """What the rows are about, where that is not the population that the questions come from."""
    return [THESE_QUESTIONS] if any(item.estimand == "these_questions" for item in items) else []


def names_of(item: Difference) -> tuple[str, str]:
    """A's and B's names: the models', and where these are equal with the first part in which the runs' paths differ."""
    if item.model_a != item.model_b or item.run_a == item.run_b:
        return item.model_a, item.model_b
    a, b = item.run_a.replace("\\", "/").split("/"), item.run_b.replace("\\", "/").split("/")
    only_a = next((part for part in a if part not in b), item.run_a)
    only_b = next((part for part in b if part not in a), item.run_b)
    return f"{item.model_a} ({only_a})", f"{item.model_b} ({only_b})"


def _without_pair(
    columns: tuple[Column, ...], rows: tuple[tuple[str, ...], ...], *, keep: bool
) -> tuple[tuple[Column, ...], tuple[tuple[str, ...], ...]]:
    return (columns, rows) if keep else (columns[1:], tuple(row[1:] for row in rows))


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


def plain(text: str) -> str:
    """One line without control characters: a name from a log must not move the cursor or turn the text."""
    return "".join(c if c.isprintable() else "�" for c in " ".join(text.split()))


def shorten(text: str, width: int) -> str:
    """One line of at most `width` characters."""
    line = plain(text)
    return line if len(line) <= width else line[: width - 1] + "…"


def sentence(item: Estimate | Difference) -> str:
    """One sentence that reports a result as a paper should."""
    return plain(_estimate_sentence(item) if isinstance(item, Estimate) else _difference_sentence(item))


def _sample(item: Estimate | Difference, repeats: str) -> str:
    grouped = f" in {item.n_clusters} clusters ({item.cluster})" if item.cluster else ""
    answers = f", {repeats} answers each" if repeats != "1" else ", one answer each"
    if "uses_all_repeats" in item.diagnostics:  # the 1 is its one value of a question, not how many answers that took
        answers = ", one value each of all its answers"
    estimand = "; estimand: these questions" if item.estimand == "these_questions" else ""
    return f"n = {item.n_questions} questions{grouped}{answers}{estimand}"


def _kind(cluster: str | None, estimator: object) -> str:
    return f"clustered standard error, {str(estimator).upper()}" if cluster else "standard error"


def _estimate_sentence(item: Estimate) -> str:
    digits = decimals(item.se, item.mean)
    parts = [
        f"{item.model or 'The model'} scores {number(item.mean, digits)}"
        + (f" ± {number(item.se, digits)} ({_kind(item.cluster, item.estimator)})" if item.se else "")
        + (f" on {item.task}" if item.task else "")
        + f" ({metric_name(item.metric, item.scorer)}; "
        + _sample(item, span(item.repeats_min, item.repeats_max))
        + ")"
    ]
    if item.ci_low is not None:
        name = mean_interval_name(item)
        parts.append(
            f"{_level([item])} CI {interval(item.ci_low, item.ci_high, digits)}" + (f" ({name})" if name else "")
        )
    if "missing_matters" in item.diagnostics:
        parts.append(
            f"between {' and '.join(if_missing(item, digits).split(' … '))} if its {item.n_missing} missing "
            "answers were all wrong or all right"
        )
    if item.se_data is not None:
        parts.append(
            f"with one answer per question its standard error would be {number(item.se_total, digits)} "
            f"(data {data_noise(item, digits)}, prediction {number(item.se_prediction, digits)})"
        )
    return "; ".join(parts) + "."


def _difference_sentence(item: Difference) -> str:
    digits = decimals(item.se, item.diff)
    repeats = span(*sorted((item.repeats_a, item.repeats_b)))
    name_a, name_b = names_of(item)
    error = f" ± {number(item.se, digits)}" if item.se else ""
    text = (
        f"{name_a} − {name_b} = {number(item.diff, digits)}{error}"
        + (f" on {item.task}" if item.task else "")
        + f" ({metric_name(item.metric, item.scorer)}; "
        + ("unpaired" if "unpaired" in item.diagnostics else "paired")
        + (", clustered" if item.cluster else "")
        + f"; {_sample(item, repeats)})"
    )
    shown = interval_name(item)
    if item.ci_low is not None:
        text += f"; {_level([item])} CI {interval(item.ci_low, item.ci_high, digits)} ({shown})"
    for name, value in (("p", item.p_value), ("adjusted p", item.p_adjusted)):
        if value is None or (name != "p" and value == item.p_value):
            continue
        p, test = p_text(value), _named(item.test, item)
        text += f", {name} {p}" if p.startswith("<") else f", {name} = {p}"
        text += f" ({test})" if name == "p" and (test != shown or item.ci_low is None) else ""
    winner = {"A better": name_a, "B better": name_b}.get(item.verdict)
    return f"{text}: {winner} is better." if winner else f"{text}: {item.verdict}."
