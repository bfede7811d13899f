"""Logs of a folder that hold the same answers: a log, its copies, the earlier tries of a retried one, its shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from harness_noise.arrays import BoolArray, FloatArray
from harness_noise.data.notes import Note
from harness_noise.data.scores import Run, Scores
from harness_noise.errors import InputError
from harness_noise.io.protocol import PartRead


@dataclass(frozen=True, slots=True)
class LogIdentity:
    """The identity of a log, for comparison with the logs next to it."""

    path: Path
    eval_key: tuple[str, ...]
    """Task, its id, model and data set. A log, its copies and its retries have the same key.

    Different runs of other programs may have the same key, too. Therefore the answers are compared as well.
    """
    answers: bytes
    """See `marks`."""
    complete: bool = True
    """True if Inspect has computed its results."""


IdentifiedRun = tuple[Run, LogIdentity]
PART = "not_a_random_part"


def mark(key: str, epoch: int, sample: Mapping[str, Any]) -> bytes:
    """Return a 64-bit hash of a scored answer, equal for copies of it in other logs. b"" without scores.

    b"" where it has no scores.

    Args:
        key: its question.
        epoch: its repeat.
        sample: or its summary. A retry keeps the `uuid` of the answers that it takes over; where there is none, what
            was answered and its scores stand for it.
    """
    scores = sample.get("scores") or sample.get("score")
    if not scores:
        return b""
    content = sample.get("uuid")
    if not content:
        named = sorted(scores.items(), key=str) if isinstance(scores, dict) else [("", scores)]
        content = [
            (name, score.get("value"), score.get("answer")) if isinstance(score, dict) else (name, score)
            for name, score in named
        ]
    return blake2b(f"{key}\x1f{epoch}\x1f{content}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


def fingerprint(keys: Sequence[str], values: FloatArray) -> str:
    """Return a hash of questions' scores in which the order of questions and answers does not matter.

    Args:
        keys: (n,) ids.
        values: (n, K) scores, NaN where there is none.
    """
    rows = [f"{key}\x1f{sorted(row[~np.isnan(row)].tolist())}" for key, row in zip(keys, values, strict=True)]
    return blake2b("\x1e".join(sorted(rows)).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def still_fits(row: Mapping[str, Any], parts: Sequence[Scores]) -> bool:
    """Return True if scores of the record's scorer still have the fingerprint stored at the stop, or it has none.

    A decision without a fingerprint is believed.

    Args:
        row: a record of what stopped the run, as the log has it.
        parts: the log's scores.
    """
    then, late = row.get("fingerprint"), row.get("late")
    if not isinstance(then, str) or not isinstance(late, list):
        return True
    return any(
        _fingerprint_without(part, late) == then
        for part in [part for part in parts if part.scorer == row.get("scorer")] or parts
    )


def late_answers(late: Sequence[Any], ids: Sequence[str], K: int) -> BoolArray:
    """Return (n, K) True for answers that came too late for the decision, from [id, epoch] pairs.

    Args:
        late: [id, epoch] of each, or a question's id.
        ids: (n,) of the questions.
        K: epochs.
    """
    rows = {key: i for i, key in enumerate(ids)}
    out = np.zeros((len(ids), K), dtype=np.bool_)
    for answer in late:
        key, epoch = answer if isinstance(answer, list) and len(answer) == 2 else (answer, 1)
        if str(key) in rows and type(epoch) is int and 1 <= epoch <= K:
            out[rows[str(key)], epoch - 1] = True
    return out


def _fingerprint_without(part: Scores, late: Sequence[Any]) -> str:
    """Return the fingerprint of scores without the answers that came too late for the decision."""
    without = late_answers(late, part.questions.keys, part.values.shape[1])
    kept = np.flatnonzero(~without[:, 0]).tolist()  # a question whose first answer came too late has no other
    values = np.where(without, np.nan, part.values)
    return fingerprint([part.questions.keys[i] for i in kept], values[kept])


def marks(hashes: Sequence[bytes]) -> bytes:
    """Return the sorted hashes of a log's answers as bytes."""
    return np.sort(np.frombuffer(b"".join(hashes), np.uint64)).tobytes()


def joined(parts: Sequence[PartRead | InputError]) -> list[Run | InputError]:
    """Return the errors, and the runs of a folder's logs without copies, earlier tries and merged shards (noted).

    Args:
        parts: what reading each gave; `PartRead.about` is a `LogIdentity`, None for a log that was not asked for.
    """
    refused = [part for part in parts if isinstance(part, InputError)]
    read = [part for part in parts if not isinstance(part, InputError)]
    identified = [part for part in read if part.about is not None]
    left_out: dict[Path, str] = {}
    for reasons in (_merged, _broken, _copied):
        logs = [(part.runs[0], part.about) for part in identified if part.about.path not in left_out]
        left_out |= reasons(logs)
    kept = [part.runs[0] for part in identified if part.about.path not in left_out]
    if left_out:
        newest = max(range(len(kept)), key=lambda i: kept[i].date)
        notes = (Note("left_out", f"left out: {why}") for why in left_out.values())
        kept[newest] = replace(kept[newest], notes=(*kept[newest].notes, *notes))
    return [*refused, *kept, *(run for part in read if part.about is None for run in part.runs)]


def _merged(logs: Sequence[IdentifiedRun]) -> dict[Path, str]:
    """Return {shard folder: sentence} for shards that a complete log next to them contains."""
    whole = {
        about.path.as_posix().removesuffix(".eval").removesuffix("-recovered") for _, about in logs if about.complete
    }
    return {
        about.path: f"the shards in {about.path}: {about.path.stem}.eval has been merged from them"
        for _, about in logs
        if about.path.suffix == ".shards" and about.path.as_posix().removesuffix(".shards") in whole
    }


def _broken(logs: Sequence[IdentifiedRun]) -> dict[Path, str]:
    """Return {log: sentence} for logs that ended early although another log of the eval is complete."""
    whole = {(about.eval_key[0], *about.eval_key[2:]): about.path for _, about in logs if about.complete}
    return {
        about.path: f"{about.path}: ended before Inspect computed its results, but {there} did not"
        for _, about in logs
        if not about.complete and (there := whole.get((about.eval_key[0], *about.eval_key[2:]))) is not None
    }


def _copied(logs: Sequence[IdentifiedRun]) -> dict[Path, str]:
    """Return {log: sentence} for logs whose every answer is also in a newer log.

    They must not count twice.
    """
    out: dict[Path, str] = {}
    kept: dict[tuple[str, ...], list[tuple[Path, Any]]] = {}
    for _, about in sorted(logs, key=lambda log: log[0].date, reverse=True):
        same = kept.setdefault(about.eval_key, []) if about.eval_key[1] else []
        answers = np.frombuffer(about.answers, np.uint64)
        where = next((path for path, more in same if np.isin(answers, more).all()), None)
        if where is None:
            same.append((about.path, answers))
        else:
            out[about.path] = f"{about.path}: has the answers of {where}, as its copy or earlier try"
    return out
