"""The pair engine says of every pair what `compare` says of it alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_noise.analysis.comparison import compare_runs
from harness_noise.data.clusters import CROSS
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run, Scores
from harness_noise.errors import InputError
from harness_noise.extra.arena import columns as engine
from harness_noise.extra.arena.build import arena
from harness_noise.extra.chance.correcting import without_chance
from harness_noise.settings import Settings, consumers
from harness_noise.stats.ranks import answers_above
from support.notes import noted
from support.same_rows import assert_same_row


def as_run(
    i: int, values: Any, clusters: Sequence[str] | None = None, rows: Sequence[int] | None = None, **more: Any
) -> Run:
    values = np.asarray(values, dtype=float)
    rows = range(len(values)) if rows is None else rows
    questions = Questions(tuple(f"q{j}" for j in rows))
    labels = None if clusters is None else tuple(clusters[j] for j in rows)
    spec = None if clusters is None else "passage"
    part = Scores("task", "acc", "none", questions, values, clusters=labels, cluster_spec=spec, **more)
    return Run(f"model {i}", f"run {i}", "array", scores=(part,))


def drawn(
    M: int, N: int, K: int, *, kind: str = "binary", missing: float = 0.0, G: int | None = None, ragged: bool = False,
    crossed: bool = False, shuffled: bool = False, told: bool = False, seed: int = 0,
) -> list[Run]:  # fmt: skip
    """Runs of M models; `shuffled`: each has the questions in an order of its own; `told`: what is missing is said.

    Of the kind "mixed" the last model's scores leave the range of the others'.
    """
    rng = np.random.default_rng(seed)
    difficulty = rng.uniform(size=N)
    clusters = None if G is None else [f"c{i % G}" for i in range(N)]
    if crossed and clusters is not None:
        clusters = [f"{label}{CROSS}d{i % 7}" for i, label in enumerate(clusters)]
    runs = []
    for m in range(M):
        p = np.clip(difficulty + 0.1 * rng.normal(size=N) + 0.02 * m, 0, 1)[:, None]
        noise = rng.normal(size=(N, K))
        values = {
            "binary": (rng.uniform(size=(N, K)) < p).astype(float),
            "grades": np.round(4 * np.clip(p + 0.2 * noise, 0, 1)) / 4,
            "real": 3 * p + noise,
            "mixed": (rng.uniform(size=(N, K)) < p) * (3.0 if m == M - 1 else 1.0),
        }[kind]
        if ragged:
            values[rng.uniform(size=values.shape) < 0.3] = np.nan
        if missing:
            values[rng.uniform(size=N) < missing] = np.nan
        rows = np.flatnonzero(rng.uniform(size=N) >= missing / 2)
        rows = rng.permutation(rows) if shuffled else rows
        more = {"n_missing": int(np.isnan(values[rows]).sum())} if told else {}
        runs.append(as_run(m, values[rows], clusters, rows, **more))
    return runs


def assert_same(runs: list[Run], choices: Settings, ignore: frozenset[str] = frozenset(), rel: float = 1e-12) -> None:
    choices = replace(choices, adjust="none")  # the families differ
    found = list(arena(runs, choices).pairs)
    assert len(found) == len(runs) * (len(runs) - 1) // 2
    for ours, (a, b) in zip(found, combinations(runs, 2), strict=True):
        theirs = compare_runs([(a, b)], choices).comparisons[0]
        assert_same_row(ours, theirs, rel, ignore=ignore)


@pytest.mark.parametrize("se", ["cr0", "cr1", "cr2", "cr3"])
@pytest.mark.parametrize("kind", ["binary", "grades", "real"])
@pytest.mark.parametrize("K", [1, 4])
@pytest.mark.parametrize("G", [None, 7, 30])
def test_every_field_of_every_pair_is_that_of_compare(se: Any, kind: str, K: int, G: int | None) -> None:
    runs = drawn(4, 30, K, kind=kind, G=G)
    assert_same(runs, Settings(se=se, margin=0.2))
    if kind == "grades":
        assert_same(runs, Settings(se=se, test="sign"))


@pytest.mark.parametrize("kind", ["binary", "real"])
@pytest.mark.parametrize("K", [1, 4])
@pytest.mark.parametrize("G", [None, 6])
@pytest.mark.parametrize("ragged", [False, True])
def test_a_masked_pair_is_compare_on_the_intersection(kind: str, K: int, G: int | None, ragged: bool) -> None:
    if K == 1 and ragged:
        ragged = False
    # the F test of shared noise looks at all questions of a run, compare's at those of the pair
    runs = drawn(5, 40, K, kind=kind, missing=0.25, G=G, ragged=ragged, seed=3)
    assert_same(runs, Settings())


def test_models_that_share_no_question_have_no_pair_in_crossed_clusters_either() -> None:
    a, b = drawn(2, 30, 3, G=5, crossed=True)
    part = a.scores[0]
    halves = [replace(a, scores=(part.take(rows),)) for rows in (range(15), range(15, 30))]
    runs = [replace(halves[0], model="first"), replace(halves[1], model="second"), b]
    pairs = arena(runs, Settings()).boards[0].pairs
    apart = pairs.find("first", "second")
    assert (apart.n_questions, apart.diff, apart.repeats_a, apart.wins_a) == (0, None, 0, 0.0)
    shared = compare_runs([(halves[1], b)], Settings()).comparisons[0]
    assert pairs.find("second", b.model).se == pytest.approx(shared.se, rel=1e-12)


HALF = np.r_[np.ones(5), np.zeros(5)][:, None]
DEGENERATE = {
    "all right, all wrong, the same, the opposite": [HALF * 0 + 1, HALF * 0, HALF, HALF.copy(), 1 - HALF],
    "no noise in repeats": [np.ones((10, 3)), np.tile(HALF, 3), np.full((10, 3), 1 / 3), np.full((10, 3), 1 / 3)],
    "one question": [HALF[:1], HALF[5:6], HALF[:1]],
    "two questions": [HALF[:2], HALF[4:6], HALF[5:7]],
    "far from 0": [HALF * 1000 + 1e6, HALF * 1000 + 1e6 + 1e-3, np.arange(10.0)[:, None] * 1e3],
    "always apart": [HALF, HALF + 0.01, HALF - 0.3],
    "unequal repeats": [HALF, np.tile(HALF, 3), np.random.default_rng(0).integers(0, 2, (10, 4)).astype(float)],
}


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("clusters", [None, "aabbccddee", "aaaaaaaaaa", "abbbbbbbbb", "abcdefghij"])
@pytest.mark.parametrize("test", ["t", "sign"])
def test_degenerate_pairs_are_those_of_compare(case: str, clusters: str | None, test: Any) -> None:
    runs = [as_run(i, values, clusters) for i, values in enumerate(DEGENERATE[case])]
    # the sign test has no limit to hold against a margin
    assert_same(runs, Settings(test=test, margin=0.5 if test == "t" else None), rel=1e-10)


@pytest.mark.parametrize("n", [1, 2, 10])
@pytest.mark.parametrize("clusters", [None, "aaaaaaaaaa", "aabbccddee"])
def test_fixed_questions_are_those_of_compare_in_any_clusters(n: int, clusters: str | None) -> None:
    rng = np.random.default_rng(1)
    runs = [as_run(i, np.r_[[[0, 1, 1, 0]], rng.integers(0, 2, (9, 4))][:n], clusters) for i in range(3)]
    assert_same(runs, Settings(questions_are="fixed", margin=0.3))
    assert next(iter(arena(runs, Settings(questions_are="fixed")).pairs)).se_prediction is not None


@pytest.mark.parametrize("clusters", [None, "aabbccddee"])
def test_where_nothing_varies_any_known_range_gives_the_interval_of_compare(clusters: str | None) -> None:
    values = [HALF * 100, HALF * 100 - 0.5, HALF * 100]
    ranges: list[tuple[float, float]] = [(-1.0, 100.0), (-50.0, 150.0)]
    for low_high in ranges:
        runs = [as_run(i, scores, clusters) for i, scores in enumerate(values)]
        assert_same(runs, Settings(range=low_high, margin=20))
    assert list(arena(runs, Settings(range=(-50.0, 150.0))).pairs)[1].interval == "bonett-price"


EXAMPLES = settings.default.max_examples
"""Of a whole run 100; `make check` takes a fifth."""


@st.composite
def boards(draw: st.DrawFn) -> list[Run]:
    N = draw(st.integers(2, 9))
    score = st.sampled_from([0.0, 1.0, 0.5, float("nan")]) if draw(st.booleans()) else st.sampled_from([0.0, 1.0])
    clusters = draw(st.none() | st.lists(st.sampled_from("abc"), min_size=N, max_size=N))
    runs = []
    for m in range(draw(st.integers(2, 4))):
        K = draw(st.integers(1, 3))
        values = draw(st.lists(st.lists(score, min_size=K, max_size=K), min_size=N, max_size=N))
        values[0] = [1.0] * K  # one question that all have, or compare refuses
        runs.append(as_run(m, values, clusters))
    return runs


@settings(max_examples=EXAMPLES * 3 // 5, suppress_health_check=[HealthCheck.too_slow])
@given(boards())
def test_any_small_board_agrees_with_compare(runs: list[Run]) -> None:
    assert_same(runs, Settings())


CHOICES: dict[str, tuple[Any, ...]] = {
    "level": (0.95, 0.8), "se": ("cr0", "cr1", "cr2", "cr3"), "interval": ("auto", "t"), "test": ("t", "sign", "wild"),
    "margin": (None, 0.0, 0.2), "questions_are": ("population", "fixed"), "range": (None, (-5.0, 9.0)),
    "missing": ("drop", "zero"), "cluster": (None,), "seed": (0, 3), "resamples": (100,), "adjust": ("none",),
    "weights": ("equal", "size", "none"), "chance": (None, 0.25), "only": ((),),
}  # fmt: skip
"""Every setting that an arena obeys, with the values it may have."""


def test_the_choices_are_all_that_an_arena_obeys() -> None:
    obeyed = {item.name for item in fields(Settings) if "arena" in consumers(item.name)}
    assert set(CHOICES) == obeyed


SHAPES: dict[str, tuple[Any, ...]] = {
    "kind": ("binary", "grades", "real", "mixed"), "K": (1, 3), "missing": (0.0, 0.3), "G": (None, 5, 14),
    "ragged": (False, True), "crossed": (False, True), "shuffled": (False, True), "told": (False, True),
    "seed": (0, 1, 2),
}  # fmt: skip


@settings(max_examples=EXAMPLES * 8 // 5, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_over_every_setting_an_arena_says_what_compare_says(data: st.DataObject) -> None:
    chosen = {name: data.draw(st.sampled_from(values), name) for name, values in CHOICES.items()}
    shape = {name: data.draw(st.sampled_from(values), name) for name, values in SHAPES.items()}
    if chosen["questions_are"] == "fixed":  # which knows t only, and needs answers that vary
        chosen |= {"test": "t", "se": "cr2"}
        shape |= {"K": 3, "ragged": False}
    if shape["crossed"] and shape["G"] is not None:  # of crossed clusters t alone is known
        chosen["test"] = "t"
    if chosen["test"] == "wild":
        chosen["interval"] = "auto"
    if chosen["test"] == "sign":  # which has no limit to hold against a margin
        chosen["margin"] = None if chosen["margin"] else chosen["margin"]
    if shape["kind"] not in ("binary", "grades") or chosen["range"] is not None:  # guessing is of shares alone
        chosen["chance"] = None
    shape["ragged"] &= shape["K"] > 1
    if chosen["range"] is None and shape["kind"] == "mixed":
        chosen["margin"] = None  # of which the scale is that of all models in an arena, of two in a comparison
    choices, runs = Settings(**chosen), drawn(3, 26, **shape)
    if choices.chance is not None:
        runs = [without_chance(run, choices.chance, choices) for run in runs]
    assert_same(runs, choices, rel=1e-10)


def test_the_models_of_an_arena_may_have_wilsons_interval_beside_any_test_of_its_pairs() -> None:
    runs = drawn(3, 40, 2, G=15)
    with_wilson, alone = (arena(runs, Settings(test="wild", interval=x, resamples=200)) for x in ("wilson", "auto"))
    assert [row.to_dict() for row in with_wilson.pairs] == [row.to_dict() for row in alone.pairs]
    assert {row.interval for row in with_wilson.pairs} <= {"wild", "none"}
    assert {row.interval for row in with_wilson.models} == {"wilson"}
    ours, beside_t = next(alone.pairs), next(arena(runs, Settings(test="wild", interval="t", resamples=200)).pairs)
    assert (beside_t.p_value, beside_t.interval) == (ours.p_value, "t")


def test_known_identical_answers_leave_the_split_unidentified() -> None:
    values = np.random.default_rng(1).integers(0, 2, (30, 3)).astype(float)
    runs = [as_run(0, values, diagnostics=("identical_repeats",)), as_run(1, values[::-1]), as_run(2, 1 - values)]
    assert_same(runs, Settings())
    first, _, last = arena(runs, Settings()).pairs
    assert first.se_data is None
    assert "identical_repeats" in first.diagnostics
    assert last.se_data is not None


def test_different_prompts_are_those_of_compare() -> None:
    rng = np.random.default_rng(2)
    runs = []
    for i, prompts in enumerate([("x",) * 12, ("x",) * 12, ("x",) * 11 + ("y",), None]):
        keys = tuple(f"q{j}" for j in range(12))
        part = Scores("t", "acc", "none", Questions(keys, prompts=prompts), rng.integers(0, 2, (12, 2)).astype(float))
        runs.append(Run(f"m{i}", f"r{i}", "array", scores=(part,)))
    assert_same(runs, Settings())
    has = ["different_prompts" in pair.diagnostics for pair in arena(runs, Settings()).pairs]
    assert has == [False, True, False, True, False, False]


def test_an_arena_says_how_many_questions_a_ratio_of_sums_leaves_out() -> None:
    runs = [
        replace(run, scores=(replace(part, values=part.values + 1, per=np.ones(part.values.shape), unit=""),))
        for run in drawn(3, 40, 2, kind="grades", missing=0.2)
        for part in run.scores
    ]
    found = arena(runs, Settings())
    n = len(set.intersection(*({*part.questions.keys} for run in runs for part in run.scores)))
    assert {pair.n_questions for pair in found.pairs} == {found.boards[0].benchmark.n_questions}
    assert found.boards[0].benchmark.n_questions <= n
    assert [note for note in noted(found) if "a ratio of sums is of the" in note and "others are left out" in note]


def test_adjusted_p_values_are_over_all_pairs_of_the_benchmark() -> None:
    from statsmodels.stats.multitest import multipletests

    runs = drawn(6, 200, 3, seed=5)
    for method, name in (("holm", "holm"), ("bh", "fdr_bh")):
        found = list(arena(runs, Settings(adjust=method)).pairs)  # type: ignore[arg-type]
        expected = multipletests([pair.p_value for pair in found], method=name)[1]
        np.testing.assert_allclose([pair.p_adjusted for pair in found], expected, rtol=1e-12)


def paper(a: np.ndarray, b: np.ndarray) -> dict[str, float]:
    """Table 2 of Wang (2025), with variances over questions divided by N, as SEs squared."""
    N = len(a)
    ka, kb = a.shape[1], b.shape[1]
    correction = a.var(axis=1).mean() / (ka - 1) + b.var(axis=1).mean() / (kb - 1)
    total = a.var() + b.var() - 2 * np.cov(a.mean(axis=1), b.mean(axis=1), ddof=0)[0, 1]
    return {
        "se_total": np.sqrt(total / N),
        "var_data": ((a.mean(axis=1) - b.mean(axis=1)).var() - correction) / N,
        "var_prediction": ((a.var(axis=1) + b.var(axis=1)).mean() + correction) / N,
    }


def test_pairs_are_the_estimators_of_the_paper(shared_data: Path) -> None:
    """CRUXEval: a real run of 800 × 10, and models drawn to be like it."""
    name = "cruxeval_output_codellama-7b_T0.2.json"
    content = json.loads((shared_data / "tables" / name).read_text())["raw_scored_generations"]
    real = np.array([content[key] for key in sorted(content)], dtype=float)
    rng = np.random.default_rng(11)
    scores = [real]
    for shift in (-0.05, 0.0, 0.04, 0.1):
        p = np.clip(real.mean(axis=1) + shift + 0.1 * rng.normal(size=len(real)), 0, 1)
        scores.append((rng.uniform(size=real.shape) < p[:, None]).astype(float))
    found = arena([as_run(i, values) for i, values in enumerate(scores)], Settings(se="cr0"))
    assert len(list(found.pairs)) == 10
    for pair, (a, b) in zip(found.pairs, combinations(scores, 2), strict=True):
        for field, value in paper(a, b).items():
            assert getattr(pair, field) == pytest.approx(value, rel=1e-12, abs=1e-15), field


def test_sign_tests_are_scipys() -> None:
    from scipy.stats import binomtest

    runs = drawn(5, 60, 1, seed=8)
    scores = [run.scores[0].values[:, 0] for run in runs]
    for pair, (a, b) in zip(arena(runs, Settings()).pairs, combinations(scores, 2), strict=True):
        wins, losses = int((a > b).sum()), int((a < b).sum())
        assert pair.p_sign == pytest.approx(binomtest(wins, wins + losses).pvalue, rel=1e-10)
        assert (pair.wins_a, pair.wins_b) == (wins, losses)


def test_answers_whose_means_are_whole_win_in_parts() -> None:
    scores = [np.zeros((2, 1)), np.tile([2.0, 1.0, 0.0], (2, 1)), np.ones((2, 1))]
    found = list(arena([as_run(i, values) for i, values in enumerate(scores)], Settings()).pairs)
    assert [(pair.wins_a, pair.wins_b) for pair in found] == [
        pytest.approx(shares) for shares in ((0, 4 / 3), (0, 2), (2 / 3, 2 / 3))
    ]


def test_ranks_count_wins_by_either_method() -> None:
    """Few levels are counted by products, many question by question; both as by hand, with gaps."""
    rng = np.random.default_rng(4)
    for values in (rng.integers(0, 4, (50, 7)).astype(float), rng.normal(size=(50, 190))):
        mask = rng.uniform(size=values.shape) < 0.8
        both = mask[:, :, None] & mask[:, None, :]
        expected = ((values[:, :, None] > values[:, None, :]) & both).sum(axis=0)
        columns = np.where(mask, values, np.nan).T[:, :, None]
        assert (answers_above(tuple(columns)) == expected).all()
        whole = np.nan_to_num(columns)
        rounded = whole + 1e-14 * rng.random(columns.shape)
        assert (answers_above(tuple(rounded)) == answers_above(tuple(whole))).all()


def test_settings_that_only_compare_has_are_refused() -> None:
    runs = drawn(2, 10, 2)
    for choices in (Settings(test="bootstrap"), Settings(test="permutation"), Settings(unpaired=True)):
        with pytest.raises(InputError, match="compare"):
            arena(runs, choices)


def test_the_columns_do_not_depend_on_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = drawn(5, 40, 3, missing=0.3, G=8)
    whole = arena(runs, Settings()).to_frame("pairs")
    monkeypatch.setattr(engine, "CHUNK", 150)
    pd.testing.assert_frame_equal(arena(runs, Settings()).to_frame("pairs"), whole, rtol=1e-12)
