"""Format of numbers, names and methods, for tables, figures and sentences alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from ..choices import ESTIMATORS, INTERVALS, REFERENCE, SIGN, T_TEST, TESTS, T
from ..data.units import MISSING as MISSING
from ..data.units import MOST_DECIMALS, rounded
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
    """Return the number of decimals for all numbers of a row, from its standard error, else interval, else value."""
    se, low, high = (getattr(row, name, None) for name in ("se", "ci_low", "ci_high"))
    if not se and low is not None and high is not None:
        se = (high - low) / 4
    return decimals(se, value_of(row) or getattr(row, "mean_a", None))


def digits_of_means(row: Any) -> int:
    """Return the decimals of two means: those of their difference, or one more if they would not add up to it.

    So 32.5% and 37.5% are not shown as 32% and 38% beside −5 points.
    """
    digits, a, b, diff = digits_of(row), *(getattr(row, name, None) for name in ("mean_a", "mean_b", "diff"))
    if a is None or b is None or diff is None or digits >= MOST_DECIMALS - 1:
        return digits
    if abs(a - b - diff) > SLACK * max(abs(a), abs(b)):
        return digits  # a difference that was corrected for early stopping is not that of the means
    scale = scale_of(row)
    places = scale.digits(digits)
    shown_a, shown_b, shown_diff = (rounded(scale.times * x, places) for x in (a, b, diff))
    adds_up = abs(shown_a - shown_b - shown_diff) < 0.5 * 10.0**-places
    return digits if adds_up else digits + 1


def digits_of_flip(flip: Flip) -> int:
    """Return the number of decimals at which a question's two means are seen to differ."""
    return max(2, decimals(flip.diff))


def value_of(row: Any) -> float | None:
    """Return a row's mean, diff, estimate or coefficient, the first of these fields that it has. None without any."""
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
    """Return True if a field of a row is on the scale of means (shown in %), not of differences (points)."""
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
    """Format a number (None: a dash) with the scale and the decimals of its row, as all screens and pages show it.

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
    own = digits_of_means if mean else digits_of
    places = own(row) if digits is None else digits
    return scale_of(row).text(value, places, mean=mean, unit=unit, sign=sign, bound=bound)


def mean_of(row: Any, value: float | None, *, unit: bool = False) -> str:
    """Format a mean with the scale of its row: "75.4%" for 0/1 scores."""
    return shown(row, value, mean=True, unit=unit)


def amount(row: Any, value: float | None, digits: int | None = None) -> str:
    """Format a difference or standard error with its unit: "15.4 points" for 0/1 scores."""
    return shown(row, value, unit=True, digits=digits)


def mean_with_error(row: Any, *, unit: bool = False) -> str:
    """Format a row's mean ± standard error: "75.4% ± 6.5", or with `unit` "75.4% ± 6.5 points"."""
    text = shown(row, row.mean, mean=True, unit=unit and not row.se)
    return text if not row.se else f"{text} ± {shown(row, row.se, unit=unit)}"


def bare_with_error(row: Any) -> str:
    """Format a row's mean ± standard error without units: "75.4 ± 6.5"."""
    text = shown(row, row.mean)
    return text if not row.se else f"{text} ± {shown(row, row.se)}"


def interval_text(row: Any, low: float | None, high: float | None, *, mean: bool = False) -> str:
    """Format an interval with the scale of a row: "[59.7%, 86.4%]" of a mean, "[9.4, 21.5]" of a difference."""
    if low is None or high is None:
        return MISSING
    return f"[{', '.join(shown(row, end, mean=mean, bound=0.0) for end in (low, high))}]"


def verdict_words(row: Difference) -> str:
    """Return a difference's verdict as people read it: "equivalent within 2 points", "not shown to differ"."""
    return scale_of(row).verdict(row.verdict)


def units_of(rows: Sequence[Any]) -> str:
    """Return a table's caption on units, such as "SE in points", for its 0/1 rows. "" if it has none of them."""
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
    """Format a value ± its standard error, or the value alone if se is None."""
    digits = decimals(se, value)
    return number(value, digits) if se is None else f"{number(value, digits)} ± {number(se, digits)}"


def data_noise(row: Estimate | Difference) -> str:
    """Format the data noise's standard error. If its variance is negative, "< upper limit" instead.

    Without a limit it is unknown, which is not 0.
    """
    if row.var_data is None or row.var_data >= 0:
        return shown(row, row.se_data)
    if row.se_data_upper is None:
        return MISSING
    scale = scale_of(row)
    return below(scale.times * row.se_data_upper, scale.digits(digits_of(row)))


def below(limit: float, digits: int) -> str:
    """Return "< x" for noise too small to be seen. x is its limit on the scale shown, rounded up to `digits`."""
    unit = 10.0**-digits
    if digits == MOST_DECIMALS and 0 < limit < 100 * unit:  # as `number` shows it, with an exponent
        unit = 10.0 ** (math.floor(math.log10(limit)) - 2)
    return f"< {number(max(1, math.ceil(limit / unit - SLACK)) * unit, digits)}"


def mean_interval_name(row: Estimate) -> str:
    """Return the name of a mean's interval method, with degrees of freedom: "Wilson, t 19 df"."""
    name = "" if row.interval == "none" else INTERVALS.title(row.interval)
    if row.df is None or not (row.interval in INTERVALS and INTERVALS[row.interval].by_t):
        return name
    return f"{name}, {'' if name == 't' else 't '}{degrees(row.df)} df"


def estimator_of(row: Estimate) -> str:
    """Return the printed name of a mean's variance estimator (CR2, …), "" if none was used."""
    return "" if row.se is None or row.estimand == "these_questions" else estimator_name(row.estimator)


def estimator_name(name: str) -> str:
    """Return the printed name of a variance estimator: cr2 is "CR2"."""
    return ESTIMATORS.title(name)


def if_missing(row: Estimate, joint: str = " … ") -> str:
    """Return the mean if all missing answers were wrong, and if all were right, as text. "" if it hardly matters."""
    ends = (row.mean_if_missing_wrong, row.mean_if_missing_right)
    return joint.join(mean_of(row, end) for end in ends) if "missing_matters" in row.diagnostics else ""


def interval(low: float | None, high: float | None, digits: int) -> str:
    if low is None or high is None:
        return MISSING
    return f"[{limit(low, digits)}, {limit(high, digits)}]"


def interval_of(row: Any) -> str:
    """Return the confidence interval of a row as text."""
    return interval_text(row, row.ci_low, row.ci_high, mean=is_mean(row, "ci_low"))


def p_text(p: float | None) -> str:
    if p is None:
        return MISSING
    if p < 0.0001:
        return "< 0.0001"
    return f"{p:.4f}" if p < 0.001 else f"{p:.3f}"


def count(value: float | None) -> str:
    """Format a count that may be fractional (such as expected wins), with at most one decimal."""
    if value is None:
        return MISSING
    return f"{value:,.0f}" if abs(value - round(value)) < SLACK else f"{value:,.1f}"


def metric_name(metric: str, scorer: str) -> str:
    return plain(metric if scorer in ("none", "") else f"{metric}, {scorer}")


def span(low: int, high: int) -> str:
    return f"{high:,}" if low == high else f"{low:,}–{high:,}"


def of_each(a: int, b: int) -> str:
    """Return A's and B's counts as text: "5 : 3", or one number if they are equal."""
    return f"{a:,}" if a == b else f"{a:,} : {b:,}"


def test_name(what: str, row: Difference) -> str:
    """Return the printed name of a row's test or interval method `what`: "t, 19 df", "cluster …" if it uses them."""
    name = TESTS.title(what)
    name = INTERVALS.title(what) if name == what else name
    if name == "t":
        borrowed = ", borrowed noise" if row.test == REFERENCE.name else ""
        return ("t" if row.df is None else f"t, {degrees(row.df)} df") + borrowed
    return f"cluster {name}" if row.cluster and what in TESTS and TESTS[what].by_cluster else name


def degrees(df: float) -> str:
    """Format degrees of freedom: one decimal below 100 unless they are whole.

    Rounding errors add no decimal.
    """
    return f"{df:,.0f}" if df >= 100 or abs(df - round(df)) < 1e-9 else f"{df:.1f}"


MOVED = 0.05
"""Share of the half-width by which a limit must be farther to be reported."""


def moved_limit(row: Difference) -> str:
    """Return "upper" or "lower" if few differing questions extend that limit noticeably, else ""."""
    if "few_flips" not in row.diagnostics or row.interval != T.name:
        return ""
    if row.diff is None or row.ci_low is None or row.ci_high is None:
        return ""
    below, above = row.diff - row.ci_low, row.ci_high - row.diff
    if max(below, above) <= (1 + MOVED) * min(below, above):
        return ""
    return "upper" if above > below else "lower"


def shown_codes(row: Any) -> tuple[str, ...]:
    """Return a row's diagnostic codes to print. `few_flips` is dropped if it moves no limit."""
    codes: tuple[str, ...] = row.diagnostics
    if isinstance(row, Difference) and not moved_limit(row):
        return tuple(code for code in codes if code != "few_flips")
    return codes


def interval_words(row: Difference) -> str:
    """Return the name of a difference's interval method, and which limit was moved, for a sentence."""
    name, moved = test_name(row.interval, row), moved_limit(row)
    if not moved:
        return name
    return f"{name}; {moved_words(moved)}: few {'clusters' if row.cluster else 'questions'} decide"


def moved_words(limit: str) -> str:
    """Return what was done to the limit that few questions move: "upper limit raised", "lower limit lowered"."""
    return f"{limit} limit {'raised' if limit == 'upper' else 'lowered'}"


def has_t(row: Difference) -> bool:
    """Return False if the test is t but no score varies, so that the p-value is not from a t test."""
    return row.test != T_TEST.name or "zero_variance" not in row.diagnostics


def by_test(row: Difference) -> str:
    """Return the name of the test behind p, and of the interval's method if it is another. A dash without both."""
    test = row.test
    if row.p_value is None or not has_t(row):
        test = SIGN.name if row.p_sign is not None and row.interval != T.name else row.interval
    if test == "none" or (row.p_value is None and row.ci_low is None):
        return MISSING
    name, shown = test_name(test, row), test_name(row.interval, row)
    return name if shown == name or row.interval == "none" else f"{name}; CI: {shown}"


def estimand_line(items: Iterable[Estimate | Difference]) -> list[str]:
    """Return a list of sentences on rows' estimands other than the mean over all such questions. [] if none is."""
    rows = list(items)
    out = [THESE_QUESTIONS] if any(row.estimand == "these_questions" for row in rows) else []
    modules = dict.fromkeys(module for row in rows if (module := explaining(row)) is not None)
    return [*out, *(words for module in modules for words in module.estimand(rows))]


def bias(row: Estimate | Difference, *, unit: bool = False) -> str:
    """Return a judge's bias (the corrected mean less its own) ± standard error as text, "" without a correction."""
    numbers = [] if row.judge is None else [x for x in (row.judge.bias, row.judge.bias_se) if x is not None]
    return " ± ".join(shown(row, x, unit=unit and i == len(numbers) - 1) for i, x in enumerate(numbers))


def pairing(row: Difference) -> str:
    """Return the way two runs were compared: "paired", "unpaired", by borrowed noise, or to a published number."""
    if row.test == REFERENCE.name:
        return f"standard error borrowed from other models on {plain(row.task)}, no answer of either was seen"
    if questions := of_published(row):
        return f"against a published number on {questions}"
    return "unpaired" if "unpaired" in row.diagnostics else "paired"


def of_published(row: Difference) -> str:
    """Return on which questions B, a published number, was measured. "" if B is a run."""
    if not row.run_a or row.run_b:
        return ""
    return f"{row.n_only_b:,} other questions" if row.n_only_b else "the same questions"


def names_of(row: Difference | Flip) -> tuple[str, str]:
    """Return the names of A and B: models, with paths if they are equal, else "A" and "B". A model B may be "model B".

    A model that is called like the other side is "model B": "B is better" beside a row "B" would be read the wrong way.
    """
    if row.model_a != row.model_b:
        mixed_up = row.model_a == "B" or row.model_b == "A"
        return (f"model {row.model_a}", f"model {row.model_b}") if mixed_up else (row.model_a, row.model_b)
    if row.run_a == row.run_b:
        return "A", "B"
    a, b = telling_parts([row.run_a, row.run_b])
    return f"{row.model_a} ({a})", f"{row.model_b} ({b})"


def pair_of(row: Difference | Flip) -> tuple[str, str, str, str]:
    """Return (model A, run A, model B, run B) of a row, as a key."""
    return row.model_a, row.run_a, row.model_b, row.run_b


def plain(text: str) -> str:
    """Return text on one line, control characters replaced by "�", so that it is safe to print."""
    return "".join(c if c.isprintable() else "�" for c in " ".join(text.split()))


def shorten(text: str, width: int) -> str:
    """Return text on one line, cut with "…" to at most `width` characters."""
    line = plain(text)
    return line if len(line) <= width else line[: width - 1] + "…"


def cut_apart(a: str, b: str, width: int) -> tuple[str, str]:
    """Shorten two names to `width` characters such that the parts in which they differ stay."""
    a, b = plain(a), plain(b)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
    rest = max(len(a), len(b)) - shared
    if shared > 1 and shared + rest > width:
        a, b = (f"{text[: max(0, width - 1 - rest)]}…{text[shared:]}" for text in (a, b))
    return shorten(a, width), shorten(b, width)


def percent(level: float) -> str:
    """Format a confidence level: 0.95 is "95%"."""
    return f"{100 * level:g}%"


def level_of(rows: Sequence[Any]) -> str:
    """Return the confidence level of the first row's interval as text: "95%"."""
    return percent(rows[0].level) if rows else "95%"


def unit_of(row: Any) -> str:
    """Return a measure's unit in brackets, " ($)", to follow its name. "" for a score."""
    unit = getattr(row, "unit", None)
    return f" ({unit})" if unit else ""


def what_of(row: Any) -> str:
    """Return a row's task and metric as text."""
    return " ".join(filter(None, (plain(row.task), metric_name(row.metric, row.scorer))))


_OVER = {
    "equal": " over all tasks with equal weights",
    "size": " over all tasks weighted by size",
    "file": " over all tasks with the weights given",
}


def on_task(row: Estimate | Difference) -> str:
    """Return " on TASK", or words on the tasks for an overall row, to follow a verb. "" without a task."""
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


class Sentence(str):
    """A sentence that a paper has in other words, or ("") not among its notes."""

    __slots__ = ("paper",)
    paper: str

    def __new__(cls, text: str, paper: str = "") -> Sentence:
        """Return a sentence, with the words that a paper has in its place."""
        new = super().__new__(cls, text)
        new.paper = paper
        return new


def paper_words(lines: Iterable[str]) -> list[str]:
    """Return the sentences as a paper has them among its notes."""
    return [words for line in lines if (words := getattr(line, "paper", line))]


def weights_line(rows: Sequence[Estimate | Difference]) -> list[str]:
    """Return a list of sentences on how overall rows weight their tasks, one for each way, [] without such rows.

    They also say how to choose other weights, which a paper does not.
    """
    ways = dict.fromkeys((row.task, row.weights) for row in rows if row.weights is not None)
    named: dict[str, list[str]] = {}
    for task, way in ways:
        named.setdefault(str(way), []).append(task)
    lines: list[str] = []
    for way, tasks in named.items():
        words, other = _WEIGHTS[way]
        said = f"{some_of(list(map(plain, tasks)), 4)}: {words}"
        lines.append(Sentence(f"{said}{f'; {other}' if other else ''}.", f"{said}."))
    return lines


def models_of(row: Any) -> str:
    """Return the model's name of a row, or "A − B" with both names for a difference."""
    if isinstance(row, (Difference, Flip)):
        return plain(" − ".join(names_of(row)))
    if isinstance(row, Estimate):
        return plain(row.model)
    return plain(row.model_a if row.model_b is None else f"{row.model_a} − {row.model_b}")


def equals_p(p: float | None) -> str:
    """Format a p-value to follow the letter p: "= 0.012" or "< 0.0001"."""
    text = p_text(p)
    return text if text.startswith("<") else f"= {text}"
