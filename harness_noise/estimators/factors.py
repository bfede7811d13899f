"""Noise by factor: variance components of labelled answers, crossed or nested, balanced or not.

y = μ + Σ_h u_h(level of the answer) + ε, all effects random and independent: the question, each
labelled factor (prompt, seed, judge), the interaction of the question with each factor, and the
residual, which is what sampling one more answer in the same place changes.

Source: Henderson (1953), Biometrics 9, method 1 (unbiased method of moments; Searle, Casella &
McCulloch 1992, §5.3): the uncorrected sums of squares T_g = Σ y²_l./n_l of every grouping g are
linear in μ² and the components, E T_g = N μ² + Σ_h σ²_h Σ_l Σ_m n²_lm / n_l.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array

from .contrast import FloatArray, IntArray

RESIDUAL = "residual"


@dataclass(frozen=True, slots=True)
class Component:
    """One source of noise."""

    name: str
    parts: tuple[str, ...]
    """The factors whose levels it needs: one for a main effect, two for an interaction."""
    levels: int
    variance: float | None
    """σ²_h, raw: it may be negative; None where the design cannot tell it from another."""
    var_mean: float | None
    """What it adds to the variance of the mean over all answers, σ²_h Σ (n_l/N)²."""
    df: float
    """Levels − 1; for the residual, answers − cells."""
    diagnostics: tuple[str, ...]


def components(y: FloatArray, factors: Sequence[tuple[str, IntArray]], interactions: bool = True) -> list[Component]:
    """Variance components of N answers.

    Args:
        y: (N,) scores.
        factors: name and (N,) level codes 0 … L−1 of each factor; the first is the question.
        interactions: also the first factor with each other one.

    Raises:
        ValueError: fewer than two answers, a score that is not finite, or codes of another length.
    """
    N = len(y)
    if N < 2 or not np.isfinite(y).all() or any(len(codes) != N for _, codes in factors):
        raise ValueError("factors need at least two finite scores, with one level of each factor for every score")
    groups: list[tuple[str, tuple[str, ...], IntArray]] = [(name, (name,), _recode(codes)) for name, codes in factors]
    if interactions:
        first, *rest = groups
        for name, _, codes in rest:
            both = _recode(first[2] * (codes.max() + 1) + codes)
            groups.append((f"{first[0]} × {name}", (first[0], name), both))
    cells = np.zeros(N, dtype=np.intp)
    for _, _, codes in groups:
        cells = _recode(cells * (codes.max() + 1) + codes)
    # an interaction with one answer in each cell is the residual by another name
    groups = [group for group in groups if len(group[1]) == 1 or group[2].max() + 1 < N]
    everyone = tuple(name for name, _ in factors)
    groups.append((RESIDUAL, everyone, np.arange(N)))

    y = y - y.mean()  # the components do not change, and the sums of squares keep their digits
    names = ["mean"] + [name for name, _, _ in groups]
    codes_of = [np.zeros(N, dtype=np.intp)] + [codes for _, _, codes in groups]
    sizes = [np.bincount(codes).astype(np.float64) for codes in codes_of]
    A = np.empty((len(names), len(names)))
    T = np.empty(len(names))
    for g, codes in enumerate(codes_of):
        T[g] = float((np.bincount(codes, weights=y) ** 2 / sizes[g]).sum())
        A[g, 0] = N
        for h in range(1, len(names)):
            A[g, h] = _overlap(codes, codes_of[h], sizes[g])
    # row 0 carries μ²: take it from the others, so that only components are left
    A, T = A[1:, 1:] - A[0, 1:], T[1:] - T[0]
    solution, *_ = np.linalg.lstsq(A, T, rcond=1e-10)
    identified = _identified(A)
    rounding = 1e-12 * float(y @ y) / N
    out = []
    for h, (name, parts, _) in enumerate(groups):
        levels = len(sizes[h + 1])
        found: list[str] = []
        value = float(solution[h]) if identified[h] else None
        if value is not None and abs(value) <= rounding:
            value = 0.0  # its sign is a diagnostic
        if levels < 2:
            found.append("single_level")
            value = None
        elif value is None:
            found.append("aliased_factor")
        elif value < 0:
            found.append("negative_component")
        share = float((sizes[h + 1] / N) @ (sizes[h + 1] / N))
        df = float(N - (cells.max() + 1)) if name == RESIDUAL else float(levels - 1)
        if name == RESIDUAL and df == 0:
            df = float(max(0, N - sum(len(size) - 1 for size in sizes[1:-1]) - 1))
        out.append(Component(name, parts, levels, value, None if value is None else value * share, df, tuple(found)))
    return out


def _recode(codes: IntArray) -> IntArray:
    found: IntArray = np.unique(codes, return_inverse=True)[1]
    return found


def _overlap(rows: IntArray, columns: IntArray, sizes: FloatArray) -> float:
    """Σ_l Σ_m n²_lm / n_l over the levels l of one grouping and m of another."""
    table = coo_array((np.ones(len(rows)), (rows, columns))).tocsr().tocoo()
    return float((table.data**2 / sizes[table.row]).sum())


def _identified(A: FloatArray) -> list[bool]:
    """Which unknowns A determines: those whose unit vector lies in its row space."""
    scale = np.abs(A).max() or 1.0
    _, s, Vt = np.linalg.svd(A / scale)
    null = Vt[s < 1e-10 * max(float(s[0]), 1e-300)]
    return [bool((np.abs(null[:, h]) < 1e-8).all()) for h in range(A.shape[1])]


def reduction(parts: Sequence[Component], factor: str, answers: int, more: int) -> float | None:
    """By how much `more` answers on new levels of one factor lower the variance of the mean.

    With N answers and as many levels again per answer, every component that needs the factor shrinks
    by N/(N + more); the others stay. `factor` may be the residual: more answers in the same places.
    """
    touched = [item for item in parts if factor in item.parts] if factor != RESIDUAL else [parts[-1]]
    if any(item.var_mean is None and item.levels > 1 for item in touched):
        return None
    total = sum(max(0.0, item.var_mean) for item in touched if item.var_mean is not None)
    return total * (1 - answers / (answers + more))
