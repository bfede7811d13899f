"""Plans from the user's goal and the noise: questions, answers, power, detectable differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING

from ...data.native_values import MISMATCH, agree_on_metrics
from ...data.notes import Note
from ...data.scores import Run
from ...errors import InputError, check_count, check_kind, counted
from ...extras import module_of
from ...results.diagnostics import SCORED
from ...results.parts import Replay
from ...results.rows import Difference, Estimate
from ...settings import Settings, check_scale
from ...stats.tolerances import SLACK
from ..row_noise import ONE_RUN, Noise
from ..sizes import (
    Units,
    Variances,
    achieved_power,
    detectable_effect,
    required_units,
    rule_of_thumb,
)
from . import stats as planning
from .pilots import TWO_LIKE_THIS, doubled, from_numbers, from_runs, noise_by_task
from .results import Plan, PlanAnswer, PlanLooks, PlanRow, PlugIn, TaskRepeats, TheoryRow

if TYPE_CHECKING:
    from ..boundaries import Looks

Pilot = Sequence[Run | Estimate | Difference]
POWER = 0.80
COSTS = ("question", "answer", "judge")
"""Things whose cost a plan accepts."""
ASSURANCE = 0.80
ABOVE_0 = (*("effect", "design_effect", "cluster_size", "target_se", "sigma2_judge"),)
BETWEEN_0_AND_1 = ("power", "accuracy", "assurance")
INDEPENDENT = (
    "The questions are taken as independent. If they come in clusters, you need more of them (times the design "
    "effect): give `design_effect`, or plan from two runs (`runs`), which show it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The goal of a plan and the numbers that were given (see `plan`)."""

    effect: float | None
    power: float | None
    n: int | None
    alpha: float
    repeats: int | None
    omega2: float | None
    sigma2: float | Sequence[float] | None
    design_effect: float | None
    cluster_size: float | None
    icc: float | None
    assurance: float | None
    accuracy: float | None
    solved: float | None
    costs: Mapping[str, float] | None
    sigma2_judge: float | None
    judged: int | None
    r2: float | None
    target_se: float | None
    k_max: int

    def check(self) -> None:
        """Refuse numbers out of range and combinations that contradict. Of effect, n and power see `check_noise`."""
        for name in (*ABOVE_0, *BETWEEN_0_AND_1, "icc", "solved", "r2", "judged"):
            check_kind(f"`{name}`", getattr(self, name), Real, type(None))
        check_kind("`costs`", self.costs, Mapping, type(None))
        for cost in (self.costs or {}).values():
            check_kind("`costs`", cost, Real)
        for name in (*ABOVE_0, *BETWEEN_0_AND_1):
            value, share = getattr(self, name), name in BETWEEN_0_AND_1
            if value is not None and not 0 < value < (1 if share else math.inf):
                raise InputError(f"`{name}` {value:g} must be above 0{' and below 1' * share}")
        if self.power is not None and self.power <= self.alpha:
            raise InputError(
                f"`power` {self.power:g} must be above {self.alpha:.12g} (1 − `level`), which a test has without any "
                "effect"
            )
        for name, least in (("n", 2), ("repeats", 1), ("k_max", 1)):
            check_count(name, getattr(self, name), least)
        if self.accuracy is not None and not self.accuracy < self.solvable <= 1:
            raise InputError(
                f"the share of questions that any model solves, {self.solvable:g}, must be above the accuracy and at "
                "most 1"
            )
        if self.icc is not None and not 0 <= self.icc <= 1:
            raise InputError(f"`icc` {self.icc:g} must be from 0 to 1")
        if self.icc is not None and (self.cluster_size is None or self.design_effect is not None):
            raise InputError("`icc` needs `cluster_size`, and both say the design effect: leave `design_effect` out")
        if self.cluster_size is not None and self.accuracy is not None and self.inflation is None:
            raise InputError(
                "the accuracy says nothing of clusters: with `cluster_size` also give their `icc` (0.2, for example: "
                "`compare` of two runs shows the design effect of A − B) or their `design_effect`"
            )
        self._check_costs_and_labels()

    def _check_costs_and_labels(self) -> None:
        if self.costs is not None and not {"question", "answer"} <= {*self.costs} <= {*COSTS}:
            given = ", ".join(self.costs)
            raise InputError(f"`costs` {given}: give those of a question and an answer, and perhaps of a judge call")
        for name, cost in (self.costs or {}).items():
            if not 0 < cost < math.inf:
                raise InputError(f"`costs` {name} {cost:g} must be above 0")
        if self.sigma2_judge is not None and self.cost_judge is None:
            raise InputError("`sigma2_judge` says what another judge call gains: give the cost of a judge call, too")
        if self.r2 is not None and not 0 <= self.r2 <= 1:
            raise InputError(f"`r2` {self.r2:g} must be from 0 to 1")
        if self.r2 is not None and self.judged is None:
            raise InputError("`r2` says how well a judge predicts labels: give `judged`, the questions that it scores")
        if self.judged is not None and self.judged < 2:
            raise InputError(f"`judged` {self.judged}: a judge that labels correct scores at least two questions")
        if self.target_se is not None and (self.effect is not None or self.n is not None):
            raise InputError("`target_se` replaces `effect` and `n`: leave them out")

    def check_noise(self, noise: Noise) -> None:
        """Refuse a goal for which this noise does not suffice, or that gives too much or too little."""
        for name in ("effect", "target_se"):
            check_scale(name, getattr(self, name), noise.scale)
        if self.effect is not None and self.n is not None and self.power is not None:
            raise InputError("of `effect`, `n` and `power` give two: the third follows")
        if self.effect is None and self.n is None:
            raise InputError("give `effect` (how many questions?) or `n` (how small a difference?)")
        if not noise.split and (self.repeats or 1) > 1 and self.accuracy is None:
            raise InputError(
                "what more answers per question gain is not known here (no `sigma2`, one answer per question, or all "
                "answers alike): plan with one answer, or give `sigma2` or runs with several answers"
            )

    @property
    def assured(self) -> float:
        """Share of possible pilot runs whose plan must reach the power, 0.8 if not given."""
        return ASSURANCE if self.assurance is None else self.assurance

    @property
    def solvable(self) -> float:
        """Share of the questions that any model can solve, 1 if not given."""
        return 1.0 if self.solved is None else self.solved

    @property
    def cost_judge(self) -> float | None:
        """Cost of one call of a judge model, as the user gives it. None if it is not given."""
        return (self.costs or {}).get("judge")

    @property
    def money(self) -> tuple[float, float] | None:
        """(cost of a question, cost of an answer with one judge call), None without costs."""
        if self.costs is None:
            return None
        return self.costs["question"], self.costs["answer"] + (self.cost_judge or 0.0)

    @property
    def inflation(self) -> float | None:
        """The design effect that ω² does not hold: as given, or 1 + (m − 1) · ICC [Kish, §5.4]. None without."""
        if self.icc is None or self.cluster_size is None:
            return self.design_effect
        return 1 + max(0.0, self.cluster_size - 1) * self.icc

    @property
    def mde_power(self) -> float:
        """Power at which smallest detectable differences are computed: as given, 0.8 if none is or if it is sought."""
        return POWER if self.power is None or (self.effect is not None and self.n is not None) else self.power

    def at_repeats(self, noise: Noise, v: Variances, K: int) -> PlanAnswer:
        """Return the plan with K answers per question, as a row of the table of K. Refuse what has no plan."""
        x = self.answer(noise, v, K)
        return PlanAnswer(K, x.n_questions, x.n_clusters, K * x.n_questions, x.effect, x.power, x.cost)

    def answer(self, noise: Noise, v: Variances, K: int) -> PlugIn:
        """Return n, effect, power (one is found), mde at `mde_power`, cost for K answers. Refuse what is impossible."""
        variance, units = v.at(K), noise.units
        effect, n, power = self.effect, self.n, self.mde_power
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
        mde = detectable_effect(variance, n, self.alpha, self.mde_power, units)
        cost = None
        if self.money is not None:
            cost = n * (self.money[0] + v.runs * self.money[1] * K)
        clusters = round(n / units.size) if noise.clustered else None
        return PlugIn(n, clusters, mde if effect is None else effect, power, mde, variance, units.df(n), cost)


def plan_of(
    goal: Asked,
    pilot: Pilot,
    settings: Settings,
    *,
    two_like_this: bool = False,
    looks: Looks | str | None = None,
    answers: int | None = None,
    zero_one: bool | None = None,
) -> Plan:
    """Return the plan for a goal, noise from a pilot, numbers or accuracy. Refuse goals that do not fit the noise.

    Args:
        goal: effect, questions and power, and the noise where it is given in numbers.
        pilot: one or two runs, or one row of a result; none: the numbers count.
        settings: how the noise of runs is computed.
        two_like_this: plan two runs like the one of the pilot.
        looks: also plan to stop when it is decided, with so many looks, or "anytime".
        answers: of each run, to all questions of the pilot together; also plan how often each task is asked.
        zero_one: without a pilot: the scores are 0 or 1, so that differences are shown in points.

    Raises:
        InputError: too few or too many numbers, or values out of range.
    """
    goal.check()
    tasks: dict[str, tuple[int, float]] = {}
    if pilot:
        noise = from_runs(pilot, settings, goal.assured)
        noise = doubled(noise) if two_like_this else noise
        if answers is not None:
            tasks = noise_by_task(pilot, settings)
            goal = _within(answers, sum(n for n, _ in tasks.values()), goal, noise)
    else:
        noise = _noise_from_numbers(goal)
        noise = noise if zero_one is None else replace(noise, zero_one=zero_one)
    labels = goal.r2 is not None or noise.r2 is not None
    if not labels and (goal.judged is not None or goal.target_se is not None):
        raise InputError("`judged` and `target_se` are about labels that correct a judge: give `labels`, or `r2`")
    if looks is not None and (labels or (pilot and settings.repeats_are == "runs")):
        raise InputError(
            "`looks` are taken at answers that come one by one and are all scored alike: leave them out, or the labels "
            "and `repeats_are='runs'`"
        )
    goal = goal if goal.target_se is None else replace(goal, n=_questions_for(goal.target_se, noise, goal))
    goal.check_noise(noise)
    result = _planned(noise, goal)
    if labels:
        result = _with_labels(result, noise, goal)
    if goal.cost_judge is not None:
        result = _with_judge(result, pilot, noise, goal, settings)
    if answers is not None:
        result = _by_task(result, answers, tasks, noise, goal)
    if looks is not None:
        result = _with_looks(result, looks, pilot, goal, settings)
    basis = "from" if pilot else "accuracy" if goal.accuracy is not None else "omega2"
    theory = result.theory if goal.accuracy is None else _theories(goal.accuracy, result, goal)
    return replace(result, basis=basis, theory=theory)


def _noise_from_numbers(goal: Asked) -> Noise:
    """Return the noise given as ω² and σ², or that of A − B at an accuracy p, p(1 − p), times the design effect."""
    if goal.accuracy is not None:
        noise = Noise(rule_of_thumb(goal.accuracy), split=False, scale=(0.0, 1.0), zero_one=True)
    else:
        assert goal.omega2 is not None
        noise = from_numbers(goal.omega2, goal.sigma2)
    if goal.cluster_size is not None:
        noise = replace(noise, units=Units(goal.cluster_size), clustered=True)
    return replace(noise, variances=noise.variances.inflated(goal.inflation))


def _planned(noise: Noise, goal: Asked) -> Plan:
    """Return the plan: the design asked for, and ones with other answers per question. Refuse noise of 0."""
    v = noise.start
    if v.at(1) == 0:
        raise InputError(
            "there is no noise to plan with: no question differs from another and no answer from the next (the same "
            "scores in both runs, or ω² and σ² of 0). Plan from other runs, or from `accuracy`"
        )
    best = None
    if noise.split and goal.money is not None and (noise.variances.omega2 > 0 or noise.upper is None):
        best = planning.best_repeats(v, *goal.money, goal.k_max)
    K = goal.repeats if goal.repeats is not None else best or 1
    answer, plug_in = goal.answer(noise, v, K), None
    if noise.upper is not None and noise.variances.omega2 > 0:
        plug_in = goal.answer(noise, noise.variances, K)
    steps = [1]
    if noise.split:
        steps = sorted(
            {k for k in (1, 2, 4, 8, 16, 32, 64, K, goal.k_max, noise.repeats or K) if k <= max(goal.k_max, K)}
        )
    units = max(2, math.ceil(answer.n_questions / noise.units.size - SLACK))
    counts = sorted({max(2, math.ceil(units * share)) for share in (0.25, 0.5, 2, 4)})
    sizes = sorted({answer.n_questions, *(noise.units.questions(count) for count in counts)})
    table = tuple(
        PlanRow(m, k, detectable_effect(v.at(k), m, goal.alpha, goal.mde_power, noise.units))
        for m in sizes
        for k in steps
    )
    estimated = noise.upper is not None
    return Plan(
        **asdict(answer),
        alpha=goal.alpha,
        cluster_size=noise.units.size if noise.clustered else None,
        repeats=K,
        omega2=noise.variances.omega2 if noise.split or not (estimated or noise.scale) else None,
        omega2_upper=v.omega2 if estimated and noise.split else None,
        sigma2_a=v.sigma2_a if noise.split else None,
        sigma2_b=v.sigma2_b if noise.split else None,
        design_effect=goal.inflation,
        icc=goal.icc,
        best_repeats=best,
        table=table,
        answers=tuple(goal.at_repeats(noise, v, k) for k in steps),
        pilot_repeats=noise.repeats,
        basis="",
        compared=noise.compared,
        assurance=goal.assured if estimated else None,
        plug_in=plug_in,
        diagnostics=noise.diagnostics,
        notes=(
            *(Note("the_plan", said) for said in _assumptions(noise, goal)),
            *(Note("the_pilot", said) for said in _trust(noise, goal, K, plug_in)),
        ),
        _zero_one=noise.zero_one,
    )


def _assumptions(noise: Noise, goal: Asked) -> list[str]:
    """Return sentences on what the plan compares, on a pilot that is not to be trusted, and on clusters."""
    said: list[str] = []
    if MISMATCH in noise.diagnostics:
        said.append(
            "The pilot's scores do not have the mean that its harness reports (mean_mismatch): do not rely on this "
            "plan."
        )
    if SCORED in noise.diagnostics:
        said.append(
            "Equal answers are scored differently in the pilot's two runs (scored_differently), so its noise is that "
            "of the scoring, too: do not rely on this plan."
        )
    if noise.compared == ONE_RUN:
        said.append(
            "The plan is for the mean of one run like this one against a fixed number. For two runs give both, or "
            "`two_like_this=True` for two like this one."
        )
    elif noise.compared == TWO_LIKE_THIS:
        said.append(
            "The plan is for two runs like this one, as if they were unrelated. Two models that answer the same "
            "questions usually need fewer. Give two runs to plan with what they share."
        )
    elif noise.pilot:
        said.append("The plan is for A − B of two runs like these, paired by question.")
    if noise.clustered:
        as_seen = ", as the pilot has them" if noise.pilot else ""
        said.append(
            f"The plan counts clusters of {noise.units.size:.3g} questions{as_seen}: "
            "more questions of the same clusters do not replace new clusters."
        )
    if not noise.pilot and goal.inflation is not None and goal.accuracy is not None:
        said.append(
            "The design effect multiplies the data noise. The Beta theory has no data noise (both models find the same "
            "questions hard), so its row is without it."
        )
    elif not noise.pilot and not noise.clustered and goal.inflation is None:
        said.append(INDEPENDENT)
    return said


def _trust(noise: Noise, goal: Asked, K: int, plug_in: PlugIn | None) -> list[str]:
    """Return sentences on how uncertain the pilot run's variance is, for K answers each. [] without a pilot."""
    if not noise.pilot:
        return []
    if noise.upper is None:
        return ["How uncertain the pilot's variance is, is not known here: the plan takes it as it is."]
    capped, omega2 = noise.start.at_most(K), noise.variances.omega2
    what = "the data variance" if noise.split and not capped else "the variance"
    text = f"The pilot has {noise.pilot}, so {what} is an estimate: the plan starts from {_from(noise, goal, K)}"
    if plug_in is None and capped:
        text += "."
    elif plug_in is None:
        text += f", because the estimate itself is {'0' if omega2 == 0 else 'below 0'} and promises too much."
    elif goal.r2 is not None or noise.r2 is not None:  # the sentence on the labels has the estimate's own number
        text += "."
    elif goal.n is None:
        clusters = "" if plug_in.n_clusters is None else f"{plug_in.n_clusters:,} clusters, "
        text += f". With the estimate itself you would need {clusters}{plug_in.n_questions:,} questions."
    elif goal.effect is not None:
        text += f". At the estimate itself the power would be {100 * plug_in.power:.0f}%."
    else:
        text += f". With the estimate itself {noise.amount(plug_in.mde)} would be detected."
    if noise.split and plug_in is None and goal.costs is not None:
        return [text, "With an ω² that is not above 0, this pilot cannot say how many answers per question are best."]
    return [text]


def _from(noise: Noise, goal: Asked, K: int) -> str:
    """Return a phrase for the variance that a plan with K answers each starts from: an upper limit, or the largest."""
    limit = f"its upper {100 * goal.assured:.0f}% limit"
    if noise.scale is None or not noise.start.at_most(K):
        return limit
    what, (low, high) = "" if noise.compared == ONE_RUN else "A − B of ", noise.scale
    most = f"{noise.start.most:.3g}, the largest that {what}scores from {low:g} to {high:g} can have"
    return f"{most}, which is below {limit}"


def _theories(p: float, plan: Plan, goal: Asked) -> tuple[TheoryRow, ...]:
    """Return rows with the questions needed by theories that know only the accuracy."""
    rows, units = [], Units(goal.cluster_size or 1.0)
    for name, v in (
        ("rule of thumb", rule_of_thumb(p)),
        ("Beta theory", planning.beta_theory(p, goal.solvable)),
        # the two models' successes fall on unrelated questions; all of it data noise
        ("independence bound", Variances(2 * p * (1 - p), 0.0, 0.0)),
    ):
        v = v.inflated(goal.inflation)
        variance = v.at(plan.repeats)
        size = units.questions(required_units(variance, plan.effect, goal.alpha, goal.mde_power, units))
        seen = detectable_effect(variance, plan.n_questions, goal.alpha, goal.mde_power, units)
        rows.append(TheoryRow(name, v.at(1), size, seen))
    return tuple(rows)


def _questions_for(se: float, noise: Noise, goal: Asked) -> int:
    """Return the number of questions, without a judge, that gives the mean label this standard error."""
    variance = noise.start.at(goal.repeats or 1)
    return noise.units.questions(max(2, math.ceil(variance / se**2 / noise.units.size - SLACK)))


def _with_labels(result: Plan, noise: Noise, goal: Asked) -> Plan:
    """Return the plan with how many questions people must label to correct a judge, and a note that says so."""
    r2 = noise.r2 if goal.r2 is None else goal.r2
    assert r2 is not None
    judged = noise.n_questions if goal.judged is None else goal.judged

    def enough(variance: float, n: float) -> bool:
        if goal.target_se is not None:
            return math.sqrt(variance) <= goal.target_se * (1 + SLACK)
        effect = detectable_effect(n * variance, n, goal.alpha, result.power, noise.units)
        return effect <= result.effect * (1 + SLACK)

    n = planning.labels_needed(result.variance, r2, judged, noise.units, enough)
    se = math.sqrt(planning.labelled_variance(result.variance, r2, n or judged, judged))
    labels = planning.LabelPlan(
        n_judged=judged, r2=r2, variance=result.variance, n_labels=n, n_labels_alone=result.n_questions, se=se
    )
    what = (
        f"a standard error of {noise.amount(goal.target_se)}"
        if goal.target_se is not None
        else noise.amount(result.effect)
    )
    aim = f"For {what}" if goal.target_se is not None else f"To find {what} with {100 * result.power:.0f}% power"
    need = (
        f"people label {n:,} of the {judged:,} judged questions"
        if n
        else f"labels of all {judged:,} judged questions are not enough"
    )
    if n and noise.upper is not None:
        likely = planning.labels_needed(noise.variances.at(goal.repeats or 1), r2, judged, noise.units, enough)
        if likely != n:
            start = _from(noise, goal, result.repeats)
            need += f", or {likely:,} if the pilot shows its true noise: the plan takes {start}"
    text = f"{aim}, {need} (the judge predicts R² = {r2:.2g} of the labels). "
    text += f"Without a judge, people label {counted(result.n_questions, 'question')}"
    text += f"{_or_likely(result, noise, goal)}."
    return replace(result, labels=labels, notes=(*result.notes, Note("plan_of_labels", text)))


def _or_likely(result: Plan, noise: Noise, goal: Asked) -> str:
    """Return ", or 250" for the questions without a judge if the pilot shows its true noise, "" if that is no other."""
    likely = None if result.plug_in is None else result.plug_in.n_questions
    if goal.target_se is not None and noise.upper is not None:
        likely = _questions_for(goal.target_se, replace(noise, upper=None), goal)
    return "" if likely in (None, result.n_questions) else f", or {likely:,}"


def _within(answers: int, n: int, goal: Asked, noise: Noise) -> Asked:
    """Return the goal with n and K so that `answers` are not exceeded. Refuse too few, and a set `n` or `repeats`."""
    if goal.n is not None or goal.repeats is not None:
        raise InputError("`answers` are spread over the pilot's questions: leave `n` and `repeats` out")
    if answers < n:
        raise InputError(f"`answers` {answers:,} are fewer than the {n:,} questions")
    return replace(goal, n=noise.n_questions, repeats=min(answers // n, goal.k_max))


def _by_task(result: Plan, answers: int, tasks: Mapping[str, tuple[int, float]], noise: Noise, goal: Asked) -> Plan:
    """Return the plan with the best number of answers per question by task, the mde that they give, and a note."""
    sizes, variances = zip(*tasks.values(), strict=True)
    K = planning.repeats_by_task(variances, sizes, answers, goal.k_max)
    total = sum(variances) or 1.0
    rows = [TaskRepeats(task, n, k, x / total) for (task, (n, x)), k in zip(tasks.items(), K, strict=True)]
    left = sum(row.share / row.repeats for row in rows)
    variance = noise.start.at(1 / left if left else math.inf)
    mde = detectable_effect(variance, result.n_questions, goal.alpha, goal.mde_power, noise.units)
    asked = ",".join(f"{row.task}={row.repeats}" for row in rows)
    spent = sum(row.n_questions * row.repeats for row in rows)
    most = f" (no question is asked more than {goal.k_max} times)" if min(K) == goal.k_max and spent < answers else ""
    text = (
        f"{spent:,} answers spread by task{most} find {noise.amount(mde)} instead of {noise.amount(result.mde)} with "
        f"K = {result.repeats} for all. A live lm-eval run asks so with noise_repeats {asked}"
    )
    return replace(
        result, by_task=tuple(rows), mde_by_task=mde, notes=(*result.notes, Note("plan_by_task", f"{text}."))
    )


def _judge_variance(pilot: Pilot, settings: Settings) -> float:
    """Return the judge's own variance on one answer, averaged over a pilot's runs. Refuse if unknown.

    Raises:
        InputError: none of them tells it.
    """
    from ...analysis.mean import analyze_run

    rows = [row for row in pilot if isinstance(row, Estimate)]
    for run in pilot:
        rows += () if isinstance(run, (Estimate, Difference)) else analyze_run(run, settings).estimates
    variances = [row.judge_flips.variance for row in rows if row.judge_flips and row.judge_flips.of == "answers"]
    if not variances:
        raise InputError(
            "`costs` judge: the judge's noise is unknown, because no two of its verdicts on the same text differ. Name "
            "`runs` in which it graded texts twice, or in Python `sigma2_judge`, the variance of its verdicts"
        )
    return sum(variances) / len(variances)


def _with_judge(result: Plan, pilot: Pilot, noise: Noise, goal: Asked, settings: Settings) -> Plan:
    """Return the plan with gains of more judge calls, answers or questions, and a note. Refuse unknown answer noise."""
    assert goal.costs is not None
    if not noise.split:
        raise InputError(
            "`costs` judge: the gain of another answer is unknown (one answer each, or all answers alike), so it "
            "cannot be compared with another judge call. Plan from runs with several answers, or from `sigma2`"
        )
    v = noise.start
    each = _judge_variance(pilot, settings) if goal.sigma2_judge is None else goal.sigma2_judge
    costs = goal.costs["question"], goal.costs["answer"], goal.costs["judge"]
    spent = planning.spending(v, each * v.runs, costs, result.repeats, goal.k_max)
    gains = {
        "another judge call for every answer": spent.judge,
        "another answer to every question": spent.answer,
        "more questions": spent.question,
    }
    (first, gain), *others = sorted(gains.items(), key=lambda pair: -pair[1])
    said = (
        f"For 1% more cost {first} lowers the variance most, by {100 * gain:.2g}%; "
        + " and ".join(f"{name} by {100 * less:.2g}%" for name, less in others)
        + f". For a budget {_counted(spent.best_repeats, 'answer')} to each question with "
        f"{_counted(spent.best_calls, 'judge call')} each are best."
    )
    return replace(result, judge=spent, notes=(*result.notes, Note("plan_of_judge", said)))


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _with_looks(plan: Plan, wanted: Looks | str, pilot: Pilot, goal: Asked, settings: Settings) -> Plan:
    """Return the plan with figures of a run that stops at a look when it is decided. Refuse one too small to look.

    Its boundaries take more questions at most, so that the power is the plan's, and fewer on average; where the number
    of questions was given it stays, and the power is what is left. Sample sizes are those of the fixed design times
    the ratio of squared drifts [Jennison, §2.2].

    Raises:
        InputError: looks out of range, or more than the plan's questions (clusters) have room for.
    """
    from ..boundaries import critical_values, drift_for_power, exits_above, expected_fraction, mixture_boundaries

    stopping = module_of("looks")

    rule = stopping.StoppingRule.parse("decided", looks=wanted, level=1 - plan.alpha)
    size = plan.cluster_size or 1.0
    most = stopping.MOST_BLOCKS if rule.looks == "anytime" else rule.looks
    count = min(most, int(plan.n_questions / size) // stopping.FEWEST_UNITS)
    if count < min(2, most):
        raise InputError(
            f"a plan of {plan.n_questions} questions is too small to look before the end: leave `looks` out"
        )
    shares = tuple((k + 1) / count for k in range(count))
    if rule.looks == "anytime":
        bounds = mixture_boundaries(shares, plan.alpha, stopping.NARROWEST)
    else:
        bounds = critical_values(shares, plan.alpha)
    drift = plan.effect / math.sqrt(plan.variance / plan.n_questions)
    n_max, power = plan.n_questions, float(exits_above(shares, bounds, drift).sum())
    if goal.n is None:
        drift, power = drift_for_power(shares, bounds, plan.power), plan.power
        fixed = critical_values([1.0], plan.alpha)
        inflation = (drift / drift_for_power([1.0], fixed, plan.power)) ** 2
        n_max = math.ceil(math.ceil(plan.n_questions / size * inflation - 1e-9) * size - 1e-9)
    none, planned, double = (n_max * expected_fraction(shares, bounds, times * drift) for times in (0, 1, 2))
    looks = PlanLooks(
        looks="anytime" if rule.looks == "anytime" else count,
        boundaries=bounds,
        n_fixed=plan.n_questions,
        n_max=n_max,
        power=power,
        n_expected_none=none,
        n_expected_effect=planned,
        n_expected_double=double,
        replay=_replayed(pilot, settings, rule.looks, goal.alpha),
    )
    return replace(plan, sequential=looks)


def _replayed(pilot: Pilot, settings: Settings, looks: Looks, alpha: float) -> Replay | None:
    """Replay interim looks on two pilot runs in many random orders. None without two. Refuse other than mean scores.

    None of one run, or of a result.
    """
    runs, _ = agree_on_metrics([run for run in pilot if isinstance(run, Run)])
    if len(runs) != 2:
        return None
    from ...analysis.comparison import compare_runs
    from ...analysis.sample import group_shares

    stopping = module_of("looks")
    row = compare_runs([(runs[0], runs[1])], settings).comparisons[0]
    for parts_a, parts_b, group in stopping.comparisons(runs[0], runs[1]):
        name = parts_a[0].task if group is None else group.name
        if (name, parts_a[0].metric, parts_a[0].scorer) == row.key:
            pair = stopping.Pair.of(parts_a, parts_b, group_shares(parts_a, group), settings)
            replayed: Replay = pair.replay(stopping.StoppingRule(looks=looks, level=1 - alpha))
            return replayed
    raise InputError(
        f"{row.task}, {row.metric}: no mean of question scores, whose questions could come in another order"
    )
