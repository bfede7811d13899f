"""Which of a folder's logs hold the same answers: a log, its copies, the earlier tries of a retried one, and shards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from harness_noise.arrays import FloatArray
from harness_noise.data.native_values import agreed
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run, Scores
from harness_noise.errors import InputError
from harness_noise.io.protocol import PartRead
from harness_noise.results.forms import merge_notes


@dataclass(frozen=True, slots=True)
class LogIdentity:
    """What a log says of itself, for those that lie beside it."""

    path: Path
    asked: tuple[str, ...]
    """Task, its id, model and data set: a log, its copies and its retries have the same. So have, in logs of
    other programs, different runs; hence the answers."""
    answers: bytes
    """See `marks`."""
    complete: bool = True
    """Whether Inspect has computed its results."""
    wanted: frozenset[tuple[str, int]] = frozenset()
    """The id and number of every answer that was to be asked for."""
    n_answers: int = 0
    """How many it holds."""


IdentifiedRun = tuple[Run, LogIdentity]
PART = "not_a_random_part"
_NEVER = " answers were never given"


def never_given(given: int, asked: int) -> str:
    """How many answers a log lacks, in words."""
    return f"{asked - given} of {asked}{_NEVER}"


def mark(key: str, epoch: int, sample: Mapping[str, Any]) -> bytes:
    """A hash of 64 bits of one scored answer, equal for a copy of it and for no other; b"" where it has no scores.

    Args:
        key: its question.
        epoch: its repeat.
        sample: or its summary. A retry keeps the `uuid` of the answers that it takes over; where there is none, what
            was answered and its scores stand for it.
    """
    scores = sample.get("scores") or sample.get("score")
    if not scores:
        return b""
    known = sample.get("uuid")
    if not known:
        named = sorted(scores.items(), key=str) if isinstance(scores, dict) else [("", scores)]
        known = [
            (name, item.get("value"), item.get("answer")) if isinstance(item, dict) else (name, item)
            for name, item in named
        ]
    return blake2b(f"{key}\x1f{epoch}\x1f{known}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


def fingerprint(keys: Sequence[str], values: FloatArray) -> str:
    """A hash of the scores of some questions, in whatever order they and their answers come.

    Args:
        keys: (n,) ids.
        values: (n, K) scores, NaN where there is none.
    """
    rows = [f"{key}\x1f{sorted(row[~np.isnan(row)].tolist())}" for key, row in zip(keys, values, strict=True)]
    return blake2b("\x1e".join(sorted(rows)).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def still_fits(row: Mapping[str, Any], parts: Sequence[Scores]) -> bool:
    """Whether a decision still rests on the scores that a log has; one that does not say on which is believed.

    Args:
        row: an object of `sequential` as the log has it.
        parts: the log's scores.
    """
    then, late = row.get("fingerprint"), row.get("late")
    if not isinstance(then, str) or not isinstance(late, list):
        return True
    return any(
        _fingerprint_without(part, late) == then
        for part in [part for part in parts if part.scorer == row.get("scorer")] or parts
    )


def _fingerprint_without(part: Scores, late: Sequence[Any]) -> str:
    """The fingerprint without the answers that had no part in a decision: [id, epoch] each, or a question's id."""
    rows = {key: i for i, key in enumerate(part.questions.keys)}
    values, dropped = part.values.copy(), set()
    for answer in late:
        key, epoch = (str(answer[0]), int(answer[1])) if isinstance(answer, list) else (str(answer), 1)
        if key in rows and 1 <= epoch <= values.shape[1]:
            values[rows[key], epoch - 1] = np.nan
        if epoch == 1:  # a question whose first answer came too late has no other
            dropped.add(key)
    kept = [i for key, i in rows.items() if key not in dropped]
    return fingerprint([part.questions.keys[i] for i in kept], values[kept])


def marks(hashes: Iterable[bytes]) -> bytes:
    """The hashes of a log's answers, see `mark`, sorted."""
    return np.sort(np.frombuffer(b"".join(hashes), np.uint64)).tobytes()


def joined(parts: Sequence[PartRead | InputError]) -> list[Run | InputError]:
    """The runs of a folder's logs, one for each, but for those whose answers another one has; and why others cannot be
    used.

    Args:
        parts: what reading each gave; `PartRead.about` is a `LogIdentity`, None for a log that was not asked for.
    """
    refused = [part for part in parts if isinstance(part, InputError)]
    read = [part for part in parts if not isinstance(part, InputError)]
    logs, remarks = one_run_each([(part.runs[0], part.about) for part in read if part.about is not None])
    logs, broken = _without_broken(logs)
    kept, notes = _without_copies(logs)
    notes += remarks + broken
    if notes:
        newest = max(range(len(kept)), key=lambda i: kept[i].date)
        kept[newest] = replace(kept[newest], notes=(*kept[newest].notes, *notes))
    return [*refused, *kept, *(run for part in read if part.about is None for run in part.runs)]


def _without_broken(logs: Sequence[IdentifiedRun]) -> tuple[list[IdentifiedRun], list[str]]:
    """The logs without those that ended early where another one of the same task and model did not."""
    whole = {_what(about): about.path for _, about in logs if about.complete}
    notes = [
        f"left out: {about.path}: ended before Inspect computed its results; {whole[_what(about)]} did not"
        for _, about in logs
        if not about.complete and _what(about) in whole
    ]
    return [log for log in logs if log[1].complete or _what(log[1]) not in whole], notes


def _what(about: LogIdentity) -> tuple[str, ...]:
    """Task, model and data set."""
    return (about.asked[0], *about.asked[2:])


def _without_copies(logs: Sequence[IdentifiedRun]) -> tuple[list[Run], list[str]]:
    """The logs without those whose every answer is in a newer one too: they must not count twice."""
    alike: dict[tuple[str, ...], list[IdentifiedRun]] = {}
    for log in logs:
        alike.setdefault(log[1].asked, []).append(log)
    again: dict[Path, Path] = {}
    for same in alike.values():
        if len(same) > 1 and same[0][1].asked[1]:
            again |= _contained(sorted(same, key=lambda log: log[0].date, reverse=True))
    notes = [
        f"left out: {about.path}: has the answers of {again[about.path]}, as its copy or earlier try"
        for _, about in logs
        if about.path in again
    ]
    return [run for run, about in logs if about.path not in again], notes


def _contained(logs: Sequence[IdentifiedRun]) -> dict[Path, Path]:
    """The logs whose answers are all in another that counts, and in which; the newest come first."""
    out: dict[Path, Path] = {}
    kept: list[tuple[Path, Any]] = []
    for _, about in logs:
        answers = np.frombuffer(about.answers, np.uint64)
        where = next((path for path, more in kept if np.isin(answers, more).all()), None)
        if where is None:
            kept.append((about.path, answers))
        else:
            out[about.path] = where
    return out


_SHARD = re.compile(r"(.+)\.shards/([^/]+)/[^/]+$")


def one_run_each(logs: Sequence[IdentifiedRun]) -> tuple[list[IdentifiedRun], list[str]]:
    """The logs, with one in place of the shards of a set, and notes; none of a set whose merged log is there.

    Of the logs in one shard's folder the newest counts.
    """
    out: list[IdentifiedRun] = []
    sets: dict[str, dict[str, IdentifiedRun]] = {}
    merged = {
        about.path.as_posix().removesuffix(".eval").removesuffix("-recovered") for _, about in logs if about.complete
    }
    for run, about in logs:
        shard = _SHARD.match(about.path.as_posix())
        if shard is None:
            out.append((run, about))
            continue
        newest = sets.setdefault(shard[1], {})
        if shard[2] not in newest or run.date > newest[shard[2]][0].date:
            newest[shard[2]] = run, about
    notes = []
    for name, shards in sets.items():
        if name in merged:
            notes.append(f"left out: {len(shards)} shards in {name}.shards: {name}.eval has been merged from them")
        else:
            out += _together(Path(f"{name}.shards"), list(shards.values()))
    return out, notes


def _together(place: Path, shards: Sequence[IdentifiedRun]) -> list[IdentifiedRun]:
    """The shards as one; as they are where two have a question in common, which no set of shards has."""
    runs, _ = agreed([run for run, _ in shards])
    parts: dict[tuple[str, str, str], list[Scores]] = {}
    for run in runs:
        for part in run.scores:
            parts.setdefault(part.key, []).append(part)
    scores = [_joined(same) for same in parts.values()]
    if any(len(set(part.questions.keys)) < len(part.questions) for part in scores):
        return list(shards)
    # a shard may name the questions of all of them
    asked, given = len(frozenset().union(*(about.wanted for _, about in shards))), sum(x.n_answers for _, x in shards)
    notes = [note for note in merge_notes(*(run.notes for run in runs)) if _NEVER not in note]
    notes += [f"{place}: {never_given(given, asked)}"] if given < asked else []
    if given >= asked:
        scores = [replace(x, diagnostics=tuple(code for code in x.diagnostics if code != PART)) for x in scores]
    run = replace(
        runs[0],
        name=str(place),
        path=str(place),
        date=max(run.date for run in runs),
        scores=tuple(scores),
        skipped=(),
        notes=(*notes, f"{place}: {len(shards)} shards, read as one run"),
    )
    answers = marks(about.answers for _, about in shards)
    complete = all(about.complete for _, about in shards)
    return [(run, replace(shards[0][1], path=place, answers=answers, complete=complete))]


def _joined(parts: Sequence[Scores]) -> Scores:
    """One run's scores, from those of its shards; no native value is of all of them."""
    K = max(part.values.shape[1] for part in parts)
    values = [np.pad(x.values, ((0, 0), (0, K - x.values.shape[1])), constant_values=np.nan) for x in parts]
    clustered = all(part.clusters is not None for part in parts)
    asked = [part.questions for part in parts]
    questions = Questions(
        tuple(key for of_shard in asked for key in of_shard.keys),
        asked[0].kind,
        inputs=_texts([of_shard.inputs for of_shard in asked]),
        targets=_texts([of_shard.targets for of_shard in asked]),
        texts=_texts([of_shard.texts for of_shard in asked]),
    )
    return replace(
        parts[0],
        questions=questions,
        values=np.concatenate(values),
        gradings=None,
        native=None,
        factors=None,
        n_missing=sum(part.n_missing for part in parts),
        clusters=tuple(label for part in parts for label in part.clusters or ()) if clustered else None,
        cluster_spec=parts[0].cluster_spec if clustered else None,
        diagnostics=tuple(dict.fromkeys(code for part in parts for code in part.diagnostics)),
    )


def _texts(items: Sequence[Sequence[str] | None]) -> tuple[str, ...] | None:
    """Those of all shards, where all have them."""
    return None if any(texts is None for texts in items) else tuple(text for texts in items for text in texts or ())
