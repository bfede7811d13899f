"""What stopping when it is decided would have done with two runs whose answers are all there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..results.sequential import Replay, Sequential
from ..settings import Settings
from ..stats.contrast import Contrast, Design
from ..stats.flips import extended
from ..stats.moments import moments
from ..stats.sequential import Spending, critical_values
from .matching import align
from .observed import Observed, of_equal
from .ranges import score_range
from .sample import as_scores, kernel
from .sequential import NOT_DECIDED, Look, Looks, LookState, Order, StoppingRule

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..data.scores import Scores
    from ..stats.arrays import FloatArray, IntArray

ORDERS = 1000
"""Random orders of a replay."""


def boundaries(looks: int = 5, level: float = 0.95, spending: Spending = "obrien-fleming") -> tuple[float, ...]:
    """Critical |z| at each of `looks` looks at equal information, two-sided.

    Parameters
    ----------
    looks
        How often is looked, 1 … 50; the last look has all the information.
    level
        1 − the error of the whole procedure.
    spending
        How fast that error α is spent, 2 (1 − Φ(z_{α/2}/√t)) or α log(1 + (e − 1) t).

    Returns
    -------
    tuple of float
        (`looks`,) critical values of |z|, the first look's first.

    Raises
    ------
    InputError
        Looks, level or spending out of range.

    References
    ----------
    Lan & DeMets (1983); Armitage, McPherson & Rowe (1969) for the integration.
    """
    StoppingRule(looks=looks, level=level)
    if isinstance(looks, str):
        raise InputError(
            "looks 'anytime' has no boundaries in z: they widen with every question; give a number of looks"
        )
    if spending not in ("obrien-fleming", "pocock"):
        raise InputError(f"spending {spending!r} is not one of obrien-fleming, pocock")
    return critical_values([(k + 1) / looks for k in range(looks)], round(1 - level, 12), spending)


def compare_in_sequence(
    a: ArrayLike,
    b: ArrayLike,
    clusters: Sequence[object] | None = None,
    *,
    looks: Looks = 5,
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
        (n, K_B) scores of the same n questions in the same order.
    clusters
        (n,) labels of the questions that belong together, asked together; None: independent.
    looks
        How often is looked, at equal numbers of questions; "anytime" looks after every block.
    margin
        Also stop where A and B are equivalent within ±margin, on the scores' scale; 0: never.
    level
        1 − the error of the whole procedure.
    seed
        Of the random order of the questions (whole clusters).

    Returns
    -------
    Sequential
        The `sequential` object: decision, questions asked, estimate and interval that are valid after stopping.

    Raises
    ------
    InputError
        Looks, level or margin out of range, or too few questions (clusters) for a look before the end.
    ValueError
        Arrays that do not fit together.

    References
    ----------
    Jennison & Turnbull (2000); Lan & DeMets (1983); Waudby-Smith et al. (2024) for "anytime".
    """
    rule = StoppingRule(looks=looks, margin=margin, level=level, seed=seed)
    parts = [as_scores(x, clusters) for x in (a, b)]
    if len(parts[0].questions) != len(parts[1].questions):
        raise ValueError(f"{len(parts[0].questions)} questions in a and {len(parts[1].questions)} in b")
    return Pair.of(parts[:1], parts[1:]).run(rule).sequential


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two runs on the questions that both have, ready to be looked at in any order."""

    c: Contrast
    plan: Design
    shares: FloatArray | None
    """Weights of the tasks; None: by size."""
    bounds: tuple[float, float] | None
    settings: Settings
    higher_is_better: bool | None

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
        return cls(c, plan, a.shares, score_range((a, b), settings), settings, parts_a[0].higher_is_better)

    def order(self, rule: StoppingRule) -> Order:
        clusters = self.plan.clusters if self.plan.clustered else None
        return rule.order(len(self.c.d), clusters, self.plan.strata if self.plan.strata.any() else None)

    def observed(self, rows: IntArray, *, with_far: bool = True) -> Observed:
        """What these questions say."""
        whole = self.plan
        strata = whole.strata[rows]
        sizes = np.bincount(strata, minlength=int(whole.strata.max()) + 1).astype(np.float64)
        shares = sizes / len(rows) if self.shares is None else self.shares
        _, codes, each = np.unique(whole.clusters[rows], return_inverse=True, return_counts=True)
        if (sizes[shares > 0] == 0).any():
            return Observed(estimate=None, se=None, units=len(each))
        plan = Design((shares / np.maximum(sizes, 1))[strata], strata, codes, len(each), clustered=whole.clustered)
        c = replace(self.c, d=self.c.d[rows], v=self.c.v[rows], w=self.c.w[rows])
        m = moments(c, plan, self.settings.se)
        if m.zero_variance:
            return of_equal(c, m, plan, self.settings, self.bounds, {"higher_is_better": self.higher_is_better})
        known = with_far and m.variance is not None
        width = None if self.bounds is None else self.bounds[1] - self.bounds[0]
        return Observed(
            estimate=m.mean, se=None if m.variance is None else math.sqrt(m.variance), df=m.df, units=len(each),
            far=extended(c.d, plan, self.settings.se) if known else None,
            bounds=None if width is None else (-width, width), higher_is_better=self.higher_is_better,
        )  # fmt: skip

    def run(self, rule: StoppingRule) -> Look:
        """Look until it is decided, in the rule's order."""
        order, look = self.order(rule), None
        for number in range(1, len(order.blocks) + 1):
            look = rule.look(order, look, self.observed(order.asked(number)))
            if look.stop:
                break
        assert look is not None
        return look

    def decide(self, rule: StoppingRule) -> tuple[str, int]:
        """Only the decision, and the questions that it took."""
        order = self.order(rule)
        taken: tuple[float, ...] = ()
        for number, n in enumerate(order.counts(), start=1):
            observed = self.observed(order.asked(number), with_far=rule.margin > 0)
            state = LookState(rule, observed, taken, n, order.n_total)
            decision, taken = state.decision(), state.taken
            if decision is not None:
                return decision, n
        return NOT_DECIDED, order.n_total

    def replay(self, rule: StoppingRule, orders: int = ORDERS) -> Replay:
        """The same in many random orders."""
        found = [self.decide(replace(rule, seed=rule.seed + k)) for k in range(orders)]
        asked = np.array([n for _, n in found], dtype=np.float64)
        counts = Counter(word for word, _ in found)
        low, middle, high = (float(x) for x in np.quantile(asked, (0.1, 0.5, 0.9), method="inverted_cdf"))
        return Replay(
            orders=orders, n_total=len(self.c.d), n_mean=float(asked.mean()), n_median=round(middle),
            n_low=round(low), n_high=round(high), decisions={w: k / orders for w, k in counts.most_common()},
        )  # fmt: skip
