"""The logs of a shard set, `NAME.shards/K/*.eval`, which several workers have written, as the one run that they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from harness_noise.data.native_values import agreed
from harness_noise.data.questions import Questions
from harness_noise.results.forms import merge_notes

if TYPE_CHECKING:
    from harness_noise.data.scores import Run, Scores

    from .identity import LogIdentity

    Log = tuple[Run, LogIdentity]

_SHARD = re.compile(r"(.+)\.shards/([^/]+)/[^/]+$")


def one_run_each(logs: Sequence[Log]) -> tuple[list[Log], list[str]]:
    """The logs, with one in place of the shards of a set, and notes; none of a set whose merged log is there.

    Of the logs in one shard's folder the newest counts.
    """
    out: list[Log] = []
    sets: dict[str, dict[str, Log]] = {}
    merged = {
        about.path.as_posix().removesuffix(".eval").removesuffix("-recovered") for _, about in logs if about.complete
    }
    for run, about in logs:
        found = _SHARD.match(about.path.as_posix())
        if found is None:
            out.append((run, about))
            continue
        newest = sets.setdefault(found[1], {})
        if found[2] not in newest or run.date > newest[found[2]][0].date:
            newest[found[2]] = run, about
    notes = []
    for name, shards in sets.items():
        if name in merged:
            notes.append(f"left out: {len(shards)} shards in {name}.shards: {name}.eval has been merged from them")
        else:
            out += _together(Path(f"{name}.shards"), list(shards.values()))
    return out, notes


def _together(place: Path, shards: Sequence[Log]) -> list[Log]:
    """The shards as one; as they are where two have a question in common, which no set of shards has."""
    runs, _ = agreed([run for run, _ in shards])
    parts: dict[tuple[str, str, str], list[Scores]] = {}
    for run in runs:
        for part in run.scores:
            parts.setdefault((part.task, part.metric, part.scorer), []).append(part)
    scores = [_joined(same) for same in parts.values()]
    if any(len(set(part.questions.keys)) < len(part.questions) for part in scores):
        return list(shards)
    note = f"{place}: {len(shards)} shards, read as one run"
    run = replace(
        runs[0], name=str(place), path=str(place), date=max(run.date for run in runs), scores=tuple(scores),
        skipped=(), notes=merge_notes(*(run.notes for run in runs), [note]),
    )  # fmt: skip
    answers = np.sort(np.frombuffer(b"".join(about.answers for _, about in shards), np.uint64)).tobytes()
    complete = all(about.complete for _, about in shards)
    return [(run, replace(shards[0][1], path=place, answers=answers, complete=complete))]


def _joined(parts: Sequence[Scores]) -> Scores:
    """One run's scores, from those of its shards; no native value is of all of them."""
    K = max(part.values.shape[1] for part in parts)
    values = [np.pad(x.values, ((0, 0), (0, K - x.values.shape[1])), constant_values=np.nan) for x in parts]
    clustered = all(part.clusters is not None for part in parts)
    asked = [part.questions for part in parts]
    questions = Questions(
        tuple(key for item in asked for key in item.keys), asked[0].kind,
        inputs=_texts([item.inputs for item in asked]), targets=_texts([item.targets for item in asked]),
        texts=_texts([item.texts for item in asked]),
    )  # fmt: skip
    return replace(
        parts[0], questions=questions,
        values=np.concatenate(values), native=None, factors=None, n_missing=sum(part.n_missing for part in parts),
        clusters=tuple(label for part in parts for label in part.clusters or ()) if clustered else None,
        cluster_spec=parts[0].cluster_spec if clustered else None,
        diagnostics=tuple(dict.fromkeys(code for part in parts for code in part.diagnostics)),
    )  # fmt: skip


def _texts(items: Sequence[Sequence[str] | None]) -> tuple[str, ...] | None:
    """Those of all shards, where all have them."""
    return None if any(item is None for item in items) else tuple(text for item in items for text in item or ())
