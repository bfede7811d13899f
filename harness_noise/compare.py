"""From two runs to Differences: paired by question, tested on the kernel's contrast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from . import analysis
from .analysis import Sample, group_parts, kernel, noise_fields, sample
from .errors import InputError
from .estimators import intervals, tests
from .estimators.contrast import Moments
from .results import Comparison, Difference, Flip, finite, merge_notes
from .scores import Group, Questions, Run, Scores
from .settings import Settings

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True)
class Pairing:
    """Which questions of A are which of B, as row numbers of equal length."""

    rows_a: list[int]
    rows_b: list[int]
    by: str
    note: str | None = None


def pair(a: Questions, b: Questions) -> Pairing:
    """Match two runs' questions: by key, verified by content where both have it; else by content.

    Automatic ids are worth nothing after a shuffle, so one id with two texts sends the whole
    matching to the content. Keys of different kinds (two harnesses) are matched by content at once.
    """
    if a.kind == b.kind or a.inputs is None or b.inputs is None:
        rows = _match(a.keys, b.keys)
        if a.inputs is None or b.inputs is None:
            return Pairing(*rows, by=a.kind)
        agree = sum(a.inputs[i] == b.inputs[j] and _same_target(a, i, b, j) for i, j in zip(*rows, strict=True))
        if agree == len(rows[0]) > 0:
            return Pairing(*rows, by=a.kind)
        by_content = _match(_content(a, b), _content(b, a))
        if len(by_content[0]) > agree:
            note = None
            if rows[0]:
                note = f"{len(rows[0]) - agree} questions share a {a.kind} but not their text: matched by text"
            return Pairing(*by_content, by="content", note=note)
        kept = [
            (i, j) for i, j in zip(*rows, strict=True) if a.inputs[i] == b.inputs[j] and _same_target(a, i, b, j)
        ]
        note = f"{len(rows[0]) - agree} questions share a {a.kind} but not their text: left out" if rows[0] else None
        return Pairing([i for i, _ in kept], [j for _, j in kept], by=a.kind, note=note)
    return Pairing(*_match(_numbered(a.inputs), _numbered(b.inputs)), by="content")


def _same_target(a: Questions, i: int, b: Questions, j: int) -> bool:
    return a.targets is None or b.targets is None or a.targets[i] == b.targets[j]


def _content(one: Questions, other: Questions) -> Sequence[str]:
    assert one.inputs is not None
    if one.targets is None or other.targets is None:
        return _numbered(one.inputs)
    return _numbered([f"{i}/{t}" for i, t in zip(one.inputs, one.targets, strict=True)])


def _numbered(keys: Sequence[str]) -> Sequence[str]:
    from .scores import occurrences

    return occurrences(keys)


def _match(a: Sequence[str], b: Sequence[str]) -> tuple[list[int], list[int]]:
    where = {key: j for j, key in enumerate(b)}
    rows = [(i, where[key]) for i, key in enumerate(a) if key in where]
    return [i for i, _ in rows], [j for _, j in rows]


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """Two samples on the same questions, in the same order, and what was left out."""

    a: Sample
    b: Sample
    labels: tuple[str, ...] | None
    only_a: int
    only_b: int
    different_prompts: bool
    notes: tuple[str, ...]


def _align(parts_a: Sequence[Scores], parts_b: Sequence[Scores], shares: list[float] | None) -> _Pair:
    """Reduce each task to the questions that both runs scored."""
    kept_a, kept_b, notes = [], [], []
    only_a = only_b = 0
    prompts = False
    for one, other in zip(parts_a, parts_b, strict=True):
        scored_a = (~np.isnan(one.values)).any(axis=1)
        scored_b = (~np.isnan(other.values)).any(axis=1)
        found = pair(one.questions, other.questions)
        both = [(i, j) for i, j in zip(found.rows_a, found.rows_b, strict=True) if scored_a[i] and scored_b[j]]
        only_a += int(scored_a.sum()) - len(both)
        only_b += int(scored_b.sum()) - len(both)
        if found.note is not None:
            notes.append(f"{one.task}: {found.note}")
        rows_a, rows_b = [i for i, _ in both], [j for _, j in both]
        if one.questions.prompts is not None and other.questions.prompts is not None:
            pa, pb = one.questions.prompts, other.questions.prompts
            prompts |= any(pa[i] != pb[j] for i, j in both)
        clusters, spec = _shared_clusters(one, rows_a, other, rows_b)
        keys = Questions(tuple(one.questions.keys[i] for i in rows_a), one.questions.kind)
        kept_a.append(replace(one, questions=keys, values=one.values[rows_a], clusters=clusters, cluster_spec=spec))
        kept_b.append(replace(other, questions=keys, values=other.values[rows_b], clusters=clusters, cluster_spec=spec))
    a, b = sample(kept_a, shares), sample(kept_b, shares)
    return _Pair(a, b, a.labels, only_a, only_b, prompts, tuple(notes))


def _shared_clusters(
    one: Scores, rows_a: list[int], other: Scores, rows_b: list[int]
) -> tuple[tuple[str, ...] | None, str | None]:
    """A's clusters, or B's where A has none: the questions are the same, so their clusters are."""
    if one.clusters is not None:
        return tuple(one.clusters[i] for i in rows_a), one.cluster_spec
    if other.clusters is not None:
        return tuple(other.clusters[j] for j in rows_b), other.cluster_spec
    return None, None


def _correlation(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float | None:
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return finite(float(np.corrcoef(x, y)[0, 1]))


def _in_unit(*samples: Sample) -> bool:
    values = np.concatenate([item.values[~np.isnan(item.values)] for item in samples])
    return bool(len(values) and (values >= 0).all() and (values <= 1).all())


@dataclass(frozen=True, slots=True)
class _Verdict:
    ci: intervals.ConfidenceInterval | None
    statistic: float | None
    p_value: float | None
    words: str


def _judge(d: np.ndarray[Any, Any], m: Moments, plan_codes: Any, clustered: bool, unit: bool, p_sign: float | None,
           settings: Settings, higher_is_better: bool | None) -> _Verdict:
    """Interval, p-value and verdict of the chosen test."""
    if m.variance is None or m.df is None or m.mean is None:
        return _Verdict(None, None, None, "not separable")
    se = math.sqrt(m.variance)
    alpha = 1 - settings.level
    ci: intervals.ConfidenceInterval | None
    statistic: float | None = None
    p_value: float | None
    if m.zero_variance:
        units = d
        if clustered:
            units = np.bincount(plan_codes, weights=d) / np.bincount(plan_codes)
        ci = intervals.bonett_price(units, settings.level) if unit else None
        p_value = 1.0 if abs(m.mean) <= 1e-12 else None
        separable = p_value is None and p_sign is not None and p_sign < alpha
    else:
        ci = intervals.t_interval(m.mean, se, m.df, settings.level)
        statistic, p_value = tests.t_test(m.mean, se, m.df)
        separable = not ci.low <= 0 <= ci.high
    if settings.test == "sign":
        statistic, p_value = None, p_sign if p_sign is not None else 1.0
        separable = p_value < alpha
    words = "not separable"
    if separable:
        words = "A better" if (m.mean > 0) == (higher_is_better is not False) else "B better"
    elif settings.margin is not None and not m.zero_variance and tests.equivalent(
        m.mean, se, m.df, settings.level, settings.margin
    ):
        words = f"equivalent within {settings.margin:g}"
    return _Verdict(ci, statistic, p_value, words)


def _difference(
    parts_a: Sequence[Scores], parts_b: Sequence[Scores], run_a: Run, run_b: Run, settings: Settings,
    group: Group | None = None,
) -> tuple[Difference, tuple[str, ...]]:  # fmt: skip
    first = parts_a[0]
    pairing = _align(parts_a, parts_b, analysis._shares(parts_a, group))
    a, b = pairing.a, pairing.b
    if len(a.keys) == 0:
        raise InputError(
            f"{group.name if group else first.task}: {run_a.name} and {run_b.name} have no question in common "
            f"({pairing.only_a} and {pairing.only_b} questions); compare runs of one benchmark, name the column "
            "that identifies a question (--columns question=…), or use --unpaired"
        )
    plan = a.design(pairing.labels)
    c, m = kernel([a, b], [1.0, -1.0], plan, settings)
    _, m_a = kernel([a], [1.0], plan, settings)
    _, m_b = kernel([b], [1.0], plan, settings)
    codes = plan.clusters if plan.clustered else None
    p_sign = tests.sign_test(c.d, codes)
    higher = first.higher_is_better if first.higher_is_better is not None else parts_b[0].higher_is_better
    verdict = _judge(c.d, m, plan.clusters, plan.clustered, _in_unit(a, b), p_sign, settings, higher)
    wins = tests.expected_wins(a.values, b.values)
    found = set(m.diagnostics).union(*(part.diagnostics for part in (*parts_a, *parts_b)))
    if pairing.only_a or pairing.only_b:
        found.add("unpaired_questions")
    if pairing.different_prompts:
        found.add("different_prompts")
    if m.zero_variance and not np.abs(c.d).any():
        found.add("identical_scores")
    fields = noise_fields(m)
    if not plan.clustered:
        fields["design_effect"] = 1.0 if m.variance is not None else None
    unpaired = None if m_a.variance is None or m_b.variance is None else math.sqrt(m_a.variance + m_b.variance)
    testable = m.variance is not None and not m.zero_variance
    return Difference(
        task=group.name if group is not None else first.task,
        metric=first.metric,
        scorer=first.scorer,
        higher_is_better=higher,
        model_a=run_a.model,
        model_b=run_b.model,
        n_questions=m.n,
        n_clusters=m.n_clusters,
        n_only_a=pairing.only_a,
        n_only_b=pairing.only_b,
        repeats_a=int(a.stats.count.max()),
        repeats_b=int(b.stats.count.max()),
        mean_a=finite(m_a.mean),
        mean_b=finite(m_b.mean),
        diff=finite(m.mean),
        ci_low=verdict.ci.low if verdict.ci else None,
        ci_high=verdict.ci.high if verdict.ci else None,
        level=settings.level,
        df=finite(m.df),
        statistic=finite(verdict.statistic),
        p_value=finite(verdict.p_value),
        p_adjusted=finite(verdict.p_value),
        test=settings.test,
        p_sign=finite(p_sign),
        wins_a=wins[0],
        wins_b=wins[1],
        ties=wins[2],
        correlation=_correlation(a.stats.mean, b.stats.mean),
        se_unpaired=unpaired,
        mde=tests.minimum_detectable(math.sqrt(m.variance or 0.0), settings.level) if testable else None,
        verdict=verdict.words,
        n_missing=sum(part.n_missing for part in (*parts_a, *parts_b)),
        cluster=_spec(parts_a, parts_b) if plan.clustered else None,
        diagnostics=tuple(sorted(found)),
        **fields,  # type: ignore[arg-type]
    ), pairing.notes


def _spec(parts_a: Sequence[Scores], parts_b: Sequence[Scores]) -> str | None:
    return next((part.cluster_spec for part in (*parts_a, *parts_b) if part.cluster_spec), None)


def estimate_difference(
    a: ArrayLike, b: ArrayLike, clusters: Sequence[object] | None = None, level: float = 0.95, **settings: Any
) -> Difference:
    """A − B of two runs' scores on the same questions, paired, with its noise.

    Args:
        a: (n, K_A) scores, NaN where a repeat is missing; or (n,).
        b: (n, K_B) scores of the same n questions in the same order.
        clusters: (n,) labels of the questions that belong together; None: independent.
        level: coverage of the confidence interval, in (0, 1).
        **settings: `se`, `test`, `margin`, … as in `Settings`.

    Raises:
        ValueError: arrays that do not fit together, no shared question, a level outside (0, 1).

    Source: Wang (2025), §3.3, all K_A × K_B pairs of answers; Miller (2024), §4.
    """
    parts_a, parts_b = analysis.as_scores(a, clusters), analysis.as_scores(b, clusters)
    if len(parts_a.questions) != len(parts_b.questions):
        raise ValueError(f"{len(parts_a.questions)} questions in a and {len(parts_b.questions)} in b")
    run_a, run_b = Run(model="A", name="a", harness="array"), Run(model="B", name="b", harness="array")
    return _difference([parts_a], [parts_b], run_a, run_b, Settings(level=level, **settings))[0]


def compare_runs(pairs: Sequence[tuple[Run, Run]], settings: Settings, n_questions: int = 0) -> Comparison:
    """A − B for every pair of runs and everything that both measured; p-values adjusted over all rows.

    Args:
        pairs: (A, B) runs.
        n_questions: how many of the questions that flipped most to list for each row.

    Raises:
        InputError: nothing in common; says what each run has.
    """
    rows: list[Difference] = []
    flips: list[Flip] = []
    notes: list[str] = []
    for run_a, run_b in pairs:
        matched, remarks = _matched(run_a, run_b)
        notes += [*run_a.notes, *run_b.notes, *remarks]
        for one, other in matched:
            difference, found = _difference([one], [other], run_a, run_b, settings)
            rows.append(difference)
            notes += found
            if n_questions:
                flips += _flips(one, other, run_a, run_b, n_questions)
        for group in run_a.groups:
            parts_a = group_parts(run_a, group)
            parts_b = group_parts(run_b, group)
            if parts_a is not None and parts_b is not None:
                rows.append(_difference(parts_a, parts_b, run_a, run_b, settings, group)[0])
    adjusted = tests.adjust([item.p_value for item in rows], settings.adjust)
    rows = [replace(item, p_adjusted=p) for item, p in zip(rows, adjusted, strict=True)]
    return Comparison(settings.to_dict(), tuple(rows), merge_notes(notes), tuple(flips))


def _matched(run_a: Run, run_b: Run) -> tuple[list[tuple[Scores, Scores]], list[str]]:
    """Scores of the same task, metric and scorer; or the only one of each run."""
    where = {(item.task, item.metric, item.scorer): item for item in run_b.scores}
    matched = [
        (item, where[key]) for item in run_a.scores if (key := (item.task, item.metric, item.scorer)) in where
    ]
    if matched:
        return matched, []
    if len(run_a.scores) == len(run_b.scores) == 1:
        one, other = run_a.scores[0], run_b.scores[0]
        return [(one, other)], [f"compared {_name(one)} of {run_a.name} with {_name(other)} of {run_b.name}"]
    raise InputError(
        f"{run_a.name} and {run_b.name} measured nothing in common. The first has {_list(run_a)}; the second has "
        f"{_list(run_b)}. Name one of each with --task, --metric and --scorer"
    )


def _name(item: Scores) -> str:
    return " / ".join(part for part in (item.task, item.metric, item.scorer) if part and part != "none")


def _list(run: Run) -> str:
    names = [_name(item) for item in run.scores]
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return ("; ".join(names[:6]) or "no scores") + more


def _flips(one: Scores, other: Scores, run_a: Run, run_b: Run, limit: int) -> list[Flip]:
    found = pair(one.questions, other.questions)
    with np.errstate(invalid="ignore"):
        stats_a = analysis.question_stats(one.values).mean[found.rows_a]
        stats_b = analysis.question_stats(other.values).mean[found.rows_b]
    d = stats_a - stats_b
    order = [k for k in np.argsort(-np.abs(d), kind="stable") if np.isfinite(d[k]) and d[k] != 0][:limit]
    texts = one.questions.texts or other.questions.texts
    rows = found.rows_a if one.questions.texts else found.rows_b
    return [
        Flip(
            one.task, one.metric, one.scorer, run_a.model, run_b.model,
            question=one.questions.keys[found.rows_a[k]],
            text=texts[rows[k]] if texts else None,
            cluster=one.clusters[found.rows_a[k]] if one.clusters else None,
            mean_a=float(stats_a[k]), mean_b=float(stats_b[k]), diff=float(d[k]),
        )
        for k in order
    ]  # fmt: skip
