"""Comparisons of a run that stopped early, with the figures that its looks recorded.

Whether B is that baseline is seen by the plain difference and by B's question means that the last look recorded, not
by a path or a name. Answers that were under way then are in the log, and no look has seen them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from ...analysis.difference import Compared, pair_kernel
from ...analysis.rows import Filled, RowDecision
from ...analysis.sample import Aligned, align, group_shares
from ...arrays import FloatArray
from ...data.notes import Note
from ...data.scores import CorpusScores, Run, Scores
from ...data.units import Equivalent
from ...errors import parameter, some_of
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
    return not _unlike(look, what, settings, mirrored=mirrored)


def _unlike(look: Sequential, what: Compared, settings: Settings, *, mirrored: bool) -> str:
    """Return how a difference is not the one that the run was stopped for, in words. "" if it is."""
    plain = look.estimate_unadjusted if look.diff is None else look.diff
    stopped, others = (what.parts_b, what.parts_a) if mirrored else (what.parts_a, what.parts_b)
    stopped = [_as_seen(part) for part in stopped]
    both = align(stopped, others, group_shares(stopped, what.group))
    if plain is None or both.a.empty or both.b.empty:
        return "the looks had other questions"
    diff = pair_kernel(both.a, both.b, Settings())[0].m.mean.item()
    found = fingerprints(both)
    own, other = (what.run_b, what.run_a) if mirrored else (what.run_a, what.run_b)
    if look.baseline not in (None, found.baseline):
        return f"the looks compared it with another run than {other.name}, or its scores have changed"
    if not math.isclose(plain, diff, rel_tol=1e-6, abs_tol=1e-9):
        if look.baseline is None:
            return "the difference is not that of the looks"
        return f"the scores of {own.name} are not those of the looks"
    if settings.cluster is not None and look.clusters != found.clusters:
        return f"the looks had other clusters than {parameter('cluster', settings.cluster)}"
    return ""


def _as_seen(part: Scores) -> Scores:
    """Return the scores as the last interim look saw them, answers that came later set to missing."""
    return part if part.late is None else replace(part, values=np.where(part.late, np.nan, part.values))


def correct(
    rows: Sequence[RowDecision], each: Sequence[Compared | tuple[CorpusScores, CorpusScores]], settings: Settings
) -> tuple[list[RowDecision], list[Note]]:
    """Return rows corrected for looks if the run was stopped for them, and notes on why others of it are not.

    Args:
        rows: of a pair of runs.
        each: the scores behind each row.
        settings: those of the comparison.
    """
    out: list[RowDecision] = []
    why: dict[tuple[str, str], list[str]] = {}
    for row, what in zip(rows, each, strict=True):
        if not isinstance(what, Compared):
            out.append(row)
            continue
        reason = _why_not(row, what, settings)
        out.append(row if reason is not None else _as_recorded(row, what))
        if reason and STOPPED in row.codes:
            why.setdefault((row.fields["task"], reason), []).append(_named(_key(row)))
    return out, [
        Note("stop_not_corrected", f"{some_of(names, 3)}: stopped early, not corrected: {reason}", task)
        for (task, reason), names in why.items()
    ]


def _named(key: Key) -> str:
    return " / ".join(text for text in key if text != "none")


def _key(row: RowDecision) -> Key:
    return row.fields["task"], row.fields["metric"], row.fields["scorer"]


def _look_at(row: RowDecision, what: Compared) -> tuple[Sequential | None, bool]:
    """Return the last look at a row's difference, None without one, and True if it is B that was stopped by it."""
    own_look, other = looks_of(what.run_a).get(_key(row)), looks_of(what.run_b).get(_key(row))
    return own_look or other, own_look is None


def _why_not(row: RowDecision, what: Compared, settings: Settings) -> str | None:
    """Return why a row is not corrected for looks, in words, "" if that is not known. None if it can be corrected."""
    found, mirrored = _look_at(row, what)
    if found is None:
        return _no_look(what)
    if found.ci_low is None:
        return "the looks gave no interval"
    plain = Settings()
    if unlike := [name for name in _AS_LOOKED if getattr(settings, name) != getattr(plain, name)]:
        return f"no look was taken with {' and '.join(parameter(name, getattr(settings, name)) for name in unlike)}"
    if not math.isclose(found.level, settings.level):
        return f"the looks were at {parameter('level', found.level)}"
    # a margin asks for equivalence, which looks without it, or with another one, did not test
    other_margin = settings.margin is not None and found.decision != Equivalent(settings.margin)
    if other_margin and found.decision not in _MIRRORED:
        return f"no look tested {parameter('margin', settings.margin)}"
    return _unlike(found, what, settings, mirrored=mirrored) or None


def _no_look(what: Compared) -> str:
    """Return what a pair of runs was looked at for, in words, where that is not the row. "" without a record."""
    looks = {**looks_of(what.run_a), **looks_of(what.run_b)}
    if looks:
        return f"the looks were at {some_of(list(map(_named, looks)), 3)}"
    if any(record["rule"] == "se" for run in (what.run_a, what.run_b) for record in run.stops):
        return "the run stopped when its own mean was precise enough, which no difference allows for"
    return ""


def _as_recorded(row: RowDecision, what: Compared) -> RowDecision:
    """Return the row with the figures of the looks that the run was stopped by.

    Estimate, interval, p and verdict are then those of the stage-wise analysis, and the fixed-n figures stand in
    `unadjusted`.
    """
    found, mirrored = _look_at(row, what)
    assert found is not None
    diff = finite(row.fields["diff"])
    look = _mirrored(found) if mirrored else found
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
