"""The meaning of a table's columns, found by evidence or named by the user, and the notes that explain it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from harness_noise.arrays import FloatArray
from harness_noise.data.clusters import AUTO
from harness_noise.data.measures import OF_REPEATS, numeric_fields
from harness_noise.data.notes import Note
from harness_noise.data.scores import ReadOptions
from harness_noise.data.units import is_proportion
from harness_noise.errors import InputError, counted, parameter

from .blocks import Block
from .evidence import AskError, RefuseError, Roles, judge
from .evidence.lexicon import WORDS
from .evidence.neighbours import agreement_of
from .evidence.questions import says_failure
from .evidence.table import SEEN, ColumnFacts, TableFacts
from .evidence.together import scored_together
from .fields import mentioned
from .opening import Record, Rows, stem
from .presets import ANY, OFF, Cause, Getter, getter
from .values import cell_text, score_of

MOST_COUNTED = 50_000_000
"""The most answers that the counts of one file may give: 400 MB of scores."""
NAMES = ("question", "score", "task", "metric", "scorer", "model", "repeat", "cluster")
"""Our columns."""
WIDE = {"models": "model", "metrics": "metric"}
"""The words in `columns` for a wide table's columns, and the column that each makes."""
ANSWERS = ("target", "response")
"""The words in `columns` for the columns with the right answer and with what the model said."""
MISSING = "missing"
"""The word in `columns` for the column that says why an answer has no score. A row with such a reason has no score."""
NEEDED = ("question", "score")
_CAUSE = re.compile(r"(?<![a-z])(seed|prompt|template|instruction|phrasing|judge|shot|few_?shot)s?(?![a-z])")
"""Words for what moves the answers to all questions together."""
HEAD = SEEN
"""Rows that are looked at to learn what the columns of a file are."""
CELL, NAME = "\x1fscore", "\x1fname"
"""The names of the columns of scores and of their names that a wide table gets."""
_KINDS = {"models": "model", "metrics": "metric", "repeats": "repeat"}


@dataclass(slots=True)
class TableColumns:
    """The columns of the file, by the role that each has for us."""

    names: dict[str, str]
    """Our name → the file's."""
    unused: list[str]
    roles: Roles
    chosen: tuple[str, ...] = ()
    """The file's columns that the user named."""
    wording: str | None = None
    """The column whose words verify that two runs mean the same question: the question itself or a prompt."""
    target: str = ""
    answer: str = ""
    """The columns with the right answer and the model's, where there are such."""
    specs: dict[str, Getter] = field(default_factory=dict)
    """Columns that do not exist in the file but are a path or a template of its columns."""
    wide: dict[str, str] = field(default_factory=dict)
    """Column of scores → its name, in a table with several."""
    names_are: str = ""
    """The role that the names in a wide table have."""
    numeric: tuple[str, ...] = ()
    """The columns of numbers that are none of ours, by the first rows."""
    certificate: str = ""
    together: Sequence[str] = ()
    """The columns that are not used, and whose groups of questions are right or wrong together."""

    @property
    def question(self) -> str:
        return self.names["question"]

    def causes(self) -> list[Cause]:
        """Return at most one rule: errors or statuses in a column explain missing scores (all rows if user-named)."""
        column = self.roles.cause
        if column is None:
            return []
        texts = column.last in WORDS["causes"]["texts"]
        failed: Any = ANY if texts else [cell for cell in column.distinct if says_failure(cell)]
        if not failed:
            return []
        return [Cause("agent", {column.name: failed}, if_empty=column.name not in self.chosen)]

    @property
    def count(self) -> str | None:
        """Name of the column that says out of how many answers the score is the share that was right, else None."""
        return None if self.roles.count is None else self.roles.count.name

    @classmethod
    def of(cls, path: Path | Rows, head: Block, chosen: Mapping[str, str], options: ReadOptions) -> TableColumns:
        """Return what columns hold, by first rows and the user's choices. Raise AskError or RefuseError if unclear.

        Args:
            path: the file, for messages.
            head: its first rows.
            chosen: ours → what the user named.
            options: SPECs of clusters, fields and measures speak of further columns.

        Raises:
            InputError: a column that the user named is not there, or the evidence does not tell which is which.
        """
        have = head.names
        known = [*NAMES, *ANSWERS, *WIDE, MISSING]
        if unknown := [name for name in chosen if name not in known]:
            raise InputError(f"`columns` {unknown[0]}=…: accepted names are {', '.join(known)}, rows")
        off = [ours for ours, theirs in chosen.items() if theirs == OFF and OFF not in have and ours not in NEEDED]
        chosen = {ours: theirs for ours, theirs in chosen.items() if ours not in off}
        specs = _specs(path, head, have, chosen)
        spoken = (*specs, *options.fields, *options.usage, *([options.cluster] if options.cluster else []))
        ignored = [name for name in have if mentioned(name, spoken)]
        if options.over in have and len({*map(cell_text, head.column(options.over))}) > 1:
            chosen |= {"over": options.over}
        parts = [part for name in options.measures for part in name.split("/")]
        within = any(map(OF_REPEATS.fullmatch, parts))  # who asks for pass@k knows what the answers are
        try:
            table = TableFacts.of(head.filled(specs))
            roles = judge(table, chosen, off, ignored, factors=bool(options.factors), within=within)
        except (AskError, RefuseError) as error:
            raise error.at(path) from None
        found = cls._of_roles(head, have, roles, specs, chosen)
        bare = options.cluster is None and "cluster" not in roles.named
        return replace(found, together=scored_together(table, roles, found.unused) if bare else [])

    @classmethod
    def _of_roles(
        cls,
        head: Block,
        have: Sequence[str],
        roles: Roles,
        specs: dict[str, Getter],
        chosen: Mapping[str, str],
    ) -> TableColumns:
        assert roles.question is not None
        wide = dict(zip((column.name for column in roles.score), roles.names, strict=True)) if roles.names else {}
        named = {name: column for name, column in roles.named.items() if not (name == "repeat" and roles.count)}
        names = {"question": roles.question.name, "score": CELL if wide else roles.score[0].name}
        names |= {ours: column.name for ours, column in named.items()}
        if wide:
            names[_KINDS[roles.kind]] = NAME
        mine = [*roles.score, roles.question, *named.values()]
        specs |= {column.name: partial(_nested_value, column.keys) for column in mine if len(column.keys) > 1}
        others = [roles.gold, roles.pred]
        specs |= {one.name: partial(_nested_value, one.keys) for one in others if one is not None and len(one.keys) > 1}
        used = {
            *names.values(),
            *wide,
            *roles.also,
            *(column.name for column in (roles.count, roles.cause) if column is not None),
        }
        wording = _wording(roles, "question" in chosen)
        used |= {wording or "", *(column.name for column in others if column is not None)}
        inside = {column.keys[0] for column in (*mine, *others, roles.cause) if column is not None}
        unused = [name for name in have if name not in used | inside and not mentioned(name, tuple(specs))]
        target, answer = ("" if column is None else column.name for column in others)
        return cls(
            names,
            unused,
            roles,
            tuple(chosen.values()),
            wording=wording,
            target=target,
            answer=answer,
            specs=specs,
            wide=wide,
            names_are=_KINDS[roles.kind] if wide else "",
            numeric=tuple(name for name in numeric_fields(head.cut(0, 1).rows[0]) if name in unused),
            certificate=certificate(roles, len(head), wording),
        )

    @property
    def right_or_wrong(self) -> bool:
        """True if the scores are shares of right answers, as a count column or the score column's name shows."""
        return self.count is not None or any(is_proportion(name) for name in (*self.wide, self.names["score"]))

    @property
    def cause(self) -> str | None:
        """Name of the repeat column if that is a word such as prompt or seed, which all questions share, else None."""
        name = self.names.get("repeat", "")
        return name if _CAUSE.search(name.lower()) else None

    def counted(self, path: Path | Rows, line: int, record: Record) -> tuple[int, int]:
        """Return (number right, number of answers) of a row with a share and a count. Refuse what is no such pair."""
        name, of = self.names["score"], str(self.count)
        share, count = (score_of(path, line, column, record.get(column)) for column in (name, of))
        right = share * count
        if count != count or count < 1 or count != round(count) or not 0 <= share <= 1:
            raise InputError(f"{path}, line {line}: {name} must be a share in [0, 1] of {of} ≥ 1 answers")
        if abs(right - round(right)) > 1e-6 * max(1.0, count):
            raise InputError(
                f"{path}, line {line}: {share:g} of {count:g} answers is no whole number of right answers. Give one "
                "row for each answer instead"
            )
        return round(right), round(count)

    def note(self, path: Path | Rows, specs: Sequence[str] = (), *, repeated: bool) -> Note:
        """Return the note that tells the user which column was read as what, and which were not used."""
        text = f"{path.name}: {self.certificate}"
        if self.roles.kind == "list":
            text += f"; the items of a list in {self.names['score']} are the repeats of its question, in order"
        elif repeated and "repeat" not in self.names and self.count is None:
            text += "; rows of one question are its repeats, in order"
        unused = [name for name in self.unused if AUTO not in specs and not mentioned(name, specs)]
        return Note("read_as", text + (f"; not used: {', '.join(unused)}" if unused else ""))

    def clusters_note(self, specs: Sequence[str]) -> list[Note]:
        """Return a note on the columns that may be clusters which the user has not asked for, [] without one."""
        found = [name for name in self.together if not mentioned(name, specs)]
        if not found:
            return []
        asked = " or ".join(parameter("cluster", name) for name in found[:3])
        said = f"questions with one {found[0]} score alike. If they share a text or a template, ask with {asked}"
        return [Note("natural_clusters", said)]


def _specs(path: Path | Rows, head: Block, have: Sequence[str], chosen: Mapping[str, str]) -> dict[str, Getter]:
    """Return {path or template that the user named: function of a row}. Refuse a name that no row has.

    Such a name is a path, or a template of columns.

    Raises:
        InputError: no row has it.
    """
    specs: dict[str, Getter] = {}
    for ours, theirs in chosen.items():
        for name in theirs.split("+") if ours in WIDE else [theirs]:
            if name in have:
                continue
            specs[name] = get = getter(name)
            if all(get(record) is None for record in head.rows):
                raise InputError(
                    f"{path}: `columns` {ours}={name}: no such column. There are {', '.join(have)}. For one "
                    f"file only, type {parameter('columns', {f'{stem(path)}:{ours}': 'COLUMN'})}"
                )
    return specs


def _nested_value(keys: Sequence[str], record: Any) -> Any:
    """Return the value under nested keys of a row's dictionaries, None if a key is missing."""
    for key in keys:
        if not isinstance(record, Mapping) or key not in record:
            return None
        record = record[key]
    return record


def _wording(roles: Roles, vouched: bool) -> str | None:
    """Return the name of the column (question or prompt) whose varied texts show that runs ask the same, else None."""
    question = roles.question
    assert question is not None
    several = len(question.distinct)
    beside = [] if vouched else [column for column in roles.words if column is not question]
    for column in (question, *beside):
        if column.is_worded and 2 * len(column.distinct) > several:  # an instruction that all share says nothing
            return column.name
    return None


def certificate(roles: Roles, n: int, wording: str | None) -> str:
    """Return the sentence that tells the user which columns were taken as score, question and so on, and why."""
    score, question = roles.score[0], roles.question
    assert question is not None
    if roles.names:
        names = ", ".join(column.name for column in roles.score[:4])
        names += f" and {len(roles.score) - 4} more" if len(roles.score) > 4 else ""
        parts = [f"scores: {names}, each of a {_KINDS[roles.kind]}, {_range(score)}"]
    else:
        also = f" (= {', '.join(roles.also)})" if roles.also else ""
        parts = [f"score: {score.name}{also}, {_range(score)}"]
    if roles.count is not None:
        parts[0] += f", {roles.count.name} as the number of answers (their order is unknown)"
    if n == SEEN:
        parts[0] += f" (of the first {n:,} rows)"
    parts.append(f"question: {question.name}")
    if wording is not None and wording != question.name:
        parts[-1] += f", its words: {wording}"
    parts += [ours if column.name == ours else f"{ours}: {column.name}" for ours, column in roles.named.items()]
    if (agreement := _agreement(roles)) is not None:
        parts.append(agreement)
    return "; ".join(parts)


ODD_VALUES, ODD_SHARE = 3, 0.1
"""So few values, of so small a share of the rows, are named as odd."""


def _range(column: ColumnFacts) -> str:
    """Return a phrase that describes a score column's values: `0/1, 57% ones` or `1 to 5, 5 distinct`."""
    if column.kind == "scores":
        return f"lists, mean {column.mean:.3g}"
    values = column.numbers[~np.isnan(column.numbers)]
    if not values.size:
        return "empty"
    if column.scale == "01":
        text = f"0/1, {values.mean():.0%} ones"
    else:
        text = f"{values.min():g} to {values.max():g}, {len(np.unique(values)):,} distinct{_outliers(values)}"
    return text + _words_without_score(column)


def _outliers(values: FloatArray) -> str:
    """Return a phrase on the few scores outside 0 to 1 where nearly all lie inside, else an empty text."""
    found, counts = np.unique(values[(values < 0) | (values > 1)], return_counts=True)
    if not 0 < len(found) <= ODD_VALUES or counts.sum() > ODD_SHARE * len(values):
        return ""
    named = ", ".join(f"{value:g} ({counted(int(n), 'row')})" for value, n in zip(found, counts, strict=True))
    return f", all from 0 to 1 but {named}"


def _words_without_score(column: ColumnFacts) -> str:
    """Return a phrase on how many rows hold a word such as NaN or n/a instead of a score, else an empty text."""
    cells = [column.raw[i] for i in np.flatnonzero(column.codes < 0).tolist()]
    texts = ["NaN" if isinstance(cell, float) else cell.strip() for cell in cells if isinstance(cell, (str, float))]
    words = [text for text in texts if text]
    return f", {counted(len(words), 'row')} without a score: {', '.join(dict.fromkeys(words))}" if words else ""


def _agreement(roles: Roles) -> str | None:
    """Return words on the share of rows whose answer equals the right one, None if unknown, 0 or no such scores."""
    gold, pred, score = roles.gold, roles.pred, roles.score[0]
    if gold is None or pred is None or roles.names or gold.is_worded:
        return None
    agreement = agreement_of(gold, pred)
    if np.isnan(agreement).all():
        return None
    same = float(np.nanmean(agreement))
    return f"{gold.name} and {pred.name} agree in {same:.0%}" if score.scale in ("01", "unit") and same > 0 else None


def aliases(ours: str) -> list[str]:
    """Return the column names by which files may call one of this tool's columns, such as `question`."""
    words = WORDS[ours]
    return [*words["ids"], *words["last_resort"]] if ours == "question" else list(words["exact"])
