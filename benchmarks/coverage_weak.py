"""Where intervals are known to be weak: coverage of the defaults there, and the code that such a row carries.

    python benchmarks/coverage_weak.py [docs/methods/coverage-weak.md] [--replications N] [--only WORD]… [--jobs N]

With --only, the rows whose name holds this word are computed, and replace those of the page; all others stay.

Every replication goes through the library's own functions, as a user's data would; differences of one answer each
through those below `estimate_difference`, which the first replications are held against. A cell is in order if its
intervals cover the truth in 93.5–98.5% of the replications, or if at least 95% of them cover it or carry a diagnostic
that says why not. The last parts count wrong decisions: of the gate, of the equivalence test, of combined rows.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy import special

import harness_noise as hn
from harness_noise import as_scores, estimate, estimate_difference, pass_at_k
from harness_noise.analysis.comparison import compare_runs
from harness_noise.analysis.mean import analyze_run, estimate_scores
from harness_noise.data.clusters import Fields
from harness_noise.data.measures import UNBOUNDED
from harness_noise.data.questions import Questions
from harness_noise.data.scores import CorpusScores, Group, Run, Scores
from harness_noise.errors import counted
from harness_noise.extra.corpus.estimating import corpus_difference, estimate_corpus
from harness_noise.extra.gate.judge import Bar, judge
from harness_noise.extra.regress.fitting import regress_runs
from harness_noise.extra.regress.results import Coefficient
from harness_noise.results.rows import Difference, Estimate
from harness_noise.settings import Settings
from harness_noise.stats.contrast import design
from harness_noise.stats.decision import skew_of, skewed_alike
from harness_noise.stats.intervals import Limits, t_limits
from harness_noise.stats.moments import mean_variance
from harness_noise.stats.pairs import extended_samples
from harness_noise.stats.resampling import wild_test

SEED = 20261122
BLOCK = 1000
"""Replications that are drawn at once where whole arrays are."""
LOW, HIGH, CODED = 0.935, 0.985, 0.95
QUIET = frozenset(
    {"single_repeat", "singleton_clusters", "negative_data_variance", "missing_repeats", "uses_all_repeats"}
)
"""Codes that are no warning about an interval."""

Row: TypeAlias = "Estimate | Difference | Coefficient | Short"
Draw = Callable[[np.random.Generator], tuple[Row, float]]


@dataclass(frozen=True)
class Cell:
    part: str
    name: str
    draw: Draw
    """One replication: the library's row, and the truth that its interval should hold."""
    share: float = 1.0
    """Share of the replications to run: some cells are slow."""
    mistaken: bool = False
    """Whether a user's choice is wrong here: the row shows how often that is noticed, and is in no order."""


@dataclass(frozen=True)
class Found:
    cell: Cell
    replications: int
    covered: float
    missing: float
    """Share of the replications without an interval; they do not count as covered."""
    codes: dict[str, float]
    either: float = 0.0
    """Share of the replications that cover the truth or carry a warning."""

    @property
    def in_order(self) -> bool:
        return LOW <= self.covered <= HIGH or self.either >= CODED


def _replicate(cell: Cell, R: int, seed: Sequence[int]) -> Found:
    rng = np.random.default_rng(list(seed))
    covered = missing = either = 0
    codes: Counter[str] = Counter()
    for _ in range(R):
        row, truth = cell.draw(rng)
        warnings = set(row.diagnostics) - QUIET
        codes.update(warnings)
        known = row.ci_low is not None and row.ci_high is not None
        holds = known and row.ci_low - 1e-9 <= truth <= row.ci_high + 1e-9
        missing += not known
        covered += holds
        either += holds or bool(warnings)
    seen = {code: count / R for code, count in codes.items() if count >= 0.005 * R}
    return Found(cell, R, covered / R, missing / R, seen, either / R)


# differences of two runs


@dataclass(frozen=True)
class Short:
    """The fields of a row that a cell reads."""

    ci_low: float | None
    ci_high: float | None
    diagnostics: tuple[str, ...]
    equivalent: bool = False


def paired(d: np.ndarray, labels: np.ndarray | None = None, **choices: Any) -> Short:
    """What `estimate_difference(d, 0, labels)` says, without what a simulation does not look at."""
    settings = Settings(**choices)
    plan = design(len(d), labels)
    nothing = np.zeros(len(d))
    m = mean_variance(d, plan, settings.se)
    if m.zero_variance[0] or np.isnan(m.variance[0]):
        row = estimate_difference(d, nothing, clusters=labels, **choices)
        return Short(row.ci_low, row.ci_high, row.diagnostics, row.verdict.startswith("equivalent"))
    far = extended_samples(d[None, :], plan, m, settings.se)
    codes = set[str]() if np.isnan(far.mean[0]) else {"few_flips"}
    level = 2 * settings.level - 1
    narrow = t_limits(m.mean, np.sqrt(m.variance), m.df, level).widened_to(m.mean, far, level)
    if settings.test == "wild":
        rng = np.random.default_rng(settings.seed)
        found = wild_test(d, plan, settings.resamples, rng)
        limits = Limits(*found.limits(settings.level)).widened_to(m.mean, far, settings.level)
    else:
        limits = t_limits(m.mean, np.sqrt(m.variance), m.df, settings.level).widened_to(m.mean, far, settings.level)
    width = 1.0 if np.abs(d).max() <= 1 else math.inf
    low, high = (float(np.clip(end.item(), -width, width)) for end in (limits.low, limits.high))
    equivalent = settings.margin is not None and bool(narrow.within(settings.margin)) and low <= 0 <= high
    known = not math.isnan(low + high)
    return Short(low if known else None, high if known else None, tuple(sorted(codes)), equivalent)


def check_paired() -> None:
    """The short way says what the whole way says."""
    rng = np.random.default_rng(SEED)
    for k in range(40):
        labels = None if k % 2 else np.arange(60) % 12
        d = (rng.random(60) < 0.1).astype(float) - (rng.random(60) < 0.05 * (k % 3))
        for choices in ({}, {"se": "cr3"}, {"test": "wild", "resamples": 199}, {"margin": 0.2}):
            short = paired(d, labels, **choices)
            whole = estimate_difference(np.maximum(d, 0), np.maximum(-d, 0), clusters=labels, **choices)
            np.testing.assert_allclose((short.ci_low, short.ci_high), (whole.ci_low, whole.ci_high), atol=1e-9)
            assert set(short.diagnostics) - QUIET == set(whole.diagnostics) - QUIET, (short, whole)
            if "margin" in choices:
                assert short.equivalent == whole.verdict.startswith("equivalent")


def few_wins(n: int, wins: int, labels: np.ndarray | None = None) -> Draw:
    """`wins` questions of n are expected to turn from wrong to right, none back."""

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        d = (rng.random(n) < wins / n).astype(float)
        return paired(d, labels), wins / n

    return draw


def broken_clusters(G: int, broken: int, size: int = 10) -> Draw:
    """Each cluster is broken with chance broken/G: there A fails four questions of five that B solves."""
    labels = np.repeat(np.arange(G), size)

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        bad = (rng.random(G) < broken / G)[labels]
        lost = bad & (rng.random(G * size) < 0.8)
        return paired(-lost.astype(float), labels), -0.8 * broken / G

    return draw


def zero_inflated_difference(n: int) -> Draw:
    """Graded answers: a tenth of the questions change at all, those by a skewed amount."""

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        change = np.where(rng.random(n) < 0.1, rng.beta(2, 5, n) * 0.8, 0.0)
        return paired(change), 0.1 * 0.8 * 2 / 7

    return draw


def _zipf(n: int, G: int) -> np.ndarray:
    """n questions in G clusters whose sizes fall as 1/rank."""
    share = 1 / np.arange(1, G + 1)
    sizes = np.maximum(1, np.floor(share / share.sum() * n)).astype(int)
    sizes[0] += n - sizes.sum()
    return np.repeat(np.arange(G), sizes)


def clustered_difference(labels: np.ndarray, skewed: bool, icc: float = 0.3, **choices: Any) -> Draw:
    """Differences with intraclass correlation `icc`; cluster effects normal, or exponential (skewed)."""
    n, G = len(labels), int(labels.max()) + 1

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        effect = rng.exponential(size=G) - 1 if skewed else rng.standard_normal(G)
        d = math.sqrt(icc) * effect[labels] + math.sqrt(1 - icc) * rng.standard_normal(n)
        return paired(d, labels, **choices), 0.0

    return draw


SWE_BENCH = np.repeat(np.arange(12), (231, 75, 44, 34, 32, 22, 22, 19, 10, 8, 2, 1))
"""The questions of SWE-bench Verified by repository."""


def flips_in(labels: np.ndarray, truth: float, icc: float) -> Draw:
    """Six questions of ten change; the share of wins among these is a cluster's own, with intraclass correlation."""
    G, share = int(labels.max()) + 1, 0.5 + truth / 1.2
    a, b = share * (1 - icc) / max(icc, 1e-9), (1 - share) * (1 - icc) / max(icc, 1e-9)

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        wins = (rng.beta(a, b, G) if icc else np.full(G, share))[labels]
        d = np.where(rng.random(len(labels)) < 0.6, np.where(rng.random(len(labels)) < wins, 1.0, -1.0), 0.0)
        return paired(d, labels), truth

    return draw


def informative_repeats(n: int) -> Draw:
    """Hard questions lose answers (time-outs): K depends on the difficulty."""

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        p = rng.beta(2, 2, n)
        values = (rng.random((n, 5)) < p[:, None]).astype(float)
        lost = rng.random((n, 5)) < 0.6 * (1 - p[:, None])
        lost[:, 0] = False
        return estimate(np.where(lost, np.nan, values)), 0.5

    return draw


def shared_runs(n: int, K: int) -> Draw:
    """Run j of A and run j of B share a prompt that moves all questions of both."""

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        difficulty, prompt = rng.standard_normal((n, 1)), 0.3 * rng.standard_normal(K)
        a, b = (difficulty + prompt + 0.1 * rng.standard_normal(K) + rng.standard_normal((n, K)) for _ in range(2))
        return estimate_difference(a, b, repeats_are="runs", runs_shared=True), 0.0

    return draw


# one run


def near_the_ceiling(p: float, n: int, G: int | None, K: int) -> Draw:
    """Right with probability p; clusters correlate by .3 on the latent scale."""
    threshold = float(special.ndtri(p))
    labels = None if G is None else np.arange(n) % G
    spread = math.sqrt(0.3)

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        latent = rng.standard_normal(n) * math.sqrt(0.7)
        latent += spread * (rng.standard_normal(n) if labels is None else rng.standard_normal(G)[labels])
        if K == 1:
            return estimate((latent < threshold).astype(float), clusters=labels), p
        # a question's own rate, so that its answers differ
        rate = special.ndtr((threshold - math.sqrt(0.5) * latent) / math.sqrt(0.5))
        values = (rng.random((n, K)) < rate[:, None]).astype(float)
        return estimate(values, clusters=labels), p

    return draw


GRADED: dict[str, tuple[Callable[[np.random.Generator, int], np.ndarray], float]] = {
    "Beta(20, 20)": (lambda rng, n: rng.beta(20, 20, n), 0.5),
    "Beta(60, 8)": (lambda rng, n: rng.beta(60, 8, n), 60 / 68),
    "zero-inflated": (lambda rng, n: np.where(rng.random(n) < 0.8, 0.0, rng.beta(2, 2, n)), 0.1),
    "three levels": (lambda rng, n: rng.choice([0.0, 0.5, 1.0], n, p=[0.1, 0.2, 0.7]), 0.8),
}


def graded(name: str, n: int) -> Draw:
    sample, truth = GRADED[name]
    return lambda rng: (estimate(sample(rng, n), range=(0.0, 1.0)), truth)


SKEWED: dict[str, tuple[Callable[[np.random.Generator, int], np.ndarray], float, bool]] = {
    "Beta(12, 1)": (lambda rng, n: rng.beta(12, 1, n), 12 / 13, True),
    "Beta(0.5, 3)": (lambda rng, n: rng.beta(0.5, 3, n), 1 / 7, True),
    "Beta(12, 1), range not known": (lambda rng, n: 10 * rng.beta(12, 1, n), 120 / 13, False),
    "three levels, range not known": (lambda rng, n: rng.choice([0.0, 5.0, 10.0], n, p=[0.1, 0.2, 0.7]), 8.0, False),
    "exponential": (lambda rng, n: 3 * rng.exponential(size=n), 3.0, False),
    "log-normal": (lambda rng, n: 3 * rng.lognormal(size=n), 3 * math.exp(0.5), False),
    "normal": (lambda rng, n: rng.normal(5, 1, n), 5.0, False),
}


def long_tail(name: str, n: int) -> Draw:
    sample, truth, known = SKEWED[name]
    bounds = (0.0, 1.0) if known else None
    return lambda rng: (estimate(sample(rng, n), range=bounds, interval="auto" if known else "t"), truth)


def costs(n: int, **settings: Any) -> Draw:
    """Log-normal costs of questions, σ = 1 on the logarithm."""
    return lambda rng: (analyze_run(_measured(rng.lognormal(size=n)), Settings(**settings)).estimates[0], math.exp(0.5))


def _measured(values: np.ndarray, per: np.ndarray | None = None) -> Run:
    """A run with one measure of each question."""
    part = replace(as_scores(values, metric="cost", bounds=UNBOUNDED), unit="$", per=per)
    return Run("m", "m", "test", scores=(part,))


def cost_difference(n: int) -> Draw:
    """Costs of two models that share what a question needs; A costs twice what B does."""

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        needs = rng.lognormal(0, 0.8, n)
        a, b = (times * needs * rng.lognormal(-0.18, 0.6, n) for times in (2.0, 1.0))
        return compare_runs([(_measured(a), _measured(b))], Settings()).comparisons[0], math.exp(0.32)

    return draw


def cost_of_solved(n: int) -> Draw:
    """Σ cost/Σ solved, where what is solved costs half."""

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        solved = (rng.random(n) < 0.5).astype(float)
        spent = rng.lognormal(-0.5, 1, n) * (1 - 0.5 * solved)
        return analyze_run(_measured(spent, solved[:, None]), Settings()).estimates[0], 1.5

    return draw


def unequal_clusters(labels: np.ndarray, p: float, icc: float) -> Draw:
    """Right with probability p; a cluster's own rate has a Beta distribution with this intraclass correlation."""
    a, b = p * (1 - icc) / icc, (1 - p) * (1 - icc) / icc

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        rates = rng.beta(a, b, int(labels.max()) + 1)[labels]
        return estimate((rng.random(len(labels)) < rates).astype(float), clusters=labels), p

    return draw


def hard_agent(n: int, partial: float) -> Draw:
    """3% of the tasks are solved, 10% give partial credit."""

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        u = rng.random(n)
        return estimate(np.where(u < 0.03, 1.0, np.where(u < 0.13, partial, 0.0))), 0.03 + 0.1 * partial

    return draw


def pass_at_two(n: int, K: int, solved: float) -> Draw:
    """A share of the questions is always solved; the others have rates between 0 and 1."""

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        rates = np.where(rng.random((n, 1)) < solved, 1.0, rng.random((n, 1)))
        values = (rng.random((n, K)) < rates).astype(float)
        item = replace(as_scores(values), metric="pass@2", values=pass_at_k(values, 2)[:, None])
        return estimate_scores(item, Settings()), 1 - (1 - solved) / 3

    return draw


def missing_when_wrong(n: int) -> Draw:
    """A tenth of the wrong answers is missing; half of the questions would be right."""

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        values = (rng.random((n, 1)) < 0.5).astype(float)
        return estimate(np.where((values == 0) & (rng.random((n, 1)) < 0.1), np.nan, values)), 0.5

    return draw


SHARED_KINDS: dict[str, tuple[Callable[[np.random.Generator, int], np.ndarray], float]] = {
    "0/1": (lambda rng, n: rng.beta(4, 4, n), 0.5),
    "graded": (lambda rng, n: rng.beta(2, 1, n), 2 / 3),
}


def shared_cause(kind: str, n: int, K: int, factor: float, **choices: Any) -> Draw:
    """K answers a question, all moved together by a cause that adds `factor` times the mean's own variance."""
    sample, truth = SHARED_KINDS[kind]
    between = 1 / 36 if kind == "0/1" else 1 / 18
    within = 0.25 - between if kind == "0/1" else 0.04
    spread = math.sqrt(factor * K * (between + within / K) / n)

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        rates = sample(rng, n)[:, None] + spread * rng.standard_normal(K)
        values = rng.random((n, K)) < rates if kind == "0/1" else rates + 0.2 * rng.standard_normal((n, K))
        return estimate(values.astype(float), interval="t", **choices), truth

    return draw


def nested_clusters(G: int, ratio: float, by: str) -> Draw:
    """G outer clusters of 5 inner ones of 4 questions; outer effects have `ratio` times the variance of inner ones."""
    outer, inner = np.arange(20 * G) // 20, np.arange(20 * G) // 4
    contains = {"outer": {str(label): str(label // 5) for label in range(5 * G)}}

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        shared = math.sqrt(ratio) * rng.standard_normal(G)[outer] + rng.standard_normal(5 * G)[inner]
        values = math.sqrt(0.3) * shared + math.sqrt(0.7) * rng.standard_normal(20 * G)
        if by == "outer":
            return estimate(values, clusters=outer), 0.0
        scores = replace(as_scores(values, inner), outer=contains)
        return analyze_run(Run("m", "m", "simulated", scores=(scores,)), Settings()).estimates[0], 0.0

    return draw


def rare_category(m: int, n: int, p: float) -> Draw:
    """Right with probability p, in the category that m of n questions are of as in the other."""
    fields = Fields({"kind": ["rare"] * m + ["other"] * (n - m)}, names=("kind",))
    questions = Questions(tuple(map(str, range(n))), fields=fields)

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        scores = Scores("t", "acc", "none", questions, (rng.random((n, 1)) < p).astype(float))
        found = regress_runs(Run("m", "m", "simulated", scores=(scores,)), None, ["kind"], Settings())
        return next(row for row in found.coefficients if row.value == "rare"), 0.0

    return draw


def template_by_language(templates: int, languages: int, effects: str = "normal") -> Draw:
    """Every template in every language, one question each; both have an effect of their own on the difference."""
    rows, columns = np.divmod(np.arange(templates * languages), languages)

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        one, other = (
            np.zeros(k) if effects == "no" else
            0.5 * (rng.standard_normal(k) if effects == "normal" else rng.exponential(size=k) - 1)
            for k in (templates, languages)
        )  # fmt: skip
        d = one[rows] + other[columns]
        d += rng.standard_normal(len(d))
        return estimate_difference(d, np.zeros(len(d)), crossed=(rows, columns)), 0.0

    return draw


# metrics that are not means


def _f1(sums: np.ndarray) -> np.ndarray:
    hits, wrong, missed = np.moveaxis(sums, -1, 0)
    out: np.ndarray = 2 * hits / (2 * hits + wrong + missed)
    return out


def _bleu_like(sums: np.ndarray) -> np.ndarray:
    one, ones, two, twos = np.moveaxis(sums, -1, 0)
    out: np.ndarray = np.sqrt(one / ones * two / twos)
    return out


def _draw_f1(rng: np.random.Generator, n: int) -> np.ndarray:
    gold = rng.random(n) < 0.3
    said = rng.random(n) < np.where(gold, 0.8, 0.1)
    return np.stack([gold & said, said & ~gold, gold & ~said], axis=1).astype(float)


def _draw_bleu_like(rng: np.random.Generator, n: int) -> np.ndarray:
    length = rng.integers(8, 30, n)
    quality = rng.beta(3, 3, n)
    return np.stack(
        [rng.binomial(length, quality), length, rng.binomial(length - 1, quality * 0.6), length - 1], axis=1
    ).astype(float)


CORPUS: dict[
    str, tuple[Callable[[np.random.Generator, int], np.ndarray], Callable[[np.ndarray], np.ndarray], float]
] = {
    "F1": (_draw_f1, _f1, 0.48 / 0.61),
    "BLEU-like": (_draw_bleu_like, _bleu_like, math.sqrt(0.5 * 0.3)),
}


def corpus_metric(name: str, n: int, *, difference: bool = False) -> Draw:
    sample, value, truth = CORPUS[name]
    run = Run(model="m", name="m", harness="simulated")

    def item(rng: np.random.Generator) -> CorpusScores:
        return CorpusScores(
            task="t", metric=name.lower(), scorer="none", questions=Questions(tuple(map(str, range(n)))),
            stats=sample(rng, n)[:, None, :], value=value, bounds=(0.0, 1.0),
        )  # fmt: skip

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        settings = Settings(resamples=1000, seed=int(rng.integers(2**31)))
        if difference:
            return corpus_difference(item(rng), item(rng), run, run, settings).row, 0.0
        return estimate_corpus(item(rng), run, settings), truth

    return draw


def rare_class(share: float, found: float, wrong: float, n: int) -> Draw:
    """F1 of a class that a share of the questions is of; found, and taken for it, with these probabilities."""
    cells = np.array([share * found, (1 - share) * wrong, share * (1 - found)])
    kinds = np.vstack([np.eye(3), np.zeros(3)])
    questions = Questions(tuple(map(str, range(n))))

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        stats = np.repeat(kinds, rng.multinomial(n, [*cells, 1 - cells.sum()]), axis=0)[:, None]
        item = CorpusScores("t", "f1", "none", questions, stats=stats, value=_f1, bounds=(0.0, 1.0))
        run = Run("m", "m", "simulated", corpus=(item,))
        return estimate_corpus(item, run, Settings(resamples=100)), float(_f1(cells))

    return draw


# many tasks


def _tasks(values: Sequence[np.ndarray], model: str, grouped: bool) -> Run:
    names = tuple(f"task{t}" for t in range(len(values)))
    scores = tuple(as_scores(x, task=name) for name, x in zip(names, values, strict=True))
    groups = (Group("all", "score", "none", names, weighting="equal"),) if grouped else ()
    return Run(model=model, name=model, harness="simulated", scores=scores, groups=groups)


def equal_weights(tasks: int, *, difference: bool) -> Draw:
    """Tasks of 5 to 60 questions, each with the same weight."""
    sizes = 5 + np.arange(tasks) * 55 // max(1, tasks - 1)

    def one(rng: np.random.Generator, difficulty: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [(rng.random(len(p)) < p).astype(float) for p in difficulty]

    def draw(rng: np.random.Generator) -> tuple[Row, float]:
        difficulty = [rng.beta(2, 2, n) for n in sizes]
        a = _tasks(one(rng, difficulty), "a", True)
        if not difference:
            return analyze_run(a, Settings()).estimates[-1], 0.5
        b = _tasks(one(rng, difficulty), "b", True)
        return compare_runs([(a, b)], Settings()).comparisons[-1], 0.0

    return draw


def cells() -> list[Cell]:
    out: list[Cell] = []

    def add(part: str, name: str, draw: Draw, share: float = 1.0, mistaken: bool = False) -> None:
        out.append(Cell(part, name, draw, share, mistaken))

    part = "Few flips"
    for n in (100, 500):
        for wins in (3, 5, 8):
            add(part, f"{wins} wins of {n} expected, no loss", few_wins(n, wins))
    for G in (20, 30, 100):
        for broken in (2, 4):
            add(part, f"{broken} of {G} clusters broken", broken_clusters(G, broken))
    part = "Graded differences, most of them 0"
    for n in (30, 100, 500):
        add(part, f"n = {n}", zero_inflated_difference(n))
    part = "Clusters of unequal size, ICC of the differences .3"
    for n, G in ((200, 20), (500, 50)):
        for tail in (False, True):
            name = f"Zipf sizes, n = {n}, G = {G}, {'skewed' if tail else 'normal'}"
            add(part, f"{name}, CR2", clustered_difference(_zipf(n, G), tail))
            add(part, f"{name}, CR3", clustered_difference(_zipf(n, G), tail, se="cr3"))
            add(part, f"{name}, wild", clustered_difference(_zipf(n, G), tail, test="wild", resamples=999), 0.2)
    part = "Wins and losses in clusters of unequal size"
    for name, labels in (("SWE-bench by repository", SWE_BENCH), ("Zipf sizes, n = 500, G = 50", _zipf(500, 50))):
        for truth in (0.0, 0.1, 0.3, 0.5):
            for icc in (0.0, 0.1):
                add(part, f"{name}, A − B = {truth:g}, ICC {icc:g}", flips_in(labels, truth, icc))
    for wins in (5, 20):
        labels = _zipf(500, 50)
        add(part, f"{wins} wins of 500 expected, no loss, Zipf sizes", few_wins(500, wins, labels))
    part = "Few clusters, skewed"
    for G in range(3, 9):
        labels = np.arange(10 * G) % G
        add(part, f"G = {G}, CR2", clustered_difference(labels, True))
        add(part, f"G = {G}, wild", clustered_difference(labels, True, test="wild", resamples=999), 0.2)
    part = "One run near the ceiling"
    for p in (0.97, 0.99, 0.995):
        add(part, f"p = {p}, n = 300, no clusters", near_the_ceiling(p, 300, None, 1))
        add(part, f"p = {p}, n = 300, K = 20", near_the_ceiling(p, 300, None, 20))
        for G in (20, 30):
            add(part, f"p = {p}, n = 300, G = {G}", near_the_ceiling(p, 300, G, 1))
            add(part, f"p = {p}, n = 300, G = {G}, K = 20", near_the_ceiling(p, 300, G, 20))
    part = "Graded single runs"
    for kind in GRADED:
        for n in (30, 100, 1000):
            add(part, f"{kind}, n = {n}", graded(kind, n))
    part = "Few scores with a long tail"
    for kind in SKEWED:
        for n in (12, 20, 30):
            add(part, f"{kind}, n = {n}", long_tail(kind, n))
    part = "Costs"
    for n in (30, 100, 500):
        add(part, f"log-normal, n = {n}", costs(n))
        add(part, f"log-normal, n = {n}, bootstrap-t", costs(n, interval="bootstrap-t", resamples=999), 0.2)
        add(part, f"difference, A costs twice B, n = {n}", cost_difference(n))
        add(part, f"cost of a solved question, p = 0.5, n = {n}", cost_of_solved(n))
    part = "One run in clusters of unequal size, ICC .3"
    for p in (0.97, 0.9, 0.8, 0.5):
        add(part, f"p = {p}, Zipf sizes, n = 1,000, G = 200", unequal_clusters(_zipf(1000, 200), p, 0.3), 0.5)
        add(part, f"p = {p}, equal sizes, n = 1,000, G = 200", unequal_clusters(np.arange(1000) % 200, p, 0.3), 0.5)
    part = "Few solved, or nearly all"
    for partial in (0.1, 0.25, 0.5):
        add(part, f"3% solved, 10% with credit {partial}, n = 89", hard_agent(89, partial))
    for K in (2, 5):
        for solved in (0.85, 0.93):
            add(part, f"pass@2, {100 * solved:.0f}% always solved, n = 164, K = {K}", pass_at_two(164, K, solved), 0.2)
    part = "Template and language"
    for T, L in ((10, 6), (20, 10), (40, 20)):
        add(part, f"{T} templates × {L} languages", template_by_language(T, L))
    for T, L in ((40, 5), (20, 10)):
        for effects in ("skewed", "no"):
            add(part, f"{T} templates × {L} languages, {effects} effects", template_by_language(T, L, effects), 0.2)
    part = "Corpus metrics"
    for metric in CORPUS:
        for n in (10, 20, 50):
            add(part, f"{metric}, n = {n}", corpus_metric(metric, n), 0.2)
            add(part, f"difference of {metric}, n = {n}", corpus_metric(metric, n, difference=True), 0.2)
    part = "F1 of a rare class"
    for share, hits, wrong, sizes in (
        (0.02, 0.8, 0.002, (100, 500)), (0.02, 0.8, 0.02, (100,)), (0.1, 0.7, 0.02, (50, 200)),
        (0.1, 0.7, 0.1, (50,)), (0.3, 0.8, 0.1, (100,)),
    ):  # fmt: skip
        for n in sizes:
            said = f"class of {100 * share:g}%, {100 * hits:g}% found, {100 * wrong:g}% false alarms, n = {n}"
            add(part, said, rare_class(share, hits, wrong, n))
    part = "A rare category in `regress`"
    for m, p in ((4, 0.5), (4, 0.7), (4, 0.85), (10, 0.5), (10, 0.85), (20, 0.7), (20, 0.85), (20, 0.95)):
        add(part, f"{m} of 120 questions, accuracy {p}", rare_category(m, 120, p))
    part = "Clusters within larger ones"
    for G, ratio in ((10, 0.0), (10, 0.5), (10, 2.0), (20, 0.0), (20, 0.5), (20, 1.0), (50, 0.25)):
        said = f"{G} outer clusters, " + (f"outer variance {ratio:g} × the inner" if ratio else "no outer effects")
        add(part, f"{said}, by the inner ones", nested_clusters(G, ratio, "inner"), mistaken=ratio > 0)
        add(part, f"{said}, by the outer ones", nested_clusters(G, ratio, "outer"))
    part = "57 tasks of equal weight"
    add(part, "one run", equal_weights(57, difference=False), 0.1)
    add(part, "difference", equal_weights(57, difference=True), 0.1)
    part = "Answers that are missing"
    for n in (100, 500):
        add(part, f"K depends on the difficulty, n = {n}", informative_repeats(n))
        add(part, f"missing when wrong, n = {n}", missing_when_wrong(n))
    part = "Runs that share their cause"
    for K in (3, 5):
        add(part, f"n = 100, K = {K}", shared_runs(100, K))
    part = "Repeats that share a cause, taken for independent answers"
    for kind in SHARED_KINDS:
        for K in (3, 5):
            for factor in (0, 1, 2):
                said = f"the cause adds {factor} × the mean's variance" if factor else "no common cause"
                draw = shared_cause(kind, 100, K, factor)
                add(part, f"{kind}, n = 100, K = {K}, {said}", draw, mistaken=factor > 0)
    return out


# wrong decisions


@dataclass(frozen=True)
class Decision:
    name: str
    nominal: float
    trial: Callable[[np.random.Generator], bool]
    """One replication without a difference that should be found: whether one was."""
    share: float = 1.0
    """Share of the replications to run: some cells are slow."""


def _alike(rng: np.random.Generator, rows: int, n: int, shift: float = 0.0) -> tuple[Run, Run]:
    """Two models on `rows` tasks; A is worse by exactly `shift` on each."""
    p = [rng.beta(2, 2, n) for _ in range(rows)]
    a = [(rng.random(n) < (1 - 2 * shift) * x).astype(float) for x in p]  # E p = 1/2
    b = [(rng.random(n) < x).astype(float) for x in p]
    return _tasks(a, "a", False), _tasks(b, "b", False)


def gate_trips(rows: int, margin: float, n: int = 100) -> Callable[[np.random.Generator], bool]:
    def trial(rng: np.random.Generator) -> bool:
        a, b = _alike(rng, rows, n, margin)
        return judge(a, [b], (), Bar(margin=margin), Settings()).failed

    return trial


def equivalent_on_the_margin(n: int, wins: float, margin: float) -> Callable[[np.random.Generator], bool]:
    """The true difference is the margin itself: `equivalent` is wrong."""

    def trial(rng: np.random.Generator) -> bool:
        d = np.where(rng.random(n) < wins, 1.0, 0.0)
        return paired(d, margin=margin).equivalent

    assert abs(wins - margin) < 1e-12
    return trial


def combined_finds(method: str, tasks: int, n: int) -> Callable[[np.random.Generator], bool]:
    def trial(rng: np.random.Generator) -> bool:
        rows = compare_runs([_alike(rng, tasks, n)], Settings()).comparisons
        found = hn.combine(*zip(*((row.diff, row.se, row.df) for row in rows), strict=True))
        p = next(item.p_value for item in found if item.method == method)
        return p is not None and p < 0.05

    return trial


def decisions() -> list[Decision]:
    out = []
    for rows, share in ((1, 1.0), (4, 0.5), (20, 0.1), (57, 0.04)):
        for margin in (0.0, 0.05):
            said = f"margin {margin:g}, A worse by exactly that" if margin else "no margin, no difference"
            out.append(
                Decision(f"gate over {counted(rows, 'row')} of 100, {said}", 0.025, gate_trips(rows, margin), share)
            )
    for n, wins in ((100, 0.05), (500, 0.006), (500, 0.01), (500, 0.05)):
        trial = equivalent_on_the_margin(n, wins, wins)
        out.append(Decision(f"`equivalent within {wins:g}` at a true {wins:g}, {n} questions", 0.05, trial))
    for tasks, n in ((57, 5), (20, 30)):
        for method in ("equal weights", "Stouffer", "Wilcoxon signed-rank"):
            trial = combined_finds(method, tasks, n)
            out.append(Decision(f"combined, {method}: {tasks} tasks of {n}", 0.05, trial, 0.06))
    return out


def data_limit_too_low(
    probabilities: Callable[[np.random.Generator], np.ndarray], K: int, truth: float, labels: np.ndarray | None = None
) -> Callable[[np.random.Generator], bool]:
    """The upper limit of the data noise lies below the data variance of the mean; runs that have none are drawn again.

    `probabilities` draws how often each question is answered right.
    """

    def trial(rng: np.random.Generator) -> bool:
        while True:
            p = probabilities(rng)
            row = hn.estimate((rng.random((len(p), K)) < p[:, None]).astype(float), labels)
            if row.var_data is not None:
                return row.se_data_upper is None or row.se_data_upper**2 < truth

    return trial


def limits() -> list[Decision]:
    out = []
    for n, share, K in ((50, 0.1, 2), (100, 0.1, 3), (200, 0.05, 2), (400, 0.02, 2)):

        def few(rng: np.random.Generator, n: int = n, share: float = share) -> np.ndarray:
            return np.where(rng.random(n) < share, rng.random(n), 1.0)

        truth = (share / 3 + (1 - share) - (1 - share / 2) ** 2) / n
        name = f"{100 * share:.0f}% of {n} questions undecided, the others always right, K = {K}"
        out.append(Decision(name, 0.05, data_limit_too_low(few, K, truth), 0.1))
    for a, b, n, K in ((30, 1, 400, 2), (1, 1, 100, 3), (1, 1, 20, 2)):

        def difficulties(rng: np.random.Generator, a: float = a, b: float = b, n: int = n) -> np.ndarray:
            return rng.beta(a, b, n)

        truth = a * b / ((a + b) ** 2 * (a + b + 1)) / n
        name = f"difficulty Beta({a}, {b}), {n} questions, K = {K}"
        out.append(Decision(name, 0.05, data_limit_too_low(difficulties, K, truth), 0.1))
    for name, labels in (
        ("one cluster of 40 and 20 of 3", np.repeat(np.arange(21), [40, *[3] * 20])),
        ("200 questions in 20 Zipf clusters", _zipf(200, 20)),
    ):
        n, sizes = len(labels), np.bincount(labels)

        def by_cluster(rng: np.random.Generator, labels: np.ndarray = labels, G: int = len(sizes)) -> np.ndarray:
            return (0.5 + 0.3 * np.sign(rng.standard_normal(G)))[labels]

        truth = 0.3**2 * float((sizes**2).sum()) / n**2  # the questions of a cluster have one difficulty
        out.append(
            Decision(
                f"{name}, .2 or .8 in all of one, K = 4", 0.05, data_limit_too_low(by_cluster, 4, truth, labels), 0.1
            )
        )
    return out


ROWS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "0/1, 10% gained, 10% lost": lambda rng, size: _gained_and_lost(rng, size, 0.1, 0.1),
    "0/1, 15% gained, 10% lost": lambda rng, size: _gained_and_lost(rng, size, 0.15, 0.1),
    "exponential": lambda rng, size: rng.exponential(size=size) - 1,
    "10% exponential, the others 0": lambda rng, size: (
        np.where(rng.random(size) < 0.1, rng.exponential(size=size), 0) - 0.1
    ),
    "5% gain 1, 25% lose 0.2": lambda rng, size: _gained_and_lost(rng, size, 0.05, 0.25, 0.2),
}
"""Differences of the questions of a task; all but the third have expectation 0."""


def _gained_and_lost(
    rng: np.random.Generator, size: tuple[int, ...], gained: float, lost: float, by: float = 1.0
) -> np.ndarray:
    u = rng.random(size)
    return (u < gained).astype(float) - by * (u > 1 - lost)


@dataclass(frozen=True)
class Summed:
    """Tasks whose differences are added up, by Stouffer's method and by inverse variance."""

    kind: str
    tasks: int
    n: int

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.tasks} tasks of {self.n}"

    def shares(self, rng: np.random.Generator, R: int) -> list[float]:
        """How often p < 0.05 by either method, how often both are refused, and Stouffer's p < 0.05 where it is not."""
        x = ROWS[self.kind](rng, (R, self.tasks, self.n))
        mean, e = x.mean(axis=2), x - x.mean(axis=2, keepdims=True)
        V = np.maximum((e**2).sum(axis=2), 1e-12) / (self.n * (self.n - 1))
        t = mean / np.sqrt(V)
        z = -np.sign(t) * special.ndtri(special.stdtr(self.n - 1, -np.abs(t)))
        stouffer = np.abs(z.sum(axis=1)) > 1.96 * math.sqrt(self.tasks)
        inverse = np.abs((mean / V).sum(axis=1)) > 1.96 * np.sqrt((1 / V).sum(axis=1))
        refused = [skewed_alike([skew for row in rows if (skew := skew_of(row)) is not None]) for rows in e]
        return [float(found.mean()) for found in (stouffer, inverse, np.array(refused), stouffer & ~np.array(refused))]


def summed() -> list[Summed]:
    return [
        Summed("normal", 20, 30),
        Summed("0/1, 10% gained, 10% lost", 20, 100),
        Summed("exponential", 20, 30),
        Summed("10% exponential, the others 0", 5, 30),
        Summed("10% exponential, the others 0", 20, 100),
        Summed("5% gain 1, 25% lose 0.2", 5, 30),
        Summed("5% gain 1, 25% lose 0.2", 20, 30),
        Summed("0/1, 15% gained, 10% lost", 57, 100),
    ]


# the page


def _work(job: tuple[str, str, int]) -> str:
    """The line of one row by its name, in a process of its own; the seed depends on the name alone."""
    title, name, R = job
    if title == SKEWED_ROWS:
        item = next(item for item in summed() if item.name == name)
        rng = np.random.default_rng([SEED, *name.encode()])
        shares = np.mean([item.shares(rng, BLOCK) for _ in range(max(1, R // BLOCK))], axis=0)
        return f"| {name} | {max(1, R // BLOCK) * BLOCK} | {' | '.join(map(_percent, shares))} |"
    if title in RATES:
        decision = next(item for item in RATES[title]() if item.name == name)
        rng = np.random.default_rng([SEED, *name.encode()])
        count = max(200, int(R * decision.share))
        rate = sum(decision.trial(rng) for _ in range(count)) / count
        seen = f"{_percent(rate)} ± {_percent(_error(rate, count))}"
        return f"| {name} | {_percent(decision.nominal)} | {seen} | {count} |"
    cell = next(cell for cell in cells() if (cell.part, cell.name) == (title, name))
    found = _replicate(cell, max(200, round(R * cell.share)), [SEED, *f"{title}: {name}".encode()])
    covers = _percent(found.covered) + (f" ({_percent(found.missing)} without)" if found.missing else "")
    if found.covered < LOW:
        covers += f"; {_percent(found.either)} cover or warn"
    ok = "–" if cell.mistaken else "yes" if found.in_order else "**no**"
    return f"| {name} | {found.replications} | {covers} | {_codes(found)} | {ok} |"


def _percent(x: float) -> str:
    return f"{100 * x:.1f}"


def _error(rate: float, count: int) -> float:
    """Standard error of a simulated rate."""
    return math.sqrt(rate * (1 - rate) / count)


def _codes(found: Found) -> str:
    named = sorted(found.codes.items(), key=lambda item: -item[1])
    return ", ".join(f"`{code}` {100 * share:.0f}%" for code, share in named) or "–"


INTRODUCTION = (
    "# Where intervals are weak\n\n"
    "How often nominal 95% intervals hold the truth, in %, in the designs that are known to be hard. The seeds "
    "are fixed, and `make coverage` writes this page. A cell is in order if it covers 93.5–98.5%, or if at least "
    "95% of its replications cover or have a [diagnostic](../diagnostics.md) that warns. An interval that does "
    "not exist counts as not covering. If the choice of the user is the mistake, the row shows how often that is "
    "noticed, and the last column is –."
)
DECISIONS, LIMITS, SKEWED_ROWS = "Wrong decisions", "Limit of the data noise", "Rows that are skewed alike"
RATES = {DECISIONS: decisions, LIMITS: limits}
CELL_HEAD = "| design | replications | covers | codes | in order |"
SPECIAL = {
    DECISIONS: (
        "How often something is found that is not there, in %, ± the simulation's standard error.",
        "| decision | nominal | found | replications |",
    ),
    LIMITS: (
        "How often the 95% limit `se_data_upper` of one run lies below its true data noise, in %.",
        "| design | nominal | too low | replications |",
    ),
    SKEWED_ROWS: (
        "How often differences of several tasks, added up, have p < 0.05, in %. In all rows but the last there is no "
        "difference. Refused: both methods are null, with `skewed_rows`.",
        "| differences | replications | Stouffer | inverse variance | refused | Stouffer, unless refused |",
    ),
}
"""What stands above the tables that are no cells, and their heads."""


def plan() -> dict[str, list[str]]:
    """The names of all rows, by section, in their order."""
    out: dict[str, list[str]] = {}
    for cell in cells():
        out.setdefault(cell.part, []).append(cell.name)
    rates = {title: [item.name for item in make()] for title, make in RATES.items()}
    return out | rates | {SKEWED_ROWS: [item.name for item in summed()]}


def lines_of(text: str) -> dict[tuple[str, str], str]:
    """The rows of a page by section and name."""
    out = {}
    for section in text.split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        for line in re.findall(r"^\| .* \|$", body, re.M)[1:]:
            out[title, line[2:].partition(" | ")[0]] = line
    return out


def computed(jobs: Iterable[tuple[str, str, int]], processes: int) -> dict[tuple[str, str], str]:
    out: dict[tuple[str, str], str] = {}
    work = list(jobs)
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for (title, name, _), line in zip(work, pool.imap(_work, work), strict=True):
            out[title, name] = line
            print(f"{len(out)} of {len(work)}: {line}", file=sys.stderr, flush=True)
    return out


def page(lines: Mapping[tuple[str, str], str]) -> str:
    """The page of the rows that are there."""
    out, outside = [INTRODUCTION], []
    for title, names in plan().items():
        rows = [lines[title, name] for name in names if (title, name) in lines]
        text, head = SPECIAL.get(title, (None, CELL_HEAD))
        if title == DECISIONS:
            out.append(f"Not in order: {'; '.join(outside) or 'none'}.")
        if not rows:
            continue
        outside += [f"{title}: {row[2:].partition(' | ')[0]}" for row in rows if row.endswith("| **no** |")]
        out += [
            f"## {title}",
            *([text] if text else []),
            "\n".join([head, "|" + "---|" * (head.count("|") - 1), *rows]),
        ]
    return "\n\n".join(out) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", nargs="?", type=Path, help="write the tables there, too")
    parser.add_argument("--replications", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", action="append", help="only rows whose section and name hold this; the others stay")
    options = parser.parse_args()
    check_paired()
    wanted = [(title, name, options.replications) for title, names in plan().items() for name in names]
    only = options.only or [""]
    from results import read, write

    found = computed([job for job in wanted if any(word in f"{job[0]}: {job[1]}" for word in only)], options.jobs)
    if options.only and options.page is not None:
        found = lines_of(read(options.page)) | found
    text = page(found)
    sys.stdout.write(text)
    if options.page is not None:
        write(options.page, text)


if __name__ == "__main__":
    main()
