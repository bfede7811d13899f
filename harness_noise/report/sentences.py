"""Results in plain lines: sentences for a paper, verdicts of a comparison, closing lines of a live run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import isclose
from typing import Any

from ..data.native_values import is_proportion
from ..errors import some_of
from ..results.diagnostics import explained
from ..results.rows import CANNOT, NOT_DECIDED, Comparison, Difference, Estimate
from ..stats.tolerances import SLACK
from . import fmt


def sentence(row: Estimate | Difference) -> str:
    """One sentence that reports a result as a paper should."""
    return fmt.plain(_estimate_sentence(row) if isinstance(row, Estimate) else _difference_sentence(row))


def _sample(row: Estimate | Difference) -> str:
    grouped = f" in {_counted(row.n_clusters, 'cluster')} ({row.cluster})" if row.cluster else ""
    estimand = "; estimand: these questions" if row.estimand == "these_questions" else ""
    if row.judge is not None:
        estimand = "; estimand: the mean that people would give"
    return f"n = {_counted(row.n_questions, 'question')}{grouped}, {answers(row)}{estimand}"


def _counted(n: int, what: str) -> str:
    """ "1 cluster", "20 clusters"."""
    return f"{n:,} {what}{'s' * (n != 1)}"


def answers(row: Estimate | Difference) -> str:
    """ "5 answers each", "10 answers each of new and one of old", "5 answers each, all alike"."""
    if row.judge is not None:
        return f"{row.judge.n_labelled} of them labelled by people"
    if "uses_all_repeats" in row.diagnostics:  # the 1 is its one value of a question, not how many answers that took
        return "one value each of all its answers"
    alike = "identical_repeats" in row.diagnostics
    if isinstance(row, Estimate):
        K = fmt.span(row.repeats_min, row.repeats_max)
        if alike:
            return f"one answer each, repeated {K} times without a change"
        return "one answer each" if row.repeats_max == 1 else f"{K} answers each"
    first, second = ("one answer" if K == 1 else f"{K} answers" for K in (row.repeats_a, row.repeats_b))
    text = f"{first} each"
    if first != second:
        name_a, name_b = fmt.names_of(row)
        text += f" of {name_a} and {second.partition(' ')[0]} of {name_b}"
    return f"{text}, in at least one run all alike, which count as one" if alike else text


ODD = "the scores do not have the mean that the harness reports, so do not use this"
"""What a sentence says about a row with `mean_mismatch`."""


def _remarks(row: Estimate | Difference) -> list[str]:
    """What a reader of a row's numbers must know beside them."""
    out, missing = [], f"its {_counted(row.n_missing, 'missing answer')}"
    if "missing_matters" in row.diagnostics and isinstance(row, Estimate):
        whatever = "was wrong or right" if row.n_missing == 1 else "were all wrong or all right"
        out.append(f"between {fmt.if_missing(row, ' and ')} if {missing} {whatever}")
    elif "missing_matters" in row.diagnostics:
        out.append(f"{missing} could change this")
    if row.judge is not None:
        out.append(f"corrected by people's labels; {fmt.judge_words(row)}")
    return [*out, ODD] if "mean_mismatch" in row.diagnostics else out


def _reported(row: Estimate | Difference, start: str, how: str, interval: str) -> str:
    """A row's value with its error, what it is of, and its interval, with the name of that."""
    digits, unit = fmt.digits_of(row), f" {row.unit}" if row.unit else ""
    has_error = row.se and not (isinstance(row, Difference) and row.test == "sequential")
    error = f" ± {fmt.number(row.se, digits)}" if has_error else ""
    where = f" on {row.task}" if row.task else ""
    about = "; ".join([fmt.metric_name(row.metric, row.scorer), *([how] if how else []), _sample(row)])
    text = f"{start} {fmt.number(fmt.value_of(row), digits)}{error}{unit}{where} ({about})"
    if row.ci_low is None:
        return text
    return f"{text}; {fmt.level_of([row])} CI {fmt.interval_of(row)}{f' ({interval})' if interval else ''}"


def _estimate_sentence(row: Estimate) -> str:
    digits, model = fmt.digits_of(row), row.model or "The model"
    if not row.n_questions:
        where = f"{f' on {row.task}' if row.task else ''} ({fmt.metric_name(row.metric, row.scorer)})"
        if row.mean is None:
            return f"{model} has no {'score' if row.unit is None else 'value'}{where}."
        return f"{model} {_has(row)} {fmt.number(row.mean, digits)}{where}, without an error bar."
    kind = f"± clustered standard error, {fmt.estimator_name(row.estimator)}" if row.cluster else "± standard error"
    parts = [_reported(row, f"{model} {_has(row)}", kind if row.se else "", fmt.mean_interval_name(row))]
    if row.se_data is not None:
        parts.append(
            f"with one answer per question its standard error would be {fmt.number(row.se_total, digits)} "
            f"(data {fmt.data_noise(row)}, prediction {fmt.number(row.se_prediction, digits)})"
        )
    return "; ".join([*parts, *_remarks(row)]) + "."


def _has(row: Estimate) -> str:
    """The verb before a mean: a model scores 0.5, and has a mean of 300 tokens."""
    return "scores" if row.unit is None else "has a ratio of" if "/" in row.metric else "has a mean of"


def _difference_sentence(row: Difference) -> str:
    name_a, name_b = fmt.names_of(row)
    shown = fmt.interval_words(row)
    how = f"{fmt.pairing(row)}{', clustered' if row.cluster else ''}"
    text = _reported(row, f"{name_a} − {name_b} =", how, shown)
    for name, value in (("p", row.p_value), ("adjusted p", row.p_adjusted)):
        if value is None or (name != "p" and isclose(value, row.p_value or 0.0, rel_tol=SLACK)):
            continue
        p, test = fmt.p_text(value), fmt.test_name(row.test, row)
        text += f", {name} {p}" if p.startswith("<") else f", {name} = {p}"
        text += f" ({test})" if name == "p" and fmt.has_t(row) and (test != shown or row.ci_low is None) else ""
    text = "; ".join([text, *_remarks(row)])
    if "mean_mismatch" in row.diagnostics:
        return f"{text}."
    if row.ci_low is None and row.p_value is None:
        return f"{text}: whether they differ is not known."
    winner = {"A better": name_a, "B better": name_b}.get(row.verdict)
    if row.verdict == "not separable" and row.mde is not None:
        least = f"{fmt.number(row.mde, fmt.digits_of(row))}{f' {row.unit}' if row.unit else ''}"
        return f"{text}: not separable (smallest difference detectable with 80 % power: {least})."
    return f"{text}: {winner} is better." if winner else f"{text}: {row.verdict}."


_NAME = 60


def closing_line(row: Estimate, harness: str = "", native_se: float | None = None, *, who: str = "") -> str:
    """ "0.625 ± 0.064 (20 clusters of 10, 5 answers each); lm-eval's own ± 0.035 assumes 200 independent questions".

    Parameters
    ----------
    row
        The mean.
    harness
        Who printed `native_se`.
    native_se
        The harness's own standard error, if it has printed one.
    who
        To begin with: whose mean it is, where there are several.
    """
    name = " ".join(filter(None, (who, row.task, fmt.metric_name(row.metric, row.scorer))))
    start = f"{fmt.shorten(name, _NAME)}: " if name else ""
    if without := _without_error(row):
        return fmt.plain(f"{start}{without}.")
    digits, unit = fmt.digits_of(row), f" {row.unit}" if row.unit else ""
    if row.se:
        error = f" ± {fmt.number(row.se, digits)}{unit}"
    else:  # what never varied is not certain
        error = unit if row.ci_low is None else f"{unit}, {fmt.level_of([row])} CI {fmt.interval_of(row)}"
    parts = [f"{start}{fmt.number(row.mean, digits)}{error} ({_asked(row)}, {answers(row)})"]
    if not row.se:
        parts.append(f"all {'clusters' if row.cluster else 'questions'} have the same mean")
    if native_se is not None:
        own = fmt.number(native_se, digits)
        parts.append(f"{harness}'s own ± {own} {_claim(row, agrees=own == fmt.number(row.se, digits))}")
    return fmt.plain(f"{'; '.join([*parts, *_remarks(row)])}.")


def _without_error(row: Estimate) -> str:
    """What there is to say of a mean that has no standard error; "" of any other."""
    mean = fmt.number(row.mean, fmt.digits_of(row))
    if "skipped_metric" in row.diagnostics:
        return "no mean" if row.mean is None else f"{mean}, the harness's own value, without an error bar"
    if row.mean is None:
        return f"no mean: {'its denominator may be 0' if 'ratio_undefined' in row.diagnostics else 'there is no score'}"
    if row.n_questions == 1:
        return f"{mean} on one question, which has no standard error"
    return f"{mean}, whose noise is not known" if row.se is None else ""


def _claim(row: Estimate, *, agrees: bool) -> str:
    """What the harness's own standard error stands for."""
    if row.repeats_max > 1 and not row.cluster:
        return "is that of its own value"
    if agrees and not row.cluster:
        return "agrees: one answer each, no clusters"
    formula = "" if row.cluster else ", by its own formula"
    return f"assumes {row.n_questions:,} independent questions{formula}"


def closing_lines(
    estimates: Iterable[Estimate], harness: str, native_se: Callable[[Estimate], float | None]
) -> list[str]:
    """One line for each task and group of a live run, about its first metric that has an error bar."""
    rows = first_metrics(estimates)
    several = len({row.model for row in rows}) > 1
    return [closing_line(row, harness, native_se(row), who=row.model if several else "") for row in rows]


def first_metrics(estimates: Iterable[Estimate]) -> list[Estimate]:
    """The first metric of each task and group of each run that has an error bar."""
    first: dict[tuple[str, str, str], Estimate] = {}
    for row in estimates:
        if row.se is not None:
            first.setdefault((row.model, row.run, row.task), row)
    return list(first.values())


def _asked(row: Estimate) -> str:
    """ "20 clusters of 10", "200 questions"."""
    if not row.cluster:
        return f"{row.n_questions:,} questions"
    size = row.n_questions / row.n_clusters
    return f"{row.n_clusters:,} clusters of {f'about {size:.1f}' if size % 1 else f'{size:.0f}'}"


_SETTINGS_SAID = (
    ("questions_are", "fixed", "The questions are all there is; the noise is that of the repeated answers alone."),
    ("repeats_are", "runs", "Repeats are runs that move all questions together."),
    ("missing", "drop", "Answers without a score are left out and counted."),
    ("missing", "zero", "Answers without a score count as wrong."),
)
"""(setting, value, what it means)."""
_ADJUSTED = {"holm": "Holm", "bh": "Benjamini–Hochberg", "none": "as p"}


def methods(rows: Sequence[Estimate | Difference], settings: Mapping[str, Any]) -> str:
    """How the numbers of these rows were made, for a caption or the foot of a page."""
    compared = [row for row in rows if isinstance(row, Difference)]
    bare = any(row.test in ("fisher", "reference") for row in compared)
    clusters = list(dict.fromkeys(fmt.shorten(row.cluster, _NAME) for row in rows if row.cluster))
    flat = " where there are clusters" * any(row.cluster is None for row in rows)
    error = [f"clustered by {some_of(clusters, 4)}{flat}"] if clusters else []
    fixed = bare or settings.get("questions_are") == "fixed"
    how = [str(settings.get("se", ""))] if compared and not fixed else []
    how += [row.estimator for row in rows if isinstance(row, Estimate) and row.se is not None]
    error += map(fmt.estimator_name, dict.fromkeys(filter(None, how)))
    error_words = f" ({'; '.join(error)})" if error else ""
    ways = ", ".join(dict.fromkeys(way for row in rows if (way := _without_df(row)) not in ("", fmt.MISSING)))
    made_by = f" ({ways})" if ways else ""
    each = dict.fromkeys(map(fmt.pairing, compared))
    parts = [f"A − B, {', '.join('paired by question' if how == 'paired' else how for how in each)}"] if each else []
    if any(row.se is not None for row in rows):
        parts.append(f"± is the standard error{' of the difference' if compared else ''}{error_words}")
    parts.append(f"CI: {fmt.level_of(rows)} confidence interval{'' if compared else made_by}")
    parts += [f"p: two-sided{made_by}"] if compared else []
    parts += [f"p adj.: {_ADJUSTED[settings['adjust']]}"] if len(compared) > 1 and settings.get("adjust") else []
    out = ["; ".join(parts) + "."]
    if settings.get("margin") is not None:
        out.append(f"Two models are equivalent if they differ by less than {settings['margin']:g}.")
    relevant = {**settings, "missing": settings.get("missing") if any(row.n_missing for row in rows) else None}
    said = () if bare else _SETTINGS_SAID
    return " ".join([*out, *(words for name, value, words in said if relevant.get(name) == value)])


def _without_df(row: Estimate | Difference) -> str:
    """The test of a difference, the interval of a mean, without degrees of freedom, which the rows have."""
    row = replace(row, df=None)
    return fmt.by_test(row) if isinstance(row, Difference) else fmt.mean_interval_name(row)


FEW = 12
"""Most rows that are all shown; of a longer table only those that differ."""
A, B = "A better", "B better"


def verdict_lines(table: Comparison) -> list[str]:
    """One line for each row, or a count of the verdicts and the lines of the rows that differ."""
    rows = table.comparisons
    lines = [verdict_line(row, alone=len(rows) == 1, settings=table.settings) for row in shown_rows(table)]
    lines = [*trade_offs(table), *lines]
    return lines if len(rows) <= FEW else [count_line(table), *lines]


_LESS = {"$": ("cheaper", "dearer"), "tokens": ("shorter", "longer"), "s": ("faster", "slower")}
"""Unit of a measure → A with less of it, and with more."""


def trade_offs(table: Comparison) -> list[str]:
    """ "new is better, dearer (0.031 $ more per question).", for each score that has measures beside it."""
    words = {A: "better", B: "worse", "not separable": "not shown to differ in score"}
    out = []
    measured = [row for row in table.comparisons if row.unit is not None and row.diff is not None]
    for score in (row for row in table.comparisons if row.unit is None and row.diff is not None):
        rows = [row for row in measured if (row.task, fmt.pair_of(row)) == (score.task, fmt.pair_of(score))]
        rows = [row for row in rows if row.scorer in (score.scorer, "none")]
        if rows:
            link = " and " if (score.verdict, rows[0].verdict) in ((A, A), (B, B)) else ", "
            verdict = words.get(score.verdict, score.verdict) + link + ", ".join(map(_trade, rows))
            out.append(fmt.plain(f"{fmt.what_of(score)}: {fmt.names_of(score)[0]} is {verdict}."))
    return out


def _trade(row: Difference) -> str:
    """ "dearer (0.031 $ more per question)", of one measure."""
    if not _decided(row):
        return f"not shown to differ in {row.metric}"
    lower, ratio = (row.diff or 0.0) < 0, "/" in row.metric
    named = (f"lower in {row.metric}", f"higher in {row.metric}")
    word = (named if ratio else _LESS.get(row.unit or "", named))[not lower]
    size = " ".join(filter(None, (fmt.number(abs(row.diff or 0.0), fmt.digits_of(row)), row.unit)))
    return f"{word} ({size} {'less' if lower else 'more'}{'' if ratio else ' per question'})"


def shown_rows(table: Comparison) -> list[Difference]:
    """The rows that a terminal shows: all if they are few, else the smallest adjusted p, in the table's order.

    The rows of groups, which sum up the others, are always there.
    """
    rows = table.comparisons
    if len(rows) <= FEW:
        return list(rows)
    groups = set(table.families) - {""}
    p = [2.0 if row.p_adjusted is None else row.p_adjusted for row in rows]
    order = sorted(range(len(rows)), key=lambda i: (rows[i].task not in groups, p[i]))
    clear = [i for i in order if rows[i].task in groups or _decided(rows[i])][:FEW]
    return [rows[i] for i in sorted(clear)]


def _decided(row: Difference) -> bool:
    return row.verdict in (A, B)


def count_line(table: Comparison) -> str:
    """ "new against old, 57 rows: 3 better, 1 worse, 53 not separable after adjustment"."""
    verdicts = Counter(row.verdict for row in table.comparisons)
    after = "" if table.settings.get("adjust") == "none" else " after adjustment"
    unjudged = sum(row.ci_low is None and row.p_value is None for row in table.comparisons)
    parts = [f"{verdicts[A]} better", f"{verdicts[B]} worse"]
    parts += [f"{n} {verdict}" for verdict, n in verdicts.items() if verdict.startswith("equivalent")]
    if same := verdicts["not separable"] - unjudged:
        parts.append(f"{same} not separable{after}")
    parts += [f"{verdicts[word]} {word}" for word in (NOT_DECIDED, CANNOT) if verdicts[word]]
    parts += [f"{unjudged} that cannot be judged"] if unjudged else []
    pairs = {fmt.names_of(row) for row in table.comparisons}
    baselines = {b for _, b in pairs}
    n = _counted(len(table.comparisons), "row")
    if len(pairs) > 1 and len(baselines) == 1:
        start = f"{n} against {fmt.shorten(baselines.pop(), _NAME)}"
    else:
        a, b = (fmt.shorten(name, _NAME) for name in (pairs.pop() if len(pairs) == 1 else ("A", "B")))
        start = f"{a} against {b}, {n}"
    return fmt.plain(f"{start}: {', '.join(parts)}.")


def verdict_line(row: Difference, *, alone: bool = True, settings: object = None) -> str:
    """ "sim-a is not shown to differ from sim-b: −0.3 to +14.1 points; t test, 19 df; smallest detectable 9.7"."""
    where = "" if alone else f"{fmt.what_of(row)}: "
    verdict, evidence = verdict_parts(row, settings)
    return fmt.plain(f"{where}{verdict}{f': {evidence}' if evidence else '.'}")


def verdict_parts(row: Difference, settings: object = None) -> tuple[str, str]:
    """The verdict, without a full stop, and the numbers behind it, with one; "" where there are none."""
    a, b = _names(row)
    unit = _unit(row, settings)
    if row.ci_low is None and row.p_value is None:
        why = next((explained(code, row.cluster is not None) for code in _REASONS if code in row.diagnostics), "")
        by = "" if row.diff is None else f" ({_signed(row, row.diff, settings)}{unit})"
        return f"whether {a} and {b} differ{by} is not known", why
    parts = []
    if row.ci_low is not None and row.ci_high is not None:
        level = "" if fmt.level_of([row]) == "95 %" else f" ({fmt.level_of([row])} interval)"
        low, high = (_signed(row, x, settings) for x in (row.ci_low, row.ci_high))
        parts.append(f"{low} to {high}{unit}{level}")
    test = _test(row)
    if _decided(row) and row.p_adjusted is not None:
        test += f", {'p' if row.p_adjusted == row.p_value else 'adjusted p'} {fmt.equals_p(row.p_adjusted)}"
    parts += [test] if test else []
    if row.verdict == NOT_DECIDED:
        parts.append(f"{NOT_DECIDED} yet")
    if row.verdict == CANNOT:
        parts.append("the rest of the answers cannot decide it")
    if row.mde is not None and not _decided(row):
        none = _in_points(row, settings) and row.mde > 1  # no two scores of a question differ by so much
        parts.append(f"smallest detectable {'none' if none else _amount(row, row.mde, settings)}")
    if "not_after_adjustment" in row.diagnostics:
        parts.append("no longer significant after adjustment")
    parts += _remarks(row)
    return _verdict(row, a, b, settings), f"{'; '.join(parts)}." if parts else ""


def _names(row: Difference) -> tuple[str, str]:
    """The runs' names; counts without names show the counts."""
    a, b = (fmt.shorten(name, _NAME) for name in fmt.names_of(row))
    if row.test == "fisher" and (a, b) == ("A", "B"):
        counts = ((row.mean_a, row.n_only_a), (row.mean_b, row.n_only_b))
        a, b = (f"{round((mean or 0.0) * n)} of {n}" for mean, n in counts)
    return a, b


_REASONS = ("too_few_questions", "too_few_clusters", "identical_scores", "zero_variance", "skipped_metric")


def _verdict(row: Difference, a: str, b: str, settings: object) -> str:
    if row.verdict.startswith("equivalent"):
        margin = float(row.verdict.removeprefix("equivalent within "))
        within = f"{100 * margin:g} points" if _in_points(row, settings) else f"{margin:g}"
        return f"{a} and {b} are equivalent within {within}"
    if not _decided(row) or row.diff is None:
        return f"{a} is not shown to differ from {b}"
    word = "better" if row.verdict == "A better" else "worse"
    which = "lower" if row.unit is None else f"lower {row.metric}"
    lower = f", where {which} is better," if row.higher_is_better is False else ""
    return f"{a} is {word} than {b}{lower} by {_amount(row, abs(row.diff), settings)}"


def _test(row: Difference) -> str:
    tested = row.p_value is not None and fmt.has_t(row)
    what = row.test if tested else row.interval
    name = "" if what == "none" else fmt.test_name(what, row)
    if name in ("Fisher's exact", "sequential"):
        return f"{name} test"
    unpaired = "unpaired " if "unpaired" in row.diagnostics else ""
    return unpaired + re.sub(r"^t\b(?!-)", "t test", name)


def _in_points(row: Difference, settings: object) -> bool:
    """Whether the scores are right or wrong, so that a difference is one of percentage points."""
    if row.test == "fisher":
        return True
    bounds = settings.get("range") if isinstance(settings, dict) else None
    if bounds is not None:
        return tuple(bounds) == (0, 1)
    means = (row.mean_a, row.mean_b)
    return is_proportion(row.metric) and all(mean is not None and 0 <= mean <= 1 for mean in means)


def _unit(row: Difference, settings: object) -> str:
    """ " points" or " $", behind a number."""
    return " points" if _in_points(row, settings) else f" {row.unit}" if row.unit else ""


def _scaled(row: Difference, settings: object) -> tuple[float, int]:
    """What a number of the row is shown times, and with how many decimals."""
    return (100.0, max(0, fmt.digits_of(row) - 2)) if _in_points(row, settings) else (1.0, fmt.digits_of(row))


def _amount(row: Difference, value: float, settings: object) -> str:
    scale, digits = _scaled(row, settings)
    return fmt.number(scale * value, digits) + _unit(row, settings)


def _signed(row: Difference, value: float, settings: object) -> str:
    scale, digits = _scaled(row, settings)
    text = fmt.limit(scale * value, digits)
    return text if text.startswith("−") or float(scale * value) == 0 else f"+{text}"
