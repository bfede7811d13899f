"""Stopping when it is decided: looks at a run before all questions are answered, with error rates that hold.

    rule = StoppingRule.parse("decided", margin=0.02, looks="5", seed=1)
    order = rule.order(len(questions), clusters, tasks)
    look = None
    for block in order.blocks:  # (m,) indexes of questions: ask them, all answers of all of them
        look = rule.look(order, look, observe_difference(parts_a, parts_b, settings))
        print(look.message)
        if look.stop:
            break
    look.sequential.to_dict()  # the object for the results; also where the run ended before it was decided

Nothing is kept between calls but the frozen `Look`, so a run that was killed takes the same looks again from the
answers that it has kept. A replay of two runs that exist is the same loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..errors import InputError
from ..results.forms import finite
from ..results.sequential import Sequential
from ..stats.contrast import cluster_codes
from ..stats.sequential import (
    critical_values,
    exits_above,
    mixture_boundaries,
    spent,
    stagewise_shifts,
    student_t,
)
from .observed import Observed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..stats.arrays import IntArray

    Labels = Sequence[object] | NDArray[np.generic]

Looks = int | Literal["anytime"]

MOST_LOOKS = 50
"""Looks of a group-sequential plan; beyond, a confidence sequence is the better rule."""
MOST_BLOCKS = 50
"""Blocks of a run that looks after each of them."""
FEWEST_UNITS = 5
"""Questions (clusters) that a look needs beyond those of the look before: fewer tell too little of their variance."""
FIRST_UNITS = 7
"""Questions (clusters) before the first look: a variance of fewer stops where it happens to be small."""
FEWEST_FOR_SE = 30
"""Questions (clusters) before a standard error is believed to be small."""
NARROWEST = 0.3
"""Share of the questions at which a confidence sequence is made narrowest."""
NOT_DECIDED = "not decided"
PRECISE = "precise enough"


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """In which order questions are asked, in blocks of whole clusters."""

    blocks: tuple[IntArray, ...]
    """Indexes of the questions of each block; after each block is a look."""
    units: tuple[int, ...]
    """Clusters (questions, where there are none) that have been asked after each block."""
    seed: int | None

    @property
    def n_total(self) -> int:
        return sum(map(len, self.blocks))

    def asked(self, look: int) -> IntArray:
        """Indexes of the questions that have been asked at a look, counted from 1, in their order."""
        return np.concatenate(self.blocks[:look]) if look else np.empty(0, dtype=np.intp)

    def counts(self) -> list[int]:
        """Questions asked at each look."""
        return list(accumulate(map(len, self.blocks)))


@dataclass(frozen=True, slots=True)
class Look:
    """One look, with what it needs of those before."""

    sequential: Sequential
    """What may be reported if it ends here."""
    stop: bool
    message: str
    """One line for whoever watches."""
    taken: tuple[float, ...] = ()
    """Share of the questions at every look that could have stopped the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """When a run has enough questions.

    Raises:
        InputError: looks, level, margin or se out of range.
    """

    se: float | None = None
    """Stop when the standard error is at most this; None: when the comparison is decided."""
    margin: float = 0.0
    """Also stop where A and B are equivalent within ±margin, on the metric's scale; 0: never."""
    looks: Looks = 5
    """Looks at equal numbers of questions, or "anytime": after every block. The rule `se` looks after every block."""
    level: float = 0.95
    """1 − the error of the whole procedure, whenever it stops."""
    seed: int = 0
    """Of the random order."""

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise InputError(f"level {self.level:g} is not between 0 and 1: use 0.95 for a 95 % interval")
        _check_looks(self.looks)
        if not 0 <= self.margin < math.inf:
            raise InputError(f"margin {self.margin:g} must not be negative")
        if self.se is not None and not 0 < self.se < math.inf:
            raise InputError(f"a standard error of {self.se:g} is never reached: name one above 0")
        if self.seed < 0:
            raise InputError(f"seed {self.seed} must not be negative")

    @classmethod
    def parse(
        cls, until: str, *, margin: float = 0.0, looks: str | int = 5, level: float = 0.95, seed: int = 0
    ) -> StoppingRule:
        """The rule that a user writes: `decided` or `se=0.01`, with `5` or `anytime` looks.

        Raises:
            InputError: anything else; says what can be written.
        """
        text = str(until).strip()
        target: float | None = None
        if text != "decided":
            name, _, value = text.partition("=")
            try:
                target = float(value)
            except ValueError:
                name = ""
            if name.strip() != "se":
                raise InputError(f"until {text!r}: write decided, or se=0.01 to stop at that standard error")
        count: Looks = "anytime"
        if str(looks).strip() != "anytime":
            try:
                count = int(str(looks))
            except ValueError:
                raise InputError(f"looks {looks!r} must be a number from 1 to {MOST_LOOKS}, or anytime") from None
        return cls(se=target, margin=margin, looks=count, level=level, seed=seed)

    @property
    def name(self) -> str:
        """What the results call it."""
        if self.se is not None:
            return "se"
        return "confidence sequence" if self.looks == "anytime" else "group-sequential"

    def order(
        self,
        n: int,
        clusters: Labels | None = None,
        tasks: Labels | None = None,
        *,
        shuffled: bool = False,
    ) -> Order:
        """Random blocks of whole clusters, every task in proportion.

        Clusters that touch the same tasks are drawn in a random order and spread evenly, so that each block holds
        about its share of every task. With fewer clusters than looks can use there are fewer looks.

        Args:
            n: questions.
            clusters: (n,) labels of what is asked together; None: single questions.
            tasks: (n,) labels; None: one task.
            shuffled: the questions are in a random order already, and keep it. Clusters may then be split, which
                makes the looks more alike, and the error smaller.

        Raises:
            InputError: too few questions (clusters) for a look before the end.
        """
        codes, units = (np.arange(n), n) if clusters is None else cluster_codes(clusters)
        count = self._looks_possible(units, "questions" if clusters is None else "clusters")
        if shuffled:
            queue: IntArray = np.arange(n)
            ends, asked = queue + 1, np.maximum.accumulate(codes) + 1  # codes count up as clusters appear
        else:
            ranks = _proportional(codes, units, tasks, np.random.default_rng(self.seed))
            queue = np.argsort(ranks[codes], kind="stable")
            ends = np.cumsum(np.bincount(ranks[codes], minlength=units))
            asked = np.arange(1, units + 1)
        first = int(np.searchsorted(asked, FIRST_UNITS))
        cuts = [max(min(first, len(ends) - 1), _cut(ends, n * k / count)) for k in range(1, count + 1)]
        kept = [0]
        for cut in cuts:  # a giant cluster may fill several blocks
            if ends[cut] - kept[-1] >= n / count / 2 or cut == cuts[-1]:
                kept.append(int(ends[cut]))
        kept = list(dict.fromkeys(kept))
        if len(kept) > 2 and kept[-1] - kept[-2] < n / count / 2:
            del kept[-2]
        blocks = tuple(queue[start:stop] for start, stop in pairwise(kept))
        where = np.searchsorted(ends, kept[1:])
        return Order(blocks, tuple(int(asked[i]) for i in where), None if shuffled else self.seed)

    def _looks_possible(self, units: int, what: str) -> int:
        most = MOST_BLOCKS if self.se is not None or self.looks == "anytime" else self.looks
        count = min(most, units // FEWEST_UNITS)
        if most > 1 and count < 2:
            raise InputError(
                f"{units} {what} are too few to stop before the end: a look needs {FEWEST_UNITS}, and two looks twice "
                "as many; ask them all"
            )
        return count

    def look(self, order: Order, before: Look | None, observed: Observed) -> Look:
        """The next look.

        Args:
            order: of this run.
            before: the look before; None at the first.
            observed: what the questions of all blocks up to this one say.

        Raises:
            InputError: more looks than blocks.
        """
        number = 1 if before is None else before.sequential.look + 1
        if number > len(order.blocks):
            raise InputError(f"look {number} of a run of {len(order.blocks)} blocks: all its questions have been asked")
        counts = order.counts()
        n, total = counts[number - 1], counts[-1]
        taken = () if before is None else before.taken
        state = LookState(self, observed, taken, n, total)
        looks: Looks = self.looks if self.looks == "anytime" and self.se is None else len(order.blocks)
        decision = state.decision()
        found = state.sequential(decision, looks, number, order.seed)
        stop = decision is not None or number == len(order.blocks)
        return Look(found, stop, state.message(found), state.taken)


def _check_looks(looks: object) -> None:
    number = isinstance(looks, int) and not isinstance(looks, bool) and 1 <= looks <= MOST_LOOKS
    if looks != "anytime" and not number:
        raise InputError(f"looks {looks!r} must be a number from 1 to {MOST_LOOKS}, or 'anytime'")


def _cut(ends: IntArray, target: float) -> int:
    """The unit with which this many questions are reached."""
    return min(int(np.searchsorted(ends, target - 1e-9)), len(ends) - 1)


def _proportional(codes: IntArray, units: int, tasks: Labels | None, rng: np.random.Generator) -> IntArray:
    """(units,) rank of each cluster: random, but systematic over the tasks that it touches."""
    drawn = rng.permutation(units)
    sizes = np.bincount(codes, minlength=units).astype(np.float64)
    stratum = np.zeros(units, dtype=np.intp)
    if tasks is not None:
        of_task, _ = cluster_codes(tasks)
        touched: list[set[int]] = [set() for _ in range(units)]
        for code, task in zip(codes.tolist(), of_task.tolist(), strict=True):
            touched[code].add(task)
        stratum, _ = cluster_codes([tuple(sorted(item)) for item in touched])
    drawn = drawn[np.argsort(stratum[drawn], kind="stable")]
    cum = np.cumsum(sizes[drawn]) - sizes[drawn] * rng.random(units)
    totals = np.bincount(stratum, weights=sizes)
    start = np.cumsum(totals) - totals
    position = (cum - start[stratum[drawn]]) / totals[stratum[drawn]]
    ranks = np.empty(units, dtype=np.intp)
    ranks[drawn[np.argsort(position, kind="stable")]] = np.arange(units)
    return ranks


class LookState:
    """One look while it is taken."""

    def __init__(self, rule: StoppingRule, observed: Observed, before: tuple[float, ...], n: int, total: int) -> None:
        self.rule, self.observed, self.n, self.total = rule, observed, n, total
        self.z = None if observed.units < FIRST_UNITS or rule.se is not None else observed.z
        self.alpha = round(1 - rule.level, 12)
        self.taken = before if self.z is None else (*before, n / total)

    def bounds(self, alpha: float) -> tuple[float, ...]:
        """Critical |z| of all looks up to this one, of a two-sided procedure of level `alpha`."""
        if self.rule.looks == "anytime":
            return mixture_boundaries(self.taken, alpha, NARROWEST)
        return critical_values(self.taken, alpha)

    def decision(self) -> str | None:
        """A verdict, or None to go on."""
        o, rule = self.observed, self.rule
        if rule.se is not None:
            if o.units >= FEWEST_FOR_SE and o.se and o.se <= rule.se:
                return PRECISE
            return None
        if self.z is None or o.estimate is None:
            return None
        if abs(self.z) > self.bounds(self.alpha)[-1]:
            return "A better" if (o.estimate > 0) == (o.higher_is_better is not False) else "B better"
        if rule.margin > 0:  # two one-sided tests, each of level α: the limits of a two-sided procedure at 2α
            wide = self.bounds(min(2 * self.alpha, 0.999))[-1]
            low, high = o.limits(wide, -wide)
            if -rule.margin < low and high < rule.margin:
                return f"equivalent within {rule.margin:g}"
        return "not separable" if self.n >= self.total else None

    def report(self, decision: str | None) -> tuple[float | None, float | None, float | None]:
        """Estimate and limits that are valid if it ends here."""
        o, rule = self.observed, self.rule
        if o.estimate is None or not o.se or o.df is None:
            return o.estimate, None, None
        if rule.se is not None:
            plain = critical_values([1.0], self.alpha)[0]
            return o.estimate, *(o.interval or o.limits(plain, -plain))
        if self.z is None:
            return o.estimate, None, None
        bounds = self.bounds(self.alpha)
        if decision not in ("A better", "B better", "not separable"):
            return o.estimate, *o.limits(bounds[-1], -bounds[-1])
        low, middle, high = stagewise_shifts(self.z, self.taken, bounds, rule.level)
        return o.estimate - o.se * student_t(middle, o.df), *o.limits(low, high)

    def p_value(self, decision: str | None) -> float | None:
        """Two-sided p of no difference that allows for the looks."""
        if self.z is None:
            return None
        if decision in ("A better", "B better", "not separable"):
            above = float(exits_above(self.taken, [*self.bounds(self.alpha)[:-1], self.z]).sum())
            return min(1.0, 2 * min(above, 1 - above))
        low, high = math.log(1e-12), math.log(0.9999)  # of the logarithm of α: the boundary falls with it
        z = abs(self.z)
        if self.bounds(math.exp(high))[-1] > z:
            return 1.0
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (low, middle) if self.bounds(math.exp(middle))[-1] <= z else (middle, high)
        return math.exp(high)

    def sequential(self, decision: str | None, looks: Looks, number: int, seed: int | None) -> Sequential:
        """What may be reported if it ends here."""
        o = self.observed
        estimate, low, high = self.report(decision)
        return Sequential(
            task=o.task, metric=o.metric, scorer=o.scorer, rule=self.rule.name, looks=looks, look=number,
            alpha_spent=self.alpha_spent(), n_asked=self.n, n_total=self.total, order_seed=seed,
            decision=decision or NOT_DECIDED, estimate=finite(estimate), ci_low=finite(low), ci_high=finite(high),
            estimate_unadjusted=finite(o.estimate), p_value=finite(self.p_value(decision)),
        )  # fmt: skip

    def alpha_spent(self) -> float:
        if self.rule.se is not None or not self.taken:
            return 0.0
        return self.alpha if self.rule.looks == "anytime" else spent(self.taken[-1], self.alpha)

    def message(self, found: Sequential) -> str:
        """look 3 of 5, 300 of 1,000 questions, A − B .041, boundary .052."""
        o = self.observed
        of = "" if found.looks == "anytime" else f" of {found.looks}"
        text = f"look {found.look}{of}, {self.n:,} of {self.total:,} questions"
        if o.estimate is None or not o.se or o.df is None:
            return f"{text}, too few to tell"
        if self.rule.se is not None:
            return f"{text}, SE {_short(o.se, o.se)}, wanted {_short(self.rule.se, o.se)}"
        if self.z is None:
            return f"{text}, A − B {_short(o.estimate, o.se)}, too few to tell"
        boundary = o.se * student_t(self.bounds(self.alpha)[-1], o.df)
        text += f", A − B {_short(o.estimate, o.se)}, boundary {_short(boundary, o.se)}"
        return text if found.decision == NOT_DECIDED else f"{text}: {found.decision}"


def _short(value: float, se: float) -> str:
    """.041, to two digits of the standard error."""
    digits = max(0, min(6, 1 - math.floor(math.log10(se)))) if se > 0 else 3
    text = f"{abs(value):.{digits}f}"
    text = text[1:] if text.startswith("0.") else text
    return f"−{text}" if value < 0 and float(text) else text
