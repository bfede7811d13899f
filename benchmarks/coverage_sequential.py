"""Stopping early: errors, power, coverage, bias and cost of the whole procedure, by simulation.

    python benchmarks/coverage_sequential.py [docs/methods/sequential.md] [--replications N] [--only WORD] [--state FILE]

Replications of equal clusters go through an array form of `StoppingRule.look`, which is held against the library's own
first. What is finished is kept in --state, so that a run that was stopped goes on where it was. With a page, the tables
replace what stands there between the marks.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from harness_noise.analysis.observed import Observed, repeats_enough
from harness_noise.analysis.partial import estimate_from_part
from harness_noise.analysis.sample import as_scores
from harness_noise.analysis.sequential import LookState, StoppingRule
from harness_noise.settings import Settings
from harness_noise.stats.cluster_variance import Cells
from harness_noise.stats.flips import Extension
from harness_noise.stats.power import noncentrality
from harness_noise.stats.sequential import stagewise_shifts

SEED = 20261123
LEVEL, ALPHA = 0.95, 0.05
BLOCK = 4_000_000
"""Scores that are drawn at a time."""
START, END = "<!-- tables: make coverage -->", "<!-- end of tables -->"


@dataclass(frozen=True)
class Study:
    """A comparison of two runs."""

    n: int
    K: int
    size: int
    """Questions per cluster."""
    kind: str
    """binary, or graded."""
    accuracy: float = 0.5

    @property
    def name(self) -> str:
        what = "graded" if self.kind == "graded" else f"accuracy {self.accuracy:g}"
        return f"{self.n} questions, K = {self.K}, clusters of {self.size}, {what}"

    @property
    def G(self) -> int:
        return self.n // self.size

    def sums(self, rng: np.random.Generator, R: int, delta: float) -> np.ndarray:
        """(R, G) sums of A − B by cluster; the runs share half of the difficulty, clusters .3 of each half."""

        def part() -> np.ndarray:
            x = math.sqrt(0.7) * rng.standard_normal((R, self.G, self.size))
            return x + math.sqrt(0.3) * rng.standard_normal((R, self.G, 1))

        shared = part()
        total = 0.0
        for sign, gap in ((1.0, 0.0), (-1.0, delta)):
            latent = math.sqrt(0.375) * (shared + part())
            if self.kind == "graded":
                noise = 0.5 * rng.standard_normal((R, self.G, self.size)) / math.sqrt(self.K)
                total = total + sign * (0.6 * special.ndtr(2 * latent) + 0.1 * noise - gap)
            else:
                rate = special.ndtr((special.ndtri(self.accuracy - gap) - latent) / math.sqrt(0.25))
                answers = rng.random(rate.shape) < rate if self.K == 1 else rng.binomial(self.K, rate) / self.K
                total = total + sign * answers
        out: np.ndarray = total.sum(axis=2)  # type: ignore[union-attr]
        return out

    @cached_property
    def delta(self) -> float:
        """The difference that the comparison of all questions finds with 80 % power."""
        delta = 0.0
        for _ in range(4):  # the variance depends on it
            d = self.sums(np.random.default_rng(1), max(50, BLOCK // 4 // self.n), delta).reshape(-1) / self.size
            delta = float(noncentrality(ALPHA, 0.8, self.G - 1)) * float(d.std()) / math.sqrt(self.G)
        return delta


class Tables:
    """Shifts of the stage-wise interval, interpolated over z, for one boundary."""

    def __init__(self, shares: tuple[float, ...], bounds: tuple[float, ...]) -> None:
        self.shares, self.bounds = shares, bounds
        self.known: dict[tuple[int, bool], tuple[np.ndarray, np.ndarray]] = {}

    def __call__(self, k: int, z: np.ndarray) -> np.ndarray:
        """(R, 3) shifts where it stopped at look k (from 0) with these z."""
        crossed = np.abs(z) > self.bounds[k]
        out = np.empty((len(z), 3))
        for side in (True, False):
            rows = np.flatnonzero(crossed == side)
            if not len(rows):
                continue
            grid, shifts = self._table(k, side)
            x = np.abs(z[rows])
            found = np.stack([np.interp(x, grid, shifts[:, j]) for j in range(3)], axis=1)
            out[rows] = np.where((z[rows] < 0)[:, None], -found[:, ::-1], found)
        return out

    def _table(self, k: int, crossed: bool) -> tuple[np.ndarray, np.ndarray]:
        if (k, crossed) not in self.known:
            b = self.bounds[k]
            grid = b + np.array([0, 0.3, 0.7, 1.2, 2, 3]) if crossed else np.linspace(0, b, 7)
            shifts = [stagewise_shifts(float(z), self.shares[: k + 1], self.bounds[: k + 1], LEVEL) for z in grid]
            self.known[k, crossed] = grid, np.array(shifts)
        return self.known[k, crossed]


@lru_cache(maxsize=200)
def tables(shares: tuple[float, ...], bounds: tuple[float, ...]) -> Tables:
    return Tables(shares, bounds)


@dataclass(frozen=True)
class Stopped:
    """What R runs reported."""

    decision: np.ndarray
    """−1, 0, 1."""
    asked: np.ndarray
    """Share of the questions."""
    estimate: np.ndarray
    plain: np.ndarray
    low: np.ndarray
    high: np.ndarray
    fixed: np.ndarray
    """Decision of the comparison of all questions."""
    mean: np.ndarray
    """Mean over all questions."""


def as_z(t: np.ndarray, df: float) -> np.ndarray:
    p = special.stdtr(df, -np.abs(t))
    out: np.ndarray = np.copysign(np.minimum(-special.ndtri(np.maximum(p, 1e-298)), 37.0), t)
    return out


def as_t(z: np.ndarray, df: float) -> np.ndarray:
    inside = np.clip(np.abs(z), 1e-12, 6.0)
    out: np.ndarray = np.copysign(-special.stdtrit(df, special.ndtr(-inside)) * np.abs(z) / inside, z)
    return out


def stop(sums: np.ndarray, size: int, rule: StoppingRule) -> Stopped:
    """`StoppingRule.look` for (R, G) cluster sums whose order is random already."""
    R, G = sums.shape
    order = rule.order(G)
    looks = len(order.units)
    mean, se, z = (np.empty((looks, R)) for _ in range(3))
    first, second = np.cumsum(sums, axis=1), np.cumsum(sums**2, axis=1)
    for k, u in enumerate(order.units):
        S = first[:, u - 1]
        mean[k] = S / (u * size)
        V = np.maximum(second[:, u - 1] - S**2 / u, 0) / (u * size) ** 2 / (1 - 1 / u)
        se[k] = np.where(V > 1e-15, np.sqrt(V), np.nan)
        z[k] = as_z(mean[k] / se[k], u - 1)
    out = Stopped(*(np.zeros(R) for _ in range(6)), *(np.zeros(R) for _ in range(2)))
    usable = np.isfinite(z)
    if rule.looks == "anytime":
        usable[:] = True
    patterns, which = np.unique(usable, axis=1, return_inverse=True)
    for i in range(patterns.shape[1]):
        rows = np.flatnonzero(which.reshape(-1) == i)
        _stop_alike(sums, size, rule, order.units, np.flatnonzero(patterns[:, i]), rows, (mean, se, z), out)
    last = z[-1]
    out.fixed[:] = np.where(np.abs(last) > special.ndtri(1 - ALPHA / 2), np.sign(last), 0)
    out.mean[:] = mean[-1]
    return out


def _bounds(rule: StoppingRule, shares: tuple[float, ...]) -> tuple[float, ...]:
    """Boundaries of the looks that are taken, by the library."""
    o = Observed(estimate=0.0, se=1.0, df=math.inf, units=99)
    return LookState(rule, o, shares[:-1], round(shares[-1] * 10**9), 10**9).bounds(ALPHA)


def _stop_alike(
    sums: np.ndarray, size: int, rule: StoppingRule, units: tuple[int, ...], taken: np.ndarray, rows: np.ndarray,
    at: tuple[np.ndarray, np.ndarray, np.ndarray], out: Stopped,
) -> None:  # fmt: skip
    if not len(taken):
        out.asked[rows], out.low[rows], out.high[rows] = 1.0, np.nan, np.nan
        return
    shares = tuple(units[k] / units[-1] for k in taken)
    bounds = _bounds(rule, shares)
    mean, se, z = (x[np.ix_(taken, rows)] for x in at)
    with np.errstate(invalid="ignore"):
        crossed = np.abs(z) > np.array(bounds)[:, None]
    first = np.where(crossed.any(axis=0), crossed.argmax(axis=0), len(taken) - 1)
    for k in np.unique(first).tolist():
        here = np.flatnonzero(first == k)
        r, u = rows[here], units[taken[k]]
        m, s, zk, over = mean[k, here], se[k, here], z[k, here], crossed[k, here]
        shift = tables(shares, bounds)(k, zk)
        df = u - 1
        ends = [m - s * as_t(shift[:, j], df) for j in (0, 1, 2)]
        sizes = np.full(u, float(size))
        found = Cells(sums[r, :u], sizes, np.arange(u), np.zeros(u, dtype=np.intp), np.array([1 / (u * size)]), u)
        far = Extension(found, "cr2")(sums[r, :u])
        reach = np.sqrt(far.variance)
        with np.errstate(invalid="ignore"):
            ends[0] = np.where(m <= 0, np.fmin(ends[0], far.mean - reach * as_t(shift[:, 0], df + 2)), ends[0])
            ends[2] = np.where(m >= 0, np.fmax(ends[2], far.mean - reach * as_t(shift[:, 2], df + 2)), ends[2])
        out.low[r], out.estimate[r], out.high[r], out.plain[r] = ends[0], ends[1], ends[2], m
        out.decision[r] = np.where(over, np.sign(m), 0)
        out.asked[r] = shares[k]


def check() -> None:
    """The array form says what the library says."""
    from harness_noise.analysis.replay import Pair

    rng = np.random.default_rng(SEED)
    for looks in (5, "anytime"):
        for size, G, p in ((1, 100, 0.3), (10, 30, 0.1), (1, 200, 0.04)):
            d = (rng.random((4, G, size)) < p + 0.2).astype(float) - (rng.random((4, G, size)) < p)
            rule = StoppingRule(looks=looks)  # type: ignore[arg-type]
            found = stop(d.sum(axis=2), size, rule)
            for r in range(4):
                x = d[r].reshape(-1)
                parts = [as_scores(y, np.repeat(np.arange(G), size)) for y in (np.maximum(x, 0), np.maximum(-x, 0))]
                pair, look = Pair.of(parts[:1], parts[1:]), None
                order = rule.order(G * size, np.repeat(np.arange(G), size), shuffled=True)
                units = rule.order(G).units
                for k, u in enumerate(units):
                    rows = np.arange(u * size)
                    if len(rows) != order.counts()[k]:
                        break
                    look = rule.look(order, look, pair.observed(rows))
                    if look.stop:
                        s = look.sequential
                        ours = (found.asked[r], found.estimate[r], max(-1, found.low[r]), min(1, found.high[r]))
                        theirs = (s.n_asked / s.n_total, s.estimate, s.ci_low, s.ci_high)
                        np.testing.assert_allclose(ours, theirs, atol=2e-3, err_msg=str((looks, size, G, r)))
                        break


def studies() -> list[Study]:
    out = []
    for n in (100, 500, 2000):
        for size in (1, 10):
            for K in (1, 5):
                out += [Study(n, K, size, "binary", p) for p in (0.5, 0.9)]
                out.append(Study(n, K, size, "graded"))
    out += [Study(n, 1, 10, "binary", p) for n in (200, 300) for p in (0.5, 0.9)]
    return out


def study(item: Study, looks: Any, R: int) -> dict[str, Any]:
    """One study at no difference, the planned one, and twice that."""
    rule = StoppingRule(looks=looks)
    rows: dict[str, Any] = {}
    for times in (0, 1, 2):
        delta = item.delta * times
        if item.kind == "binary" and item.accuracy - delta < 0.03:
            continue
        rng = np.random.default_rng([SEED, times, *item.name.encode()])
        step = max(1, BLOCK // item.n)
        parts = [stop(item.sums(rng, min(step, R - start), delta), item.size, rule) for start in range(0, R, step)]
        d, asked, estimate, plain, low, high, fixed, mean = (
            np.concatenate([getattr(x, f) for x in parts]) for f in Stopped.__dataclass_fields__
        )
        known = np.isfinite(low)
        sd = float(mean.std())
        rows[str(times)] = {
            "replications": R,
            "looks": len(rule.order(item.G).units),
            "found": float((d > 0).mean() if times else (d != 0).mean()),
            "fixed": float((fixed > 0).mean() if times else (fixed != 0).mean()),
            "covered": float(((low - 1e-9 <= delta) & (delta <= high + 1e-9))[known].mean()),
            "bias": float((estimate - delta).mean()) / sd,
            "bias_plain": float((plain - delta).mean()) / sd,
            "below": float((estimate < delta - 1e-12).mean() + 0.5 * (np.abs(estimate - delta) <= 1e-12).mean()),
            "asked": float(asked.mean()),
        }
    return rows
