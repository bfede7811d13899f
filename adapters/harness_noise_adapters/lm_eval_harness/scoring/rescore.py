"""Scores of single answers, and of several at once: the task's own filters and metrics, pass@k, and votes.

lm-eval scores what its filters make of all K answers, normally the first. Here every answer gets an
`Instance` of its own, each filter ensemble is applied once to all of them (some filters cost 0.1 s
per call), and `process_results` scores each. The first repeat must come out as the harness scored it.

Values that take several answers at once are means over questions, but of no single answer: each question has
one value, and the row says so with `uses_all_repeats`. From c right answers of K, pass@k follows for every
k ≤ K without bias.
"""

from __future__ import annotations

import copy
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness_noise.arrays import FloatArray
from harness_noise.data.notes import Note
from harness_noise.data.scores import Scores
from harness_noise.errors import error_message
from harness_noise.stats.passk import pass_at_k

GENERATE = "generate_until"
Row = Mapping[str, Any]
"""One logged sample: a document under one filter."""

_CUT = "TakeKFilter"
"""The filter that leaves the first k answers of a question."""
_MIXING = {"MajorityVoteFilter", _CUT, "CustomFilter"}
"""Filters that may make one answer of several."""
COPIES_P = 0.001
_PASS_AT_1 = re.compile(r"pass(@|_at_)1")


@dataclass(frozen=True, slots=True)
class FilterScores:
    """The raw metric values of one task under one filter."""

    values: dict[str, list[list[Any]]]
    """metric → document → repeat, None for a repeat without the metric.

    Values have the types that the task's `process_results` gives: numbers for means, tuples and the like for corpus
    metrics.
    """
    native: dict[str, list[Any]]
    """metric → document → the harness's own value, None where it has none."""
    used: int = 1
    """The number of a document's answers in the harness's own value."""
    singly: bool = True
    """True if answers could be scored one by one."""
    mismatch: frozenset[str] = frozenset()
    """Metrics whose first repeat should be, but is not, the harness's score."""
    remarks: tuple[Note, ...] = ()


def requests_of(arguments: Any) -> list[tuple[Any, ...]]:
    """Return a sample's requests to the model as tuples, from a file's objects or a live run's."""
    requests = arguments.values() if isinstance(arguments, Mapping) else arguments
    return [tuple(request.values()) if isinstance(request, Mapping) else tuple(request) for request in requests]


def native_values(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Return {metric: lm-eval's logged value of each document}."""
    names = dict.fromkeys(name for row in rows for name in row.get("metrics", ()))
    return {name: [row.get(name) for row in rows] for name in names}


def unrepeated(rows: Sequence[Row]) -> FilterScores:
    """Return lm-eval's own logged scores as scores of a single repeat."""
    native = native_values(rows)
    return FilterScores(_expanded(native, 1), native)


def logged(rows: Sequence[Row]) -> FilterScores:
    """Return the scores per repeat that lm-eval 0.5 logs itself. Raise KeyError if a row has none."""
    metrics = dict.fromkeys(metric for row in rows for metric in row["scores_per_repeat"])
    values = {metric: [list(row["scores_per_repeat"].get(metric, [None])) for row in rows] for metric in metrics}
    K = max((len(doc) for column in values.values() for doc in column), default=1)
    return FilterScores(values, native_values(rows), used=K)


def rescore(
    task: Any, ensemble: Any, rows: Sequence[Row], K: int, native_K: int, *, uneven: bool = False
) -> FilterScores:
    """Return scores of single answers by lm-eval's filters and metrics, or its own values if all fail or are unsafe.

    An answer that the filters or metrics fail on is missing, and a remark says it.

    Args:
        task: lm-eval's task object.
        ensemble: one of its filter ensembles.
        rows: the logged samples of this filter, n documents; `resps` may hold more than K answers
            (padding of other ranks) or fewer.
        K: answers per document.
        native_K: how many of them the harness's own filters saw.
        uneven: whether a document may have been asked less often than others; else its answers are missing.
    """
    native = native_values(rows)
    single, used = _one_by_one(ensemble, native_K)
    unsafe = bool(getattr(task, "UNSAFE_CODE", False))
    # running model code is left to the harness; only answers that it never scored are scored here
    start = native_K if unsafe else 0
    scored, faults, tried = _process(task, single, rows, range(start, K), uneven)
    why = f"({error_message(faults[0])})" if faults else ""
    if faults and all(answer is None for doc in scored for answer in doc[not start :]):
        note = Note("not_singly", f"cannot be scored answer by answer {why}: lm-eval's own scores are used")
        return FilterScores(_expanded(native, native_K), native, used, singly=False, remarks=(note,))
    if used == 1 and not start:  # lm-eval has scored it
        for i, doc in enumerate(scored):
            doc[0] = doc[0] or {metric: column[i] for metric, column in native.items()}
    said = f"{len(faults)} of {tried} answers could not be scored {why}. Those that lm-eval has no score of are missing"
    remarks = (Note("missing", said),) if faults else ()
    metrics = dict.fromkeys([*native, *(metric for doc in scored for answer in doc for metric in answer or ())])
    values = {metric: [[answer and answer.get(metric) for answer in doc] for doc in scored] for metric in metrics}
    for metric in metrics:
        if pass_order(metric) > 1:  # a single answer has no pass@k, and the task's value of one answer is not a score
            values[metric] = [[value] for value in native.get(metric, [None] * len(rows))]
    if unsafe:
        expanded = _expanded(native, native_K)
        values = {metric: _join(expanded.get(metric), values[metric], native_K) for metric in metrics}
        return FilterScores(values, native, native_K, remarks=remarks)
    differ = (metric for metric in native if not is_first(values[metric], native[metric]))
    return FilterScores(values, native, used, mismatch=frozenset(differ if used == 1 else ()), remarks=remarks)


def _one_by_one(ensemble: Any, native_K: int) -> tuple[Any, int]:
    """Return the filters without cuts to k answers, and how many answers lm-eval's value uses.

    The filters have no cuts to the first k.
    """
    cuts = [step for step in ensemble.filters if _filter_name(step) == _CUT]
    if not cuts:
        return ensemble, 1 if _takes_first(ensemble) else native_K
    single = copy.copy(ensemble)
    single.filters = [step for step in ensemble.filters if _filter_name(step) != _CUT]
    return single, min(native_K, *(int(step().k) for step in cuts))


def _process(
    task: Any, ensemble: Any, rows: Sequence[Row], repeats: range, uneven: bool
) -> tuple[list[list[dict[str, Any] | None]], list[Exception], int]:
    """Return [document][repeat] {metric: value} by lm-eval's scoring of that answer alone, errors, and answers tried.

    An answer that is missing, or that filters or metrics fail on, is None. If the first hundred fail, none is tried
    any more: a judge that is gone may take a minute for each.
    """
    single = [[_instances(row, k) for k in repeats if not uneven or k < max(map(len, row["resps"]))] for row in rows]
    if every := [answer for doc in single for answer in doc if answer]:
        _filter(ensemble, every)
    out: list[list[dict[str, Any] | None]] = []
    faults: list[Exception] = []
    tried = 0
    with patched(task, "doc_to_target", _once_per_document(task.doc_to_target)):
        for row, doc in zip(rows, single, strict=True):
            # a task's code may write into the document, which is in lm-eval's log
            own = dict(row["doc"]) if isinstance(row["doc"], dict) else row["doc"]
            out.append([None] * len(doc))
            for k, answer in enumerate(doc):
                if answer is None or len(faults) == tried >= 100:
                    continue
                tried += 1
                try:
                    out[-1][k] = _score(task, own, answer, ensemble.name)
                except Exception as error:  # noqa: BLE001 - filters and metrics are anybody's code
                    faults.append(error)
    return out, faults, len(every)


def _score(task: Any, doc: Any, answer: Sequence[Any], scorer: str) -> dict[str, Any]:
    """Return {metric: value} of one answer. Raise the error of its filters or metrics."""
    filtered = [instance.filtered_resps[scorer] for instance in answer]
    if isinstance(filtered[0], _FilterError):
        raise filtered[0].error
    return dict(task.process_results(doc, filtered))


@dataclass(frozen=True, slots=True)
class _FilterError:
    """Stands in place of what a filter should have made of an answer."""

    error: Exception


def _filter(ensemble: Any, answers: Sequence[list[Any]]) -> None:
    """Apply filters to answers, all at once if possible, else to each half of them."""
    instances = [instance for answer in answers for instance in answer]
    try:
        ensemble.apply(instances)
    except Exception as error:  # noqa: BLE001 - filters are anybody's code
        if half := len(answers) // 2:
            _filter(ensemble, answers[:half])
            _filter(ensemble, answers[half:])
        else:
            for instance in instances:  # an answer may take several
                instance.filtered_resps[ensemble.name] = _FilterError(error)


def _once_per_document(doc_to_target: Callable[..., Any]) -> Callable[..., Any]:
    """Return `doc_to_target` wrapped to keep its text or int of the last document. Other calls pass through."""
    last: list[Any] = [None, None]

    def target(doc: Any, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs:
            return doc_to_target(doc, *args, **kwargs)
        if last[0] is doc:
            return last[1]
        made = doc_to_target(doc)
        if isinstance(made, (str, int)):  # nothing that the metric could change
            last[:] = doc, made
        return made

    return target


def _instances(row: Row, k: int) -> list[Any] | None:
    """Return a document's requests, each with its k-th (else last) answer only. None if no request has a k-th.

    A request that is asked once (a loglikelihood beside a generation) is shared by all repeats.
    """
    from lm_eval.api.instance import Instance

    if k >= max(map(len, row["resps"])):
        return None
    return [
        Instance(GENERATE, row["doc"], arguments, i, (None, row["doc_id"], 1), [answers[min(k, len(answers) - 1)]])
        for i, (arguments, answers) in enumerate(zip(row["arguments"], row["resps"], strict=True))
    ]


def at_once(used: int, K: int) -> str:
    """Return a sentence that lm-eval's own value combines `used` of a question's K answers (vote, pass@k).

    Args:
        used: how many answers that are.
        K: answers of which ours is the mean.
    """
    which = f"all its {used} answers" if used == K else f"the first {used} of the {K} answers"
    return (
        f"the harness's own value uses {which} at once (majority vote, pass@k) and has the row <metric>@{used}. Ours "
        f"is the average score of single answers, of all {K} (avg@{K})"
    )


def same(a: Any, b: Any) -> bool:
    """Return True if two values are equal by ==, in tuples, lists and arrays item by item. NaN equals NaN."""
    a, b = (value.tolist() if hasattr(value, "tolist") else value for value in (a, b))
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def is_first(docs: Sequence[Sequence[Any]], native: Sequence[Any]) -> bool:
    """Return True if lm-eval's own value of every document is that of its first answer."""
    return all(same(doc[0], value) for doc, value in zip(docs, native, strict=True))


def _takes_first(ensemble: Any) -> bool:
    """Return True if the filters keep the first answer, without mixing answers before."""
    kinds = [getattr(step, "func", step) for step in ensemble.filters]
    names = set(map(_filter_name, ensemble.filters))
    builtin = all(str(getattr(kind, "__module__", "")).startswith("lm_eval.filters.") for kind in kinds)
    return builtin and "TakeFirstFilter" in names and not names & _MIXING


def _filter_name(step: Any) -> str:
    """Return the class name of a filter step, which may be a partial."""
    return str(getattr(getattr(step, "func", step), "__name__", ""))


def right_answers(metric: str, values: Sequence[Any], K: int) -> list[list[float]] | None:
    """Return (n, K) zeros and ones in random order with pass@1 `values` as means. None if not such, or K is 1.

    The c right of K are in a random order, because their own order is unknown.
    """
    if K == 1 or not _PASS_AT_1.fullmatch(metric) or not all(isinstance(value, (int, float)) for value in values):
        return None
    right = np.asarray(values, dtype=np.float64) * K
    if not (abs(right - right.round()) < 1e-9).all():
        return None
    answers: list[list[float]] = (
        np.random.default_rng(0).permuted((np.arange(K) < right.round()[:, None]).astype(np.float64), axis=1).tolist()
    )
    return answers


def _expanded(native: Mapping[str, list[Any]], K: int) -> dict[str, list[list[Any]]]:
    """Return {metric: scores per document}: K zeros and ones for pass@1, else the one value."""
    return {
        metric: right_answers(metric, column, K) or [[value] for value in column] for metric, column in native.items()
    }


def _join(expanded: list[list[Any]] | None, more: list[list[Any]], native_K: int) -> list[list[Any]]:
    if expanded is None:
        return [[None] * native_K + doc for doc in more]
    if len(expanded[0]) != native_K:  # the harness's value needs all its answers at once, such as pass@k
        return expanded
    return [a + b for a, b in zip(expanded, more, strict=True)]


def identical_answers(rows: Sequence[Row], K: int) -> bool | None:
    """Return True if every document's K answers are equal. None if no document has several."""
    repeated = [answers[:K] for row in rows for answers in row["resps"] if len(answers) > 1]
    return all(map(_all_same, repeated)) if K > 1 and repeated else None


def copied_answers(rows: Sequence[Row], native_K: int, K: int) -> int:
    """Return on how many documents lm-eval's own answers are copies. 0 unless further answers differ more (p < .001).

    They are copies if they are the same on every document and further answers, with seeds of their own, are not (by the
    chance of it if all answers to a document could have come in any order, p < .001: a few documents tell nothing); or
    if they agree with each other more often than with the further ones (a sign test over the documents, p < .001), as
    where a server honours the one seed of all but not always. Without further answers nothing tells
    copies from a model that always says the same.

    Args:
        rows: logged samples; `resps` hold the harness's own answers first.
        native_K: how many answers are the harness's own.
        K: answers in all.
    """
    repeated = [answers[:K] for row in rows for answers in row["resps"] if len(answers) > native_K]
    if not 1 < native_K < K or not repeated or all(map(_all_same, repeated)):
        return 0
    alike = sum(_all_same(answers[:native_K]) for answers in repeated)
    if alike == len(repeated):
        return alike if math.prod(_chance_alike(answers, native_K) for answers in repeated) < COPIES_P else 0
    more = less = 0
    for answers in repeated:
        own, further = answers[:native_K], answers[native_K:]
        among = sum(a == b for i, a in enumerate(own) for b in own[:i]) / (native_K * (native_K - 1) / 2)
        between = sum(a == b for a in own for b in further) / (native_K * len(further))
        more += among > between
        less += among < between
    from scipy.special import bdtr

    # P(at most `less` of them) under a fair coin
    return alike if more > less and bdtr(less, more + less, 0.5) < COPIES_P else 0


def _chance_alike(answers: Sequence[Any], k: int) -> float:
    """Return the probability that the first k answers are equal if answers came in random order."""
    counts = Counter(map(repr, answers)).values()
    return sum(math.comb(count, k) for count in counts) / math.comb(len(answers), k)


def without_copies(scores: FilterScores, native_K: int) -> FilterScores:
    """Return the scores with lm-eval's own answers, which are copies, reduced to the first."""

    def collapsed(doc: list[Any]) -> list[Any]:
        return doc if len(doc) < native_K or len(doc) == 1 else [doc[0], *doc[native_K:]]

    return replace(scores, values={metric: list(map(collapsed, column)) for metric, column in scores.values.items()})


def _all_same(answers: Sequence[Any]) -> bool:
    return all(answer == answers[0] for answer in answers)


USES_ALL = "uses_all_repeats"
_PASS_NAME = re.compile(r"(pass(?:@|_at_))([1-9][0-9]{0,3})")


def pass_order(metric: str) -> int:
    """Return the k of a metric named pass@k or pass_at_k. 0 for any other."""
    name = _PASS_NAME.fullmatch(metric)
    return int(name[2]) if name else 0


def with_passes(parts: Iterable[Scores]) -> list[Scores]:
    """Return a task's scores, pass@k marked `uses_all_repeats`, and pass@k for further k up to the answers known.

    Args:
        parts: of one task; pass@1 as (n, K) zeros and ones where single answers are known, pass@k for
            k > 1 as one value per question.
    """
    out: list[Scores] = []
    scorers: dict[str, dict[int, Scores]] = {}
    for part in parts:
        k = pass_order(part.metric)
        out.append(replace(part, diagnostics=(*part.diagnostics, USES_ALL)) if k > 1 else part)
        if k:
            scorers.setdefault(part.scorer, {})[k] = out[-1]
    return out + [part for named in scorers.values() for part in _further(named)]


def _further(named: dict[int, Scores]) -> list[Scores]:
    lowest = min(named)
    first = named[lowest]
    answers = first.values
    if answers.shape[1] == 1 or not np.isin(answers[~np.isnan(answers)], (0.0, 1.0)).all():
        return []
    counts = (~np.isnan(answers)).sum(axis=1)
    most = int(counts[counts > 0].min(initial=answers.shape[1]))
    prefix = first.metric[: -len(str(lowest))]
    codes = tuple(dict.fromkeys((*first.diagnostics, USES_ALL)))
    return [
        derived(first, f"{prefix}{k}", pass_at_k(answers, k), diagnostics=codes)
        for k in range(lowest + 1, most + 1)
        if k not in named
    ]


def derived(part: Scores, metric: str, values: FloatArray, **fields: Any) -> Scores:
    """Return (n,) values as (n, 1) scores of another metric, described like `part` but without native value, texts."""
    own: dict[str, Any] = {"native": None, "native_is_first": False, "gradings": None, "answers": None, "asked": None}
    return replace(part, metric=metric, values=values[:, None], **(own | fields))


def vote(part: Scores, values: FloatArray, value: float | None, K: int) -> Scores:
    """Return scores of lm-eval's own value over K answers (a vote), as metric "NAME@K"."""
    codes = (USES_ALL, *(code for code in part.diagnostics if code == "copied_repeats"))
    missing = int(np.isnan(values).sum())
    return derived(part, f"{part.metric}@{K}", values, native=value, n_missing=missing, diagnostics=codes)


@contextmanager
def patched(target: Any, name: str, value: Any) -> Iterator[None]:
    """Within the block, set an attribute of an object. It is restored afterwards."""
    own = vars(target)
    had, before = name in own, own.get(name)
    setattr(target, name, value)
    try:
        yield
    finally:
        if had:
            setattr(target, name, before)
        else:
            delattr(target, name)
