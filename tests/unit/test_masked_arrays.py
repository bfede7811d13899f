"""What a masked array hides is missing in every public function that takes arrays, or refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import harness_noise as hn

RNG = np.random.default_rng(5)
N = 120
SKILL = RNG.random(N)
FIRST, SECOND, THIRD = (((RNG.random(N) + SKILL) > cut).astype(float) for cut in (0.8, 1.0, 1.1))
PART = np.sort(RNG.permutation(N)[:60])
HIDDEN = RNG.random(N) < 0.2
MOST = RNG.random(N) < 0.6
LEVELS = [i % 6 for i in range(N)]


def masked(values, hidden=HIDDEN):
    """Numbers beyond the scale lie under the mask, which nobody may count."""
    return np.ma.array(np.where(hidden, 77.0, values), mask=hidden)


def gaps(values, hidden=HIDDEN):
    return np.where(hidden, np.nan, values)


USES = {
    "compare_in_sequence": lambda hide: hn.compare_in_sequence(hide(FIRST), THIRD),
    "compare_in_sequence, complete": lambda hide: hn.compare_in_sequence(FIRST, THIRD, complete=hide(SECOND)),
    "estimate_from_part": lambda hide: hn.estimate_from_part(hide(FIRST[PART], HIDDEN[PART]), PART, SECOND),
    "estimate_from_part, complete": lambda hide: hn.estimate_from_part(FIRST[PART], PART, hide(SECOND)),
    "drop_in_sequence": lambda hide: hn.drop_in_sequence([hide(FIRST), SECOND, THIRD]),
    "estimate_with_labels": lambda hide: hn.estimate_with_labels(FIRST, hide(SECOND, MOST)),
    "factor_noise": lambda hide: hn.factor_noise(hide(FIRST), list(range(N // 2)) * 2, {"seed": LEVELS}),
    "pass_at_k": lambda hide: hn.pass_at_k(hide(FIRST), 1).tolist(),
}
"""Function → its result on arrays that hide some of their values one way or the other."""


@pytest.mark.parametrize("use", USES)
def test_what_is_masked_is_missing(use):
    assert repr(USES[use](masked)) == repr(USES[use](gaps))


REFUSALS = {
    "asked": lambda: hn.estimate_from_part(FIRST[PART], np.ma.array(PART, mask=PART[1] > PART), SECOND),
    "against": lambda: hn.estimate_from_part(FIRST[PART], PART, SECOND, against=masked(THIRD)),
    "chances": lambda: hn.estimate_from_part(FIRST[PART], PART, SECOND, chances=masked(np.full(60, 0.5), PART < 9)),
    "clusters": lambda: hn.estimate_from_part(FIRST[PART], PART, SECOND, masked(SKILL)),
    "strata": lambda: hn.estimate_from_part(
        FIRST[PART], PART, SECOND, strata=np.ma.array([i % 3 for i in range(N)], mask=HIDDEN)
    ),
    "seed": lambda: hn.factor_noise(FIRST, list(range(N)), {"seed": np.ma.array(LEVELS, mask=HIDDEN)}),
    "question": lambda: hn.factor_noise(FIRST, np.ma.array(range(N), mask=HIDDEN), {"s": LEVELS}),
    "differences": lambda: hn.combine(masked(SKILL), SKILL, SKILL),
}
"""Argument → a call in which a masked array hides what must be there."""


@pytest.mark.parametrize("argument", REFUSALS)
def test_what_must_be_there_may_not_be_masked(argument):
    with pytest.raises(ValueError, match=argument):
        REFUSALS[argument]()


DATES = np.arange(N).astype("M8[D]")
NO_NUMBERS = {
    "means of `complete`": lambda: hn.estimate_from_part(FIRST[PART], PART, DATES),
    "means of `against`": lambda: hn.estimate_from_part(FIRST[PART], PART, SECOND, against=DATES),
    "chances": lambda: hn.estimate_from_part(FIRST[PART], PART, SECOND, chances=DATES[PART]),
    "labels": lambda: hn.estimate_with_labels(FIRST, DATES),
    "scores": lambda: hn.drop_in_sequence(np.stack([DATES, DATES])),
    "differences": lambda: hn.combine(DATES, SKILL, SKILL),
    "standard errors": lambda: hn.combine(SKILL, DATES, SKILL),
}
"""Words of the refusal → a call with dates."""


@pytest.mark.parametrize("what", NO_NUMBERS)
def test_dates_are_no_numbers(what):
    with pytest.raises(hn.InputError, match=f"the {what} are no array of numbers \\(they are dates\\)"):
        NO_NUMBERS[what]()


@pytest.mark.parametrize("kind", ["Int64", "Float64", "boolean"])
def test_what_pandas_has_not_is_missing(kind):
    values = pd.Series([1, 0, None, 1, 1, 0], dtype=kind)
    row = hn.estimate(values)
    assert (row.mean, row.n_questions) == (pytest.approx(0.6), 5)
    frame = pd.DataFrame({"first": values, "again": values})
    repeated = hn.estimate(frame)
    assert (repeated.mean, repeated.n_questions, repeated.repeats_max) == (pytest.approx(0.6), 5, 2)
