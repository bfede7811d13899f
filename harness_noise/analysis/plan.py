"""`plan`: how many questions and answers, how small a difference, what power; with or without data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import InputError
from ..results.plan import Plan, PlanRow, PlugIn, TheoryRow
from ..results.rows import Difference, Estimate
from ..settings import check_scale

if TYPE_CHECKING:
    from ..data.scores import Run
    from ..stats.planning import Variances
    from .pilots import Noise

POWER = 0.80
ASSURANCE = 0.80


def plan(
    *,
    effect: float | None = None,
    power: float | None = None,
    n: int | None = None,
    alpha: float = 0.05,
    repeats: int | None = None,
    omega2: float | None = None,
    sigma2: float | Sequence[float] | None = None,
    design_effect: float | None = None,
    cluster_size: float | None = None,
    runs: Sequence[str | Path | Run | Estimate | Difference] = (),
    two_like_this: bool = False,
    assurance: float | None = None,
    accuracy: float | None = None,
    solved: float = 1.0,
    cost_question: float | None = None,
    cost_answer: float | None = None,
    k_max: int = 10,
    looks: int | Literal["anytime"] | None = None,
    **choices: Any,
) -> Plan:
    """Plan a comparison: of `effect`, `n` and `power` two give the third; power is 0.8 if two are missing.

    The noise comes from one of three places: `omega2` and `sigma2`; one or two `runs`; or the
    `accuracy` that the models will have. What runs showed is an estimate, so their plan starts from the
    upper confidence limit of ω² (`assurance`), and `plug_in` holds the answer of the estimate itself.
    Power is that of the t test with the planned design's degrees of freedom (noncentral t).

    Args:
        effect: the true difference to be found, on the metric's scale.
        power: the chance to find it.
        n: number of questions.
        alpha: two-sided level of the test.
        repeats: answers per question, K; by default the best for the costs if those are given, else 1.
        omega2: data variance per question of the contrast, ω².
        sigma2: prediction variance of one answer; one number for each model, or one per model.
        design_effect: of the clusters; multiplies ω², which must then come from questions taken as
            independent.
        cluster_size: questions per cluster, where `omega2` holds the clustering; the plan then counts clusters.
        runs: paths, Runs or results to take the noise from: two runs (A − B), one (its own mean against a
            fixed number), or an Estimate or Difference.
        two_like_this: of one run: plan the comparison of two such runs, as if they were unrelated.
        assurance: the share of such pilots whose plan has the power, in (0, 1); 0.8 with `runs`.
        accuracy: expected accuracy, in (0, 1); the plan then follows the rule of thumb Var[A − B] ≈ p(1 − p),
            and `theory` shows what the other theories say.
        solved: share of the questions that any model solves, for the Beta theory.
        cost_question: cost of a question.
        cost_answer: cost of an answer.
        k_max: the most answers per question that are considered.
        looks: also plan a comparison that stops when it is decided, with so many looks or "anytime"; of two runs
            with a replay in random orders.
        **choices: `cluster`, `tasks`, `metrics`, `range`, … for reading `runs`.

    Raises:
        InputError: too few or too many of the above, or values out of range.
    """
    _check_ranges(
        effect, power, n, alpha, repeats, design_effect, accuracy, solved, cost_question, cost_answer, k_max,
        cluster_size, assurance,
    )  # fmt: skip
    if runs:
        from .pilots import from_runs

        _alone(omega2, accuracy, sigma2, "--from", "the runs")
        if design_effect is not None or cluster_size is not None:
            raise InputError(
                "the runs say what their clusters are, and their data variance holds the clustering: leave "
                "--design-effect and the size of clusters out"
            )
        noise = from_runs(runs, choices, ASSURANCE if assurance is None else assurance)
        noise = noise.doubled() if two_like_this else noise
    else:
        if choices:
            raise InputError(f"unknown option {next(iter(choices))!r} (options for reading go with --from)")
        if assurance is not None or two_like_this:
            raise InputError("--assurance and --two-like-this are about a pilot: they go with --from")
        noise = _without_runs(omega2, sigma2, accuracy, design_effect, cluster_size)
    check_scale("--effect", effect, noise.scale)
    if effect is not None and n is not None and power is not None:
        raise InputError("of --effect, --n and --power give two; the third follows")
    if effect is None and n is None:
        raise InputError("give --effect (how many questions?) or --n (how small a difference?)")
    if not noise.split and (repeats or 1) > 1 and accuracy is None:
        raise InputError(
            "what more answers per question gain is not known here (no --sigma2, one answer per question, or all "
            "answers alike): plan with one answer, or give --sigma2 or runs with several answers"
        )
    costs = None if cost_question is None or cost_answer is None else (cost_question, cost_answer)
    asked = _Asked(effect, power, n, alpha, costs, k_max, assurance)
    found = _plan(noise, asked, repeats, design_effect)
    if looks is not None:
        from .plan_looks import replayed, with_looks

        again = replayed(runs, choices, looks, alpha) if runs else None
        found = with_looks(found, looks, n_given=n is not None, replay=again)
    basis = "from" if runs else "accuracy" if accuracy is not None else "omega2"
    if accuracy is not None:
        theory = _theories(accuracy, solved, found, asked, design_effect or 1.0)
        return replace(found, basis=basis, theory=theory)
    return replace(found, basis=basis)


def _alone(omega2: float | None, accuracy: float | None, sigma2: object, source: str, place: str) -> None:
    """The noise comes from one place."""
    others = [name for name, value in (("--omega2", omega2), ("--accuracy", accuracy)) if value is not None]
    if others:
        raise InputError(
            "the noise comes from one of --omega2 (with --sigma2), --from RUN [RUN] and --accuracy P; "
            f"{1 + len(others)} of them are given: {', '.join([source, *others])}"
        )
    if sigma2 is not None:
        raise InputError(f"--sigma2 belongs to --omega2: with {source} it comes from {place}")


def _without_runs(
    omega2: float | None, sigma2: float | Sequence[float] | None, accuracy: float | None,
    design_effect: float | None, cluster_size: float | None,
) -> Noise:  # fmt: skip
    from ..stats.planning import Units, Variances
    from ..stats.theory import rule_of_thumb
    from .pilots import Noise, from_numbers

    if accuracy is not None:
        _alone(omega2, None, sigma2, "--accuracy", "a theory")
        noise = Noise(rule_of_thumb(accuracy), split=False, scale=(0.0, 1.0))
    elif omega2 is None:
        raise InputError(
            "the noise comes from one of --omega2 (with --sigma2), --from RUN [RUN] and --accuracy P; 0 of them are "
            "given"
        )
    else:
        noise = from_numbers(omega2, sigma2)
    if cluster_size is not None:
        if design_effect is not None or accuracy is not None:
            raise InputError("--cluster-size is for an --omega2 that holds the clustering: leave --design-effect out")
        noise = replace(noise, units=Units(cluster_size), clustered=True)
    if design_effect is not None:
        v = noise.variances
        noise = replace(noise, variances=Variances(v.omega2 * design_effect, v.sigma2_a, v.sigma2_b))
    return noise


@dataclass(frozen=True, slots=True)
class _Asked:
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
                f"--n {n}: a plan needs at least two clusters, and they have {units.size:.3g} questions each"
            )
        elif effect is not None:
            power = achieved_power(variance, n, effect, self.alpha, units)
        mde = detectable_effect(variance, n, self.alpha, self.at, units)
        cost = None
        if self.costs is not None:
            cost = n * (self.costs[0] + (1 if v.sigma2_b is None else 2) * self.costs[1] * K)
        clusters = round(n / units.size) if noise.clustered else None
        return PlugIn(n, clusters, mde if effect is None else effect, power, mde, variance, units.df(n), cost)


def _plan(noise: Noise, asked: _Asked, repeats: int | None, design_effect: float | None) -> Plan:
    from ..stats.planning import best_repeats, detectable_effect

    v = noise.variances if noise.upper is None else noise.upper
    best = None
    if noise.split and asked.costs is not None and (noise.variances.omega2 > 0 or noise.upper is None):
        best = best_repeats(v, *asked.costs, asked.k_max)
    K = repeats if repeats is not None else best or 1
    if v.at(K) == 0:
        raise InputError(
            "there is no noise to plan with: no question differs from another and no answer from the next (the same "
            "scores in both runs, or ω² and σ² of 0); plan from other runs, or from --accuracy"
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


def _notes(noise: Noise, asked: _Asked, found: PlugIn, plug_in: PlugIn | None) -> tuple[str, ...]:
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


def _check_ranges(
    effect: float | None, power: float | None, n: int | None, alpha: float, repeats: int | None,
    design_effect: float | None, accuracy: float | None, solved: float, cost_question: float | None,
    cost_answer: float | None, k_max: int, cluster_size: float | None, assurance: float | None,
) -> None:  # fmt: skip
    for name, value, low, high in (
        ("--effect", effect, 0.0, math.inf), ("--power", power, 0.0, 1.0), ("--alpha", alpha, 0.0, 1.0),
        ("--design-effect", design_effect, 0.0, math.inf), ("--accuracy", accuracy, 0.0, 1.0),
        ("--cost-question", cost_question, 0.0, math.inf), ("--cost-answer", cost_answer, 0.0, math.inf),
        ("--cluster-size", cluster_size, 0.0, math.inf), ("--assurance", assurance, 0.0, 1.0),
    ):  # fmt: skip
        if value is not None and not low < value < high:
            raise InputError(
                f"{name} {value:g} must be above {low:g}{'' if high == math.inf else f' and below {high:g}'}"
            )
    if power is not None and power <= alpha:
        raise InputError(f"--power {power:g} must be above --alpha {alpha:g}, which a test has without any effect")
    if n is not None and n < 2:
        raise InputError(f"--n {n}: a plan needs at least two questions")
    if (repeats is not None and repeats < 1) or k_max < 1:
        raise InputError("--repeats and --k-max must be at least 1")
    if accuracy is not None and not accuracy < solved <= 1:
        raise InputError(
            f"the share of questions that any model solves, {solved:g}, must be above the accuracy and at most 1"
        )
    if (cost_question is None) != (cost_answer is None):
        raise InputError("--cost-question and --cost-answer go together")


def _theories(p: float, solved: float, found: Plan, asked: _Asked, design_effect: float) -> tuple[TheoryRow, ...]:
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
