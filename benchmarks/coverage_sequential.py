"""Stopping early: errors, power, coverage, bias and cost of the whole procedure, by simulation.

    python benchmarks/coverage_sequential.py [PAGE] [--replications N] [--only WORD] [--state FILE]

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

from harness_noise import as_scores
from harness_noise.analysis.observed import Observed, repeats_enough
from harness_noise.analysis.partial import estimate_from_part
from harness_noise.analysis.sequential import LookState, StoppingRule
from harness_noise.settings import Settings
from harness_noise.stats.cluster_variance import Cells
from harness_noise.stats.flips import Extension
from harness_noise.stats.power import noncentrality
from harness_noise.stats.sequential import _start

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
    def clusters(self) -> int:
        return self.n // self.size

    def sums(self, rng: np.random.Generator, R: int, delta: float) -> np.ndarray:
        """(R, G) sums of A − B by cluster; the runs share half of the difficulty, clusters .3 of each half."""

        def part() -> np.ndarray:
            x = math.sqrt(0.7) * rng.standard_normal((R, self.clusters, self.size))
            return x + math.sqrt(0.3) * rng.standard_normal((R, self.clusters, 1))

        shared = part()
        total = 0.0
        for sign, gap in ((1.0, 0.0), (-1.0, delta)):
            latent = math.sqrt(0.375) * (shared + part())
            if self.kind == "graded":
                noise = 0.5 * rng.standard_normal((R, self.clusters, self.size)) / math.sqrt(self.K)
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
            delta = float(noncentrality(ALPHA, 0.8, self.clusters - 1)) * float(d.std()) / math.sqrt(self.clusters)
        return delta


THETAS = np.concatenate([np.arange(-8, 12, 0.1), np.arange(12, 70, 0.3)])
"""E z at the last look, at which P(an outcome at least as high) is tabulated."""


class Tables:
    """Shifts of the stage-wise interval for one boundary: `stagewise_shifts` of all looks at once, by interpolation."""

    def __init__(self, shares: tuple[float, ...], bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        past = np.array([0, 0.3, 0.7, 1.2, 2, 3])
        grids = [b + past for b in bounds] + [np.linspace(0, bounds[-1], 7)]
        above = [np.empty((len(grid), len(THETAS))) for grid in grids]
        for i, theta in enumerate(THETAS):
            state, before, last = _start(), 0.0, len(shares) - 1
            for k, (t, b) in enumerate(zip(shares, bounds, strict=True)):
                for table, grid in [(above[k], grids[k])] + [(above[-1], grids[-1])] * (k == last):
                    table[:, i] = [before + state.leaves(t, theta, z) for z in grid]
                before += state.leaves(t, theta, b)
                state = state.next(t, theta, b) if k < last else state
        targets = special.ndtri([(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2])
        self.tables = []
        for k, (grid, p) in enumerate(zip(grids, above, strict=True)):
            t = shares[min(k, len(shares) - 1)]
            q = special.ndtri(np.clip(p, 1e-14, 1 - 1e-14))
            theta_at = np.array([np.interp(targets, row, THETAS) for row in q])
            self.tables.append((grid, grid[:, None] - theta_at * math.sqrt(t)))

    def __call__(self, k: int, z: np.ndarray) -> np.ndarray:
        """(R, 3) shifts where it stopped at look k (from 0) with these z; beyond a look's boundary, or at the last."""
        crossed = np.abs(z) > self.bounds[k]
        out = np.empty((len(z), 3))
        for side, (grid, shifts) in ((True, self.tables[k]), (False, self.tables[-1])):
            rows = np.flatnonzero(crossed == side)
            found = np.stack([np.interp(np.abs(z[rows]), grid, shifts[:, j]) for j in range(3)], axis=1)
            out[rows] = np.where((z[rows] < 0)[:, None], -found[:, ::-1], found)
        return out


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
        found = Cells(sizes, np.arange(u), np.zeros(u, dtype=np.intp), np.array([1 / (u * size)]), u)
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
    return sorted(out, key=lambda item: item.K)


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
        tie = 0.005 * sd  # 0/1 scores often differ by exactly 0 in all
        rows[str(times)] = {
            "replications": R,
            "looks": len(rule.order(item.clusters).units),
            "found": float((d > 0).mean() if times else (d != 0).mean()),
            "fixed": float((fixed > 0).mean() if times else (fixed != 0).mean()),
            "covered": float(((low - 1e-9 <= delta) & (delta <= high + 1e-9))[known].mean()),
            "bias": float((estimate - delta).mean()) / sd,
            "bias_plain": float((plain - delta).mean()) / sd,
            "below": float((estimate < delta - tie).mean() + 0.5 * (np.abs(estimate - delta) <= tie).mean()),
            "asked": float(asked.mean()),
        }
    return rows


def se_rule(n: int, p: float, target: float, R: int) -> dict[str, Any]:
    """A run that stops at a standard error: coverage of the interval that it reports, and what it asked."""
    from harness_noise.analysis.observed import observe_mean

    rng = np.random.default_rng([SEED, n, round(1000 * p), round(10_000 * target)])
    rule = StoppingRule(se=target)
    counts, covered, asked, gap = rule.order(n).counts(), 0, [], []
    for _ in range(R):
        x = (rng.random(n) < p).astype(float)
        cum = np.cumsum(x)
        for k in counts:  # a cheap look that skips those far from the target
            q = cum[k - 1] / k
            if math.sqrt(q * (1 - q) / max(k - 1, 1)) <= 1.02 * target or k == n:
                o = observe_mean([as_scores(x[:k])], Settings())
                if k == n or (o.se is not None and o.se <= target and o.units >= 30):
                    break
        assert o.interval is not None
        covered += o.interval[0] <= p <= o.interval[1]
        asked.append(k / n)
        gap.append(float(cum[k - 1] / k) - p)
    return {"replications": R, "covered": covered / R, "asked": float(np.mean(asked)),
            "bias": float(np.mean(gap) / np.std(gap))}  # fmt: skip


LATENT_MEANS = np.linspace(-1, 1.5, 12)


def leaderboard(rng: np.random.Generator, N: int, size: int) -> np.ndarray:
    """(N, 12) scores of 12 models, each better than the one before; clusters share difficulty."""
    difficulty = 1.2 * rng.standard_normal(N)
    if size > 1:
        difficulty += 0.7 * np.repeat(rng.standard_normal(N // size), size)
    latent = LATENT_MEANS - difficulty[:, None] + 0.8 * rng.standard_normal((N, len(LATENT_MEANS)))
    return (latent > 0).astype(float)


def drawn(rng: np.random.Generator, N: int, m: int, size: int) -> tuple[np.ndarray, np.ndarray | None]:
    """A random part of m of N questions, in whole clusters of this size."""
    if size == 1:
        return rng.choice(N, m, replace=False), None
    rows = rng.choice(N // size, m // size, replace=False)[:, None] * size + np.arange(size)
    return rows.reshape(-1), np.repeat(np.arange(N // size), size)


@dataclass(frozen=True)
class Board:
    """What all N questions would say, of which a part is seen."""

    y: np.ndarray
    """(N,) question means of the new model."""
    X: np.ndarray
    """(N, R) those of the references."""
    b: np.ndarray | None = None
    """(N,) those of the model that is subtracted."""
    population: float | None = None
    """The mean (difference) over all questions that could be asked."""

    @property
    def truth(self) -> float:
        return float(self.y.mean() - (0.0 if self.b is None else self.b.mean()))


def parts(table: Any, N: int, m: int, size: int, R: int, seed: list[int]) -> dict[str, Any]:
    """Coverage of the whole benchmark's mean, and the variance of the plain mean over that of the estimate."""
    rng = np.random.default_rng([SEED, *seed])
    covered, population, errors, plain, gains, reported = 0, [], [], [], [], []
    for _ in range(R):
        board = table(rng)
        rows, labels = drawn(rng, N, m, size)
        found = estimate_from_part(board.y[rows], rows, board.X, labels, against=board.b)
        if found.estimate is None or found.se is None:  # a part that does not vary has no standard error
            continue
        covered += found.ci_low <= board.truth <= found.ci_high
        if board.population is not None:
            population.append(found.ci_low_population <= board.population <= found.ci_high_population)
        errors.append(found.estimate - board.truth)
        seen = board.y[rows] if board.b is None else board.y[rows] - board.b[rows]
        plain.append(seen.mean() - board.truth)
        gains.append(1.0 if found.gain is None else max(1.0, found.gain))
        reported.append(found.se**2)
    mse = float(np.mean(np.square(errors)))
    R = len(errors)
    return {"replications": R, "covered": covered / R, "ratio": float(np.mean(np.square(plain))) / mse,
            "gain": float(np.mean(gains)), "se_ratio": math.sqrt(float(np.mean(reported)) / mse),
            "population": float(np.mean(population)) if population else None}  # fmt: skip


def new_model(N: int, size: int, difference: bool) -> Any:
    """Ten older models predict a new one that is better than all but one, or its lead over the one before it."""
    spread = math.sqrt(1.2**2 + 0.8**2 + (0.7**2 if size > 1 else 0.0))
    rates = special.ndtr(LATENT_MEANS[10:] / spread)

    def table(rng: np.random.Generator) -> Board:
        Y = leaderboard(rng, N, size)
        if difference:
            return Board(Y[:, 11], Y[:, :10], Y[:, 10], float(rates[1] - rates[0]))
        return Board(Y[:, 11], Y[:, :10], None, float(rates[1]))

    return table


DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "tables"


def real_tables() -> dict[str, Board]:
    """Public tables, where they are at hand."""
    out: dict[str, Board] = {}
    if (path := DATA / "gpqa_diamond_scores.csv").exists():
        import pandas as pd

        found = pd.read_csv(path).groupby(["item_id", "model_id"])["score"].mean().unstack().to_numpy()
        out["GPQA diamond, the other model predicts"] = Board(found[:, 0], found[:, 1:])
        out["GPQA diamond, one model minus the other"] = Board(found[:, 0], found[:, :0], found[:, 1])
    if (path := DATA / "cruxeval_output_codellama-7b_T0.2.json").exists():
        means = []
        for name in ("output", "input"):
            scored = json.loads((DATA / f"cruxeval_{name}_codellama-7b_T0.2.json").read_text())[
                "raw_scored_generations"
            ]
            means.append({key: float(np.mean(value)) for key, value in scored.items()})
        keys = sorted(means[0], key=lambda key: int(key.split("_")[1]))
        y, x = (np.array([item[key] for key in keys]) for item in means)
        out["CRUXEval, the input task predicts the output task"] = Board(y, x[:, None])
    if (path := DATA / "matharena_aime_II.csv").exists():
        import pandas as pd

        aime = pd.read_csv(path).apply(pd.to_numeric, errors="coerce")
        question = aime["Question"].astype(int)
        means_of = aime.drop(columns="Question").groupby(question).mean().to_numpy()
        out["AIME II, all other models predict"] = Board(means_of[:, 0], means_of[:, 1:])
    return out


def auto_repeats(n: int, spread: float, R: int) -> dict[str, Any]:
    """K until enough against a fixed K of 10: standard error, coverage, answers used; difficulty Beta(s, s)."""
    rng = np.random.default_rng([SEED, n, round(100 * spread)])
    answers, covered, gap, wide, ratio = [], 0, [], [], []
    for _ in range(R):
        p = rng.beta(spread, spread, n)
        values = (rng.random((n, 10)) < p[:, None]).astype(float)
        K = next((k for k in range(2, 11) if repeats_enough([as_scores(values[:, :k])], Settings()).enough), 10)
        means = [values[:, :k].mean(axis=1) for k in (K, 10)]
        se, least = (float(x.std(ddof=1)) / math.sqrt(n) for x in means)
        half = 1.96 * se
        center = float(means[0].mean())
        covered += abs(center - 0.5) <= half
        gap.append(center - 0.5)
        wide.append(se)
        ratio.append(se / least)
        answers.append(K)
    return {"replications": R, "covered": covered / R, "answers": float(np.mean(answers)) / 10,
            "se_ratio": float(np.mean(ratio)), "bias": float(np.mean(gap) / np.mean(wide))}  # fmt: skip


def work(R: int) -> dict[str, Any]:
    """Everything that is simulated, by name."""
    out: dict[str, Any] = {}
    for looks in (5, "anytime"):
        for item in studies():
            out[f"{looks}: {item.name}"] = lambda item=item, looks=looks: study(item, looks, R)
    for p, target in ((0.5, 0.02), (0.9, 0.01), (0.7, 0.03), (0.97, 0.01)):
        out[f"se: accuracy {p:g}, 2000 questions, until {target:g}"] = lambda p=p, target=target: se_rule(
            2000, p, target, R
        )
    for N, m, size in ((500, 50, 1), (500, 100, 1), (2000, 200, 1), (1000, 300, 10)):
        for difference in (False, True):
            what = "the lead over the one before" if difference else "a new model"
            out[f"part: {what}, {m} of {N}, clusters of {size}"] = lambda N=N, m=m, size=size, difference=difference: (
                parts(new_model(N, size, difference), N, m, size, max(200, R // 2), [N, m, size, difference])
            )
    for name, board in real_tables().items():
        n = len(board.y)
        m = round(n * (0.25 if n > 100 else 0.6))
        out[f"part: {name}, {m} of {n}"] = lambda board=board, n=n, m=m: parts(
            lambda rng: board, n, m, 1, max(200, R // 2), [n]
        )
    for spread in (0.2, 1.0, 5.0):
        out[f"repeats: 300 questions, Beta({spread:g}, {spread:g})"] = lambda spread=spread: auto_repeats(
            300, spread, max(200, R // 2)
        )
    return out


def _percent(x: float, digits: int = 1) -> str:
    return f"{100 * x:.{digits}f}"


def page(found: dict[str, Any]) -> str:
    """The tables of what is known."""
    out: list[str] = []
    for looks, title in (("5", "Five looks"), ("anytime", "Anytime: a look after every block")):
        rows = {name.partition(": ")[2]: item for name, item in found.items() if name.startswith(f"{looks}: ")}
        if not rows:
            continue
        out += [
            f"## {title}", "",
            "Type I: how often a difference is found that is not there. Power: by stopping early, and of the "
            "comparison of all questions. Covered: by the reported interval, at no difference, δ and 2δ. Median bias: "
            "how far, in standard errors of all questions, the median of the estimate is from the truth (largest of "
            "the three); mean bias the same of its mean, in brackets that of the plain mean. Asked: share of the "
            "questions at 0, δ, 2δ.", "",
            "| comparison | replications | looks | type I | power at δ | covered | median bias | mean bias | asked |",
            "|---|---|---|---|---|---|---|---|---|",
        ]  # fmt: skip
        for name, item in rows.items():
            each = list(item.values())
            middle = max(each, key=lambda x: abs(x["below"] - 0.5))
            median = -float(special.ndtri(middle["below"]))
            mean, plain = (max((x[key] for x in each), key=abs) for key in ("bias", "bias_plain"))
            power = "–" if "1" not in item else f"{_percent(item['1']['found'])} of {_percent(item['1']['fixed'])}"
            out.append(
                f"| {name} | {item['0']['replications']} | {item['0']['looks']} | {_percent(item['0']['found'])} | "
                f"{power} | "
                f"{' / '.join(_percent(x['covered']) for x in each)} | {median:.2f} | {mean:.2f} ({plain:.2f}) | "
                f"{' / '.join(_percent(x['asked'], 0) for x in each)} |"
            )
        out.append("")
    out += _page_rest(found)
    return "\n".join(out).rstrip() + "\n"


def _page_rest(found: dict[str, Any]) -> list[str]:
    sections = (
        ("se", "Until a standard error is reached",
         "Coverage of the interval of `analyze` where it stopped; bias of the mean in its standard deviations.",
         (("covered", _percent), ("asked", _percent), ("bias", "{:.2f}".format)),
         "| run | replications | covered | asked | bias |"),
        ("part", "What a part of the questions says",
         "Coverage of the mean (difference) of the whole benchmark, and of that of all questions that could be asked; "
         "mean squared error of the plain mean of the part over that of the estimate; what the estimates themselves "
         "say it is; reported over real standard error.",
         (("covered", _percent), ("population", lambda x: "–" if x is None else _percent(x)),
          ("ratio", "{:.2f}".format), ("gain", "{:.2f}".format), ("se_ratio", "{:.2f}".format)),
         "| what is estimated | replications | covered | population | variance ratio | gain reported | SE ratio |"),
        ("repeats", "K until enough",
         "Against a fixed K of 10: share of the answers used, and the standard error in units of that with all 10.",
         (("covered", _percent), ("answers", _percent), ("se_ratio", "{:.3f}".format), ("bias", "{:.2f}".format)),
         "| run | replications | covered | answers used | SE ratio | bias |"),
    )  # fmt: skip
    out: list[str] = []
    for key, title, text, columns, head in sections:
        rows = {name.partition(": ")[2]: item for name, item in found.items() if name.startswith(f"{key}: ")}
        if not rows:
            continue
        out += [f"## {title}", "", text, "", head, "|" + "---|" * (len(columns) + 2)]
        for name, item in rows.items():
            cells = " | ".join(show(item[field]) for field, show in columns)
            out.append(f"| {name} | {item['replications']} | {cells} |")
        out.append("")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", nargs="?", type=Path, help="replace the tables of this page")
    parser.add_argument("--replications", type=int, default=2000)
    parser.add_argument("--only", default="", help="only what holds this word")
    parser.add_argument("--state", type=Path, help="keep here what is finished")
    options = parser.parse_args()
    state: dict[str, Any] = {}
    if options.state is not None and options.state.exists():
        state = json.loads(options.state.read_text(encoding="utf-8"))
    check()
    todo = work(options.replications)
    for name, run in todo.items():
        if options.only in name and name not in state:
            state[name] = run()
            print(name, json.dumps(state[name]), file=sys.stderr, flush=True)
            if options.state is not None:
                options.state.write_text(json.dumps(state, indent=1), encoding="utf-8")
    found = {name: state[name] for name in todo if name in state}
    text = page(found)
    if len(found) < len(todo):
        text = f"{len(found)} of {len(todo)} rows are computed.\n\n{text}"
    sys.stdout.write(text)
    if options.page is not None:
        before = options.page.read_text(encoding="utf-8")
        head, _, rest = before.partition(START)
        _, _, tail = rest.partition(END)
        options.page.write_text(f"{head}{START}\n\n{text}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
