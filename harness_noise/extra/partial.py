"""The mean over N questions from a random subset of them: the generalised regression estimator, cross-fitted.

Sources, cited at the lines that use them:
  [Särndal] Särndal, Swensson & Wretman (1992), Model Assisted Survey Sampling, ch. 6
  [Hoerl]   Hoerl & Kennard (1970), Technometrics 12; the penalty by the closed form of leave-one-out, Allen's PRESS
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, IntArray
from ..stats.cluster_variance import clustered_variance
from ..stats.contrast import Design
from ..stats.intervals import critical
from ..stats.tolerances import FEWEST_UNITS

FOLDS = 10
MOST_COMPONENTS = 4
"""Principal components of the references, besides their mean."""
UNITS_PER_COMPONENT = 50
_PENALTIES = 10.0 ** np.arange(-2, 5)
NOT_RANDOM_Z = 5.0
"""z of the rank sum of the places of the questions asked, beyond which they are not a random subset."""
IN_A_ROW = 1e-4
"""Chance that a random subset lies in a row, in every task, below which one that does is none."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The subset of the N questions that were asked."""

    asked: IntArray
    """(m,) their indexes."""
    clusters: IntArray
    """(N,) codes of what was drawn together."""
    strata: IntArray
    """(N,) task codes 0 … T−1."""
    shares: FloatArray | None = None
    """(T,) weights of the tasks, None for weights by size."""
    drawn: bool = False
    """True if the run says that they were drawn at random. Otherwise their places must look random."""
    chances: FloatArray | None = None
    """(m,) probability with which each was drawn, equal within a cluster. None: equal within a task."""

    @property
    def weights(self) -> FloatArray:
        """(T,) weights of the tasks in the benchmark's mean."""
        return np.bincount(self.strata) / len(self.strata) if self.shares is None else self.shares

    def unknown(self) -> FloatArray:
        """Return (T,) the share of each task's questions that are not in the subset."""
        counts = np.bincount(self.strata[self.asked], minlength=len(self.weights))
        return 1 - counts / np.bincount(self.strata, minlength=len(self.weights))

    def chance(self) -> FloatArray:
        """Return (m,) the probability with which each question of the subset was drawn."""
        return (1 - self.unknown())[self.strata[self.asked]] if self.chances is None else self.chances

    def weights_of_others(self, design: Design) -> FloatArray:
        """Return (m,) weights with which the subset's questions stand for the questions outside of it.

        One drawn with probability π stands for 1/π questions, itself among them. In a task that was asked whole, they
        are those of the mean.
        """
        left = 1 / self.chance() - 1
        sums = np.bincount(design.strata, weights=left, minlength=len(self.weights))[design.strata]
        return np.where(sums > 0, self.weights[design.strata] * left / np.where(sums > 0, sums, 1), design.weights)

    def mean_of_all(self, values: FloatArray) -> float:
        """Return the weighted benchmark mean of (N,) values, one for each question of the benchmark."""
        return float(self.weights @ (np.bincount(self.strata, weights=values) / np.bincount(self.strata)))

    def share_of_mean_not_asked(self, values: FloatArray) -> float:
        """Return the part that questions outside the subset add to the weighted mean of N values, one a question."""
        others = np.ones(len(self.strata), dtype=bool)
        others[self.asked] = False
        sums = np.bincount(self.strata[others], weights=values[others], minlength=len(self.weights))
        return float(self.weights @ (sums / np.bincount(self.strata)))

    def design(self) -> Design:
        """Return the design (weights, tasks, clusters) of the m questions in the subset."""
        tasks = self.strata[self.asked]
        _, codes, each = np.unique(self.clusters[self.asked], return_inverse=True, return_counts=True)
        weights = (self.weights / np.maximum(np.bincount(tasks, minlength=len(self.weights)), 1))[tasks]
        return Design(weights, tasks, codes, len(each), clustered=len(each) < len(tasks))


@dataclass(frozen=True, slots=True)
class FromPart:
    """An estimate of the benchmark's mean, or of a difference of two means."""

    estimate: float
    variance: float
    """For these N questions: that of the part that was not asked."""
    df: float
    population_variance: float
    """For the questions that could be asked: also the variance that the mean of all N questions has."""
    population_df: float
    r2: float | None = None
    gain: float | None = None
    """Variance of the plain mean of the subset over `variance`, None for the plain mean itself."""

    def half_width(self, level: float, *, population: bool = False) -> float:
        variance, df = (self.population_variance, self.population_df) if population else (self.variance, self.df)
        return float(critical(level, df)) * math.sqrt(variance)


def _variance(e: FloatArray, part: Part, design: Design, *, of_all: bool = False) -> tuple[float, float] | None:
    """Return (variance, df) of an estimate of N questions' mean, or (`of_all`) of that mean itself. None: no variance.

    The shares that were not asked, 1 − π, make it the variance for these N questions [Särndal, eq. 2.8.6, Hájek's
    approximation where π differs]; π makes it that of the mean of N questions. Each question counts 1/π times. Tasks
    with a share of 0 add nothing.
    """
    chance = part.chance()
    shares, weights = (chance, 1 / chance) if of_all else (1 - chance, part.weights_of_others(design))
    sums = np.bincount(design.strata, weights=weights)
    means = np.bincount(design.strata, weights=weights * e) / np.where(sums > 0, sums, 1)
    counts = (1 - part.unknown())[design.strata] / chance
    residuals = (e - means[design.strata]) * np.sqrt(shares) * counts
    keep = (np.bincount(design.strata, weights=shares) > 0)[design.strata]
    if not keep.any():
        return None
    if not keep.all():
        _, codes, each = np.unique(design.clusters[keep], return_inverse=True, return_counts=True)
        design = Design(design.weights[keep], design.strata[keep], codes, len(each), clustered=design.clustered)
        residuals = residuals[keep]
    variance = clustered_variance(residuals, design)
    return None if variance is None else (variance.value, variance.df)


def _partial_mean(y: FloatArray, residual: FloatArray, part: Part, design: Design) -> float:
    """Estimate the benchmark's mean: the subset's own scores, and the mean residual for the other questions."""
    unknown = part.unknown()[design.strata]
    return float((design.weights * (1 - unknown)) @ y + (part.weights_of_others(design) * unknown) @ residual)


def _for_population(these: tuple[float, float], d: FloatArray, part: Part, design: Design) -> tuple[float, float]:
    """Return (variance, df) for all questions of this kind, from `these` for N questions. `these` if that has none.

    df by Satterthwaite.
    """
    full = _variance(d, part, design, of_all=True)
    if full is None or full[0] + these[0] <= 0:
        return these
    total = these[0] + full[0]
    return total, total**2 / (these[0] ** 2 / these[1] + full[0] ** 2 / full[1])


def plain(y: FloatArray, part: Part, against: FloatArray | None = None) -> FromPart | None:
    """Estimate a benchmark's mean (or minus `against`) from the random subset alone. None: no standard error.

    The arguments are those of `from_part`.
    """
    design = part.design()
    d = y if against is None else y - against[part.asked]
    noise = _variance(d, part, design)
    if noise is None:
        return None
    return FromPart(_partial_mean(d, d, part, design), *noise, *_for_population(noise, d, part, design))


def from_part(y: FloatArray, part: Part, X: FloatArray, against: FloatArray | None = None) -> FromPart | None:
    """Estimate a mean or A − B from a random subset by regression on references, else plainly. None: too few clusters.

    Whether the references gain anything plays no part in it: the smaller of two estimated variances is too small
    (1 point of coverage), and where they gain nothing the regression costs 0 to 4% of the variance.

    Args:
        y: (m,) question means of the part.
        part: which questions they are.
        X: (N, R) question means of the references, NaN where one has none; R may be 0 with `against`.
        against: (N,) question means of the run that is subtracted; None: the mean of y itself.

    Returns:
        None where a task has fewer than two clusters.
    """
    return _regression(y, part, X, against) or plain(y, part, against)


def _regression(y: FloatArray, part: Part, X: FloatArray, against: FloatArray | None) -> FromPart | None:
    """Estimate a benchmark's mean by cross-fitted regression on reference runs [Särndal]. None: too few data.

    The questions that were not asked take ŷ_i and the mean residual of those that were, which have their own y_i: of a
    fit, the fold that it has not seen and the questions that were not asked are alike, so nothing is biased. Where the
    probabilities π_i of drawing differ, that mean has the weights 1/π_i − 1, which is Horvitz and Thompson's form.

    Of a difference from a run that has answered all N questions only the mean of y is unknown. That run's answers are
    the best predictor of y, so they are a feature of their own, and its known mean is subtracted.

    None where the part is too small, or nothing varies in the part or in the references.
    """
    design = part.design()
    Z = features(X, design.n_clusters, against)
    if design.n_clusters < FEWEST_UNITS or Z.shape[1] == 0:
        return None
    residual, fitted = cross_fit(y, Z, Z[part.asked], part, design)
    predicted = part.share_of_mean_not_asked(fitted)
    d = y if against is None else y - against[part.asked]
    noise, raw = _variance(residual, part, design), _variance(d, part, design)
    freedom = 0.0 if noise is None else noise[1] - Z.shape[1]
    if noise is None or raw is None or min(noise[0], raw[0]) <= 0 or freedom < 1:
        return None
    # fits of nine folds in ten share most of their questions, so that their residuals are not quite independent
    these = noise[0] * noise[1] / freedom, freedom
    spread = float(((y - y.mean()) ** 2).sum())
    r2 = 1 - float(((residual - residual.mean()) ** 2).sum()) / spread if spread > 0 else 0.0
    estimate = _partial_mean(y, residual, part, design) + predicted
    estimate -= 0.0 if against is None else part.mean_of_all(against)
    return FromPart(estimate, *these, *_for_population(these, d, part, design), r2=r2, gain=raw[0] / these[0])


def cross_fit(
    y: FloatArray, Z: FloatArray, seen: FloatArray, part: Part, design: Design
) -> tuple[FloatArray, FloatArray]:
    """Return (m,) residuals and (N,) predictions of ridge fits, each made without the question's own fold.

    The questions that were not asked take the mean of all fits, each counted as much as the fold that it lacks.

    Args:
        y: (m,) question means of the part.
        Z: (N, p) predictors.
        seen: (m, p) those that belong to y.
        part: which questions they are.
        design: its design.
    """
    fold = np.random.default_rng(0).permutation(design.n_clusters)[design.clusters] % FOLDS
    residual, own, mean, others = np.empty(len(y)), np.empty(len(y)), np.zeros(len(Z)), part.weights_of_others(design)
    for f in range(FOLDS):
        held = fold == f
        fitted = ridge(seen[~held], y[~held], np.concatenate([Z, seen[held]]))
        residual[held] = y[held] - fitted[len(Z) :]
        own[held] = fitted[: len(Z)][part.asked[held]]
        mean += fitted[: len(Z)] * float(others[held].sum())
    mean[part.asked] = own
    return residual, mean


def features(X: FloatArray, units: int, own: FloatArray | None = None) -> FloatArray:
    """Return (N, p) standardised predictors: `own` run, references' mean, principal components. No constant ones.

    They are `own` (N,), never averaged in; the mean of the references; and the first components of what is left.
    """
    columns = [] if own is None else [own - own.mean()]
    if X.shape[1] > 0:
        means = np.where(np.isnan(X).all(axis=0), 0.0, np.nansum(X, axis=0) / np.maximum((~np.isnan(X)).sum(axis=0), 1))
        filled = np.where(np.isnan(X), means, X)
        mean = filled.mean(axis=1)
        rest = filled - filled.mean(axis=0) - (mean - mean.mean())[:, None]
        columns.append(mean - mean.mean())
        count = min(X.shape[1] - 1, MOST_COMPONENTS, units // UNITS_PER_COMPONENT)
        if count > 0:
            U, s, _ = np.linalg.svd(rest, full_matrices=False)
            columns += [U[:, j] * s[j] for j in range(count)]
    kept = [column / column.std() for column in columns if column.std() > 1e-9]
    return np.stack(kept, axis=1) if kept else np.empty((len(X), 0))


def ridge(Z: FloatArray, y: FloatArray, new: FloatArray) -> FloatArray:
    """Fit a ridge regression (penalty by leave-one-out [Hoerl]) of y on Z. Return one prediction per row of `new`."""
    centre, level = Z.mean(axis=0), float(y.mean())
    U, s, Vt = np.linalg.svd(Z - centre, full_matrices=False)
    target = U.T @ (y - level)
    shrunk = s**2 / (s**2 + _PENALTIES[:, None])
    leverage = U**2 @ shrunk.T + 1 / len(y)
    left = (y - level)[:, None] - U @ (shrunk * target).T
    chosen = _PENALTIES[np.square(left / np.maximum(1 - leverage, 1e-9)).sum(axis=0).argmin()]
    beta = Vt.T @ (s / (s**2 + chosen) * target)
    return np.asarray(level + (new - centre) @ beta)


def positions_look_random(part: Part) -> bool:
    """Return True if the subset's positions in the benchmark look randomly drawn, not the first ones.

    A cluster counts once, at the mean place of its questions. The rank sums of all tasks together are compared with
    those of random subsets; parts that are the first of every task are found however small they are.
    """
    N = len(part.strata)
    was = np.zeros(N, dtype=bool)
    was[part.asked] = True
    total = variance = chance = 0.0
    together = True
    for t in range(len(part.weights)):
        rows = np.flatnonzero(part.strata == t)
        _, inverse, size = np.unique(part.clusters[rows], return_inverse=True, return_counts=True)
        place = np.bincount(inverse, weights=np.arange(len(rows))) / size
        share = np.bincount(inverse, weights=was[rows]) / size > 0.5
        n, m = len(place), int(share.sum())
        if m in (0, n):
            continue
        ranks = np.argsort(np.argsort(place))
        total += float(ranks[share].sum()) - m * (n - 1) / 2
        variance += m * (n - m) * (n + 1) / 12
        # places in a row: n − m + 1 of all (n over m) parts
        chance += math.log(n - m + 1) - math.lgamma(n + 1) + math.lgamma(m + 1) + math.lgamma(n - m + 1)
        together &= bool(ranks[share].max() - ranks[share].min() == m - 1)
    if variance == 0:
        return True
    return abs(total) / math.sqrt(variance) <= NOT_RANDOM_Z and not (together and chance < math.log(IN_A_ROW))
