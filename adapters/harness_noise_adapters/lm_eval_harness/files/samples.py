"""One samples file in columns: questions, scores and clusters; texts are read when they are first asked for.

Only the fields that are needed are decoded, one line at a time. The texts of the questions are read in a
second pass when somebody first asks for them (`Documents`). What is kept of a question is packed: its hashes
and its scores.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness_noise.arrays import HashArray
from harness_noise.data.clusters import FieldReader, MissingFieldError, OuterFields
from harness_noise.data.questions import Hashes, QuestionText, content_hash, excerpt, occurrences, text_hash
from harness_noise.errors import FinalError, InputError

from ...records import loads
from ..scoring.choices import BRIER, Log, brier_score
from ..scoring.gather import Column, Key
from ..scoring.rescore import requests_of
from .results import CLUSTER, SCORES
from .scan import Row, Scan, Wanted, changed, may_be_rounded, metrics_of, stamp, whole_row

QUESTION = (
    *("question", "problem", "query", "input", "prompt", "instruction"),
    *("goal", "ctx", "sentence", "text", "premise"),
)
"""Fields that hold a question, the most telling first."""
CONTEXT = ("passage", "context", "article", "story", "paragraph", "body", "support")
"""Fields that hold what a question is about."""


@dataclass(frozen=True, slots=True)
class _ReadAgain:
    """A samples file that is read again when its texts are asked for."""

    path: Path
    wanted: Wanted
    """How the file was read, without the SPECs, which need not be picklable."""
    stamp: tuple[float, float]
    """The file's, see `stamp`."""

    def scan(self) -> Scan:
        """Another pass.

        Raises:
            InputError: the file is not the one any more that was read.
        """
        if stamp(self.path) != self.stamp:
            raise changed(self.path)
        return Scan(self.path, self.wanted)


@dataclass(frozen=True, slots=True)
class Documents(_ReadAgain):
    """The texts of a file's questions, in a pass of their own: most uses of a run do without them."""

    hashes: Sequence[str]
    """The documents' own, numbered where one comes again."""
    distinct: int | None
    """How many documents their texts have to tell apart, if they are to be matched by text; None: never."""

    def read(self) -> tuple[Hashes | None, tuple[str, ...]]:
        """The hash of each question's text, None where they do not tell the documents apart; and excerpts.

        Raises:
            InputError: the file is not the one any more that was read.
        """
        inputs: Hashes | None = Hashes()
        texts: list[str] = []
        scan = Scan(self.path, self.wanted)
        if stamp(self.path) == self.stamp:
            for _, _, row, _, _, new in scan:
                if new:
                    text, shown = _texts(_doc(row))
                    inputs = _and(inputs, None if text is None else content_hash(text))
                    texts.append(shown)
        if scan.index.unique_keys() != self.hashes:
            raise InputError(
                f"{self.path}: the file was changed, moved or deleted after its scores were read, or this process does "
                "not see it, and now the texts of its questions are needed to match them; read the run again"
            )
        return (None if inputs is None or inputs.distinct() != self.distinct else inputs), tuple(texts)


def _doc(row: Row) -> Mapping[str, Any]:
    """The document of a row, as an object whatever it is."""
    doc = row.get("doc")
    return doc if type(doc) is dict else {"doc": doc}


def _and(hashes: Hashes | None, value: Any) -> Hashes | None:
    """The hashes with one more; None as soon as one is missing."""
    if hashes is None or type(value) is not str:
        return None
    hashes.append(value)
    return hashes


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
    context = _first(doc, CONTEXT)
    shown = (_first(doc, doc) or "") if question is None else question
    return question if question is None or context is None else f"{context}\n{question}", excerpt(shown)


def _first(doc: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """The first of the fields that is a text."""
    for name in names:
        value = doc.get(name)
        if type(value) is str and value and not value.isspace():
            return value
    return None


class SamplesLog(_ReadAgain):
    """Whole questions and answers, read when asked for; see `harness_noise.data.questions.AnswerSource`."""

    __slots__ = ()

    def read(self, rows: Sequence[int], scorer: str) -> list[QuestionText]:
        """What is told of these questions, by their place; nothing of one that the file has lost."""
        asked = set(rows)
        told: dict[int, QuestionText] = {}
        for number, line, _, document, name, _ in self.scan():
            if document in asked and (name == scorer or document not in told):
                told[document] = _told(whole_row(line, json.loads, self.path, number))
        return [told.get(row, QuestionText()) for row in rows]

    def hashes(self, n: int, K: int) -> HashArray:
        """(n, K) hashes of what was generated, 0 where that is no text; a pass of its own."""
        out = np.zeros((n, K), dtype=np.uint64)
        for number, line, _, document, _, new in self.scan():
            resps = whole_row(line, loads, self.path, number).get("resps") if new else None
            if isinstance(resps, list) and len(resps) == 1 and isinstance(resps[0], list):
                texts = [text_hash(answer) if isinstance(answer, str) else 0 for answer in resps[0][:K]]
                out[document, : len(texts)] = texts
        return out


def _told(row: Row) -> QuestionText:
    doc = _doc(row)
    target = row.get("target")
    return QuestionText(
        text=question_text(doc) or _first(doc, doc),
        target=None if target is None else target if isinstance(target, str) else json.dumps(target),
        answers=tuple(_answer_texts(row)),
    )


def _answer_texts(row: Row) -> list[str]:
    """Each repeat's answer: what was generated, or the choice that was likeliest."""
    resps = row.get("resps")
    if not isinstance(resps, list) or not resps or not all(isinstance(answers, list) for answers in resps):
        return []
    if isinstance(resps[0][0] if resps[0] else None, str):
        return [str(answer) for answer in resps[0]]
    texts = []
    for repeat in zip(*resps, strict=False):
        likely = [_loglikelihood(answer) for answer in repeat]
        best = max(range(len(likely)), key=lambda i: likely[i])
        choice = _choice_text(row.get("arguments"), best) if len(likely) > 1 else None
        texts.append(choice if choice is not None else json.dumps(repeat[0]))
    return texts


def _loglikelihood(answer: Any) -> float:
    """The log-likelihood of [log-likelihood, greedy]; older files have them as texts."""
    try:
        return float(answer[0] if isinstance(answer, (list, tuple)) else answer)
    except (TypeError, ValueError, IndexError):
        return float("-inf")


def _choice_text(arguments: Any, i: int) -> str | None:
    """The continuation of the i-th request."""
    try:
        _, text, *_ = requests_of(arguments)[i]
    except (TypeError, ValueError, IndexError):
        return None
    return text.strip() if isinstance(text, str) else None


class Samples:
    """A samples file in columns, to which the rows are added one by one; per-question sequences have length n."""

    def __init__(self, path: Path, wanted: Wanted) -> None:
        self.path, self.wanted, self.stamp = path, wanted, stamp(path)
        self.columns: dict[Key, Column] = {}
        """(metric, filter) → values."""
        self.logs: dict[str, Log] = {}
        """Filter → the choices of each question, where they are wanted."""
        self.answers = 0
        """The most answers to a question, K: as many as the first one has, or as scores were logged."""
        self.scored = False
        """Whether the rows carry their scores per repeat."""
        self.keys: Sequence[str] = ()
        self.kind = "doc_hash"
        self.doc_ids = array("q")
        self.targets: Hashes | None = Hashes()
        self.prompts: Hashes | None = Hashes()
        self.distinct: int | None = None
        """How many documents their texts have to tell apart, if they are to be matched by text; None: never."""
        self.hashes: Sequence[str] = ()
        """The documents' own, numbered where one comes again."""
        self.clusters: tuple[str, ...] | None = None
        """By the SPEC; else those that the rows carry."""
        self.unlabelled = 0
        """Questions without a cluster though others have one."""
        self.outer = OuterFields()
        """Fields that contain the clusters that the user named."""
        self.fields = FieldReader(wanted.fields, wanted.task) if wanted.fields else None
        """What is known of the questions, where fields of them are wanted."""
        self._named: list[str] = []
        """By the field that the user chose."""
        self._labels: list[str | None] = []
        """Cluster labels; empty as long as no question has one."""

    def add_scores(self, row: Row, document: int, scorer: str) -> None:
        """The scores of one row."""
        if self.wanted.brier and BRIER in row:
            row[BRIER] = brier_score(row, self.wanted.doubled)
        repeats = row.get(SCORES)
        if type(repeats) is dict:
            self.scored = True
        else:
            repeats = {}
        for metric in dict.fromkeys((*metrics_of(row), *repeats)):
            column = self.columns.get((metric, scorer))
            if column is None:
                column = self.columns[metric, scorer] = Column(raw=[] if metric in self.wanted.raw else None)
            several = repeats.get(metric)
            column.add(document, row.get(metric), several if type(several) is list else ())
            self.answers = max(self.answers, column.counts[-1])

    def add_choices(self, number: int, line: bytes, row: Row, document: int, scorer: str) -> None:
        """The choices of one row."""
        log = self.logs.setdefault(scorer, Log(self.wanted.doubled))
        if may_be_rounded(row.get("target")):
            row = whole_row(line, json.loads, self.path, number)
        arguments = row.get("arguments")
        if log.by_text and arguments is None:
            arguments = whole_row(line, loads, self.path, number).get("arguments")
        log.add(document, row, arguments)

    def add_question(self, number: int, row: Row) -> None:
        """One new question, by the number of its line."""
        n, doc_id = len(self.doc_ids), row.get("doc_id")
        self.targets = _and(self.targets, row.get("target_hash"))
        self.prompts = _and(self.prompts, row.get("prompt_hash"))
        if self._labels or self.wanted.cluster is not None or CLUSTER in row:
            self._labels += [None] * (n - len(self._labels))
            self._labels.append(self._cluster(number, row))
        if self.wanted.key is not None:
            self._named.append(_label(self.wanted.key, _doc(row), f"{self.path}, line {number}: question"))
        if self.fields is not None:
            self.fields.add(_doc(row))
        self.doc_ids.append(doc_id if isinstance(doc_id, int) and abs(doc_id) < 2**62 else n)

    def _cluster(self, number: int, row: Row) -> str | None:
        if self.wanted.cluster is None:
            label = None if CLUSTER in metrics_of(row) else row.get(CLUSTER)
        else:
            label = _label(self.wanted.cluster, _doc(row), f"{self.path}, line {number}: cluster")
            self.outer.add(str(len(self.doc_ids)), label, _doc(row))
        return None if label is None else sys.intern(str(label))

    def name_questions(self, scan: Scan) -> None:
        """Say which questions they are, and their clusters, once all rows are there."""
        n = len(self.doc_ids)
        self.distinct = scan.index.distinct()
        self.keys = self.hashes = scan.index.unique_keys()
        if self.wanted.key is not None:
            self.kind, self.keys, self.targets, self.distinct = "question", occurrences(self._named), None, None
        elif scan.media and self.targets is not None:
            named = [f"{doc_id}/{target}" for doc_id, target in zip(self.doc_ids, self.targets, strict=True)]
            self.kind, self.keys, self.distinct = "doc_id", occurrences(named), len(set(named))
        labels = tuple(label for label in self._labels if label is not None)
        self.clusters = labels if len(labels) == n else None
        self.unlabelled = n - len(labels) if labels else 0

    @property
    def again(self) -> tuple[Path, Wanted, tuple[float, float]]:
        """What a further pass needs to know, without the SPECs, which need not be picklable."""
        return self.path, Wanted(self.wanted.task, self.wanted.filters, self.wanted.effective), self.stamp

    @property
    def documents(self) -> Documents:
        """The texts of the questions."""
        return Documents(*self.again, self.hashes, self.distinct)


def _label(label: Callable[[Mapping[str, Any]], str], doc: Mapping[str, Any], where: str) -> str:
    try:
        return label(doc)
    except MissingFieldError as error:
        fields = ", ".join(error.fields) or "(none)"
        raise FinalError(f"{where} field {error.spec!r} is not in the document; it has {fields}") from None


def _answer_count(row: Row) -> int:
    """How many answers a row holds for its question; padding can only lengthen the last."""
    resps = row.get("resps")
    lengths = [len(answers) for answers in resps if isinstance(answers, list)] if isinstance(resps, list) else []
    return max(1, min(lengths, default=1))


def read_samples(path: Path, wanted: Wanted) -> Samples:
    """Read a samples file.

    Raises:
        InputError: the file is empty, damaged or still being written, or a document lacks the field of a SPEC.
    """
    samples, scan = Samples(path, wanted), Scan(path, wanted)
    for number, line, row, document, scorer, new in scan:
        if not samples.answers:
            K = _answer_count(whole_row(line, loads, path, number))
            samples.answers = min(K, wanted.repeats or K)
        if wanted.choices:
            samples.add_choices(number, line, row, document, scorer)
        samples.add_scores(row, document, scorer)
        if new:
            samples.add_question(number, row)
    if not samples.answers:
        raise InputError(f"{path}: the file is empty; the run may have stopped before it wrote its samples")
    samples.name_questions(scan)
    return samples
