"""Noise by factor: variance components of labelled answers, crossed or nested, balanced or not.

y = μ + Σ_h u_h(level of the answer) + ε, all effects random and independent: the question, each
labelled factor (prompt, seed, judge), the interaction of the question with each factor, and the
residual, which is what sampling one more answer in the same place changes.

Method 1 of [Henderson], the unbiased method of moments [Searle, §5.3]: the uncorrected sums of squares
T_g = Σ y²_l./n_l of every grouping g are linear in μ² and the components, E T_g = N μ² + Σ_h σ²_h Σ_l Σ_m n²_lm / n_l.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special
from scipy.sparse import coo_array

from ...arrays import FloatArray, IntArray
from ...stats.tolerances import ROUNDING, SMALLEST

RESIDUAL = "residual"


@dataclass(frozen=True, slots=True)
class Component:
    """One source of noise."""

    name: str
    parts: tuple[str, ...]
    """The factors whose levels it needs: one for a main effect, two for an interaction."""
    levels: int
    variance: float | None
    """σ²_h, raw, so it may be negative. None if the design cannot separate it from another component."""
    var_mean: float | None
    """Its share of the variance of the mean over all answers, σ²_h Σ (n_l/N)²."""
    df: float
    """Levels − 1, or for the residual answers − cells."""
    low: float | None
    """Lower limit of the component's confidence interval [Tukey; Williams], with the chance `level`.

    It is raw like the variance, which the interval always holds, so it may be negative. None without the variance or
    without degrees of freedom.
    """
    high: float | None
    diagnostics: tuple[str, ...]


def components(y: FloatArray, factors: Sequence[tuple[str, IntArray]], level: float = 0.95) -> list[Component]:
    """Estimate variance components of N scores: factors, the first's interactions, residual. Refuse NaN.

    Args:
        y: (N,) scores.
        factors: name and (N,) level codes 0 … L−1 of each factor; the first is the question.
        level: of the confidence intervals.

    Raises:
        ValueError: fewer than two answers, a score that is not finite, or codes of another length.
    """
    N = len(y)
    if N < 2 or not np.isfinite(y).all() or any(len(codes) != N for _, codes in factors):
        raise ValueError("factors need at least two finite scores, with one level of each factor for every score")
    groups, n_cells = _groupings(factors, N)
    y = y - y.mean()  # the components do not change, and the sums of squares keep their digits
    A, T, shares = _equations(y, [codes for _, _, codes in groups])
    solution, *_ = np.linalg.lstsq(A, T, rcond=1e-10)
    identified = _identified(A)
    rounding = ROUNDING * float(y @ y) / N
    levels_of = [int(codes.max()) + 1 for _, _, codes in groups]
    out = []
    for h, (name, parts, _) in enumerate(groups):
        diagnostics: list[str] = []
        value = float(solution[h]) if identified[h] else None
        if value is not None and abs(value) <= rounding:
            value = 0.0  # its sign is a diagnostic
        if levels_of[h] < 2:
            diagnostics.append("single_level")
            value = None
        elif value is None:
            diagnostics.append("aliased_factor")
        elif value < 0:
            diagnostics.append("negative_component")
        df = float(levels_of[h] - 1)
        if name == RESIDUAL:
            df = float(N - n_cells or max(0, N - sum(levels - 1 for levels in levels_of[:-1]) - 1))
        var_mean = None if value is None else value * shares[h]
        out.append(Component(name, parts, levels_of[h], value, var_mean, df, None, None, tuple(diagnostics)))
    codes_of = [codes for _, _, codes in groups]
    return _with_limits(out, codes_of, A, np.array(levels_of, dtype=np.float64), 1 - level)


def _groupings(
    factors: Sequence[tuple[str, IntArray]], N: int
) -> tuple[list[tuple[str, tuple[str, ...], IntArray]], int]:
    """Return (name, factors, codes) of each grouping of N answers, and the number of cells of all factors."""
    groups: list[tuple[str, tuple[str, ...], IntArray]] = [(name, (name,), _recode(codes)) for name, codes in factors]
    first, *rest = groups
    for name, _, codes in rest:
        both = _recode(first[2] * (codes.max() + 1) + codes)
        if both.max() != codes.max():  # a factor within the question has no interaction with it
            groups.append((f"{first[0]} × {name}", (first[0], name), both))
    cells = np.zeros(N, dtype=np.intp)
    for _, _, codes in groups:
        cells = _recode(cells * (codes.max() + 1) + codes)
    # an interaction with one answer in each cell is the residual by another name
    groups = [group for group in groups if len(group[1]) == 1 or group[2].max() + 1 < N]
    groups.append((RESIDUAL, tuple(name for name, _ in factors), np.arange(N)))
    return groups, int(cells.max()) + 1


def _equations(y: FloatArray, groups: Sequence[IntArray]) -> tuple[FloatArray, FloatArray, list[float]]:
    """Return (G, G) A and (G,) T of the moment equations A σ² = E T, and Σ (size/N)² of each grouping."""
    N = len(y)
    codes_of = [np.zeros(N, dtype=np.intp), *groups]
    sizes = [np.bincount(codes).astype(np.float64) for codes in codes_of]
    A = np.empty((len(codes_of), len(codes_of)))
    T = np.empty(len(codes_of))
    for g, codes in enumerate(codes_of):
        T[g] = float((np.bincount(codes, weights=y) ** 2 / sizes[g]).sum())
        A[g, 0] = N
        for h in range(1, len(codes_of)):
            A[g, h] = _overlap(codes, codes_of[h], sizes[g])
    # row 0 carries μ²: take it from the others, so that only components are left
    return A[1:, 1:] - A[0, 1:], T[1:] - T[0], [float((size / N) @ (size / N)) for size in sizes[1:]]


def _with_limits(
    variances: Sequence[Component], codes: Sequence[IntArray], A: FloatArray, levels: FloatArray, alpha: float
) -> list[Component]:
    """Return components with confidence limits (None if any is unknown, approximate if unbalanced) [Tukey; Williams].

    The mean square of a grouping, with the coarser groupings that contain it taken out, expects
    c σ² + r, r what the other components bring: (df MS/χ²)(1 − r F/MS)/c with the quantiles of χ²_df and
    F_{df, df_r}. df_r is Satterthwaite's from the components in r, each with its own df. Exact to within a
    little caution in balanced designs; in others the mean square is χ² only nearly.
    """
    above = [
        [g for g in range(len(codes) - 1) if g != h and levels[g] < levels[h] and _nested(codes[h], codes[g])]
        for h in range(len(codes))
    ]
    out = list(variances)
    tails = np.array([1 - alpha / 2, alpha / 2])
    for h, component in enumerate(variances):
        if component.variance is None or component.df <= 0 or any(other.variance is None for other in variances):
            continue
        c, df, r, df_r = 1.0, component.df, 0.0, np.inf
        if component.name != RESIDUAL:
            # of several coarser groupings, those that contain no other: main effects of an interaction, or the parent
            parents = [g for g in above[h] if not any(g in above[k] for k in above[h])]
            row = A[h] - sum((A[g] for g in parents), np.zeros(len(variances)))
            df = levels[h] - 1 - sum(levels[g] - 1 for g in parents)
            if df <= 0 or row[h] <= 0:
                continue
            c = row[h] / df
            parts = [(row[g] / df * max(0.0, x.variance or 0.0), x.df) for g, x in enumerate(variances) if g != h]
            r = max(0.0, sum(part for part, _ in parts))
            spread = sum(part**2 / of_part for part, of_part in parts if of_part > 0)
            # at least 1: in an unbalanced design parts may count negatively, and all but cancel
            df_r = max(1.0, r**2 / spread) if spread > 0 else np.inf
        ms, chi2 = max(c * component.variance + r, 0.0), special.chdtri(df, 1 - tails)
        F = chi2 / df if np.isinf(df_r) else special.fdtri(df, df_r, tails)
        low, high = (float(x) for x in (df * ms / chi2 - r * df / chi2 * F) / c)
        # the interval holds the raw estimate, and some variance that there can be
        out[h] = replace(component, low=min(low, component.variance), high=max(high, component.variance, 0.0))
    return out


def _nested(fine: IntArray, coarse: IntArray) -> bool:
    """Return True if each level of the grouping `fine` lies within one level of `coarse`."""
    first = np.zeros(int(fine.max()) + 1, dtype=np.intp)
    first[fine] = coarse
    return bool((first[fine] == coarse).all())


def _recode(codes: IntArray) -> IntArray:
    return np.asarray(np.unique(codes, return_inverse=True)[1])


def _overlap(rows: IntArray, columns: IntArray, sizes: FloatArray) -> float:
    """Return Σ_l Σ_m n²_lm / n_l over the levels l of one grouping and m of another."""
    table = coo_array((np.ones(len(rows)), (rows, columns))).tocsr().tocoo()
    return float((table.data**2 / sizes[table.row]).sum())


def _identified(A: FloatArray) -> list[bool]:
    """Return for each unknown of the linear system A x = b True if A determines it."""
    scale = np.abs(A).max() or 1.0
    _, s, Vt = np.linalg.svd(A / scale)
    null = Vt[s < 1e-10 * max(float(s[0]), SMALLEST)]
    return [bool((np.abs(null[:, h]) < 1e-8).all()) for h in range(A.shape[1])]


def reduction(parts: Sequence[Component], factor: str, answers: int, more: int) -> float | None:
    """Return how much `more` answers on new levels of a factor take off the mean's variance, in score². None: unknown.

    With N answers and as many levels again per answer, every component that needs the factor shrinks
    by N/(N + more); the others stay. `factor` may be the residual: more answers in the same places.
    """
    touched = [component for component in parts if factor in component.parts] if factor != RESIDUAL else [parts[-1]]
    if any(component.var_mean is None and component.levels > 1 for component in touched):
        return None
    total = sum(max(0.0, component.var_mean) for component in touched if component.var_mean is not None)
    return total * (1 - answers / (answers + more))
