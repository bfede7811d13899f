"""Comparisons of a run that grows, with the looks that were taken at it kept in a small file beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .._version import __version__
from ..data.matching import pair
from ..data.scores import Group, Run, Scores
from ..errors import InputError
from ..results.forms import SCHEMA_VERSION, finite
from ..results.rows import Comparison
from ..results.sequential import Sequential
from ..settings import Settings
from ..stats import decision
from ..stats.contrast import question_stats
from ..stats.partial import positions_look_random
from .comparison import matched_scores
from .observed import observe_difference
from .partial import part_of
from .references import benchmark_order
from .sample import group_parts
from .sequential import Looks, LookState, StoppingRule

KIND = "looks"


def beside(path: str | Path) -> Path:
    """The file of the looks at a run."""
    place = Path(path)
    return place.with_name(place.name + ".looks.json")


def look(run_a: Run, run_b: Run, settings: Settings, looks: Looks, memory: Path) -> tuple[Sequential, ...]:
    """The next look at A, which grows, for everything that both runs measured; kept in the file `memory`.

    A look at as many questions as the last one is that look again. What was decided once stays so.

    Args:
        run_a: answered a part of B's questions in a random order, and will answer more.
        run_b: has answered all of them.
        settings: its level and margin, and how variances are computed.
        looks: how many are planned, or "anytime"; the error is spent by how many questions were answered.
        memory: what this function has written before; need not be there.

    Raises:
        InputError: the file is of other runs or other choices, the run has shrunk, or its questions are the first ones
            of the benchmark.
    """
    rule = StoppingRule(looks=looks, level=settings.level, margin=settings.margin or 0.0)
    head: dict[str, Any] = {
        "kind": KIND, "schema_version": SCHEMA_VERSION, "harness_noise_version": __version__, "run": run_a.model,
        "against": run_b.model, "looks": looks, "level": rule.level, "margin": rule.margin,
    }  # fmt: skip
    known = _read(memory, head)
    out, kept = [], []
    for parts_a, parts_b, group in _comparisons(run_a, run_b):
        name = group.name if group is not None else parts_a[0].task
        key = [name, parts_a[0].metric, parts_a[0].scorer]
        found, taken = _one(parts_a, parts_b, group, rule, settings, known.get(tuple(key)))
        out.append(found)
        kept.append({"key": key, "taken": taken, "found": found.to_dict()})
    if not out:
        raise InputError(f"{run_a.name} and {run_b.name} have no mean of question scores in common: nothing to look at")
    from ..io.atomic import write_text

    write_text(memory, json.dumps(head | {"tasks": kept}, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return tuple(out)


def judged_by_looks(result: Comparison, found: Sequence[Sequential], settings: Settings) -> Comparison:
    """The comparison with what the looks say in every row: estimate, interval, p and decision.

    The plain interval and p hold for a run that nobody has looked at before; whatever reads a row (headline, verdict,
    sentence, gate) must not take them for the answer. Rows without looks, metrics that are no mean of question scores,
    are left out with a note.
    """
    by_what = {(item.task, item.metric, item.scorer): item for item in found}
    keys = [(row.task, row.metric, row.scorer) for row in result.differences]
    kept = [i for i, key in enumerate(keys) if key in by_what]
    looks = [by_what[keys[i]] for i in kept]
    families = tuple(result.families[i] for i in kept) if result.families else ()
    p = decision.adjusted(
        [np.nan if item.p_value is None else item.p_value for item in looks], settings.adjust, families or None
    )
    rows = []
    for i, item, adjusted in zip(kept, looks, p, strict=True):
        better = item.decision in decision.WORDS[1:]
        back = better and adjusted >= 1 - settings.level and item.p_value is not None and adjusted > item.p_value
        codes = set(result.differences[i].diagnostics) - {"few_flips", "not_after_adjustment"}
        rows.append(
            replace(
                result.differences[i], diff=item.estimate, ci_low=item.ci_low, ci_high=item.ci_high,
                p_value=item.p_value, p_adjusted=finite(float(adjusted)), statistic=None, mde=None, test="sequential",
                interval="none" if item.ci_low is None else "sequential",
                verdict=decision.WORDS[0] if back else item.decision,
                diagnostics=tuple(sorted(codes | {"not_after_adjustment"} if back else codes)),
            )
        )  # fmt: skip
    lost = [" ".join(key[:2]) for i, key in enumerate(keys) if i not in kept]
    notes = [f"left out: {', '.join(lost)}: looks are taken at means of question scores only"] if lost else []
    notes += [
        f"{item.task} {item.metric}: decided at look {item.look}, after {item.n_asked:,} questions; estimate, interval "
        "and p are those of that look"
        for i, item in zip(kept, looks, strict=True)
        if item.n_asked < result.differences[i].n_questions
    ]
    return replace(
        result, differences=tuple(rows), families=families, sequential=tuple(found), notes=(*result.notes, *notes)
    )


def _comparisons(run_a: Run, run_b: Run) -> list[tuple[list[Scores], list[Scores], Group | None]]:
    matched, _ = matched_scores(run_a, run_b, alone=not run_a.groups)
    out: list[tuple[list[Scores], list[Scores], Group | None]] = [([a], [b], None) for a, b in matched]
    for group in run_a.groups:
        sides = group_parts(run_a, group), group_parts(run_b, group)
        if sides[0] and sides[1]:
            out.append((sides[0], sides[1], group))
    return out


def _one(
    parts_a: Sequence[Scores], parts_b: Sequence[Scores], group: Group | None, rule: StoppingRule, settings: Settings,
    known: dict[str, Any] | None,
) -> tuple[Sequential, list[int]]:  # fmt: skip
    before: list[int] = [] if known is None else known["taken"]
    n = sum(_answered(one, other) for one, other in zip(parts_a, parts_b, strict=True))
    total = sum(int((question_stats(part.values).count > 0).sum()) for part in parts_b)
    if known is not None and n < known["found"]["n_asked"]:
        raise InputError(
            f"{parts_a[0].task}, {parts_a[0].metric}: {n} questions are answered, and {known['found']['n_asked']} were "
            "at the last look: a run that grows loses none. Is it another run? Then take the file of its looks away"
        )
    if known is not None and known["found"]["decision"] != "not decided":
        return Sequential(**known["found"]), before
    before = [m for m in before if m < n]
    observed = observe_difference(parts_a, parts_b, settings, group)
    state = LookState(rule, observed, tuple(m / total for m in before), n, total)
    found = state.sequential(state.decision(), rule.looks, len(before) + 1, None)
    return found, [*before, n] if len(state.taken) > len(before) else before


def _answered(one: Scores, other: Scores) -> int:
    """Questions of B that A has answered, which must not be the first ones of the benchmark."""
    found = pair(one.questions, other.questions)
    scored = [question_stats(part.values).count > 0 for part in (one, other)]
    both = [j for i, j in zip(found.rows_a, found.rows_b, strict=True) if scored[0][i] and scored[1][j]]
    order = benchmark_order(other.questions)
    place = {int(i): at for at, i in enumerate(order)}
    clusters = None if other.clusters is None else [other.clusters[i] for i in order]
    part = part_of(np.array([place[j] for j in both], dtype=np.intp), len(order), clusters, None)
    if 2 <= len(both) < len(order) and not positions_look_random(part):
        raise InputError(
            f"{one.task}, {one.metric}: the {len(both)} of {len(order)} questions that are answered lie together in "
            "the order of the benchmark, so they say nothing of the others: run it in a random order (Inspect: "
            "--sample-shuffle SEED)"
        )
    return len(both)


def _read(memory: Path, head: dict[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
    """What is known of earlier looks, by task, metric and scorer."""
    if not memory.exists():
        return {}
    try:
        content = json.loads(memory.read_text(encoding="utf-8"))
        same = {name: content[name] for name in ("kind", "run", "against", "looks", "level", "margin")}
        tasks = {tuple(item["key"]): item for item in content["tasks"]}
        for item in tasks.values():
            Sequential(**item["found"])
            if not all(isinstance(n, int) and n > 0 for n in item["taken"]):
                raise ValueError(item["taken"])
    except OSError as error:
        raise InputError(f"{memory}: cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(
            f"{memory}: not the looks at a run, or a broken file of them; take it away to begin anew"
        ) from None
    wrong = [name for name, value in same.items() if value != head[name]]
    if wrong:
        name = wrong[0]
        raise InputError(
            f"{memory}: the looks before were taken with {name} {same[name]!r}, not {head[name]!r}, and cannot be "
            "counted with this one: ask as before, or take the file away to begin anew, which forgets the error spent"
        )
    return tasks
