"""Figures that others published, or that follow from real data: equal to the digits given."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from harness_noise import estimate, estimate_difference


def table(path, question, model, score):
    """{model: (n, K) scores}, questions in order of appearance."""
    rows: dict[str, dict[str, list[float]]] = {}
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            rows.setdefault(line[model], {}).setdefault(line[question], []).append(float(line[score]))
    keys = list(next(iter(rows.values())))
    return {name: np.array([scores[key] for key in keys]) for name, scores in rows.items()}


@pytest.fixture(scope="module")
def gpqa(shared_data):
    models = table(shared_data / "tables" / "gpqa_diamond_scores.csv", "item_id", "model_id", "score")
    a, b = sorted(models.values(), key=lambda scores: -scores.mean())
    assert a.shape == b.shape == (198, 5)
    return a, b


@pytest.fixture(scope="module")
def cruxeval(shared_data):
    text = (shared_data / "tables" / "cruxeval_output_codellama-7b_T0.2.json").read_text()
    scores = np.array(list(json.loads(text)["raw_scored_generations"].values()), dtype=float)
    assert scores.shape == (800, 10)
    return scores


def test_gpqa_one_run(gpqa):
    a, b = (estimate(scores) for scores in gpqa)
    assert (a.mean, b.mean) == pytest.approx((0.675758, 0.617172), abs=5e-7)
    assert (a.se, b.se) == pytest.approx((0.027596, 0.029620), abs=5e-7)
    assert a.se_total == pytest.approx(0.033324, abs=5e-7)
    assert a.se_data == pytest.approx(0.025967, abs=5e-7)
    assert a.se_prediction == pytest.approx(0.020885, abs=5e-7)


def test_gpqa_paired(gpqa):
    d = estimate_difference(*gpqa)
    assert d.diff == pytest.approx(0.058586, abs=5e-7)
    assert d.se == pytest.approx(0.027788, abs=5e-7)
    assert d.p_value == pytest.approx(0.03627, abs=5e-6)
    assert d.df == pytest.approx(197)
    assert (d.ci_low, d.ci_high) == pytest.approx((0.00378, 0.11339), abs=5e-6)
    assert d.se_total == pytest.approx(0.037967, abs=5e-7)
    assert d.se_data == pytest.approx(0.024594, abs=5e-7)
    assert d.se_prediction == pytest.approx(0.028925, abs=5e-7)
    assert d.correlation == pytest.approx(0.53014, abs=5e-6)
    assert d.se_unpaired == pytest.approx(0.040483, abs=5e-7)
    assert d.verdict == "A better"


def test_cruxeval(cruxeval):
    e = estimate(cruxeval)
    assert e.mean == pytest.approx(0.342125, abs=1e-9)
    assert e.se == pytest.approx(0.015780, abs=5e-7)
    assert e.se_total == pytest.approx(0.016783, abs=5e-7)
    assert e.se_data == pytest.approx(0.015665, abs=5e-7)
    assert e.se_prediction == pytest.approx(0.006022, abs=5e-7)


def test_matharena(shared_data):
    with (shared_data / "tables" / "matharena_aime_II.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    a, b = (np.array([float(row[model]) for row in rows]).reshape(15, 4) for model in ("o3-mini (high)", "o1 (medium)"))
    d = estimate_difference(a, b)
    assert d.diff == pytest.approx(0.133333, abs=5e-7)
    assert d.se == pytest.approx(0.072648, abs=5e-7)
    assert d.p_value == pytest.approx(0.08779, abs=5e-6)
    assert d.se_total == pytest.approx(0.116667, abs=5e-7)
    assert d.se_data == pytest.approx(0.05, abs=5e-7)
    assert d.se_prediction == pytest.approx(0.105409, abs=5e-7)


class TestPaperTables:
    """Wang (2025), tables 1–3, in the paper's own numpy code; its ddof = 0 is our cr0."""

    def test_table_1(self, gpqa):
        for A in gpqa:
            n, K = A.shape
            b = np.mean(np.var(A, axis=1)) / (K - 1)
            e = estimate(A, se="cr0")
            assert n * e.se_total**2 == pytest.approx(np.var(A), abs=1e-12)
            assert n * e.var_data == pytest.approx(np.var(A.mean(axis=1)) - b, abs=1e-12)
            assert n * e.var_prediction == pytest.approx(np.mean(np.var(A, axis=1)) + b, abs=1e-12)

    def test_table_1_bernoulli(self, gpqa):
        """The column of known p_i: the limit K → ∞, where b and the small-K terms vanish."""
        A = gpqa[0]
        p = A.mean(axis=1)
        n, K = A.shape
        e = estimate(A, se="cr0")
        b = np.mean(p * (1 - p)) / (K - 1)
        assert n * e.se_total**2 == pytest.approx(p.mean() * (1 - p.mean()), abs=1e-12)
        assert n * e.var_data + b == pytest.approx(np.mean((p - p.mean()) ** 2), abs=1e-12)
        assert n * e.var_prediction - b == pytest.approx(np.mean(p * (1 - p)), abs=1e-12)

    def test_table_2(self, gpqa):
        A, B = gpqa[0], gpqa[1][:, :3]
        n = len(A)
        b = sum(np.mean(np.var(X, axis=1)) / (X.shape[1] - 1) for X in (A, B))
        d = estimate_difference(A, B, se="cr0")
        cov = np.cov(A.mean(axis=1), B.mean(axis=1), ddof=0)[0, 1]
        assert n * d.se_total**2 == pytest.approx(np.var(A) + np.var(B) - 2 * cov, abs=1e-12)
        assert n * d.var_data == pytest.approx(np.var(A.mean(axis=1) - B.mean(axis=1)) - b, abs=1e-12)
        both = np.mean(np.var(A, axis=1) + np.var(B, axis=1))
        assert n * d.var_prediction == pytest.approx(both + b, abs=1e-12)

    def test_table_3(self, gpqa):
        """Win rates over all pairs of answers; row 2 by the erratum: (1/N) Σ (q_Ai − q_Bi)² − (q_A − q_B)²."""
        A, B = gpqa
        n, K = A.shape
        x, y = A[:, :, None], B[:, None, :]
        q_a, q_b = (x > y).mean(axis=(1, 2)), (x < y).mean(axis=(1, 2))
        d = estimate_difference(A, B, se="cr0")
        b = sum(np.mean(np.var(X, axis=1)) / (K - 1) for X in (A, B))
        gap = (q_a.mean() - q_b.mean()) ** 2
        assert n * d.se_total**2 == pytest.approx(q_a.mean() + q_b.mean() - gap, abs=1e-12)
        assert n * d.var_data + b == pytest.approx(np.mean((q_a - q_b) ** 2) - gap, abs=1e-12)
        assert n * d.var_prediction - b == pytest.approx(np.mean(q_a + q_b - (q_a - q_b) ** 2), abs=1e-12)
        assert d.wins_a == pytest.approx(q_a.sum())
        assert d.wins_b == pytest.approx(q_b.sum())
        assert d.wins_a + d.wins_b + d.ties == pytest.approx(n, abs=1e-9)
