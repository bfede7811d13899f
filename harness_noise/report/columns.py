"""What every table is made of: columns, sections, and how a number, an interval or a test is written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..results.diagnostics import explained
from ..results.rows import Difference, Estimate
from ..stats.tolerances import ROUNDING, SLACK

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
    """What the column is, in one line."""
    rank: int = 0
    """Where a terminal is too narrow, the columns of the highest rank are left out first; 0: never."""


@dataclass(frozen=True, slots=True)
class Section:
    """One table."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    detail: bool = False
    """For those who ask (`--details`), or have a wide terminal."""
    more: str = ""
    """What a terminal says below it of rows that are not in it."""


@dataclass(frozen=True, slots=True)
class Summary:
    sections: tuple[Section, ...]
    legend: tuple[tuple[str, str, str], ...]
    """(mark, diagnostic code, what it means and what to do) for the marks in the Notes columns."""
    sentences: tuple[str, ...]
    """What else is to be said, below the tables."""
    lead: tuple[str, ...] = ()
    """What it comes to: stands above the tables."""
    listings: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    """Headings, each with labels and texts that no table has room for; shown below the tables."""


class _Noted(Protocol):
    """A row with diagnostics."""

    @property
    def cluster(self) -> str | None: ...
    @property
    def diagnostics(self) -> tuple[str, ...]: ...


def decimals(se: float | None, fallback: float | None = None) -> int:
    """Decimals that show two significant digits of the standard error, between 1 and MOST_DECIMALS."""
    size = abs(fallback or 0.0)
    scale = abs(se) if se else (size / 100 if size > ROUNDING else None)  # a sum that cancels is no small number
    if not scale or not math.isfinite(scale):
        return 3
    return min(MOST_DECIMALS, max(1, 1 - math.floor(math.log10(scale))))


def digits_of(item: Difference) -> int:
    """Decimals of a difference: by its standard error, or where it has none by its interval."""
    half = None if item.ci_low is None or item.ci_high is None else (item.ci_high - item.ci_low) / 4
    return decimals(item.se or half, item.diff or item.mean_a)


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
    return f"< {number(max(1, math.ceil(item.se_data_upper / unit - SLACK)) * unit, digits)}"


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
    if low is None or high is None:
        return MISSING
    return f"[{limit(low, digits)}, {limit(high, digits)}]"


def limit(value: float, digits: int) -> str:
    """An end of an interval. None but 0 itself is written as 0: on which side of 0 it lies is what it says."""
    while digits < MOST_DECIMALS and abs(value) > ROUNDING and float(f"{value:.{digits}f}") == 0:
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
    return f"{value:.0f}" if abs(value - round(value)) < SLACK else f"{value:.1f}"


def metric_name(metric: str, scorer: str) -> str:
    return plain(metric if scorer in ("none", "") else f"{metric}, {scorer}")


def span(low: int, high: int) -> str:
    return str(high) if low == high else f"{low}–{high}"


def of_each(a: int, b: int) -> str:
    """A number of A and of B; one where they are equal."""
    return str(a) if a == b else f"{a} : {b}"


def marks_of(codes: Iterable[Sequence[str]]) -> dict[str, str]:
    """A letter for every diagnostic in the table, in order of appearance."""
    found = list(dict.fromkeys(code for row in codes for code in row))
    return {code: _letter(i) for i, code in enumerate(found)}


def _letter(i: int) -> str:
    return chr(ord("a") + i % 26) * (1 + i // 26)


def legend_of(marks: dict[str, str], rows: Iterable[_Noted] = ()) -> tuple[tuple[str, str, str], ...]:
    """What the marks mean and what to do; it speaks of clusters only where some row that has the mark has clusters."""
    items = [(item.cluster is not None, item.diagnostics) for item in rows]
    every = {clustered for clustered, _ in items}
    out = []
    for code, mark in marks.items():
        kinds = {clustered for clustered, codes in items if code in codes} or every
        out.append((mark, code, explained(code, next(iter(kinds)) if len(kinds) == 1 else None)))
    return tuple(out)


def drop_empty(columns: Sequence[Column], rows: Sequence[Sequence[str]], optional: Iterable[str]) -> tuple[
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


_TESTS = {
    "t": "t", "reference": "t", "sign": "sign test", "permutation": "permutation", "bootstrap": "bootstrap",
    "wild": "wild bootstrap", "sequential": "sequential",
    "fisher": "Fisher's exact", "bonett-price": "Bonett–Price", "agresti-caffo": "Agresti–Caffo",
}  # fmt: skip


def test_name(what: str, item: Difference) -> str:
    name = _TESTS.get(what, what)
    if name == "t":
        borrowed = ", borrowed noise" if item.test == "reference" else ""
        return ("t" if item.df is None else f"t, {degrees(item.df)} df") + borrowed
    return f"cluster {name}" if what in ("bootstrap", "permutation", "wild") and item.cluster else name


def degrees(df: float) -> str:
    """Degrees of freedom: whole, or with one decimal where they are few."""
    return f"{df:.0f}" if df >= 100 or df == round(df) else f"{df:.1f}"


def interval_name(item: Difference) -> str:
    """Whose interval a comparison shows."""
    return test_name(item.interval, item)


def interval_words(item: Difference) -> str:
    """The same in a sentence, where no letter beside it says that its far end is not t's."""
    name = interval_name(item)
    if "few_flips" not in item.diagnostics or item.interval != "t":
        return name
    if item.diff is None or item.ci_low is None or item.ci_high is None:
        return name
    as_t = math.isclose(item.ci_high - item.diff, item.diff - item.ci_low, rel_tol=SLACK)
    return name if as_t else f"{name}, far end extended"


def has_t(item: Difference) -> bool:
    """Whether its p may be a t test's: where nothing varies there is no t, and p is 1 or the sign test's."""
    return item.test != "t" or "zero_variance" not in item.diagnostics


def by_test(item: Difference) -> str:
    """What p comes from, and what the interval, where that is something else."""
    test = item.test
    if item.p_value is None or not has_t(item):
        test = "sign" if item.p_sign is not None and item.interval != "t" else item.interval
    if test == "none" or (item.p_value is None and item.ci_low is None and item.p_sign is None):
        return MISSING
    name, shown = test_name(test, item), interval_name(item)
    return name if shown == name or item.interval == "none" else f"{name}; CI: {shown}"


def estimand_line(items: Iterable[Estimate | Difference]) -> list[str]:
    """What the rows are about, where that is not the population that the questions come from."""
    return [THESE_QUESTIONS] if any(item.estimand == "these_questions" for item in items) else []


def pairing(item: Difference) -> str:
    """How the two runs' questions were compared; of bare numbers, whose noise it is."""
    if item.test == "reference":
        return f"standard error borrowed from other models on {plain(item.task)}, no answer of either was seen"
    return "unpaired" if "unpaired" in item.diagnostics else "paired"


def borrowed_line(items: Iterable[Difference]) -> list[str]:
    """Whose noise it is, where bare numbers are compared."""
    tasks = dict.fromkeys(item.task for item in items if item.test == "reference")
    return [
        f"The noise is borrowed from other models on {plain(task)}; no answer of A or B was seen." for task in tasks
    ]


def names_of(item: Difference) -> tuple[str, str]:
    """A's and B's names: the models', and where these are equal with the first part in which the runs' paths differ."""
    if item.model_a != item.model_b or item.run_a == item.run_b:
        return item.model_a, item.model_b
    a, b = item.run_a.replace("\\", "/").split("/"), item.run_b.replace("\\", "/").split("/")
    only_a = next((part for part in a if part not in b), item.run_a)
    only_b = next((part for part in b if part not in a), item.run_b)
    return f"{item.model_a} ({only_a})", f"{item.model_b} ({only_b})"


def plain(text: str) -> str:
    """One line without control characters: a name from a log must not move the cursor or turn the text."""
    return "".join(c if c.isprintable() else "�" for c in " ".join(text.split()))


def shorten(text: str, width: int) -> str:
    """One line of at most `width` characters."""
    line = plain(text)
    return line if len(line) <= width else line[: width - 1] + "…"


def level_of(items: Sequence[Estimate] | Sequence[Difference]) -> str:
    return f"{100 * items[0].level:g} %" if items else "95 %"
