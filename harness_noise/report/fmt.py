"""How numbers, names and methods are written: for tables, figures and sentences alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ..io.paths import telling_parts
from ..results.rows import Difference, Estimate, Flip
from ..stats.tolerances import FEWEST_UNITS, ROUNDING, SLACK

MISSING = "–"
THESE_QUESTIONS = (
    "Estimand: these questions. Standard errors, intervals and p-values come from the repeated answers alone; nothing "
    "is said of other questions of their kind, and clusters play no part."
)
PEOPLE_LABELS = (
    "Estimand: the mean that people would give. Their labels of a random part of the answers correct the judge's "
    "scores, and standard errors, intervals and p-values count the labels."
)
_ADDS_NOTHING = "The judge adds nothing, so the labels alone do as well: {}."
_UNUSED = (
    "The labels alone count, and the judge is not used: {}. To use it takes at least "
    f"{FEWEST_UNITS} labelled questions (clusters), and a judge whose scores vary."
)
_ADDS_NOISE = (
    "The corrected standard error is larger than that of the labels alone, because it allows for errors of the judge "
    "that so few labels do not show: {}."
)
GAINS_NOTHING = 1.05
"""Gain against the labels alone below which the judge is said to add nothing."""
MOST_DECIMALS = 6
_METHODS = {
    "wilson": "Wilson",
    "korn-graubard": "Korn–Graubard",
    "clopper-pearson": "Clopper–Pearson",
    "reference": "t",
    "sign": "sign test",
    "wild": "wild bootstrap",
    "fisher": "Fisher's exact",
    "bonett-price": "Bonett–Price",
    "agresti-caffo": "Agresti–Caffo",
}
"""Interval or test → its name, where that is another."""


def decimals(se: float | None, value: float | None = None) -> int:
    """Decimals that show two significant digits of the standard error, between 1 and MOST_DECIMALS.

    Without a standard error, three decimals: fewer of a value above 10, more of one below 0.01.
    """
    if se is not None and ROUNDING <= abs(se) < math.inf:
        return _two_digits(se)
    size = abs(value or 0.0)
    if size <= ROUNDING or not math.isfinite(size):  # a sum that cancels is no small number
        return 3
    return max(_two_digits(size), min(3, _two_digits(size / 100)))


def _two_digits(size: float) -> int:
    return min(MOST_DECIMALS, max(1, 1 - math.floor(math.log10(abs(size)))))


def digits_of(row: Any) -> int:
    """Decimals of all numbers of a row: by its standard error, or where it has none by its interval."""
    se, low, high = (getattr(row, name, None) for name in ("se", "ci_low", "ci_high"))
    if not se and low is not None and high is not None:
        se = (high - low) / 4
    return decimals(se, value_of(row) or getattr(row, "mean_a", None))


def digits_of_flip(flip: Flip) -> int:
    """Decimals of a question's means, which show by how much they differ."""
    return max(2, decimals(flip.diff))


def value_of(row: Any) -> float | None:
    """What a row estimates: a mean, a difference or a coefficient."""
    names = ("mean", "diff", "estimate", "coefficient")
    value: float | None = next(getattr(row, name) for name in names if hasattr(row, name))
    return value


def number(value: float | None, digits: int) -> str:
    if value is None:
        return MISSING
    text = f"{value:.{digits}f}"
    if digits == MOST_DECIMALS and 0 < abs(value) < 100 * 10**-digits:  # a small metric is not zero
        text = f"{value:.2e}"
    return text.replace("-", "−") if float(text) else text.lstrip("-")


def with_error(value: float | None, se: float | None) -> str:
    """A value ± its standard error, where it has one."""
    digits = decimals(se, value)
    return number(value, digits) if se is None else f"{number(value, digits)} ± {number(se, digits)}"


def data_noise(row: Estimate | Difference) -> str:
    """`se_data`; where its estimate is negative "< x", x its upper limit rounded up: noise below that is not seen."""
    digits = digits_of(row)
    if row.var_data is None or row.var_data >= 0 or row.se_data_upper is None:
        return number(row.se_data, digits)
    return below(row.se_data_upper, digits)


def below(limit: float, digits: int) -> str:
    """What is not seen, by its upper limit, rounded up."""
    unit = 10.0**-digits
    return f"< {number(max(1, math.ceil(limit / unit - SLACK)) * unit, digits)}"


def mean_interval_name(row: Estimate) -> str:
    """The interval's method and its degrees of freedom: "Wilson, t 19 df"."""
    name = "" if row.interval == "none" else _METHODS.get(row.interval, row.interval)
    if row.df is None or row.interval not in ("t", "wilson", "korn-graubard", "bootstrap"):
        return name
    return f"{name}, {'' if name == 't' else 't '}{degrees(row.df)} df"


def estimator_name(name: str) -> str:
    """CR2 in capitals; a word as it is."""
    return name.upper() if name.startswith("cr") else name


def if_missing(row: Estimate, joint: str = " … ") -> str:
    """The mean if all missing answers were wrong, and if all were right, where that matters."""
    ends = (row.mean_if_missing_wrong, row.mean_if_missing_right)
    return joint.join(number(end, digits_of(row)) for end in ends) if "missing_matters" in row.diagnostics else ""


def interval(low: float | None, high: float | None, digits: int) -> str:
    if low is None or high is None:
        return MISSING
    return f"[{limit(low, digits)}, {limit(high, digits)}]"


def interval_of(row: Any) -> str:
    """The confidence interval of a row."""
    return interval(row.ci_low, row.ci_high, digits_of(row))


def limit(value: float, digits: int, bound: float = 0.0) -> str:
    """An end of an interval, with enough decimals to show on which side of a bound it lies."""
    while digits < MOST_DECIMALS and abs(value - bound) > ROUNDING and round(value - bound, digits) == 0:
        digits += 1
    return number(value, digits)


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
    return f"{value:,.0f}" if abs(value - round(value)) < SLACK else f"{value:,.1f}"


def metric_name(metric: str, scorer: str) -> str:
    return plain(metric if scorer in ("none", "") else f"{metric}, {scorer}")


def span(low: int, high: int) -> str:
    return f"{high:,}" if low == high else f"{low:,}–{high:,}"


def of_each(a: int, b: int) -> str:
    """A number of A and one of B, or a single one where they are equal."""
    return f"{a:,}" if a == b else f"{a:,} : {b:,}"


def test_name(what: str, row: Difference) -> str:
    """The name of a difference's test, or of its interval."""
    name = _METHODS.get(what, what)
    if name == "t":
        borrowed = ", borrowed noise" if row.test == "reference" else ""
        return ("t" if row.df is None else f"t, {degrees(row.df)} df") + borrowed
    return f"cluster {name}" if what in ("bootstrap", "permutation", "wild") and row.cluster else name


def degrees(df: float) -> str:
    """Degrees of freedom: whole, or with one decimal where they are few."""
    return f"{df:,.0f}" if df >= 100 or df == round(df) else f"{df:.1f}"


def interval_words(row: Difference) -> str:
    """Name of the interval for a sentence, which also says where its far end is extended."""
    name = test_name(row.interval, row)
    if "few_flips" not in row.diagnostics or row.interval != "t":
        return name
    if row.diff is None or row.ci_low is None or row.ci_high is None:
        return name
    if math.isclose(row.ci_high - row.diff, row.diff - row.ci_low, rel_tol=SLACK):
        return name
    return f"{name}, far end extended because few {'clusters' if row.cluster else 'questions'} differ"


def has_t(row: Difference) -> bool:
    """Whether p can come from a t test: where nothing varies there is none, and p is 1 or the sign test's."""
    return row.test != "t" or "zero_variance" not in row.diagnostics


def by_test(row: Difference) -> str:
    """What p comes from, and what the interval, where that is something else."""
    test = row.test
    if row.p_value is None or not has_t(row):
        test = "sign" if row.p_sign is not None and row.interval != "t" else row.interval
    if test == "none" or (row.p_value is None and row.ci_low is None):
        return MISSING
    name, shown = test_name(test, row), test_name(row.interval, row)
    return name if shown == name or row.interval == "none" else f"{name}; CI: {shown}"


def estimand_line(items: Iterable[Estimate | Difference]) -> list[str]:
    """Sentences on the estimand, if it is not the mean of the scores over the population of questions."""
    rows = list(items)
    out = [THESE_QUESTIONS] if any(row.estimand == "these_questions" for row in rows) else []
    judged = [(what_of(row), row.judge) for row in rows if row.judge is not None]
    by_sentence: dict[str, dict[str, None]] = {_UNUSED: {}, _ADDS_NOTHING: {}, _ADDS_NOISE: {}}
    for what, judge in judged:
        if judge.gain is None or judge.gain >= GAINS_NOTHING:
            continue
        if judge.r2 is None:
            by_sentence[_UNUSED][what] = None
        elif judge.gain < 1 / GAINS_NOTHING:
            by_sentence[_ADDS_NOISE][f"{what}, gain {number(judge.gain, 2)}"] = None
        else:
            by_sentence[_ADDS_NOTHING][f"{what}, R² {number(judge.r2, 2)}"] = None
    said = [sentence.format("; ".join(rows_of)) for sentence, rows_of in by_sentence.items() if rows_of]
    return [*out, PEOPLE_LABELS, *said] if judged else out


def judge_words(row: Estimate | Difference) -> str:
    """ "the judge's own mean 0.57, bias −0.01 ± 0.02"; empty without labels."""
    if row.judge is None:
        return ""
    own = "own difference" if isinstance(row, Difference) else "own mean"
    added = "" if row.judge.bias_se is None else f", bias {bias(row)}"
    return f"the judge's {own} {number(row.judge.mean_judge, digits_of(row))}{added}"


def bias(row: Estimate | Difference) -> str:
    """What people's labels add to a judge's mean, with its standard error."""
    numbers = () if row.judge is None else (row.judge.bias, row.judge.bias_se)
    return " ± ".join(number(value, digits_of(row)) for value in numbers if value is not None)


def pairing(row: Difference) -> str:
    """How the two runs were compared, or, for bare numbers, where the noise comes from."""
    if row.test == "reference":
        return f"standard error borrowed from other models on {plain(row.task)}, no answer of either was seen"
    return "unpaired" if "unpaired" in row.diagnostics else "paired"


def names_of(row: Difference | Flip) -> tuple[str, str]:
    """A's and B's names: the models', and where these are equal with the first part in which the runs' paths differ."""
    if row.model_a != row.model_b or row.run_a == row.run_b:
        return row.model_a, row.model_b
    a, b = telling_parts([row.run_a, row.run_b])
    return f"{row.model_a} ({a})", f"{row.model_b} ({b})"


def pair_of(row: Difference | Flip) -> tuple[str, str, str, str]:
    """Which two runs a row is about."""
    return row.model_a, row.run_a, row.model_b, row.run_b


def plain(text: str) -> str:
    """One line without control characters: a name from a log must not move the cursor or turn the text."""
    return "".join(c if c.isprintable() else "�" for c in " ".join(text.split()))


def shorten(text: str, width: int) -> str:
    """One line of at most `width` characters."""
    line = plain(text)
    return line if len(line) <= width else line[: width - 1] + "…"


def percent(level: float) -> str:
    """A coverage: "95 %"."""
    return f"{100 * level:g} %"


def level_of(rows: Sequence[Any]) -> str:
    """The coverage of the rows' intervals."""
    return percent(rows[0].level) if rows else "95 %"


def unit_of(row: Any) -> str:
    """ " ($)" behind the name of a measure; empty behind that of a score."""
    unit = getattr(row, "unit", None)
    return f" ({unit})" if unit else ""


def what_of(row: Any) -> str:
    """Task and metric of a row."""
    return " ".join(filter(None, (plain(row.task), metric_name(row.metric, row.scorer))))


def models_of(row: Any) -> str:
    """The model of a row of one run, "A − B" of a row of two."""
    if isinstance(row, (Difference, Flip)):
        return plain(" − ".join(names_of(row)))
    if isinstance(row, Estimate):
        return plain(row.model)
    return plain(row.model_a if row.model_b is None else f"{row.model_a} − {row.model_b}")


def equals_p(p: float | None) -> str:
    """ "= 0.012" or "< 0.0001", behind the name of a p-value."""
    text = p_text(p)
    return text if text.startswith("<") else f"= {text}"
