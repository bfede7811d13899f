"""What stopping when it is decided would have done with two runs whose answers are all there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..results.sequential import Replay, Sequential
from ..settings import Settings
from ..stats.cluster_variance import OF_RESIDUALS
from ..stats.contrast import Contrast, Design, QuestionStats, question_stats
from ..stats.flips import extended
from ..stats.moments import moments
from ..stats.partial import Part
from ..stats.sequential import GAMMA, Spending, critical_values
from .matching import align
from .observed import Observed, of_equal
from .partial import with_all_of_b, with_answers
from .ranges import score_range
from .sample import as_scores, kernel
from .sequential import LOOKS, NOT_DECIDED, AskingOrder, Look, Looks, LookState, Order, StoppingRule, Taken

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..data.scores import Scores
    from ..stats.arrays import FloatArray, IntArray

ORDERS = 200
"""Random orders of a replay."""


def boundaries(
    looks: int = 5, level: float = 0.95, spending: Spending = "hsd", gamma: float = GAMMA
) -> tuple[float, ...]:
    """Critical |z| at each of `looks` looks at equal information, α/2 on each side.

    Parameters
    ----------
    looks
        How often is looked, 1 … 50; the last look has all the information.
    level
        1 − the error α of the whole procedure.
    spending
        How fast that error is spent on each side: Hwang, Shih & DeCani's family, or the types of O'Brien & Fleming's or
        Pocock's boundaries.
    gamma
        γ of that family; with a larger one more is spent early.

    Returns
    -------
    tuple of float
        (`looks`,) critical values of |z|, the first look's first.

    Raises
    ------
    InputError
        Looks, level, spending or gamma out of range.

    References
    ----------
    Hwang, Shih & DeCani (1990); Lan & DeMets (1983); Armitage, McPherson & Rowe (1969) for the integration.
    """
    StoppingRule(looks=looks, level=level, spending=spending)
    if isinstance(looks, str):
        raise InputError(
            "looks 'anytime' has no boundaries in z: they widen with every question; give a number of looks"
        )
    if not -40 <= gamma <= 40:
        raise InputError(f"gamma {gamma:g} is not within ±40")
    return critical_values([(k + 1) / looks for k in range(looks)], round(1 - level, 12), spending, gamma)


def compare_in_sequence(
    a: ArrayLike,
    b: ArrayLike,
    clusters: Sequence[object] | None = None,
    *,
    references: ArrayLike | None = None,
    looks: Looks = LOOKS,
    spending: Spending = "hsd",
    order: AskingOrder = "breadth",
    futility: bool = True,
    effect: float | None = None,
    margin: float = 0.0,
    level: float = 0.95,
    seed: int = 0,
) -> Sequential:
    """Replay a comparison that stops when it is decided, on two runs whose answers are all there.

    Parameters
    ----------
    a
        (n, K_A) scores, NaN where a repeat is missing; or (n,).
    b
        (n, K_B) scores of the same n questions in the same order, of a run that is finished.
    clusters
        (n,) labels of the questions that belong together, asked together; None: independent.
    references
        (n, R) question means of other runs that are finished, NaN where one has none; None: B alone says what A's part
        of the questions says of them all.
    looks
        How often is looked, at equal steps of information; "anytime" looks after every block.
    spending
        See `boundaries`.
    order
        "breadth": one answer to every question, then the second answers, and so on; "depth": all answers to a question
        before the next question.
    futility
        Also stop where the rest would not decide it with a probability of 95 %; costs no error.
    effect
        A planned difference: futility then spends its error of type II, in place of that probability.
    margin
        Also stop where A and B are equivalent within ±margin, on the scores' scale; 0: never.
    level
        1 − the error of the whole procedure.
    seed
        Of the random order of the questions (whole clusters).

    Returns
    -------
    Sequential
        The `sequential` object: decision, answers asked, estimate and interval that are valid after stopping.

    Raises
    ------
    InputError
        A choice out of range, or too few questions (clusters) for a look before the end.
    ValueError
        Arrays that do not fit together.

    References
    ----------
    Jennison & Turnbull (2000); Lan & DeMets (1983); Waudby-Smith et al. (2024) for "anytime".
    """
    rule = StoppingRule(
        looks=looks,
        margin=margin,
        level=level,
        seed=seed,
        spending=spending,
        futility=futility,
        effect=effect,
        asking=order,
    )
    parts = [as_scores(x, clusters) for x in (a, b)]
    n = len(parts[0].questions)
    if n != len(parts[1].questions):
        raise ValueError(f"{n} questions in a and {len(parts[1].questions)} in b")
    X = np.empty((n, 0)) if references is None else np.asarray(references, dtype=np.float64)
    X = X[:, None] if X.ndim == 1 else X
    if X.ndim != 2 or len(X) != n:
        raise ValueError(f"references must have one row for each of the {n} questions")
    scored = np.array([~np.isnan(part.values).all(axis=1) for part in parts]).all(axis=0)
    return replace(Pair.of(parts[:1], parts[1:]), references=X[scored]).run(rule).sequential


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two runs on the questions that both have, ready to be looked at in any order."""

    a: QuestionStats
    b: QuestionStats
    answers: FloatArray
    """(n, K_A) scores of A, those that are there first."""
    c: Contrast
    plan: Design
    shares: FloatArray | None
    """Weights of the tasks; None: by size."""
    bounds: tuple[float, float] | None
    settings: Settings
    higher_is_better: bool | None
    references: FloatArray
    """(n, R) question means of other runs."""

    @classmethod
    def of(
        cls,
        parts_a: Sequence[Scores],
        parts_b: Sequence[Scores],
        shares: list[float] | None = None,
        settings: Settings | None = None,
    ) -> Pair:
        """The contrast A − B of one task, or of a group's tasks with these weights.

        Raises:
            InputError: no question in common, or questions that are clustered in two crossed ways.
        """
        settings = settings or Settings()
        found = align(parts_a, parts_b, shares)
        a, b = found.a, found.b
        if a.empty or len(a) < 2:
            raise InputError(f"{a.name}: fewer than two questions have a score in both runs")
        plan = a.design()
        if plan.crossed is not None or plan.between_tasks:
            raise InputError(
                f"{a.name}: whole clusters of one kind are asked together, and these questions are clustered in two "
                "crossed ways, or by task: name one way with `cluster`"
            )
        c, _ = kernel([a, b], [1.0, -1.0], plan, settings)
        there = np.take_along_axis(a.values, np.argsort(np.isnan(a.values), axis=1, kind="stable"), axis=1)
        return cls(
            a.stats,
            b.stats,
            there,
            c,
            plan,
            a.shares,
            score_range((a, b), settings),
            settings,
            parts_a[0].higher_is_better,
            np.empty((len(a), 0)),
        )

    def order(self, rule: StoppingRule) -> Order:
        """The rule's order of A's answers."""
        clusters = self.plan.clusters if self.plan.clustered else None
        tasks = self.plan.strata if self.plan.strata.any() else None
        return rule.order(len(self.c.d), clusters, tasks, repeats=self.a.count)

    def observed(self, answers: IntArray, *, with_far: bool = True) -> Observed:
        """What A says with so many answers to each of the (n,) questions."""
        rows, whole = np.flatnonzero(answers), self.plan
        strata = whole.strata[rows]
        sizes = np.bincount(strata, minlength=int(whole.strata.max()) + 1).astype(np.float64)
        shares = sizes / len(rows) if self.shares is None else self.shares
        _, codes, each = np.unique(whole.clusters[rows], return_inverse=True, return_counts=True)
        if (sizes[shares > 0] == 0).any():
            return Observed(estimate=None, se=None, units=len(each))
        plan = Design((shares / np.maximum(sizes, 1))[strata], strata, codes, len(each), clustered=whole.clustered)
        asked = np.arange(self.answers.shape[1]) < answers[rows, None]
        a, b = question_stats(np.where(asked, self.answers[rows], np.nan)), self.b.take(rows)
        c = replace(self.c, d=a.mean - b.mean, v=self.c.v[rows], w=self.c.w[rows])
        m = moments(c, plan, self.settings.se)
        if m.zero_variance:
            return of_equal(c, m, plan, self.settings, self.bounds, {"higher_is_better": self.higher_is_better})
        width = None if self.bounds is None else self.bounds[1] - self.bounds[0]
        plain = Observed(
            estimate=m.mean,
            se=None if m.variance is None else math.sqrt(m.variance),
            df=m.df,
            units=len(each),
            far=extended(c.d, plan, self.settings.se) if with_far and m.variance is not None else None,
            bounds=None if width is None else (-width, width),
            higher_is_better=self.higher_is_better,
        )
        plain = with_answers(plain, a, b, plan.weights)
        if self.settings.se != OF_RESIDUALS or not plain.se:
            return plain
        part = Part(rows, whole.clusters, whole.strata, self.shares, drawn=True)
        return with_all_of_b(plain, a.mean, part, self.references, self.b.mean)

    def looks(self, rule: StoppingRule, *, with_far: bool = True) -> Iterator[LookState]:
        """The looks until it is decided, in the rule's order."""
        order, taken = self.order(rule), Taken()
        for number in range(1, len(order.blocks) + 1):
            observed = self.observed(order.answers(number), with_far=with_far)
            state = LookState(rule, observed, taken, order.progress(number))
            taken = state.taken
            yield state
            if state.decision() is not None:
                return

    def run(self, rule: StoppingRule) -> Look:
        """The last look."""
        order = self.order(rule)
        for number, state in enumerate(self.looks(rule), start=1):  # noqa: B007
            pass
        return state.look(rule.looks if rule.looks == "anytime" else len(order.blocks), number, order.seed)

    def replay(self, rule: StoppingRule, orders: int = ORDERS) -> Replay:
        """What the looks would have done in many random orders."""
        last = [
            list(self.looks(replace(rule, seed=rule.seed + k), with_far=rule.margin > 0))[-1] for k in range(orders)
        ]
        words = Counter(state.decision() or NOT_DECIDED for state in last)
        asked = np.array([state.progress.answers for state in last], dtype=np.float64)
        low, middle, high = (float(x) for x in np.quantile(asked, (0.1, 0.5, 0.9), method="inverted_cdf"))
        return Replay(
            orders=orders,
            n_total=last[0].progress.answers_total,
            n_mean=float(asked.mean()),
            n_median=round(middle),
            n_low=round(low),
            n_high=round(high),
            decisions={w: k / orders for w, k in words.most_common()},
        )
