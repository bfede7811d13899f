"""What stopping when it is decided would have done with two runs whose answers are all there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..data.scores import Scores
from ..errors import InputError
from ..results.sequential import Replay
from ..settings import Settings
from ..stats.arrays import FloatArray, IntArray
from ..stats.cluster_variance import OF_RESIDUALS
from ..stats.contrast import Contrast, Design, QuestionStats, question_stats
from ..stats.flips import extended
from ..stats.moments import moments
from ..stats.partial import Part
from .observed import Observed, of_equal
from .partial import with_all_of_b, with_answers
from .ranges import score_range
from .sample import align, kernel
from .sequential import NOT_DECIDED, Look, LookState, Order, StoppingRule, Taken

ORDERS = 200
"""Random orders of a replay."""


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
            score_range((a.ends, b.ends), settings),
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
