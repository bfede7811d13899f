"""`plan`: how many questions and answers, how small a difference, what power, with or without data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from ...api.keywords import Choices, Request
from ...data.notes import Note
from ...errors import InputError
from ...extras import module_of
from ...settings import KEYWORDS

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Unpack

    from ...io.sources import Source
    from ...results.rows import Difference, Estimate
    from ...settings import Settings
    from ..boundaries import Looks
    from .plans import Asked
    from .results import Plan


def plan(
    runs: Source | Estimate | Difference | Sequence[Source | Estimate | Difference] = (),
    *,
    effect: float | None = None,
    power: float | None = None,
    n: int | None = None,
    repeats: int | None = None,
    omega2: float | None = None,
    sigma2: float | Sequence[float] | None = None,
    design_effect: float | None = None,
    cluster_size: float | None = None,
    icc: float | None = None,
    models: Sequence[str] = (),
    profile: str | Path | None = None,
    two_like_this: bool = False,
    assurance: float | None = None,
    accuracy: float | None = None,
    solved: float | None = None,
    costs: Mapping[str, float] | None = None,
    sigma2_judge: float | None = None,
    judged: int | None = None,
    r2: float | None = None,
    target_se: float | None = None,
    k_max: int = 10,
    answers: int | None = None,
    looks: Looks | str | None = None,
    settings: Settings | None = None,
    **choices: Unpack[Choices],
) -> Plan:
    """Plan a comparison: of `effect`, `n` and `power` two give the third. Power is 0.8 if two are missing.

    The noise comes from one of four places: `omega2` and `sigma2`; one or two `runs`; the profile of a benchmark
    (`profile`); or the `accuracy` that the models will have. What runs showed is an estimate, so their plan starts
    from the upper confidence limit of ω² (`assurance`), and `plug_in` holds the answer of the estimate itself.
    Power is that of the t test with the planned design's degrees of freedom (noncentral t).

    Parameters
    ----------
    runs
        Paths, Runs or results to take the noise from: two runs (A − B), one (its own mean against a fixed
        number), or an Estimate or Difference.
    effect
        The true difference to be found, on the metric's scale.
    power
        The chance to find it, in (0, 1).
    n
        Number of questions.
    repeats
        Answers per question, K; by default the best for the costs if those are given, else 1.
    omega2
        Data variance per question of the contrast, ω², on the metric's scale squared.
    sigma2
        Prediction variance of one answer; one number for each model, or one per model.
    design_effect
        Of the clusters; multiplies ω², which must then come from questions taken as independent.
    cluster_size
        Questions per cluster; the plan then counts clusters. Without `icc` and `design_effect`, `omega2` holds the
        clustering already.
    icc
        Intraclass correlation of the questions' differences within a cluster, in [0, 1]: with `cluster_size` m the
        design effect is 1 + (m − 1) · icc [Kish, §5.4].
    models
        Names of A, or of A and B, if `runs` hold more models.
    profile
        The noise profile of a benchmark, by name (`profiles`) or file; without `effect` and `n`: what the benchmark as
        it is can show.
    two_like_this
        Of one run: plan the comparison of two such runs, as if they were unrelated.
    assurance
        The share of such pilots whose plan has the power, in (0, 1); 0.8 with `runs`.
    accuracy
        Expected accuracy, in (0, 1); the plan then follows the rule of thumb Var[A − B] ≈ p(1 − p), and
        `theory` shows what the other theories say. With `profile`: of the models to be compared.
    solved
        Share of the questions that any model solves, for the Beta theory of `accuracy`; 1.
    costs
        Costs of a ``"question"``, an ``"answer"`` and perhaps a ``"judge"`` call for an answer, in one unit. With the
        cost of a judge call `judge` of the plan says whether another judge call, another answer or another question
        lowers the standard error most.
    sigma2_judge
        Variance of the judge's verdicts on one answer; by default that of the `runs`, from texts graded twice.
    judged
        Questions that a judge scores, of which people label a random subset: `labels` of the plan then says how many
        they must label. With `runs`, whose `labels` are the pilot, by default the questions that these have.
    r2
        The share of the labels' variance that the judge predicts, from 0 to 1; with `runs` it comes from their labels.
        The other noise, `omega2` for example, is then that of the labels.
    target_se
        Standard error of the corrected mean or difference, in place of `effect` and `n`.
    k_max
        The most answers per question that are considered.
    answers
        With `runs` that have several answers to a question: how this many, of each model, are best spread over the
        tasks, in place of `n` and `repeats`.
    looks
        Also plan a comparison that stops when it is decided, with so many looks or ``"anytime"``; of two runs with a
        replay in random orders.
    settings
        How the noise of `runs` is computed. None: the defaults.
    **choices
        Fields of `Settings` to replace (`level`, 1 − the error of the two-sided test, and with `runs` `cluster`, `se`,
        …), and how the paths in `runs` are read: see `Choices`.

    Returns
    -------
    Plan
        The design, and what other designs would find.

    Raises
    ------
    InputError
        No source of the noise or several; not two of `effect`, `n` and `power`; values out of range, such as an
        effect of 0 or as large as the metric's range; runs that cannot be read.

    References
    ----------
    Miller (2024), arXiv:2411.00640, §5; Wang (2025), arXiv:2512.21326, §1 and §4.1.3, for the rule of thumb and
    the Beta theory.

    Examples
    --------
    >>> import harness_noise as hn
    >>> hn.plan(effect=0.03, accuracy=0.7).n_questions
    1834
    """
    arguments = dict(locals())
    from ...io.sources import listed, names, of_models
    from ...results.rows import Difference, Estimate
    from .plans import Asked, plan_of

    sources: list[Any] = [runs] if isinstance(runs, (Estimate, Difference)) else listed(runs)
    form = _form(sources, profile, omega2, accuracy)
    own = {name: value for name, value in arguments.items() if name in KEYWORDS}
    request = Request.of("plan", settings, choices, own, form=form, sources=sources)
    arguments["alpha"] = round(1 - request.settings.level, 12)
    inputs = Asked(**{field.name: arguments[field.name] for field in fields(Asked)})
    if profile is not None:
        return _of_profile(profile, inputs, request, looks=looks)
    pilot = sources
    if form == "plan":
        read_runs = request.runs(sources)
        pilot = request.prepared([*of_models(read_runs, sources, names(models))] if models else [*read_runs])
    return plan_of(inputs, pilot, request.settings, two_like_this=two_like_this, looks=looks, answers=answers)


EXAMPLES = (
    "none is given. How many questions for a difference of 2 points? Without data yet: `effect=0.02` `accuracy=0.7` "
    "(with related questions also `cluster_size=10` `icc=0.2`). From a pilot: `effect=0.02` `runs` RUN RUN. On a known "
    "benchmark: `effect=0.02` `profile=gpqa_diamond`. What can 500 questions find? `n=500` instead of `effect=0.02`"
)
"""Advice on what to type if no noise is named."""


def _form(sources: Sequence[Any], profile: object, omega2: float | None, accuracy: float | None) -> str:
    """Return a plan's form by its noise (`plan_row`, …). Refuse no source, or several but profile with accuracy.

    Raises:
        InputError: from nothing, or from several places.
    """
    from ...results.rows import Difference, Estimate

    places = {"runs": sources or None, "profile": profile, "omega2": omega2, "accuracy": accuracy}
    named = [name for name, value in places.items() if value is not None]
    if len(named) != 1 and named != ["profile", "accuracy"]:
        which = f"{len(named)} of them are given: {', '.join(f'`{name}`' for name in named)}" if named else EXAMPLES
        raise InputError(
            "the noise comes from one of `runs` RUN [RUN], `profile` NAME, `omega2` (with `sigma2`) and `accuracy` "
            f"P; {which}"
        )
    if named == ["runs"]:
        return "plan_row" if isinstance(sources[0], (Estimate, Difference)) else "plan"
    return {"profile": "plan_profile", "omega2": "plan_numbers", "accuracy": "plan_accuracy"}[named[0]]


def _of_profile(path: str | Path, inputs: Asked, request: Request, *, looks: Looks | str | None) -> Plan:
    """Return the plan with the noise of a benchmark's profile, for its number of questions if no goal is given.

    Where one answer to each question says nothing of ω² alone.
    """
    from ...settings import check_scale
    from .plans import plan_of

    profiles = module_of("profile")
    profile = profiles.chosen(path, request.options)
    check_scale("effect", inputs.effect, profile.scale, profile.metric)
    if inputs.accuracy is not None:
        profile.check(inputs.accuracy)
    beyond = inputs.accuracy is not None and profile.beyond(inputs.accuracy)
    n = profile.n_questions if inputs.effect is inputs.n is inputs.target_se is None else inputs.n
    numbers = replace(inputs, accuracy=None, n=n, **profile.planning(inputs.accuracy))
    if numbers.effect is not None:
        numbers = replace(numbers, effect=float(numbers.effect))  # the profile knows the scale of its points
    result = plan_of(numbers, [], request.settings, looks=looks, zero_one=profile.scale is not None)
    said = f"The noise is that of other models on {profile.task}. No answer of the models to be compared was seen"
    source = profiles.sentence(path)
    return replace(
        result,
        basis="reference",
        omega2=None if profile.data_share is None else result.omega2,
        diagnostics=(*(["beyond_reference"] if beyond else ()), *result.diagnostics, "reference_noise"),
        notes=(
            *result.notes,
            Note("noise_of_others", f"{said}."),
            *([] if source is None else [Note("source", source)]),
        ),
    )
