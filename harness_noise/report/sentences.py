"""One sentence for a paper, of a mean or a difference."""

from __future__ import annotations

from math import isclose
from typing import TYPE_CHECKING, TypeAlias

from ..results.rows import Analysis, Comparison, Difference, Estimate
from ..stats.tolerances import SLACK
from .columns import (
    _level,
    _named,
    data_noise,
    decimals,
    has_t,
    if_missing,
    interval,
    interval_words,
    mean_interval_name,
    metric_name,
    names_of,
    number,
    p_text,
    pairing,
    plain,
    span,
)

if TYPE_CHECKING:
    from ..results.arena import Arena
    from ..results.factors import Factors
    from ..results.plan import Plan

    Result: TypeAlias = Analysis | Comparison | Plan | Factors | Arena


def sentence(item: Estimate | Difference) -> str:
    """One sentence that reports a result as a paper should."""
    return plain(_estimate_sentence(item) if isinstance(item, Estimate) else _difference_sentence(item))


def _sample(item: Estimate | Difference) -> str:
    grouped = f" in {item.n_clusters} {_clusters(item)} ({item.cluster})" if item.cluster else ""
    estimand = "; estimand: these questions" if item.estimand == "these_questions" else ""
    n = f"{item.n_questions} question{'' if item.n_questions == 1 else 's'}"
    return f"n = {n}{grouped}, {answers(item)}{estimand}"


def answers(item: Estimate | Difference) -> str:
    """ "5 answers each", "10 answers each of new and one of old", "5 answers each, all alike"."""
    if "uses_all_repeats" in item.diagnostics:  # the 1 is its one value of a question, not how many answers that took
        return "one value each of all its answers"
    if isinstance(item, Difference) and item.repeats_a != item.repeats_b:
        first, second = ("one" if K == 1 else str(K) for K in (item.repeats_a, item.repeats_b))
        name_a, name_b = names_of(item)
        text = f"{first} answer{'' if item.repeats_a == 1 else 's'} each of {name_a} and {second} of {name_b}"
    else:
        low, high = (
            (item.repeats_a, item.repeats_b) if isinstance(item, Difference) else (item.repeats_min, item.repeats_max)
        )
        text = "one answer each" if high == 1 else f"{span(low, high)} answers each"
    if "identical_repeats" not in item.diagnostics:
        return text
    return f"{text}, all alike" + (" in at least one run" if isinstance(item, Difference) else "")


def _clusters(item: Estimate | Difference) -> str:
    return "cluster" if item.n_clusters == 1 else "clusters"


def _kind(cluster: str | None, estimator: object) -> str:
    name = str(estimator)
    how = name.upper() if name.startswith("cr") else name
    return f"clustered standard error, {how}" if cluster else "standard error"


ODD = "the scores do not have the mean that the harness reports, so do not use this"
"""Of a row with `mean_mismatch`."""


def _estimate_sentence(item: Estimate) -> str:
    digits = decimals(item.se, item.mean)
    if not item.n_questions:
        where = f"{f' on {item.task}' if item.task else ''} ({metric_name(item.metric, item.scorer)})"
        if item.mean is None:
            return f"{item.model or 'The model'} has no score{where}."
        return f"{item.model or 'The model'} scores {number(item.mean, digits)}{where}, without an error bar."
    parts = [
        f"{item.model or 'The model'} scores {number(item.mean, digits)}"
        + (f" ± {number(item.se, digits)} ({_kind(item.cluster, item.estimator)})" if item.se else "")
        + (f" on {item.task}" if item.task else "")
        + f" ({metric_name(item.metric, item.scorer)}; "
        + f"{_sample(item)})"
    ]
    if item.ci_low is not None:
        name = mean_interval_name(item)
        parts.append(
            f"{_level([item])} CI {interval(item.ci_low, item.ci_high, digits)}" + (f" ({name})" if name else "")
        )
    if "missing_matters" in item.diagnostics:
        parts.append(
            f"between {' and '.join(if_missing(item, digits).split(' … '))} if its {item.n_missing} missing "
            "answers were all wrong or all right"
        )
    if item.se_data is not None:
        parts.append(
            f"with one answer per question its standard error would be {number(item.se_total, digits)} "
            f"(data {data_noise(item, digits)}, prediction {number(item.se_prediction, digits)})"
        )
    return "; ".join([*parts, ODD] if "mean_mismatch" in item.diagnostics else parts) + "."


def _difference_sentence(item: Difference) -> str:
    digits = decimals(item.se, item.diff)
    name_a, name_b = names_of(item)
    error = f" ± {number(item.se, digits)}" if item.se and item.test != "sequential" else ""
    text = (
        f"{name_a} − {name_b} = {number(item.diff, digits)}{error}"
        + (f" on {item.task}" if item.task else "")
        + f" ({metric_name(item.metric, item.scorer)}; "
        + pairing(item)
        + (", clustered" if item.cluster else "")
        + f"; {_sample(item)})"
    )
    shown = interval_words(item)
    if item.ci_low is not None:
        text += f"; {_level([item])} CI {interval(item.ci_low, item.ci_high, digits)} ({shown})"
    for name, value in (("p", item.p_value), ("adjusted p", item.p_adjusted)):
        if value is None or (name != "p" and isclose(value, item.p_value or 0.0, rel_tol=SLACK)):
            continue
        p, test = p_text(value), _named(item.test, item)
        text += f", {name} {p}" if p.startswith("<") else f", {name} = {p}"
        text += f" ({test})" if name == "p" and has_t(item) and (test != shown or item.ci_low is None) else ""
    if "missing_matters" in item.diagnostics:
        text += f"; its {item.n_missing} missing answers could change this"
    if "mean_mismatch" in item.diagnostics:
        return f"{text}: {ODD}."
    if item.ci_low is None and item.p_value is None:
        return f"{text}: whether they differ is not known."
    winner = {"A better": name_a, "B better": name_b}.get(item.verdict)
    return f"{text}: {winner} is better." if winner else f"{text}: {item.verdict}."
