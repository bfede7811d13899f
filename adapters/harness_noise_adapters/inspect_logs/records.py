"""Contents of a log: header, native values and samples, made of plain JSON from whatever program wrote it.

What is not as Inspect's schema has it is read all the same where its meaning is clear, and counted in `Faults`.
Where ids or epochs cannot be told the log is refused. Nothing of the conversations is looked at.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import itemgetter
from string import ascii_uppercase
from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from harness_noise.data.questions import content_hash, text_hash

from ..records import field as lookup
from .identity import mark

if TYPE_CHECKING:
    from inspect_ai.log import EvalScore
    from inspect_ai.scorer import SampleScore

SCHEMA = 2
"""The newest version of the log's schema that is known."""

RECORD = "noise"
"""Key in the metadata of `results.early_stopping`: why a run stopped, and which questions were drawn."""

EXPORT = "harness_noise"
"""Key of an export's settings in the metadata of a log."""


def bare(name: str) -> str:
    """Return a registered name without its package: "inspect_evals/gsm8k" is "gsm8k"."""
    return name.rsplit("/", 1)[-1]


class NotALogError(ValueError):
    """The error for a file that is not an Inspect log, or whose scores are ambiguous."""


class Faults(Counter[str]):
    """Deviations from Inspect's schema. Each kind is counted and reported once."""

    def messages(self) -> list[str]:
        return [f"{what} ({count} times)" if count > 1 else what for what, count in self.items()]


@dataclass(frozen=True, slots=True)
class NativeMetric:
    """One native value."""

    name: str
    value: float
    group: str | None
    params: Mapping[str, Any]
    metadata: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The native metrics of one scorer, or one key of it, and one reducer: an EvalScore."""

    name: str
    scorer: str
    reducer: str | None
    metrics: Mapping[str, NativeMetric]


AnyScore: TypeAlias = "EvalScore | ScoreRow"
"""A native result, as Inspect has it or as we have read it."""

Scorers = Mapping[str, Mapping[str | None, Mapping[str, Any]]]
"""Scorer → key of its dictionaries, None for the scorer itself → metric → its options."""


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a log."""

    status: str
    task: str
    task_id: str
    created: str
    """The date in UTC, so that it sorts, or "" if the log has none."""
    model: str
    dataset: tuple[str, str]
    """Name and place."""
    metadata: Mapping[str, Any]
    """Metadata of the run, which hold the flag's settings."""
    task_args: Mapping[str, Any]
    sample_ids: Sequence[Any] | None
    epochs: int
    epochs_reducer: Sequence[str] | None
    solvers: Sequence[str]
    invalidated: bool
    total_samples: int
    scores: Sequence[ScoreRow]
    """Empty where Inspect has computed no results: see `uncomputed`."""
    task_version: str = ""
    """The task's own version, "" if it has none."""
    not_asked: int = 0
    """Answers that an early stopping has left out."""
    stopping: Mapping[str, Any] = field(default_factory=dict)
    """The record of an early stopping."""
    exported: Mapping[str, Any] = field(default_factory=dict)
    """The settings of an export that added our metrics."""
    scorers: Scorers = field(default_factory=dict)
    """The scorers as the run was set up."""
    model_roles: Mapping[str, str] = field(default_factory=dict)
    """Role (a grader, an assistant) → its model."""
    cached: bool = False
    """True if the configuration says that the models were asked through a cache."""
    same_judge: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Scorer → the scorers of the log that are it once more, with the same options: `inspect score` appends them."""
    headline: tuple[str, str, str] | None = None
    """Scorer, name and reducer of the score that the task declares as the one that counts."""
    scored_with: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Scorer → packages, options of the scorer → version or value."""
    judges: frozenset[str] = frozenset()
    """The scorers whose scores a model gave, as far as the log says."""
    computed: bool = True
    """True if `scores` are Inspect's. Otherwise they name what the samples hold, without values."""

    def is_headline(self, index: int) -> bool:
        """Return True if score row number `index` is the log's declared main score."""
        row = self.scores[index]
        return self.headline == (row.scorer, row.name, row.reducer or "")


def header_of(log: Mapping[str, Any], faults: Faults) -> Header:
    """Read a log's header from its top-level values, counting `faults`. ValueError (NotALogError): no task or model.

    Raises:
        NotALogError: it does not say which task and which model it is of.
    """
    spec = log.get("eval")
    if not isinstance(spec, dict):
        raise NotALogError("it has no `eval`, which says what was run")
    named = {}
    for name in ("task", "model"):
        value = unwrapped(spec.get(name))
        if not isinstance(value, str):
            raise NotALogError(f"schema: eval.{name} is {kind_of(value)}, not a text")
        named[name] = value
    version = log.get("version")
    if isinstance(version, (int, float)) and version > SCHEMA:
        faults[f"its schema has version {version:g}, newer than what is known ({SCHEMA})"] += 1
    config = object_of(spec.get("config"), "eval.config", faults)
    dataset = object_of(spec.get("dataset"), "eval.dataset", faults)
    results = object_of(log.get("results"), "results", faults)
    plan = object_of(log.get("plan"), "plan", faults)
    steps, scorers = objects_in(plan.get("steps")), _configured(spec.get("scorers"))
    ids, reducers, epochs = dataset.get("sample_ids"), config.get("epochs_reducer"), unwrapped(config.get("epochs"))
    epochs = epochs if isinstance(epochs, int) else 1
    stopping = object_of(results.get("early_stopping"), "results.early_stopping", faults)
    stops = stopping.get("early_stops")
    return Header(
        status=_text(log.get("status"), "success" if results else "started"),
        task=named["task"],
        task_id=_text(spec.get("task_id")),
        created=_utc(_text(spec.get("created"))),
        model=named["model"],
        task_version=_version(spec.get("task_version")),
        scored_with=_scored_with(spec.get("packages"), scorers),
        judges=_judges(scorers, named["model"], log.get("stats")),
        dataset=(_text(dataset.get("name")), _text(dataset.get("location"))),
        metadata=object_of(spec.get("metadata"), "eval.metadata", faults),
        task_args=object_of(spec.get("task_args"), "eval.task_args", faults),
        sample_ids=ids if isinstance(ids, list) else None,
        epochs=epochs,
        epochs_reducer=list(map(str, reducers)) if isinstance(reducers, list) else None,
        solvers=[str(step.get("solver")) for step in steps],
        invalidated=log.get("invalidated") is True,
        total_samples=_total_samples(log, dataset, results, epochs),
        scores=_score_rows(results, faults),
        not_asked=len(stops) if isinstance(stops, list) else 0,
        stopping=object_of(stopping.get("metadata"), "metadata of results.early_stopping", faults),
        exported=object_of(lookup(log.get("metadata"), EXPORT), f"metadata.{EXPORT}", faults),
        scorers={name: _metrics_by_key(row.get("metrics")) for name, row in scorers.items()},
        model_roles=_roles(spec.get("model_roles")),
        cached=_is_cached(spec.get("model_generate_config"), plan.get("config"), spec.get("task_args"), *steps),
        same_judge=_same_judge(scorers),
        # without a declaration it is the first metric of the first score
        headline=_headline(results.get("headline")) if spec.get("headline_metric") else None,
    )


def _total_samples(log: Mapping[str, Any], dataset: Mapping[str, Any], results: Mapping[str, Any], epochs: int) -> int:
    """Return the number of samples that the run was to have, all epochs counted. 0 if unknown."""
    ids, total = dataset.get("sample_ids"), results.get("total_samples")
    n = len(ids) if isinstance(ids, list) else dataset.get("samples")
    planned = n * epochs if isinstance(n, int) else 0
    if not isinstance(total, int):
        return planned
    # `inspect log recover` and `inspect score` count the samples that are there
    return max(total, planned) if isinstance(ids, list) and log.get("status") != "success" else total


def _version(value: Any) -> str:
    return "" if value is None else str(value)


def _scored_with(packages: Any, scorers: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return {scorer: its options and the versions of packages}, to compare scoring of two runs."""
    versions = {name: str(version) for name, version in packages.items()} if isinstance(packages, dict) else {}
    return {
        name: versions | {f"options of {name}": json.dumps(row.get("options") or {}, sort_keys=True, default=str)}
        for name, row in scorers.items()
    }


PLAIN_SCORERS = frozenset(("match", "includes", "pattern", "answer", "exact", "f1", "choice", "math", "perplexity"))
"""Inspect's own scorers that ask no model."""


def _judges(scorers: Mapping[str, Mapping[str, Any]], model: str, stats: Any) -> frozenset[str]:
    """Return the scorers that ask a model: by name or option, or all but plain ones if another model was used.

    They are known by their names or options; if another model was asked, all own ones count.
    """
    used = stats.get("model_usage") if isinstance(stats, dict) else None
    others = isinstance(used, dict) and bool(used.keys() - {model})
    out = set()
    for name, row in scorers.items():
        registered, options = str(row.get("name")), row.get("options")
        own = bare(registered) not in PLAIN_SCORERS
        named = "model_graded" in registered or (isinstance(options, dict) and bool(_ASKING & options.keys()))
        if named or (own and others):
            out.add(name)
    return frozenset(out)


_ASKING = frozenset(("model", "model_role", "grader", "grader_model", "judge", "judge_model"))
"""Options of a scorer that name a model."""


def _headline(headline: Any) -> tuple[str, str, str] | None:
    if not isinstance(headline, dict):
        return None
    scorer, name, reducer = (str(headline.get(key) or "") for key in ("scorer", "score", "reducer"))
    return scorer, name, reducer


def _roles(by_role: Any) -> dict[str, str]:
    """Return {role: model's name} from a log, which gives names or whole configurations."""
    roles = by_role.items() if isinstance(by_role, dict) else ()
    named = {role: unwrapped(value.get("model") if isinstance(value, dict) else value) for role, value in roles}
    return {role: model for role, model in named.items() if isinstance(model, str)}


def _is_cached(*places: Any) -> bool:
    """Return True if one of these configurations turns on a cache of model calls."""
    configs = objects_in([*places, *(step.get("params") for step in objects_in(list(places)))])
    return any(place.get("cache") not in (None, False) for place in configs)


def uncomputed(header: Header, answers: SampleAnswers) -> Header:
    """Return the header of an unfinished run with the score rows that its results would have."""
    rows = []
    for scorer in answers.scorers():
        by_key = header.scorers.get(scorer, {})
        values = answers.column(scorer) or ()
        keys = dict.fromkeys(key for value in values if isinstance(value, dict) for key in value)
        for name in [key for key in keys if None not in by_key] or [scorer]:
            options = by_key.get(None) or by_key.get(name) or by_key.get("*") or {}
            metrics = {metric: NativeMetric(metric, math.nan, None, params, None) for metric, params in options.items()}
            rows.append(ScoreRow(name, scorer, None, metrics))
    return replace(header, scores=rows, computed=False)


def _configured(specs: Any) -> dict[str, dict[str, Any]]:
    """Return {scorer's name in samples: its configuration}, numbered as Inspect does."""
    out: dict[str, dict[str, Any]] = {}
    for row in objects_in(specs):
        name = base = bare(str(row.get("name")))
        count = 0
        while name in out:  # as Inspect numbers scorers of one name
            name = f"{base}{(count := count + 1)}"
        out[name] = row
    return out


def _metrics_by_key(declared: Any) -> dict[str | None, dict[str, Any]]:
    """Return {key of a scorer's dictionaries, None for the scorer: {metric: options}}."""
    by_key: dict[str | None, dict[str, Any]] = (
        {None: _options_by_metric(declared)} if isinstance(declared, list) else {}
    )
    for part in objects_in(declared) if isinstance(declared, list) else objects_in([declared]):
        by_key |= {key: _options_by_metric(metrics) for key, metrics in part.items() if isinstance(metrics, list)}
    return by_key


def _same_judge(scorers: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    alike: dict[tuple[str, str], list[str]] = {}
    for name, row in scorers.items():
        options = json.dumps(row.get("options"), sort_keys=True, default=str)
        alike.setdefault((bare(str(row.get("name"))), options), []).append(name)
    return {name: tuple(other for other in names if other != name) for names in alike.values() for name in names}


def _options_by_metric(metrics: Any) -> dict[str, Any]:
    """Return {metric's name: its options} from a log's list of metrics."""
    rows = [row for row in objects_in(metrics) if isinstance(row.get("name"), str)]
    return {bare(row["name"]): object_of(row.get("options"), "options of a metric", Faults()) for row in rows}


def _score_rows(results: Mapping[str, Any], faults: Faults) -> list[ScoreRow]:
    rows = results.get("scores")
    if rows is None and isinstance(results.get("scorer"), dict):  # one scorer, as the first version had it
        old = results["scorer"]
        rows = [old | {"scorer": old.get("name"), "metrics": results.get("metrics") or old.get("metrics") or {}}]
    if not isinstance(rows, list):
        if rows is not None:
            faults[f"results.scores is {kind_of(rows)}, not a list"] += 1
        return []
    out = []
    for row in rows:
        name = _text(row.get("name")) if isinstance(row, dict) else ""
        if name:
            scorer, reducer = _text(row.get("scorer"), name), _text(row.get("reducer")) or None
            out.append(ScoreRow(name, scorer, reducer, _metrics(row.get("metrics"), faults)))
        else:
            faults["a row of results.scores has no name"] += 1
    return out


def _metrics(metrics: Any, faults: Faults) -> dict[str, NativeMetric]:
    if isinstance(metrics, list):
        if metrics:
            faults["metrics of results.scores is a list, not an object"] += 1
        metrics = {str(metric.get("name")): metric for metric in metrics if isinstance(metric, dict)}
    out = {}
    for key, metric in object_of(metrics, "metrics of results.scores", faults).items():
        if not isinstance(metric, dict):
            metric = {"value": metric}
        value = unwrapped(metric.get("value"))
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            if value is not None:
                faults[f"the value of metric {key} is {kind_of(value)}, not a number"] += 1
            value = math.nan
        metadata = metric.get("metadata")
        out[str(key)] = NativeMetric(
            name=str(metric.get("name") or key),
            value=_float(value),
            group=_text(metric.get("group")) or None,
            params=object_of(metric.get("params"), f"params of metric {key}", faults),
            metadata=metadata if isinstance(metadata, dict) else None,
        )
    return out


def unwrapped(value: Any) -> Any:
    """Return the only item of a list of one, and any other value unchanged."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def objects_in(value: Any) -> list[dict[str, Any]]:
    """Return the dictionaries in a list, [] for a value that is not a list."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def object_of(value: Any, what: str, faults: Faults) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    if value is not None:
        # an empty list is what R makes of an empty object
        faults[f"{what} is {kind_of(value)}, not an object"] += 1
    return {}


def _text(value: Any, default: str = "") -> str:
    value = unwrapped(value)
    return value if isinstance(value, str) else default


def _utc(text: str) -> str:
    """Convert an ISO date to UTC as sortable text, "" if it is not a date.

    Without a zone it is UTC, as Inspect takes it.
    """
    try:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return ""


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def kind_of(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "missing"}
    return names.get(type(value), "a number")


CUT_TEXT = "(content truncated)"
CUT_OBJECT = "Key removed from summary (> 1k)"
UNCHANGED = "UNCHANGED"
"""The word of an edit for a value that it leaves as it was."""
MEDIA = re.compile(r"\((Image|Audio|Video|Document|Data|Reasoning|Tool_use)\)")


USAGE = ("model_usage", "role_usage", "total_time", "working_time", "error", "message_count", "metadata")
"""Keys of a sample for its usage. They are also the first parts of a measure's name."""


@dataclass(slots=True)
class SampleQuestion:
    """All that one sample asks, in the form in which it is compared and shown."""

    epoch: int
    metadata: Mapping[str, Any]
    input: str = ""
    """Hash."""
    target: str = ""
    """Hash of the target and the choices."""
    text: str = ""
    """To be shown."""
    has_choices: bool = False
    cut: bool = False
    """True if the input or the target is shortened here, as in summaries."""
    whole: tuple[str, str] | None = None
    """Input and target as text, where they are asked for."""


class Keep(NamedTuple):
    """Parts of the samples to keep, besides their scores."""

    whole: bool = False
    """The questions' whole text."""
    usage: bool = False
    """Tokens, times, and the metadata of each answer."""
    apart: bool = False
    """The texts of single answers, too, which may be the repeats of those of other logs."""
    edits: bool = False
    """True to keep the scores from before a person edited them."""


_REASONS = {
    "grader_failed": "verifier",
    "scoring_failed": "verifier",
    "refusal": "refused",
    "no_response": "unanswered",
}
"""The words of Inspect's scorers for an answer that they do not score (`Score.unscored`) → our cause."""


NOTHING_MORE = Keep()
_NONE: Mapping[str, Any] = {}
"""Shared by most answers, which have none."""


@dataclass(slots=True)
class SampleAnswer:
    """One answer, as its sample or the summary of it has it."""

    scores: dict[Any, Any]
    """Scorer → value. In the first version of logs the scorer has no name."""
    invalid: bool
    cause: str
    """The reason for a missing score, "" if the sample gives none."""
    mark: bytes
    """The answer's mark, by which it is recognised (see `identity.mark`)."""
    text: int
    """A hash of the answer (see `answer_hash`), 0 if the answer is unknown, as in a summary."""
    votes: Mapping[str, list[Any]]
    """Scorer → the votes of its panel."""
    edited: Mapping[str, tuple[Any, Any]]
    """Scorer → the score before a person edited it and the person's score, if they are kept."""
    usage: Mapping[str, Any]
    """The sample's tokens and times (`USAGE`), if they are kept."""
    unread: tuple[Any, ...]
    """Scorers that name no answer that they have read."""
    reasons: Mapping[str, str]
    """Scorer → the cause for which it gave no score, if it gives one."""

    def why(self, scorer: str) -> str:
        """Return the cause that a scorer gave for a missing score, "" if none."""
        return self.reasons.get(scorer) or self.cause


@dataclass(slots=True)
class SampleAnswers:
    """Every sample of a log, only the last attempt of a retried one. N answers to n questions."""

    keep: Keep = NOTHING_MORE
    rows: dict[tuple[str, int], SampleAnswer] = field(default_factory=dict)
    """By id and epoch."""
    questions: dict[str, SampleQuestion] = field(default_factory=dict)
    """id → the question as the first of its samples has it."""
    faults: Faults = field(default_factory=Faults)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def lacks_usage(self) -> bool:
        """True if usage is wanted, and these are summaries of an Inspect that did not write it there."""
        measures = [{"model_usage", "total_time"} & row.usage.keys() for row in self.rows.values()]
        return self.keep.usage and bool(measures) and not any(measures)

    def places(self) -> tuple[Sequence[Any], Sequence[int] | None]:
        """Return (N,) question ids and (N,) epochs of the answers, None if in order of repeats.

        Subclasses give no epochs where the k-th answer to a question is its repeat k.
        """
        return [key for key, _ in self.rows], [epoch for _, epoch in self.rows]

    def question(self, key: str, at: int) -> SampleQuestion:
        """Return the question with this id. `at` is the index of its first answer."""
        return self.questions[key]

    def column(self, scorer: str | None) -> list[Any] | None:
        """Return (N,) values of a scorer, None per missing one. None if no answer has the scorer."""
        all_scores = [row.scores for row in self.rows.values()]
        return [scores.get(scorer) for scores in all_scores] if any(scorer in scores for scores in all_scores) else None

    def scorers(self) -> list[str]:
        """Return the names of the scorers that gave any value."""
        rows = [row.scores.items() for row in self.rows.values()]
        return list(dict.fromkeys(name for row in rows for name, value in row if value is not None))

    def extend(self, samples: Iterable[Any]) -> None:
        """Add samples or summaries from JSON, but none cut off by a cancellation. Refuse one without id or epoch.

        Raises:
            NotALogError: one has no id or no epoch, so that it is not known what it answers.
        """
        for sample in samples:
            if not isinstance(sample, dict):
                raise NotALogError(f"schema: sample {len(self) + 1} is {kind_of(sample)}, not an object")
            if interrupted(sample.get("error"), sample.get("scores")):
                continue
            name, epoch = self._identity(sample)
            self.rows[name, epoch] = self._answer(name, epoch, sample)
            question = self.questions.get(name)
            if question is None or question.epoch == epoch:
                self.questions[name] = self._question(epoch, sample)

    def append(self, other: SampleAnswers) -> None:
        """Add another shard's samples, which replace those with the same id and epoch."""
        self.rows |= other.rows
        self.questions = other.questions | self.questions

    def _identity(self, sample: Mapping[str, Any]) -> tuple[str, int]:
        key, epoch = sample.get("id"), sample.get("epoch")
        if type(key) is str and type(epoch) is int:
            return intern(key), epoch
        key, epoch = unwrapped(key), unwrapped(epoch)
        if isinstance(key, bool) or not isinstance(key, (str, int, float)):
            raise NotALogError(f"schema: the id of sample {len(self) + 1} is {kind_of(key)}")
        if isinstance(epoch, str) and epoch.strip().isdecimal() and len(epoch) < 10:
            self.faults["the epoch of a sample is a text"] += 1
            epoch = int(epoch)
        if isinstance(epoch, bool) or not isinstance(epoch, (int, float)) or epoch != epoch // 1:
            raise NotALogError(f"schema: the epoch of sample {key} is {kind_of(epoch)}")
        if isinstance(key, float) and key.is_integer():
            key = int(key)
        return intern(str(key)), int(epoch)

    def _answer(self, name: str, epoch: int, sample: Mapping[str, Any]) -> SampleAnswer:
        if "score" in sample and "scores" not in sample:
            by_scorer: Mapping[Any, Any] = {None: sample["score"]}
        else:
            by_scorer = object_of(sample.get("scores"), "scores of a sample", self.faults)
        scores, votes, edits, usage = dict(by_scorer), {}, {}, _NONE
        reasons, blank = dict[str, str](), []
        for scorer, score in by_scorer.items():
            if isinstance(score, dict):
                scores[scorer] = score.get("value")
                answer = score.get("answer")
                blank += [] if type(answer) is str and answer.strip() else [scorer]
                reason = score.get("reason") or lookup(score.get("metadata"), "unscored_reason")
                if isinstance(reason, str) and reason in _REASONS:
                    reasons[scorer] = _REASONS[reason]
                if (metadata := score.get("metadata")) is not None:
                    votes[scorer] = lookup(metadata, "panel", "votes")
                if self.keep.edits:
                    edits[scorer] = _edit(score.get("history"))
            elif score is not None:
                self.faults[f"a score of {scorer} is {kind_of(score)}, not an object"] += 1
        if self.keep.usage:
            usage = {name: sample[name] for name in USAGE if name in sample}
            usage |= {"error": None} if sample.get("scores") else {}
        return SampleAnswer(
            scores=scores,
            invalid=sample.get("invalidation") is not None,
            cause="infrastructure" if sample.get("error") else "limit" if sample.get("limit") else "",
            mark=mark(name, epoch, sample),
            text=answer_hash(sample),
            votes={scorer: each for scorer, each in votes.items() if isinstance(each, list)} or _NONE,
            edited={scorer: edit for scorer, edit in edits.items() if edit is not None} or _NONE,
            usage=usage,
            unread=tuple(blank),
            reasons=reasons or _NONE,
        )

    def _question(self, epoch: int, sample: Mapping[str, Any]) -> SampleQuestion:
        prompt, target, choices = (sample.get(name) for name in ("input", "target", "choices"))
        for name, value in (("input", prompt), ("target", "" if target is None else target)):
            if not isinstance(value, (str, list)):
                self.faults[f"the {name} of a sample is {kind_of(value)}"] += 1
        text = input_text(prompt if isinstance(prompt, list) else as_text(prompt))
        target = list(map(as_text, target)) if isinstance(target, list) else as_text(target)
        return SampleQuestion(
            epoch=epoch,
            input=content_hash(text),
            target=content_hash(_answer(target, choices if isinstance(choices, list) else ())),
            text=" ".join(text[:400].split())[:200],
            metadata=object_of(sample.get("metadata"), "metadata of a sample", self.faults),
            has_choices=isinstance(choices, list),
            cut=_is_cut(prompt) or _is_cut(target),
            whole=(text, target_text(target)) if self.keep.whole else None,
        )

    def same_questions(self) -> list[list[tuple[str, int]]]:
        """Return lists of (id, epoch) of questions with several answers (`apart`: all), differing scores first.

        Questions of one answer are among them if `keep.apart`.
        """
        of: dict[str, list[tuple[str, int]]] = {}
        for answer in self.rows:
            of.setdefault(answer[0], []).append(answer)
        several = [answers for answers in of.values() if len(answers) > 1 or self.keep.apart]
        return sorted(several, key=lambda answers: _alike([self.rows[answer].scores for answer in answers]))

    def differently_graded(self, answers: Sequence[tuple[str, int]]) -> bool:
        """Return True if two of these answers have the same text but different scores by one scorer."""
        by_verdict: dict[tuple[int, str], list[Any]] = {}
        for row in map(self.rows.__getitem__, answers):
            for scorer, value in row.scores.items():
                if row.text and value is not None:
                    by_verdict.setdefault((row.text, scorer), []).append(value)
        return not all(map(_alike, by_verdict.values()))

    def named(self, rows: Sequence[ScoreRow]) -> None:
        """Give the scorer that samples store without a name that of the first score row, "" without rows."""
        for row in self.rows.values():
            if None in row.scores:
                row.scores[rows[0].name if rows else ""] = row.scores.pop(None)


class HandedOver(SampleAnswers):
    """The scores that Inspect hands to its results function, of which nothing else is known."""

    def __init__(self, scores: Sequence[Mapping[Any, SampleScore]]) -> None:
        """Keep the scores of each answer, by scorer. Answers without an id are left out."""
        super().__init__()
        scorer = next(iter(scores[0]), None) if scores else None
        self._first: tuple[Any, list[Any]] = (scorer, [])
        """The first scorer and its values, if all answers have it: read with the ids, while they are at hand."""
        try:  # most answers have the same scorers
            of_scorer = map(itemgetter(scorer), scores)
            both = [part for score in of_scorer for part in (score.sample_id, score.score.value)]
            ids, self._first = both[::2], (scorer, both[1::2])
        except (KeyError, AttributeError):
            ids = [next(iter(row.values())).sample_id if row else None for row in scores]
        self.ids, self.scores = ids, scores
        if type(None) in set(map(type, ids)):  # in half the time of `None in ids`
            self.ids = [key for key in ids if key is not None]
            self.scores = [row for row, key in zip(scores, ids, strict=True) if key is not None]

    def __len__(self) -> int:
        return len(self.ids)

    def places(self) -> tuple[Sequence[Any], Sequence[int] | None]:
        return self.ids, None

    def question(self, key: str, at: int) -> SampleQuestion:
        score = next(iter(self.scores[at].values()))
        return SampleQuestion(1, score.sample_metadata or {})

    def column(self, scorer: str | None) -> list[Any] | None:
        first, values = self._first
        if scorer == first and values and len(values) == len(self.scores):
            return values
        if not any(scorer in row for row in self.scores):
            return None
        with suppress(KeyError, AttributeError):  # most answers have all scorers
            return [row[scorer].score.value for row in self.scores]
        return [None if (score := row.get(scorer)) is None else score.score.value for row in self.scores]


def _alike(values: Sequence[Any]) -> bool:
    return all(value == values[0] for value in values)


def _edit(history: Any) -> tuple[Any, Any] | None:
    """Return (score before, score after) a person's signed edits. None without such an edit.

    A signed edit has a provenance, which says who made it.

    An edit that leaves the value unchanged without giving it, of an explanation for example, is none of a score.
    """
    before, edits = None, []
    for row in objects_in(history):
        if row.get("value", UNCHANGED) == UNCHANGED:
            continue
        if row.get("provenance") is not None:
            edits.append(row["value"])
        elif not edits:
            before = row["value"]
    return (before, edits[-1]) if edits else None


def answer_hash(sample: Mapping[str, Any]) -> int:
    """Return a 64-bit hash of the answer's text without reasoning, 0 for an error, tool calls or an empty answer.

    0 where a judge may have seen more than the text, or none of it: an empty answer, an error, an agent with tools.
    """
    output, messages = sample.get("output"), sample.get("messages")
    if not isinstance(output, dict) or sample.get("error"):
        return 0
    said = [*objects_in(messages), *objects_in([row.get("message") for row in objects_in(output.get("choices"))][:1])]
    turns = [message for message in said if message.get("role") in ("assistant", "tool")]
    if any(message.get("role") == "tool" or message.get("tool_calls") for message in turns):
        return 0
    texts = ["\n".join(_texts(message, without="reasoning")) for message in turns]
    return text_hash("\x1f".join(dict.fromkeys(texts))) if texts and texts[-1].strip() else 0


def graded_hash(sample: Mapping[str, Any]) -> int:
    """Return a hash of answer text, target and choices: all that a scorer sees. 0 if unknown."""
    text = answer_hash(sample)
    if not text:
        return 0
    target, choices = sample.get("target"), sample.get("choices")
    target = list(map(as_text, target)) if isinstance(target, list) else as_text(target)
    seen = [text, target_text(target), choices if isinstance(choices, list) else []]
    return text_hash(json.dumps(seen, sort_keys=True, default=str))


def interrupted(error: Any, scores: Any) -> bool:
    """Return True if a sample has no scores because it was cut off when its run was cancelled.

    It is then no answer that lacks a score.

    Args:
        error: of the sample, or its message, as summaries have it.
        scores: of the sample.
    """
    message = error.get("message") if isinstance(error, dict) else getattr(error, "message", error)
    return not scores and isinstance(message, str) and message.startswith("CancelledError(")


def input_text(value: str | list[Any]) -> str:
    """Return a sample's input as one text. A single user message is its content, others get their role."""
    if isinstance(value, str):
        return value
    messages = [message if isinstance(message, dict) else {"content": str(message)} for message in value]
    if len(messages) == 1 and messages[0].get("role", "user") == "user":
        return "\n".join(_texts(messages[0]))
    return "\n".join("\n".join([f"{message.get('role')}:", *_texts(message)]) for message in messages)


def _texts(message: Mapping[str, Any], without: str = "") -> list[str]:
    """Return the parts of a chat message as texts (others as JSON), without parts of type `without`.

    What is not text comes as JSON.
    """
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else [] if content is None else [content]
    return [_part_text(part) for part in parts if not isinstance(part, dict) or part.get("type") != without]


def _part_text(part: Any) -> str:
    if isinstance(part, dict):
        if part.get("type") == "text" and isinstance(part.get("text"), str):
            return str(part["text"])
        # what Inspect writes for a field without a value differs between its versions
        part = {key: value for key, value in part.items() if value is not None}
    return json.dumps(part, sort_keys=True)


def as_text(value: Any) -> str:
    """Return text unchanged, None as "", and any other value as JSON."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, sort_keys=True)


def target_text(target: str | list[str]) -> str:
    """Return a target as text: the only one of a list as it is, several as JSON."""
    if isinstance(target, str):
        return target
    return target[0] if len(target) == 1 else json.dumps(target)


def _answer(target: str | list[str], choices: Sequence[Any]) -> str:
    """Return the right answer's text and all choices as sorted JSON, or the target without choices, to compare.

    Many questions have the same words and the same letter.
    """
    if not choices:
        return target_text(target)
    texts = list(map(as_text, choices))
    letters = dict(zip(ascii_uppercase, texts, strict=False))
    named = sorted(letters.get(text, text) for text in ([target] if isinstance(target, str) else target))
    return json.dumps([named, sorted(texts)], ensure_ascii=False)


def _is_cut(value: Any) -> bool:
    """Return True if a summary shows an input or target cut short, or media as a placeholder."""
    rows = value if isinstance(value, list) else [value]
    texts = (text for row in rows for text in (_texts(row) if isinstance(row, dict) else [str(row)]))
    return any(text.endswith(CUT_TEXT) or MEDIA.fullmatch(text) for text in texts)


def is_cut_value(value: Any) -> bool:
    """Return True if a metadata value was cut short in a summary."""
    # the text before the dots may be short: the cut is before a word that does not fit
    return isinstance(value, str) and (value == CUT_OBJECT or value.endswith("..."))
