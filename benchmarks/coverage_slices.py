"""Slices, explanations and rank sets by simulation; one page of tables.

    python benchmarks/coverage_slices.py [docs/methods/coverage-slices.md] [--replications N]

Answers are Bernoulli. Questions have latent Gaussian difficulties, with an intraclass correlation of 0.3 within
clusters and of 0.8 between two models. What the library computes is called as it is (`stats`), but for the p-values of
single slices, which are made for all slices at once and checked against `compare` on the first replication.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import special, stats

from harness_noise import estimate_difference
from harness_noise.extra.regress.stats import regress
from harness_noise.extra.slices.stats import Joint, against_rest, heterogeneity, joint, pooled_unit, shrink
from harness_noise.stats.cluster_variance import satterthwaite
from harness_noise.stats.decision import benjamini_hochberg, holm

SEED = 20261122
ICC, BETWEEN = 0.3, 0.8
TABLES = Path(__file__).resolve().parents[2] / "shared" / "data" / "tables"


def answers(rng: np.random.Generator, clusters: np.ndarray, p: np.ndarray, models: int = 2) -> np.ndarray:
    """(n, models) 0/1 answers with success probabilities `p` (n, models) on average."""
    n, G = len(clusters), int(clusters.max()) + 1
    shared = rng.normal(size=(G, 1))[clusters] * np.sqrt(ICC) if n > G else 0.0
    rest = np.sqrt(1 - ICC) if n > G else 1.0
    base = shared + rest * rng.normal(size=(n, 1))
    latent = np.sqrt(BETWEEN) * base + np.sqrt(1 - BETWEEN) * rng.normal(size=(n, models))
    return (special.ndtr(latent) < p).astype(float)


def slice_p(found: Joint) -> np.ndarray:
    """(S,) p-values of "no difference in this slice", as `compare` has them."""
    V = np.einsum("gs,gs->s", found.scores, found.scores)
    q2 = found.q**2
    base = found.D.sum(axis=0) - q2.sum(axis=0)
    square = (found.D**2).sum(axis=0) - 2 * (found.D * q2).sum(axis=0) + q2.sum(axis=0) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        df = satterthwaite(base, square)
        p = 2 * stats.t.sf(np.abs(found.means) / np.sqrt(V), df)
    flat = np.sqrt(V) <= 1e-12
    p = np.where(flat & (np.abs(found.means) <= 1e-12), 1.0, p)
    clusters = (found.D > 0).sum(axis=0)
    return np.where(flat & (np.abs(found.means) > 1e-12), 2.0 ** (1 - clusters), p)


def codes(values: np.ndarray) -> np.ndarray:
    return np.unique(values, return_inverse=True)[1]


@dataclass(frozen=True)
class Scene:
    """Fields of n questions: 20 slices of one field; a coarser field that goes with it; and a number cut in four."""

    n: int
    G: int
    fields: tuple[np.ndarray, ...]
    clusters: np.ndarray
    bad: np.ndarray
    """(n,) the questions of the bad slice, 5% of all."""

    @classmethod
    def draw(cls, rng: np.random.Generator, n: int, G: int, correlated: bool) -> Scene:
        kind = rng.integers(20, size=n)
        clusters = rng.integers(G, size=n) if G else np.arange(n)
        fields = [kind]
        if correlated:
            length = kind + rng.normal(size=n) * 4
            fields += [kind // 4, np.searchsorted(np.quantile(length, [0.25, 0.5, 0.75]), length)]
        return cls(n, G, tuple(map(codes, fields)), codes(clusters), kind == 0)


def discoveries(R: int, n: int, G: int, correlated: bool, worse: float) -> tuple[float, float, float]:
    """False discovery rate, power for the bad slice, and how often the slices of the first field are said to differ."""
    fdr = power = told = 0.0
    for r in range(R):
        rng = np.random.default_rng((SEED, 1, r, n, G, correlated, int(100 * worse)))
        scene = Scene.draw(rng, n, G, correlated)
        p = np.full((n, 2), 0.7)
        p[scene.bad, 0] -= worse
        x = answers(rng, scene.clusters, p)
        d = x[:, 0] - x[:, 1]
        each, true = [], []
        for field in scene.fields:
            found = joint(d, field, scene.clusters)
            each.append(slice_p(found))
            true.append(np.bincount(field, weights=scene.bad) > 0 if worse else np.zeros(len(found.sizes), dtype=bool))
        if r == 0:
            at = scene.fields[0] == 1
            alone = estimate_difference(x[at, 0], x[at, 1], clusters=scene.clusters[at] if G else None)
            assert abs((alone.p_value if alone.p_value is not None else alone.p_sign) - each[0][1]) < 1e-9
        rejected, true_ones = benjamini_hochberg(np.concatenate(each)) < 0.05, np.concatenate(true)
        fdr += (rejected & ~true_ones).sum() / max(1, rejected.sum())
        power += rejected[0]
        test = heterogeneity(d, scene.fields[0], scene.clusters)
        told += test is not None and test.p_value < 0.05
    return fdr / R, power / R, told / R


def false_means(R: int, n: int, G: int, accuracy: float, sizes: str) -> float:
    """How often any slice of one run is said to differ from the rest where none does."""
    wrong = 0
    for r in range(R):
        rng = np.random.default_rng((SEED, 2, r, n, G, int(100 * accuracy)))
        share = rng.dirichlet(np.ones(20)) if sizes == "unequal" else np.full(20, 0.05)
        field = codes(rng.choice(20, n, p=share))
        clusters = codes(rng.integers(G, size=n)) if G else np.arange(n)
        x = answers(rng, clusters, np.full((n, 1), accuracy), 1)[:, 0]
        p = against_rest(x, field, clusters)
        p = p[~np.isnan(p)]
        wrong += bool(len(p)) and bool((benjamini_hochberg(p) < 0.05).any())
    return wrong / R


def shrinkage(R: int, S: int, spread: float, accuracy: float) -> tuple[float, float, float]:
    """Mean squared error of shrunken against raw, and coverage of both intervals on average over slices."""
    raw = drawn = covered = plain = total = 0.0
    for r in range(R):
        rng = np.random.default_rng((SEED, 3, r, S, int(1000 * spread), int(100 * accuracy)))
        size = rng.integers(5, 60, S)
        field = np.repeat(np.arange(S), size)
        room = accuracy * (1 - accuracy)
        size_beta = room / spread**2 - 1 if spread else 0.0
        theta = rng.beta(accuracy * size_beta, (1 - accuracy) * size_beta, S) if spread else np.full(S, accuracy)
        d = (rng.random(len(field)) < theta[field]).astype(float)
        found = joint(d, field, np.arange(len(d)))
        own = (found.scores**2).sum(axis=0)
        got = shrink(found.means, pooled_unit(found) / found.sizes, 0.95)
        if got is None:
            continue
        total += S
        raw += ((found.means - theta) ** 2).sum()
        drawn += ((got.values - theta) ** 2).sum()
        covered += ((got.low <= theta) & (theta <= got.high)).sum()
        half = stats.t.ppf(0.975, found.sizes - 1) * np.sqrt(own)
        plain += ((found.means - half <= theta) & (theta <= found.means + half)).sum()
    return drawn / raw, covered / total, plain / total


def coefficients(R: int, G: int, n: int) -> tuple[float, float, float]:
    """Coverage of a number's, a number of whole clusters' and a category's coefficient."""
    hits, counted = np.zeros(3), 0
    truth = np.array([0.03, 0.05, -0.1])
    for r in range(R):
        rng = np.random.default_rng((SEED, 4, r, G, n))
        clusters = codes(rng.integers(G, size=n))
        number = rng.normal(size=n)
        of_cluster = rng.normal(size=G)[clusters]
        level = rng.random(n) < 0.3
        p = 0.6 + np.column_stack([number, of_cluster, level]) @ truth
        shock = 0.1 * rng.normal(size=G)[clusters]
        y = (rng.random((n, 3)) < np.clip(p + shock, 0, 1)[:, None]).mean(axis=1)
        y += np.where((p + shock < 0) | (p + shock > 1), p + shock - np.clip(p + shock, 0, 1), 0.0)
        X = np.column_stack([np.ones(n), number, of_cluster, level])
        found = regress(y, X, clusters)
        if not found.identified[1:].all():
            continue
        counted += 1
        half = stats.t.ppf(0.975, found.df) * np.sqrt(found.variances)
        hits += np.abs(found.coefficients[1:] - truth) <= half[1:]
    return tuple(hits / counted)


def board(rng: np.random.Generator, n: int, G: int, means: np.ndarray) -> np.ndarray:
    """(G, M) sums by cluster of the answers of M models."""
    clusters = codes(np.arange(n) % G) if G else np.arange(n)
    x = answers(rng, clusters, np.broadcast_to(means, (n, len(means))), len(means))
    return x if not G else np.stack([np.bincount(clusters, weights=column) for column in x.T], axis=1)


def rank_coverage(R: int, n: int, G: int, means: np.ndarray) -> tuple[float, float]:
    """How often all rank sets hold the true ranks, ties at either end of theirs; and their mean width."""
    from harness_noise.extra.arena.rank_sets import rank_sets

    best = 1 + (means[:, None] < means[None, :] - 1e-9).sum(axis=1)
    worst = len(means) - (means[:, None] > means[None, :] + 1e-9).sum(axis=1)
    hits = width = 0.0
    for r in range(R):
        rng = np.random.default_rng((SEED, 5, r, n, G))
        found = rank_sets(board(rng, n, G, means), 0.95, rng, draws=400)
        hits += bool(((found.low <= best) & (worst <= found.high)).all())
        width += float((found.high - found.low + 1).mean())
    return hits / R, width / R


def by_holm(sums: np.ndarray, answers_of: np.ndarray | None = None) -> float:
    """Mean width of the sets that Holm's method gives over pairwise t tests."""
    from harness_noise.extra.ranks import from_decisions

    x = sums if answers_of is None else answers_of
    G, M = x.shape
    a, b = np.triu_indices(M, 1)
    d = x[:, a] - x[:, b]
    with np.errstate(invalid="ignore", divide="ignore"):
        t = d.mean(axis=0) / (d.std(axis=0, ddof=1) / np.sqrt(G))
    p = np.nan_to_num(2 * stats.t.sf(np.abs(t), G - 1), nan=1.0)
    told = holm(p) < 0.05
    better = np.zeros((M, M), dtype=bool)
    better[a, b], better[b, a] = told & (t > 0), told & (t < 0)
    found = from_decisions(better)
    return float((found.high - found.low + 1).mean())


def real_tables() -> Iterator[tuple[str, np.ndarray]]:
    """(n, M) question means of the leaderboards among the shared tables."""
    import pandas as pd

    path = TABLES / "matharena_aime_II.csv"
    if path.exists():
        frame = pd.read_csv(path, index_col=0)
        question = [str(name).split(".")[0] for name in frame.index]
        yield f"{path.stem}", frame.astype(float).groupby(question).mean().to_numpy()


def widths() -> Iterator[tuple[str, int, int, float, float]]:
    from harness_noise.extra.arena.rank_sets import rank_sets

    for name, x in real_tables():
        found = rank_sets(x, 0.95, np.random.default_rng(0))
        yield name, x.shape[1], len(x), float((found.high - found.low + 1).mean()), by_holm(x)
    for M, n in ((10, 200), (30, 500), (60, 1000)):
        rng = np.random.default_rng((SEED, 6, M))
        x = board(rng, n, 0, np.sort(rng.uniform(0.3, 0.8, M)))
        found = rank_sets(x, 0.95, np.random.default_rng(0))
        yield "simulated", M, n, float((found.high - found.low + 1).mean()), by_holm(x)


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def table(head: str, rows: Iterator[str]) -> Iterator[str]:
    names = head.split(" | ")
    yield f"| {head} |"
    yield "|" + "|".join(" --- " for _ in names) + "|"
    yield from rows
    yield ""


MEANS: dict[str, Callable[[], np.ndarray]] = {
    "all equal": lambda: np.full(8, 0.7),
    "four pairs of equals": lambda: np.repeat([0.5, 0.6, 0.7, 0.8], 2),
    "all equal, near the ceiling": lambda: np.full(8, 0.95),
}


def head(_R: int) -> Iterator[str]:
    """What the page is."""
    yield "# Slices, explanations and ranks by simulation"
    yield ""
    yield "Made by `benchmarks/coverage_slices.py`."
    yield ""


def said(R: int) -> Iterator[str]:
    """How exact the tables below are."""
    error = 100 * np.sqrt(0.05 * 0.95 / R)
    yield f"{R} replications of each cell: the simulation error of a rate of 5% is {error:.1f} points."
    yield ""


def of_slices(R: int) -> Iterator[str]:
    """The tables of slices and explanations."""
    yield "## Discoveries among slices of a difference"
    yield ""
    yield from said(R)
    yield (
        "600 questions, 20 slices. With correlated fields, five coarser slices and the quarters of a number are "
        "tried, too."
    )
    yield "A bad slice is 5% of the questions, on which A is right 40 points less often."
    yield ""
    yield from table("clusters | fields | bad slice | false discoveries % | bad slice found % | slices differ %", (
        f"| {G or 'none'} | {'three, correlated' if correlated else 'one'} | {'yes' if worse else 'no'} | "
        + " | ".join(map(percent, discoveries(R, 600, G, correlated, worse))) + " |"
        for G in (0, 60) for correlated in (False, True) for worse in (0.0, 0.4)
    ))  # fmt: skip
    yield "## Slices of one run against the rest, where none differs"
    yield ""
    yield from table("accuracy | clusters | sizes | any slice named %", (
        f"| {accuracy} | {G or 'none'} | {sizes} | {percent(false_means(R, 400, G, accuracy, sizes))} |"
        for accuracy in (0.5, 0.9, 0.97) for G, sizes in ((0, "equal"), (0, "unequal"), (40, "equal"))
    ))  # fmt: skip
    yield "## Shrunken against raw"
    yield ""
    yield "Slices of 5 to 59 questions. Spread: that of their true accuracies."
    yield ""
    yield from table("slices | accuracy | spread | squared error, shrunken / raw | coverage shrunken % | of t %", (
        f"| {S} | {accuracy} | {spread} | {found[0]:.2f} | {percent(found[1])} | {percent(found[2])} |"
        for S in (5, 20) for accuracy, spread in ((0.7, 0.0), (0.7, 0.05), (0.7, 0.15), (0.95, 0.0), (0.95, 0.03))
        for found in [shrinkage(R, S, spread, accuracy)]
    ))  # fmt: skip
    yield "## Coefficients of `regress`"
    yield ""
    yield from table("clusters | n | a number % | a number of whole clusters % | a category %", (
        f"| {G} | {n} | " + " | ".join(map(percent, coefficients(R, G, n))) + " |" for G, n in ((10, 200), (30, 300))
    ))  # fmt: skip


def of_ranks(R: int) -> Iterator[str]:
    """The tables of rank sets."""
    yield "## Rank sets of eight models"
    yield ""
    yield from said(R)
    yield "How often all sets together hold the ranks. With ties: both the best and the worst rank that a model shares."
    yield ""
    yield from table("means | n | clusters | all right % | mean width", (
        f"| {name} | {n} | {G or 'none'} | {percent(found[0])} | {found[1]:.1f} |"
        for name, means in MEANS.items() for n, G in ((15, 0), (50, 0), (300, 0), (2000, 0), (300, 15))
        for found in [rank_coverage(R, n, G, means())]
    ))  # fmt: skip
    yield "## Width against Holm over pairs"
    yield ""
    yield from table("table | models | questions | ours | Holm | ratio", (
        f"| {name} | {M} | {n} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} |"
        for name, M, n, ours, theirs in widths()
    ))  # fmt: skip


PARTS = {"head": head, "slices": of_slices, "ranks": of_ranks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", nargs="?", type=Path, help="write the tables there, too")
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part (repeatable)")
    options = parser.parse_args()
    lines = []
    for name in options.part or PARTS:
        for line in PARTS[name](options.replications):
            print(line, flush=True)
            lines.append(line)
    if options.page is not None:
        from results import write

        write(options.page, "\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
