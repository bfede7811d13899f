"""The reader of Inspect's files, `.eval` and `.json`: without Inspect, which takes a second to import.

Scores come from the sample summaries, which are small. The samples are read in full only where a summary
has lost something that counts: an invalidation, a long input, a long cluster value. Inspect's own reader
is the reference in the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness_noise.errors import InputError
from harness_noise.io.paths import refuse_pointer

from ..json_stream import CutError, JsonStream
from . import bounds
from .header import Faults, Header, NotALogError, header_of
from .records import Answers, Question, is_cut_value

HEADER = frozenset(("version", "status", "eval", "plan", "results", "invalidated", "log_updates", "error", "metadata"))
"""The top-level values of a `.json` log that are read, beside its samples."""
_PIECE = 1 << 18


Reductions = dict[tuple[str, str], dict[str, Any]]
"""Scorer and reducer → question → the one value that its epochs came to."""


@dataclass(frozen=True, slots=True, eq=False)
class LogFile:
    """One log as its file has it."""

    header: Header
    answers: Answers
    faults: Faults
    """Of both."""
    reductions: Reductions = field(default_factory=dict)


Fields = Callable[[Header], Sequence[str]]
"""The SPECs that will be looked up in the samples' metadata."""


def read(path: Path, fields: Fields, whole: bool = False, accept: Callable[[Header], None] = lambda _: None) -> LogFile:
    """Read a log.

    Args:
        path: a file that ends in `.eval`, or a JSON log.
        fields: from the header, which metadata count.
        whole: whether to keep the questions' whole text.
        accept: is called with the header before anything else is used, and may refuse the log.

    Raises:
        InputError: it cannot be read; says why.
    """
    try:
        refuse_pointer(path)
        return _archive(path, fields, whole, accept) if path.suffix == ".eval" else _json(path, whole, accept)
    except InputError:
        raise
    except CutError as error:
        raise bounds.damaged(path, f"{error}: the file was cut short") from None
    except (ValueError, OSError, RecursionError) as error:
        raise bounds.damaged(path, " ".join(str(error).split())[:200] or type(error).__name__) from error


def _json(path: Path, whole: bool, accept: Callable[[Header], None]) -> LogFile:
    """A JSON log, whose names may stand in any order; one sample is in memory at a time."""
    values: dict[str, Any] = {}
    answers = Answers(whole)
    reductions: Reductions = {}
    with path.open("rb") as file:
        stream = JsonStream(iter(lambda: file.read(_PIECE), b""))
        for name in stream.members():
            if name == "samples" and stream.is_array():
                answers = Answers(whole)  # of two of one name the last counts
                answers.extend(stream.items())
            elif name == "reductions" and stream.is_array():
                reductions = _reductions(stream.items())
            else:
                value = stream.value()
                if name in HEADER:
                    values[name] = value
        stream.end()
    return _made(values, answers, accept, reductions)


def _archive(path: Path, fields: Fields, whole: bool, accept: Callable[[Header], None]) -> LogFile:
    with bounds.Archive(path) as archive:
        start = next((name for name in ("header.json", "_journal/start.json") if name in archive.members), None)
        if start is None:
            raise NotALogError("it has neither a header nor a start")
        values = _document(archive, start)
        if not isinstance(values, dict):
            raise NotALogError("its header is not an object")
        header = header_of(values if start == "header.json" else values | {"status": "started"}, Faults())
        accept(header)
        answers = Answers(whole)
        for name in _summaries(archive):
            answers.extend(_items(archive, name))
        if header.invalidated:
            answers = _in_full(archive, whole, None) or answers
        elif _lost_choices(header, answers) or _lost(answers, fields(header)):
            firsts = [f"{bounds.SAMPLES}{key}_epoch_{item.epoch}.json" for key, item in answers.questions.items()]
            full = _in_full(archive, whole, firsts if all(name in archive.members for name in firsts) else None)
            if full is not None and full.questions.keys() == answers.questions.keys():
                answers.questions = full.questions
            else:
                answers = full or answers
        several = (
            any(row.reducer not in (None, "mean") for row in header.scores) and "reductions.json" in archive.members
        )
        reductions = _reductions(_items(archive, "reductions.json")) if several else {}
    return _made(values, answers, accept, reductions)


def _reductions(rows: Iterable[Any]) -> Reductions:
    found: Reductions = {}
    for row in rows:
        samples = row.get("samples") if isinstance(row, dict) else None
        if isinstance(samples, list):
            of = found.setdefault((str(row.get("scorer")), str(row.get("reducer"))), {})
            of.update({str(item.get("sample_id")): item.get("value") for item in samples if isinstance(item, dict)})
    return found


def _made(
    values: dict[str, Any], answers: Answers, accept: Callable[[Header], None], reductions: Reductions | None = None
) -> LogFile:
    faults = Faults()
    header = header_of(values, faults)
    accept(header)
    answers.named(header.scores)
    faults.counts |= answers.faults.counts
    return LogFile(header, answers, faults, reductions or {})


def of_native(header: dict[str, Any], samples: Sequence[dict[str, Any]], whole: bool = False) -> LogFile:
    """The same from what Inspect's own functions have read, as plain values; for places that only Inspect reaches."""
    answers = Answers(whole)
    answers.extend(samples)
    return _made(header, answers, lambda _: None)


def needs_samples(header: Header, answers: Answers, fields: Sequence[str]) -> bool:
    """Whether summaries do not suffice."""
    return header.invalidated or _lost_choices(header, answers) or _lost(answers, fields)


def _document(archive: bounds.Archive, name: str) -> Any:
    stream = JsonStream(archive.pieces(name))
    value = stream.value()
    stream.end()
    return value


def _items(archive: bounds.Archive, name: str) -> Iterator[Any]:
    stream = JsonStream(archive.pieces(name))
    yield from stream.items()
    stream.end()


def _summaries(archive: bounds.Archive) -> list[str]:
    """The members that hold the summaries: all in one, or those of a run's journal in their order."""
    if "summaries.json" in archive.members:
        return ["summaries.json"]
    found = [name for name in archive.members if name.startswith(bounds.JOURNAL) and name.endswith(".json")]
    return sorted(found, key=lambda name: int(name.removeprefix(bounds.JOURNAL).removesuffix(".json")))


def _in_full(archive: bounds.Archive, whole: bool, names: Sequence[str] | None) -> Answers | None:
    """The samples themselves, all or those named; None if the log has none."""
    if names is None:
        names = [name for name in archive.members if name.startswith(bounds.SAMPLES) and name.endswith(".json")]
    answers = Answers(whole)
    answers.extend(_document(archive, name) for name in names)
    return answers if names else None


def _lost_choices(header: Header, answers: Answers) -> bool:
    """Whether the questions have choices that the summaries of an old Inspect do not show."""
    asked = any(solver.endswith("multiple_choice") for solver in header.solvers)
    return asked and not any(item.has_choices for item in answers.questions.values())


def _lost(answers: Answers, fields: Sequence[str]) -> bool:
    """Whether a summary has cut an input, a target, or a value that `fields` (SPECs) make use of."""
    return any(item.cut or _has_cut_value(item, fields) for item in answers.questions.values())


def _has_cut_value(question: Question, fields: Sequence[str]) -> bool:
    return any(
        is_cut_value(value) and any(field == "auto" or key in field for field in fields)
        for key, value in question.metadata.items()
    )
