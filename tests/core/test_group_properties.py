"""Groups, unpaired differences, runs and resampling: what holds for any scores."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness_noise import estimate, estimate_difference
from harness_noise.analysis.comparison import compare_runs
from harness_noise.analysis.mean import analyze_run
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.errors import InputError
from harness_noise.results.diagnostics import DIAGNOSTICS
from harness_noise.results.forms import shown_fields
from harness_noise.settings import Settings
from support.notes import noted

GRADES = st.sampled_from([0.0, 1.0, 0.5, 0.25, float("nan")])


@st.composite
def groups(draw):
    """Two to four tasks with holes, clusters that may cross tasks, both weightings."""
    parts = []
    clustered = draw(st.booleans())
    for t in range(draw(st.integers(2, 4))):
        n, K = draw(st.integers(1, 7)), draw(st.integers(1, 3))
        values = draw(hnp.arrays(float, (n, K), elements=GRADES))
        labels = tuple(draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n))) if clustered else None
        keys = Questions(tuple(f"{t}/{i}" for i in range(n)))
        spec = "field" if clustered else None
        parts.append(Scores(f"t{t}", "acc", "none", keys, values, clusters=labels, cluster_spec=spec))
    group = Group("g", "acc", "none", tuple(part.task for part in parts), draw(st.sampled_from(["size", "equal"])))
    return Run("m", "r", "test", scores=tuple(parts), groups=(group,))


@given(groups(), st.sampled_from(["cr0", "cr1", "cr2", "cr3"]))
def test_law_of_total_variance_in_groups(run, se):
    rows = analyze_run(run, Settings(se=se)).estimates
    for row in rows:
        json.dumps({name: value for name, value in asdict(row).items() if name in shown_fields(row)}, allow_nan=False)
        assert set(row.diagnostics) <= set(DIAGNOSTICS)
        if row.var_prediction is not None:
            total = max(0.0, row.var_data + row.var_prediction)
            assert row.se_total**2 == pytest.approx(total, rel=1e-10, abs=1e-15)
    group = rows[len(run.scores)]
    if group.mean is not None:
        means = [row.mean for row in rows[:-1] if row.mean is not None]
        assert min(means) - 1e-12 <= group.mean <= max(means) + 1e-12


@given(groups())
def test_groups_compare_with_themselves(run):
    scored = [part.task for part in run.scores if np.isfinite(part.values).any()]
    if not scored:
        with pytest.raises(InputError, match="no question in common"):
            compare_runs([(run, run)], Settings())
        return
    found = compare_runs([(run, run)], Settings())
    (*tasks, row) = found.comparisons
    assert [item.task for item in tasks] == scored
    assert sum(note.startswith("left out: ") for note in noted(found)) == len(run.scores) - len(scored)
    assert (row.task, row.verdict) == ("g", "not separable")
    defined = len(scored) == len(run.scores) or run.groups[0].weighting == "size"
    assert row.diff == (0 if defined else None)


@given(hnp.arrays(float, st.tuples(st.integers(3, 12), st.integers(2, 4)), elements=st.floats(0, 1)))
def test_law_of_total_variance_with_runs(values):
    e = estimate(values, repeats_are="runs")
    assume(e.var_prediction is not None and e.se > 0 and e.var_data + e.var_prediction > 1e-12)
    assert e.se_total**2 == pytest.approx(e.var_data + e.var_prediction, rel=1e-8)


@given(
    hnp.arrays(float, st.integers(2, 12), elements=st.floats(0, 1)),
    hnp.arrays(float, st.integers(2, 12), elements=st.floats(0, 1)),
)
def test_unpaired_swap(a, b):
    one, other = estimate_difference(a, b, unpaired=True), estimate_difference(b, a, unpaired=True)
    assert one.diff == pytest.approx(-other.diff, abs=1e-12)
    assert (one.se, one.df, one.p_value) == pytest.approx((other.se, other.df, other.p_value), nan_ok=True)
    assert (one.n_questions, one.n_only_a) == (len(a) + len(b), other.n_only_b)


@settings(max_examples=40)
@given(
    hnp.arrays(float, st.integers(2, 20), elements=st.floats(-1, 1)),
    st.sampled_from(["permutation", "bootstrap"]),
    st.booleans(),
)
def test_resampling_tests_are_symmetric_and_bounded(d, test, clustered):
    labels = [i % 5 for i in range(len(d))] if clustered else None
    one = estimate_difference(d, np.zeros(len(d)), labels, test=test, resamples=200)
    assume(one.p_value is not None)
    assert 0 < one.p_value <= 1
    if test == "permutation":
        other = estimate_difference(-d, np.zeros(len(d)), labels, test=test, resamples=200)
        assert other.p_value == pytest.approx(one.p_value)
    if one.ci_low is not None:
        assert one.ci_low <= one.diff + 1e-9
        assert one.diff - 1e-9 <= one.ci_high
