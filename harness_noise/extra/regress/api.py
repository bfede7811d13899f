"""The public function `regress`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...api.keywords import Choices, Request
from ...io.sources import Source, Sources, listed, names, of_models
from ...settings import Settings

if TYPE_CHECKING:
    from typing import Unpack

    from .results import Regression


def regress(
    a: Sources,
    b: Source | Sequence[Source] | None = None,
    *,
    on: Sequence[str],
    models: Sequence[str] = (),
    settings: Settings | None = None,
    **choices: Unpack[Choices],
) -> Regression:
    """Regress the scores of a run, or the difference of two, on properties of the questions.

    Parameters
    ----------
    a
        A path or a Run, of one model; or, without `b`, of the two that are compared.
    b
        The run that A is compared with; None: the scores of `a` themselves.
    on
        Properties of the questions, as a cluster's SPEC; numbers as they are, categories against their most
        frequent value. ``"C(level)"``: the numbers of `level` are names of categories.
    models
        Names of A, or of A and B, if `a` holds more models.
    settings
        How to compute. None: the defaults.
    **choices
        Fields of `Settings` to replace (`cluster`, `level`, `adjust`, …), and how paths
        are read: see `Choices`.

    Returns
    -------
    Regression
        The coefficients of each fit, with CR2 standard errors, degrees of freedom and intervals, on the metric's scale:
        of a number per unit, of a category against the most frequent one.

    Raises
    ------
    InputError
        No property in `on`, ``"auto"``, one that no question has, or properties that explain nothing; what `analyze`
        refuses.

    References
    ----------
    Pustejovsky & Tipton (2018): CR2 and its degrees of freedom for any design matrix.
    """
    from .fitting import as_categories, regress_runs

    on, categories = as_categories(names(on))
    sides = [listed(side) for side in ((a,) if b is None else (a, b))]
    sources = [source for side in sides for source in side]
    request = Request.of("regress", settings, choices, sources=sources, fields=on)
    if b is not None:
        runs = [*request.pair(sides, names(models))[0]]
    else:
        runs = request.runs(sources)
        if models or not len(runs) == len(sources) == 1:
            runs = of_models(runs, sources, names(models))
    return regress_runs(runs[0], runs[1] if len(runs) > 1 else None, on, request.settings, categories)
