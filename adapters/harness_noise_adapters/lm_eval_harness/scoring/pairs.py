"""F1 of tasks that log what was right and what was said, and aggregate with code of their own.

That code is in no file that may be run. There are few kinds of F1, though, and lm-eval's own value says
which one it was: the one that reproduces it to 1e-9. Where no value is known, only a task whose kind is known
by its name has one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from harness_noise.data.scores import CorpusScores
from harness_noise.stats.arrays import FloatArray

from .aggregates import Budget, NotPossibleError, corpus_scores, value_of
from .patching import close

METRICS = frozenset(("f1", "f1_score", "span_f1", "macro_f1", "f1_macro", "micro_f1", "f1_micro", "weighted_f1"))
"""Names under which such pairs are logged."""
KNOWN = {"masakhaner*": "span F1"}
"""Tasks whose kind of F1 is known without a value of lm-eval's."""

_TINY = 1e-13
"""What the CoNLL scripts add below each fraction."""
_PUNCTUATION = re.compile("[!-/:-@\\[\\]^-`{-~•]+")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_WIDE = re.compile(r"\s{3,}|\t")
_BLANK = re.compile(r"\s+")

Pair = Sequence[Any]


def scores(raw: Sequence[Sequence[Any]], budget: Budget, **fields: Any) -> tuple[CorpusScores, str]:
    """The F1 of n documents' pairs (K each, None where there is none), and which kind it is.

    Args:
        raw: as they were logged.
        budget: of the run.
        **fields: the fields of CorpusScores that say what was measured; `native` decides which kind it is.

    Raises:
        NotPossibleError: no kind is known to be the one.
    """
    first = [doc[0] for doc in raw if doc[0] is not None]
    if not first or not all(isinstance(item, (list, tuple)) and len(item) == 2 for item in first):
        raise NotPossibleError("its value on a question is neither one number nor a pair of what is right and was said")
    native = fields["native"]
    if native is None:
        kind = next((kind for pattern, kind in KNOWN.items() if fnmatchcase(fields["task"], pattern)), None)
        if kind is None:
            raise NotPossibleError(
                "it is made from all questions at once, and which F1 it is only lm-eval's own value tells: name the "
                "results file"
            )
    else:
        kind = _kind(first, native)
    if kind != "span F1":
        return corpus_scores(raw, KINDS[kind], budget, **fields), kind
    width = max(map(len, raw))
    stats = np.full((len(raw), width, 3), np.nan)
    for i, doc in enumerate(raw):
        for k, item in enumerate(doc):
            if item is not None:
                stats[i, k] = _spans_found(item)
    fields["n_missing"] = int(np.isnan(stats[:, :, 0]).sum())
    return CorpusScores(stats=stats, value=_f1, **fields), kind


def _kind(items: list[Any], native: float) -> str:
    for name, function in KINDS.items():
        value = value_of(function, items)
        if value is not None and any(close(scale * value, native) for scale in (1.0, 100.0)):
            if not close(value, native):
                raise NotPossibleError(f"lm-eval's own value is the {name} in percent, by code of the task's own")
            return name
    raise NotPossibleError(f"it is aggregated by code of the task's own, which is none of {', '.join(KINDS)}")


def _f1(sums: FloatArray) -> FloatArray:
    """From (…, 3) true positives, false positives and false negatives."""
    right, wrong, missed = sums[..., 0], sums[..., 1], sums[..., 2]
    precision, recall = right / (right + wrong + _TINY), right / (right + missed + _TINY)
    return np.asarray(2 * precision * recall / (precision + recall + _TINY), dtype=np.float64)


def _span_f1(items: list[Any]) -> float:
    return float(_f1(np.sum([_spans_found(item) for item in items], axis=0)))


def _spans_found(pair: Pair) -> tuple[int, int, int]:
    """True positives, false positives and false negatives among the named entities of one text."""
    gold, predicted = (Counter(_spans(item)) for item in pair)
    right = (gold & predicted).total()
    return right, predicted.total() - right, gold.total() - right


def _spans(text: Any) -> Iterator[tuple[str, str]]:
    """(tag, entity) of a text such as "PER: David $ LOC: New York", normalised as for SQuAD."""
    if isinstance(text, list):
        text = " ".join(item.strip() for item in text)
    for part in text.split("$"):
        for sentence in part.strip().split(". "):
            for item in sentence.split(", "):
                found = item.strip().split(": ")
                if len(found) == 2:
                    yield _plain(found[0].strip()), _plain(found[1].strip())


def _plain(text: str) -> str:
    text = _ARTICLE.sub(" ", _PUNCTUATION.sub(" ", text))
    return _BLANK.sub(" ", _WIDE.sub("", text)).lower()


def _counts(items: list[Any]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(C,) right, predicted and gold answers of each class; a question may have one class or several."""
    right, predicted, gold = Counter[Any](), Counter[Any](), Counter[Any]()
    for pair in items:
        ours, theirs = (set(map(str, item)) if isinstance(item, (list, tuple)) else {str(item)} for item in pair)
        gold.update(ours)
        predicted.update(theirs)
        right.update(ours & theirs)
    classes = sorted({*gold, *predicted})
    a, b, c = (np.array([count[name] for name in classes], dtype=np.float64) for count in (right, predicted, gold))
    return a, b, c


def _each(items: list[Any]) -> tuple[FloatArray, FloatArray]:
    """(C,) the F1 of each class, 0 where it is 0/0, and its share of the gold answers."""
    right, predicted, gold = _counts(items)
    if not gold.sum():
        return np.zeros(1), np.ones(1)
    return 2 * right / np.maximum(predicted + gold, 1), gold / gold.sum()


def _macro(items: list[Any]) -> float:
    return float(_each(items)[0].mean())


def _weighted(items: list[Any]) -> float:
    f1, share = _each(items)
    return math.fsum(f1 * share)


def _micro(items: list[Any]) -> float:
    right, predicted, gold = (float(part.sum()) for part in _counts(items))
    return 2 * right / (predicted + gold) if predicted + gold else 0.0


KINDS: dict[str, Callable[[list[Any]], float]] = {
    "span F1": _span_f1,
    "macro F1": _macro,
    "weighted F1": _weighted,
    "micro F1": _micro,
}
"""Name → the F1 of a list of pairs."""
