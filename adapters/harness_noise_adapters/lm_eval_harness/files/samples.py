"""One samples file in columns: questions, scores and clusters. Texts are read when they are first asked for.

Only the fields that are needed are decoded, one line at a time. A second pass reads the texts of the questions on the
first request (`Documents`). What is kept of a question is packed: its hashes and its scores.
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
from harness_noise.data.clusters import FieldReader, MissingFieldError, OuterFields, all_or_none, name_or_none
from harness_noise.data.doubled import find_doubles
from harness_noise.data.questions import Hashes, QuestionText, content_hash, excerpt, occurrences, text_hash
from harness_noise.errors import FinalError, InputError

from ...records import uncollected
from ..scoring.choices import BRIER, Log, brier_score
from ..scoring.gather import Key, Scored
from ..scoring.rescore import requests_of
from .results import CLUSTER, SCORES
from .scan import Row, Sample, Scan, Wanted, changed, exactly, may_be_rounded, metrics_of, stamp, unread, whole_row

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
    """The options of the first reading, without the SPECs, which need not be picklable."""
    stamp: tuple[float, float]
    """The file's, see `stamp`."""

    def scan(self) -> Scan:
        """Start another pass over the samples file. Refuse one that has changed since.

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
    """The number of documents that their texts must distinguish to be matched by text, None if they never are."""

    def read(self) -> tuple[Hashes | None, tuple[str, ...]]:
        """Read (text hashes, excerpts) of all questions. Hashes: None unless one per document. Refuse a changed file.

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
                "not see it, and now the texts of its questions are needed to match them. Read the run again"
            )
        return (None if inputs is None or inputs.distinct() != self.distinct else inputs), tuple(texts)


def _doc(row: Row) -> Mapping[str, Any]:
    """Return a samples row's document as a mapping. Anything else becomes {"doc": it}."""
    doc = row.get("doc")
    return doc if type(doc) is dict else {"doc": doc}


def _and(hashes: Hashes | None, values: Sequence[Any]) -> Hashes | None:
    """Return packed hashes, these values appended in place. None if `hashes` is None or a value is not a text."""
    if hashes is None or not set(map(type, values)) <= {str}:
        return None
    hashes.extend(values)
    return hashes


def question_text(doc: Mapping[str, Any]) -> str | None:
    """Return a document's question, after its passage if it has one. None without a known field of a question.

    It is the question-like field (the first of QUESTION that is text), after its passage (the first of CONTEXT) if the
    document has one.
    """
    return _texts(doc)[0]


def _texts(doc: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return (passage and question, or None without a question, excerpt of the question or else of any text)."""
    question = _first_text(doc, QUESTION)
    context = _first_text(doc, CONTEXT)
    shown = (_first_text(doc, doc) or "") if question is None else question
    return question if question is None or context is None else f"{context}\n{question}", excerpt(shown)


def _first_text(doc: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """Return the first text among these fields of a document that is not blank, None if there is none."""
    for name in names:
        value = doc.get(name)
        if type(value) is str and value and not value.isspace():
            return value
    return None


class SamplesLog(_ReadAgain):
    """Whole questions and answers, read when asked for. See `harness_noise.data.questions.AnswerSource`."""

    __slots__ = ()

    def read(self, rows: Sequence[int], scorer: str) -> list[QuestionText]:
        """Read these rows' texts (filter `scorer`, else the first), empty if lost. Refuse a changed file."""
        wanted = set(rows)
        texts: dict[int, QuestionText] = {}
        for number, line, _, document, name, _ in self.scan():
            if document in wanted and (name == scorer or document not in texts):
                texts[document] = _told(whole_row(line, self.path, number, exactly))
        return [texts.get(row, QuestionText()) for row in rows]

    def hashes(self, n: int, K: int) -> HashArray:
        """Read (n, K) hashes of generated texts, 0 for none or for several requests. Refuse a changed file."""
        out = np.zeros((n, K), dtype=np.uint64)
        for number, line, _, document, _, new in self.scan():
            resps = whole_row(line, self.path, number).get("resps") if new else None
            if isinstance(resps, list) and len(resps) == 1 and isinstance(resps[0], list):
                texts = [text_hash(answer) if isinstance(answer, str) else 0 for answer in resps[0][:K]]
                out[document, : len(texts)] = texts
        return out

    def docs(self, rows: Sequence[int]) -> list[Mapping[str, Any]]:
        """Read the documents of the questions in these rows, {} if lost. Refuse a changed file."""
        found = {document: _doc(row) for _, _, row, document, _, new in self.scan() if new and document in set(rows)}
        return [found.get(row, {}) for row in rows]

    def inputs(self, rows: Sequence[int]) -> list[str]:
        """Return one hash of each row's requests and target as stored, "" if they are not. Refuse a changed file.

        "" of one whose requests were not kept.
        """
        wanted, found = set(rows), dict[int, str]()
        for number, line, _, document, _, new in self.scan():
            if new and document in wanted:
                row = whole_row(line, self.path, number)
                if asked := row.get("arguments"):
                    found[document] = content_hash(json.dumps([asked, row.get("target")], sort_keys=True))
                wanted.discard(document)
                if not wanted:
                    break
        return [found.get(row, "") for row in rows]


@dataclass(frozen=True, slots=True)
class GeneratedTexts(_ReadAgain):
    """All that was generated, to tell which answers are equal. See `harness_noise.data.questions.AnswerTexts`."""

    K: int
    """Columns of the scores. If one column scores several answers together, its text is all of theirs."""

    def hashes(self, rows: Sequence[int]) -> HashArray:
        """Read (m, K) hashes of generated texts (K = 1: all joined), 0 without K texts. Refuse a changed file."""
        out, place = np.zeros((len(rows), self.K), dtype=np.uint64), {row: i for i, row in enumerate(rows)}
        left = len(place)
        for number, line, _, document, _, new in self.scan():
            if not (new and document in place):
                continue
            resps = whole_row(line, self.path, number).get("resps")
            answers = resps[0] if isinstance(resps, list) and len(resps) == 1 else None
            texts = answers if isinstance(answers, list) and all(type(text) is str for text in answers) else []
            if self.K == 1 < len(texts):
                texts = ["\x1f".join(texts)]
            if len(texts) == self.K:
                out[place[document]] = list(map(text_hash, texts))
            left -= 1
            if not left:
                break
        return out

    def shared(self, first: Callable[[Sequence[str]], Sequence[str]]) -> GeneratedTexts:
        """Return the object itself: it holds no strings that runs could share."""
        return self


def _told(row: Row) -> QuestionText:
    doc = _doc(row)
    target = row.get("target")
    return QuestionText(
        text=question_text(doc) or _first_text(doc, doc),
        target=None if target is None else target if isinstance(target, str) else json.dumps(target),
        answers=tuple(_answer_texts(row)),
    )


def _answer_texts(row: Row) -> list[str]:
    """Return each repeat's answer as text: the generated one, or the likeliest choice (or JSON). [] if unreadable."""
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
    """Return the log-likelihood out of a pair [log-likelihood, greedy]. −∞ if unreadable.

    Older files have both as texts.
    """
    try:
        return float(answer[0] if isinstance(answer, (list, tuple)) else answer)
    except (TypeError, ValueError, IndexError):
        return float("-inf")


def _choice_text(arguments: Any, i: int) -> str | None:
    """Return the text of the i-th choice from a row's requests, None if unreadable."""
    try:
        _, text, *_ = requests_of(arguments)[i]
    except (TypeError, ValueError, IndexError):
        return None
    return text.strip() if isinstance(text, str) else None


class Samples:
    """A samples file in columns, to which the rows are added one by one. Per-question sequences have length n."""

    def __init__(self, path: Path, wanted: Wanted) -> None:
        self.path, self.wanted, self.stamp = path, wanted, stamp(path)
        self.columns: dict[Key, Scored] = {}
        """(metric, filter) → values."""
        self.logs: dict[str, Log] = {}
        """Filter → the choices of each question, where they are wanted."""
        self.answers = 0
        """The most answers to a question, K: as many as the first one has, or as scores were logged."""
        self.unread: dict[Key, tuple[int, int]] = {}
        """(metric, filter) → answers that score 0, and those of them that are empty or were not parsed.

        Empty if the file lacks the texts of answers."""
        self.scored = False
        """True if the rows have their scores per repeat."""
        self.keys: Sequence[str] = ()
        self.kind = "doc_hash"
        self.doc_ids = array("q")
        self.targets: Hashes | None = Hashes()
        self.prompts: Hashes | None = Hashes()
        self.distinct: int | None = None
        """The number of documents that their texts must distinguish to be matched by text, None if they never are."""
        self.hashes: Sequence[str] = ()
        """The documents' own, numbered where one comes again."""
        self.clusters: tuple[str, ...] | None = None
        """Clusters by the SPEC, else those in the rows."""
        self.unclustered = 0
        """Questions without a cluster though others have one."""
        self.outer = OuterFields()
        """Fields that contain the clusters that the user named."""
        self.fields = FieldReader(wanted.fields, wanted.task) if wanted.fields else None
        """Reader of the questions' fields, None if none are wanted."""
        self._named: list[str] = []
        """By the field that the user chose."""
        self._clustered: list[str | None] = []
        """Names of clusters, empty as long as no question has one."""

    def add_scores(self, samples: Sequence[Sample]) -> None:
        """Add rows' scores to `columns`, Brier scores computed again if wanted. Count answers that were not parsed."""
        for (scorer, *names), alike in groupby(samples, _measured):
            _, lines, rows, documents, _, _ = zip(*alike, strict=True)
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
                column.extend(documents, own := [row.get(metric) for row in rows], several)
                self.answers = max(self.answers, *column.counts[-len(rows) :])
                self._count_unread(
                    (metric, scorer), lines, rows, [x or (y,) for x, y in zip(several, own, strict=True)]
                )

    def _count_unread(
        self, key: Key, lines: Sequence[bytes], rows: Sequence[Row], scores: Sequence[Sequence[Any]]
    ) -> None:
        zeros, blank = self.unread.get(key, (0, 0))
        for line, row, of_row in zip(lines, rows, scores, strict=True):
            if 0 in of_row and (found := unread(line, row, len(of_row))):
                zeros += of_row.count(0)
                blank += True in found and sum(was for was, score in zip(found, of_row, strict=True) if score == 0)
        if zeros:
            self.unread[key] = zeros, blank

    def add_choices(self, sample: Sample) -> None:
        """Add one row's choices to the `Log` of its filter. Decode its line again if exact numbers or texts matter."""
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
        """Add the questions of rows that are the first of their document: hashes, clusters, fields."""
        n, rows = len(self.doc_ids), [sample[2] for sample in samples]
        self.targets = _and(self.targets, [row.get("target_hash") for row in rows])
        self.prompts = _and(self.prompts, [row.get("prompt_hash") for row in rows])
        ids = enumerate([row.get("doc_id") for row in rows], n)
        if self._clustered or self.wanted.cluster is not None or any(CLUSTER in row for row in rows):
            self._clustered += [None] * (n - len(self._clustered))
            self._clustered += self._clusters(n, samples)
        if self.wanted.key is not None:
            key = self.wanted.key
            self._named += [
                _name(key, _doc(row), f"{self.path}, line {number}: question") for number, _, row, *_ in samples
            ]
        if self.fields is not None:
            for row in rows:
                self.fields.add(_doc(row))
        self.doc_ids.extend([key if isinstance(key, int) and abs(key) < 2**62 else i for i, key in ids])

    def _clusters(self, first: int, samples: Sequence[Sample]) -> list[str | None]:
        """List each new question's cluster by the SPEC (refuse a missing field), else its row's, None without one."""
        name_of = self.wanted.cluster
        if name_of is None:
            carried = [None if CLUSTER in metrics_of(sample[2]) else sample[2].get(CLUSTER) for sample in samples]
            return [None if name_or_none(name) is None else sys.intern(str(name)) for name in carried]
        docs = [_doc(sample[2]) for sample in samples]
        try:
            clusters = list(map(name_of, docs))
        except MissingFieldError:  # of which document, and on which line
            clusters = [
                _name(name_of, doc, f"{self.path}, line {sample[0]}: cluster")
                for doc, sample in zip(docs, samples, strict=True)
            ]
        numbers = map(str, range(first, first + len(docs)))
        self.outer.add_all(numbers, clusters, map(str, docs[0]), lambda field: [doc.get(field) for doc in docs])
        return list(map(sys.intern, clusters))

    def name_questions(self, scan: Scan) -> None:
        """Set keys (doc_hash, user's field, for media doc_id/target, repeats numbered) and clusters after all rows."""
        self.distinct = scan.index.distinct()
        self.keys = self.hashes = scan.index.unique_keys()
        if self.wanted.key is not None:
            self.kind, self.keys, self.targets, self.distinct = "question", occurrences(self._named), None, None
        elif scan.media and self.targets is not None:
            named = [f"{doc_id}/{target}" for doc_id, target in zip(self.doc_ids, self.targets, strict=True)]
            self.kind, self.keys, self.distinct = "doc_id", occurrences(named), len(set(named))
        self.clusters, self.unclustered = all_or_none(self._clustered)

    @property
    def again(self) -> tuple[Path, Wanted, tuple[float, float]]:
        """(path, `Wanted` without SPECs, stamp): the arguments of a further pass over the file."""
        return self.path, Wanted(self.wanted.task, self.wanted.filters, self.wanted.effective), self.stamp

    @property
    def documents(self) -> Documents:
        """Source from which the texts of the questions can be read."""
        return Documents(*self.again, self.hashes, self.distinct)


def asked_twice(samples: Samples) -> dict[str, Any]:
    """Return `Questions` fields of equal documents: `doubles` (tuples of rows), `by_words` (a SPEC). {} if none.

    Documents of equal hashes are; others if all their requests and their target are the same, which a pass of its own
    tells of those with one prompt and one target.
    """
    n, found = len(samples.keys), tuple[tuple[int, ...], ...]()
    if samples.kind == "doc_hash" and samples.distinct is not None and samples.distinct < n:
        found = find_doubles([key.partition("#")[0] for key in samples.keys])
    columns = (samples.prompts, samples.targets)
    if not samples.wanted.media and None not in columns and len(columns[0] or ()) == n == len(columns[1] or ()):
        suspected = {row for same in find_doubles(*columns) for row in same} - {row for same in found for row in same}
        if suspected:
            found += _verified(samples, suspected)
    if not found:
        return {}
    (told,) = SamplesLog(*samples.again).docs([found[0][0]])
    return {"doubles": found, "by_words": _words_spec(told)}


def _verified(samples: Samples, suspected: set[int]) -> tuple[tuple[int, ...], ...]:
    """Return groups of those suspected rows whose requests and targets are equal in another pass over the file."""
    rows = sorted(suspected)
    docs = SamplesLog(*samples.again).inputs(rows)
    return tuple(tuple(rows[i] for i in same) for same in find_doubles(docs))


def _words_spec(doc: Mapping[str, Any]) -> str:
    """Return a SPEC of a document's question field, with its passage field if any. "" without a question field."""
    names = [next((name for name in fields if _first_text(doc, [name])), None) for fields in (CONTEXT, QUESTION)]
    if names[1] is None:
        return ""
    return names[1] if names[0] is None else f"{{{{{names[0]}}}}} {{{{{names[1]}}}}}"


def _measured(sample: Sample) -> tuple[Any, ...]:
    """Return (filter, metrics[, metrics with scores per repeat]) of a row, to group rows alike."""
    row, scorer = sample[2], sample[4]
    repeats = row.get(SCORES)
    return (scorer, metrics_of(row), list(repeats)) if type(repeats) is dict else (scorer, metrics_of(row))


def _name(name_of: Callable[[Mapping[str, Any]], str], doc: Mapping[str, Any], where: str) -> str:
    try:
        return name_of(doc)
    except MissingFieldError as error:
        fields = ", ".join(error.fields) or "(none)"
        raise FinalError(f"{where} field {error.spec!r} is not in the document. It has {fields}") from None


def _answer_count(row: Row) -> int:
    """Return a row's number of answers: the fewest to any of its requests, 1 if unreadable."""
    resps = row.get("resps")
    lengths = [len(answers) for answers in resps if isinstance(answers, list)] if isinstance(resps, list) else []
    return max(1, min(lengths, default=1))


@uncollected()
def read_samples(path: Path, wanted: Wanted) -> Samples:
    """Read a whole samples file: scores, questions and clusters. Refuse damaged or empty ones.

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
        raise InputError(f"{path}: the file is empty: the run may have stopped before it wrote its samples")
    samples.name_questions(scan)
    return samples
