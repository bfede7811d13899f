"""Regressions on question properties as R's clubSandwich 0.5.8 and statsmodels print them.

library(clubSandwich)
i <- 1:40
cluster <- rep(letters[1:8], times = c(10, 8, 7, 5, 4, 3, 2, 1))
x <- round(cos(0.9 * i) * 3 + (i %% 7), 3)
f <- c("u", "v", "w")[1 + (i %/% 3) %% 3]
y <- round(sin(1.7 * i) + 0.1 * x + 0.4 * (match(cluster, letters) %% 3), 3)
w <- 1 / (0.5 + 1 / (1 + i %% 4))
show <- function(fit, by) {
  found <- coef_test(fit, vcov = "CR2", cluster = by, test = "Satterthwaite")
  cat(format(c(found$beta, found$SE, found$df_Satt), digits = 12), "\\n")
}
show(lm(y ~ x + f), cluster)
show(lm(y ~ x + f), i)
ys <- sqrt(w) * y; Xs <- sqrt(w) * model.matrix(~ x + f)
show(lm(ys ~ 0 + Xs), cluster)
"""

from __future__ import annotations

import numpy as np
import pytest

from harness_noise import estimate
from harness_noise.extra.regress.stats import dependent_columns, regress, repeat_weights

I = np.arange(1, 41)  # noqa: E741
CLUSTER = np.repeat(np.arange(8), [10, 8, 7, 5, 4, 3, 2, 1])
NUMBER = np.round(np.cos(0.9 * I) * 3 + I % 7, 3)
LEVEL = (I // 3) % 3
Y = np.round(np.sin(1.7 * I) + 0.1 * NUMBER + 0.4 * ((CLUSTER + 1) % 3), 3)
WEIGHTS = 1 / (0.5 + 1 / (1 + I % 4))
X = np.column_stack([np.ones(40), NUMBER, LEVEL == 1, LEVEL == 2])


@pytest.mark.parametrize(
    ("clusters", "weights", "coefficients", "errors", "df"),
    [
        (
            CLUSTER, None,
            [0.1986561782262, 0.1604014314431, 0.0795537509150, 0.0814819176269],
            [0.2163204127453, 0.0279550935283, 0.2469969306831, 0.3255704682550],
            [3.8776240504231, 4.4425140934309, 5.0851805391763, 4.5493983211863],
        ),
        (
            I - 1, None,
            [0.1986561782262, 0.1604014314431, 0.0795537509150, 0.0814819176269],
            [0.2545884435863, 0.0529080495237, 0.2940657892180, 0.3090319403774],
            [14.5030882580404, 11.0670410894358, 25.5583100117923, 22.3724309460548],
        ),
        (
            CLUSTER, WEIGHTS,
            [0.25776787182041, 0.16624392163966, -0.00369172384384, -0.05489491570279],
            [0.18515814883785, 0.02768182455135, 0.23929119271631, 0.30973517172473],
            [3.61646871781064, 4.44640397404228, 4.86976764493751, 4.52279492241804],
        ),
    ],
    ids=["clustered", "independent", "weighted"],
)  # fmt: skip
def test_as_club_sandwich(clusters, weights, coefficients, errors, df):
    found = regress(Y, X.astype(float), clusters, weights)
    assert found.identified.all()
    np.testing.assert_allclose(found.coefficients, coefficients, rtol=1e-10)
    np.testing.assert_allclose(np.sqrt(found.variances), errors, rtol=1e-10)
    np.testing.assert_allclose(found.df, df, rtol=1e-10)


def test_as_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    theirs = sm.OLS(Y, X.astype(float)).fit(cov_type="HC2")
    ours = regress(Y, X.astype(float), I)
    np.testing.assert_allclose(ours.coefficients, theirs.params, rtol=1e-10)
    np.testing.assert_allclose(np.sqrt(ours.variances), theirs.bse, rtol=1e-10)
    assert ours.r2 == pytest.approx(theirs.rsquared, rel=1e-10)
    weighted = sm.WLS(Y, X.astype(float), weights=WEIGHTS).fit()
    ours = regress(Y, X.astype(float), I, WEIGHTS)
    np.testing.assert_allclose(ours.coefficients, weighted.params, rtol=1e-10)
    assert ours.r2 == pytest.approx(1 - ((weighted.wresid**2).sum() / weighted.centered_tss), rel=1e-10)


def test_a_constant_column_is_the_kernels_mean():
    found = regress(Y, np.ones((40, 1)), CLUSTER)
    row = estimate(Y, clusters=CLUSTER, interval="t")
    assert found.coefficients[0] == pytest.approx(row.mean, rel=1e-12)
    assert np.sqrt(found.variances[0]) == pytest.approx(row.se, rel=1e-10)
    assert found.df[0] == pytest.approx(row.df, rel=1e-10)


def test_adjustment_matrices_by_brute_force():
    """A_g = (I − X_g M X_gᵀ)^(−1/2) built whole, and P from (I − H), as the papers write them."""
    x = X.astype(float)
    M = np.linalg.inv(x.T @ x)
    R = np.eye(40) - x @ M @ x.T
    e = R @ Y
    p, V = [], np.zeros((4, 4))
    for g in range(8):
        at = np.flatnonzero(g == CLUSTER)
        values, vectors = np.linalg.eigh(R[np.ix_(at, at)])
        A = (vectors / np.sqrt(values)) @ vectors.T
        u = M @ x[at].T @ A @ e[at]
        V += np.outer(u, u)
        p.append(R[:, at] @ A @ x[at] @ M)
    found = regress(Y, x, CLUSTER)
    np.testing.assert_allclose(found.covariance, V, rtol=1e-9)
    for j in range(4):
        P = np.array([[a[:, j] @ b[:, j] for b in p] for a in p])
        assert found.df[j] == pytest.approx(np.trace(P) ** 2 / np.trace(P @ P), rel=1e-9)


def test_a_coefficient_of_one_cluster_is_not_identified():
    alone = (CLUSTER == 3).astype(float)
    found = regress(Y, np.column_stack([np.ones(40), alone, NUMBER]), CLUSTER)
    assert found.identified.tolist() == [True, False, True]
    assert np.isnan(found.variances[1])
    assert np.isnan(found.df[1])


def test_dependent_columns_are_found_in_order():
    x = np.column_stack([np.ones(40), NUMBER, 2 * NUMBER - 3, LEVEL])
    assert dependent_columns(x) == [2]


def test_scale_of_a_field_changes_its_coefficient_only():
    one = regress(Y, np.column_stack([np.ones(40), NUMBER]), CLUSTER)
    other = regress(Y, np.column_stack([np.ones(40), 1e6 * NUMBER + 4e7]), CLUSTER)
    assert other.coefficients[1] * 1e6 == pytest.approx(one.coefficients[1], rel=1e-8)
    assert other.df[1] == pytest.approx(one.df[1], rel=1e-6)


def test_weights_by_answers():
    np.testing.assert_allclose(repeat_weights(1.0, np.array([0.5, 0.5])), [1, 1])
    noise = np.array([1.0, 0.5, 0.25])
    found = repeat_weights(1.0, noise)
    omega2 = 1.0 - noise.mean()
    np.testing.assert_allclose(found * (omega2 + noise), (found * (omega2 + noise))[0])
    assert found.sum() == pytest.approx(3)
    np.testing.assert_allclose(repeat_weights(0.0, np.array([0.0, 0.5])), [1, 1])  # a weight would be infinite
