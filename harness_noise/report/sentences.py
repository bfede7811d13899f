"""Results in plain lines: sentences for a paper, verdicts of a comparison, closing lines of a live run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import isclose
from typing import Any, TypeVar

from ..choices import FISHER, REFERENCE, T, has_limits
from ..data.units import Equivalent
from ..errors import counted, some_of
from ..extras import display_of, explaining
from ..results.diagnostics import FIRST_ATTEMPTS, NOT_ASKED, STOPPED, explained
from ..results.parts import KEYWORD, STOPS
from ..results.rows import (
    CANNOT,
    COULD_NOT,
    NO_RANGE,
    NOT_DECIDED,
    NOT_KNOWN,
    SCORED_DIFFERENTLY,
    Comparison,
    Difference,
    Estimate,
)
from ..stats.intervals import t_limits
from ..stats.tolerances import SLACK
from . import fmt


def sentence(row: Estimate | Difference) -> str:
    """Return one sentence that reports a mean or difference, with its error, as a paper should."""
    return fmt.plain(_estimate_sentence(row) if isinstance(row, Estimate) else _difference_sentence(row))


def scoring_differs(row: Difference) -> str:
    """Return "60 of 60 equal answers are scored differently: …", the verdict that replaces others."""
    found = row.equal_answers
    start = "Equal answers" if found is None else f"{found.n_differ:,} of {found.n_equal:,} equal answers"
    return f"{start} are scored differently: the scoring differs, not the models"


def _sample(row: Estimate | Difference) -> str:
    estimand = "; estimand: these questions" if row.estimand == "these_questions" else ""
    if (module := explaining(row)) is not None:
        estimand = f"; estimand: {module.SUBJECT}"
    return f"n = {sample_words(row)}{estimand}"


def sample_words(row: Estimate | Difference) -> str:
    """Return a row's sample size in words: "80 questions in 16 clusters (template), 3 answers each"."""
    grouped = f" in {counted(row.n_clusters, 'cluster')} ({row.cluster})" if row.cluster else ""
    return f"{counted(row.n_questions, 'question')}{grouped}, {answers(row)}"


def answers(row: Estimate | Difference) -> str:
    """Return the answers per question in words: "5 answers each", "10 answers each of new and one of old"."""
    if (module := explaining(row)) is not None:
        return str(module.size(row))
    if "uses_all_repeats" in row.diagnostics:  # the 1 is its one value of a question, not how many answers that took
        return "one value each of all its answers"
    alike = "identical_repeats" in row.diagnostics
    if isinstance(row, Estimate):
        K = fmt.span(row.repeats_min, row.repeats_max)
        if alike:
            return f"one answer each, repeated {K} times without a change"
        return "one answer each" if row.repeats_max == 1 else f"{K} answers each"
    most = "up to " if "missing_repeats" in row.diagnostics else ""
    first, second = ("one" if K == 1 else f"{most}{K}" for K in (row.repeats_a, row.repeats_b))
    text = f"{first} answer{'s' * (row.repeats_a != 1)} each"
    if first != second and not (fmt.of_published(row) and row.n_only_b):
        name_a, name_b = fmt.names_of(row)
        text += f" of {name_a} and {second} of {name_b}"
    return f"{text}, in at least one run all alike, which count as one" if alike else text


ODD = "the scores do not have the mean that the harness reports, so do not use this"
"""The remark on a row with `mean_mismatch`."""


def _remarks(row: Estimate | Difference, difference: str = "difference") -> list[str]:
    """Return a row's caveats as clauses to append to its sentence: missing answers, mismatch, …."""
    out, missing = [], f"the {counted(row.n_missing, 'missing answer')}"
    bounds = bounds_if_missing(row) if isinstance(row, Difference) else ""
    within = f" ({difference} {bounds})" if bounds else ""
    if "missing_matters" in row.diagnostics and isinstance(row, Estimate):
        whatever = "was wrong or right" if row.n_missing == 1 else "were all wrong or all right"
        out.append(f"between {fmt.if_missing(row, ' and ')} if {missing} {whatever}")
    elif isinstance(row, Difference) and row.if_missing in (NO_RANGE, NOT_KNOWN):
        verb, who = ("is", "it") if row.n_missing == 1 else ("are", "they")
        what = f" (`range=(LOW, HIGH)` shows what {who} could change)"
        what = what if row.if_missing == NO_RANGE else f", and whether {who} could change this is not known{within}"
        out.append(f"{counted(row.n_missing, 'answer')} {verb} missing{what}")
    elif isinstance(row, Difference) and row.if_missing == COULD_NOT:
        out.append(f"{missing} could not change this{within}")
    elif "missing_matters" in row.diagnostics or (isinstance(row, Difference) and row.if_missing):
        reached = verdicts_if_missing(row) if isinstance(row, Difference) else ""
        out.append(f"{missing} could change this{f' to “{reached}”' if reached else ''}{within}")
    if FIRST_ATTEMPTS.intersection(row.diagnostics):
        stops = "success" if "stopped_on_success" in row.diagnostics else "failure"
        out.append(f"first attempts, because answers were repeated until the first {stops}")
    if (module := explaining(row)) is not None:
        out.append(module.remark(row))
    return [*out, ODD] if "mean_mismatch" in row.diagnostics else out


def bounds_if_missing(row: Difference) -> str:
    """Return the differences that the missing answers allow: "from −0.42 to +0.78". "" if unknown or all one."""
    if row._diff_if_missing is None:
        return ""
    low, high = (_signed(row, end) for end in row._diff_if_missing)
    return "" if low == high else f"from {low} to {high}{fmt.scale_of(row).size}"


def verdicts_if_missing(row: Difference) -> str:
    """Return verdicts missing answers could lead to, less outer quotes: new better” or “old better. "" if unknown."""
    a, b = _names(row)
    words = {A: f"{a} better", B: f"{b} better"}
    each = [words.get(verdict) or fmt.scale_of(row).verdict(verdict) for verdict in row._verdicts_if_missing]
    return "” or “".join(each)


def _reported(row: Estimate | Difference, start: str, how: str, interval: str) -> str:
    """Return the main clause of a row's sentence: value ± error on the task, sample, interval."""
    has_error = row.se and not (isinstance(row, Difference) and row.test == STOPS)
    value = fmt.shown(row, fmt.value_of(row), mean=isinstance(row, Estimate), unit=not has_error)
    error = f" ± {fmt.amount(row, row.se)}" if has_error else ""
    where = fmt.on_task(row)
    about = "; ".join([fmt.metric_name(row.metric, row.scorer), *([how] if how else []), _sample(row)])
    text = f"{start} {value}{error}{where} ({about})"
    if row.ci_low is None:
        return text
    return f"{text}; {fmt.level_of([row])} CI {fmt.interval_of(row)}{f' ({interval})' if interval else ''}"


def _estimate_sentence(row: Estimate) -> str:
    model = row.model or "The model"
    if not row.n_questions:
        where = f"{fmt.on_task(row)} ({fmt.metric_name(row.metric, row.scorer)})"
        if row.mean is None:
            return f"{model} has no {'score' if row.unit is None else 'value'}{where}."
        return f"{model} {_mean_verb(row)} {fmt.mean_of(row, row.mean)}{where}, without an error bar."
    kind = f"± clustered standard error, {fmt.estimator_name(row.estimator)}" if row.cluster else "± standard error"
    parts = [_reported(row, f"{model} {_mean_verb(row)}", kind if row.se else "", fmt.mean_interval_name(row))]
    if row.se_data is not None:
        data = "" if (shown := fmt.data_noise(row)) == fmt.MISSING else f"data {shown}, "
        parts.append(
            f"with one answer per question its standard error would be {fmt.amount(row, row.se_total)} "
            f"({data}prediction {fmt.shown(row, row.se_prediction)})"
        )
    return "; ".join([*parts, *_remarks(row)]) + "."


def gap_words(row: Estimate) -> str:
    """Return a sentence with the gap that two runs of one model stay below by chance at `level`. "" if unknown."""
    if row.gap_of_runs is None:
        return ""
    name, gap = row.model or "the model", fmt.amount(row, row.gap_of_runs)
    return fmt.plain(
        f"Two runs of {name}{fmt.on_task(row)} with one answer per question differ by less than {gap} in "
        f"{fmt.percent(row.level)} of cases, by its own randomness alone."
    )


def _mean_verb(row: Estimate) -> str:
    """Return the verb to put before a mean: "scores", or "has a mean of" for costs and tokens."""
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
    uncorrected = [UNCORRECTED] if STOPPED in row.diagnostics else []
    used = display_of(KEYWORD).answers_used(row, name_a, name_b) if row.unadjusted else ""
    text = "; ".join([text, *uncorrected, *filter(None, [used]), *_remarks(row)])
    if "mean_mismatch" in row.diagnostics:
        return f"{text}."
    if row.ci_low is None and row.p_value is None:
        return f"{text}: whether they differ is not known."
    if row.verdict == SCORED_DIFFERENTLY:
        where = f" on {row.task}" if row.task else ""
        how = fmt.metric_name(row.metric, row.scorer)
        return f"{name_a} and {name_b} cannot be compared{where} ({how}): {scoring_differs(row)}."
    winner = {"A better": name_a, "B better": name_b}.get(row.verdict)
    if row.verdict == "not separable" and row.mde is not None:
        return (
            f"{text}: {fmt.verdict_words(row)} (smallest difference detectable with 80% power: "
            f"{fmt.amount(row, row.mde)})."
        )
    if _equivalent(row):
        ends = _interval_shown(row)
        shown = "" if ends is None else f"; {fmt.percent(2 * row.level - 1)} CI {_interval_text(row, ends)}"
        return f"{text}: {fmt.verdict_words(row)} ({TWO_ONE_SIDED.format(fmt.percent(1 - row.level))}{shown})."
    return f"{text}: {winner} is better." if winner else f"{text}: {fmt.verdict_words(row)}."


def _interval_text(row: Difference, ends: tuple[float, float, str]) -> str:
    """Return the ends of a difference's interval as text, "[−0.04, 0.19]"."""
    return f"[{', '.join(fmt.shown(row, end) for end in ends[:2])}]"


_NAME = 60
Row = TypeVar("Row", Estimate, Difference)
UNCORRECTED = "stopped early, not corrected"
"""The first words on a difference that is not corrected for an early stop."""


def closing_line(row: Estimate, harness: str = "", native_se: float | None = None, *, who: str = "") -> str:
    """Return the one line that a live run prints: "62.5% ± 6.4 points (20 clusters of 10, …), lm-eval's own …".

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
    value = fmt.mean_with_error(row, unit=True) if row.se else fmt.mean_of(row, row.mean, unit=True)
    wider = _wider(row)
    if row.ci_low is not None and (wider or not row.se):  # what never varied is not certain
        value += f", {fmt.level_of([row])} CI {fmt.interval_of(row)}"
    parts = [f"{start}{value} ({_questions_text(row)}, {answers(row)})", *wider]
    if not row.se:
        parts.append(f"all {'clusters' if row.cluster else 'questions'} have the same mean")
    if STOPPED in row.diagnostics:
        parts.append("this does not allow for the early stop")
    if native_se is not None:
        own = fmt.shown(row, native_se)
        parts.append(f"{harness}'s own ± {own} {_claim(row, agrees=own == fmt.shown(row, row.se))}")
    return fmt.plain(f"{'; '.join([*parts, *_remarks(row)])}.")


_MUCH_WIDER = 6.0
"""Standard errors from one limit to the other, above which ± misleads: near 4 in an interval by t."""


def _wider(row: Estimate) -> list[str]:
    """Return why a mean's interval is much wider than ± suggests, in words. [] if it is not."""
    if not row.se or row.ci_low is None or row.ci_high is None or row.ci_high - row.ci_low <= _MUCH_WIDER * row.se:
        return []
    units = "clusters" if row.cluster else "questions"
    why = f"there are few {units}"
    if "few_failures" in row.diagnostics:
        side = "wrong" if (row.mean or 0.0) > 0.5 else "right"
        why = f"the {side} answers add up to few {units}" if row._zero_one else "the mean is near an end of the scale"
    return [f"the interval is wider than ± suggests, as {why}"]


_NO_MEAN = {"ratio_undefined": "its denominator may be 0", "unscored_task": "one of its tasks has no score"}


def _without_error(row: Estimate) -> str:
    """Return words for a mean that has no standard error, with the reason. "" if it has one."""
    mean = fmt.mean_of(row, row.mean)
    if "skipped_metric" in row.diagnostics:
        return "no mean" if row.mean is None else f"{mean}, the harness's own value, without an error bar"
    if row.mean is None:
        return (
            f"no mean: {next((why for code, why in _NO_MEAN.items() if code in row.diagnostics), 'there is no score')}"
        )
    if row.n_questions == 1:
        ci = "" if row.ci_low is None else f", {fmt.level_of([row])} CI {fmt.interval_of(row)}"
        return f"{mean} on one question, which has no standard error{ci}"
    return f"{mean}, whose noise is not known" if row.se is None else ""


def _claim(row: Estimate, *, agrees: bool) -> str:
    """Return words, always some, on the harness's own standard error: of its own value, agrees, or what it assumes."""
    if row.repeats_max > 1 and not row.cluster:
        return "is that of its own value"
    if agrees and not row.cluster:
        return "agrees: one answer each, no clusters"
    formula = "" if row.cluster else ", by its own formula"
    return f"assumes {row.n_questions:,} independent questions{formula}"


def closing_lines(
    estimates: Iterable[Estimate], harness: str, native_se: Callable[[Estimate], float | None]
) -> list[str]:
    """Return a closing line for the first metric with an error bar of each task and group of a run."""
    rows = first_metrics(estimates)
    several = len({row.model for row in rows}) > 1
    return [closing_line(row, harness, native_se(row), who=row.model if several else "") for row in rows]


def first_metrics(estimates: Iterable[Estimate]) -> list[Estimate]:
    """Return for each run's task or group its first row that has a standard error."""
    first: dict[tuple[str, str, str], Estimate] = {}
    for row in estimates:
        if row.se is not None:
            first.setdefault((row.model, row.run, row.task), row)
    return list(first.values())


def _questions_text(row: Estimate) -> str:
    """Return the number of questions or clusters in words: "20 clusters of 10", "… of about 9.5", "200 questions"."""
    if not row.cluster:
        return counted(row.n_questions, "question")
    size = row.n_questions / row.n_clusters
    return f"{counted(row.n_clusters, 'cluster')} of {f'about {size:.1f}' if size % 1 else f'{size:.0f}'}"


_SETTINGS_SAID = (
    (
        "questions_are",
        "fixed",
        "Fixed questions: the error bars cover only the randomness of the answers, not the choice of questions.",
    ),
    ("repeats_are", "runs", "Repeats are runs that move all questions together."),
    ("missing", "drop", "Answers without a score are left out and counted."),
    ("missing", "zero", "Answers without a score count as wrong."),
)
"""(setting, value, what it means)."""
_ADJUSTED = {"holm": "Holm", "bh": "Benjamini–Hochberg", "none": "as p"}


def methods(rows: Sequence[Estimate | Difference], settings: Mapping[str, Any], *, family: str = "") -> str:
    """Return text on how the numbers of these rows (at least one) were computed, for a caption or a page's foot.

    `family` names the rows over which p-values are adjusted, if these are not all.
    """
    compared = [row for row in rows if isinstance(row, Difference)]
    bare = any(row.test in (FISHER.name, REFERENCE.name) for row in compared)
    clusters = list(dict.fromkeys(fmt.shorten(row.cluster, _NAME) for row in rows if row.cluster))
    flat = " where there are clusters" * any(row.cluster is None for row in rows)
    error = [f"clustered by {some_of(clusters, 4)}{flat}"] if clusters else []
    fixed = bare or all(row.estimand == "these_questions" for row in rows)
    how = [str(settings.get("se", ""))] if compared and not fixed else []
    named = [*map(fmt.estimator_name, filter(None, how))]
    named += [fmt.estimator_of(row) for row in rows if isinstance(row, Estimate)]
    error += dict.fromkeys(filter(None, named))
    error_words = f" ({'; '.join(error)})" if error else ""
    ways = ", ".join(dict.fromkeys(way for row in rows if (way := _without_df(row)) not in ("", fmt.MISSING)))
    made_by = f" ({ways})" if ways else ""
    each = dict.fromkeys(map(fmt.pairing, compared))
    parts = [f"A − B, {', '.join('paired by question' if how == 'paired' else how for how in each)}"] if each else []
    if any(row.se is not None for row in rows):
        # the tables of many runs, which name the family, have it of means and of differences
        parts.append(f"± is the standard error{' of the difference' if compared and not family else ''}{error_words}")
    parts.append(f"CI: {fmt.level_of(rows)} confidence interval{'' if compared else made_by}")
    parts += [f"p: two-sided{made_by}"] if compared else []
    if len(compared) > 1 and settings.get("adjust"):
        within = f", {family}" if family and settings["adjust"] != "none" else ""
        parts.append(f"p adj.: {_ADJUSTED[settings['adjust']]}{within}")
    out = ["; ".join(parts) + "."]
    if settings.get("margin") is not None:
        scales = {fmt.scale_of(row) for row in rows}
        scale = scales.pop() if len(scales) == 1 else fmt.Scale()
        out.append(f"Two models are equivalent if they differ by less than {scale.given(settings['margin'])}.")
    relevant = {**settings, "missing": settings.get("missing") if any(row.n_missing for row in rows) else None}
    said = () if bare else _SETTINGS_SAID
    return " ".join([*out, *(words for name, value, words in said if relevant.get(name) == value)])


def _without_df(row: Estimate | Difference) -> str:
    """Return the name of a row's test or interval method, without its degrees of freedom."""
    row = replace(row, df=None)
    return fmt.by_test(row) if isinstance(row, Difference) else fmt.mean_interval_name(row)


FEW = 12
"""The most rows that are all shown. Of a longer table only those that differ are."""
A, B = "A better", "B better"


def verdict_lines(table: Comparison) -> list[str]:
    """Return verdicts, a line per row, scored differently and overall ones first. With many, a count and some."""
    rows = table.comparisons
    first = overall_first(shown_rows(table))
    each = [(row, verdict_line(row, alone=len(rows) == 1)) for row in first]
    withheld = [line for row, line in each if row.verdict == SCORED_DIFFERENTLY]
    if len(set(map(fmt.pair_of, rows))) > 1:  # this verdict alone does not name the models
        withheld = [f"{fmt.models_of(row)}, {line}" for row, line in each if row.verdict == SCORED_DIFFERENTLY]
    lines = [*trade_offs(table), *(line for row, line in each if row.verdict != SCORED_DIFFERENTLY)]
    return [*withheld, *([count_line(table)] if len(rows) > FEW else []), *lines]


def overall_first(rows: Sequence[Row]) -> list[Row]:
    """Return the rows sorted with the overall rows first."""
    return sorted(rows, key=lambda row: not row.is_overall)


_LESS = {"$": ("cheaper", "dearer"), "tokens": ("shorter", "longer"), "s": ("faster", "slower")}
"""Unit of a measure → A with less of it, and with more."""


def trade_offs(table: Comparison) -> list[str]:
    """Return for each score beside measures a line on cost, tokens, time: "new is better, dearer (0.031 $ more …)"."""
    words = {A: "better", B: "worse", "not separable": "not shown to differ in score"}
    out = []
    measured = [row for row in table.comparisons if row.unit is not None and row.diff is not None]
    for score in (row for row in table.comparisons if row.unit is None and row.diff is not None):
        if score.verdict == SCORED_DIFFERENTLY:
            continue
        rows = [row for row in measured if (row.task, fmt.pair_of(row)) == (score.task, fmt.pair_of(score))]
        rows = [row for row in rows if row.scorer in (score.scorer, "none")]
        if rows:
            link = " and " if (score.verdict, rows[0].verdict) in ((A, A), (B, B)) else ", "
            verdict = words.get(score.verdict, fmt.verdict_words(score)) + link + ", ".join(map(_trade, rows))
            out.append(fmt.plain(f"{fmt.what_of(score)}: {fmt.names_of(score)[0]} is {verdict}."))
    return out


def _trade(row: Difference) -> str:
    """Return words on one measure of a trade-off: "dearer (0.031 $ more per question)"."""
    if not _decided(row):
        return f"not shown to differ in {row.metric}"
    lower, ratio = (row.diff or 0.0) < 0, "/" in row.metric
    named = (f"lower in {row.metric}", f"higher in {row.metric}")
    word = (named if ratio else _LESS.get(row.unit or "", named))[not lower]
    size = fmt.amount(row, abs(row.diff or 0.0))
    return f"{word} ({size} {'less' if lower else 'more'}{'' if ratio else ' per question'})"


def asked_for(rows: Sequence[Row]) -> list[Row]:
    """Return the rows without those marked `not_asked_for`. All rows if all are marked."""
    return [row for row in rows if NOT_ASKED not in row.diagnostics] or list(rows)


def shown_rows(table: Comparison) -> list[Difference]:
    """Return the rows a terminal shows: all if few, else at most FEW: groups, clear verdicts, scored differently.

    The rows of groups, which sum up the others, are always there.
    """
    rows = asked_for(table.comparisons)
    if len(rows) <= FEW:
        return rows
    groups = set(table.families) - {""}
    p = [2.0 if row.p_adjusted is None else row.p_adjusted for row in rows]
    order = sorted(range(len(rows)), key=lambda i: (rows[i].task not in groups, p[i]))
    order.sort(key=lambda i: rows[i].verdict != SCORED_DIFFERENTLY)
    telling = (A, B, SCORED_DIFFERENTLY)
    clear = [i for i in order if rows[i].task in groups or rows[i].verdict in telling][:FEW]
    return [rows[i] for i in sorted(clear)]


def _decided(row: Difference) -> bool:
    return row.verdict in (A, B)


def count_line(table: Comparison) -> str:
    """Return counts of verdicts, overall rows left out: "new against old, 57 rows: 3 better, 1 worse, …"."""
    rows = [row for row in table.comparisons if not row.is_overall]
    verdicts, alike = Counter(row.verdict for row in rows), Counter(map(fmt.verdict_words, filter(_equivalent, rows)))
    after = "" if table.settings.get("adjust") == "none" else " after adjustment"
    unjudged = sum(row.ci_low is None and row.p_value is None for row in rows)
    parts = [f"{verdicts[A]} better", f"{verdicts[B]} worse"]
    parts += [f"{n} {verdict}" for verdict, n in alike.items()]
    if same := verdicts["not separable"] - unjudged:
        parts.append(f"{same} not shown to differ{after}")
    parts += [f"{verdicts[word]} {word}" for word in (NOT_DECIDED, CANNOT, SCORED_DIFFERENTLY) if verdicts[word]]
    parts += [f"{unjudged} that cannot be judged"] if unjudged else []
    pairs = {fmt.names_of(row) for row in rows}
    baselines = {b for _, b in pairs}
    n = counted(len(rows), "row")
    if len(pairs) > 1 and len(baselines) == 1:
        start = f"{n} against {fmt.shorten(baselines.pop(), _NAME)}"
    else:
        a, b = (fmt.shorten(name, _NAME) for name in (pairs.pop() if len(pairs) == 1 else ("A", "B")))
        start = f"{a} against {b}, {n}"
    return fmt.plain(f"{start}: {', '.join(parts)}.")


def verdict_line(row: Difference, *, alone: bool = True) -> str:
    """Return a difference's verdict with its numbers: "a is not shown to differ from b: −0.3 to +14.1 points"."""
    where = "" if alone else f"{fmt.what_of(row)}: "
    verdict, evidence = verdict_parts(row)
    return fmt.plain(f"{where}{verdict}{f': {evidence}' if evidence else '.'}")


def verdict_parts(row: Difference) -> tuple[str, str]:
    """Return (verdict, evidence): "a is better than b by 2 points", and interval and p, or why there is none, or ""."""
    if row.verdict == SCORED_DIFFERENTLY:
        return scoring_differs(row), ""
    a, b = _names(row)
    unit = fmt.scale_of(row).size
    if row.ci_low is None and row.p_value is None:
        why = next((explained(code, row.cluster is not None) for code in _REASONS if code in row.diagnostics), "")
        by = "" if row.diff is None else f" ({_signed(row, row.diff)}{unit})"
        return f"whether {a} and {b} differ{by} is not known", why
    parts, alone = [], not has_limits(row.test) and row.p_value is not None
    if (shown := _interval_shown(row)) is not None:
        turned = _decided(row) and (row.diff or 0.0) < 0  # the sentence says by how much, so the limits are of B − A
        low, high = (_signed(row, x) for x in ((-shown[1], -shown[0]) if turned else shown[:2]))
        parts.append(f"{low} to {high}{unit}{shown[2]}")
    test = TWO_ONE_SIDED.format(fmt.percent(1 - row.level)) if _equivalent(row) else _test(row)
    if (_decided(row) or alone) and row.p_adjusted is not None and not _equivalent(row):
        test += f", {'p' if row.p_adjusted == row.p_value else 'adjusted p'} {fmt.equals_p(row.p_adjusted)}"
    parts += [test] if test else []
    if row.verdict == NOT_DECIDED:
        parts.append(f"{NOT_DECIDED} yet")
    if row.verdict == CANNOT:
        parts.append("the rest of the answers cannot decide it")
    if row.mde is not None and not _decided(row) and not alone:  # the smallest that t would detect
        none = fmt.scale_of(row) is fmt.PERCENT and row.mde > 1  # no two scores of a question differ by so much
        parts.append(f"smallest detectable {'none' if none else fmt.amount(row, row.mde)}")
    if "not_after_adjustment" in row.diagnostics:
        parts.append("no longer significant after adjustment")
    parts += _remarks(row, "A − B")
    stopped = f"{UNCORRECTED}: " if STOPPED in row.diagnostics else ""
    return stopped + _verdict(row, a, b), f"{'; '.join(parts)}." if parts else ""


TWO_ONE_SIDED = "two one-sided tests at {}"


def _equivalent(row: Difference) -> bool:
    return isinstance(row.verdict, Equivalent)


def _interval_shown(row: Difference) -> tuple[float, float, str] | None:
    """Return (low, high, words) of the interval that the verdict rests on. None if the test has none.

    Equivalence at level α is read off the interval of 1 − 2α, so that this one is shown. For a test without limits, the
    table has another test's interval, which does not show its verdict.
    """
    if row.ci_low is None or row.ci_high is None or (not has_limits(row.test) and row.p_value is not None):
        return None
    if not _equivalent(row):
        level = fmt.level_of([row])
        return row.ci_low, row.ci_high, "" if level == "95%" else f" ({level} interval)"
    if row.interval != T.name or "few_flips" in row.diagnostics or None in (row.diff, row.se, row.df):
        return None
    narrow = 2 * row.level - 1
    ends = t_limits(row.diff or 0.0, row.se or 0.0, row.df or 1.0, narrow)
    return float(ends.low), float(ends.high), f" ({fmt.percent(narrow)} interval)"


def _names(row: Difference) -> tuple[str, str]:
    """Return the names of A and B. For bare counts without names, "x of n" and "y of m"."""
    a, b = (fmt.shorten(name, _NAME) for name in fmt.names_of(row))
    if row.test == FISHER.name and (a, b) == ("A", "B"):
        counts = ((row.mean_a, row.n_only_a), (row.mean_b, row.n_only_b))
        a, b = (f"{round((mean or 0.0) * n)} of {n}" for mean, n in counts)
    return a, b


_REASONS = (
    "cluster_template",
    "too_few_questions",
    "unscored_task",
    "too_few_clusters",
    "identical_scores",
    "zero_variance",
    "skipped_metric",
)


def _verdict(row: Difference, a: str, b: str) -> str:
    if _equivalent(row):
        return f"{a} and {b} are {fmt.verdict_words(row)}"
    if not _decided(row) or row.diff is None:
        return f"{a} is not shown to differ from {b}"
    word = "better" if row.verdict == "A better" else "worse"
    which = "lower" if row.unit is None else f"lower {row.metric}"
    lower = f", where {which} is better," if row.higher_is_better is False else ""
    return f"{a} is {word} than {b}{lower} by {fmt.amount(row, abs(row.diff))}"


def _test(row: Difference) -> str:
    tested = row.p_value is not None and fmt.has_t(row)
    what = row.test if tested else row.interval
    name = "" if what == "none" else fmt.test_name(what, row)
    if name in ("Fisher's exact", STOPS):
        return f"{name} test"
    unpaired = "unpaired " if "unpaired" in row.diagnostics else ""
    return unpaired + re.sub(r"^t\b(?!-)", "t test", name)


def _signed(row: Difference, value: float) -> str:
    return fmt.shown(row, value, sign=True, bound=0.0)
