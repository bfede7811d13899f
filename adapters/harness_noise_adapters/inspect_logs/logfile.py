"""The reader of Inspect's files, `.eval` and `.json`: without Inspect, which takes a second to import.

Scores come from the sample summaries, which are small. The samples are read in full only where a summary
has lost something that counts: an invalidation, a long input, a long cluster value. Inspect's own reader
is the reference in the tests.

A log is not trusted: a few kilobytes that unpack to gigabytes, or bytes that have changed, are refused
here, in our own reading and before Inspect reads a log to write it again: Inspect reads the parts of a
log whole, whatever they unpack to, and does not compare checksums.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from harness_noise.arrays import HashArray
from harness_noise.data.questions import QuestionText, content_hash
from harness_noise.errors import InputError
from harness_noise.io.paths import LARGEST, opened, refuse_pointer

from ..records import CutError, JsonStream
from ..records import field as lookup
from .finding import HEADER
from .records import (
    NOTHING_MORE,
    Faults,
    Header,
    Keep,
    NotALogError,
    SampleAnswers,
    answer_hash,
    graded_hash,
    header_of,
    input_text,
    is_cut_value,
    objects_in,
    target_text,
)

FLOOR = 1 << 25
HEADER_RATIO = 20
"""The most that header, reductions and summaries may unpack to: FLOOR plus this many times the file's size.

In real logs they are smaller than the file.
"""
SAMPLES_RATIO = 200
"""All samples may unpack to FLOOR plus so many times the size: conversations repeat themselves and compress far."""
SAMPLES = "samples/"
JOURNAL = "_journal/summaries/"
_HEADER = frozenset(("header.json", "reductions.json", "summaries.json", "_journal/start.json"))
_PIECE = 1 << 18
_ZSTANDARD = 93


class Archive:
    """The members of an `.eval` log. Each is unpacked within bounds and compared with its checksum.

    Raises:
        InputError: the file is no archive as Inspect writes it; with the reason.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = path.stat().st_size
        members = _members(path)
        self.members = {member.filename: member for member in members}  # of two of one name the last counts
        self._most = {ratio: FLOOR + ratio * self.size for ratio in (HEADER_RATIO, SAMPLES_RATIO)}
        self._left = dict(self._most)
        self._file: BinaryIO = opened(path)
        if "summaries.json" not in self.members:
            # Inspect counts the summaries of an unfinished log by the highest number among their names
            numbers = [name.removeprefix(JOURNAL).removesuffix(".json") for name in self.members if JOURNAL in name]
            if any(not number.isdecimal() or len(number) > 9 or int(number) > len(members) for number in numbers):
                self._file.close()
                raise InputError(f"{path}: not a log of Inspect: its summaries are numbered as no run numbers them")

    @property
    def samples(self) -> list[str]:
        """Names of the files in the `.eval` archive that hold one sample each."""
        return [name for name in self.members if name.startswith(SAMPLES) and name.endswith(".json")]

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield an archive member in pieces. Refuse a damaged or far too large one, before the last piece.

        Raises:
            InputError: the member is damaged, or far larger than any run writes it.
        """
        member = self.members[name]
        ratio = SAMPLES_RATIO if name.startswith(SAMPLES) else HEADER_RATIO
        crc, length = 0, 0
        last = b""
        try:
            for piece in _unpacked(self._file, member):
                crc, length = zlib.crc32(piece, crc), length + len(piece)
                self._left[ratio] -= len(piece)
                if self._left[ratio] < 0:
                    raise InputError(
                        f"{self.path}: {name} unpacks to more than {self._most[ratio] / 1e6:.0f} MB, though the file "
                        f"has {self.size / 1e6:.1f} MB: no run writes such a log. If you trust it, make a JSON log of "
                        f"it: `inspect log convert {self.path} --to json --output-dir DIR`"
                    )
                yield last
                last = piece
        except InputError:
            raise
        except (zlib.error, struct.error, ValueError, EOFError) as error:
            raise damaged(self.path, f"{name}: {error}") from None
        if (crc, length) != (member.CRC, member.file_size):
            raise damaged(self.path, f"{name} is not what its checksum says")
        yield last


def check_header(path: Path) -> None:
    """Refuse an .eval log with damaged or too large header or summaries, and a JSON log that is too large.

    Raises:
        InputError: with the reason.
        OSError: the file cannot be read.
    """
    if path.suffix == ".eval":
        with Archive(path) as archive:
            for name in archive.members:
                if name in _HEADER or name.startswith("_journal/"):
                    deque(archive.pieces(name), maxlen=0)
        return
    if path.stat().st_size > LARGEST:  # an .eval log may be of any size
        raise InputError(
            f"{path}: a JSON log of {path.stat().st_size / 1e9:.1f} GB has to be held in memory as a whole. Make "
            f"an .eval log of it: `inspect log convert {path} --to eval --output-dir DIR --stream`"
        )


def _members(path: Path) -> list[zipfile.ZipInfo]:
    """Return the list of an archive's members. Refuse archives that could be read in two ways."""
    try:
        with opened(path) as file, zipfile.ZipFile(file) as archive:
            members, start = archive.infolist(), archive.start_dir
            if archive.comment or not _has_one_member_list(file, start):
                raise InputError(f"{path}: not an archive as Inspect writes it: its list of members is ambiguous")
    except InputError:
        raise
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
        raise damaged(path, _why_no_zip(path, error)) from None
    if any(member.orig_filename != member.filename for member in members):
        raise InputError(f"{path}: not an archive as Inspect writes it: the name of a member has a null byte")
    return members


def _why_no_zip(path: Path, error: Exception) -> str:
    with opened(path) as file:
        start = file.read(4)
    if not start:
        return "the file is empty"
    if start == b"PK\x03\x04":
        return "it begins as a log does, and the list of members at its end is missing: the file was cut short"
    return str(error)


def _has_one_member_list(file: BinaryIO, start: int) -> bool:
    """Return True if an archive's end names only the member list at `start`, so that all readers agree."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - 98))
    tail = file.read().rjust(98, b"\0")
    length, offset = struct.unpack("<II", tail[-10:-2])
    if tail[56:60] == b"PK\x06\x07":
        long_length, long_offset = struct.unpack("<QQ", tail[40:56])
        same = {length: long_length, offset: long_offset}
        place = int.from_bytes(tail[64:72], "little")
        return (
            tail[:4] == b"PK\x06\x06"
            and (place, long_offset, start + long_length) == (size - 98, start, size - 98)
            and all(short in (0xFFFFFFFF, long) for short, long in same.items())
        )
    return tail[-22:-18] == b"PK\x05\x06" and (offset, start + length) == (start, size - 22)


def _unpacked(file: BinaryIO, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield a member's content to its real end, whatever size is declared. Raise what `pieces` catches if damaged."""
    file.seek(member.header_offset)
    fields = struct.unpack("<4sHHHHHIIIHH", file.read(30))
    if fields[0] != b"PK\x03\x04" or fields[2] & 1:
        raise ValueError("encrypted, or not where the archive says")
    file.seek(member.header_offset + 30 + fields[9] + fields[10])
    packed = _packed(file, member.compress_size)
    if member.compress_type == zipfile.ZIP_STORED:
        yield from packed
    elif member.compress_type == zipfile.ZIP_DEFLATED:
        stream = zlib.decompressobj(-15)
        for data in packed:
            while data and not stream.eof:
                yield stream.decompress(data, _PIECE)
                data = stream.unconsumed_tail
        yield stream.flush()
        if not stream.eof:
            raise EOFError("its data end too early")
    elif member.compress_type == _ZSTANDARD:
        yield from _unpacked_zstd(b"".join(packed))
    else:
        raise ValueError(f"packed by method {member.compress_type}")


def _unpacked_zstd(packed: bytes) -> Iterator[bytes]:
    """Yield Zstandard data unpacked in pieces. Raise ValueError if damaged, InputError if nothing can unpack it."""
    zstd: Any
    try:
        import zstandard as zstd
    except ImportError:
        try:
            from compression import zstd  # type: ignore[import-not-found,no-redef]
        except ImportError:
            raise InputError(
                "the log is packed with Zstandard, which this Python cannot unpack: pip install 'harness-noise[zstd]'"
            ) from None
        failed, reader = zstd.ZstdError, zstd.ZstdFile(io.BytesIO(packed))
    else:
        failed = zstd.ZstdError
        reader = zstd.ZstdDecompressor().stream_reader(io.BytesIO(packed), read_across_frames=True)
    try:
        with reader:
            yield from iter(lambda: reader.read(_PIECE), b"")
    except failed as error:
        raise ValueError(str(error)) from None


def _packed(file: BinaryIO, length: int) -> Iterator[bytes]:
    while length:
        data = file.read(min(_PIECE, length))
        if not data:
            raise EOFError("the file ends in it")
        length -= len(data)
        yield data


def damaged(path: Path, why: str) -> InputError:
    return InputError(
        f"{path}: not an Inspect log that can be read ({why}). If it was cut short, copy it again or try "
        "`inspect log recover`"
    )


Reductions = dict[tuple[str, str], dict[str, Any]]
"""Scorer and reducer → question → the one value that its epochs came to."""


@dataclass(frozen=True, slots=True, eq=False)
class LogFile:
    """One log, one set of shards, or one running task: header, answers and native values."""

    paths: tuple[Path, ...]
    """None of a task that Inspect hands over."""
    header: Header
    answers: SampleAnswers
    faults: Faults
    """Faults of the header and of the answers."""
    reductions: Reductions = field(default_factory=dict)
    n_not_seen: int = 0
    """Answers that ended without a score and are not among `answers`, because Inspect does not hand them over."""


Accept = Callable[[Header], Sequence[str]]
"""Function that may refuse a log by its header. It returns the SPECs to look up in the samples' metadata."""


def read(path: Path, accept: Accept, keep: Keep = NOTHING_MORE) -> LogFile:
    """Read a log file: header, answers, native values. Refuse a damaged one. `accept` may refuse it by its header.

    Args:
        path: a file that ends in `.eval`, or a JSON log.
        accept: is called before anything but the header is used.
        keep: what of the samples is kept beside their scores.

    Raises:
        InputError: it cannot be read; says why.
    """
    faults = Faults()
    try:
        refuse_pointer(path)
        header, answers, reductions = (_archive if path.suffix == ".eval" else _json)(path, accept, keep, faults)
    except InputError:
        raise
    except CutError as error:
        raise damaged(path, f"{error}: the file was cut short") from None
    except (ValueError, OSError, RecursionError) as error:
        raise damaged(path, " ".join(str(error).split())[:200] or type(error).__name__) from error
    answers.named(header.scores)
    faults |= answers.faults
    return LogFile((path,), header, answers, faults, reductions)


def read_shards(paths: Sequence[Path], accept: Accept, keep: Keep = NOTHING_MORE) -> LogFile:
    """Read shards as one log, its native values NaN and not computed. Refuse two with the same answer.

    Arguments as for `read`.

    Raises:
        InputError: one cannot be read, or two have the same answer, which no set of shards has.
    """
    files = [read(path, accept, keep) for path in paths]
    headers, first = [file.header for file in files], files[0]
    answers, faults, reductions = SampleAnswers(keep), Faults(), dict[tuple[str, str], dict[str, Any]]()
    for file in files:
        answers.append(file.answers)
        faults.update(file.faults)
        for key, values in file.reductions.items():
            reductions.setdefault(key, {}).update(values)
    if len(answers) < sum(len(file.answers) for file in files):
        raise InputError(f"{paths[0]}: another shard of its set has the same answer: name one of the files")
    ids = list(dict.fromkeys(key for header in headers for key in header.sample_ids or ()))
    rows = [
        replace(row, metrics={name: replace(metric, value=math.nan) for name, metric in row.metrics.items()})
        for row in first.header.scores
    ]
    header = replace(
        first.header,
        status=next((header.status for header in headers if header.status != "success"), "success"),
        created=max(header.created for header in headers),
        sample_ids=ids,
        total_samples=len(ids) * first.header.epochs,
        not_asked=sum(header.not_asked for header in headers),
        invalidated=any(header.invalidated for header in headers),
        stopping={},
        scores=rows if all(header.scores for header in headers) else (),
        computed=False,
    )
    return LogFile(tuple(paths), header, answers, faults, reductions)


Contents = tuple[Header, SampleAnswers, Reductions]


def _json(path: Path, accept: Accept, keep: Keep, faults: Faults) -> Contents:
    """Read a JSON log, names in any order, one sample in memory at a time. Raise ValueError or CutError if damaged."""
    values: dict[str, Any] = {}
    answers = SampleAnswers(keep)
    reductions: Reductions = {}
    with opened(path) as file:
        stream = JsonStream(iter(lambda: file.read(_PIECE), b""))
        for name in stream.members():
            if name == "samples" and stream.is_array():
                answers = SampleAnswers(keep)  # of two of one name the last counts
                answers.extend(stream.items())
            elif name == "reductions" and stream.is_array():
                reductions = _reductions(stream.items())
            else:
                value = stream.value()
                if name in HEADER:
                    values[name] = value
        stream.end()
    header = header_of(values, faults)
    accept(header)
    return header, answers, reductions


def _archive(path: Path, accept: Accept, keep: Keep, faults: Faults) -> Contents:
    with Archive(path) as archive:
        start = next((name for name in ("header.json", "_journal/start.json") if name in archive.members), None)
        if start is None:
            raise NotALogError("it has neither a header nor a start")
        values = _document(archive, start)
        if not isinstance(values, dict):
            raise NotALogError("its header is not an object")
        header = header_of(values, faults)
        specs = accept(header)
        answers = SampleAnswers(keep)
        for name in _summaries(archive):
            answers.extend(_items(archive, name))
        if header.invalidated or answers.lacks_usage or keep.edits:
            answers = _read_full_samples(archive, keep, archive.samples) or answers
        elif _summaries_lack(header, answers, specs):
            members = [_member(key, question.epoch) for key, question in answers.questions.items()]
            firsts = _read_full_samples(archive, keep, [name for name in members if name in archive.members])
            if firsts.questions.keys() == answers.questions.keys():
                answers.questions = firsts.questions
            else:
                answers = _read_full_samples(archive, keep, archive.samples) or answers
        if not any(row.text for row in answers.rows.values()):
            _read_texts(archive, answers)
        several = any(row.reducer not in (None, "mean") for row in header.scores)
        several = several and "reductions.json" in archive.members
        return header, answers, _reductions(_items(archive, "reductions.json")) if several else {}


def _member(key: str, epoch: int) -> str:
    """Return the name of a sample's member in an `.eval` archive."""
    return f"{SAMPLES}{key}_epoch_{epoch}.json"


def _summaries_lack(header: Header, answers: SampleAnswers, fields: Sequence[str]) -> bool:
    """Return True if summaries lack a text or field that is needed, so that samples must be read.

    Summaries of an old Inspect lack choices. Others have cut an input, a target, or a value that `fields` (SPECs) use.
    """
    questions = answers.questions.values()
    multiple_choice = any(solver.endswith("multiple_choice") for solver in header.solvers)
    if multiple_choice and not any(question.has_choices for question in questions):
        return True
    values = (entry for question in questions for entry in question.metadata.items())
    cut = {key for key, value in values if is_cut_value(value)}
    return any(question.cut for question in questions) or any(
        field == "auto" or key in field for key in cut for field in fields
    )


def _reductions(rows: Iterable[Any]) -> Reductions:
    reductions: Reductions = {}
    for row in rows:
        if isinstance(row, dict):
            of = reductions.setdefault((str(row.get("scorer")), str(row.get("reducer"))), {})
            of.update({str(score.get("sample_id")): score.get("value") for score in objects_in(row.get("samples"))})
    return reductions


def _document(archive: Archive, name: str) -> Any:
    stream = JsonStream(archive.pieces(name))
    value = stream.value()
    stream.end()
    return value


def _items(archive: Archive, name: str) -> Iterator[Any]:
    stream = JsonStream(archive.pieces(name))
    yield from stream.items()
    stream.end()


def _summaries(archive: Archive) -> list[str]:
    """Return the names of the archive members with sample summaries, in order.

    They are all in one, or those of a run's journal in their order.
    """
    if "summaries.json" in archive.members:
        return ["summaries.json"]
    members = [name for name in archive.members if name.startswith(JOURNAL) and name.endswith(".json")]
    return sorted(members, key=lambda name: int(name.removeprefix(JOURNAL).removesuffix(".json")))


def _read_full_samples(archive: Archive, keep: Keep, names: Sequence[str]) -> SampleAnswers:
    """Read the answers from an archive's full samples instead of their summaries."""
    answers = SampleAnswers(keep)
    answers.extend(_document(archive, name) for name in names)
    return answers


PROBED = 50
"""Questions whose scores differ that are looked at for a verdict that differs on the same text: none, no judge."""
GRADED = 500
"""Questions of a noisy judge whose answers are read, drawn by a hash of their ids: more would tell little more."""


def _read_texts(archive: Archive, answers: SampleAnswers) -> None:
    """Set hashes of answers' texts of up to GRADED questions if a judge is noisy (or `apart`), else 0."""
    questions = answers.same_questions()
    probed = questions[:PROBED]
    _hash_texts(archive, answers, (answer for same in probed for answer in same))
    noisy = answers.keep.apart or any(map(answers.differently_graded, probed))
    questions.sort(key=lambda same: content_hash(same[0][0]))
    graded = {answer for same in questions[:GRADED] for answer in same} if noisy else set()
    _hash_texts(archive, answers, graded)
    for answer, row in answers.rows.items():
        row.text = row.text if answer in graded else 0


def _hash_texts(archive: Archive, answers: SampleAnswers, wanted: Iterable[tuple[str, int]]) -> None:
    for answer in wanted:
        row, name = answers.rows[answer], _member(*answer)
        if not row.text and name in archive.members:
            row.text = answer_hash(_beginning(archive, name))


def _beginning(archive: Archive, name: str) -> dict[str, Any]:
    """Read a sample's fields up to `output` from an archive, without the long events after it."""
    stream, sample = JsonStream(archive.pieces(name)), {}
    for key in stream.members():
        sample[key] = stream.value()
        if key == "output":
            break
    return sample


@dataclass(frozen=True, slots=True)
class SampleLog:
    """Texts of a log's samples, read again on demand. See `harness_noise.data.questions.AnswerSource`."""

    paths: Sequence[Path]
    """The log, or the shards of a set."""
    keys: Sequence[str]
    """The ids of the questions, in their order."""

    def read(self, rows: Sequence[int], scorer: str) -> list[QuestionText]:
        """Read text, target and answers of the questions in these rows, empty if lost. Refuse unreadable samples."""
        wanted = {self.keys[row] for row in rows}
        samples: dict[str, dict[int, Mapping[str, Any]]] = {key: {} for key in wanted}
        for path in self.paths:
            try:
                for sample in _samples(path, wanted):
                    key, epoch = str(sample.get("id")), sample.get("epoch")
                    if key in wanted and isinstance(epoch, int):
                        samples[key][epoch] = sample
            except (ValueError, OSError, RecursionError) as error:
                raise InputError(f"{path}: its samples cannot be read ({error})") from None
        return [_told([sample for _, sample in sorted(samples[self.keys[row]].items())], scorer) for row in rows]


@dataclass(frozen=True, slots=True)
class LogTexts:
    """Hashes that show which answers are equal. See `harness_noise.data.questions.AnswerTexts`."""

    paths: Sequence[Path]
    """The log, or the shards of a set."""
    keys: Sequence[str]
    """The ids of the questions, in their order."""
    epochs: Sequence[int]
    """The epoch of each column."""

    def hashes(self, rows: Sequence[int]) -> HashArray:
        """Read (m, K) hashes of answer, target and choices for m rows, 0 if unknown. Refuse unreadable samples."""
        out = np.zeros((len(rows), len(self.epochs)), dtype=np.uint64)
        places = {(self.keys[row], epoch): (i, j) for i, row in enumerate(rows) for j, epoch in enumerate(self.epochs)}
        for path in self.paths:
            try:
                for sample in _beginnings(path, places):
                    place = places.get((str(sample.get("id")), sample.get("epoch") or 0))
                    if place is not None:
                        out[place] = graded_hash(sample)
            except (ValueError, OSError, RecursionError) as error:
                raise InputError(f"{path}: its samples cannot be read ({error})") from None
        return out

    def shared(self, first: Callable[[Sequence[str]], Sequence[str]]) -> LogTexts:
        """Return the object with equal lists of question ids shared, to save memory."""
        return replace(self, keys=first(self.keys))


def _beginnings(path: Path, wanted: Mapping[tuple[str, int], object]) -> Iterator[Mapping[str, Any]]:
    """Yield samples up to their output: from an archive the wanted ones, from a JSON log all."""
    if path.suffix == ".eval":
        with Archive(path) as archive:
            for name in map(_member, *zip(*wanted, strict=True)):
                if name in archive.members:
                    yield _beginning(archive, name)
        return
    yield from _samples(path, set())


def _samples(path: Path, wanted: set[str]) -> Iterator[Mapping[str, Any]]:
    """Yield a log's samples: of an archive those with wanted ids (all if no name fits), of a JSON log all.

    If an archive's file names fit none, all of its samples come.
    """
    if path.suffix == ".eval":
        with Archive(path) as archive:
            called = [name for name in archive.samples if name[len(SAMPLES) :].rpartition("_epoch_")[0] in wanted]
            for name in called or archive.samples:
                sample = JsonStream(archive.pieces(name)).value()
                if isinstance(sample, dict):
                    yield sample
        return
    with opened(path) as file:
        stream = JsonStream(iter(lambda: file.read(_PIECE), b""))
        for name in stream.members():
            if name == "samples" and stream.is_array():
                yield from (row for row in stream.items() if isinstance(row, dict))
            else:
                stream.value()


def _told(samples: Sequence[Mapping[str, Any]], scorer: str) -> QuestionText:
    if not samples:
        return QuestionText()
    prompt, target = samples[0].get("input"), samples[0].get("target")
    return QuestionText(
        text=input_text(prompt) if isinstance(prompt, (str, list)) else None,
        target=target_text(target) if isinstance(target, (str, list)) else None,
        answers=tuple(_answer(sample, scorer) for sample in samples),
    )


def _answer(sample: Mapping[str, Any], scorer: str) -> str:
    """Return the model's last message as text, else the answer that the scorer recorded, else ""."""
    for choice in objects_in(lookup(sample, "output", "choices"))[:1]:
        message = choice.get("message")
        if isinstance(message, dict) and (text := input_text([{**message, "role": "user"}])):
            return text
    answer = lookup(sample, "scores", scorer.partition("/")[0], "answer")
    return answer if isinstance(answer, str) else ""
