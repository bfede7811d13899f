"""Comparisons of a run that stopped early, with the figures that its looks recorded.

Whether B is that baseline is seen by the plain difference and by B's question means that the last look recorded, not
by a path or a name. Answers that were under way then are in the log, and no look has seen them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from ...analysis.difference import Compared, pair_kernel
from ...analysis.rows import Filled, RowDecision
from ...analysis.sample import Aligned, align, group_shares
from ...arrays import FloatArray
from ...data.scores import Run, Scores
from ...data.units import Equivalent
from ...results.diagnostics import STOPPED
from ...results.forms import finite
from ...results.parts import SEQUENTIAL, Sequential
from ...results.rows import Unadjusted
from ...settings import Settings
from ...stats import decision

Key = tuple[str, str, str]
_MIRRORED = {decision.WORDS[1]: decision.WORDS[2], decision.WORDS[2]: decision.WORDS[1]}
_AS_LOOKED = ("test", "interval", "se", "questions_are", "repeats_are", "unpaired", "runs_shared")
"""Settings of which a look has those of `Settings()`: with others a comparison is another one."""


def looks_of(run: Run) -> dict[Key, Sequential]:
    """Return {(task, metric, scorer): last interim look} that a run has recorded for differences."""
    looks = (Sequential(**row) for row in run.stops)
    return {look.key: look for look in looks if look.rule != "se"}


class Fingerprints(NamedTuple):
    """The hashes of a comparison by which `Sequential` recognises it later."""

    baseline: str
    clusters: str


def fingerprints(both: Aligned) -> Fingerprints:
    """Return hashes of B's question means and of A's clusters, to recognise the same comparison later."""
    a, b = both.a, both.b
    names = [key for _, keys in b.keys for key in keys]
    means = np.round(b.stats.mean, 9) + 0.0  # −0.0 is 0
    clusters = tuple(map(str, range(len(b)))) if a.clusters is None else a.clusters
    each = sorted(zip([names[row] for row in b.rows.tolist()], means.tolist(), clusters, strict=True))
    first: dict[str, int] = {}
    codes = [first.setdefault(cluster, at) for at, (_, _, cluster) in enumerate(each)]
    return Fingerprints(_hash([(name, mean) for name, mean, _ in each]), _hash(codes))


def _hash(value: object) -> str:
    return blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def is_of(look: Sequential, what: Compared, settings: Settings, *, mirrored: bool = False) -> bool:
    """Return True if the run was stopped for this very difference, by its value and, if recorded, the look's hashes.

    Args:
        look: the last one. One without a hash of B tells by the difference alone.
        what: what is compared.
        settings: its `cluster`, if one is named, has to be that of the looks.
        mirrored: whether B is the run that stopped.
    """
    plain = look.estimate_unadjusted if look.diff is None else look.diff
    stopped, others = (what.parts_b, what.parts_a) if mirrored else (what.parts_a, what.parts_b)
    stopped = [_as_seen(part) for part in stopped]
    both = align(stopped, others, group_shares(stopped, what.group))
    if plain is None or both.a.empty or both.b.empty:
        return False
    diff = pair_kernel(both.a, both.b, Settings())[0].m.mean.item()
    if not math.isclose(plain, diff, rel_tol=1e-6, abs_tol=1e-9):
        return False
    found = fingerprints(both)
    named = settings.cluster is not None
    return look.baseline in (None, found.baseline) and (not named or look.clusters == found.clusters)


def _as_seen(part: Scores) -> Scores:
    """Return the scores as the last interim look saw them, answers that came later set to missing."""
    return part if part.late is None else replace(part, values=np.where(part.late, np.nan, part.values))


def as_recorded(row: RowDecision, what: Compared, settings: Settings) -> RowDecision:
    """Return the row corrected for looks, if the run was stopped for this difference, level and settings. Else the row.

    Estimate, interval, p and verdict are then those of the stage-wise analysis, and the fixed-n figures stand in
    `unadjusted`. Any other row stays as it is, with `stopped_early` where a run stopped.
    """
    key = (row.fields["task"], row.fields["metric"], row.fields["scorer"])
    diff = finite(row.fields["diff"])
    own_look, other = looks_of(what.run_a).get(key), looks_of(what.run_b).get(key)
    found = own_look or other
    plain = Settings()
    same = all(getattr(settings, name) == getattr(plain, name) for name in _AS_LOOKED)
    if found is None or found.ci_low is None or not same or not math.isclose(found.level, settings.level):
        return row
    # a margin asks for equivalence, which looks without it, or with another one, did not test
    unlike = settings.margin is not None and found.decision != Equivalent(settings.margin)
    if unlike and found.decision not in _MIRRORED:
        return row
    if not is_of(found, what, settings, mirrored=own_look is None):
        return row
    look = found if own_look is not None else _mirrored(found)
    own, nothing = row.decision, np.array([np.nan])
    p = _column(look.p_value)
    better = look.decision in _MIRRORED
    numbers = {name: finite(column.item()) for name, column in own.numbers().items()}
    recorded = replace(
        own,
        ci_low=_column(look.ci_low),
        ci_high=_column(look.ci_high),
        interval=np.array(["none" if look.ci_low is None else SEQUENTIAL], dtype=object),
        statistic=nothing,
        p_value=p,
        p=p,
        mde=nothing,
        separable=np.array([better]),
        equivalent=np.array([False]),
    )
    unadjusted = Unadjusted(
        diff=diff,
        se=finite(row.fields["se"]),
        ci_low=numbers["ci_low"],
        ci_high=numbers["ci_high"],
        p_value=numbers["p_value"],
    )
    fields = {"diff": look.estimate, "se": None, "df": None, "test": SEQUENTIAL, "unadjusted": unadjusted}
    codes = row.codes - {STOPPED, "few_flips", "few_clusters"}
    # other scores in place of missing ones would have had other looks
    filled = None if row.filled is None else Filled()
    return replace(row, decision=recorded, codes=codes, recorded=look.decision, filled=filled).named(**fields)


def _column(value: float | None) -> FloatArray:
    return np.array([np.nan if value is None else value])


def _mirrored(look: Sequential) -> Sequential:
    """Return the record of an interim look at A − B turned into one of B − A."""

    def minus(value: float | None) -> float | None:
        return None if value is None else -value

    return replace(
        look,
        estimate=minus(look.estimate),
        ci_low=minus(look.ci_high),
        ci_high=minus(look.ci_low),
        estimate_unadjusted=minus(look.estimate_unadjusted),
        diff=minus(look.diff),
        decision=_MIRRORED.get(look.decision, look.decision),
    )
