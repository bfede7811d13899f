"""All pairs of models on a group of tasks: weighted means, residuals within tasks, clusters across them.

Where all models have the same questions, the variances of all pairs come from one matrix of cluster scores; a pair
whose models lack different questions, or hardly differ, goes through the kernel of `contrast`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .all_pairs import all_pairs
from .arrays import BoolArray, Estimator, FloatArray, IntArray
from .cluster_variance import cells, cluster_scores, sum_by
from .contrast import Contrast, Design, QuestionStats, contrast, design
from .decision import noise_flags
from .fixed import fixed_moments
from .flips import Extension, Far, extended
from .moments import Moments, moments, without_rounding
from .pair_flips import of_group
from .pair_table import Columns, Strata, Table
from .pair_variances import CANCELLED, NOTHING, of_pairs
from .ranks import count_above, dense_ranks
from .tolerances import ROUNDING

_OF_KERNEL = (
    "single_repeat", "partly_single_repeat", "identical_repeats", "missing_repeats", "too_few_questions",
    "too_few_clusters", "zero_variance", "few_flips", "negative_data_variance", "few_clusters", "singleton_clusters",
)  # fmt: skip


def group_pairs(
    table: Table, a: IntArray, b: IntArray, estimator: Estimator = "cr2", *, fixed: bool = False
) -> Columns:
    """The columns of the pairs (a[i], b[i]) on a table with strata.

    Counts, correlation and wins are those of the questions, unweighted; the means, variances and what
    follows from them are those of the weighted mean of task means. See `contrast.design`.
    """
    strata = table.strata
    if strata is None:
        raise ValueError("a group needs its tasks: use all_pairs")
    plain = all_pairs(replace(table, clusters=None, strata=None), a, b, estimator)
    out = _Group(plain, table, strata, estimator, fixed=fixed)
    done = np.zeros(len(a), dtype=np.bool_)
    if not np.isnan(table.mean).any() and not fixed:
        done = out.by_gram()
    for i in np.flatnonzero(~done):
        out.by_kernel(int(i))
    return out.columns()


def group_design(table: Table, rows: IntArray) -> Design | None:
    """The design of these questions of a group; None where a task of non-zero weight has none of them."""
    strata, clusters = table.strata, table.clusters
    assert strata is not None
    if len(rows) == 0 or strata.weights(rows) is None:
        return None
    codes = strata.codes[rows]
    plan = design(len(rows), None if clusters is None else clusters[rows], codes, strata.shares)
    if strata.between:
        tasks, index = np.unique(codes, return_inverse=True)
        return replace(plan, clusters=index, n_clusters=len(tasks), clustered=True, between_tasks=True)
    return plan


class _Group:
    """Columns that are filled in, by either way."""

    def __init__(self, plain: Columns, table: Table, strata: Strata, estimator: Estimator, *, fixed: bool) -> None:
        self.plain, self.table, self.strata, self.estimator, self.fixed = plain, table, strata, estimator, fixed
        P = len(plain)
        self.scored = ~np.isnan(table.mean)
        names = ("mean_a", "mean_b", "diff", "variance", "df", "naive", "variance_a", "variance_b", "var_data",
                 "var_prediction", "var_total", "gain", "loss")  # fmt: skip
        self.numbers: dict[str, FloatArray] = {name: np.full(P, np.nan) for name in names}
        self.n_clusters = plain.n.copy()
        self.signs_a, self.signs_b = plain.signs_a.copy(), plain.signs_b.copy()
        self.far = Far.none(P)
        self.zero = np.zeros(P, dtype=np.bool_)
        self.same = np.zeros(P, dtype=np.bool_)
        self.flags: dict[str, BoolArray] = {name: np.zeros(P, dtype=np.bool_) for name in _OF_KERNEL}

    def columns(self) -> Columns:
        flags = {code: has for code, has in self.plain.flags.items() if code not in _OF_KERNEL}
        found: dict[str, Any] = self.numbers | {
            "n_clusters": self.n_clusters, "signs_a": self.signs_a, "signs_b": self.signs_b, "zero": self.zero,
            "same": self.same, "far": self.far,
        }  # fmt: skip
        return replace(self.plain, flags=flags | self.flags, **found)

    def _plan(self, rows: IntArray) -> Design | None:
        return group_design(self.table, rows)

    def _stats(self, model: int, rows: IntArray) -> QuestionStats:
        t = self.table
        return QuestionStats(t.mean[rows, model], t.var[rows, model], t.count[rows, model])

    def _split(self, c: Contrast, *models: int) -> Contrast:
        """The contrast, told what is known of the answers of its models."""
        t, found = self.table, set(c.diagnostics)
        if t.identical is not None and t.identical[list(models)].any():
            found.add("identical_repeats")
        known = c.identified and "identical_repeats" not in found
        if t.unsplit is not None and t.unsplit[list(models)].any():
            known = False
        return replace(c, identified=known, diagnostics=tuple(sorted(found)))

    def by_kernel(self, i: int) -> None:
        """One pair, from its questions."""
        a, b = int(self.plain.a[i]), int(self.plain.b[i])
        rows = np.flatnonzero(self.scored[:, a] & self.scored[:, b])
        plan = self._plan(rows)
        if plan is None:
            clusters = self.table.clusters
            self.n_clusters[i] = len(rows) if clusters is None else len(np.unique(clusters[rows]))
            self.flags["too_few_questions"][i] = True
            return
        codes = self.strata.codes[rows]
        stats = self._stats(a, rows), self._stats(b, rows)
        c = self._split(contrast(stats, (1.0, -1.0), codes), a, b)
        alone = [contrast([one], strata=codes) for one in stats]
        if self.fixed:
            m = fixed_moments(stats, (1.0, -1.0), c, plan)
            each = [fixed_moments([one], (1.0,), only, plan) for one, only in zip(stats, alone, strict=True)]
        else:
            m = moments(c, plan, self.estimator)
            each = [moments(only, plan, self.estimator) for only in alone]
        self._put(i, m, c, plan, each)

    def _put(self, i: int, m: Moments, c: Contrast, plan: Design, each: list[Moments]) -> None:
        found = {
            "mean_a": each[0].mean, "mean_b": each[1].mean, "diff": m.mean, "variance": m.variance, "df": m.df,
            "naive": m.naive, "variance_a": each[0].variance, "variance_b": each[1].variance,
            "var_data": m.var_data, "var_prediction": m.var_prediction, "var_total": m.var_total,
        }  # fmt: skip
        for name, value in found.items():
            self.numbers[name][i] = np.nan if value is None else value
        self.n_clusters[i] = m.n_clusters
        self.zero[i] = m.zero_variance
        self.same[i] = m.zero_variance and not (np.abs(c.d) > ROUNDING).any()
        for code in m.diagnostics:
            self.flags[code][i] = True
        if self.fixed:
            self.signs_a[i] = self.signs_b[i] = 0
            return
        far = extended(c.d, plan, self.estimator) if m.variance else None
        if far is not None:
            self.flags["few_flips"][i] = True
            self.far.put(np.array([i]), far)
        weighted = plan.weights * c.d
        sums = np.bincount(plan.clusters, weights=weighted, minlength=plan.n_clusters)
        self.numbers["gain"][i], self.numbers["loss"][i] = np.maximum(sums, 0).sum(), np.maximum(-sums, 0).sum()
        sums = sums * len(c.d)
        tolerance = ROUNDING * max(1.0, float(np.abs(sums).max(initial=0.0)))
        self.signs_a[i], self.signs_b[i] = (sums > tolerance).sum(), (sums < -tolerance).sum()

    def by_gram(self) -> BoolArray:
        """All pairs on the same questions; returns those that are done."""
        t, (a, b) = self.table, (self.plain.a, self.plain.b)
        N = len(t.mean)
        plan, single = self._plan(np.arange(N)), bool((t.count == 1).all())
        if plan is None or not (single or (t.count > 1).all()) or (plan.weights == 0).any():
            return np.zeros(len(a), dtype=np.bool_)
        design = cells(plan)
        if not design.identified:
            return np.zeros(len(a), dtype=np.bool_)
        means = plan.weights @ t.mean
        sizes = np.bincount(plan.strata).astype(np.float64)
        task_means = (sum_by(plan.strata, t.mean, len(sizes)).T / sizes).T[plan.strata]
        e = t.mean - task_means
        S = design.scores(design.sums(task_means - means if plan.between_tasks else e), self.estimator)
        alone = Design(plan.weights, plan.strata, np.arange(N), N, clustered=False)
        S_naive = cluster_scores(e, alone)
        V, V_a, V_b = of_pairs(S, a, b)
        naive = np.full(len(a), np.nan) if S_naive is None else of_pairs(S_naive, a, b)[0]
        done: BoolArray = V - CANCELLED * (V_a + V_b) > NOTHING
        far = of_group(design.sums(t.mean), Extension(design, self.estimator), a, b)
        noise, flags = self._noise(plan, V, single=single)
        found = noise | {
            "mean_a": means[a], "mean_b": means[b], "diff": means[a] - means[b], "variance": V,
            "df": np.full(len(a), design.df()), "naive": naive, "variance_a": V_a, "variance_b": V_b,
        }  # fmt: skip
        flags |= noise_flags(found["df"], zero=~done, var_data=found["var_data"], far=far)
        flags["singleton_clusters"] = np.full(len(a), plan.clustered and plan.n_clusters == N)
        for name, column in found.items():
            self.numbers[name][done] = column[done]
        for name, has in flags.items():
            self.flags[name][done] = has[done]
        self.far.put(done, far.take(done))
        self.n_clusters[done] = plan.n_clusters
        if plan.clustered:
            sums = sum_by(plan.clusters, (plan.weights * N)[:, None] * t.mean, plan.n_clusters)
            above = count_above(*dense_ranks(sums, np.ones_like(sums, dtype=np.bool_))).astype(np.intp)
            self.signs_a[done], self.signs_b[done] = above[a, b][done], above[b, a][done]
        return done

    def _noise(
        self, plan: Design, V: FloatArray, *, single: bool
    ) -> tuple[dict[str, FloatArray], dict[str, BoolArray]]:
        """The split of all pairs on the same questions, and what their repeats give reason to say; see `contrast`."""
        t, w2, a, b = self.table, plan.weights**2, self.plain.a, self.plain.b
        s2, k = np.nan_to_num(t.var), t.count
        v, left, more = w2 @ s2, w2 @ (s2 / k), w2 @ (s2 * (1 - 1 / k))
        varied = s2.sum(axis=0) > 0
        constant = ~varied & (not single)
        uneven = np.zeros(t.mean.shape[1], dtype=np.bool_)
        for task in np.unique(plan.strata):
            block = k[plan.strata == task]
            uneven |= (block != block.max(axis=0)).any(axis=0)
        identified = varied[a] & varied[b]
        same = constant[a] | constant[b]
        if t.identical is not None:
            same |= t.identical[a] | t.identical[b]
            identified &= ~same
        if t.unsplit is not None:
            identified &= ~(t.unsplit[a] | t.unsplit[b])
        numbers = {
            "var_data": np.where(identified, without_rounding(V, left[a] + left[b]), np.nan),
            "var_prediction": np.where(identified, v[a] + v[b], np.nan), "var_total": V + more[a] + more[b],
        }  # fmt: skip
        flags = {
            "missing_repeats": uneven[a] | uneven[b], "identical_repeats": same,
            "single_repeat": np.full(len(a), single),
        }  # fmt: skip
        return numbers, flags
