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
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np

from harness_noise.arrays import HashArray
from harness_noise.data.clusters import FieldReader, MissingFieldError, OuterFields
from harness_noise.data.questions import Hashes, QuestionText, content_hash, excerpt, occurrences, text_hash
from harness_noise.errors import FinalError, InputError

from ...records import uncollected
from ..scoring.choices import BRIER, Log, brier_score
from ..scoring.gather import Key, Scored
from ..scoring.rescore import requests_of
from .results import CLUSTER, SCORES
from .scan import Row, Sample, Scan, Wanted, changed, exactly, may_be_rounded, metrics_of, stamp, whole_row

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
                    inputs = _and(inputs, [None if text is None else content_hash(text)])
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


def _and(hashes: Hashes | None, values: Sequence[Any]) -> Hashes | None:
    """The hashes with some more; None as soon as one is missing."""
    if hashes is None or not set(map(type, values)) <= {str}:
        return None
    hashes.extend(values)
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
        wanted = set(rows)
        texts: dict[int, QuestionText] = {}
        for number, line, _, document, name, _ in self.scan():
            if document in wanted and (name == scorer or document not in texts):
                texts[document] = _told(whole_row(line, self.path, number, exactly))
        return [texts.get(row, QuestionText()) for row in rows]

    def hashes(self, n: int, K: int) -> HashArray:
        """(n, K) hashes of what was generated, 0 where that is no text; a pass of its own."""
        out = np.zeros((n, K), dtype=np.uint64)
        for number, line, _, document, _, new in self.scan():
            resps = whole_row(line, self.path, number).get("resps") if new else None
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
        self.columns: dict[Key, Scored] = {}
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

    def add_scores(self, samples: Sequence[Sample]) -> None:
        """The scores of some rows."""
        for (scorer, *names), alike in groupby(samples, _measured):
            _, _, rows, documents, _, _ = zip(*alike, strict=True)
            if self.wanted.brier and BRIER in names[0]:
                for row in rows:
                    row[BRIER] = brier_score(row, self.wanted.doubled)
            self.scored |= len(names) > 1
            for metric in dict.fromkeys(chain.from_iterable(names)):
                column = self.columns.get((metric, scorer))
                if column is None:
                    column = self.columns[metric, scorer] = Scored(raw=[] if metric in self.wanted.raw else None)
                several: list[Sequence[Any]] = [()] * len(rows)
                if len(names) > 1 and metric in names[1]:
                    several = [scores if type(scores := row[SCORES][metric]) is list else () for row in rows]
                column.extend(documents, [row.get(metric) for row in rows], several)
                self.answers = max(self.answers, *column.counts[-len(rows) :])

    def add_choices(self, sample: Sample) -> None:
        """The choices of one row."""
        number, line, row, document, scorer, _ = sample
        log = self.logs.get(scorer)
        if log is None:
            log = self.logs[scorer] = Log(self.wanted.doubled)
        if may_be_rounded(row.get("target")):
            row = whole_row(line, self.path, number, exactly)
        arguments = row.get("arguments")
        if arguments is None and log.by_text:
            arguments = whole_row(line, self.path, number).get("arguments")
        log.add(document, row, arguments)

    def add_questions(self, samples: Sequence[Sample]) -> None:
        """Questions that are new."""
        n, rows = len(self.doc_ids), [sample[2] for sample in samples]
        self.targets = _and(self.targets, [row.get("target_hash") for row in rows])
        self.prompts = _and(self.prompts, [row.get("prompt_hash") for row in rows])
        ids = enumerate([row.get("doc_id") for row in rows], n)
        if self._labels or self.wanted.cluster is not None or any(CLUSTER in row for row in rows):
            self._labels += [None] * (n - len(self._labels))
            self._labels += [self._cluster(i, sample[0], sample[2]) for i, sample in enumerate(samples, n)]
        if self.wanted.key is not None:
            key = self.wanted.key
            self._named += [
                _label(key, _doc(row), f"{self.path}, line {number}: question") for number, _, row, *_ in samples
            ]
        if self.fields is not None:
            for row in rows:
                self.fields.add(_doc(row))
        self.doc_ids.extend([key if isinstance(key, int) and abs(key) < 2**62 else i for i, key in ids])

    def _cluster(self, question: int, number: int, row: Row) -> str | None:
        if self.wanted.cluster is None:
            label = None if CLUSTER in metrics_of(row) else row.get(CLUSTER)
        else:
            label = _label(self.wanted.cluster, _doc(row), f"{self.path}, line {number}: cluster")
            self.outer.add(str(question), label, _doc(row))
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


def _measured(sample: Sample) -> tuple[Any, ...]:
    """The filter of a row, the names of its metrics, and of those with scores per repeat, where it has any."""
    row, scorer = sample[2], sample[4]
    repeats = row.get(SCORES)
    return (scorer, metrics_of(row), list(repeats)) if type(repeats) is dict else (scorer, metrics_of(row))


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


@uncollected()
def read_samples(path: Path, wanted: Wanted) -> Samples:
    """Read a samples file.

    Raises:
        InputError: the file is empty, damaged or still being written, or a document lacks the field of a SPEC.
    """
    samples, scan = Samples(path, wanted), Scan(path, wanted)
    for block in scan.blocks():
        if not samples.answers:
            number, line, *_ = block[0]
            K = _answer_count(whole_row(line, path, number))
            samples.answers = min(K, wanted.repeats or K)
        if wanted.choices:
            for sample in block:
                samples.add_choices(sample)
        samples.add_scores(block)
        if new := [sample for sample in block if sample[-1]]:
            samples.add_questions(new)
    if not samples.answers:
        raise InputError(f"{path}: the file is empty; the run may have stopped before it wrote its samples")
    samples.name_questions(scan)
    return samples
