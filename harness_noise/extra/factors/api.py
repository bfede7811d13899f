"""The public functions on noise by source: `factors` of runs, and `factor_noise` of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ...api.keywords import Choices, Request
from ...data.notes import merge_notes
from ...errors import check_kind
from ...io.sources import Sources, listed, names
from ...settings import Settings

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import ArrayLike

    from ...arrays import NamesLike
    from .results import Factors


def factors(
    runs: Sources,
    factors: Mapping[str, str],
    *,
    more: int = 1000,
    settings: Settings | None = None,
    **choices: Unpack[Choices],
) -> Factors:
    """Return how much of the noise comes from the prompt, the seed, the judge, over all answers of all runs.

    Parameters
    ----------
    runs
        A path, a Run or several of them; the same question in two tasks or runs is one question. Runs that are read
        already must have been read with their `factors`.
    factors
        Name of a source of noise → the column of the table, or argument of the task, that tells its levels apart; or
        ``"task"``, ``"model"``, ``"run"``; or ``"scorer"`` if several judges graded the same answers, which are then
        compared two by two (`Factors.judges`).
    more
        How many answers the advice is about.
    settings
        Only `missing` is obeyed. None: the defaults.
    **choices
        `missing`, and how paths are read: see `Choices`.

    Returns
    -------
    Factors
        Variance components, on the metric's scale squared, and which next answers help most.

    Raises
    ------
    InputError
        More than one metric, a column that a run does not have, a `more` below 1, or runs that cannot be read. Without
        a factor a ValueError.

    References
    ----------
    Searle, Casella & McCulloch (1992), "Variance Components".
    """
    from .sources import RUN_LEVEL, factors_of_runs

    check_kind("factors", factors, Mapping)
    columns = tuple(dict.fromkeys(column for column in names(factors.values()) if column not in RUN_LEVEL))
    sources = listed(runs)
    request = Request.of("factors", settings, choices, sources=sources, factors=columns, apart=True)  # all count
    read_runs = request.runs(sources, some=True)
    result = factors_of_runs(read_runs, factors, more)
    return replace(result, notes=merge_notes(result.notes, *(run.notes for run in read_runs)))


def factor_noise(
    scores: ArrayLike, questions: NamesLike, factors: Mapping[str, NamesLike], *, more: int = 1000
) -> Factors:
    """Return noise by factor of N answers in long form. `factors` does the same with runs.

    Parameters
    ----------
    scores
        (N,) scores; NaN is left out.
    questions
        (N,) which question each answers.
    factors
        Name of a source of noise → (N,) level of each answer. A factor nested in another needs levels that are
        unique within it: name them ``"prompt 1/seed 3"``.
    more
        How many answers the advice is about.

    Returns
    -------
    Factors
        Variance components, on the metric's scale squared, and which next answers help most.

    Raises
    ------
    ValueError
        Lengths that differ, no factor, an infinite score, or fewer than two scores. As an InputError: a `more` below 1.

    References
    ----------
    Searle, Casella & McCulloch (1992), "Variance Components".
    """
    from . import sources as estimators

    return estimators.factor_noise(scores, questions, factors, more)
