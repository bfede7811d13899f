"""From what is asked and the noise to a plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import InputError
from ..results.plan import Plan, TaskRepeats
from ..results.rows import Difference, Estimate
from ..settings import Settings
from ..stats.tolerances import SLACK
from .designs import ASSURANCE, Asked, planned, theories

if TYPE_CHECKING:
    from ..data.scores import Run
    from .pilots import Noise
    from .sequential import Looks


def plan_of(
    asked: Asked,
    pilot: Sequence[Run | Estimate | Difference],
    settings: Settings,
    *,
    two_like_this: bool = False,
    looks: Looks | str | None = None,
    answers: int | None = None,
) -> Plan:
    """The plan that answers what is asked, with the noise of a pilot, of numbers, or of the expected accuracy.

    Args:
        asked: effect, questions and power, and the noise where it is given in numbers.
        pilot: one or two runs, or one row of a result; none: the numbers count.
        settings: how the noise of runs is computed.
        two_like_this: plan two runs like the one of the pilot.
        looks: also plan to stop when it is decided, with so many looks, or "anytime".
        answers: of each run, to all questions of the pilot together; also plan how often each task is asked.

    Raises:
        InputError: too few or too many numbers, or values out of range.
    """
    asked.check()
    if pilot:
        from .pilots import from_runs

        noise = from_runs(pilot, settings, ASSURANCE if asked.assurance is None else asked.assurance)
        noise = noise.doubled() if two_like_this else noise
        asked = asked if answers is None else _within(answers, asked, noise)
    else:
        noise = _without_runs(asked)
    labels = asked.r2 is not None or noise.r2 is not None
    if not labels and (asked.judged is not None or asked.target_se is not None):
        raise InputError("`judged` and `target_se` are about labels that correct a judge: give `labels`, or `r2`")
    if labels and looks is not None:
        raise InputError("`looks` are taken at answers that are all scored alike: leave them or the labels out")
    asked = asked if asked.target_se is None else replace(asked, n=_questions_for(asked.target_se, noise, asked))
    asked.check_noise(noise)
    result = planned(noise, asked)
    if labels:
        result = _with_labels(result, noise, asked)
    if asked.cost_judge is not None:
        result = _with_judge(result, pilot, noise, asked, settings)
    if answers is not None:
        result = _by_task(result, answers, pilot, noise, asked, settings)
    if looks is not None:
        from .plan_looks import replayed, with_looks
        from .sequential import StoppingRule

        looks = StoppingRule.parse("decided", looks=looks).looks
        again = replayed(pilot, settings, looks, asked.alpha) if pilot else None
        result = with_looks(result, looks, n_given=asked.n is not None, replay=again)
    basis = "from" if pilot else "accuracy" if asked.accuracy is not None else "omega2"
    theory = result.theory if asked.accuracy is None else theories(asked.accuracy, result, asked)
    return replace(result, basis=basis, theory=theory)


def _questions_for(se: float, noise: Noise, asked: Asked) -> int:
    """Questions whose mean label has this standard error."""
    v, size = noise.variances if noise.upper is None else noise.upper, noise.units.size
    return noise.units.questions(max(2, math.ceil(v.at(asked.repeats or 1) / se**2 / size - SLACK)))


def _with_labels(result: Plan, noise: Noise, asked: Asked) -> Plan:
    """The plan of labels alone, with how many a judge of the other questions saves."""
    from ..stats.planning import LabelPlan, detectable_effect, labelled_variance, labels_needed

    r2 = noise.r2 if asked.r2 is None else asked.r2
    assert r2 is not None
    judged = noise.n_questions if asked.judged is None else asked.judged

    def enough(variance: float, n: float) -> bool:
        if asked.target_se is not None:
            return math.sqrt(variance) <= asked.target_se * (1 + SLACK)
        found = detectable_effect(n * variance, n, asked.alpha, result.power, noise.units)
        return found <= result.effect * (1 + SLACK)

    n = labels_needed(result.variance, r2, judged, noise.units, enough)
    se = math.sqrt(labelled_variance(result.variance, r2, n or judged, judged))
    labels = LabelPlan(
        n_judged=judged, r2=r2, variance=result.variance, n_labels=n, n_labels_alone=result.n_questions, se=se
    )
    what = f"a standard error of {asked.target_se:.3g}" if asked.target_se is not None else f"{result.effect:.3g}"
    aim = f"For {what}" if asked.target_se is not None else f"To find {what} with {100 * result.power:.0f} % power"
    need = f"people label {n:,} of the {judged:,} judged questions" if n else f"labels of all {judged:,} are too few"
    text = f"{aim} {need} (the judge predicts R² = {r2:.2g} of the labels); without a judge {result.n_questions:,}."
    return replace(result, labels=labels, notes=(*result.notes, text))


def _within(answers: int, asked: Asked, noise: Noise) -> Asked:
    """What is asked, of the pilot's questions with as many answers as all of them can have."""
    if asked.n is not None or asked.repeats is not None:
        raise InputError("`answers` are spread over the pilot's questions: leave `n` and `repeats` out")
    if answers < noise.n_questions:
        raise InputError(f"`answers` {answers:,} are fewer than the {noise.n_questions:,} questions")
    K = min(answers // noise.n_questions, asked.k_max)
    return replace(asked, n=noise.n_questions, repeats=K)


def _by_task(
    result: Plan,
    answers: int,
    pilot: Sequence[Run | Estimate | Difference],
    noise: Noise,
    asked: Asked,
    settings: Settings,
) -> Plan:
    """The plan with the best numbers of answers by task beside it."""
    from ..stats.planning import detectable_effect, repeats_by_task
    from .pilots import noise_by_task

    tasks = noise_by_task(pilot, settings)
    sizes, variances = zip(*tasks.values(), strict=True)
    K = repeats_by_task(variances, sizes, answers, asked.k_max)
    total = sum(variances) or 1.0
    rows = [TaskRepeats(task, n, k, x / total) for (task, (n, x)), k in zip(tasks.items(), K, strict=True)]
    v = noise.variances if noise.upper is None else noise.upper
    left = sum(row.share / row.repeats for row in rows)
    spread = max(0.0, v.omega2) + (v.sigma2_a + (v.sigma2_b or 0.0)) * left
    mde = detectable_effect(spread, result.n_questions, asked.alpha, asked.at, noise.units)
    text = (
        f"{answers:,} answers spread by task find {mde:.3g} in place of {result.mde:.3g} with K = {result.repeats} for "
        f"all; a live lm-eval run asks so with noise_repeats {','.join(f'{row.task}={row.repeats}' for row in rows)}"
    )
    return replace(result, by_task=tuple(rows), mde_by_task=mde, notes=(*result.notes, f"{text}."))


def _judge_variance(pilot: Sequence[Run | Estimate | Difference], settings: Settings) -> float:
    """The judge's own variance on one answer, the mean over the runs of a pilot.

    Raises:
        InputError: none of them tells it.
    """
    from .mean import analyze_run

    rows = [row for row in pilot if isinstance(row, Estimate)]
    for run in pilot:
        rows += () if isinstance(run, (Estimate, Difference)) else analyze_run(run, settings).estimates
    known = [row.judge_flips.variance for row in rows if row.judge_flips and row.judge_flips.of == "answers"]
    if not known:
        raise InputError(
            "`cost_judge`: how noisy the judge is is not known, because no verdicts on the same text differ here: give "
            "`sigma2_judge`, the variance of its verdicts on one answer"
        )
    return sum(known) / len(known)


def _with_judge(
    result: Plan, pilot: Sequence[Run | Estimate | Difference], noise: Noise, asked: Asked, settings: Settings
) -> Plan:
    """The plan with what another judge call is worth beside another answer and another question."""
    from ..stats.planning import spending

    assert asked.cost_question is not None
    assert asked.cost_answer is not None
    assert asked.cost_judge is not None
    if not noise.split:
        raise InputError(
            "`cost_judge`: what another answer gains is not known here (one answer each, or all answers alike), "
            "so it cannot be compared with another judge call: plan from runs with several answers, or from `sigma2`"
        )
    v = noise.variances if noise.upper is None else noise.upper
    each = _judge_variance(pilot, settings) if asked.sigma2_judge is None else asked.sigma2_judge
    variance = each * (1 if v.sigma2_b is None else 2)
    costs = asked.cost_question, asked.cost_answer, asked.cost_judge
    spent = spending(v, variance, costs, result.repeats, asked.k_max)
    gains = {
        "judge": (spent.judge, "another judge call for every answer"),
        "answer": (spent.answer, "another answer to every question"),
        "question": (spent.question, "more questions"),
    }
    first, *others = sorted(gains, key=lambda name: -gains[name][0])
    note = (
        f"For 1 % more cost {gains[first][1]} lowers the variance most, by {100 * gains[first][0]:.2g} %; "
        + " and ".join(f"{gains[name][1]} by {100 * gains[name][0]:.2g} %" for name in others)
        + f". For a budget {_counted(spent.best_repeats, 'answer')} to each question with "
        f"{_counted(spent.best_calls, 'judge call')} each are best."
    )
    return replace(result, judge=spent, notes=(*result.notes, note))


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _without_runs(asked: Asked) -> Noise:
    """The noise that is given in numbers, or follows from the accuracy."""
    from ..stats.planning import Units, Variances, rule_of_thumb
    from .pilots import Noise, from_numbers

    if asked.accuracy is not None:
        noise = Noise(rule_of_thumb(asked.accuracy), split=False, scale=(0.0, 1.0))
    else:
        assert asked.omega2 is not None
        noise = from_numbers(asked.omega2, asked.sigma2)
    if asked.cluster_size is not None:
        noise = replace(noise, units=Units(asked.cluster_size), clustered=True)
    if asked.inflation is not None:
        v = noise.variances
        noise = replace(noise, variances=Variances(v.omega2 * asked.inflation, v.sigma2_a, v.sigma2_b))
    return noise
