"""One run's interval where it is hard: graded scores, near the ceiling, corpus metrics, missing answers, unequal K.

Each cell covers 93.5–98.5%, or carries a code in at least 95% of its replications.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from harness_noise import as_scores, estimate, estimate_difference, pass_at_k
from harness_noise.analysis.mean import analyze_run, estimate_scores
from harness_noise.data.questions import Questions
from harness_noise.data.scores import CorpusScores, Run
from harness_noise.settings import Settings
from support.simulations import simulation
from support.slow import rest_slow

R = 1000
LOW, HIGH = 0.935, 0.985
SLACK = 3 * math.sqrt(0.05 * 0.95 / R)


def shares(estimates, truth, code=None):
    """(coverage, share with the code)."""
    covered = [item.ci_low <= truth <= item.ci_high for item in estimates]
    return np.mean(covered), np.mean([code in item.diagnostics for item in estimates])


GRADED = {
    "Beta(20, 20)": (lambda rng, size: rng.beta(20, 20, size), 0.5),
    "Beta(60, 8)": (lambda rng, size: rng.beta(60, 8, size), 60 / 68),
    "zero-inflated": (lambda rng, size: np.where(rng.random(size) < 0.6, 0, rng.beta(4, 2, size)), 0.4 * 4 / 6),
    "three levels": (lambda rng, size: rng.choice([0, 0.5, 1], size, p=[0.1, 0.3, 0.6]), 0.75),
}


@pytest.mark.parametrize("name", GRADED)
@pytest.mark.parametrize("n", rest_slow([30, 300]))
def test_graded_scores(name, n):
    draw, truth = GRADED[name]
    rng = np.random.default_rng([1, n, list(GRADED).index(name)])
    found = [estimate(draw(rng, (n, 1))) for _ in range(R)]
    covered, _ = shares(found, truth)
    assert LOW - SLACK <= covered <= HIGH + SLACK
    width = np.median([(item.ci_high - item.ci_low) / (2 * item.se) for item in found])
    assert width < 2.2  # no wider than t where scores are graded


@pytest.mark.parametrize("p", rest_slow([0.97, 0.995, 0.99], quick=2))
@pytest.mark.parametrize(
    ("n", "G", "icc"), rest_slow([(200, 20, 0.3), (1000, 50, 0.1), (1000, 30, 0.3), (1000, 100, 0.3)], quick=2)
)
def test_near_the_ceiling_with_clusters(p, n, G, icc):
    rng = np.random.default_rng([2, n, G, round(1000 * p)])
    labels = np.arange(n) % G
    found = []
    for _ in range(R // 2):
        q = rng.beta(p * (1 - icc) / icc, (1 - p) * (1 - icc) / icc, G)
        found.append(estimate((rng.random(n) < q[labels]).astype(float), labels))
    covered, coded = shares(found, p, "few_failures")
    assert covered >= LOW - SLACK
    assert covered <= HIGH + SLACK or coded >= 0.95


@pytest.mark.parametrize("p", rest_slow([0.97, 0.995, 0.99], quick=2))
@pytest.mark.parametrize(("n", "concentration"), rest_slow([(100, 0.3), (200, 1.0), (500, 1.0)]))
def test_near_the_ceiling_with_many_answers(p, n, concentration):
    rng = np.random.default_rng([3, n, round(1000 * p)])
    found = []
    for _ in range(R // 2):
        q = rng.beta(p * concentration, (1 - p) * concentration, (n, 1))
        found.append(estimate((rng.random((n, 20)) < q).astype(float)))
    covered, _ = shares(found, p)
    assert LOW - SLACK <= covered <= HIGH + SLACK


def zipf(n, G):
    """(n,) labels of G clusters whose sizes fall as 1/rank."""
    share = 1 / np.arange(1, G + 1)
    sizes = np.maximum(1, np.floor(share / share.sum() * n)).astype(int)
    sizes[0] += n - sizes.sum()
    return np.repeat(np.arange(G), sizes)


@pytest.mark.parametrize("p", [0.97, 0.8])
@pytest.mark.parametrize("unequal", [True, False])
def test_a_few_large_clusters_are_coded(p, unequal):
    rng = np.random.default_rng([7, round(100 * p), unequal])
    labels = zipf(1000, 200) if unequal else np.arange(1000) % 200
    found = []
    for _ in range(R // 2):
        q = rng.beta(p * 7 / 3, (1 - p) * 7 / 3, 200)  # ICC .3
        found.append(estimate((rng.random(1000) < q[labels]).astype(float), labels))
    covered, coded = shares(found, p, "few_failures")
    if unequal:
        assert covered < LOW
        assert coded >= 0.95
    else:
        assert covered >= LOW - SLACK
        assert coded <= 0.25


@pytest.mark.parametrize("G", [10, 15, 50])
def test_ordinary_runs_in_equal_clusters_carry_no_code_of_an_end(G):
    """Half right is far from both ends, however few clusters there are; near an end the code stays."""
    rng, coded = np.random.default_rng([9, G]), {}
    for p in (0.5, 0.97):
        found = []
        for _ in range(R // 8):
            q = rng.beta(p * 9, (1 - p) * 9, G)  # ICC .1
            found.append(estimate((rng.random(150) < q[np.arange(150) % G]).astype(float), np.arange(150) % G))
        _, coded[p] = shares(found, p, "few_failures")
    assert coded[0.5] <= 0.05
    assert coded[0.97] >= 0.9


SKEWED = {
    "exponential": (lambda rng, n: 3 * rng.exponential(size=n), 3.0, None),
    "Beta(12, 1)": (lambda rng, n: rng.beta(12, 1, n), 12 / 13, (0.0, 1.0)),
    "Beta(0.5, 3)": (lambda rng, n: rng.beta(0.5, 3, n), 1 / 7, (0.0, 1.0)),
    "Beta(0.5, 3), range not known": (lambda rng, n: 5 * rng.beta(0.5, 3, n), 5 / 7, None),
    "grades of ten": (lambda rng, n: 10.0 - rng.poisson(1, n), 9.0, None),
}


@pytest.mark.parametrize("n", rest_slow([16, 30]))
@pytest.mark.parametrize("name", SKEWED)
def test_few_skewed_scores(name, n):
    draw, truth, bounds = SKEWED[name]
    rng = np.random.default_rng([8, n, list(SKEWED).index(name)])
    found = [estimate(draw(rng, n), range=bounds, interval="auto" if bounds else "t") for _ in range(R)]
    covered, _ = shares(found, truth)
    assert covered >= LOW - SLACK


@pytest.mark.parametrize(("n", "most"), [(20, 0.09), (30, 0.02), (100, 0.001)])
def test_scores_without_a_tail_are_not_called_skewed(n, most):
    rng = np.random.default_rng([9, n])
    found = [estimate(rng.normal(5, 1, n)) for _ in range(R)]
    covered, coded = shares(found, 5.0, "skewed")
    assert LOW - SLACK <= covered <= HIGH
    assert coded <= most


def test_a_hard_agent_with_partial_credit():
    """Out of 89 tasks 3% are solved, 10% half or less."""
    rng = np.random.default_rng(10)
    found = []
    for _ in range(R):
        u = rng.random(89)
        found.append(estimate(np.where(u < 0.03, 1.0, np.where(u < 0.13, 0.25, 0.0))))
    covered, coded = shares(found, 0.055, "few_failures")
    assert covered < LOW
    assert coded >= 0.95


def test_pass_at_two_near_the_ceiling():
    """164 questions, of which 93% are always solved: a few others decide."""
    rng = np.random.default_rng(11)
    hard = rng.random(1_000_000) < 0.07
    truth = 1 - np.mean(hard * (1 - rng.random(1_000_000)) ** 2)
    found = []
    for _ in range(R // 2):
        q = np.where(rng.random((164, 1)) < 0.93, 1.0, rng.random((164, 1)))
        values = (rng.random((164, 5)) < q).astype(float)
        item = replace(as_scores(values), metric="pass@2", values=pass_at_k(values, 2)[:, None])
        found.append(estimate_scores(item, Settings()))
    covered, coded = shares(found, truth, "few_failures")
    assert LOW - SLACK <= covered <= HIGH + SLACK or coded >= 0.95
    assert coded >= 0.95


@pytest.mark.parametrize(("T", "L", "effect"), [(40, 5, True), (20, 10, True), (20, 10, False)])
def test_crossed_ways_of_which_one_has_few_clusters(T, L, effect):
    """Skewed effects of both ways, or none: 91–98.5%, and the code that counts the smaller way."""
    rng = np.random.default_rng([12, T, L, effect])
    labels = np.stack(np.divmod(np.arange(T * L), L), axis=1)
    found = []
    for _ in range(R // 10):
        one, other = (effect * 0.5 * (rng.exponential(size=k) - 1) for k in (T, L))
        d = one[labels[:, 0]] + other[labels[:, 1]] + rng.standard_normal(T * L)
        found.append(estimate_difference(d, np.zeros(T * L), crossed=(labels[:, 0], labels[:, 1])))
    _, coded = shares(found, 0.0, "few_clusters")
    assert coded == 1.0


def f1_counts(rng, n):
    true = rng.random(n) < 0.4
    said = np.where(rng.random(n) < 0.85, true, ~true)
    return np.stack([said & true, said, true], axis=1).astype(float)


def f1(sums):
    return 2 * sums[..., 0] / (sums[..., 1] + sums[..., 2])


def matches(rng, n):
    """Matched and all n-grams of four orders, where a text's quality moves all its words together."""
    length = rng.integers(8, 40, n)
    found, columns = rng.binomial(length, rng.beta(4, 4, n)), []
    for order in range(4):
        columns += [found, np.maximum(length - order, 1)]
        found = rng.binomial(np.maximum(found - 1, 0), 0.7)
    return np.stack(columns, axis=1).astype(float)


def bleu(sums):
    logs = [np.log(np.maximum(sums[..., 2 * k], 0.5) / sums[..., 2 * k + 1]) for k in range(4)]
    return 100 * np.exp(sum(logs) / 4)


CORPUS = {"f1": (f1_counts, f1, (0.0, 1.0)), "bleu": (matches, bleu, (0.0, 100.0))}


@pytest.mark.parametrize(
    ("name", "n"), rest_slow([("f1", 20), ("bleu", 10), ("f1", 50), ("bleu", 20), ("bleu", 50)], quick=2)
)
def test_corpus_metrics(name, n):
    draw, value, bounds = CORPUS[name]
    rng = np.random.default_rng([4, n])
    truth = float(value(draw(rng, 1_000_000).sum(axis=0)))
    found = []
    for _ in range(R // 2):
        item = CorpusScores(
            "t", name, "none", Questions(tuple(map(str, range(n)))), stats=draw(rng, n)[:, None], value=value,
            bounds=bounds,
        )  # fmt: skip
        found += analyze_run(Run("m", "r", "test", corpus=(item,)), Settings(resamples=100)).estimates
    covered, coded = shares(found, truth, "few_clusters")
    assert LOW - SLACK <= covered <= HIGH + SLACK
    assert coded == (n <= 10)
    assert {item.interval for item in found} == {"wilson"}


RARE = {"2%": (0.02, 0.8, 0.002), "10%": (0.1, 0.7, 0.02), "30%": (0.3, 0.8, 0.1)}
"""Share of the class, share of it that is found, share of the others that is taken for it."""


@pytest.mark.parametrize(("name", "n", "covers"), [("2%", 100, 0.41), ("10%", 50, 0.90), ("30%", 200, 0.957)])
def test_f1_of_a_rare_class_covers_or_says_so(name, n, covers):
    draw, rng = simulation("coverage_weak").rare_class(*RARE[name], n), np.random.default_rng([4, n])
    truth = draw(rng)[1]
    rows = [item for item, _ in (draw(rng) for _ in range(R // 2)) if item.ci_low is not None]
    covered = np.array([item.ci_low <= truth <= item.ci_high for item in rows])
    coded = np.array(["few_resampled" in item.diagnostics for item in rows])
    assert abs(covered.mean() - covers) < 4 * math.sqrt(covers * (1 - covers) / len(rows))
    assert (covered | coded).mean() >= LOW
    assert covered.mean() < LOW or coded.mean() < 0.2  # no alarm where it covers


def test_answers_that_are_missing_when_wrong_are_coded():
    """Time-outs are often wrong answers: the mean over the rest is biased, and the row says by how much it may be."""
    rng = np.random.default_rng(5)
    found, asked = [], []
    for _ in range(R // 2):
        q = rng.beta(2, 1, (200, 1))
        x = (rng.random((200, 4)) < q).astype(float)
        asked.append(x.mean())
        found.append(estimate(np.where((x == 0) & (rng.random(x.shape) < 0.15), np.nan, x)))
    covered, coded = shares(found, 2 / 3, "missing_matters")
    assert covered < LOW
    assert coded >= 0.95
    for item, mean in zip(found, asked, strict=True):
        assert item.mean_if_missing_wrong == pytest.approx(mean, abs=1e-12)  # as it happens, all were wrong
        assert item.mean_if_missing_right > item.mean > mean


def test_a_number_of_answers_that_depends_on_the_question():
    """Hard questions have fewer answers: the mean of question means does not mind."""
    rng = np.random.default_rng(6)
    found = []
    for _ in range(R):
        q = rng.random(150)
        k = np.where(q < 0.5, rng.choice([1, 4], 150), 6)
        x = (rng.random((150, 6)) < q[:, None]).astype(float)
        found.append(estimate(np.where(np.arange(6) < k[:, None], x, np.nan)))
    covered, coded = shares(found, 0.5, "missing_repeats")
    assert LOW - SLACK <= covered <= HIGH + SLACK
    assert coded == 1.0
    assert np.mean(["single_repeats_differ" in item.diagnostics for item in found]) > 0.95


@pytest.mark.parametrize("n", [500, 1000, 2000])
def test_near_the_ceiling_zipf_clusters_carry_the_code(n):
    """Accuracy .97, cluster sizes as 1/rank, 200 clusters: what covers 79–85% says so."""
    rng, sizes = np.random.default_rng(n), 1 / np.arange(1, 201)
    labels = np.repeat(np.arange(200), np.maximum(1, np.round(sizes / sizes.sum() * n)).astype(int))
    estimates = []
    for _ in range(100):
        p = rng.beta(2.26, 0.07, 200)
        estimates.append(estimate((rng.random(len(labels)) < p[labels]).astype(float), labels.tolist()))
    coverage, told = shares(estimates, 2.26 / 2.33, "few_failures")
    assert told >= 0.95 or coverage >= 0.93
