"""Names that columns may have. The words are data (`lexicon.toml`)."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

WORDS: dict[str, dict[str, Any]] = tomllib.loads((files(__package__) / "lexicon.toml").read_text(encoding="utf-8"))


@cache
def snake(name: str) -> str:
    """Convert a name to snake case: `Question ID`, `question-id` and `questionId` become `question_id`."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name.strip())
    return re.sub(r"[^\w@]+|_+", "_", spaced.lower()).strip("_")


def exact(kind: str, name: str) -> bool:
    """Return True if a column name is in the word list for a kind (`gold`, `pred`, `verdict` and so on)."""
    return name in WORDS[kind].get("exact", ())


def ending(kind: str, name: str) -> str | None:
    """Return the last word of a column name if it marks this kind and other words precede it, else None."""
    return next((end for end in WORDS[kind].get("ends", ()) if name.endswith(f"_{end}")), None)


def is_metric(name: str) -> bool:
    """Return True if a column name is that of a known metric, such as an accuracy or BLEU."""
    return exact("metric", name) or name.startswith(tuple(WORDS["metric"]["starts"]))


def is_measure(name: str) -> bool:
    """Return True if a snake_case name is a score's, ends in a verdict, metric or loss, or starts like `rouge_`."""
    last = name.rpartition("_")[2]
    known = exact("verdict", name) or exact("graded", name) or is_metric(name) or is_metric(last)
    return known or ending("verdict", name) is not None or last in WORDS["metric"]["losses"]


@cache
def is_vetoed(name: str) -> bool:
    """Return True if a snake_case column name has a word that rules it out as a score, such as `max` or `latency`."""
    words = name.split("_")
    while len(words) > 1 and words[-1] in WORDS["veto"]["units"]:
        words = words[:-1]
    return bool({*words} & {*WORDS["veto"]["words"]}) or words[-1] in WORDS["veto"]["ends"]


@cache
def is_gold(name: str) -> bool:
    """Return True if a column name says that the column holds the right answer."""
    return exact("gold", name) or name.startswith(tuple(WORDS["gold"]["starts"]))


@cache
def is_pred(name: str) -> bool:
    """Return True if a column name says that the column holds the model's answer."""
    starts = name.startswith(tuple(WORDS["pred"]["starts"])) and not is_vetoed(name)
    return exact("pred", name) or starts or (ending("pred", name) is not None and not is_gold(name))


@cache
def is_judge(name: str) -> bool:
    """Return True if a column name has a word for a model or person that grades answers."""
    return bool({*name.split("_")} & {*WORDS["judge"]["words"]})


@cache
def is_category(name: str) -> bool:
    """Return True if a column name says that the column sorts a benchmark's questions, by subject or difficulty say."""
    return name.rpartition("_")[2] in WORDS["category"]["ends"]


@cache
def is_condition(name: str) -> bool:
    """Return True if a column name says under which condition (prompt, round) a question was asked."""
    return exact("conditions", name) or name in WORDS["conditions"]["rounds"]


@cache
def _parts(kind: str) -> re.Pattern[str]:
    return re.compile("|".join(WORDS["answer"][kind]), re.IGNORECASE)


def tells_of(kind: str, name: str) -> bool:
    """Return True if a name has a word for answer `parts`, `repeats` or `questions`, whichever `kind` says."""
    return _parts(kind).search(name) is not None


@cache
def is_of_input(column: str) -> bool:
    """Return True if a column holds part of the question besides its text: choices, a passage or the target.

    `answer` does not count, because it may be the right answer or the model's.
    """
    name = column.lower()
    told = tells_of("questions", name) and not (is_vetoed(name) or is_metric(name) or name.endswith("id"))
    return name in WORDS["question"]["beside"] or told or (is_gold(name) and name != "answer")


_SIZE = re.compile(r"(^|[-_. ])\d+(\.\d+)?[bm]($|[-_. ])", re.IGNORECASE)


@cache
def is_model(name: str) -> bool:
    """Return True if a text seems to be the name of a language model, by family name or size."""
    return bool(families_of(name)) or _SIZE.search(name) is not None


@cache
def families_of(name: str) -> frozenset[str]:
    """Return the names of model families in a text: {"gpt"} for `gpt-4o` and `GPT4`."""
    words = re.split(r"[^a-z0-9]+|(?<=[a-z])(?=\d)", name.lower())
    return frozenset({*words, *re.split(r"[^a-z0-9]+", name.lower())} & {*WORDS["families"]["models"]})
