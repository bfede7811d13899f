"""Numbers as people read them: the one place where scores are put in per cent, and differences in points."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from .numbers import numeral

MISSING = "–"
MOST_DECIMALS = 6
ROUNDING = 1e-12
"""Relative to the scale of the scores: what is smaller is the rounding of a sum, and counts as 0."""


@cache
def is_proportion(metric: str) -> bool:
    """Return True if a metric's name means a share of right answers: acc_norm, exact_match, pass@1, …."""
    words = set(re.split(r"[^a-z0-9]+", metric.lower()))
    return bool(words & {"acc", "accuracy", "em", "correct", "match", "pass", "passed"})


def decimals(se: float | None, value: float | None = None) -> int:
    """Return the number of decimals to print, so that the standard error (or else the value) shows two digits.

    Without a standard error, three decimals: fewer of a value above 10, more of one below 0.01.
    """
    if se is not None and ROUNDING <= abs(se) < math.inf:
        return _two_digits(se)
    size = abs(value or 0.0)
    if size <= ROUNDING or not math.isfinite(size):  # a sum that cancels is rounding, not a small number
        return 3
    return max(_two_digits(size), min(3, _two_digits(size / 100)))


def _two_digits(size: float) -> int:
    return min(MOST_DECIMALS, max(1, 1 - math.floor(math.log10(abs(size)))))


class Equivalent(str):
    """The verdict that two models differ by less than a margin: "equivalent within 0.02"."""

    __slots__ = ("margin",)
    margin: float
    """On the metric's own scale."""

    def __new__(cls, margin: float) -> Equivalent:
        """Return the verdict text "equivalent within MARGIN" that keeps its margin as a number."""
        new = super().__new__(cls, f"equivalent within {margin:g}")
        new.margin = margin
        return new

    def __reduce__(self) -> tuple[type[Equivalent], tuple[float]]:
        return Equivalent, (self.margin,)

    @classmethod
    def recorded(cls, verdict: str) -> str:
        """Return a recorded verdict text, as an `Equivalent` with its margin if it says "equivalent within"."""
        margin = numeral(verdict.removeprefix("equivalent within "))
        return verdict if margin is None or cls(margin) != verdict else cls(margin)


@dataclass(frozen=True, slots=True)
class Scale:
    """Scale on which the numbers of a row are shown: a factor and units."""

    times: float = 1.0
    level: str = ""
    """Behind every mean."""
    size: str = ""
    """Unit after a difference or a standard error that is shown alone."""

    def digits(self, digits: int) -> int:
        """Return the decimals to print on this scale: two fewer in percent than on the metric's own scale."""
        return digits if self.times == 1 else max(0, digits - 2)

    def text(
        self,
        value: float,
        digits: int,
        *,
        mean: bool = False,
        unit: bool = False,
        sign: bool = False,
        bound: float | None = None,
    ) -> str:
        """Format a number on this scale (percent, points or plain), with unit and sign if asked for.

        Args:
            value: on the metric's scale.
            digits: decimals on the metric's scale.
            mean: it is a mean, with "%" behind it in per cent; else a difference or a standard error.
            unit: write the unit of a difference or of a measure behind it.
            sign: write + before what is above 0.
            bound: show on which side of this value it lies, with as many decimals as that takes.
        """
        places, value = self.digits(digits), value * self.times
        text = number(value, places) if bound is None else limit(value, places, bound * self.times)
        text = f"+{text}" if sign and value > 0 and not text.startswith("−") else text
        if mean and self.level:
            return f"{text}{self.level}"
        return f"{text}{self.size}" if unit else text

    def given(self, value: float) -> str:
        """Format a difference that a user gave, with its unit: 0.01 is "1 point", 0.025 "2.5 points"."""
        text = f"{self.times * value:.6g}".replace("-", "−")
        return f"{text} point" if self.size == " points" and text in ("1", "−1") else f"{text}{self.size}"

    def verdict(self, words: str) -> str:
        """Return a verdict as people read it: "equivalent within 2 points", "not shown to differ"."""
        if isinstance(words, Equivalent):
            return f"equivalent within {self.given(words.margin)}"
        return {"not separable": "not shown to differ"}.get(words, words)


PERCENT = Scale(100.0, "%", " points")
"""Scale for 0/1 scores: means in per cent, differences and standard errors in points."""


def scale_of(row: Any) -> Scale:
    """Return the scale to print a row in: percent for 0/1 scores (unknown: by metric's name), else the metric's own."""
    known, unit = getattr(row, "_zero_one", None), getattr(row, "unit", None)
    if known is None:
        means = [x for name in ("mean", "mean_a", "mean_b") if (x := getattr(row, name, None)) is not None]
        known = unit is None and is_proportion(getattr(row, "metric", "")) and all(0 <= x <= 1 for x in means)
    return PERCENT if known else Scale(size=f" {unit}" if unit else "")


def rounded(value: float, digits: int) -> float:
    """Round a number to print, a half away from 0: 63.75 is 63.8 and 61.25 is 61.3, whatever their binary digits."""
    nudge = min(abs(value) * ROUNDING, 1e-3 * 10.0**-digits)  # of a large number no digit that is shown
    return round(value + math.copysign(nudge, value), digits)


def number(value: float | None, digits: int) -> str:
    if value is None:
        return MISSING
    text = f"{rounded(value, digits):.{digits}f}"
    if digits == MOST_DECIMALS and 0 < abs(value) < 100 * 10**-digits:  # a small metric is not zero
        text = f"{value:.2e}"
    return text.replace("-", "−") if float(text) else text.lstrip("-")


def limit(value: float, digits: int, bound: float = 0.0) -> str:
    """Format an interval limit, with enough decimals to show on which side of `bound` it lies."""
    while digits < MOST_DECIMALS and abs(value - bound) > ROUNDING and round(value - bound, digits) == 0:
        digits += 1
    return number(value, digits)
