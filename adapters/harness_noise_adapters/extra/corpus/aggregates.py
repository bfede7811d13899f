"""Metrics that lm-eval makes from all questions at once: bleu, chrf, ter, F1, MCC, perplexity, and tasks' own.

Each becomes a `CorpusScores` whose aggregation is the task's own. For lm-eval's registered ones it is
a function of sums over the questions (matched n-grams, a confusion matrix, log-likelihoods), which is
thousands of times faster to resample; that is used only if it gives what lm-eval's own function gives
on the answers at hand. Any other aggregation is called without each cluster, if it is quick enough.

Some tasks log what was right and what was said, and make an F1 of these pairs with code of their own, which
is in no file that may be run. There are few kinds of F1, though, and lm-eval's own value says which one it
was: the one that reproduces it to 1e-9. Without such a value, only a task whose kind is known by its name has one.
"""

from __future__ import annotations

import contextlib
import copy
import io
import math
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np

from harness_noise.arrays import FloatArray
from harness_noise.data.native_values import nearly_equal
from harness_noise.data.scores import CALLS, CorpusScores

from ...lm_eval_harness.scoring.not_means import REGISTERED
from ...lm_eval_harness.scoring.not_means import Function as Aggregation

Raw = Sequence[Sequence[Any]]
"""n documents of K values each, as the task's `process_results` gives them, None for a missing one."""

SECONDS = 60.0
"""The most time that resampling by aggregation functions may take in one run, for all its metrics together."""
_PATIENCE = 10.0
"""Seconds of one call after which an aggregation is not called again."""
_CLASSES = 16
"""The number of classes in a confusion matrix. It is fixed, so that the matrices of two runs can be compared."""


class NotPossibleError(Exception):
    """The error that gives the reason why a metric has no noise."""


@dataclass(slots=True)
class CallingTime:
    """The time that is left for calling aggregations, in seconds."""

    left: float = SECONDS

    def spend(self, call: float, K: int) -> None:
        """Subtract `call` seconds × K repeats × CALLS from the time left of the run. Refuse if it is not enough.

        Raises:
            NotPossibleError: there is not enough left.
        """
        cost = call * K * CALLS
        if cost > self.left:
            raise NotPossibleError(
                f"its aggregation takes {call:.2g} s a call, and {K * CALLS} calls would take too long "
                f"({self.left:.0f} s are left of {SECONDS:.0f} for this run)"
            )
        self.left -= cost


def registered(name: str) -> Aggregation:
    """Return lm-eval's own aggregation function of a name in `REGISTERED`. Refuse if it is not installed.

    Raises:
        NotPossibleError: lm-eval is not installed, or this one has no such aggregation.
    """
    try:
        from lm_eval.api import metrics
    except ImportError:
        raise NotPossibleError(
            f"it is aggregated by lm-eval's {name}, and lm-eval is not installed (pip install harness-noise[lm-eval])"
        ) from None
    function = getattr(metrics, REGISTERED[name], None)
    if not callable(function):
        raise NotPossibleError(f"it is aggregated by {name}, which the installed lm-eval does not have")
    return function  # type: ignore[no-any-return]


def corpus_scores(raw: Raw, aggregation: Aggregation, budget: CallingTime, **fields: Any) -> CorpusScores:
    """Return a metric over all questions (F1, BLEU, …) to be resampled. Refuse a slow one, or of rows' order.

    Args:
        raw: see `Raw`.
        aggregation: the task's own.
        budget: of the run.
        **fields: the fields of CorpusScores that say what was measured.

    Raises:
        NotPossibleError: with the reason.
    """
    K = max(map(len, raw))
    # the logged values are lm-eval's: a task's own code must not change them
    records = copy.deepcopy([[_none_for_nan(doc[k]) if k < len(doc) else None for k in range(K)] for doc in raw])
    first = [doc[0] for doc in records if doc[0] is not None]
    if not first:
        raise NotPossibleError("no question has a value")
    if any(_infinite(value) for doc in records for value in doc):
        raise NotPossibleError("a value is infinite")
    fields["n_missing"] = sum(value is None for doc, own in zip(records, raw, strict=True) for value in doc[: len(own)])
    quiet = _quietly(aggregation)
    expected, call = _timed(quiet, first)
    if not math.isfinite(expected):
        raise NotPossibleError("its aggregation is not a finite number")
    if (summed := _summed(aggregation, records, expected)) is not None:
        return CorpusScores(stats=summed[0], value=summed[1], **fields)
    if call > _PATIENCE:
        budget.spend(call, K)
    fields["of_rows"] = _kind_of_aggregation(aggregation)
    # the first call may have loaded a library; resamples have no order, so that the value must not hang on it
    again, call = _timed(quiet, [*first[1:], first[0]])
    if not nearly_equal(expected, again):
        twice = nearly_equal(expected, _timed(quiet, first)[0])
        raise NotPossibleError(_OF_ORDER if twice else "its aggregation does not give the same value twice")
    if call * K * CALLS > budget.left:  # a busy machine may have paused in the middle of a short call
        call = min(call, _timed(quiet, first)[1])
    budget.spend(call, K)
    return CorpusScores(records=tuple(map(tuple, records)), aggregate=quiet, **fields)


_OF_ORDER = "its aggregation gives another value if the questions are in another order"


def _kind_of_aggregation(aggregation: Aggregation) -> Literal["function", "order"] | None:
    """Return "order" for lm-eval's median, "function" for its others, None for a task's own. Refuse a false median.

    "function" says that the aggregation groups no rows.

    Of a task's own nothing is known.
    """
    name, module = (str(getattr(aggregation, attribute, "")) for attribute in ("__name__", "__module__"))
    if not module.startswith("lm_eval.api.metrics"):
        return None
    if name != "median":
        return "function"
    if aggregation([3.0, 1.0, 2.0]) != 2:  # before lm-eval 0.4.12 it takes the middle row of the file
        raise NotPossibleError(_OF_ORDER)
    return "order"


def _timed(aggregation: Aggregation, items: Sequence[Any]) -> tuple[float, float]:
    """Call an aggregation. Return its value and the seconds it took. Raise NotPossibleError on its ValueError."""
    start = time.perf_counter()
    try:
        value = aggregation(list(items))
    except ValueError as error:
        raise NotPossibleError(f"its aggregation cannot be computed again ({error})") from None
    return value, time.perf_counter() - start


def value_of(aggregation: Aggregation, items: Sequence[Any]) -> float | None:
    """Return the aggregation of the items that are not None, None if it fails."""
    try:
        return _quietly(aggregation)([value for value in items if value is not None])
    except ValueError:
        return None


def _none_for_nan(value: Any) -> Any:
    """Return a raw value unchanged, None for NaN."""
    return None if isinstance(value, (float, np.floating)) and math.isnan(value) else value


def _infinite(value: Any) -> bool:
    parts = value if isinstance(value, (list, tuple)) else (value,)
    return any(isinstance(part, (float, np.floating)) and math.isinf(part) for part in parts)


def _quietly(aggregation: Aggregation) -> Aggregation:
    """Return the aggregation wrapped: it gives a float, without warnings and prints, and any error as ValueError."""

    def call(items: list[Any]) -> float:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            try:
                return float(aggregation(items))
            except Exception as error:  # noqa: BLE001 - anybody's code
                raise ValueError(f"{type(error).__name__}: {error}") from None

    return call


# lm-eval's own aggregations, as functions of sums

Value = Callable[[FloatArray], FloatArray]
"""(…, S) sums over questions → (…) the metric."""
Rows = list[list[list[float] | None]]
"""Document → repeat → the S numbers that are summed."""


def _summed(aggregation: Aggregation, records: list[list[Any]], expected: float) -> tuple[FloatArray, Value] | None:
    """Return (n, K, S) statistics and the metric as a function of their sums. None if not known or not `expected`.

    None if it is not a known metric of lm-eval, or if the sums do not give `expected`.
    """
    name = getattr(aggregation, "__name__", "")
    if aggregation is not span_f1 and not str(getattr(aggregation, "__module__", "")).startswith("lm_eval.api.metrics"):
        return None
    try:
        if name in _SACREBLEU:
            rows, value = _sacrebleu(records, *_SACREBLEU[name])
        elif name in _SUMS:
            row, value = _SUMS[name]
            rows = [[None if answer is None else row(answer) for answer in doc] for doc in records]
        else:
            return None
        width = max(len(row) for doc in rows for row in doc if row is not None)
        empty = [math.nan] * width
        stats = np.array([[empty if row is None else row for row in doc] for doc in rows], dtype=np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            ours = float(value(np.nansum(stats[:, :1], axis=0))[0])
    except (TypeError, ValueError, AttributeError, AssertionError, KeyError, IndexError):
        return None
    return (stats, value) if nearly_equal(ours, expected) else None


def _pair(pair: Any) -> list[float]:
    return [float(pair[0]), float(pair[1])]


def _ratio(sums: FloatArray) -> FloatArray:
    return np.asarray(sums[..., 0] / sums[..., 1])


def _f1_row(pair: Any) -> list[float]:
    gold, predicted = (_class_of(value, 2) for value in pair)
    return [float(gold and predicted), float(gold), float(predicted)]


def _f1(sums: FloatArray) -> FloatArray:
    """Return (…,) F1 from (…, 3) sums: true positives, gold, predicted. 0 if there are none, as in sklearn."""
    below = sums[..., 1] + sums[..., 2]
    return np.where(below > 0, 2 * sums[..., 0] / np.where(below > 0, below, 1.0), 0.0)


def _mcc_row(pair: Any) -> list[float]:
    gold, predicted = (_class_of(value, _CLASSES) for value in pair)
    out = [0.0] * (2 + 2 * _CLASSES)
    out[0], out[1] = float(gold == predicted), 1.0
    out[2 + gold] = out[2 + _CLASSES + predicted] = 1.0
    return out


def _mcc(sums: FloatArray) -> FloatArray:
    """Return (…,) Matthews' correlations from (…, S) sums: right, n, gold and predicted by class. 0 for 0/0."""
    right, n = sums[..., 0], sums[..., 1]
    gold, predicted = sums[..., 2 : 2 + _CLASSES], sums[..., 2 + _CLASSES :]
    below = (n**2 - (gold**2).sum(axis=-1)) * (n**2 - (predicted**2).sum(axis=-1))
    above = right * n - (gold * predicted).sum(axis=-1)
    return np.where(below > 0, above / np.sqrt(np.where(below > 0, below, 1.0)), 0.0)


def _class_of(value: Any, count: int) -> int:
    if not isinstance(value, (int, np.integer, np.bool_)) or not 0 <= value < count:
        raise ValueError(f"{value!r} is not a class from 0 to {count - 1}")
    return int(value)


def _sacrebleu(records: list[list[Any]], kind: str, options: Mapping[str, Any]) -> tuple[Rows, Value]:
    """Return (n, K) rows of sacrebleu's statistics, and the metric as a function of their sums.

    They are sacrebleu's own, which its significance tests resample.
    """
    import sacrebleu
    from lm_eval.api.metrics import _sacreformat

    metric: Any = getattr(sacrebleu, kind)(**options)
    rows: Rows = [[None] * len(doc) for doc in records]
    for k in range(len(records[0])):
        present = [i for i, doc in enumerate(records) if doc[k] is not None]
        if not present:
            continue
        items = [records[i][k] for i in present]
        references, predictions = _sacreformat([pair[0] for pair in items], [pair[1] for pair in items])
        for i, stats in zip(present, metric._extract_corpus_statistics(predictions, references), strict=True):
            rows[i][k] = list(stats)

    def value(sums: FloatArray) -> FloatArray:
        flat = sums.reshape(-1, sums.shape[-1]).tolist()
        return np.array([metric._compute_score_from_stats(row).score for row in flat]).reshape(sums.shape[:-1])

    return rows, value


def _spans_row(pair: Any) -> list[float]:
    """Count [true positives, false positives, false negatives] of named entities in a (gold, predicted) pair."""
    gold, predicted = (Counter(_spans(text)) for text in pair)
    right = (gold & predicted).total()
    return [right, predicted.total() - right, gold.total() - right]


def _f1_of_spans(sums: FloatArray) -> FloatArray:
    """Return (…,) F1 from (…, 3) counts of true positives, false positives and false negatives."""
    right, wrong, missed = sums[..., 0], sums[..., 1], sums[..., 2]
    precision, recall = right / (right + wrong + _TINY), right / (right + missed + _TINY)
    return np.asarray(2 * precision * recall / (precision + recall + _TINY), dtype=np.float64)


def span_f1(items: list[Any]) -> float:
    """Return the F1 of named entities over (gold, predicted) pairs, as some lm-eval tasks compute it."""
    return float(_f1_of_spans(np.sum([_spans_row(pair) for pair in items], axis=0)))


_SUMS: dict[str, tuple[Callable[[Any], list[float]], Value]] = {
    "perplexity": (lambda likelihood: [float(likelihood), 1.0], lambda sums: np.exp(-_ratio(sums))),
    "weighted_perplexity": (_pair, lambda sums: np.exp(-_ratio(sums))),
    "bits_per_byte": (_pair, lambda sums: -_ratio(sums) / math.log(2)),
    "f1_score": (_f1_row, _f1),
    "matthews_corrcoef": (_mcc_row, _mcc),
    "span_f1": (_spans_row, _f1_of_spans),
}
_SACREBLEU: dict[str, tuple[str, Mapping[str, Any]]] = {
    "bleu": ("BLEU", {}),
    "chrf": ("CHRF", {}),
    "chrfpp": ("CHRF", {"word_order": 2}),
    "ter": ("TER", {}),
}


SPANS = "masakhaner*"
"""Tasks whose F1 is known to be that of spans without a value of lm-eval's."""

_TINY = 1e-13
"""The number that the CoNLL scripts add below each fraction."""
_PUNCTUATION = re.compile("[!-/:-@\\[\\]^-`{-~•]+")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_WIDE = re.compile(r"\s{3,}|\t")
_BLANK = re.compile(r"\s+")

Pair = Sequence[Any]


def pair_scores(raw: Sequence[Sequence[Any]], budget: CallingTime, **fields: Any) -> tuple[CorpusScores, str]:
    """Return the F1 of (gold, predicted) pairs for resampling, and its kind. Raise NotPossibleError if unknown.

    `raw` has K pairs for each of n documents, None where there is none.

    Args:
        raw: as they were logged.
        budget: of the run.
        **fields: the fields of CorpusScores that say what was measured; `native` decides which kind it is.

    Raises:
        NotPossibleError: no kind is known to be the one.
    """
    first = [doc[0] for doc in raw if doc[0] is not None]
    if not first or not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in first):
        raise NotPossibleError("its value on a question is neither one number nor a pair of what is right and was said")
    native = fields["native"]
    if native is None:
        kind = "span F1"
        if not fnmatchcase(fields["task"], SPANS):
            raise NotPossibleError(
                "it is made from all questions at once, and which F1 it is only lm-eval's own value tells: name the "
                "results file"
            )
    else:
        kind = _kind(first, native)
    return corpus_scores(raw, F1_KINDS[kind], budget, **fields), kind


def _kind(items: list[Any], native: float) -> str:
    for name, function in F1_KINDS.items():
        value = value_of(function, items)
        if value is not None and any(nearly_equal(scale * value, native) for scale in (1.0, 100.0)):
            if not nearly_equal(value, native):
                raise NotPossibleError(f"lm-eval's own value is the {name} as a percentage, by code of the task's own")
            return name
    raise NotPossibleError(f"it is aggregated by code of the task's own, which is none of {', '.join(F1_KINDS)}")


def _spans(text: Any) -> Iterator[tuple[str, str]]:
    """Yield normalised (tag, entity) of a text (or list) such as "PER: David $ LOC: New York", leaving out the rest."""
    if isinstance(text, list):
        text = " ".join(entity.strip() for entity in text)
    for part in text.split("$"):
        for sentence in part.strip().split(". "):
            for entity in sentence.split(", "):
                words = entity.strip().split(": ")
                if len(words) == 2:
                    yield _normalised(words[0].strip()), _normalised(words[1].strip())


def _normalised(text: str) -> str:
    text = _ARTICLE.sub(" ", _PUNCTUATION.sub(" ", text))
    return _BLANK.sub(" ", _WIDE.sub("", text)).lower()


def _counts(items: list[Any]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (C,) counts of correct, predicted and gold answers per class, from (gold, predicted) pairs.

    An item may have one class or several.
    """
    right, predicted, gold = Counter[Any](), Counter[Any](), Counter[Any]()
    for pair in items:
        ours, theirs = (
            set(map(str, answer)) if isinstance(answer, (list, tuple)) else {str(answer)} for answer in pair
        )
        gold.update(ours)
        predicted.update(theirs)
        right.update(ours & theirs)
    classes = sorted({*gold, *predicted})
    a, b, c = (np.array([count[name] for name in classes], dtype=np.float64) for count in (right, predicted, gold))
    return a, b, c


def _class_f1(items: list[Any]) -> tuple[FloatArray, FloatArray]:
    """Return (C,) F1 of each class (0 for 0/0) and its share of gold answers, from pairs. No gold: ([0], [1])."""
    right, predicted, gold = _counts(items)
    if not gold.sum():
        return np.zeros(1), np.ones(1)
    return 2 * right / np.maximum(predicted + gold, 1), gold / gold.sum()


def _micro_f1(items: list[Any]) -> float:
    right, predicted, gold = (float(part.sum()) for part in _counts(items))
    return 2 * right / (predicted + gold) if predicted + gold else 0.0


F1_KINDS: dict[str, Callable[[list[Any]], float]] = {
    "span F1": span_f1,
    "macro F1": lambda items: float(_class_f1(items)[0].mean()),
    "weighted F1": lambda items: float(np.dot(*_class_f1(items))),
    "micro F1": _micro_f1,
}
"""Name → the F1 of a list of pairs."""
