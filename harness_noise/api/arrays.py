"""The public functions on plain arrays of scores: `estimate`, `estimate_difference`, and what adds to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from ..errors import InputError
from ..settings import Settings
from .keywords import Computing, chosen_settings

if TYPE_CHECKING:
    from typing import TypeAlias, Unpack

    import numpy as np
    from numpy.typing import ArrayLike

    from ..arrays import FloatArray, NamesLike
    from ..results.rows import Difference, Estimate
    from ..stats.combine import Combined

    Number: TypeAlias = np.floating | np.integer | np.bool_
    Table: TypeAlias = (
        Sequence[float]
        | Sequence[Sequence[float]]
        | np.ndarray[tuple[int], np.dtype[Number]]
        | np.ndarray[tuple[int, int], np.dtype[Number]]
    )
    """Scores of one pair of runs, (n,) or (n, K)."""
    Tables: TypeAlias = Sequence[Sequence[Sequence[float]]] | np.ndarray[tuple[int, int, int], np.dtype[Number]]
    """(P, n, K) scores of P pairs."""


def estimate(
    scores: ArrayLike,
    clusters: NamesLike | None = None,
    level: float | None = None,
    *,
    crossed: tuple[NamesLike, NamesLike] | None = None,
    settings: Settings | None = None,
    **choices: Unpack[Computing],
) -> Estimate:
    """Return the mean of one run's scores, given as an array, with its standard error and confidence interval.

    Parameters
    ----------
    scores
        (n, K) scores of n questions × K answers, NaN where one is missing; or (n,).
    clusters
        (n,) names, equal for questions that belong together; None: independent questions.
    level
        Coverage of the confidence interval, in (0, 1); 0.95.
    crossed
        Two sets of (n,) names, in place of `clusters`, if questions are clustered in two crossed ways.
    settings
        How to compute. None: the defaults.
    **choices
        Fields of `Settings` to replace (`se`, `interval`, …); `range` is by default [0, 1] if all scores lie in it.

    Returns
    -------
    Estimate
        On the scale of the scores. What is not identified is None, and `diagnostics` says why.

    Raises
    ------
    ValueError
        Scores of another shape, names of another length, `clusters` with `crossed`. As an InputError: infinite scores,
        a level outside (0, 1), scores outside `range`, and settings that these scores cannot have.

    References
    ----------
    Wang (2025), arXiv:2512.21326, §3.3; Miller (2024), arXiv:2411.00640, §2.2; Bell & McCaffrey (2002), "Bias
    reduction in standard errors for linear regression with multi-stage samples", for CR2.

    Examples
    --------
    >>> import harness_noise as hn
    >>> row = hn.estimate([[1, 1], [0, 1], [0, 0], [1, 1]])
    >>> row.mean, round(row.se, 3), tuple(round(end, 3) for end in row.confidence_interval)
    (0.625, 0.239, (0.117, 0.955))
    """
    from ..analysis.mean import estimate_scores
    from ..analysis.sample import as_scores
    from ..io.first_answers import first_of

    chosen = chosen_settings("estimate", settings, {**choices, "level": level})
    return estimate_scores(first_of(as_scores(scores, clusters, chosen.missing, crossed=crossed)), chosen)


@overload
def estimate_difference(
    a: Table,
    b: Table,
    clusters: NamesLike | None = ...,
    level: float | None = ...,
    *,
    crossed: tuple[NamesLike, NamesLike] | None = ...,
    settings: Settings | None = ...,
    **choices: Unpack[Computing],
) -> Difference: ...
@overload
def estimate_difference(
    a: Tables,
    b: Tables,
    clusters: NamesLike | None = ...,
    level: float | None = ...,
    *,
    crossed: tuple[NamesLike, NamesLike] | None = ...,
    settings: Settings | None = ...,
    **choices: Unpack[Computing],
) -> tuple[Difference, ...]: ...
@overload
def estimate_difference(
    a: ArrayLike,
    b: ArrayLike,
    clusters: NamesLike | None = ...,
    level: float | None = ...,
    *,
    crossed: tuple[NamesLike, NamesLike] | None = ...,
    settings: Settings | None = ...,
    **choices: Unpack[Computing],
) -> Difference | tuple[Difference, ...]: ...
def estimate_difference(
    a: ArrayLike,
    b: ArrayLike,
    clusters: NamesLike | None = None,
    level: float | None = None,
    *,
    crossed: tuple[NamesLike, NamesLike] | None = None,
    settings: Settings | None = None,
    **choices: Unpack[Computing],
) -> Difference | tuple[Difference, ...]:
    """Return A − B of two runs' (n, K) scores, paired by question, with interval and test. (P, n, K): one of each pair.

    Parameters
    ----------
    a
        (n, K_A) scores, NaN where an answer is missing; or (n,). (P, n, K_A) scores are of P pairs of runs.
    b
        (n, K_B) scores of the same n questions in the same order; with `unpaired` of others, as many as there are.
        (P, n, K_B) with P pairs.
    clusters
        (n,) names, equal for questions that belong together; None: independent questions.
    level
        Coverage of the confidence interval, in (0, 1); 0.95.
    crossed
        Two sets of (n,) names, in place of `clusters`, if questions are clustered in two crossed ways.
    settings
        How to compute. None: the defaults.
    **choices
        Fields of `Settings` to replace (`se`, `interval`, `test`, …); `range` is by default [0, 1] if all scores lie
        in it.

    Returns
    -------
    Difference
        On the scale of the scores; `statistic` and `p_value` are of `test`, two-sided. Of P pairs a tuple of P of them,
        each as if it was called alone: no p-value is adjusted.

    Raises
    ------
    ValueError
        Scores of another shape, names of another length, other numbers of questions in `a` and `b` (unless
        `unpaired`), `clusters` with `crossed`, or no shared question.
    InputError
        Infinite scores, other numbers of pairs in `a` and `b`, settings out of range, or that these scores cannot
        have. It is a ValueError.

    References
    ----------
    Wang (2025), arXiv:2512.21326, §3.3, all K_A × K_B pairs of answers; Miller (2024), arXiv:2411.00640, §4.

    Examples
    --------
    >>> import harness_noise as hn
    >>> row = hn.estimate_difference([1, 1, 0, 1, 1, 1, 0, 1], [0, 1, 0, 1, 0, 1, 0, 0])
    >>> row.diff, round(row.p_value, 3), row.verdict
    (0.375, 0.08, 'not separable')
    """
    from ..data.numbers import number_array

    chosen = chosen_settings("estimate_difference", settings, {**choices, "level": level})
    if chosen.unpaired and not (clusters is None and crossed is None):
        raise InputError("unpaired arrays have no common clusters: compare two Runs that have their own")
    x, y = number_array(a), number_array(b)
    if x.ndim == 3 or y.ndim == 3:
        from ..analysis.batch import each_difference

        return each_difference(x, y, clusters, crossed, chosen)
    from ..analysis.comparison import difference_of_arrays

    return difference_of_arrays(x, y, clusters, crossed, chosen)


def combine(diffs: Sequence[float], ses: Sequence[float], dfs: Sequence[float]) -> tuple[Combined, ...]:
    """Return tests that combine several independent differences, of tasks or of pairs of models, into one.

    Parameters
    ----------
    diffs
        (m,) differences, on one scale.
    ses
        (m,) their standard errors, above 0.
    dfs
        (m,) degrees of freedom of the standard errors.

    Returns
    -------
    tuple of Combined
        By equal weights, which is the default, then Stouffer, inverse variance, and Wilcoxon.

    Raises
    ------
    ValueError
        Other lengths, no difference, differences that are not finite, or standard errors or degrees of freedom that
        are not above 0.

    References
    ----------
    Stouffer et al. (1949); Wilcoxon (1945); Welch (1947) for the degrees of freedom of a sum.
    """
    from ..stats.combine import equal_weights, inverse_variance, stouffer, wilcoxon

    return (*(method(diffs, ses, dfs) for method in (equal_weights, stouffer, inverse_variance)), wilcoxon(diffs))


def pass_at_k(scores: ArrayLike, k: int) -> FloatArray:
    """Return (n,) chances that one or more of k answers to a question are right, without bias. NaN with fewer than k.

    Parameters
    ----------
    scores
        (n, K) scores of 0 and 1, NaN where an answer is missing; or (n,).
    k
        Number of answers, 1 or more.

    Returns
    -------
    array
        (n,) chances, NaN where a question has fewer than k answers; `estimate` gives their mean with its noise. If
        answers were repeated until one passed, they are 1 or 0: whether there is a success within k.

    Raises
    ------
    ValueError
        Scores other than 0 and 1, or of another shape. As an InputError: a k that is not a whole number above 0.

    References
    ----------
    Chen et al. (2021), "Evaluating large language models trained on code", eq. 1.
    """
    from ..analysis.sample import as_scores
    from ..errors import check_count
    from ..stats import passk
    from ..stats.stopped import stopped_at, within_k

    check_count("k", k)
    values = as_scores(scores).values
    chances = passk.pass_at_k(values, k)
    seen = stopped_at(values, (0.0, 1.0))
    return chances if seen is None or seen.how == "failure" else within_k(values, k, seen.how)
