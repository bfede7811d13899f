"""A difference of two independent samples of questions."""

from __future__ import annotations

from ..data.clusters import in_words
from ..errors import NothingSharedError
from ..settings import Settings
from ..stats.moments import Moments
from .evidence import Compared, Evidence, RowDecision, row_of
from .ranges import score_range
from .sample import group_shares, kernel, root, sample


def unpaired_difference(compared: Compared, settings: Settings) -> RowDecision:
    """A − B of two independent samples of questions: V_A + V_B, Welch's degrees of freedom.

    Every question of both runs counts: n_questions = n_A + n_B, none is shared, so n_only_a = n_A
    and n_only_b = n_B; what needs pairs (wins, correlation, sign test) is null.
    """
    group = compared.group
    a, b = (sample(parts, group_shares(parts, group)) for parts in (compared.parts_a, compared.parts_b))
    if a.empty or b.empty:
        raise NothingSharedError(
            f"{group.name if group else compared.parts_a[0].task}: {compared.run_a.name} or {compared.run_b.name} has "
            "no scored question"
        )
    plans = a.design(), b.design()
    (c_a, m_a), (c_b, m_b) = (kernel([x], [1.0], plan, settings) for x, plan in zip((a, b), plans, strict=True))
    m = _welch(m_a, m_b)
    evidence = Evidence(m, settings, sides=((c_a.d, plans[0]), (c_b.d, plans[1])), bounds=score_range((a, b), settings))
    clustered = plans[0].clustered or plans[1].clustered
    spec = next((part.cluster_spec for part in compared.parts if part.cluster_spec), None)
    return row_of(
        compared,
        evidence,
        (a, b),
        (m_a, m_b),
        {"unpaired"},
        clustered,
        n_only_a=len(a),
        n_only_b=len(b),
        se_unpaired=root(m.variance),
        cluster=in_words(spec) if clustered else None,
    )


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
        zero_variance=a.zero_variance and b.zero_variance,
        diagnostics=tuple(sorted({*a.diagnostics, *b.diagnostics} - of_parts)),
    )
