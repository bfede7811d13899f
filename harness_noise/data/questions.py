"""The questions of a task: their keys, packed where they are hashes, and their texts where somebody asks for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import eq
from typing import TYPE_CHECKING, Any, Protocol

from ..arrays import picked
from ..errors import FaultyScoresError, InputError
from .clusters import Fields

CONTENT_KEYS = frozenset({"doc_hash"})
"""Kinds of keys that are hashes of the whole question: where they agree there is nothing to verify."""


class TextSource(Protocol):
    """Where the texts of a run's questions can be read; it can be pickled."""

    def read(self) -> tuple[Sequence[str] | None, Sequence[str] | None]:
        """`inputs` and `texts` of the `Questions`.

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


class AnswerSource(Protocol):
    """Where questions, targets and answers can be read again; it can be pickled."""

    def read(self, rows: Sequence[int], scorer: str) -> Sequence[QuestionText]:
        """Texts of the questions in these rows of the `Questions`, in this order.

        Raises:
            InputError: it cannot be read, or is no longer what the run was read from.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Questions:
    """The questions of one task as one run saw them; shared by all metrics of that task.

    All sequences have length n, are never changed, and equal a tuple of the same strings; large ones
    may be packed (`packed`). `keys` are unique within a task. Where there are `documents`, `inputs` and
    `texts` are read when they are first asked for, which few uses do, and asking may raise an InputError.
    """

    keys: Sequence[str]
    """What pairs this question with the same question in another run."""
    kind: str = "question"
    """What the keys are: "doc_hash", "sample id", "question", … . Two runs whose keys are of one
    kind are matched by key."""
    inputs: Sequence[str] | None = field(default=None, repr=False)
    """Hash of the question's text (see `content_hash`): verifies a match by id, and matches runs of
    different harnesses."""
    targets: Sequence[str] | None = None
    """Hash of the reference answer, to verify a match."""
    prompts: Sequence[str] | None = None
    """Hash of the whole prompt, for the diagnostic `different_prompts` only."""
    texts: Sequence[str] | None = field(default=None, repr=False)
    """A short text to show to a person; see `shown`."""
    documents: TextSource | None = field(default=None, repr=False)
    """Where to read `inputs` and `texts`; None if they were given or have been read."""
    fields: Fields | None = field(default=None, repr=False)
    """Properties of each question by the SPECs of `ReadOptions.fields`; None if none was requested."""
    log: AnswerSource | None = field(default=None, repr=False)
    """Where whole questions, targets and answers can be read; None where that is not known."""

    def __post_init__(self) -> None:
        self._check()
        if self.inputs is not None or self.texts is not None:
            object.__setattr__(self, "documents", None)
        elif self.documents is not None:
            object.__delattr__(self, "inputs")
            object.__delattr__(self, "texts")

    def _check(self) -> None:
        """Keys are unique, and every sequence has one item for each.

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
            raise FaultyScoresError(f"two questions have the key {twice[:80]!r}; keys must be unique within a task")

    if not TYPE_CHECKING:  # it would hide misspelt names

        def __getattr__(self, name: str) -> Any:
            """What has not been read yet."""
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

    def at(self, rows: Sequence[int]) -> Questions:
        """Some of the questions, by their numbers: their keys, and the hashes that verify a match."""
        columns = (picked(column, rows) for column in (self.inputs, self.targets))
        return Questions(picked(self.keys, rows), self.kind, *columns)

    def shown(self) -> Sequence[str] | None:
        """`texts`, or None where they can no longer be read: no result depends on them."""
        try:
            return self.texts
        except InputError:
            return None


_SHOWN = 80
"""Characters of a question that are shown."""


def excerpt(text: str) -> str:
    """The beginning of a question, in one line, for `Questions.texts`."""
    short = text[: _SHOWN + 1]
    if not (short.isprintable() and "  " not in short and short == short.strip()):
        short = " ".join(text[: 2 * _SHOWN].split())
    return short if len(short) <= _SHOWN else short[: _SHOWN - 1] + "…"


def content_hash(text: str) -> str:
    """Hash of a question's text that does not depend on white space at line ends or Unicode form."""
    if not text.isascii():
        import unicodedata

        text = unicodedata.normalize("NFC", text)
    lines = text.strip().splitlines()
    plain = lines[0] if len(lines) == 1 else "\n".join(map(str.strip, lines))
    return blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def text_hash(text: str) -> int:
    """A hash of 64 bits, equal for equal texts; 0 for a text without a word, which is no answer."""
    if not text.strip():
        return 0
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1


def occurrences(keys: Sequence[str]) -> tuple[str, ...]:
    """Make repeated keys unique: the n-th occurrence (n > 1) of `key` becomes `key#n`.

    A key that itself looks like a numbered one keeps its text if it came first.
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


class Hashes(Sequence[str]):
    """Hexadecimal hashes, all as wide as the first, two digits to a byte; any other string is kept beside them.

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
        """Put another string in the place of one."""
        self._odd[index] = text

    def odd(self) -> Iterable[str]:
        """The texts that are not packed."""
        return self._odd.values()

    def distinct(self) -> int:
        """How many different strings there are."""
        import numpy as np

        hashes = np.frombuffer(self._data, f"V{self._width or 1}")
        return len(np.unique(np.delete(hashes, list(self._odd)))) + len(set(self._odd.values()))

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


def distinct_strings(strings: Sequence[str]) -> int:
    """How many different strings there are, without unpacking packed ones."""
    return strings.distinct() if isinstance(strings, Hashes) else len(set(strings))


def _unhexed(text: str) -> bytes | None:
    """The bytes that a text of lower-case hexadecimal digits stands for; None for any other."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        return None
    return data if data.hex() == text else None
