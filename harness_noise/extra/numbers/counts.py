"""Two counts of right answers: Fisher's exact test, and the interval of Agresti and Caffo."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...analysis.rows import RowDecision, decide_rows
from ...choices import AGRESTI_CAFFO, FISHER
from ...errors import InputError
from ...results.rows import Difference
from ...settings import Settings, check_scale
from ...stats import decision
from ...stats.intervals import agresti_caffo

UNPAIRED = (
    "only counts are known, so which answers belong to one question is lost: the test treats the two runs as "
    "independent, and a paired test on the samples would see more"
)


def compare_counts(a: tuple[int, int], b: tuple[int, int], names: tuple[str, str], settings: Settings) -> Difference:
    """Return A − B of counts, x of n and y of m right: Fisher's exact p (unpaired), Agresti–Caffo interval, verdict.

    The statistic is z of the pooled test of two proportions.

    Args:
        a: right answers and questions of A.
        b: of B.
        names: what to call them.
        settings: level and margin.

    Raises:
        InputError: more right answers than questions, or a margin that is not on the scale of shares.
    """
    (x, n), (y, m) = a, b
    check_scale("margin", settings.margin, (0.0, 1.0), "a share of right answers", known=True)
    p = np.array([fisher_exact(x, n, y, m)])
    pooled, diff, unknown = (x + y) / (n + m), np.array([x / n - y / m]), np.array([np.nan])
    variance = np.array([pooled * (1 - pooled) * (1 / n + 1 / m)])
    z = diff / np.sqrt(np.where(variance > 0, variance, 1.0))
    of = decision.Differences(diff, variance, df=unknown, zero=np.array([False]), p_zero=unknown)
    limits = partial(agresti_caffo, np.array([x / n]), n, np.array([y / m]), m)
    test = decision.Test(p, statistic=z, by_p=True, of_all=True, limits=limits, interval=AGRESTI_CAFFO.name)
    row = RowDecision.of(
        decision.decide(of, settings, test),
        {"unpaired"},
        task="",
        metric="counts",
        scorer="none",
        higher_is_better=None,
        model_a=names[0],
        model_b=names[1],
        n_questions=n + m,
        n_clusters=n + m,
        n_only_a=n,
        n_only_b=m,
        repeats_a=1,
        repeats_b=1,
        mean_a=x / n,
        mean_b=y / m,
        diff=diff.item(),
        level=settings.level,
        test=FISHER.name,
        _zero_one=True,
    )
    return decide_rows([row], settings)[0]


def fisher_exact(x: int, n: int, y: int, m: int) -> float:
    """Return Fisher's exact two-sided p that accuracies x/n and y/m are equal. Refuse impossible counts.

    It is conservative, and ignores that the questions may be paired.

    Raises:
        InputError: more right answers than questions, or none asked.
    """
    if min(x, y) < 0 or x > n or y > m or min(n, m) < 1:
        raise InputError(f"{x} of {n} and {y} of {m}: the right answers must be between 0 and the number of questions")
    from scipy.stats import fisher_exact as exact  # takes long to import

    return float(exact(np.array([[x, n - x], [y, m - y]])).pvalue)
