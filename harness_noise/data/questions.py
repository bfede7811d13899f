"""The questions of a task: their keys, packed if they are hashes, and their texts on demand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import eq
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..arrays import HashArray, IntArray, picked
from ..errors import FaultyScoresError, InputError
from .clusters import Fields

CONTENT_KEYS = frozenset({"doc_hash"})
"""Kinds of keys that are hashes of the whole question: where they agree there is nothing to verify."""


class TextSource(Protocol):
    """The place where the texts of a run's questions can be read. It can be pickled."""

    def read(self) -> tuple[Sequence[str] | None, Sequence[str] | None]:
        """Read the question texts from the log: their hashes (`inputs`) and their beginnings (`texts`).

        Raises:
            InputError: they cannot be read, or are no longer what the run was read from.
        """
        ...


@dataclass(frozen=True, slots=True)
class QuestionText:
    """The text, target and answers of one question, as far as the log has them."""

    text: str | None = None
    """The whole question."""
    target: str | None = None
    """The answer that is right."""
    answers: tuple[str, ...] = ()
    """The model's, one for each repeat."""
    either: tuple[str, ...] = ()
    """What may be the right answer or the model's, one for each repeat: a table's lone column `answer`."""


class AnswerSource(Protocol):
    """The place where questions, targets and answers can be read again. It can be pickled."""

    def read(self, rows: Sequence[int], scorer: str) -> Sequence[QuestionText]:
        """Read the question text, target and answers for the questions in these rows.

        Raises:
            InputError: it cannot be read, or is no longer what the run was read from.
        """
        ...


class AnswerTexts(Protocol):
    """The place where the texts of a run's answers can be read again, to find equal ones. It can be pickled."""

    def hashes(self, rows: Sequence[int]) -> HashArray:
        """Read the (m, K) 64-bit hashes of the answer texts for the questions in these rows. 0 is unknown.

        Equal hashes mean that a scorer saw the same: text, target and choices.

        Raises:
            InputError: they cannot be read, or are no longer what the run was read from.
        """
        ...

    def shared(self, first: Callable[[Sequence[str]], Sequence[str]]) -> AnswerTexts:
        """Return the object with each list of strings replaced by an equal one kept by `first`, to save memory."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class SomeTexts:
    """The texts of some of the questions, or of some of the answers to each. See `AnswerTexts`."""

    source: AnswerTexts
    rows: Sequence[int] | None = None
    """The numbers of these questions, None for all."""
    columns: Any = None
    """An index of the columns, None for all."""

    def hashes(self, rows: Sequence[int]) -> HashArray:
        """Read the (m, K) hashes of the answer texts for these rows, from the larger table it is a part of."""
        found = self.source.hashes(rows if self.rows is None else [self.rows[row] for row in rows])
        return found if self.columns is None else found[:, self.columns]

    def shared(self, first: Callable[[Sequence[str]], Sequence[str]]) -> SomeTexts:
        """Return the object with its source's lists of strings replaced by equal ones kept by `first`."""
        return SomeTexts(self.source.shared(first), self.rows, self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class Questions:
    """The questions of one task as one run saw them. Shared by all metrics of that task.

    All sequences have length n, are never changed, and equal a tuple of the same strings; large ones
    may be packed (`packed`). `keys` are unique within a task. Where there are `documents`, `inputs` and
    `texts` are read when they are first asked for, which few uses do, and asking may raise an InputError.
    """

    keys: Sequence[str]
    """Keys that pair each question with the same question of another run."""
    kind: str = "question"
    """The kind of the keys: "doc_hash", "sample id", "question", … . Runs with keys of one kind are matched by key."""
    inputs: Sequence[str] | None = field(default=None, repr=False)
    """Hash of the question's text (see `content_hash`): verifies a match by id, and matches runs of
    different harnesses."""
    targets: Sequence[str] | None = None
    """Hash of the reference answer, to verify a match. A table's may be "" where a question has none."""
    prompts: Sequence[str] | None = None
    """Hash of the whole prompt, for the diagnostic `different_prompts` only."""
    texts: Sequence[str] | None = field(default=None, repr=False)
    """A short text of each question to show to a person (see `shown`)."""
    documents: TextSource | None = field(default=None, repr=False)
    """The source of `inputs` and `texts`, None if they were given or have been read."""
    fields: Fields | None = field(default=None, repr=False)
    """Properties of each question by the SPECs of `ReadOptions.fields`, None if none was requested."""
    log: AnswerSource | None = field(default=None, repr=False)
    """The source of whole questions, targets and answers, None if it is unknown."""
    doubles: tuple[tuple[int, ...], ...] = ()
    """Rows of equal questions, two or more in each tuple: messages, choices, attachments and target are the same."""
    by_words: str = ""
    """SPEC of the clusters that join questions of the same words, "" if none is known."""

    def __post_init__(self) -> None:
        self._check()
        if self.inputs is not None or self.texts is not None:
            object.__setattr__(self, "documents", None)
        elif self.documents is not None:
            object.__delattr__(self, "inputs")
            object.__delattr__(self, "texts")

    def _check(self) -> None:
        """Refuse keys that are not unique, or a column without exactly one item per question.

        Raises:
            FaultyScoresError: says which.
        """
        n = len(self.keys)
        for name in ("inputs", "targets", "prompts", "texts"):
            column = getattr(self, name)
            if column is not None and len(column) != n:
                raise FaultyScoresError(f"{n} questions and {len(column)} {name}")
        if distinct_strings(self.keys) < n:
            twice = next(key for key, count in Counter(self.keys).items() if count > 1)
            raise FaultyScoresError(f"two questions have the key {twice[:80]!r}, but keys must be unique within a task")

    if not TYPE_CHECKING:  # it would hide misspelt names

        def __getattr__(self, name: str) -> Any:
            """Read `inputs` and `texts` from the log when one of them is first used."""
            if name not in ("inputs", "texts"):
                raise AttributeError(name)
            if (documents := self.documents) is not None:
                inputs, texts = documents.read()
                # the order in which another thread may look
                for field_, value in (("inputs", inputs), ("texts", texts), ("documents", None)):
                    object.__setattr__(self, field_, value)
            return object.__getattribute__(self, name)

    def __getstate__(self) -> dict[str, Any]:
        unread = () if self.documents is None else ("inputs", "texts")
        return {name: getattr(self, name) for name in self.__slots__ if name not in unread}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def read_inputs(self) -> Sequence[str] | None:
        """The texts of the questions (`inputs`) if they are in memory, None if they would have to be read."""
        return None if self.documents is not None else self.inputs

    def doubled(self, rows: Sequence[int] | IntArray) -> tuple[tuple[int, ...], ...]:
        """Return groups of questions with equal input among these rows, as positions within `rows`."""
        place = {int(row): i for i, row in enumerate(rows)}
        left = (tuple(place[row] for row in same if row in place) for same in self.doubles)
        return tuple(same for same in left if len(same) > 1)

    def at(self, rows: Sequence[int]) -> Questions:
        """Return the questions in these rows with only their keys and the hashes of text and target."""
        columns = (picked(column, rows) for column in (self.inputs, self.targets))
        return Questions(picked(self.keys, rows), self.kind, *columns)

    def shown(self) -> Sequence[str] | None:
        """Return the question texts for display, None if there are none or the log cannot be read.

        No number in a result depends on them.
        """
        try:
            return self.texts
        except InputError:
            return None


_SHOWN = 80
"""Characters of a question that are shown."""


def excerpt(text: str) -> str:
    """Return the beginning of a text in one line, cut with "…"."""
    short = text[: _SHOWN + 1]
    if not (short.isprintable() and "  " not in short and short == short.strip()):
        short = " ".join(text[: 2 * _SHOWN].split())
    return short if len(short) <= _SHOWN else short[: _SHOWN - 1] + "…"


def content_hash(text: str) -> str:
    """Return a hash of a question's text. White space around its lines and Unicode form make no difference."""
    if not text.isascii():
        import unicodedata

        text = unicodedata.normalize("NFC", text)
    lines = text.strip().splitlines()
    plain = lines[0] if len(lines) == 1 else "\n".join(map(str.strip, lines))
    return blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def text_hash(text: str) -> int:
    """Return a 64-bit hash of an answer's text. 0 is for a blank text."""
    if not text.strip():
        return 0
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1


def occurrences(keys: Sequence[str]) -> tuple[str, ...]:
    """Make repeated keys unique: the n-th occurrence (n > 1) of `key` becomes `key#n`.

    A key that is itself like a numbered one keeps its text if it came first.
    """
    count, taken, out = Counter[str](), set(keys), []
    for key in keys:
        n, name = count[key] + 1, key
        while n > 1 and (name := f"{key}#{n}") in taken:
            n += 1
        count[key] = n
        taken.add(name)
        out.append(name)
    return tuple(out)


_DIGITS = 8
"""Bytes by which packed hashes are first told apart."""


class Hashes(Sequence[str]):
    """Hexadecimal hashes, all as wide as the first, two digits to a byte. Any other string is kept separately.

    Equal to any with the same strings and to any tuple of them, as a tuple would be.
    """

    __slots__ = ("_data", "_odd", "_width")

    def __init__(self) -> None:
        self._width = 0
        self._data = bytearray()
        self._odd: dict[int, str] = {}

    def append(self, text: str) -> None:
        self.extend((text,))

    def extend(self, texts: Sequence[str]) -> None:
        if texts:
            self._width = self._width or max(1, len(texts[0]) // 2)
        data = _unhexed("".join(texts)) if set(map(len, texts)) <= {2 * self._width} else None
        if data is None and len(texts) == 1:
            self._odd[len(self)], data = texts[0], bytes(self._width)
        if data is not None:
            self._data += data
            return
        for text in texts:
            self.append(text)

    def replace(self, index: int, text: str) -> None:
        """Replace the string at this index by another string, in place."""
        self._odd[index] = text

    def odd(self) -> Iterable[str]:
        """Return the strings that could not be packed as hashes of the common width."""
        return self._odd.values()

    def distinct(self) -> int:
        """Return the number of different strings in the list."""

        hashes = np.frombuffer(self._data, f"V{self._width or 1}")
        return len(np.unique(np.delete(hashes, list(self._odd)))) + len(set(self._odd.values()))

    def maybe_repeated(self) -> Sequence[int]:
        """Return the row numbers of strings that may occur twice, by their first digits. May name too many."""

        if self._width < _DIGITS:
            return range(len(self))
        first = np.frombuffer(self._data, np.uint8).reshape(-1, self._width)[:, :_DIGITS]
        _, which, times = np.unique(first.copy().view(np.uint64).ravel(), return_inverse=True, return_counts=True)
        several = times[which] > 1
        several[list(self._odd)] = True
        rows: list[int] = np.flatnonzero(several).tolist()
        return rows

    def _string(self, index: int) -> str:
        if index in self._odd:
            return self._odd[index]
        return self._data[index * self._width : (index + 1) * self._width].hex()

    def __len__(self) -> int:
        return len(self._data) // (self._width or 1)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(map(self._string, range(*index.indices(len(self)))))
        return self._string(range(len(self))[index])

    def __iter__(self) -> Iterator[str]:
        return map(self._string, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Hashes, tuple)):
            return NotImplemented
        if isinstance(other, Hashes) and (self._data, self._odd) == (other._data, other._odd):
            return self._width == other._width
        return len(self) == len(other) and all(map(eq, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))


def maybe_repeated(strings: Sequence[str]) -> Sequence[int]:
    """Return the row numbers of strings that may occur twice: all rows, unless they are packed hashes."""
    return strings.maybe_repeated() if isinstance(strings, Hashes) else range(len(strings))


def distinct_strings(strings: Sequence[str]) -> int:
    """Return the number of different strings in a list, which may be packed hashes."""
    return strings.distinct() if isinstance(strings, Hashes) else len(set(strings))


def _unhexed(text: str) -> bytes | None:
    """Convert a lower-case hexadecimal text to bytes. None if the text is anything else."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        return None
    return data if data.hex() == text else None


def by_name(key: str) -> tuple[int, str]:
    """Return a sort key for question names: shorter names first, so that "9" comes before "10"."""
    return len(key), key
