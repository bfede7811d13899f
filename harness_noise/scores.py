"""What an adapter hands to the statistics: the scores of one run, question by question.

An adapter reads a file or a live run and returns a `Run`: one `Scores` for every task × metric ×
scorer, the group rows that the harness reports, and what it left out and why. Nothing below this
module knows a harness.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Protocol

from .errors import InputError, NotThereError
from .packed import distinct_strings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.intp]

Weighting = Literal["size", "equal"]
CONTENT_KEYS = frozenset({"doc_hash"})
"""Kinds of keys that are hashes of the whole question: where they agree there is nothing to verify."""
CALLS = 1000
"""Resamples of a metric that can only be computed by calling it on all records again."""


class FaultyScoresError(ValueError):
    """Scores that cannot be: an adapter's mistake, which must not become a number."""


class Documents(Protocol):
    """Where the texts of a run's questions can be read; it can be pickled."""

    def read(self) -> tuple[Sequence[str] | None, Sequence[str] | None]:
        """`inputs` and `texts` of the `Questions`.

        Raises:
            InputError: they cannot be read, or are no longer what the run was read from.
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
    documents: Documents | None = field(default=None, repr=False)
    """Where to read `inputs` and `texts`; None if they were given or have been read."""

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
            items = getattr(self, name)
            if items is not None and len(items) != n:
                raise FaultyScoresError(f"{n} questions and {len(items)} {name}")
        if distinct_strings(self.keys) < n:
            seen: set[str] = set()
            twice = next(key for key in self.keys if key in seen or seen.add(key))  # type: ignore[func-returns-value]
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

    def shown(self) -> Sequence[str] | None:
        """`texts`, or None where they can no longer be read: no result depends on them."""
        try:
            return self.texts
        except InputError:
            return None


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """One run × task × metric × scorer."""

    task: str
    metric: str
    scorer: str
    questions: Questions
    values: FloatArray
    """(n, K) scores on the metric's own scale, NaN where a repeat has no score."""
    clusters: tuple[str, ...] | None = None
    """(n,) cluster labels; None where the questions are independent."""
    cluster_spec: str | None = None
    """Where the clusters come from, for people: "template", "passage (auto)", … ."""
    higher_is_better: bool | None = None
    bounds: tuple[float, float] | None = None
    """Lowest and highest value of the metric, where its definition is known; `samples.score_range` says what
    counts where it is None."""
    native: float | None = None
    """The harness's own value that our mean (or, `native_is_first`, the mean of repeat 0)
    reproduces; None where it does not say."""
    native_is_first: bool = False
    n_missing: int = 0
    """Repeats that were run but have no score: errored, NaN, missing."""
    diagnostics: tuple[str, ...] = ()
    factors: Mapping[str, tuple[tuple[str, ...], ...]] | None = None
    """What each answer was made with, by column: n rows of K labels (prompt, seed, judge)."""
    answers_differ: bool = False
    """Whether it is known that some answers to one question differ. Scores that agree on every question are then
    no sign of answers that were given only once."""

    def __post_init__(self) -> None:
        shape = self.values.shape
        if len(shape) != 2 or shape[0] != len(self.questions):
            raise FaultyScoresError(
                f"{self.task}, {self.metric}: scores of the shape {shape} for {len(self.questions)} questions"
            )
        _check_clusters(self)
        for name, rows in (self.factors or {}).items():
            if len(rows) != shape[0] or any(len(row) != shape[1] for row in rows):
                raise FaultyScoresError(f"{self.task}, {self.metric}: the levels of {name} are not those of its scores")


@dataclass(frozen=True, slots=True, eq=False)
class CorpusScores:
    """One run × task × metric × scorer whose metric is no mean of question scores: bleu, F1, perplexity.

    Either `records` and `aggregate`, which are called again for every resample; or, many times
    faster, `stats` and `value`, where the metric is a function of sums over the questions (counts of
    a confusion matrix, matched n-grams, summed log-likelihoods).
    """

    task: str
    metric: str
    scorer: str
    questions: Questions
    records: tuple[tuple[Any, ...], ...] = ()
    """n rows of K records, None where a repeat has none: what `aggregate` takes a list of."""
    aggregate: Callable[[list[Any]], float] | None = None
    stats: FloatArray | None = None
    """(n, K, S) what is summed over questions, NaN where a repeat has no answer."""
    value: Callable[[FloatArray], FloatArray] | None = None
    """The metric from the sums: (…, S) → (…)."""
    clusters: tuple[str, ...] | None = None
    cluster_spec: str | None = None
    higher_is_better: bool | None = None
    bounds: tuple[float, float] | None = None
    """As in `Scores`."""
    native: float | None = None
    native_is_first: bool = False
    n_missing: int = 0
    answers_differ: bool = False
    diagnostics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        rows = len(self.records) if self.stats is None else len(self.stats)
        if rows != len(self.questions) and (rows or self.stats is not None):
            raise FaultyScoresError(
                f"{self.task}, {self.metric}: records of {rows} questions for {len(self.questions)} questions"
            )
        _check_clusters(self)


def _check_clusters(item: Scores | CorpusScores) -> None:
    if item.clusters is not None and len(item.clusters) != len(item.questions):
        raise FaultyScoresError(
            f"{item.task}, {item.metric}: {len(item.clusters)} cluster labels for {len(item.questions)} questions"
        )


@dataclass(frozen=True, slots=True)
class Group:
    """A row that averages tasks, as the harness reports it or as `--group` asks for it."""

    name: str
    metric: str
    scorer: str
    tasks: tuple[str, ...]
    weighting: Weighting = "size"
    native: float | None = None
    weights: tuple[float, ...] | None = None
    """Fixed weights of the tasks, in place of `weighting`: nested groups, each averaged its own way."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A metric that the run reports and that has no per-question mean to analyse."""

    task: str
    metric: str
    scorer: str
    reason: str
    native: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Everything one run of one model measured."""

    model: str
    name: str
    """Tells two runs of one model apart; normally the path it was read from."""
    harness: str
    path: str = ""
    scores: tuple[Scores, ...] = ()
    parts: tuple[Scores, ...] = ()
    """Scores that only the groups need; they have no row of their own."""
    groups: tuple[Group, ...] = ()
    corpus: tuple[CorpusScores, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences for the user: hints and warnings, one each."""
    date: str = ""
    """When it was made, in a form in which a later date sorts behind an earlier one of the same harness;
    empty where that is not known."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a user can say about how a run is to be read."""

    cluster: str | None = None
    """SPEC of `--cluster`; None: the clusters that the run itself carries."""
    columns: dict[str, str] = field(default_factory=dict)
    """Our column name → the file's."""
    missing: Literal["drop", "zero"] = "drop"
    groups: dict[str, str] = field(default_factory=dict)
    """`--group NAME=PATTERN`: tasks that match the glob PATTERN form the group NAME."""
    tasks: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    scorers: tuple[str, ...] = ()
    factors: tuple[str, ...] = ()
    """Columns of a table, or arguments of a task, that say what each answer was made with."""
    apart: bool = False
    """Every run by itself, in place of one run of each model in a folder (`harness_noise.joining`)."""
    strict: bool = False
    """A file that cannot be used is an error also where others can; else it is left out with a note."""


def is_proportion(metric: str) -> bool:
    """Whether a metric's name says that its scores are right or wrong: acc_norm, exact_match, correct, pass@1, … ."""
    words = set(re.split(r"[^a-z0-9]+", metric.lower()))
    return bool(words & {"acc", "accuracy", "em", "correct", "match", "pass", "passed"})


def fitting(bounds: tuple[float, float] | None, values: FloatArray) -> tuple[float, float] | None:
    """The range that a metric of this name has, or None if the scores show that it has another."""
    import numpy as np

    scored = values[~np.isnan(values)]
    if bounds is None or (len(scored) and not (bounds[0] <= scored.min() and scored.max() <= bounds[1])):
        return None
    return bounds


def content_hash(text: str) -> str:
    """Hash of a question's text that does not depend on white space at line ends or Unicode form."""
    if not text.isascii():
        import unicodedata

        text = unicodedata.normalize("NFC", text)
    lines = text.strip().splitlines()
    plain = lines[0] if len(lines) == 1 else "\n".join(map(str.strip, lines))
    found: str = _blake2b()(plain.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return found


@cache
def _blake2b() -> Callable[..., Any]:
    """Imported once, and not before it is used: an import costs as much as the hash of a question."""
    from hashlib import blake2b

    return blake2b


_ROUNDED = 9
"""Decimals from which on a value counts as written in full."""
_SHARE, _PERCENT = 4, 2
"""Decimals that a harness keeps at least where it rounds: 0.2692, 26.92 %."""


def reproduces(ours: float, native: float, *, percent: bool = True) -> bool:
    """Whether our mean is the value that a harness reports, on the scale and with the digits of that value.

    0.269230769… is 0.2692 rounded, and 26.92 in percent.

    Args:
        ours: on the scale of the scores.
        native: as reported.
        percent: whether one of the two may be a percentage of the other's scale.
    """
    if _agree(ours, native, _SHARE if abs(native) <= 1 else _PERCENT):
        return True
    # next to 0 every scale agrees with every other
    return percent and (
        (abs(native) >= 0.1 and _agree(100 * ours, native, _PERCENT))
        or (0.01 <= abs(native) <= 1 and _agree(ours / 100, native, _SHARE))
    )


def _agree(ours: float, native: float, fewest: int) -> bool:
    tolerance = 1e-9 * max(1.0, abs(native))
    decimals = len(f"{native:.12f}".rstrip("0").partition(".")[2])
    if decimals < _ROUNDED:
        tolerance += 0.5 * 10.0 ** -max(decimals, fewest)
    return abs(ours - native) <= tolerance


_SPARE = 20_000_000
"""Cells that a table of scores may have however few of them are filled: 160 MB."""
_SPARSE = 64


def check_grid(n: int, K: int, answers: int, what: object) -> None:
    """Refuse an (n, K) table that would be all but empty: one question with a million repeats among a million.

    Args:
        n: questions.
        K: the most repeats of one, or all different repeats.
        answers: scores that there are.
        what: the file or run, for the message.

    Raises:
        InputError: the table would have far more cells than there are scores.
    """
    if n * K > max(_SPARE, _SPARSE * answers):
        raise InputError(
            f"{what}: {answers} answers to {n} questions with up to {K} repeats leave nearly every question without "
            "nearly every repeat; are the repeats numbered in one row through all questions? Number them anew for "
            "each question, or take the column of repeats out"
        )


def occurrences(keys: Sequence[str]) -> tuple[str, ...]:
    """Make repeated keys unique: the n-th occurrence (n > 1) of `key` becomes `key#n`.

    A key that itself looks like a numbered one keeps its text if it came first.
    """
    count: dict[str, int] = {}
    taken = set(keys)
    out = []
    for key in keys:
        n = count[key] = count.get(key, 0) + 1
        name = key
        while n > 1 and name in taken:
            name = f"{key}#{n}"
            n += 1
        count[key] = max(count[key], n - 1)  # what was tried before stays taken
        taken.add(name)
        out.append(name)
    return tuple(out)


def with_groups(run: Run, patterns: Mapping[str, str]) -> Run:
    """Add a group NAME of all tasks that match the glob PATTERN, weighted by size, for each metric they share.

    For tags such as mgsm, whose tasks no harness averages. `adapters.read` does this, once the files of a model
    are joined; an adapter only for files that it writes again.

    Raises:
        InputError: no task matches, or those that do share no metric.
    """
    from fnmatch import fnmatchcase

    measured: dict[str, list[tuple[str, str]]] = {}
    for part in run.scores:
        measured.setdefault(part.task, []).append((part.metric, part.scorer))
    groups = list(run.groups)
    for name, pattern in patterns.items():
        tasks = tuple(task for task in measured if fnmatchcase(task, pattern))
        if not tasks:
            raise NotThereError([run.name], "--group", [f"{name}={pattern}"], list(measured))
        shared = [key for key in measured[tasks[0]] if all(key in measured[task] for task in tasks)]
        if not shared:
            raise InputError(f"{run.name}: --group {name}={pattern}: {', '.join(tasks)} have no metric in common")
        groups += [Group(name, metric, scorer, tasks) for metric, scorer in shared]
    return replace(run, groups=tuple(groups))
