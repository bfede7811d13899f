"""Rules that stop a run when it is decided: looks before all answers are there, with error rates that hold.

    rule = StoppingRule.parse("decided", margin=0.02, looks="20", seed=1)
    order = rule.order(len(questions), clusters, tasks, repeats=5)
    look = None
    for number in range(1, len(order.blocks) + 1):
        ask(*order.pairs(number))  # (m,) indexes of questions, and which of the answers to each
        look = rule.look(order, look, observe(parts_a, parts_b, settings))
        print(look.message)
        if look.stop:
            break
    look.sequential.to_dict()  # the object for the results; also where the run ended before it was decided

Nothing is kept between calls but the `Look`, so a run that was killed takes the same looks again from the
answers that it has kept. A replay of two runs that exist, and the looks at a run that grows, are the same machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np

from ...analysis.ranges import Ends, score_range
from ...data.units import Equivalent
from ...errors import InputError, check_computed, check_kind
from ...results.forms import finite
from ...results.parts import Sequential
from ...results.rows import CANNOT, NOT_DECIDED
from ...settings import check_unit
from ...stats.contrast import cluster_codes
from ..boundaries import (
    LOOKS,
    MOST_LOOKS,
    Looks,
    Spending,
    critical_values,
    drift_for_power,
    error_spent,
    exits_above,
    find_root,
    futility_bounds,
    information,
    mixture_boundaries,
    predictive_power,
    stagewise_shifts,
    student_t,
)
from ..drawing import proportional
from .observed import Observed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ...arrays import BoolArray, FloatArray, IntArray, NamesLike
    from ...data.scores import Scores
    from ...settings import Settings

AskingOrder = Literal["breadth", "depth"]

MOST_BLOCKS = 50
"""Blocks of a run that looks after each of them."""
FEWEST_UNITS = 5
"""Questions (clusters) that a look needs beyond those of the look before. Fewer do not show their variance."""
FIRST_UNITS = 7
"""Questions (clusters) before the first look: a variance of fewer stops where it happens to be small."""
FEWEST_FOR_SE = 30
"""Questions (clusters) before a standard error is believed to be small."""
NARROWEST = 0.3
"""Share of the information at which a confidence sequence is made narrowest."""
HOPELESS = 0.05
"""Predictive probability that the rest decides, below which it is not asked."""
BETA_SHARE, LEAST_BETA = 0.75, 0.01
"""Share of the type II error for giving up a planned effect, and its smallest value. It costs a point of power."""
RISE = 1.01
"""Smallest ratio of the information of a look to that of the look before. With less there is nothing new to see."""
ASSUMED_PREDICTION = 0.5
"""Share of prediction noise by which the looks of a run with several answers are placed. No decision uses it."""
PRECISE = "precise enough"
ALL_ASKED = "not separable"
BETTER = ("A better", "B better")


@dataclass(frozen=True, slots=True)
class Progress:
    """The number of questions and answers that a run has asked for."""

    n: int
    """Questions."""
    total: int
    answers: int
    answers_total: int
    round: int = 1
    """The highest answer to a question that has been asked for."""
    repeats: float = 1.0
    """Mean over the questions of one over their number of answers, where all is asked."""

    @property
    def complete(self) -> bool:
        return self.answers >= self.answers_total


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """The order in which answers are asked for, in blocks of whole clusters with a look after each block."""

    question: IntArray
    """(A,) index of the question of each answer."""
    which: IntArray
    """(A,) which answer to its question it is, from 1."""
    ends: tuple[int, ...]
    """Answers that have been asked for after each block."""
    units: tuple[int, ...]
    """Clusters (questions, where there are none) that have been asked after each block."""
    seed: int | None
    whole: bool = False
    """True if each question is asked once, and gets all its answers then, however many."""

    @property
    def blocks(self) -> list[IntArray]:
        """List of (b,) question numbers, one array for each block of answers."""
        return np.split(self.question, self.ends[:-1])

    def pairs(self, number: int) -> tuple[IntArray, IntArray]:
        """Return (b,) questions and (b,) numbers of the answers in block `number`, counted from 1."""
        block = slice(*(0, *self.ends)[number - 1 : number + 1])
        return self.question[block], self.which[block]

    def asked(self, look: int) -> IntArray:
        """Return the numbers of the questions asked up to look `look` (counted from 1), in the order of asking."""
        block = slice((0, *self.ends)[look])
        return np.asarray(self.question[block][self.which[block] == 1])

    def answers(self, look: int) -> IntArray:
        """Return (n,) how many answers to each question are asked for up to look `look`."""
        return np.bincount(self.question[: (0, *self.ends)[look]], minlength=1 + int(self.question.max()))

    def first_look_after(self, number: int) -> Order:
        """Return the order with its first `number` blocks merged, so that the first look comes after them."""
        return replace(self, ends=self.ends[number - 1 :], units=self.units[number - 1 :])

    def progress(self, look: int) -> Progress:
        """Return the numbers of questions and answers asked for up to look `look`, and in all."""
        last = len(self.ends)
        each = self.answers(last)
        return Progress(
            n=len(self.asked(look)),
            total=len(self.asked(last)),
            answers=self.ends[look - 1],
            answers_total=self.ends[-1],
            round=int(self.which[: self.ends[look - 1]].max()),
            repeats=float((1 / each[each > 0]).mean()),
        )


@dataclass(frozen=True, slots=True)
class Taken:
    """The looks so far that could have stopped the run."""

    info: tuple[float, ...] = ()
    """Information at each, in units of one answer to every question."""
    fractions: tuple[float, ...] = ()
    """Share of the full design's information that each has spent its error by."""
    residual: float | None = None
    """Residual share of the regression on all questions (see `information`), fixed at the first look that has one."""


NONE_TAKEN = Taken()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """A rule that says when a run has enough answers.

    Raises:
        InputError: looks, level, margin, se, spending, order or effect out of range.
    """

    se: float | None = None
    """Stop when the standard error is at most this. None: when the comparison is decided."""
    margin: float = 0.0
    """Also stop if A and B are equivalent within ±margin, on the metric's scale. 0: never."""
    looks: Looks = LOOKS
    """Looks at equal steps of information, or "anytime": after every block. The rule `se` looks after every block."""
    level: float = 0.95
    """1 − the error of the whole procedure, whenever it stops."""
    seed: int = 0
    """Seed of the random order."""
    spending: Spending = "hsd"
    """The speed at which the error is spent. "anytime" does not use it."""
    futility: bool = True
    """True to stop if the rest cannot decide it. It costs no error of type I."""
    effect: float | None = None
    """A difference that futility must not miss: its bound spends type II error. None: by predictive probability."""
    asking: AskingOrder = "breadth"
    """All questions once before any twice, or all answers to a question before the next question."""

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise InputError(f"level {self.level:g} is not between 0 and 1: use 0.95 for a 95% interval")
        number = isinstance(self.looks, int) and not isinstance(self.looks, bool) and 1 <= self.looks <= MOST_LOOKS
        if self.looks != "anytime" and not number:
            raise InputError(f"looks {self.looks!r} must be a number from 1 to {MOST_LOOKS}, or anytime")
        if not 0 <= self.margin < math.inf:
            raise InputError(f"margin {self.margin:g} must not be negative")
        if self.se is not None and not 0 < self.se < math.inf:
            raise InputError(f"a standard error of {self.se:g} is never reached: name one above 0")
        if self.seed < 0:
            raise InputError(f"seed {self.seed} must not be negative")
        for name, value, kinds in (("spending", self.spending, Spending), ("order", self.asking, AskingOrder)):
            if value not in get_args(kinds):
                raise InputError(f"{name} {value!r} is not one of {', '.join(get_args(kinds))}")
        check_kind("`effect`", self.effect, Real, type(None))
        if self.effect is not None and not 0 < self.effect < math.inf:
            raise InputError(f"effect {self.effect:g}: a planned difference is above 0")

    @classmethod
    def parse(
        cls,
        until: str,
        *,
        looks: str | int = LOOKS,
        futility: str | bool = True,
        order: str = "breadth",
        **choices: Any,
    ) -> StoppingRule:
        """Parse a user's stopping rule: `decided` or `se=0.01`, looks `20` or `anytime`. Refuse other words.

        Args:
            until: see there.
            looks: a number, or anytime.
            futility: on or off.
            order: breadth or depth.
            choices: margin, level, seed, spending, effect.

        Raises:
            InputError: anything else; says what can be written.
        """
        name, _, value = (part.strip() for part in str(until).partition("="))
        target: float | None = None
        if (name, value) != ("decided", ""):
            try:
                target = float(value if name == "se" else "")
            except ValueError:
                text = str(until).strip()
                raise InputError(f"until {text!r}: write decided, or se=0.01 to stop at that standard error") from None
        if futility not in ("on", "off", True, False):
            raise InputError(f"futility {futility!r}: write on or off")
        number = str(looks).strip()
        return cls(
            se=target,
            looks=int(number) if number.lstrip("+-").isdecimal() else cast("Looks", number),
            futility=futility in ("on", True),
            asking=cast("AskingOrder", order),
            **choices,
        )

    @property
    def name(self) -> str:
        """Name of the rule in results: "se", "confidence sequence" or "group-sequential"."""
        if self.se is not None:
            return "se"
        return "confidence sequence" if self.looks == "anytime" else "group-sequential"

    def order(
        self,
        n: int,
        clusters: NamesLike | None = None,
        tasks: NamesLike | None = None,
        *,
        repeats: ArrayLike | None = None,
        shuffled: bool = False,
    ) -> Order:
        """Draw a random order in blocks between looks: whole clusters, tasks in proportion. Refuse too few.

        Clusters that touch the same tasks are drawn in a random order and spread evenly, so that each block holds
        about its share of every task. With fewer clusters than looks can use there are fewer looks.

        Args:
            n: questions.
            clusters: (n,) names, equal for what is asked together; None: single questions.
            tasks: (n,) names; None: one task.
            repeats: answers per question, or (n,) of each; the blocks then hold answers, all questions once before
                any twice where the rule says breadth. None: the blocks hold questions with all their answers.
            shuffled: the questions are in a random order already, and keep it. Clusters may then be split, which
                makes the looks more alike, and the error smaller.

        Raises:
            InputError: too few questions (clusters) for a look before the end.
        """
        codes, units = (np.arange(n), n) if clusters is None else cluster_codes(clusters)
        queue = np.arange(n)
        if not shuffled:
            ranks = proportional(codes, units, tasks, np.random.default_rng(self.seed))
            queue = np.argsort(ranks[codes], kind="stable")
        question, which = self._answers(queue, 1 if repeats is None else repeats)
        first = which == 1
        share = _information_by(first, which, n)
        together = question if shuffled else codes[question]
        complete = np.append(together[1:] != together[:-1], True)
        if self.asking == "breadth":
            complete[:-1] |= which[1:] != which[:-1]
        touched = np.cumsum(np.isin(np.arange(len(question)), np.unique(codes[question], return_index=True)[1]))
        name = "questions" if clusters is None else "clusters"
        count = self._looks_possible(units, share[np.flatnonzero(first)[-1]], name)
        kept = _cuts(share, np.flatnonzero(complete), int(np.searchsorted(touched, FIRST_UNITS)), count)
        ends, seen = tuple(cut + 1 for cut in kept), tuple(touched[kept].tolist())
        return Order(question, which, ends, seen, None if shuffled else self.seed, whole=repeats is None)

    def _answers(self, queue: IntArray, repeats: ArrayLike) -> tuple[IntArray, IntArray]:
        """Return two arrays in the order of asking: question, number of its answer from 1. Refuse 0 repeats."""
        each = np.broadcast_to(np.asarray(repeats, dtype=np.intp), len(queue))
        if (each < 1).any():
            raise InputError("every question is asked at least once: repeats are from 1")
        check_computed("asking", self.asking, "breadth", "depth")
        if self.asking == "depth":
            return np.repeat(queue, each[queue]), np.concatenate([np.arange(1, k + 1) for k in each[queue]])
        parts = [queue[each[queue] >= r] for r in range(1, int(each.max()) + 1)]
        return np.concatenate(parts), np.repeat(np.arange(1, len(parts) + 1), list(map(len, parts)))

    def _most(self) -> int:
        return MOST_BLOCKS if self.se is not None or self.looks == "anytime" else self.looks

    def _looks_possible(self, units: int, once: float, what: str) -> int:
        """Return the number of looks that so many questions or clusters allow. Refuse < 2, < 1 if the rule has one."""
        count = min(self._most(), int(units / once + 1e-9) // FEWEST_UNITS)
        if count < min(2, self._most()):
            raise InputError(
                f"{units} {what} are too few to stop before the end: a look needs {FEWEST_UNITS}, and two looks twice "
                "as many. Ask them all"
            )
        return count

    def cannot_save(self, order: Order) -> str | None:
        """Return a warning that clusters are too few for stopping early to save anything, else None."""
        looks = len(order.ends)
        if self._most() < 3 or looks > 2:
            return None
        before = "there is no look before the end" if looks < 2 else "there is one look before the end"
        return (
            f"the questions come in {order.units[-1]} clusters, which are asked whole, so {before} (at "
            f"{100 * order.ends[0] / order.ends[-1]:.0f}% of the answers): expect to ask nearly all"
        )

    def look(self, order: Order, before: Look | None, observed: Observed) -> Look:
        """Return the next look at what was observed. Its `decision` is None to go on. Refuse one after the last.

        Args:
            order: of this run.
            before: the look before; None at the first.
            observed: what the questions of all blocks up to this one say.

        Raises:
            InputError: more looks than blocks.
        """
        number = 1 if before is None else before.number + 1
        if number > len(order.ends):
            raise InputError(f"look {number} of a run of {len(order.ends)} blocks: all its questions have been asked")
        progress = order.progress(number)
        if order.whole:
            progress = whole_questions(progress.n, progress.total, observed)
        looks: Looks = self.looks if self.looks == "anytime" and self.se is None else len(order.ends)
        taken = NONE_TAKEN if before is None else before.taken
        return Look(self, observed, progress, taken, number=number, looks=looks, seed=order.seed)


def whole_questions(n: int, total: int, observed: Observed) -> Progress:
    """Return the progress of a run of which n questions have all their answers and the others none."""
    answers = observed.answers or n
    every = answers if n >= total else round(answers / n * total)
    return Progress(n, total, answers, every, max(1, round(answers / n)), observed.repeats)


def _information_by(first: BoolArray, which: IntArray, n: int) -> FloatArray:
    """Return the share of the information after each answer (an array), if half the variance is answer noise.

    It assumes that half of the variance is prediction noise.
    """
    m = np.cumsum(first)
    gone = np.cumsum(np.where(first, 1.0, 1 / which - 1 / np.maximum(which - 1, 1)))
    out: FloatArray = m / n / (1 - ASSUMED_PREDICTION * (1 - gone / m))
    out /= out[-1]
    return out


def _cuts(share: FloatArray, whole: IntArray, first: int, count: int) -> list[int]:
    """Return a list: the index of the last answer before each look, also the final one, at about equal information.

    A giant cluster may fill several.
    """
    kept: list[int] = []
    for k in range(1, count + 1):
        target = int(np.searchsorted(share[whole], k / count - 1e-9))
        cut = int(whole[min(max(target, int(np.searchsorted(whole, first))), len(whole) - 1)])
        before = share[kept[-1]] if kept else 0.0
        if cut not in kept and (share[cut] - before >= 0.5 / count or cut == whole[-1]):
            kept.append(cut)
    if len(kept) > 1 and share[kept[-1]] - share[kept[-2]] < 0.5 / count:
        del kept[-2]
    return kept


def check_points(rule: StoppingRule | None, theirs: Scores, settings: Settings) -> None:
    """Refuse a margin or effect in points or % if the metric's range is not [0, 1].

    Args:
        rule: when the run that grows stops.
        theirs: scores of the run that it is compared with.
        settings: may give the metric's range.

    Raises:
        InputError: names the option and the metric.
    """
    if rule is not None:
        scale = score_range([Ends.of([theirs])], settings)
        for name, value in (("margin", rule.margin), ("effect", rule.effect)):
            check_unit(name, value, scale, theirs.metric)


class Look:
    """One look at a run: the results to report if the run ends here, and the state that the next look needs."""

    def __init__(
        self,
        rule: StoppingRule,
        observed: Observed,
        progress: Progress,
        before: Taken = NONE_TAKEN,
        *,
        number: int = 1,
        looks: Looks = LOOKS,
        seed: int | None = None,
    ) -> None:
        """Compute look number `number` of `looks`: z, information and fraction, after earlier looks `before`."""
        self.rule, self.observed, self.progress = rule, observed, progress
        self.number, self.looks, self.seed = number, looks, seed
        self.alpha = round(1 - rule.level, 12)
        self.z = None if observed.units < FIRST_UNITS or rule.se is not None else observed.z
        frozen = observed.residual if before.residual is None else before.residual
        residual = 1.0 if observed.residual is None or frozen is None else frozen
        share = min(1.0, (observed.in_population or progress.n) / (observed.population or progress.total))
        total = min(1.0, share * progress.total / progress.n)
        here = information(share, max(observed.repeats, progress.repeats), observed.prediction, residual)
        self.full = information(total, progress.repeats, observed.prediction, residual)
        """Information of the full design."""
        least = RISE * before.info[-1] if before.info else 0.0
        if self.z is None or (here < least and not progress.complete):
            self.z, self.taken = None, before
            return
        here = max(here, least)
        fraction = 1.0 if progress.complete else max([*before.fractions[-1:], min(here / self.full, 1.0)])
        self.taken = Taken((*before.info, here), (*before.fractions, fraction), frozen)

    @property
    def stop(self) -> bool:
        """True if the run may end at this interim look: the rule has decided, or everything is answered."""
        return self.decision is not None or self.progress.complete

    @property
    def fraction(self) -> float | None:
        """Share of the full design's information at this interim look, from 0 to 1. None if no z was computed."""
        return self.taken.fractions[-1] if self.z is not None else None

    def bounds(self, alpha: float, taken: Taken | None = None) -> tuple[float, ...]:
        """Return the critical |z| of each look up to this one, for two-sided level `alpha`."""
        taken = taken or self.taken
        if self.rule.looks == "anytime":
            full = taken.info[-1] if taken.fractions[-1] == 1 else max(self.full, RISE * taken.info[-1])
            return mixture_boundaries(tuple(x / full for x in taken.info), alpha, NARROWEST)
        return critical_values(taken.fractions, alpha, self.rule.spending, info=taken.info)

    @cached_property
    def decision(self) -> str | None:
        """Verdict that ends the run at this interim look. None to go on, or at the end if it is not decided."""
        o, rule = self.observed, self.rule
        if rule.se is not None:
            if o.units >= FEWEST_FOR_SE and o.se and o.se <= rule.se:
                return PRECISE
            return None
        if self.z is None or o.estimate is None:
            return None
        if abs(self.z) > self.bounds(self.alpha)[-1]:
            return BETTER[0] if (o.estimate > 0) == (o.higher_is_better is not False) else BETTER[1]
        if rule.margin > 0:  # two one-sided tests, each of level α: the limits of a two-sided procedure at 2α
            wide = self.bounds(min(2 * self.alpha, 0.999))[-1]
            low, high = o.limits(wide, -wide)
            if -rule.margin < low and high < rule.margin:
                return Equivalent(rule.margin)
        if self.progress.complete:
            return ALL_ASKED
        return CANNOT if rule.futility and self._hopeless() else None

    def _at_the_end(self, alpha: float) -> float:
        """Return the critical |z| that will apply when all questions are asked, if the next look is the last."""
        info = max(self.full, RISE * self.taken.info[-1])
        return self.bounds(alpha, Taken((*self.taken.info, info), (*self.taken.fractions, 1.0)))[-1]

    @cached_property
    def chance(self) -> float | None:
        """Predictive probability that the complete run will decide, given this look. None without futility or z."""
        o, rule, t = self.observed, self.rule, self.fraction
        if not rule.futility or self.z is None or t is None or not o.se:
            return None
        t = min(t, self.taken.info[-1] / self.full)
        within = None
        if rule.margin > 0:
            within = rule.margin / (o.se * math.sqrt(t)) - self._at_the_end(min(2 * self.alpha, 0.999))
        return predictive_power(self.z, t, self._at_the_end(self.alpha), within)

    def _hopeless(self) -> bool:
        """Return True if the remaining answers are unlikely to decide the comparison."""
        o, chance = self.observed, self.chance
        if chance is None or not o.se:
            return False
        if self.rule.effect is None:
            return chance < HOPELESS
        taken, bounds = self.taken, self.bounds(self.alpha)
        drift = self.rule.effect / (o.se * math.sqrt(taken.info[-1]))
        missed = 1 - float(exits_above([self.full], [self._at_the_end(self.alpha)], drift).sum())
        inner = futility_bounds(taken.info, taken.fractions, bounds, drift, max(BETA_SHARE * missed, LEAST_BETA))
        return self.z is not None and abs(self.z) < inner[-1]

    def report(self) -> tuple[float | None, float | None, float | None]:
        """Return (estimate, lower, upper) if the run ends now, corrected unless rule se. None for unknown ones."""
        o, rule = self.observed, self.rule
        if o.estimate is None or not o.se or o.df is None:
            return o.estimate, None, None
        if rule.se is not None:
            plain = critical_values([1.0], self.alpha)[0]
            return o.estimate, *(o.interval or o.limits(plain, -plain))
        if self.z is None:
            return o.estimate, None, None
        bounds = self.bounds(self.alpha)
        if self.decision not in (*BETTER, ALL_ASKED):
            return o.estimate, *o.limits(bounds[-1], -bounds[-1])
        low, middle, high = stagewise_shifts(self.z, self.taken.info, bounds, rule.level)
        return o.estimate - o.se * student_t(middle, o.df), *o.limits(low, high)

    def p_value(self) -> float | None:
        """Return the two-sided p-value of no difference, corrected for the interim looks. None if not computed."""
        if self.z is None:
            return None
        if self.decision in (*BETTER, ALL_ASKED):
            above = float(exits_above(self.taken.info, [*self.bounds(self.alpha)[:-1], self.z]).sum())
            return min(1.0, 2 * min(above, 1 - above))
        low, high = math.log(1e-12), math.log(0.9999)  # of the logarithm of α: the boundary falls with it
        z = abs(self.z)
        if self.bounds(math.exp(high))[-1] > z:
            return 1.0
        if self.bounds(math.exp(low))[-1] <= z:
            return math.exp(low)
        return math.exp(find_root(lambda x: self.bounds(math.exp(x))[-1] - z, low, high, xtol=1e-5))

    @cached_property
    def sequential(self) -> Sequential:
        """Record of the interim look, as results report it if the run ends here."""
        o, p, rule = self.observed, self.progress, self.rule
        estimate, low, high = self.report()
        return Sequential(
            task=o.task,
            metric=o.metric,
            scorer=o.scorer,
            rule=rule.name,
            looks=self.looks,
            look=self.number,
            alpha_spent=self.alpha_spent(),
            n_asked=p.n,
            n_total=p.total,
            order_seed=self.seed,
            decision=self.decision or NOT_DECIDED,
            estimate=finite(estimate),
            ci_low=finite(low),
            ci_high=finite(high),
            estimate_unadjusted=finite(o.estimate),
            diff=None if rule.se is not None else finite(o.estimate if o.plain is None else o.plain),
            baseline=None if rule.se is not None else o.baseline,
            clusters=None if rule.se is not None else o.clusters,
            p_value=finite(self.p_value()),
            futility=finite(self.chance),
            round=p.round,
            n_answers=p.answers,
            n_answers_total=p.answers_total,
            information=finite(self.fraction),
            level=rule.level,
        )

    def alpha_spent(self) -> float:
        """Return the part of the two-sided error rate that looks so far have spent: all if "anytime", 0 for "se"."""
        if self.rule.se is not None or not self.taken.fractions:
            return 0.0
        if self.rule.looks == "anytime":
            return self.alpha
        return 2 * error_spent(self.taken.fractions[-1], self.alpha / 2, self.rule.spending)

    @property
    def message(self) -> str:
        """Sentence such as: look 3 of 20, 300 of 1,000 questions, A − B 4.1 points, boundary 5.2 points."""
        o, p = self.observed, self.progress
        of = "" if self.looks == "anytime" else f" of {self.looks}"
        text = f"look {self.number}{of}, {p.n:,} of {p.total:,} questions"
        if p.answers_total > p.total:
            text += f", {p.answers:,} of {p.answers_total:,} answers"
        if o.estimate is None or not o.se or o.df is None:
            return f"{text}, too few to tell"
        if self.rule.se is not None:
            return f"{text}, SE {o.amount(o.se)}, wanted {o.amount(self.rule.se)}"
        if self.z is None:
            return f"{text}, A − B {o.amount(o.estimate)}, too few to tell"
        boundary = o.se * student_t(self.bounds(self.alpha)[-1], o.df)
        text += f", A − B {o.amount(o.estimate)}, boundary {o.amount(boundary)}"
        if self.decision == CANNOT:
            return f"{text}: the rest cannot decide it{self._words_on_answers_needed()}"
        return text if self.decision is None else f"{text}: {o.scale.verdict(self.decision)}"

    def _words_on_answers_needed(self) -> str:
        """Return words on how many times more answers would decide the observed difference. "" if unclear."""
        o = self.observed
        if not o.estimate or not o.se:
            return ""
        wanted = (drift_for_power([1.0], [critical_values([1.0], self.alpha)[0]], 0.8) * o.se / o.estimate) ** 2
        times = wanted * self.taken.info[-1] / self.full
        if not 1 < times < 1000:
            return ""
        return f". The difference seen would take {times:,.{0 if times >= 9.95 else 1}f} times as many answers"
