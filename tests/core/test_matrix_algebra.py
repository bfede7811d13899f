"""The O(G) kernel against the definitions written out as matrices, on random unbalanced clusters.

`explicit` is the definition of CR2 and of the Satterthwaite degrees of freedom (Pustejovsky & Tipton 2018,
eqs. 4–5 and 10–11, identity working model), built with n × n matrices; the figures of clubSandwich itself
are in test_club_sandwich. Tolerance: 1e-10 relative, some 1e5 roundings.
"""

from __future__ import annotations

import numpy as np
import pytest

from harness_noise import estimate, estimate_difference
from harness_noise.stats.cluster_variance import clustered_variance
from harness_noise.stats.contrast import Design, design


def inverse_root(A):
    values, vectors = np.linalg.eigh(A)
    return (vectors / np.sqrt(values)) @ vectors.T


def explicit(d, X, shares, clusters, kind="cr2"):
    """V and df of shares·β̂ in d = Xβ + error, by matrices of full size."""
    n = len(d)
    bread = np.linalg.inv(X.T @ X)
    hat = X @ bread @ X.T
    rest = np.eye(n) - hat
    e = rest @ d
    V, g = 0.0, []
    labels = np.unique(clusters)
    for c in labels:
        rows = np.flatnonzero(clusters == c)
        A = inverse_root(rest[np.ix_(rows, rows)])
        g.append(rest[:, rows] @ A @ X[rows] @ bread @ shares)
        used = {"cr2": A, "cr3": A @ A}.get(kind, np.eye(len(rows)))  # CR3: the inverse of I − H itself
        V += float(shares @ bread @ X[rows].T @ used @ e[rows]) ** 2
    if kind == "cr1":
        V *= len(labels) / (len(labels) - 1)
    P = np.array(g) @ np.array(g).T
    return V, np.trace(P) ** 2 / np.trace(P @ P)


@pytest.mark.parametrize("kind", ["cr0", "cr1", "cr2", "cr3"])
@pytest.mark.parametrize("seed", range(12))
def test_one_task(seed, kind):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 80))
    G = int(rng.integers(2, min(n, 12) + 1))
    clusters = np.concatenate([np.arange(G), rng.zipf(1.5, n - G) % G])
    scores = rng.random((n, 3))
    V, df = explicit(scores.mean(axis=1), np.ones((n, 1)), np.ones(1), clusters, kind)
    e = estimate(scores, clusters=clusters, se=kind)
    assert e.se**2 == pytest.approx(V, rel=1e-10)
    assert e.df == pytest.approx(df, rel=1e-10)
    assert e.n_clusters == G


@pytest.mark.parametrize("seed", range(6))
def test_paired_difference(seed):
    rng = np.random.default_rng(100 + seed)
    n, G = 40, 7
    clusters = np.concatenate([np.arange(G), rng.integers(0, G, n - G)])
    a, b = rng.random((n, 2)), rng.random((n, 5))
    V, df = explicit(a.mean(axis=1) - b.mean(axis=1), np.ones((n, 1)), np.ones(1), clusters)
    d = estimate_difference(a, b, clusters=clusters)
    assert (d.se**2, d.df) == pytest.approx((V, df), rel=1e-10)


@pytest.mark.parametrize("kind", ["cr0", "cr1", "cr2", "cr3"])
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_clusters_across_tasks(seed, equal, kind):
    rng = np.random.default_rng(200 + seed)
    T, n = int(rng.integers(2, 5)), int(rng.integers(30, 70))
    strata = np.concatenate([np.repeat(np.arange(T), 2), rng.integers(0, T, n - 2 * T)])
    clusters = rng.integers(0, 11, n)
    clusters[: 2 * T] = np.tile([0, 1], T)  # at least two clusters in every task
    clusters = np.unique(clusters, return_inverse=True)[1]
    X = (strata[:, None] == np.arange(T)).astype(float)
    shares = np.full(T, 1 / T) if equal else X.mean(axis=0)
    d = rng.normal(size=n)
    plan = design(n, [str(c) for c in clusters], strata, shares if equal else None)
    means = np.array([d[strata == t].mean() for t in range(T)])
    found = clustered_variance(d - means[strata], plan, kind)
    V, df = explicit(d, X, shares, clusters, kind)
    assert (found.value, found.df) == pytest.approx((V, df), rel=1e-10)
    assert plan.weights @ d == pytest.approx(shares @ means, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_tasks_as_clusters(seed):
    """Tasks as the sample: one-stratum CR2 of §1 with w_t for n_c/n, here with w_t = n_t/n."""
    rng = np.random.default_rng(300 + seed)
    T = int(rng.integers(2, 9))
    sizes = rng.integers(1, 9, T)
    means = rng.random(T)
    shares = sizes / sizes.sum()
    clusters = np.repeat(np.arange(T), sizes)
    n = len(clusters)
    plan = Design(np.full(n, 1 / n), clusters, clusters, T, clustered=True, between_tasks=True)
    found = clustered_variance((means - shares @ means)[clusters], plan)
    assert found is not None
    V, df = explicit(means[clusters], np.ones((sizes.sum(), 1)), np.ones(1), clusters)
    assert (found.value, found.df) == pytest.approx((V, df), rel=1e-10)


def test_balanced_clusters_have_G_minus_1():
    """Exactly, so that 10 degrees of freedom are never fewer than 10."""
    for n in range(4, 80, 2):
        scores = np.random.default_rng(n).random(n)
        assert estimate(scores).df == n - 1
        assert estimate(scores, clusters=np.arange(n) % (n // 2)).df == n // 2 - 1


def test_many_clusters_stay_cheap():
    """Both traces without P: 200,000 clusters would need 320 GB as a matrix."""
    rng = np.random.default_rng(1)
    n = 400_000
    e = estimate(rng.random(n), clusters=rng.integers(0, 200_000, n))
    assert 100_000 < e.df < 200_000
    assert e.se == pytest.approx(np.sqrt(1 / 12 / n), rel=0.02)
