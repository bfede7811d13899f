"""`plan`: how many questions and answers, how small a difference, what power; with or without data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..data.scores import ReadOptions
from ..errors import InputError
from ..io.sources import listed, reading
from ..results.plan import Plan
from ..results.rows import Difference, Estimate
from ..settings import Estimator, Missing, RepeatsAre, Settings
from .designs import ASSURANCE, Asked, planned, theories

if TYPE_CHECKING:
    from ..data.scores import Run
    from .pilots import Noise


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
    cluster: str | None = None,
    se: Estimator = "cr2",
    range: tuple[float, float] | None = None,
    repeats_are: RepeatsAre = "answers",
    missing: Missing = "drop",
    seed: int = 0,
    resamples: int = 10_000,
    tasks: Sequence[str] = (),
    metrics: Sequence[str] = (),
    scorers: Sequence[str] = (),
    groups: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    apart: bool = False,
    looks: int | Literal["anytime"] | None = None,
) -> Plan:
    """Plan a comparison: of `effect`, `n` and `power` two give the third; power is 0.8 if two are missing.

    The noise comes from one of three places: `omega2` and `sigma2`; one or two `runs`; or the
    `accuracy` that the models will have. What runs showed is an estimate, so their plan starts from the
    upper confidence limit of ω² (`assurance`), and `plug_in` holds the answer of the estimate itself.
    Power is that of the t test with the planned design's degrees of freedom (noncentral t).

    Parameters
    ----------
    effect
        The true difference to be found, on the metric's scale.
    power
        The chance to find it, in (0, 1).
    n
        Number of questions.
    alpha
        Two-sided level of the test, in (0, 1).
    repeats
        Answers per question, K; by default the best for the costs if those are given, else 1.
    omega2
        Data variance per question of the contrast, ω², on the metric's scale squared.
    sigma2
        Prediction variance of one answer; one number for each model, or one per model.
    design_effect
        Of the clusters; multiplies ω², which must then come from questions taken as independent.
    cluster_size
        Questions per cluster, where `omega2` holds the clustering; the plan then counts clusters.
    runs
        Paths, Runs or results to take the noise from: two runs (A − B), one (its own mean against a fixed
        number), or an Estimate or Difference.
    two_like_this
        Of one run: plan the comparison of two such runs, as if they were unrelated.
    assurance
        The share of such pilots whose plan has the power, in (0, 1); 0.8 with `runs`.
    accuracy
        Expected accuracy, in (0, 1); the plan then follows the rule of thumb Var[A − B] ≈ p(1 − p), and
        `theory` shows what the other theories say.
    solved
        Share of the questions that any model solves, for the Beta theory.
    cost_question
        Cost of a question, in any unit.
    cost_answer
        Cost of an answer, in the same unit.
    k_max
        The most answers per question that are considered.
    cluster
        What related questions of `runs` share, as in `analyze`; so are all that follow.
    se
        Variance estimator of the clusters' scores.
    range
        Lowest and highest value of the metric.
    repeats_are
        ``"answers"`` or ``"runs"``.
    missing
        ``"drop"`` or ``"zero"``.
    seed
        Of the resampling of metrics over all questions at once.
    resamples
        How many of them.
    tasks, metrics, scorers
        Which of `runs`: a plan starts from one metric of one task.
    groups
        Name of a new group → glob of the tasks that it averages.
    columns
        Our name of a column → the file's.
    apart
        Every run by itself.
    looks
        Also plan a comparison that stops when it is decided, with so many looks or ``"anytime"``; of two runs with a
        replay in random orders.

    Returns
    -------
    Plan
        The design, and what other designs would find.

    Raises
    ------
    InputError
        Too few or too many of the above, or values out of range.

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
    settings = Settings(
        cluster=cluster, se=se, range=range, repeats_are=repeats_are, missing=missing, seed=seed, resamples=resamples
    )  # fmt: skip
    options = reading(settings, tasks, metrics, scorers, groups, columns, apart)
    asked = Asked(
        effect=effect, power=power, n=n, alpha=alpha, repeats=repeats, omega2=omega2, sigma2=sigma2,
        design_effect=design_effect, cluster_size=cluster_size, assurance=assurance, accuracy=accuracy, solved=solved,
        cost_question=cost_question, cost_answer=cost_answer, k_max=k_max,
    )  # fmt: skip
    asked.check()
    if runs:
        from .pilots import from_runs

        asked.check_pilot()
        noise = from_runs(listed(runs), settings, options, ASSURANCE if assurance is None else assurance)
        noise = noise.doubled() if two_like_this else noise
    else:
        if (settings, options) != (Settings(), ReadOptions()):
            raise InputError("settings and options of reading say how `runs` are read: give runs, or leave them out")
        if assurance is not None or two_like_this:
            raise InputError("`assurance` and `two_like_this` are about a pilot: they go with `runs`")
        noise = _without_runs(asked)
    asked.check_noise(noise)
    found = planned(noise, asked)
    if looks is not None:
        from .plan_looks import replayed, with_looks

        again = replayed(listed(runs), settings, options, looks, alpha) if runs else None
        found = with_looks(found, looks, n_given=n is not None, replay=again)
    basis = "from" if runs else "accuracy" if accuracy is not None else "omega2"
    return replace(found, basis=basis, theory=found.theory if accuracy is None else theories(accuracy, found, asked))


def _without_runs(asked: Asked) -> Noise:
    """The noise that is given in numbers, or follows from the accuracy."""
    from ..stats.planning import Units, Variances
    from ..stats.theory import rule_of_thumb
    from .pilots import Noise, from_numbers

    if asked.accuracy is not None:
        asked.check_alone("accuracy", asked.omega2, None, "a theory")
        noise = Noise(rule_of_thumb(asked.accuracy), split=False, scale=(0.0, 1.0))
    elif asked.omega2 is None:
        more = "" if asked.cluster_size is None else ": `cluster_size` needs an `omega2` that holds the clustering"
        raise InputError(
            "the noise comes from one of `omega2` (with `sigma2`), `runs` RUN [RUN] and `accuracy` P, and none of them "
            f"is given{more}"
        )
    else:
        noise = from_numbers(asked.omega2, asked.sigma2)
    if asked.cluster_size is not None:
        if asked.accuracy is not None:
            raise InputError(
                "`cluster_size` is for an `omega2` that holds the clustering, and there is none: with `accuracy` say "
                "the `design_effect` of the clusters in its place"
            )
        if asked.design_effect is not None:
            raise InputError("`cluster_size` is for an `omega2` that holds the clustering: leave `design_effect` out")
        noise = replace(noise, units=Units(asked.cluster_size), clustered=True)
    if asked.design_effect is not None:
        v = noise.variances
        noise = replace(noise, variances=Variances(v.omega2 * asked.design_effect, v.sigma2_a, v.sigma2_b))
    return noise
