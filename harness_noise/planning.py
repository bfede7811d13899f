"""`plan`: how many questions and answers, how small a difference, what power; with or without data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import InputError
from .results import UNSPLIT, Difference, Estimate, Plan, PlanRow, TheoryRow

if TYPE_CHECKING:
    from .estimators.planning import Variances
    from .scores import Run

POWER = 0.80


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
    runs: Sequence[str | Path | Run | Estimate | Difference] = (),
    accuracy: float | None = None,
    solved: float = 1.0,
    cost_question: float | None = None,
    cost_answer: float | None = None,
    k_max: int = 10,
    **choices: Any,
) -> Plan:
    """Plan a comparison: of `effect`, `n` and `power` two give the third; power is 0.8 if two are missing.

    The noise comes from one of three places: `omega2` and `sigma2`; one or two `runs`; or the
    `accuracy` that the models will have.

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
        runs: paths, Runs or results to take the noise from: two runs (A − B), one (its own mean), or an
            Estimate or Difference.
        accuracy: expected accuracy, in (0, 1); the plan then follows the rule of thumb Var[A − B] ≈ p(1 − p),
            and `theory` shows what the other theories say.
        solved: share of the questions that any model solves, for the Beta theory.
        cost_question: cost of a question.
        cost_answer: cost of an answer.
        k_max: the most answers per question that are considered.
        **choices: `cluster`, `tasks`, `metrics`, … for reading `runs`.

    Raises:
        InputError: too few or too many of the above, or values out of range.
    """
    from .estimators.planning import Variances, achieved_power, best_repeats, detectable_effect, required_questions

    _check_ranges(effect, power, n, alpha, repeats, design_effect, accuracy, solved, cost_question, cost_answer, k_max)
    sources = [name for name, there in (("--omega2", omega2 is not None), ("--from", bool(runs)),
                                        ("--accuracy", accuracy is not None)) if there]  # fmt: skip
    if len(sources) != 1:
        raise InputError(
            f"the noise comes from one of --omega2 (with --sigma2), --from RUN [RUN] and --accuracy P; {len(sources)} "
            f"of them are given{': ' + ', '.join(sources) if sources else ''}"
        )
    diagnostics: tuple[str, ...] = ()
    known_split = True
    if runs:
        if sigma2 is not None:
            raise InputError("--sigma2 belongs to --omega2: with --from it is taken from the runs")
        variances, clustered, diagnostics = _from_runs(runs, choices)
        known_split = not set(diagnostics) & (UNSPLIT | {"uses_all_repeats"})
        if clustered and design_effect is not None:
            raise InputError(
                "the runs are clustered, so their data variance holds the clustering: leave --design-effect out"
            )
    else:
        if choices:
            raise InputError(f"unknown option {next(iter(choices))!r} (options for reading go with --from)")
        if accuracy is not None:
            from .estimators.theory import rule_of_thumb

            if sigma2 is not None:
                raise InputError("--sigma2 belongs to --omega2: with --accuracy it comes from a theory")
            variances, known_split = rule_of_thumb(accuracy), False
        else:
            assert omega2 is not None
            variances = _given(omega2, sigma2)
            known_split = sigma2 is not None
    if design_effect is not None:
        variances = Variances(variances.omega2 * design_effect, variances.sigma2_a, variances.sigma2_b)
    if not known_split and (repeats or 1) > 1 and accuracy is None:
        raise InputError(
            "what more answers per question gain is not known here (no --sigma2, one answer per question, or all "
            "answers alike): plan with one answer, or give --sigma2 or runs with several answers"
        )

    best = cost = None
    costs = cost_question is not None and cost_answer is not None
    if known_split and costs:
        assert cost_question is not None
        assert cost_answer is not None
        best = best_repeats(variances, cost_question, cost_answer, k_max)
    K = repeats if repeats is not None else best or 1
    variance = variances.at(K)
    if variance == 0:
        raise InputError(
            "there is no noise to plan with: no question differs from another and no answer from the next (the same "
            "scores in both runs, or ω² and σ² of 0); plan from other runs, or from --accuracy"
        )
    solved_power = power
    if effect is not None and n is not None:
        if power is not None:
            raise InputError("of --effect, --n and --power give two; the third follows")
        solved_power, at = achieved_power(variance, n, effect, alpha), POWER
        size = n
    else:
        solved_power = at = POWER if power is None else power
        if effect is not None:
            size = max(2, math.ceil(required_questions(variance, effect, alpha, at) - 1e-9))
        elif n is not None:
            size, effect = n, detectable_effect(variance, n, alpha, at)
        else:
            raise InputError("give --effect (how many questions?) or --n (how small a difference?)")
    if costs:
        assert cost_question is not None
        assert cost_answer is not None
        cost = size * (cost_question + (1 if variances.sigma2_b is None else 2) * cost_answer * K)
    steps = sorted({k for k in (1, 2, 4, 8, 16, 32, 64, K, k_max) if k <= max(k_max, K)}) if known_split else [1]
    sizes = sorted({max(2, math.ceil(size * share)) for share in (0.25, 0.5, 1, 2, 4)})
    table = tuple(
        PlanRow(m, k, detectable_effect(variances.at(k), m, alpha, at)) for m in sizes for k in steps
    )  # fmt: skip
    return Plan(
        effect=effect,
        power=solved_power,
        alpha=alpha,
        n_questions=size,
        repeats=K,
        mde=detectable_effect(variance, size, alpha, at),
        omega2=variances.omega2,
        sigma2_a=variances.sigma2_a if known_split else None,
        sigma2_b=variances.sigma2_b if known_split else None,
        design_effect=design_effect,
        best_repeats=best,
        cost=cost,
        table=table,
        basis=sources[0].removeprefix("--"),
        theory=()
        if accuracy is None
        else _theories(accuracy, solved, effect, size, K, alpha, at, design_effect or 1.0),
        diagnostics=diagnostics,
    )


def _check_ranges(
    effect: float | None, power: float | None, n: int | None, alpha: float, repeats: int | None,
    design_effect: float | None, accuracy: float | None, solved: float, cost_question: float | None,
    cost_answer: float | None, k_max: int,
) -> None:  # fmt: skip
    for name, value, low, high in (
        ("--effect", effect, 0.0, math.inf), ("--power", power, 0.0, 1.0), ("--alpha", alpha, 0.0, 1.0),
        ("--design-effect", design_effect, 0.0, math.inf), ("--accuracy", accuracy, 0.0, 1.0),
        ("--cost-question", cost_question, 0.0, math.inf), ("--cost-answer", cost_answer, 0.0, math.inf),
    ):  # fmt: skip
        if value is not None and not low < value < high:
            raise InputError(
                f"{name} {value:g} must be above {low:g}{'' if high == math.inf else f' and below {high:g}'}"
            )
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


def _given(omega2: float, sigma2: float | Sequence[float] | None) -> Variances:
    from .estimators.planning import Variances

    pair = (
        [0.0] if sigma2 is None else [float(sigma2)] if isinstance(sigma2, (int, float)) else [float(s) for s in sigma2]
    )
    if len(pair) > 2 or not pair:
        raise InputError(f"--sigma2 takes one number or two, not {len(pair)}")
    if min(pair) < 0 or not all(map(math.isfinite, (*pair, omega2))):
        raise InputError("--omega2 and --sigma2 must be finite, and --sigma2 not negative")
    return Variances(float(omega2), pair[0], pair[-1])


def _from_runs(sources: Sequence[Any], choices: dict[str, Any]) -> tuple[Variances, bool, tuple[str, ...]]:
    """Variances per question, whether they hold the clustering, and the diagnostics of their source."""
    from .estimators.planning import Variances

    if len(sources) == 1 and isinstance(sources[0], (Estimate, Difference)):
        rows: list[Estimate | Difference] = [sources[0]]
        each: list[Estimate] = []
    else:
        rows, each = _measured(sources, choices)
    row = _the_only(rows)
    n = row.n_questions
    if row.se_total is None:
        raise InputError(f"{row.task}, {row.metric}: no standard error to plan with ({', '.join(row.diagnostics)})")
    clustered = row.cluster is not None
    two = isinstance(row, Difference)
    if row.var_data is None or row.var_prediction is None:
        # only the sum of both noises at one answer is known: promise nothing from more answers
        return Variances(n * row.se_total**2, 0.0, 0.0 if two else None), clustered, row.diagnostics
    if not two:
        return Variances(n * row.var_data, n * row.var_prediction), clustered, row.diagnostics
    parts = [item.n_questions * item.var_prediction for item in each if item.var_prediction is not None]
    if len(parts) == 2 and sum(parts) > 0:  # shares from each run, the sum from the questions they have in common
        total = n * row.var_prediction
        share = parts[0] / sum(parts)
        return Variances(n * row.var_data, total * share, total * (1 - share)), clustered, row.diagnostics
    half = n * row.var_prediction / 2
    return Variances(n * row.var_data, half, half), clustered, row.diagnostics


def _measured(sources: Sequence[Any], choices: dict[str, Any]) -> tuple[list[Estimate | Difference], list[Estimate]]:
    """The rows to plan with, of one run or of A − B, and the estimates of each run."""
    from .analysis import analyze_runs
    from .api import runs_of, split
    from .comparison import compare_runs

    settings, options = split(choices)
    runs = [run for source in sources for run in runs_of(source, options)]
    if len(runs) > 2:
        models = ", ".join(run.model for run in runs[:6])
        raise InputError(f"--from takes one run or two, not {len(runs)} ({models})")
    each = [row for row in analyze_runs(runs, settings).estimates if row.se_total is not None]
    if len(runs) == 1:
        return list(each), each
    found = list(compare_runs([(runs[0], runs[1])], settings).comparisons)
    if len(found) == 1:
        wanted = (found[0].task, found[0].metric, found[0].scorer)
        each = [row for row in each if (row.task, row.metric, row.scorer) == wanted]
    return list(found), each


def _the_only(rows: Sequence[Estimate | Difference]) -> Estimate | Difference:
    if len(rows) == 1:
        return rows[0]
    names = "; ".join(f"{row.task} / {row.metric} / {row.scorer}" for row in rows[:6]) or "none"
    raise InputError(
        f"a plan starts from one metric of one task; there are {len(rows)}: {names}. Name one with --task, --metric "
        "and --scorer"
    )


def _theories(
    p: float, solved: float, effect: float, n: int, repeats: int, alpha: float, power: float, design_effect: float
) -> tuple[TheoryRow, ...]:
    from .estimators import theory
    from .estimators.planning import Variances, detectable_effect, required_questions

    rows = []
    for name, v in (
        ("rule of thumb", theory.rule_of_thumb(p)),
        ("Beta theory", theory.beta_theory(p, solved)),
        ("independence bound", theory.independence_bound(p)),
    ):
        v = Variances(v.omega2 * design_effect, v.sigma2_a, v.sigma2_b)
        variance = v.at(repeats)
        size = max(2, math.ceil(required_questions(variance, effect, alpha, power) - 1e-9))
        rows.append(
            TheoryRow(name, v.at(1), size, detectable_effect(variance, n, alpha, power))
        )  # fmt: skip
    return tuple(rows)
