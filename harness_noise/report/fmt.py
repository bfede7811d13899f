"""Format of numbers, names and methods, for tables, figures and sentences alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from ..choices import ESTIMATORS, INTERVALS, REFERENCE, SIGN, T_TEST, TESTS, T
from ..data.units import MISSING as MISSING
from ..data.units import MOST_DECIMALS
from ..data.units import PERCENT as PERCENT
from ..data.units import Scale as Scale
from ..data.units import decimals as decimals
from ..data.units import limit as limit
from ..data.units import number as number
from ..data.units import scale_of as scale_of
from ..errors import some_of
from ..extras import explaining
from ..io.paths import telling_parts
from ..results.rows import Difference, Estimate, Flip
from ..stats.tolerances import SLACK

THESE_QUESTIONS = (
    "Estimand: these questions. Standard errors, intervals and p-values come from the repeated answers alone. They "
    "do not apply to other questions of their kind, and clusters have no effect."
)


def digits_of(row: Any) -> int:
    """Return the decimals of all numbers of a row, by its standard error, or without one by its interval."""
    se, low, high = (getattr(row, name, None) for name in ("se", "ci_low", "ci_high"))
    if not se and low is not None and high is not None:
        se = (high - low) / 4
    return decimals(se, value_of(row) or getattr(row, "mean_a", None))


def digits_of_flip(flip: Flip) -> int:
    """Return the decimals of a question's means that show by how much they differ."""
    return max(2, decimals(flip.diff))


def value_of(row: Any) -> float | None:
    """Return the estimate of a row: a mean, a difference or a coefficient."""
    names = ("mean", "diff", "estimate", "coefficient")
    value: float | None = next((getattr(row, name) for name in names if hasattr(row, name)), None)
    return value


_MEANS = ("mean", "mean_a", "mean_b", "mean_corrected", "mean_if_missing_wrong", "mean_if_missing_right")
"""Fields that are means in every row."""
_EITHER = (
    "ci_low",
    "ci_high",
    "ci_low_population",
    "ci_high_population",
    "estimate",
    "estimate_unadjusted",
    "shrunken",
    "shrunken_ci_low",
    "shrunken_ci_high",
    "limit",
    "threshold",
    "judge.mean_judge",
)
"""Fields that are means in a row of means, and differences in a row of two runs."""


def is_mean(row: Any, name: str) -> bool:
    """Return True if a field of a row is a mean, False for a difference or a standard error."""
    if name in _MEANS:
        return True
    of_means = getattr(row, "rule", "") == "se"
    if not of_means and (hasattr(row, "diff") or hasattr(row, "coefficient")):
        return False
    of_means = of_means or hasattr(row, "mean") or getattr(row, "quantity", "") == "A"
    of_means = of_means or not (getattr(row, "_of_two", not hasattr(row, "model")) or hasattr(row, "quantity"))
    return name in _EITHER and of_means


def shown(
    row: Any,
    value: float | None,
    *,
    mean: bool = False,
    unit: bool = False,
    sign: bool = False,
    bound: float | None = None,
    digits: int | None = None,
) -> str:
    """Return a number of a row as text, the same on every screen, sentence and page.

    Args:
        row: gives the scale and the decimals.
        value: on the metric's scale; None: a dash.
        mean: it is a mean, which has "%" behind it where the row is shown in per cent.
        unit: write the unit of a difference or of a measure behind it.
        sign: write + before what is above 0.
        bound: show on which side of this value it lies, with as many decimals as that takes.
        digits: decimals on the metric's scale, in place of the row's.
    """
    if value is None:
        return MISSING
    places = digits_of(row) if digits is None else digits
    return scale_of(row).text(value, places, mean=mean, unit=unit, sign=sign, bound=bound)


def mean_of(row: Any, value: float | None, *, unit: bool = False) -> str:
    """Return a mean as text: "75.4%", or on the metric's own scale."""
    return shown(row, value, mean=True, unit=unit)


def amount(row: Any, value: float | None, digits: int | None = None) -> str:
    """Return a difference or a standard error with its unit: "15.4 points"."""
    return shown(row, value, unit=True, digits=digits)


def mean_with_error(row: Any, *, unit: bool = False) -> str:
    """Return a mean ± its standard error: "75.4% ± 6.5", with `unit` "75.4% ± 6.5 points"."""
    text = shown(row, row.mean, mean=True, unit=unit and row.se is None)
    return text if row.se is None else f"{text} ± {shown(row, row.se, unit=unit)}"


def bare_with_error(row: Any) -> str:
    """Return a mean ± its standard error without units, for a table that has them once: "75.4 ± 6.5"."""
    text = shown(row, row.mean)
    return text if row.se is None else f"{text} ± {shown(row, row.se)}"


def interval_text(row: Any, low: float | None, high: float | None, *, mean: bool = False) -> str:
    """Return an interval on the scale of a row: "[59.7%, 86.4%]" of a mean, "[9.4, 21.5]" of a difference."""
    if low is None or high is None:
        return MISSING
    return f"[{', '.join(shown(row, end, mean=mean, bound=0.0) for end in (low, high))}]"


def verdict_words(row: Difference) -> str:
    """Return the verdict, whose margin is on the row's scale: "equivalent within 2 points"."""
    return scale_of(row).verdict(row.verdict)


def units_of(rows: Sequence[Any]) -> str:
    """Return a caption for the units of rows, such as "SE in points", "" if they are on the metric's scale."""
    scaled = [row for row in rows if hasattr(row, "metric") and scale_of(row) is PERCENT]
    if not scaled:
        return ""
    if all(hasattr(row, "coefficient") for row in scaled):
        return "coefficients and SE in points"
    of_means = all(hasattr(row, "mean") and not (hasattr(row, "diff") or hasattr(row, "since_first")) for row in scaled)
    has_error = any(hasattr(row, "se") for row in scaled)
    if of_means and not has_error:
        return ""
    what = "SE" if of_means else "differences and SE" if has_error else "differences"
    if len(scaled) == len(rows):
        return f"{what} in points"
    return f"{what} of means in % are in points" if of_means else f"{what} of 0/1 metrics in points"


def with_error(value: float | None, se: float | None) -> str:
    """Return a value ± its standard error, if it has one."""
    digits = decimals(se, value)
    return number(value, digits) if se is None else f"{number(value, digits)} ± {number(se, digits)}"


def data_noise(row: Estimate | Difference) -> str:
    """Return `se_data`. If its estimate is negative, return "< x", x its upper limit rounded up.

    Without a limit it is unknown, which is not 0.
    """
    if row.var_data is None or row.var_data >= 0:
        return shown(row, row.se_data)
    if row.se_data_upper is None:
        return MISSING
    scale = scale_of(row)
    return below(scale.times * row.se_data_upper, scale.digits(digits_of(row)))


def below(limit: float, digits: int) -> str:
    """Return "< x" for noise that is not seen, x its upper limit rounded up."""
    unit = 10.0**-digits
    if digits == MOST_DECIMALS and 0 < limit < 100 * unit:  # as `number` shows it, with an exponent
        unit = 10.0 ** (math.floor(math.log10(limit)) - 2)
    return f"< {number(max(1, math.ceil(limit / unit - SLACK)) * unit, digits)}"


def mean_interval_name(row: Estimate) -> str:
    """Return the interval's method and its degrees of freedom: "Wilson, t 19 df"."""
    name = "" if row.interval == "none" else INTERVALS.title(row.interval)
    if row.df is None or not (row.interval in INTERVALS and INTERVALS[row.interval].by_t):
        return name
    return f"{name}, {'' if name == 't' else 't '}{degrees(row.df)} df"


def estimator_of(row: Estimate) -> str:
    """Return the printed name of the estimator of a mean's standard error, "" where none chose among questions."""
    return "" if row.se is None or row.estimand == "these_questions" else estimator_name(row.estimator)


def estimator_name(name: str) -> str:
    """Return the printed name of a variance estimator, such as CR2."""
    return ESTIMATORS.title(name)


def if_missing(row: Estimate, joint: str = " … ") -> str:
    """Return the mean if all missing answers were wrong, and if all were right, or "" if it does not matter."""
    ends = (row.mean_if_missing_wrong, row.mean_if_missing_right)
    return joint.join(mean_of(row, end) for end in ends) if "missing_matters" in row.diagnostics else ""


def interval(low: float | None, high: float | None, digits: int) -> str:
    if low is None or high is None:
        return MISSING
    return f"[{limit(low, digits)}, {limit(high, digits)}]"


def interval_of(row: Any) -> str:
    """Return the confidence interval of a row."""
    return interval_text(row, row.ci_low, row.ci_high, mean=is_mean(row, "ci_low"))


def p_text(p: float | None) -> str:
    if p is None:
        return MISSING
    if p < 0.0001:
        return "< 0.0001"
    return f"{p:.4f}" if p < 0.001 else f"{p:.3f}"


def count(value: float | None) -> str:
    """Return a count that may be fractional, such as expected wins, as text."""
    if value is None:
        return MISSING
    return f"{value:,.0f}" if abs(value - round(value)) < SLACK else f"{value:,.1f}"


def metric_name(metric: str, scorer: str) -> str:
    return plain(metric if scorer in ("none", "") else f"{metric}, {scorer}")


def span(low: int, high: int) -> str:
    return f"{high:,}" if low == high else f"{low:,}–{high:,}"


def of_each(a: int, b: int) -> str:
    """Return A's and B's number as text, "5 : 3", or one number if they are equal."""
    return f"{a:,}" if a == b else f"{a:,} : {b:,}"


def test_name(what: str, row: Difference) -> str:
    """Return the name of a difference's test, or of its interval."""
    name = TESTS.title(what)
    name = INTERVALS.title(what) if name == what else name
    if name == "t":
        borrowed = ", borrowed noise" if row.test == REFERENCE.name else ""
        return ("t" if row.df is None else f"t, {degrees(row.df)} df") + borrowed
    return f"cluster {name}" if row.cluster and what in TESTS and TESTS[what].by_cluster else name


def degrees(df: float) -> str:
    """Return degrees of freedom as whole numbers, or with one decimal below 100. Rounding errors add no decimal."""
    return f"{df:,.0f}" if df >= 100 or abs(df - round(df)) < 1e-9 else f"{df:.1f}"


MOVED = 0.05
"""Share of the half-width by which a limit must be farther to be reported."""


def moved_limit(row: Difference) -> str:
    """Return the limit that few flips move by more than `MOVED` of the half-width: "upper", "lower", or ""."""
    if "few_flips" not in row.diagnostics or row.interval != T.name:
        return ""
    if row.diff is None or row.ci_low is None or row.ci_high is None:
        return ""
    below, above = row.diff - row.ci_low, row.ci_high - row.diff
    if max(below, above) <= (1 + MOVED) * min(below, above):
        return ""
    return "upper" if above > below else "lower"


def shown_codes(row: Any) -> tuple[str, ...]:
    """Return the diagnostics of a row that are printed with it, without few flips that move no limit."""
    codes: tuple[str, ...] = row.diagnostics
    if isinstance(row, Difference) and not moved_limit(row):
        return tuple(code for code in codes if code != "few_flips")
    return codes


def interval_words(row: Difference) -> str:
    """Return the name of the interval for a sentence, with the limit that few flips move."""
    name, moved = test_name(row.interval, row), moved_limit(row)
    if not moved:
        return name
    how = "raised" if moved == "upper" else "lowered"
    return f"{name}; {moved} limit {how}: few {'clusters' if row.cluster else 'questions'} decide"


def has_t(row: Difference) -> bool:
    """Return True if p can come from a t test. If nothing varies there is none, and p is 1 or the sign test's."""
    return row.test != T_TEST.name or "zero_variance" not in row.diagnostics


def by_test(row: Difference) -> str:
    """Return the name of the test that the p-value comes from, and of the interval's method if different."""
    test = row.test
    if row.p_value is None or not has_t(row):
        test = SIGN.name if row.p_sign is not None and row.interval != T.name else row.interval
    if test == "none" or (row.p_value is None and row.ci_low is None):
        return MISSING
    name, shown = test_name(test, row), test_name(row.interval, row)
    return name if shown == name or row.interval == "none" else f"{name}; CI: {shown}"


def estimand_line(items: Iterable[Estimate | Difference]) -> list[str]:
    """Return sentences on the estimand, unless it is the mean of the scores over the population of questions."""
    rows = list(items)
    out = [THESE_QUESTIONS] if any(row.estimand == "these_questions" for row in rows) else []
    modules = dict.fromkeys(module for row in rows if (module := explaining(row)) is not None)
    return [*out, *(words for module in modules for words in module.estimand(rows))]


def bias(row: Estimate | Difference, *, unit: bool = False) -> str:
    """Return the correction of a judge's mean by human labels, with its standard error, and with its unit."""
    numbers = [] if row.judge is None else [x for x in (row.judge.bias, row.judge.bias_se) if x is not None]
    return " ± ".join(shown(row, x, unit=unit and i == len(numbers) - 1) for i, x in enumerate(numbers))


def pairing(row: Difference) -> str:
    """Return words on how two runs were compared: paired, unpaired, or from which models the noise is borrowed."""
    if row.test == REFERENCE.name:
        return f"standard error borrowed from other models on {plain(row.task)}, no answer of either was seen"
    if questions := of_published(row):
        return f"against a published number on {questions}"
    return "unpaired" if "unpaired" in row.diagnostics else "paired"


def of_published(row: Difference) -> str:
    """Return the questions of a published number that a run is compared with, "" if B is a run or both are numbers."""
    if not row.run_a or row.run_b:
        return ""
    return f"{row.n_only_b:,} other questions" if row.n_only_b else "the same questions"


def names_of(row: Difference | Flip) -> tuple[str, str]:
    """Return A's and B's names: the models', if equal with the first differing part of the paths, else A and B.

    A model that is called like the other side is "model B": "B is better" beside a row "B" would be read the wrong way.
    """
    if row.model_a == "B" or row.model_b == "A":
        return f"model {row.model_a}", f"model {row.model_b}"
    if row.model_a != row.model_b:
        return row.model_a, row.model_b
    if row.run_a == row.run_b:
        return "A", "B"
    a, b = telling_parts([row.run_a, row.run_b])
    return f"{row.model_a} ({a})", f"{row.model_b} ({b})"


def pair_of(row: Difference | Flip) -> tuple[str, str, str, str]:
    """Return (model A, run A, model B, run B) of a row."""
    return row.model_a, row.run_a, row.model_b, row.run_b


def plain(text: str) -> str:
    """Return a text on one line without control characters, so that a name from a log cannot move the cursor."""
    return "".join(c if c.isprintable() else "�" for c in " ".join(text.split()))


def shorten(text: str, width: int) -> str:
    """Return a text on one line of at most `width` characters."""
    line = plain(text)
    return line if len(line) <= width else line[: width - 1] + "…"


def cut_apart(a: str, b: str, width: int) -> tuple[str, str]:
    """Return two names of at most `width` characters each, cut where they are equal and not where they differ."""
    a, b = plain(a), plain(b)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
    rest = max(len(a), len(b)) - shared
    if shared > 1 and shared + rest > width:
        a, b = (f"{text[: max(0, width - 1 - rest)]}…{text[shared:]}" for text in (a, b))
    return shorten(a, width), shorten(b, width)


def percent(level: float) -> str:
    """Return a coverage as text: "95%"."""
    return f"{100 * level:g}%"


def level_of(rows: Sequence[Any]) -> str:
    """Return the coverage of the rows' intervals as text: "95%"."""
    return percent(rows[0].level) if rows else "95%"


def unit_of(row: Any) -> str:
    """Return a measure's unit after its name, as " ($)", "" for a score."""
    unit = getattr(row, "unit", None)
    return f" ({unit})" if unit else ""


def what_of(row: Any) -> str:
    """Return task and metric of a row."""
    return " ".join(filter(None, (plain(row.task), metric_name(row.metric, row.scorer))))


_OVER = {
    "equal": " over all tasks with equal weights",
    "size": " over all tasks weighted by size",
    "file": " over all tasks with the weights given",
}


def on_task(row: Estimate | Difference) -> str:
    """Return " on drop", or the tasks of an overall row in words, "" for a row without a task."""
    if row.is_overall and row.weights is not None:
        return _OVER[row.weights]
    return f" on {row.task}" if row.task else ""


_WEIGHTS = {
    "equal": (
        "every task has the same weight, and a group counts as one task",
        "`weights='size'` weights by questions",
    ),
    "size": ("tasks are weighted by their questions", "`weights='equal'` gives every task the same weight"),
    "file": ("the weights are those that you gave", ""),
}
"""Weights of an overall row → in words, and how to choose others."""


def weights_line(rows: Sequence[Estimate | Difference], *, choice: bool = True) -> list[str]:
    """Return a sentence on how the overall rows weight their tasks.

    With `choice` it also says how to choose other weights, which a paper does not.
    """
    ways = dict.fromkeys((row.task, row.weights) for row in rows if row.weights is not None)
    named: dict[str, list[str]] = {}
    for task, way in ways:
        named.setdefault(str(way), []).append(task)
    lines = []
    for way, tasks in named.items():
        words, other = _WEIGHTS[way]
        lines.append(f"{some_of(list(map(plain, tasks)), 4)}: {words}{f'; {other}' if choice and other else ''}.")
    return lines


def models_of(row: Any) -> str:
    """Return the model of a row of one run, "A − B" of a row of two."""
    if isinstance(row, (Difference, Flip)):
        return plain(" − ".join(names_of(row)))
    if isinstance(row, Estimate):
        return plain(row.model)
    return plain(row.model_a if row.model_b is None else f"{row.model_a} − {row.model_b}")


def equals_p(p: float | None) -> str:
    """Return a p-value as text with its sign of comparison: "= 0.012" or "< 0.0001"."""
    text = p_text(p)
    return text if text.startswith("<") else f"= {text}"
