"""A difference of two independent samples of questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..data.scores import Group, Run, Scores
from ..errors import NothingSharedError
from ..settings import Settings
from ..stats.moments import Moments
from .evidence import Judged, _Evidence, _row
from .ranges import score_range
from .sample import group_shares, kernel, root, sample

if TYPE_CHECKING:
    pass


def _unpaired(
    parts_a: Sequence[Scores], parts_b: Sequence[Scores], run_a: Run, run_b: Run, settings: Settings,
    group: Group | None,
) -> Judged:  # fmt: skip
    """A − B of two independent samples of questions: V_A + V_B, Welch's degrees of freedom.

    Every question of both runs counts: n_questions = n_A + n_B, none is shared, so n_only_a = n_A
    and n_only_b = n_B; what needs pairs (wins, correlation, sign test) is null.
    """
    a, b = (sample(parts, group_shares(parts, group)) for parts in (parts_a, parts_b))
    if a.empty or b.empty:
        raise NothingSharedError(
            f"{group.name if group else parts_a[0].task}: {run_a.name} or {run_b.name} has no scored question"
        )
    plans = a.design(), b.design()
    (c_a, m_a), (c_b, m_b) = (kernel([x], [1.0], plan, settings) for x, plan in zip((a, b), plans, strict=True))
    m = _welch(m_a, m_b)
    evidence = _Evidence(
        m, settings, sides=((c_a.d, plans[0]), (c_b.d, plans[1])), bounds=score_range((a, b), settings)
    )  # fmt: skip
    return _row(
        evidence, (a, b), (m_a, m_b), (parts_a, parts_b), (run_a, run_b), group,
        found={"unpaired"}, clustered=plans[0].clustered or plans[1].clustered, p_sign=None,
        n_only_a=len(a),
        n_only_b=len(b),
        wins_a=None,
        wins_b=None,
        ties=None,
        correlation=None,
        se_unpaired=root(m.variance),
        cluster=next((part.cluster_spec for part in (*parts_a, *parts_b) if part.cluster_spec), None),
    )  # fmt: skip


def _welch(a: Moments, b: Moments) -> Moments:
    """The difference of two independent means; degrees of freedom of Satterthwaite (1946), Welch (1947)."""

    def plus(x: float | None, y: float | None) -> float | None:
        return None if x is None or y is None else x + y

    df = None
    variance = plus(a.variance, b.variance)
    if variance is not None and a.df is not None and b.df is not None:
        assert a.variance is not None
        assert b.variance is not None
        spread = a.variance**2 / a.df + b.variance**2 / b.df
        df = variance**2 / spread if spread > 0 else min(a.df, b.df)
    # of the parts' codes, those that are about a variance or its degrees of freedom are found again
    of_parts = {"zero_variance", "negative_data_variance", "few_clusters"}
    return Moments(
        n=a.n + b.n,
        n_clusters=a.n_clusters + b.n_clusters,
        mean=None if a.mean is None or b.mean is None else a.mean - b.mean,
        variance=variance,
        df=df,
        naive=plus(a.naive, b.naive),
        var_data=plus(a.var_data, b.var_data),
        var_prediction=plus(a.var_prediction, b.var_prediction),
        var_total=plus(a.var_total, b.var_total),
        icc=None,
        zero_variance=a.zero_variance and b.zero_variance,
        diagnostics=tuple(sorted({*a.diagnostics, *b.diagnostics} - of_parts)),
    )
