"""The documents of a samples file, read again where somebody asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_noise.data.questions import Hashes, content_hash, excerpt
from harness_noise.errors import InputError

from .lines import _CONTEXT, CONTEXT, QUESTION, Row, stamp
from .wanted import Scan, Wanted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Documents:
    """The texts of a file's questions, in a pass of their own: most uses of a run do without them."""

    path: Path
    wanted: Wanted
    """As the file was read, without the SPECs, which need not be picklable."""
    stamp: tuple[float, float]
    """The file's, see `stamp`."""
    hashes: Sequence[str]
    """The documents' own, numbered where one comes again."""
    distinct: int | None
    """How many documents their texts have to tell apart, if they are to be matched by text; None: never."""

    def read(self) -> tuple[Hashes | None, tuple[str, ...]]:
        """The hash of each question's text, None where they do not tell the documents apart; and excerpts.

        Raises:
            InputError: the file is not the one any more that was read.
        """
        inputs, texts = _Complete(), list[str]()
        scan = Scan(self.path, self.wanted, documents=True)
        if stamp(self.path) == self.stamp:
            for _, _, row, _, _, new in scan:
                if new:
                    text, shown = _texts(_doc(row))
                    inputs.extend([None if text is None else content_hash(text)])
                    texts.append(shown)
        if scan.index.unique_keys() != self.hashes:
            raise InputError(
                f"{self.path}: the file was changed, moved or deleted after its scores were read, or this process does "
                "not see it, and now the texts of its questions are needed to match them; read the run again"
            )
        found = inputs.items
        return (None if found is None or found.distinct() != self.distinct else found), tuple(texts)


def _doc(row: Row) -> Mapping[str, Any]:
    """The document of a row, as an object whatever it is."""
    doc = row.get("doc")
    return doc if type(doc) is dict else {"doc": doc}


def _complete(items: Sequence[str | None] | None) -> tuple[str, ...] | None:
    """The items, if there are some and none is missing."""
    found = tuple(item for item in items or () if item is not None)
    return found if items is not None and len(found) == len(items) else None


class _Complete:
    """Hashes, as long as none is missing."""

    def __init__(self) -> None:
        self.items: Hashes | None = Hashes()

    def extend(self, items: Sequence[Any]) -> None:
        if not set(map(type, items)) <= {str}:
            self.items = None
        elif self.items is not None:
            self.items.extend(items)


def question_text(doc: Mapping[str, Any]) -> str | None:
    """The text that identifies a question to another harness: its question-like field (the first of
    QUESTION that is text), after its passage (the first of CONTEXT) where the document has one.

    It never comes from the prompt, which depends on the chat template and the few-shot examples. A
    document without such a field has none.
    """
    return _texts(doc)[0]


def _texts(doc: Mapping[str, Any]) -> tuple[str | None, str]:
    """The text that identifies a question, and a short one to show to a person."""
    question = _first(doc, QUESTION)
    context = None if _CONTEXT.isdisjoint(doc) else _first(doc, CONTEXT)
    shown = (_first(doc, doc) or "") if question is None else question
    return question if question is None or context is None else f"{context}\n{question}", excerpt(shown)


def _first(doc: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """The first of the fields that is a text."""
    for name in names:
        value = doc.get(name)
        if type(value) is str and value and not value.isspace():
            return value
    return None
