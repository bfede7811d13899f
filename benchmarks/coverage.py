"""Coverage of the default intervals, and type I error of every test, by simulation; one page of tables.

    python benchmarks/coverage.py [docs/methods/coverage.md] [--replications N]

Every cell simulates benchmarks from a population of questions: latent Gaussian difficulties with an
intraclass correlation within clusters and 0.8 between two models, mapped to success probabilities
with the cell's distribution; answers are Bernoulli. Estimates are computed for all replications at
once, and checked against the library on the first of every cell.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import special

from harness_noise import estimate, estimate_difference
from harness_noise.stats.cluster_variance import Cells
from harness_noise.stats.intervals import Extension, binomial_skewness, level_sums, t_limits, tail_shift
from harness_noise.stats.tolerances import FEW_DF

ICC = 0.3
BETWEEN_MODELS = 0.8
Z = 1.959963984540054
SEED = 20251220

DIFFICULTY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Beta(.5,.5)": lambda u: np.sin(np.pi * u / 2) ** 2,
    "Beta(9,1)": lambda u: u ** (1 / 9),
    "uniform": lambda u: u,
}
MEAN = {"Beta(.5,.5)": 0.5, "Beta(9,1)": 0.9, "uniform": 0.5}
CLUSTERS = [(0, ""), (5, "balanced"), (5, "giant"), (10, "balanced"), (10, "giant"), (30, "balanced"), (30, "giant")]


@dataclass(frozen=True)
class Cell:
    n: int
    K: int
    G: int
    """0: no clusters."""
    shape: str
    difficulty: str
    effect: float
    """B's success probability is (1 − effect) times what it would be."""

    def labels(self) -> np.ndarray:
        if not self.G:
            return np.arange(self.n)
        if self.shape == "balanced":
            return np.arange(self.n) % self.G
        half = self.n // 2  # one cluster holds half of the questions
        return np.concatenate([np.zeros(half, dtype=int), 1 + np.arange(self.n - half) % (self.G - 1)])

    @property
    def seed(self) -> list[int]:
        names = list(DIFFICULTY)
        return [
            SEED,
            self.n,
            self.K,
            self.G,
            self.shape == "giant",
            names.index(self.difficulty),
            round(self.effect * 100),
        ]


def grid() -> Iterator[Cell]:
    for n in (10, 30, 100, 300):
        for G, shape in CLUSTERS:
            if n <= G:
                continue
            for K in (1, 4, 8):
                for difficulty in DIFFICULTY:
                    for effect in (0.0, 0.15):
                        yield Cell(n, K, G, shape, difficulty, effect)


def simulate(cell: Cell, R: int) -> tuple[np.ndarray, np.ndarray]:
    """(R, n) numbers of right answers of K, for two models."""
    rng = np.random.default_rng(cell.seed)
    labels, n = cell.labels(), cell.n
    icc = ICC if cell.G else 0.0

    def latent() -> np.ndarray:
        own = rng.standard_normal((R, n))
        return (
            own if not cell.G else np.sqrt(icc) * rng.standard_normal((R, cell.G))[:, labels] + np.sqrt(1 - icc) * own
        )

    shared = latent()
    inverse = DIFFICULTY[cell.difficulty]
    out = []
    for scale in (1.0, 1 - cell.effect):
        z = np.sqrt(BETWEEN_MODELS) * shared + np.sqrt(1 - BETWEEN_MODELS) * latent()
        out.append(rng.binomial(cell.K, np.clip(scale * inverse(special.ndtr(z)), 0, 1)))
    return out[0], out[1]


@dataclass(frozen=True)
class Moments:
    """CR2 of R means at once: what the kernel computes for each."""

    mean: np.ndarray
    variance: np.ndarray
    df: float
    cr1: np.ndarray
    naive: np.ndarray
    sums: np.ndarray
    """(R, G) cluster sums."""
    sizes: np.ndarray


def moments(d: np.ndarray, labels: np.ndarray) -> Moments:
    n = d.shape[1]
    sizes = np.bincount(labels).astype(float)
    order = np.argsort(labels, kind="stable")
    sums = np.add.reduceat(d[:, order], np.concatenate([[0], np.cumsum(sizes.astype(int))[:-1]]), axis=1)
    mean = d.mean(axis=1)
    e = sums - mean[:, None] * sizes
    V = (e**2 / (1 - sizes / n)).sum(axis=1) / n**2
    q2 = sizes**2 / (1 - sizes / n) / n
    D = sizes / (1 - sizes / n)
    df = (D.sum() - q2.sum()) ** 2 / (D @ D - 2 * D @ q2 + q2.sum() ** 2)
    G = len(sizes)
    V = np.where(V <= 1e-20, 0.0, V)
    return Moments(
        mean, V, float(df), (e**2).sum(axis=1) / n**2 * G / (G - 1), d.var(axis=1, ddof=1) / n, sums, sizes
    )  # fmt: skip


def difference_interval(m: Moments) -> tuple[np.ndarray, np.ndarray]:
    """t with CR2 and Satterthwaite's df, far limits where few differ; Bonett–Price where nothing varies."""
    G = len(m.sizes)
    clusters = Cells(m.sizes[None, :], np.arange(G), np.zeros(G, dtype=np.intp), np.full((1, 1), 1 / m.sizes.sum()))
    limits = t_limits(m.mean, np.sqrt(m.variance), m.df, 0.95)
    limits = limits.widened_to(m.mean, Extension(clusters, "cr2")(m.sums), 0.95)
    low, high = limits.low.copy(), limits.high.copy()
    flat = m.variance == 0
    if flat.any():
        means = m.sums[flat] / m.sizes
        n = min(G, float(m.df) + 1)  # clusters of very unequal size count as few
        p1 = (n * np.maximum(means, 0).mean(axis=1) + 1) / (n + 2)
        p2 = (n * np.maximum(-means, 0).mean(axis=1) + 1) / (n + 2)
        half = Z * np.sqrt((p1 + p2 - (p1 - p2) ** 2) / (n + 2))
        low[flat], high[flat] = np.maximum(-1, p1 - p2 - half), np.minimum(1, p1 - p2 + half)
    return np.clip(low, -1, 1), np.clip(high, -1, 1)


def skewness(m: Moments) -> np.ndarray:
    """Skewness of the means from sums of their deviations; 0 where degrees of freedom are few or nothing varies."""
    G = len(m.sizes)
    spread = np.broadcast_to(m.sizes * (1 - m.sizes / m.sizes.sum()), m.sums.shape)
    z = level_sums(m.sums - m.mean[:, None] * m.sizes, np.zeros(len(m.mean)), spread)
    varies = (m.variance > 0) & (m.df >= FEW_DF)
    squares = np.where(varies, (z**2).sum(axis=1), 1.0)
    return np.where(varies, (z**3).sum(axis=1) / squares**1.5 * np.sqrt(G * (G - 1)) / (G - 2), 0.0)


def wilson(p: np.ndarray, n: np.ndarray | float, critical: float) -> tuple[np.ndarray, np.ndarray]:
    c2 = critical**2
    centre = (p + c2 / (2 * n)) / (1 + c2 / n)
    half = critical / (1 + c2 / n) * np.sqrt(p * (1 - p) / n + c2 / (4 * n * n))
    return centre - half, centre + half


def run_interval(m: Moments, right: np.ndarray, K: int, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Wilson with n = p(1 − p)/se² and t's critical value, its end moved out on the side of a long tail; n near G where
    few clusters hold a failure."""
    G, n_answers = len(m.sizes), right.shape[1] * K
    order = np.argsort(labels, kind="stable")
    starts = np.concatenate([[0], np.cumsum(m.sizes.astype(int))[:-1]])
    holds = [np.maximum.reduceat(kind[:, order], starts, axis=1).sum(axis=1) for kind in (right < K, right > 0)]
    unknown = np.maximum(0.0, 1 - np.minimum(*holds) / min(10, G))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.nan_to_num(m.variance / (m.mean * (1 - m.mean)))
    found = np.where(found < 1 / G, (1 - unknown) * found + unknown / G, found)
    size, t = 1 / np.maximum(found, 1 / n_answers), float(special.stdtrit(m.df, 0.975))
    low, high = wilson(m.mean, size, t)
    shift = np.vectorize(tail_shift)(skewness(m), np.vectorize(binomial_skewness)(m.mean, size), t)
    shift = shift * np.sqrt(m.variance)
    return low + np.minimum(shift, 0), high + np.maximum(shift, 0)


def covers(interval: tuple[np.ndarray, np.ndarray], truth: float) -> float:
    low, high = interval
    return float(((low <= truth + 1e-12) & (truth - 1e-12 <= high)).mean())


@dataclass(frozen=True)
class Coverage:
    cell: Cell
    difference: float
    difference_z: float
    """mean ± 1.96 · the SE that ignores clusters."""
    run: float
    run_z: float
    run_pooled: float
    """Wilson on n·K answers as if independent."""
    run_inspect: float
    """mean ± t_{G−1} · CR1, Inspect's `ci`."""
    icc: float
    """ICC of the differences, estimated by ANOVA over all replications; 0 without clusters."""


def coverage(cell: Cell, R: int) -> Coverage:
    a, b = simulate(cell, R)
    labels, K, n = cell.labels(), cell.K, cell.n
    x, y = a / K, b / K
    one, pair = moments(x, labels), moments(x - y, labels)
    p = MEAN[cell.difficulty]
    truth = p * cell.effect
    interval, alone = difference_interval(pair), run_interval(one, a, K, labels)
    _check(cell, a, b, (interval[0][0], interval[1][0]), (alone[0][0], alone[1][0]))
    z, z1 = Z * np.sqrt(pair.naive), Z * np.sqrt(one.naive)
    G = len(one.sizes)
    t = special.stdtrit(G - 1, 0.975) * np.sqrt(one.cr1)
    return Coverage(
        cell,
        covers(interval, truth),
        covers((pair.mean - z, pair.mean + z), truth),
        covers(alone, p),
        covers((one.mean - z1, one.mean + z1), p),
        covers(wilson(one.mean, n * K, Z), p),
        covers((one.mean - t, one.mean + t), p),
        _icc(x - y - truth, labels) if cell.G else 0.0,
    )


def _icc(d: np.ndarray, labels: np.ndarray) -> float:
    """Mean correlation of two differences of one cluster (their mean is known)."""
    m = moments(d, labels)
    pairs = float((m.sizes * (m.sizes - 1)).sum())
    return float(((m.sums**2).sum(axis=1) - (d**2).sum(axis=1)).mean() / pairs / (d**2).mean())


def _check(cell: Cell, a: np.ndarray, b: np.ndarray, pair: tuple[float, float], alone: tuple[float, float]) -> None:
    """The library says the same of the first replication."""
    K = cell.K
    x, y = ((np.arange(K) < counts[0][:, None]).astype(float) for counts in (a, b))
    labels = cell.labels() if cell.G else None
    d, e = estimate_difference(x, y, clusters=labels), estimate(x, clusters=labels)
    assert d.ci_low is not None
    assert e.ci_low is not None
    np.testing.assert_allclose((d.ci_low, d.ci_high), pair, atol=1e-9)
    np.testing.assert_allclose((e.ci_low, e.ci_high), np.clip(alone, 0, 1), atol=1e-9)


TESTS = ("t", "sign", "permutation", "bootstrap")


def type_one(cell: Cell, R: int, B: int = 999) -> dict[str, float]:
    """Share of replications with p < 0.05 where A and B are alike; resamples are shared by all of them."""
    a, b = simulate(cell, R)
    m = moments((a - b) / cell.K, cell.labels())
    rng = np.random.default_rng([*cell.seed, 1])
    out = {}
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * special.stdtr(m.df, -np.abs(m.mean) / np.sqrt(m.variance))
    units = m.sums
    wins, losses = (units > 1e-9).sum(axis=1), (units < -1e-9).sum(axis=1)
    sign = np.minimum(1.0, 2 * special.bdtr(np.minimum(wins, losses), wins + losses, 0.5))
    sign[wins + losses == 0] = 1.0
    flat = m.variance == 0
    p[flat] = np.where(np.abs(m.mean[flat]) < 1e-12, 1.0, sign[flat])
    out["t"], out["sign"] = float((p < 0.05).mean()), float((sign < 0.05).mean())

    G = units.shape[1]
    if 2**G <= 10_000:
        signs = 1.0 - 2 * ((np.arange(2**G)[:, None] >> np.arange(G)) & 1)
        extra = 0
    else:
        signs, extra = rng.choice((-1.0, 1.0), (B, G)), 1
    observed = np.abs(units.sum(axis=1)) - 1e-9
    p = ((np.abs(signs @ units.T) >= observed).sum(axis=0) + extra) / (len(signs) + extra)
    out["permutation"] = float((p < 0.05).mean())

    weights = rng.multinomial(G, np.full(G, 1 / G), size=B).astype(float)
    means = (weights @ units.T) / (weights @ m.sizes)[:, None]
    out["bootstrap"] = float((_bca_p(means, m) < 0.05).mean())
    return out


def _bca_p(means: np.ndarray, m: Moments) -> np.ndarray:
    """(R,) BCa p-values as in `Distribution.p_value`, for all columns of (B, R) means."""
    B = len(means)
    n = m.sizes.sum()
    left = (m.sums.sum(axis=1, keepdims=True) - m.sums) / (n - m.sizes)
    influence = left.mean(axis=1, keepdims=True) - left
    with np.errstate(invalid="ignore", divide="ignore"):
        a = np.nan_to_num((influence**3).sum(axis=1) / (6 * (influence**2).sum(axis=1) ** 1.5))

    def below(value: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
        return (means < value - 1e-12).sum(axis=0), (means <= value + 1e-12).sum(axis=0)

    low, upto = below(m.mean)
    z0 = special.ndtri(np.clip((low + upto) / (2 * B), 0.5 / B, 1 - 0.5 / B))
    low, upto = below(0.0)
    shares = np.stack([(upto + 1) / (B + 1), low / (B + 1)])
    w = special.ndtri(shares) - z0
    with np.errstate(invalid="ignore"):
        slope = np.maximum(1 + a * np.where(np.isinf(w), 0.0, w), 1e-3)
        shares = special.ndtr(w / slope - z0)
    z = special.ndtri(np.maximum(np.minimum(shares[0], 1 - shares[1]), 1 / (B + 1)))
    with np.errstate(invalid="ignore", divide="ignore"):
        z = z / np.sqrt(m.variance / means.var(axis=0, ddof=1))
        beyond = (upto == 0) | (low == B)
        z = np.where(beyond, np.minimum(z, -np.abs(m.mean) / np.sqrt(m.variance)), z)
    p = np.minimum(1.0, 2 * special.stdtr(m.df, z))
    p[m.variance == 0] = 1.0
    return p


def bowyer(n: int, R: int) -> tuple[float, float]:
    """CLT and Wilson for n independent answers whose success rate is uniform (Bowyer et al. 2025)."""
    rng = np.random.default_rng([SEED, n])
    p = rng.random(R)
    mean = rng.binomial(n, p) / n
    half = Z * np.sqrt(mean * (1 - mean) / n)
    low, high = wilson(mean, float(n), Z)
    return float((np.abs(mean - p) <= half).mean()), float(((low <= p) & (p <= high)).mean())


def bands(cell: Cell) -> tuple[float, float]:
    """What the difference must cover; the upper end from 30 questions up."""
    low = 0.93 if cell.shape == "giant" else 0.935
    if cell.n < 30:
        return low, 1.0
    if cell.shape == "giant":
        return low, 0.99
    return low, 0.985 if cell.n == 30 and cell.K == 1 and cell.difficulty == "Beta(9,1)" else 0.97


def _name(cell: Cell) -> str:
    return f"{cell.G} {cell.shape}" if cell.G else "none"


def _described(c: Coverage) -> str:
    cell = c.cell
    return f"n = {cell.n}, {_name(cell)}, K = {cell.K}, {cell.difficulty}: {100 * c.run:.1f}"


def page(R: int) -> str:
    found = {cell: coverage(cell, R) for cell in grid()}
    rows = list(dict.fromkeys((c.n, c.G, c.shape, c.K) for c in found))
    names = list(DIFFICULTY)

    def pick(row: tuple[int, int, str, int], difficulty: str, effect: float) -> Coverage:
        n, G, shape, K = row
        return found[Cell(n, K, G, shape, difficulty, effect)]

    def percent(x: float) -> str:
        return f"{100 * x:.1f}"

    out = [
        "# Coverage",
        "",
        f"How often nominal 95% intervals hold the truth, in %. {R:,} replications per cell with fixed seeds "
        f"(simulation error {100 * np.sqrt(0.95 * 0.05 / R):.1f} points at 95%). `make coverage` writes this page. "
        "Questions are drawn from a population with the named difficulty. The latent difficulties correlate by "
        f"{ICC} within a cluster and by {BETWEEN_MODELS} between the models. “Giant” means that one cluster holds "
        "half of the questions.",
        "",
        "## Difference of two runs",
        "",
        "The default, t with CR2 and Satterthwaite's degrees of freedom (Bonett–Price if nothing varies). In each "
        "column: no effect / B right 15% less often (true difference 0.075, 0.135, 0.075). ICC: of the differences, at "
        "Beta(.5,.5). The last column is z with the SE that ignores clusters, worst of the six.",
        "",
        "| n | clusters | K | " + " | ".join(names) + " | ICC | naive z |",
        "|---|---|---|" + "---|" * (len(names) + 2),
    ]
    for row in rows:
        cells = [[pick(row, name, effect) for effect in (0.0, 0.15)] for name in names]
        text = [" / ".join(percent(c.difference) for c in pair) for pair in cells]
        worst = min(c.difference_z for pair in cells for c in pair)
        head = f"| {row[0]} | {_name(cells[0][0].cell)} | {row[3]} | "
        out.append(head + " | ".join(text) + f" | {cells[0][0].icc:.2f} | {percent(worst)} |")
    outside = [c for c in found.values() if not bands(c.cell)[0] <= c.difference <= bands(c.cell)[1]]
    out += [
        "",
        "The band is 93.5–97%. With a giant cluster it is 93–99%. At n = 30, K = 1, Beta(9,1) it ends at 98.5%, and "
        f"at n = 10 it has no upper end. Outside the band: {len(outside)} of {len(found)} cells"
        + (": " + "; ".join(f"n = {c.cell.n}, {_name(c.cell)}, K = {c.cell.K}, {c.cell.difficulty}, effect "
                            f"{c.cell.effect:g}: {percent(c.difference)}" for c in outside) if outside else "")
        + ".",
        "",
        "## One run",
        "",
        "The default, Wilson with n = p(1 − p)/se² and t's critical value. In each column: default / mean ± 1.96·SE "
        "without clusters / Wilson on n·K pooled answers / Inspect's `ci` (t with G − 1, CR1).",
        "",
        "| n | clusters | K | " + " | ".join(names) + " |",
        "|---|---|---|" + "---|" * len(names),
    ]  # fmt: skip
    for row in rows:
        cells = [pick(row, name, 0.0) for name in names]
        text = [" / ".join(map(percent, (c.run, c.run_z, c.run_pooled, c.run_inspect))) for c in cells]
        out.append(f"| {row[0]} | {_name(cells[0].cell)} | {row[3]} | " + " | ".join(text) + " |")
    low = [c for c in found.values() if c.run < 0.92 and c.cell.effect == 0]
    out += [
        "",
        "Below 92%: " + ("; ".join(map(_described, low)) or "none") + ".",
        "",
        "## Bowyer et al. (2025)",
        "",
        "n independent answers, success rate uniform.",
        "",
        "| n | CLT | Wilson |",
        "|---|---|---|",
    ]  # fmt: skip
    for n in (3, 10, 30, 100):
        clt, score = bowyer(n, 100_000)
        out.append(f"| {n} | {percent(clt)} | {percent(score)} |")
    out += [
        "",
        "## Type I error",
        "",
        "Two models that are alike: how often p < 0.05, in %. In each column: t / sign / permutation / bootstrap "
        f"(BCa). All four count clusters if there are any. {min(R, 2000):,} replications per cell.",
        "",
        "| n | clusters | K | " + " | ".join(names) + " |",
        "|---|---|---|" + "---|" * len(names),
    ]
    for row in rows:
        text = []
        for name in names:
            errors = type_one(Cell(row[0], row[3], row[1], row[2], name, 0.0), min(R, 2000))
            text.append(" / ".join(percent(errors[test]) for test in TESTS))
        label = f"{row[1]} {row[2]}" if row[1] else "none"
        out.append(f"| {row[0]} | {label} | {row[3]} | " + " | ".join(text) + " |")
    return scannable("\n".join(out) + "\n")


GRIDS = {
    "Difference of two runs": ("no effect", "an effect", "naive z"),
    "One run": ("default", "mean ± 1.96·SE", "Wilson, pooled answers", "Inspect's `ci`"),
    "Type I error": TESTS,
}
"""Section → what its cells hold, in their order."""
GRID = re.compile(r"^\| n \| clusters \| K \|.*\n\|-.*\n(?:\|.*\n)+", re.M)


def scannable(text: str) -> str:
    """The page with an overview above each grid: median and range of each method by clusters. The grid is folded."""
    parts = re.split(r"^(?=## )", text, flags=re.M)
    for i, part in enumerate(parts):
        names = GRIDS.get(part.partition("\n")[0].removeprefix("## "))
        grid = GRID.search(part)
        if names is None or grid is None:
            continue
        values: dict[str, list[list[float]]] = {}
        for line in grid[0].splitlines()[2:]:
            _, clusters, _, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            kept = values.setdefault(clusters, [[] for _ in names])
            for cell in cells[:3]:
                for method, x in zip(kept, cell.split(" / "), strict=False):
                    method.append(float(x))
            if len(cells) > 3:  # the last column is a method of its own
                kept[-1].append(float(cells[-1]))
        table = ["| clusters | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
        for clusters, methods in values.items():
            ranges = [f"**{np.median(x):.1f}** ({min(x):.1f} … {max(x):.1f})" for x in methods]
            table.append(f"| {clusters} | {' | '.join(ranges)} |")
        overview = "Median and range over n, K and difficulty:\n\n" + "\n".join(table)
        folded = f'<details markdown="1">\n<summary>Every cell</summary>\n\n{grid[0]}\n</details>\n'
        parts[i] = part[: grid.start()] + f"{overview}\n\n{folded}" + part[grid.end() :]
    return "".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", nargs="?", type=Path, help="write the tables there, too")
    parser.add_argument("--replications", type=int, default=10_000)
    options = parser.parse_args()
    text = page(options.replications)
    sys.stdout.write(text)
    if options.page is not None:
        from results import write

        write(options.page, text)


if __name__ == "__main__":
    main()
