"""What a log's samples hold, as far as the noise needs it: ids, epochs, scores, and what was asked.

It is made of plain JSON, of samples or of their summaries. Where ids or epochs cannot be told the log is
refused; what else is not as Inspect's schema has it is counted in `Faults`. Nothing of the conversations
is looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any

from harness_noise.data.questions import content_hash

from .header import Faults, NotALogError, ScoreRow, kind_of, object_of, one
from .identity import mark

CUT_TEXT = "(content truncated)"
CUT_OBJECT = "Key removed from summary (> 1k)"
MEDIA = re.compile(r"\((Image|Audio|Video|Document|Data|Reasoning|Tool_use)\)")


@dataclass(slots=True)
class Question:
    """What one sample asks, in the form in which it is compared and shown."""

    epoch: int
    input: str
    """Hash."""
    target: str
    """Hash of the target and the choices."""
    text: str
    """To be shown."""
    metadata: Mapping[str, Any]
    has_choices: bool
    cut: bool
    """Whether the input or the target stands here only in part, as summaries have them."""
    whole: tuple[str, str] | None
    """Input and target as text, where they are asked for."""


@dataclass(slots=True)
class Answers:
    """All samples of a log, of those that were run again the last; N of n questions."""

    whole: bool = False
    """Whether to keep the questions' whole text."""
    ids: list[str] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    scores: dict[str | None, list[Any]] = field(default_factory=dict)
    """Scorer → N values, None where it gave none; a scorer without a name is that of the first version."""
    invalid: list[bool] = field(default_factory=list)
    marks: list[bytes] = field(default_factory=list)
    """Which answers they are; see `identity.mark`."""
    questions: dict[str, Question] = field(default_factory=dict)
    """id → the question as the first of its samples has it."""
    faults: Faults = field(default_factory=Faults)
    _names: dict[str, str] = field(default_factory=dict)
    """One text for all repeats of a question."""
    _places: dict[tuple[str, int], int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    def extend(self, samples: Iterable[Any]) -> None:
        """Add samples or their summaries, as their JSON has them.

        Raises:
            NotALogError: one has no id or no epoch, so that it is not known what it answers.
        """
        for sample in samples:
            self._add(sample)

    def _add(self, sample: Any) -> None:
        if not isinstance(sample, dict):
            raise NotALogError(f"schema: sample {len(self) + 1} is {kind_of(sample)}, not an object")
        if interrupted(sample.get("error"), sample.get("scores")):
            return
        key, epoch = one(sample.get("id")), one(sample.get("epoch"))
        if isinstance(key, bool) or not isinstance(key, (str, int, float)):
            raise NotALogError(f"schema: the id of sample {len(self) + 1} is {kind_of(key)}")
        if isinstance(epoch, str) and epoch.strip().isdecimal() and len(epoch) < 10:
            self.faults.add("the epoch of a sample is a text")
            epoch = int(epoch)
        if isinstance(epoch, bool) or not isinstance(epoch, (int, float)) or epoch != epoch // 1:
            raise NotALogError(f"schema: the epoch of sample {key} is {kind_of(epoch)}")
        if isinstance(key, float) and key.is_integer():
            key = int(key)
        name, epoch = self._names.setdefault(str(key), str(key)), int(epoch)
        question = self.questions.get(name)
        place = self._places.setdefault((name, epoch), len(self.ids))
        invalid = sample.get("invalidation") is not None
        if place == len(self.ids):
            self.ids.append(name)
            self.epochs.append(epoch)
            self.invalid.append(invalid)
            self.marks.append(b"")
        else:
            self.invalid[place] = invalid
        self.marks[place] = mark(name, epoch, sample)
        self._score(place, sample)
        if question is None or question.epoch == epoch:
            self.questions[name] = self._question(epoch, sample)

    def _score(self, place: int, sample: Mapping[str, Any]) -> None:
        n = len(self.ids)
        if "score" in sample and "scores" not in sample:
            given: Mapping[Any, Any] = {None: sample["score"]}
        else:
            given = object_of(sample.get("scores"), "scores of a sample", self.faults)
        for scorer in given:
            if scorer not in self.scores:
                self.scores[scorer] = [None] * (n - 1)
        for scorer, column in self.scores.items():
            if len(column) < n:
                column.append(None)
            score = given.get(scorer)
            if isinstance(score, dict):
                column[place] = score.get("value")
            else:
                column[place] = score
                if score is not None:
                    self.faults.add(f"a score of {scorer} is {kind_of(score)}, not an object")

    def _question(self, epoch: int, sample: Mapping[str, Any]) -> Question:
        target, choices = self._target(sample.get("target")), sample.get("choices")
        if not isinstance(choices, list):
            choices = None
        text = self._input(sample.get("input"))
        return Question(
            epoch=epoch,
            input=content_hash(text),
            target=content_hash(_answer(target, choices)),
            text=" ".join(text[:400].split())[:200],
            metadata=object_of(sample.get("metadata"), "metadata of a sample", self.faults),
            has_choices=choices is not None,
            cut=_is_cut(sample.get("input")) or _is_cut(target),
            whole=(text, _target_text(target)) if self.whole else None,
        )

    def _input(self, value: Any) -> str:
        if not isinstance(value, (str, list)):
            self.faults.add(f"the input of a sample is {kind_of(value)}")
            value = "" if value is None else json.dumps(value, sort_keys=True)
        return input_text(value)

    def _target(self, value: Any) -> str | list[str]:
        if isinstance(value, list):
            return [item if isinstance(item, str) else json.dumps(item, sort_keys=True) for item in value]
        if not isinstance(value, str):
            if value is not None:
                self.faults.add(f"the target of a sample is {kind_of(value)}")
            return "" if value is None else json.dumps(value, sort_keys=True)
        return value

    def named(self, rows: Sequence[ScoreRow]) -> None:
        """Give the scorer without a name that of the results."""
        if None in self.scores:
            self.scores[rows[0].name if rows else ""] = self.scores.pop(None)


def interrupted(error: Any, scores: Any) -> bool:
    """Whether a sample was under way when its run was cancelled: it is no answer that lacks a score.

    Args:
        error: of the sample, or its message, as summaries have it.
        scores: of the sample.
    """
    message = error.get("message") if isinstance(error, dict) else getattr(error, "message", error)
    return not scores and isinstance(message, str) and message.startswith("CancelledError(")


def input_text(value: str | list[Any]) -> str:
    """A sample's input as one text: a single user message is its content, others name their role."""
    if isinstance(value, str):
        return value
    messages = [item if isinstance(item, dict) else {"content": str(item)} for item in value]
    if len(messages) == 1 and messages[0].get("role", "user") == "user":
        return "\n".join(_texts(messages[0]))
    return "\n".join("\n".join([f"{item.get('role')}:", *_texts(item)]) for item in messages)


def _texts(message: Mapping[str, Any]) -> list[str]:
    """The parts of a chat message; what is not text as JSON."""
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else [] if content is None else [content]
    return [
        part["text"]
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
        else json.dumps(_without_none(part), sort_keys=True)
        for part in parts
    ]


def _without_none(part: Any) -> Any:
    """What Inspect writes for a field without a value differs between its versions."""
    return {key: value for key, value in part.items() if value is not None} if isinstance(part, dict) else part


def _target_text(target: str | list[str]) -> str:
    if isinstance(target, str):
        return target
    return target[0] if len(target) == 1 else json.dumps(target)


def _answer(target: str | list[str], choices: Sequence[Any] | None) -> str:
    """The target and the choices, in no order: many questions have the same words and the same letter."""
    if not choices:
        return _target_text(target)
    texts = [item if isinstance(item, str) else json.dumps(item, sort_keys=True) for item in choices]
    letters = dict(zip(ascii_uppercase, texts, strict=False))
    named = sorted(letters.get(text, text) for text in ([target] if isinstance(target, str) else target))
    return json.dumps([named, sorted(texts)], ensure_ascii=False)


def _is_cut(value: Any) -> bool:
    """An input or a target that a summary shows only in part; media stand there as one word."""
    if isinstance(value, str):
        return value.endswith(CUT_TEXT)
    for item in value if isinstance(value, list) else ():
        parts = _texts(item) if isinstance(item, dict) else [str(item)]
        if any(text.endswith(CUT_TEXT) or MEDIA.fullmatch(text) for text in parts):
            return True
    return False


def is_cut_value(value: Any) -> bool:
    """A value of the metadata that a summary has cut."""
    # what stands before the dots may be short: the cut falls before a word that does not fit
    return isinstance(value, str) and (value == CUT_OBJECT or value.endswith("..."))
