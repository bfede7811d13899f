"""Stopping early: errors, power, coverage, bias and cost of the whole procedure, by simulation.

    python benchmarks/coverage_sequential.py [PAGE] [--replications N] [--only WORD] [--state FILE]

The looks are the library's own; what they see of equal clusters is computed by arrays. What is finished is kept in
--state, so that a run that was stopped goes on where it was. With a page, the tables replace what stands there
between the marks.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, special

from harness_noise import as_scores
from harness_noise.extra.boundaries import critical_values, drift_for_power, exits_above, normal_z, predictive_power
from harness_noise.extra.partial import Part
from harness_noise.extra.stopping.api import estimate_from_part
from harness_noise.extra.stopping.growing import with_all_of_b
from harness_noise.extra.stopping.observed import Observed, repeats_enough
from harness_noise.extra.stopping.rules import Look, Order, StoppingRule, Taken
from harness_noise.settings import Settings
from harness_noise.stats.power import noncentrality

SEED = 20261123
ALPHA = 0.05
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "tables"
BLOCK = 4_000_000
"""Scores that are drawn at a time."""
START, END = "<!-- tables: make coverage -->", "<!-- end of tables -->"


@dataclass(frozen=True)
class Study:
    """A comparison of a run that grows with a finished one."""

    n: int
    K: int = 1
    size: int = 1
    """Questions per cluster."""
    accuracy: float = 0.5
    """Accuracy, of scores of 0 and 1; 0: the scores are graded."""
    references: int | None = None
    """Runs that are known beside B; None: nothing is known of the questions that were not asked, B's scores neither."""
    looks: Any = 20
    depth: bool = False
    """Whether all answers to a question come before the next question."""

    @property
    def name(self) -> str:
        what = f"accuracy {self.accuracy:g}" if self.accuracy else "graded"
        known = "" if self.references is None else f", B and {self.references} references known"
        word = "anytime" if self.looks == "anytime" else "looks"
        order = ", depth first" * self.depth
        return f"{word}: {self.n} questions, K = {self.K}, clusters of {self.size}, {what}{known}{order}"

    def answers(self, rng: np.random.Generator, R: int, delta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(R, n, K) scores of A and of B, and (R, n, references); clusters share difficulty, models most of it."""

        def part() -> np.ndarray:
            own = rng.standard_normal((R, self.n))
            if self.size == 1:
                return own
            each = np.repeat(rng.standard_normal((R, self.n // self.size)), self.size, axis=1)
            return math.sqrt(0.7) * own + math.sqrt(0.3) * each

        shared, out = part(), []
        for gap, K in ((delta, self.K), (0.0, self.K), *[(0.0, 1)] * (self.references or 0)):
            latent = math.sqrt(0.5) * shared + math.sqrt(0.25) * part()
            if self.accuracy:
                rate = special.ndtr((special.ndtri(self.accuracy + gap) - latent) / 0.5)
                out.append((rng.random((R, self.n, K)) < rate[..., None]).astype(float))
            else:
                out.append(special.ndtr(2 * latent)[..., None] + 0.2 * rng.standard_normal((R, self.n, K)) + gap)
        known = np.concatenate([x[..., :1] for x in out[2:]], axis=2) if out[2:] else np.empty((R, self.n, 0))
        return out[0], out[1], known

    @cached_property
    def delta(self) -> float:
        """The difference that the comparison of all answers finds with 80% power."""
        delta, G = 0.0, self.n // self.size
        for _ in range(3):  # the variance depends on it
            a, b, _ = self.answers(np.random.default_rng(1), max(30, BLOCK // 8 // (self.n * self.K)), delta)
            d = (a - b).mean(axis=2).reshape(-1, G, self.size).mean(axis=2)
            delta = float(noncentrality(ALPHA, 0.8, G - 1)) * float(d.std()) / math.sqrt(G)
        return delta


@dataclass(frozen=True)
class RealPair(Study):
    """Two runs of public data: questions resampled, tilted to a given mean of A − B."""

    title: str = ""

    @property
    def name(self) -> str:
        return f"looks: {self.title}, {self.n} questions, K = {self.K}"

    def answers(self, rng: np.random.Generator, R: int, delta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Exponential tilting gives each question the weight e^{λd}, with λ so that the mean is `delta`."""
        a, b = real_pairs()[self.title]
        d = a.mean(axis=1) - b.mean(axis=1)

        def weights(tilt: float) -> np.ndarray:
            out = np.exp(tilt * (d - d.mean()))
            return out / out.sum()  # type: ignore[no-any-return]

        tilt = optimize.brentq(lambda x: float(weights(x) @ d) - delta, -80, 80)
        rows = rng.choice(len(d), (R, self.n), p=weights(tilt))
        x, y = (rng.permuted(side[rows], axis=2)[..., : self.K] for side in (a, b))
        return x, y, np.empty((R, self.n, 0))


@cache
def real_pairs() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Public runs of two models (or of one model at two tasks) on the same questions: (n, K) scores of each."""
    out = {}
    if (path := DATA / "gpqa_diamond_scores.csv").exists():
        import pandas as pd

        wide = pd.read_csv(path).pivot(index="item_id", columns=["model_id", "epoch"], values="score")
        out["GPQA diamond"] = tuple(wide[model].to_numpy() for model in wide.columns.levels[0])
    if (path := DATA / "cruxeval_output_codellama-7b_T0.2.json").exists():
        sides = []
        for name in ("output", "input"):
            text = (DATA / f"cruxeval_{name}_codellama-7b_T0.2.json").read_text()
            sides.append(json.loads(text)["raw_scored_generations"])
        out["CRUXEval, output and input"] = tuple(
            np.array([side[key] for key in sorted(side)], dtype=float) for side in sides
        )
    return out


@dataclass(slots=True)
class Ended:
    """How one run ended, with futility and without."""

    found: int = 0
    """Sign of the decision without futility."""
    asked: float = 1.0
    """Share of the answers with futility."""
    with_futility: int = 0
    tail: float | None = None
    """P(an outcome at least as high) at the true difference, in the stage-wise order: uniform where all is right."""
    covered: bool | None = None
    """By the interval that is reported with futility."""


def observations(study: Study, order: Order, a: np.ndarray, b: np.ndarray, known: np.ndarray) -> list[list[Observed]]:
    """What each of R runs says at each look, by arrays; the regression is the library's."""
    R, n, K = a.shape
    first = np.concatenate([np.zeros((R, n, 1)), np.cumsum(a, axis=2)], axis=2)
    B, out = b.mean(axis=2), [[] for _ in range(R)]  # type: list[list[Observed]]
    var = {k: a[..., :k].var(axis=2, ddof=1) for k in range(2, K + 1)}
    theirs = b.var(axis=2, ddof=1) if K > 1 else np.zeros((R, n))
    for look in range(1, len(order.blocks) + 1):
        k = order.answers(look)
        rows = np.flatnonzero(k)
        d = first[:, rows, k[rows]] / k[rows] - B[:, rows]
        u = len(rows) // study.size
        sums = d.reshape(R, u, study.size).sum(axis=2)
        mean, se = sums.mean(axis=1) / study.size, sums.std(axis=1, ddof=1) / study.size / math.sqrt(u)
        twice = np.flatnonzero(k >= 2)
        share, fewer = np.ones(R), float((1 / k[rows]).mean())
        if K > 1:
            own = (
                np.stack([var[k[i]][:, i] for i in twice], axis=1).mean(axis=1)
                if len(twice) >= 30
                else theirs.mean(axis=1)
            )
            share = np.minimum(1.0, own / len(rows) / (se**2 + own * (1 - fewer) / len(rows)))
        for r in range(R):
            o = Observed(
                estimate=float(mean[r]), se=float(se[r]) or None, df=u - 1, units=u, repeats=fewer,
                prediction=float(share[r]),
            )  # fmt: skip
            if study.references is not None and len(rows) < n and o.se:
                part = Part(rows, np.arange(n) // study.size, np.zeros(n, dtype=np.intp), None, drawn=True)
                o = with_all_of_b(o, first[r, rows, k[rows]] / k[rows], part, known[r], B[r])
            out[r].append(o)
    return out


def ended(rule: StoppingRule, order: Order, observed: list[Observed], delta: float, *, judged: bool) -> Ended:
    """One run, by the library's looks; it goes on after futility to see what it would have found."""
    out, taken, stopped = Ended(), Taken(), False
    for look, o in enumerate(observed, start=1):
        state = Look(rule, o, order.progress(look), taken)
        decision, taken = state.decision, state.taken
        sign = 0 if decision not in ("A better", "B better") else 1 if decision == "A better" else -1
        if decision is not None and not stopped:
            stopped, out.asked, out.with_futility = True, state.progress.answers / order.ends[-1], sign
            if judged and decision == "cannot be decided":
                _, low, high = state.report()
                out.covered = low is None or high is None or low <= delta <= high
        if decision not in (None, "cannot be decided"):
            out.found = sign
            if judged and state.z is not None and o.estimate is not None and o.se and o.df:
                theta = (state.z - normal_z((o.estimate - delta) / o.se, o.df)) / math.sqrt(taken.info[-1])
                out.tail = float(exits_above(taken.info, [*state.bounds(ALPHA)[:-1], state.z], theta).sum())
                out.covered = (ALPHA / 2 <= out.tail <= 1 - ALPHA / 2) if out.covered is None else out.covered
            break
    return out


def theory(rule: StoppingRule, order: Order) -> tuple[float, float]:
    """Power of the boundaries at δ, without futility and with it, by paths of a Brownian motion."""
    t = np.array(order.units, dtype=float) / order.units[-1]
    bounds, inner = np.array(critical_values(t, ALPHA)), np.zeros(len(t))
    for k in range(len(t) - 1):
        last = critical_values([*t[: k + 1], 1.0], ALPHA)[-1]
        inner[k] = (
            optimize.brentq(lambda z, k=k, last=last: predictive_power(z, t[k], last) - 0.05, 0, 9)
            if (predictive_power(0, t[k], last) < 0.05)
            else 0.0
        )
    drift = drift_for_power([1.0], [special.ndtri(1 - ALPHA / 2)], 0.8)
    steps = np.random.default_rng(3).standard_normal((100_000, len(t))) * np.sqrt(np.diff(t, prepend=0))
    z = np.cumsum(steps, axis=1) / np.sqrt(t) + drift * np.sqrt(t)
    above, below = z > bounds, np.abs(z) < inner
    first = np.where(above.any(axis=1), above.argmax(axis=1), len(t))
    lost = np.where(below.any(axis=1), below.argmax(axis=1), len(t))
    return float((first < len(t)).mean()), float((first < np.minimum(lost, len(t))).mean())


def studies() -> list[Study]:
    """Sizes, answers, clusters, kinds of scores, and what is known."""
    plain = [(80, 1, 1), (164, 1, 1), (500, 1, 1), (2000, 1, 1), (80, 5, 1), (500, 5, 1), (2000, 5, 1), (80, 10, 1),
             (164, 10, 1), (500, 1, 10), (2000, 1, 10), (500, 5, 10), (500, 10, 10)]  # fmt: skip
    out = [Study(*shape) for shape in plain]
    out += [Study(500, accuracy=0.9), Study(80, accuracy=0), Study(500, accuracy=0), Study(2000, 1, 10, 0)]
    out += [Study(n, references=r) for n in (80, 164, 500) for r in (0, 6)]
    out += [Study(164, K, references=6) for K in (5, 10)]
    out += [Study(500, 1, 10, references=6), Study(500, 5, 10, references=6)]
    out += [Study(164, 5, depth=True), Study(164, 5, references=6, depth=True)]
    known = {title: a.shape for title, (a, _) in real_pairs().items()}
    out += [RealPair(n, K, references=0, title=title) for title, (n, most) in known.items() for K in (1, most)]
    return out + [Study(n, 1, size, looks="anytime") for n, size in ((100, 1), (500, 10), (2000, 1))]


def study(item: Study, R: int) -> dict[str, Any]:
    """One study at no difference, δ, 2δ and 4δ."""
    rule = StoppingRule(looks=item.looks, asking="depth" if item.depth else "breadth")
    clusters = None if item.size == 1 else np.arange(item.n) // item.size
    order = rule.order(item.n, clusters, repeats=item.K)
    rows: dict[str, Any] = {}
    for times in (0, 1, 2, 4):
        delta = item.delta * times
        if item.accuracy and item.accuracy + delta > 0.97 and not isinstance(item, RealPair):
            continue
        rng = np.random.default_rng([SEED, times, *item.name.encode()])
        todo = R if times == 0 else R // 2
        step, runs = max(1, BLOCK // (item.n * item.K)), []
        for start in range(0, todo, step):
            observed = observations(item, order, *item.answers(rng, min(step, todo - start), delta))
            runs += [ended(rule, order, each, delta, judged=start + i < todo // 2) for i, each in enumerate(observed)]
        tails = np.array([run.tail for run in runs if run.tail is not None])
        right = (lambda x: x > 0) if times else (lambda x: x != 0)
        rows[str(times)] = {
            "replications": todo, "looks": len(order.blocks),
            "found": float(np.mean([right(run.found) for run in runs])),
            "futility": float(np.mean([right(run.with_futility) for run in runs])),
            "stagewise": float(((tails >= ALPHA / 2) & (tails <= 1 - ALPHA / 2)).mean()),
            "covered": float(np.mean([run.covered for run in runs if run.covered is not None])),
            "below": float((np.sign(0.5 - np.round(tails, 9)) / 2 + 0.5).mean()),  # a tie is half below
            "asked": float(np.mean([run.asked for run in runs])),
            "theory": theory(rule, order) if times == 1 and item.K == 1 and item.looks != "anytime" else None,
        }  # fmt: skip
    return rows


def se_rule(n: int, p: float, target: float, R: int) -> dict[str, Any]:
    """A run that stops at a standard error: coverage of the interval that it reports, and what it asked."""
    from harness_noise.extra.stopping.observed import observe_mean

    rng = np.random.default_rng([SEED, n, round(1000 * p), round(10_000 * target)])
    rule = StoppingRule(se=target)
    counts, covered, asked, gap = rule.order(n).ends, 0, [], []
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
    """A random subset of m of N questions, in whole clusters of this size."""
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
    for item in studies():
        out[item.name] = lambda item=item: study(item, R)
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
    for word, title in (("looks", "Twenty looks"), ("anytime", "Anytime: a look after every block")):
        rows = {name.partition(": ")[2]: item for name, item in found.items() if name.startswith(f"{word}: ")}
        if not rows:
            continue
        out += [
            f"## {title}", "",
            "Type I: how often a difference is found that is not there, without futility and with it. Power at δ, from "
            "half as many runs, likewise, in brackets that of the boundaries with normal scores of known variance. "
            "Covered: by the stage-wise interval, and by the reported one with futility, at no difference, δ, 2δ and "
            "4δ. Median bias: how far, in standard errors, the median of the estimate is from the truth (the largest). "
            "Asked: share of the answers at 0, δ, 2δ, 4δ, with futility. Coverage and bias are of half of the runs. "
            "Normal scores of known variance at 20 looks with futility cannot do with fewer than 72 / 75 / 36 / 13% "
            "of the information (dynamic programming, the same power).",
            "",
            "| comparison | replications | looks | type I | power at δ | stage-wise | covered | median bias | asked |",
            "|---|---|---|---|---|---|---|---|---|",
        ]  # fmt: skip
        for name, item in rows.items():
            each = list(item.values())
            middle = max(each, key=lambda x: abs(x["below"] - 0.5))
            power = "–"
            if "1" in item:
                of = "" if item["1"]["theory"] is None else f" ({' / '.join(map(_percent, item['1']['theory']))})"
                power = f"{_percent(item['1']['found'])} / {_percent(item['1']['futility'])}{of}"
            out.append(
                f"| {name} | {item['0']['replications']} | {item['0']['looks']} | {_percent(item['0']['found'])} / "
                f"{_percent(item['0']['futility'])} | {power} | "
                f"{' / '.join(_percent(x['stagewise']) for x in each)} | "
                f"{' / '.join(_percent(x['covered']) for x in each)} | {-float(special.ndtri(middle['below'])):.2f} | "
                f"{' / '.join(_percent(x['asked'], 0) for x in each)} |"
            )
        out.append("")
    out += _page_rest(found)
    return "\n".join(out).rstrip() + "\n"


def _page_rest(found: dict[str, Any]) -> list[str]:
    sections = (
        ("se", "Until a standard error is reached",
         "Coverage of the interval of `analyze` when the run stopped. Bias of the mean in its standard deviations.",
         (("covered", _percent), ("asked", _percent), ("bias", "{:.2f}".format)),
         "| run | replications | covered | asked | bias |"),
        ("part", "What a part of the questions says",
         "Covered: the mean (difference) of the whole benchmark. Population: the mean of all questions that could be "
         "asked. Variance ratio: mean squared error of the plain mean of the subset over that of the estimate. Gain "
         "reported: the ratio that the estimates themselves report. SE ratio: reported over real standard error.",
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
        from results import keep

        text = keep(options.page.stem, text)
        before = options.page.read_text(encoding="utf-8")
        head, _, rest = before.partition(START)
        _, _, tail = rest.partition(END)
        options.page.write_text(f"{head}{START}\n\n{text}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
