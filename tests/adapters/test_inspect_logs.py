"""Inspect logs read: real ones, made ones, and ones that cannot be used."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness_noise as hn
from support.notes import noted

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
from inspect_ai.log import read_eval_log

from support.inspect_evals import only


# real logs
def test_figures_of_a_real_log(shared_data):
    path = shared_data / "inspect" / "mmlu_gpt-4_285.eval"
    estimate = only(hn.analyze(path))
    assert (estimate.task, estimate.metric, estimate.scorer) == ("mmlu", "accuracy", "choice")
    assert estimate.model == "openai/gpt-4"
    assert estimate.mean == pytest.approx(0.782456, abs=5e-7)
    assert estimate.se == pytest.approx(0.024482, abs=5e-7)
    native = read_eval_log(str(path), header_only=True).results.scores[0].metrics
    assert estimate.se == pytest.approx(native["stderr"].value, rel=1e-12)
    assert estimate.diagnostics == ("single_repeat",)
    clustered = only(hn.analyze(path, cluster="subject"))
    assert clustered.se == pytest.approx(0.0241553, abs=5e-8)
    assert clustered.df == pytest.approx(56)
    assert clustered.n_clusters == 57
    assert clustered.se < clustered.se_naive  # legal
    assert only(hn.analyze(path, cluster="{{subject}}")).se == clustered.se


READ = {
    "2025-02-11T15-18-04-05-00_popularity_mj7khqpMM4GBCfVQozKgzB.eval": (0.8, 0.13333333, 10, 1),
    "2025-05-12T20-28-13-04-00_popularity.json": (0.66666667, 0.33333333, 3, 1),
    "log_formats.json": (0.0, None, 1, 1),
    "log_streaming.eval": (0.75, 0.25, 2, 2),
    "mmlu-summary-choices.eval": (0.0, None, 1, 1),
}

REFUSED = {"2025-02-11T15-17-00-05-00_popularity_dPiJifoWeEQBrfWsAopzWr.eval": "no sample of the log has a score"}


def test_every_version_is_read_or_refused_with_a_reason(shared_data):
    files = sorted(path.name for path in (shared_data / "inspect" / "versions").iterdir())
    assert files == sorted({*READ, *REFUSED})
    for name, (mean, se, n, repeats) in READ.items():
        estimate = only(hn.analyze(shared_data / "inspect" / "versions" / name))
        assert estimate.mean == pytest.approx(mean), name
        assert estimate.se == (None if se is None else pytest.approx(se)), name
        assert (estimate.n_questions, estimate.repeats_max) == (n, repeats), name
        assert "mean_mismatch" not in estimate.diagnostics
    for name, reason in REFUSED.items():
        with pytest.raises(hn.InputError, match=reason):
            hn.read(shared_data / "inspect" / "versions" / name)


def test_a_folder_of_them_notes_what_it_leaves_out(shared_data):
    runs = hn.read(shared_data / "inspect" / "versions", apart=True)
    assert len(runs) == len(READ)
    assert len({run.name for run in runs}) == len(READ)
    assert [note for run in runs for note in noted(run) if "no sample of the log has a score" in note]


# agreement with Inspect's own
def test_agreement_with_inspects_own_errors(canned, tmp_path):
    from inspect_ai.scorer import accuracy, match, scorer, stderr

    metrics = {"stderr": stderr(), "clustered": stderr(cluster="passage")}
    try:
        from inspect_ai.scorer import ci
    except ImportError:  # before 0.3.260
        ci = None
    else:
        metrics |= {"ci": ci(0.9, method="t"), "ci_clustered": ci(0.9, method="t", cluster="passage")}
    task = canned.task(canned.samples(20, 4), scorer=match(), metrics=[accuracy(), *metrics.values()])
    log = canned.eval(task, tmp_path, epochs=3)[0]
    values = [metric.value for metric in log.results.scores[0].metrics.values()][1:]
    plain = only(hn.analyze(log.location, level=0.9, interval="t"))
    clustered = only(hn.analyze(log.location, level=0.9, interval="t", cluster="passage", se="cr1"))
    want = [plain.se, clustered.se]
    if ci is not None:
        want += [plain.ci_low, plain.ci_high, clustered.ci_low, clustered.ci_high]
    assert values == pytest.approx(want, rel=1e-9)
    assert scorer is not None


# values
@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("C", 1), ("I", 0), ("P", 0.5), ("N", 0), (True, 1), (False, 0), (0.25, 0.25), (3, 3), ("yes", 1), ("No", 0),
        ("TRUE", 1), ("false", 0), ("0.75", 0.75), ("-2", -2), ("1e3", 1000),
    ],
)  # fmt: skip
def test_values_are_read_as_inspect_reads_them(value, number):
    from inspect_ai.scorer import value_to_float

    from harness_noise_adapters.inspect_logs.gather import numbers

    read = numbers([value])
    assert read.values.tolist() == [number]
    assert read.words == 0
    assert value_to_float()(value) == number


@given(
    st.lists(
        st.one_of(
            st.sampled_from(["C", "I", "P", "N", "yes", "No", "blue", "0.5", "-3", ""]),
            st.booleans(), st.integers(-9, 9), st.floats(-9, 9),
        ),
        min_size=1,
    )
)  # fmt: skip
def test_any_mixture_of_values_is_read_as_inspect_reads_it(values):
    from inspect_ai.scorer import value_to_float

    from harness_noise_adapters.inspect_logs.gather import numbers

    read = numbers(values)
    logging.disable(logging.WARNING)  # Inspect's, one for each word
    try:
        assert read.values.tolist() == [value_to_float()(value) for value in values]
    finally:
        logging.disable(logging.NOTSET)
    assert read.words == sum(value in ("blue", "") for value in values)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1, unique=True), st.randoms())
def test_the_grid_puts_every_answer_in_its_place(answers, shuffler):
    from harness_noise_adapters.inspect_logs.gather import grid

    shuffler.shuffle(answers)
    values = np.arange(len(answers), dtype=float)
    places = grid([i for i, _ in answers], [j for _, j in answers], order=range(6))
    table = places.fill(values)
    epochs = sorted({j for _, j in answers})
    assert list(places.keys) == sorted({str(i) for i, _ in answers})
    for (i, j), value in zip(answers, values, strict=True):
        assert table[places.keys.index(str(i)), epochs.index(j)] == value
    assert np.isfinite(table).sum() == len(answers)
    assert [answers[k][0] for k in places.first] == [int(key) for key in places.keys]
    unnumbered = grid([i for i, _ in answers]).fill(values)
    for row, key in zip(unnumbered, grid([i for i, _ in answers]).keys, strict=True):
        given_order = [value for (i, _), value in zip(answers, values, strict=True) if str(i) == key]
        assert row[: len(given_order)].tolist() == given_order


def test_values_that_are_no_numbers_are_counted():
    from harness_noise_adapters.inspect_logs.gather import numbers

    read = numbers(["blue", [1, 0], {"a": 1}, "nan", "inf", None, float("nan"), np.float64(0.5)])
    assert read.words == 5
    assert read.example == "blue"
    assert np.array_equal(read.values, [0, 0, 0, 0, 0, np.nan, np.nan, 0.5], equal_nan=True)


def test_letter_grades(canned, tmp_path):
    from inspect_ai.scorer import Score, accuracy, scorer, stderr

    @scorer(metrics=[accuracy(), stderr()])
    def grades():
        async def score(state, target):
            return Score(value="CIPN"[(int(state.sample_id[1:]) * 3 + state.epoch) % 4])

        return score

    log = canned.eval(canned.task(scorer=grades()), tmp_path, epochs=2)[0]
    table = [[{0: 1, 2: 0.5}.get((i * 3 + j) % 4, 0) for j in (1, 2)] for i in range(12)]
    want = hn.estimate(table)
    found = only(hn.analyze(log.location))
    assert (found.mean, found.se, found.se_prediction) == pytest.approx((want.mean, want.se, want.se_prediction))
    assert "mean_mismatch" not in found.diagnostics


def test_a_custom_conversion_is_a_mean_mismatch(canned, tmp_path):
    from inspect_ai.scorer import Score, accuracy, scorer

    @scorer(metrics=[accuracy(to_float=lambda value: float(value) / 4)])
    def quarter():
        async def score(state, target):
            return Score(value=canned.truth(state.sample_id, state.epoch))

        return score

    log = canned.eval(canned.task(scorer=quarter()), tmp_path, epochs=2)[0]
    assert "mean_mismatch" in only(hn.analyze(log.location)).diagnostics
