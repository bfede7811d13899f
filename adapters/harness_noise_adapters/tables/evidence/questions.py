"""Columns that name the question, the model, the task and the rest (rules 7, 8, 11 and 12)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness_noise.arrays import BoolArray
from harness_noise.errors import parameter

from .grouping import Pools
from .lexicon import WORDS, is_measure, is_model, is_pred, snake, tells_of
from .scores import ScoreCandidate
from .table import ColumnFacts, TableFacts
from .verdicts import AskError, Choice, RefuseError, Roles

_ROLES = {"model": "model", "task": "task", "metric": "metric_name", "scorer": "scorer", "cluster": "cluster"}


def find_names(table: TableFacts, roles: Roles, off: Sequence[str]) -> None:
    """Store in `roles` the columns of models, tasks, metrics, scorers, clusters. Raise AskError if two could be."""
    for ours, kind in _ROLES.items():
        if ours in roles.named or ours in off:
            continue
        found = table.called(WORDS[kind]["exact"], [*roles.named.values(), roles.question])
        found = [column for column in found if _fits(ours, column, table)]
        own = [column for column in found if column.last == ours]
        if len(own) > 1 and own[0].depth == own[1].depth:
            names = " and ".join(repr(column.name) for column in own)
            raise AskError(ours, f"{names} could each be the {ours}", tuple(Choice({ours: one.name}) for one in own))
        if found:
            roles.named[ours] = (own or found)[0]


def _fits(ours: str, column: ColumnFacts, table: TableFacts) -> bool:
    """Return True if a column's values suit what its name suggests, such as the model or the task."""
    if column.kind in ("object", "list", "scores", "empty"):
        return False
    if not column.is_name and ours != "cluster":
        return False
    if column.depth and column.kind == "number" and column.empty:  # a count in an object of counts
        return False
    several = len(column.distinct)
    if ours == "model":
        own = column.last in ("model", "model_id", "model_name")
        return own or (2 * several <= table.n and not column.is_worded)
    if ours == "task":
        return 2 * several <= table.n or _has_shared_ids(table)
    if ours in ("metric", "scorer"):
        return column.last == ours or (2 * several <= table.n and column.kind == "text")
    return True


def _has_shared_ids(table: TableFacts) -> bool:
    """Return True if a known question id comes in several rows, so that tasks can share questions."""
    words = WORDS["question"]
    return any(len(one.distinct) < table.n for one in table.called([*words["ids"], *words["last_resort"]]))


def find_question(table: TableFacts, roles: Roles, scores: Sequence[ColumnFacts]) -> None:
    """Store in `roles` the question's column: an id, else the text, else the task, or None. Raise AskError if unclear.

    Raises:
        AskError: two could, or its names look like those of models or measures.
    """
    words, used = WORDS["question"], [*roles.named.values(), *scores]
    found = [one for one in table.called(words["ids"], used) if _can_name_questions(one)]
    last = [one for one in table.called(words["last_resort"], used) if _can_name_questions(one)]
    last.sort(key=_are_uuids)
    worded = [one for one in found if one.last in words["worded"] and one.is_worded]
    ids = [one for one in found if one.last not in _LOOSE and one not in worded]
    _ask_of_rival_ids(ids, scores)
    loose = [one for one in found if one.last in _LOOSE and one not in worded]
    by_words = [*worded, *(one for one in table.called(words["words"], used) if _can_name_questions(one))]
    named = _without_gaps(next(iter([*ids, *(last or loose)]), None), [*ids, *last, *loose])
    prompts = [one for one in table.called(words["prompts"], used) if one.kind == "text"]
    roles.words = [*worded, *prompts]
    roles.question = named or next(iter(by_words), None)
    if named is not None and by_words:
        _prefer_words_to_id(table, roles, named, by_words[0], scores)
    if roles.question is not None and roles.question.last in _NAMES:
        _ask_of_odd_names(roles.question, scores)
    task = next(iter(table.called(WORDS["task"]["exact"], used)), roles.named.get("task"))  # if another is the task
    if roles.question is None and task is not None and 1 < len(task.distinct) < table.n:
        roles.question = task
        roles.named = {ours: column for ours, column in roles.named.items() if column is not task}


def _without_gaps(named: ColumnFacts | None, others: Sequence[ColumnFacts]) -> ColumnFacts | None:
    """Return the id column that says the same as `named` and is in every row if `named` is not, else `named`."""
    if named is None or not named.empty:
        return named
    there = named.codes >= 0
    for one in others:
        pairs = {*zip(named.codes[there].tolist(), one.codes[there].tolist(), strict=True)}
        alone = {*one.codes[there].tolist()}.isdisjoint(one.codes[~there].tolist())
        if not one.empty and alone and len(pairs) == len(named.distinct) == len({other for _, other in pairs}):
            return one
    return named


_LOOSE = ("name", "key", "idx", "index")
_NAMES = ("@key", "name", "key")


_MOSTLY = 0.6


def _ask_of_odd_names(keys: ColumnFacts, scores: Sequence[ColumnFacts]) -> None:
    """Raise AskError if the supposed question names look like those of models or metrics, or of groups with a mean."""
    names = [*map(str, keys.distinct)]
    shown = f"({', '.join(names[:3])}, …)"
    alike = {"models": [*map(is_model, names)], "measures": [is_measure(snake(name)) for name in names]}
    for what, found in alike.items():
        if sum(found) < _MOSTLY * len(names):
            continue
        _ask_of_names(keys, scores, f"{shown} look like {what}, but may be questions")
    means = [one for one in scores if one.last in _SHARES and one.scale == "unit" and not one.is_constant]
    if means and len(names) == len(keys.codes):
        _ask_of_names(keys, scores, f"{shown} have one {means[0].name} each, perhaps a mean, but may be questions")


_SHARES = ("accuracy", "acc")
"""Names of scores that are 0 or 1 for one answer."""


def _ask_of_names(keys: ColumnFacts, scores: Sequence[ColumnFacts], what: str) -> None:
    raise AskError(
        "question",
        f"{'the keys of the object' if keys.last == '@key' else keys.name} {what}",
        (Choice({"question": keys.name}),),
        tuple(score.name for score in scores),
    )


def _ask_of_rival_ids(ids: Sequence[ColumnFacts], scores: Sequence[ColumnFacts]) -> None:
    """Raise AskError if several id columns that disagree could each name the question."""
    if not ids or ids[0].last == "question":
        return
    rivals = [one for one in ids if one.depth == ids[0].depth and one.last in WORDS["question"]["equals"]]
    if len(rivals) > 1 and len({tuple(map(str, one.cells)) for one in rivals}) > 1:
        names = " and ".join(repr(one.name) for one in rivals)
        raise AskError(
            "question",
            f"{names} could each be the question",
            tuple(Choice({"question": one.name}) for one in rivals),
            tuple(score.name for score in scores),
        )


def _prefer_words_to_id(
    table: TableFacts, roles: Roles, named: ColumnFacts, words: ColumnFacts, scores: Sequence[ColumnFacts]
) -> None:
    """Make the text the question in `roles` if the id only numbers rows or answers. Raise AskError if unclear.

    Raises:
        AskError: the words may be those of a template, so that it is not known which of both is the question.
    """
    keys = [column for name, column in roles.named.items() if name in ("model", "task", "metric", "scorer")]
    ids, texts = Pools.of([*keys, named], table.n), Pools.of([*keys, words], table.n)
    sure = words.last in WORDS["question"]["worded"]
    if 2 * ids.share_varied(words) > 1 and sure:
        roles.question = words
        return
    if len(ids.counts) < table.n or len(texts.counts) == table.n:
        if _are_shared(table, roles, named, words):
            roles.question = words
        return
    again = len(texts.several)
    even = texts.counts.min() > 1 and texts.counts.max() < 2 * texts.counts.min()
    if sure and (2 * again > len(texts.counts) or _numbers_repeats_evenly(table, keys, words)):
        roles.question = words
    elif sure and again:
        roles.notes.append(
            (
                "same_words",
                f"{again} texts in {words.name!r} have several {named.name!r} each, which are read as different "
                f"questions. If they are repeats, say {parameter('columns', {'question': words.name})}",
            )
        )
    elif (
        not sure and even and texts.counts.max() < len(texts.counts) and _text_identifies_question(table, texts, words)
    ):
        raise AskError(
            "question",
            f"by {named.name!r}, every row is a question of its own, though {len(texts.counts)} texts in "
            f"{words.name!r} come again, so it hardly names the questions",
            (Choice({"question": words.name}), Choice({"question": named.name})),
            tuple(score.name for score in scores),
        )


def _are_shared(table: TableFacts, roles: Roles, named: ColumnFacts, words: ColumnFacts) -> bool:
    """Return True if an id numbers the rows although all models answered the same question texts."""
    model = roles.named.get("model")
    if model is None or len(model.distinct) < 2 or len(named.distinct) < table.n:
        return False
    pairs = {*zip(model.codes.tolist(), words.codes.tolist(), strict=True)}
    return len(pairs) == len(words.distinct) * len(model.distinct)


def _numbers_repeats_evenly(table: TableFacts, keys: Sequence[ColumnFacts], words: ColumnFacts) -> bool:
    """Return True if a repeat column numbers the rows with equal question texts evenly, unlike a seed."""
    texts = Pools.of([*keys, words], table.n)
    for column in table.called(WORDS["repeat"]["exact"], [*keys, words]):
        if len(Pools.of([*keys, words, column], table.n).counts) == table.n:
            return len(column.distinct) == int(texts.counts.max())
    return False


def _text_identifies_question(table: TableFacts, texts: Pools, words: ColumnFacts) -> bool:
    """Return True if a text column identifies the question alone: equal texts have equal passages and targets."""
    others = [
        column
        for column in table.columns
        if column is not words and (column.last in WORDS["question"]["prompts"] or tells_of("questions", column.last))
    ]
    return words.is_worded and all(texts.share_varied(column) == 0 for column in others)


def _can_name_questions(column: ColumnFacts) -> bool:
    """Return True if a column can name questions: at least half filled, no lists or objects (but in prompts)."""
    if column.last == "question" and column.kind != "object":
        return True  # a row without one is refused with its number
    if column.kind in ("object", "list", "scores", "empty") and column.last not in ("prompt", "input", "messages"):
        return False
    return 2 * column.empty <= len(column.codes) and column.kind != "empty"


def _are_uuids(column: ColumnFacts) -> bool:
    """Return True if all ids are UUIDs, which name rows rather than questions."""
    return all(_UUID.fullmatch(str(cell)) for cell in column.distinct)


_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def unknown_ids(table: TableFacts, used: Sequence[ColumnFacts | None]) -> list[ColumnFacts]:
    """Return the unused columns ending in `_id` that might name the question."""
    never = WORDS["question"]["never"]
    return [
        column
        for column in table.columns
        if column not in used
        and column.last.endswith("_id")
        and column.last not in never
        and _can_name_questions(column)
    ]


def ask_for_question(table: TableFacts, roles: Roles, scores: Sequence[ColumnFacts]) -> None:
    """Raise AskError, always: no column names the question. It suggests up to two likely ids or texts.

    Raises:
        AskError: names those that may.
    """
    used = [*roles.named.values(), *scores]
    ids = unknown_ids(table, used)
    texts = [
        column
        for column in table.columns
        if column not in used
        and column.is_worded
        and not (is_pred(column.last) or is_measure(column.last))
        and not tells_of("parts", column.last)
        and 2 * len(column.distinct) > table.n
    ]
    likely = [*ids, *texts]
    ways = tuple(Choice({"question": one.name}) for one in likely[:2]) or (Choice({"question": "COLUMN"}),)
    raise AskError(
        "question",
        f"no column says which question a row is about. There are {table.shown_names}",
        ways,
        tuple(score.name for score in scores),
        "one of them does",
    )


def _standard_error_column(table: TableFacts) -> str | None:
    """Return the name of a column that is another's standard error (`acc_stderr` of `acc`), None if there is none."""
    names = dict.fromkeys(column.name for column in table.columns)
    return next((name for name in names if "_stderr" in name and name.replace("_stderr", "", 1) in names), None)


def refuse_means(table: TableFacts, roles: Roles, candidates: Sequence[ScoreCandidate]) -> None:
    """Raise RefuseError if rows are means over many answers, not single answers (rule 7).

    Raises:
        RefuseError: says what shows it.
    """
    first = table.columns[0] if table.columns else None
    if first is not None and {"count", "mean", "std"} <= {str(cell).strip().lower() for cell in first.distinct}:
        raise RefuseError(f"the rows are {', '.join(map(str, first.distinct[:4]))}: a description of a table")
    if beside := _standard_error_column(table):
        raise RefuseError(f"its rows are means of many answers, not single answers: it has a column {beside!r}")
    if roles.question is not None or _by_id(table):
        return
    words = WORDS["means"]
    means = [
        column.name
        for column in table.columns
        if column.last in words["exact"]
        or any(column.last.endswith(end) for end in words["ends"])
        or (column.last in words["total"] and column.scale in ("hundred", "other", "small"))
    ]
    if means and any(one.group != "unnamed" for one in candidates):
        raise RefuseError(f"its rows are means of many answers, not single answers: it has a column {means[0]!r}")
    model = roles.named.get("model")
    if model is not None and len(model.distinct) == table.n > 1:
        raise RefuseError(f"it has one row for each {model.name!r}: means of many answers, not single answers")


def _by_id(table: TableFacts) -> bool:
    words = WORDS["question"]
    ids = [name for name in (*words["ids"], *words["last_resort"]) if name not in _LOOSE]
    return any(_can_name_questions(one) for one in table.called(ids))


def find_cause(table: TableFacts, used: Sequence[ColumnFacts]) -> ColumnFacts | None:
    """Return the column that by its name and cells tells of errors, failures or states of runs, else None (rule 11)."""
    words = WORDS["causes"]
    for column in table.columns:
        if column in used or column.kind in ("empty", "list", "scores"):
            continue
        if column.last in words["texts"] and 0 < column.empty < len(column.codes) and column.kind != "number":
            return column
        if column.last in words["flags"] and column.scale == "01" and not column.is_constant:
            return column
        states = {str(cell).strip().lower() for cell in column.distinct}
        if column.last in words["status"] and _are_run_statuses(states):
            return column
    return None


def _are_run_statuses(states: set[str]) -> bool:
    """Return True if status words tell how runs ended (`completed`, `error`), not whether answers passed."""
    words = WORDS["causes"]
    return bool(states & {*words["broken"]} and states & {*words["fine"]}) and states <= {
        *words["fine"],
        *words["broken"],
    }


def is_broken(column: ColumnFacts) -> BoolArray:
    """Return (n,) True for rows in which the column of errors or statuses says that the run failed."""
    if column.last in WORDS["causes"]["texts"]:
        return np.array([cell is not None and cell is not False for cell in column.cells])
    return np.isin(column.codes, [i for i, cell in enumerate(column.distinct) if says_failure(cell)])


def says_failure(cell: Any) -> bool:
    """Return True if a flag or status cell means that a run failed."""
    return cell is False or str(cell).strip().lower() in ("false", "0", "no", *WORDS["causes"]["broken"])


def note_failed(roles: Roles) -> None:
    """Add a note if the failed answers with a score all have the lowest: the mean with them and without."""
    cause, (score, *more) = roles.cause, roles.score
    if cause is None or more or score.kind == "scores" or not np.isfinite(score.numbers).any():
        return
    broken, values = is_broken(cause), score.numbers
    failed = broken & ~np.isnan(values)
    if not failed.any() or (values[failed] > np.nanmin(values)).any() or (failed == ~np.isnan(values)).all():
        return
    roles.notes.append(
        (
            "missing_matters",
            f"{failed.sum():,} of {len(values):,} rows failed by {cause.name!r} and have the lowest score, "
            f"{np.nanmin(values):g}: they count as that (mean {np.nanmean(values):.4g}). "
            f"To leave them out (mean {np.nanmean(values[~failed]):.4g}), say "
            f"{parameter('columns', {'missing': cause.name})}",
        )
    )


def store_chosen(table: TableFacts, roles: Roles, said: Mapping[str, str]) -> None:
    """Store in `roles` the columns that the user named, if they exist, except for those that are decided on later."""
    for ours, theirs in said.items():
        column = table.named(theirs)
        if column is None:
            continue
        if ours == "question":
            roles.question = column
        elif ours not in ("score", "missing", "target", "response"):
            roles.named[ours] = column
