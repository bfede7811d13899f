"""From the noise and what is asked for to a plan: questions, answers, power, and what other designs would find."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InputError
from ..results.plan import Plan, PlanRow, PlugIn, TheoryRow

if TYPE_CHECKING:
    from ..stats.planning import Variances
    from .pilots import Noise

POWER = 0.80
ASSURANCE = 0.80


@dataclass(frozen=True, slots=True)
class Asked:
    """What the plan is to find out."""

    effect: float | None
    power: float | None
    n: int | None
    alpha: float
    costs: tuple[float, float] | None
    k_max: int
    assurance: float | None

    @property
    def at(self) -> float:
        """The power of the smallest detectable differences."""
        return POWER if self.power is None or (self.effect is not None and self.n is not None) else self.power

    def answer(self, noise: Noise, v: Variances, K: int) -> PlugIn:
        """Questions, effect and power, two of them given, at K answers per question."""
        from ..stats.planning import achieved_power, detectable_effect, required_units

        variance, units = v.at(K), noise.units
        effect, n, power = self.effect, self.n, self.at
        if n is None:
            assert effect is not None
            try:
                n = units.questions(required_units(variance, effect, self.alpha, power, units))
            except ValueError as error:
                raise InputError(f"{error}: no plan finds so small a difference") from None
        elif n < 2 * units.size:
            raise InputError(
                f"`n` {n}: a plan needs at least two clusters, and they have {units.size:.3g} questions each"
            )
        elif effect is not None:
            power = achieved_power(variance, n, effect, self.alpha, units)
        mde = detectable_effect(variance, n, self.alpha, self.at, units)
        cost = None
        if self.costs is not None:
            cost = n * (self.costs[0] + (1 if v.sigma2_b is None else 2) * self.costs[1] * K)
        clusters = round(n / units.size) if noise.clustered else None
        return PlugIn(n, clusters, mde if effect is None else effect, power, mde, variance, units.df(n), cost)


def planned(noise: Noise, asked: Asked, repeats: int | None, design_effect: float | None) -> Plan:
    from ..stats.planning import best_repeats, detectable_effect

    v = noise.variances if noise.upper is None else noise.upper
    best = None
    if noise.split and asked.costs is not None and (noise.variances.omega2 > 0 or noise.upper is None):
        best = best_repeats(v, *asked.costs, asked.k_max)
    K = repeats if repeats is not None else best or 1
    if v.at(K) == 0:
        raise InputError(
            "there is no noise to plan with: no question differs from another and no answer from the next (the same "
            "scores in both runs, or ω² and σ² of 0); plan from other runs, or from `accuracy`"
        )
    found = asked.answer(noise, v, K)
    plug_in = None
    if noise.upper is not None and noise.variances.omega2 > 0:
        plug_in = asked.answer(noise, noise.variances, K)
    steps = [1]
    if noise.split:
        steps = sorted({k for k in (1, 2, 4, 8, 16, 32, 64, K, asked.k_max) if k <= max(asked.k_max, K)})
    units = max(2, math.ceil(found.n_questions / noise.units.size - 1e-9))
    counts = sorted({max(2, math.ceil(units * share)) for share in (0.25, 0.5, 2, 4)})
    sizes = sorted({found.n_questions, *(noise.units.questions(count) for count in counts)})
    table = tuple(
        PlanRow(m, k, detectable_effect(v.at(k), m, asked.alpha, asked.at, noise.units)) for m in sizes for k in steps
    )
    estimated = noise.upper is not None
    return Plan(
        effect=found.effect,
        power=found.power,
        alpha=asked.alpha,
        n_questions=found.n_questions,
        n_clusters=found.n_clusters,
        cluster_size=noise.units.size if noise.clustered else None,
        repeats=K,
        mde=found.mde,
        df=found.df,
        variance=found.variance,
        omega2=noise.variances.omega2 if noise.split or not (estimated or noise.scale) else None,
        omega2_upper=v.omega2 if estimated and noise.split else None,
        sigma2_a=noise.variances.sigma2_a if noise.split else None,
        sigma2_b=noise.variances.sigma2_b if noise.split else None,
        design_effect=design_effect,
        best_repeats=best,
        cost=found.cost,
        table=table,
        basis="",
        compared=noise.compared,
        assurance=(ASSURANCE if asked.assurance is None else asked.assurance) if estimated else None,
        plug_in=plug_in,
        diagnostics=noise.diagnostics,
        notes=_notes(noise, asked, found, plug_in),
    )


def _notes(noise: Noise, asked: Asked, found: PlugIn, plug_in: PlugIn | None) -> tuple[str, ...]:
    """What is compared, in what it is counted, and how far the pilot can be trusted."""
    from .pilots import ONE_RUN, TWO_LIKE_THIS

    notes = []
    if noise.compared == ONE_RUN:
        notes.append(
            "Planned is the mean of one run like this one against a fixed number; for two runs give both, or "
            "--two-like-this for two like this one."
        )
    elif noise.compared == TWO_LIKE_THIS:
        notes.append(
            "Planned are two runs like this one as if they were unrelated: answering the same questions, two models "
            "usually need fewer; give two runs to plan with what they share."
        )
    elif noise.pilot:
        notes.append("Planned is A − B of two runs like these, paired by question.")
    if noise.clustered:
        notes.append(
            f"The answer is in clusters of {noise.units.size:.3g} questions, as they were: more questions of the same "
            "clusters do not replace new ones."
        )
    if not noise.pilot:
        return tuple(notes)
    share = ASSURANCE if asked.assurance is None else asked.assurance
    if noise.upper is None:
        notes.append("How uncertain the pilot's variance is, is not known here: the plan takes it as it is.")
        return tuple(notes)
    what = "ω²" if noise.split else "the variance"
    text = f"The pilot has {noise.pilot}, so {what} is an estimate: the plan starts from its upper {share:.0%} limit"
    if noise.variances.omega2 <= 0:
        text += (
            f", for the estimate itself is {'0' if noise.variances.omega2 == 0 else 'below 0'} and promises too much."
        )
    elif plug_in is not None and asked.n is None:
        text += f"; the estimate itself would say {_size(plug_in)}."
    elif plug_in is not None and asked.effect is not None:
        text += f"; at the estimate itself the power would be {plug_in.power:.0%}."
    elif plug_in is not None:
        text += f"; at the estimate itself it would see {plug_in.mde:.3g}."
    notes.append(text)
    if noise.split and noise.variances.omega2 <= 0 and asked.costs is not None:
        notes.append("With an ω² that is not above 0, this pilot cannot say how many answers per question are best.")
    return tuple(notes)


def _size(found: PlugIn) -> str:
    clusters = "" if found.n_clusters is None else f"{found.n_clusters:,} clusters, "
    return f"{clusters}{found.n_questions:,} questions"


def theories(p: float, solved: float, found: Plan, asked: Asked, design_effect: float) -> tuple[TheoryRow, ...]:
    from ..stats import theory
    from ..stats.planning import Variances, detectable_effect, required_units

    rows = []
    for name, v in (
        ("rule of thumb", theory.rule_of_thumb(p)),
        ("Beta theory", theory.beta_theory(p, solved)),
        ("independence bound", theory.independence_bound(p)),
    ):
        v = Variances(v.omega2 * design_effect, v.sigma2_a, v.sigma2_b)
        variance = v.at(found.repeats)
        size = required_units(variance, found.effect, asked.alpha, asked.at)
        rows.append(
            TheoryRow(name, v.at(1), size, detectable_effect(variance, found.n_questions, asked.alpha, asked.at))
        )
    return tuple(rows)
