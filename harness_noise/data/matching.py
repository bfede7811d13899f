"""Match the questions of two runs: by key, verified by content."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import TypeAlias

import numpy as np

from ..arrays import BoolArray, IntArray
from ..errors import InputError, counted
from .clusters import Fields
from .notes import Note
from .questions import CONTENT_KEYS, Questions, content_hash, occurrences
from .scores import OnQuestions, Scores

Rows: TypeAlias = tuple[list[int], list[int]]
"""Row numbers of A and of B, of equal length."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Row numbers of the questions that A and B share, of equal length."""

    rows_a: list[int]
    rows_b: list[int]
    by: str
    note: Note | None = None


def pair_questions(a: Questions, b: Questions, apart: str = "left out") -> Pairing:
    """Match two runs' questions by id, checked against their texts if known, or by text alone. Return a `Pairing`.

    Automatic ids are worth nothing after a shuffle, so one id with two texts sends the whole
    matching to the content. A document's hash changes with a field that another version adds, so
    the text decides where it finds more. Ids that only number the questions never outweigh their
    texts; names do where hardly any text agrees, because prompts are worded in many ways. `apart` says what
    becomes of questions that share a key and not their text.
    """
    hashed = a.kind == b.kind in CONTENT_KEYS
    rows = _match_ids(a.keys, b.keys)
    if hashed and len(rows[0]) == min(len(a), len(b)):  # before the texts are asked for, which may have to be read
        return Pairing(*rows, by=a.kind)
    if a.inputs is None or b.inputs is None:
        return _pairs_by_key(a, b, rows)
    if hashed:
        by_text = _match(occurrences(a.inputs), occurrences(b.inputs))
        if len(by_text[0]) <= len(rows[0]):
            return Pairing(*rows, by=a.kind)
        note = Note(
            "matched_by_text",
            f"only {_share(len(rows[0]))} a {a.kind} and {len(by_text[0])} their text: matched by text",
        )
        return Pairing(*by_text, by="content", note=note)
    return _verified_pairs(a, b, rows, apart)


def _share(n: int) -> str:
    return counted(n, "question shares", "questions share")


def _pairs_by_key(a: Questions, b: Questions, rows: Rows) -> Pairing:
    """Match questions by id, as a run has no texts (number ids get a note). No equal ids: keys with the other's texts.

    Its keys may be the texts of the other's questions.
    """
    if a.inputs is b.inputs:  # neither has any
        return Pairing(*rows, by=a.kind, note=_other_targets(a, b, rows))
    if not rows[0]:
        texts_a, texts_b = (side.inputs or tuple(map(content_hash, side.keys)) for side in (a, b))
        return Pairing(*_match(occurrences(texts_a), occurrences(texts_b)), by="content")
    note = None
    if ids_are_numbers([a.keys[i] for i in rows[0]]):
        note = Note(
            "paired_by_number",
            f"{counted(len(rows[0]), 'question is', 'questions are')} paired by ids that only number them. One of the "
            "runs has no texts, so nothing shows that they are the same",
        )
    return Pairing(*rows, by=a.kind, note=note)


def _other_targets(a: Questions, b: Questions, rows: Rows) -> Note | None:
    """Return a note if ids only number the questions and right answers of some pairs differ, else None."""
    if not rows[0] or a.kind != b.kind or a.targets is None or b.targets is None:
        return None
    told = [(right, other) for i, j in zip(*rows, strict=True) if (right := a.targets[i]) and (other := b.targets[j])]
    differ = sum(right != other for right, other in told)
    if not differ or not ids_are_numbers([a.keys[i] for i in rows[0]]):
        return None
    return Note(
        "paired_by_number",
        f"{counted(len(rows[0]), 'question is', 'questions are')} paired by ids that only number them, and "
        f"{counted(differ, 'has another right answer', 'have other right answers')} in the other run: perhaps they "
        "are not the same questions",
    )


def _verified_pairs(a: Questions, b: Questions, rows: Rows, apart: str) -> Pairing:
    """Match by id and text, or by text if that finds more, or by id if ids are names and few texts agree."""
    assert a.inputs is not None
    assert b.inputs is not None
    same = _equal(a.inputs, b.inputs, rows)
    if a.kind == b.kind and a.targets is not None and b.targets is not None:
        same &= _equal(a.targets, b.targets, rows)
    agree = int(np.count_nonzero(same))
    if agree and agree == len(rows[0]):
        return Pairing(*rows, by=a.kind)
    by_content = _match(_content(a, b), _content(b, a))
    what = a.kind if a.kind == b.kind != "question" else "id"
    clash = f"{_share(len(rows[0]) - agree)} a{'n' * (what == 'id')} {what} but not their text"
    if 2 * max(agree, len(by_content[0])) < len(rows[0]) and not ids_are_numbers([a.keys[i] for i in rows[0]]):
        named = Note("matched_by_name", f"{clash}: matched by {what}, which is a name. Is it the same question?")
        return Pairing(*rows, by=a.kind, note=named)
    if len(by_content[0]) > agree:
        return Pairing(
            *by_content, by="content", note=Note("matched_by_text", f"{clash}: matched by text") if rows[0] else None
        )
    kept = list(compress(rows[0], same)), list(compress(rows[1], same))
    return Pairing(*kept, by=a.kind, note=Note("texts_differ", f"{clash}: {apart}") if rows[0] else None)


_LAST_NUMBER = re.compile(r"\d+(?=\D*$)")
_DENSE = 10
"""Numbers in a range at most this many times as long as their count are counters."""


def ids_are_numbers(keys: Sequence[str]) -> bool:
    """Return True if most ids are running numbers (`7`, `q7`, `test/7`), which any other file may have too."""
    frames: dict[str, list[int]] = {}
    for key in map(_plain_number, keys):
        match = _LAST_NUMBER.search(key)
        if match is not None and len(match[0]) < _LONGEST_NUMBER:
            frames.setdefault(f"{key[: match.start()]}\x1f{key[match.end() :]}", []).append(int(match[0]))
    counted = [n for frame, n in frames.items() if len(n) > 1 or frame == "\x1f"]
    return 2 * sum(len(n) for n in counted if max(n) - min(n) < _DENSE * len(n)) > len(keys)


def pairs_are_certain(a: Questions, b: Questions) -> bool:
    """Return True if two runs' matched questions are surely the same, by text or by ids that are not numbers."""
    if a.kind == b.kind in CONTENT_KEYS or None not in (a.inputs, b.inputs):
        return True
    return not any(_are_short(side.keys) and ids_are_numbers(side.keys) for side in (a, b))


def _are_short(keys: Sequence[str]) -> bool:
    """Return True if most ids have so few words that they cannot be question texts."""
    return 2 * sum(len(key.split()) < _SENTENCE for key in keys) > len(keys)


_SENTENCE = 3
"""Words of a key that is the text of a question."""


_LONGEST_NUMBER = 19
_DECIMAL = re.compile(r"0*(\d+?)(?:\.0+)?")


def _plain_number(key: str) -> str:
    """Return a numeric id in shortest form (`007` and `7.0` become `7`), any other id unchanged."""
    match = _DECIMAL.fullmatch(key)
    return key if match is None else match[1]


def _match_ids(a: Sequence[str], b: Sequence[str]) -> Rows:
    """Match equal ids of two runs, numbers by value (`7` = `007`). Return row numbers in a and in b."""
    rows = _match(a, b)
    if len(rows[0]) == min(len(a), len(b)) or not (a and b and _DECIMAL.fullmatch(a[0]) and _DECIMAL.fullmatch(b[0])):
        return rows
    plain = [list(map(_plain_number, keys)) for keys in (a, b)]
    if any(len(set(keys)) < len(keys) for keys in plain):
        return rows
    by_value = _match(*plain)
    return by_value if len(by_value[0]) > len(rows[0]) else rows


def same_partition(a: Sequence[Hashable], b: Sequence[Hashable]) -> bool:
    """Return True if two lists of clusters put the same questions together, whatever their names are."""
    pairs = set(zip(a, b, strict=True))
    return len(pairs) == len({x for x, _ in pairs}) == len({y for _, y in pairs})


def _equal(a: Sequence[str], b: Sequence[str], rows: Rows) -> BoolArray:
    return np.fromiter((a[i] == b[j] for i, j in zip(*rows, strict=True)), np.bool_, len(rows[0]))


def _content(a: Questions, b: Questions) -> Sequence[str]:
    assert a.inputs is not None
    if a.kind != b.kind or a.targets is None or b.targets is None:  # harnesses write targets differently
        return occurrences(a.inputs)
    return occurrences([f"{i}/{t}" for i, t in zip(a.inputs, a.targets, strict=True)])


def _match(a: Sequence[str], b: Sequence[str]) -> Rows:
    """Match equal strings in two lists without duplicates. Return their row numbers in a and in b.

    Most runs have the same strings in the same order, which is checked first.
    """
    if a == b:
        return list(range(len(a))), list(range(len(b)))
    where = dict(zip(b, range(len(b)), strict=True))
    rows_b = list(map(where.get, a))
    return [i for i, j in enumerate(rows_b) if j is not None], [j for j in rows_b if j is not None]


def union_of_questions(questions: Sequence[Questions]) -> tuple[Questions, list[IntArray], list[Note]]:
    """Return the union of several runs' questions, each run's row numbers in it, and notes on doubtful matches.

    Each run is matched by `pair_questions` to the questions found so far, and what is not found is added behind them.
    If keys are hashes of whole questions, texts need not be read.
    """
    whole = questions[0]
    rows: list[IntArray] = []
    notes: list[Note] = []
    for other in questions:
        if other is whole:
            rows.append(np.arange(len(whole)))
            continue
        pairing = pair_questions(whole, other, "taken for different questions")
        if pairing.note is not None:
            notes.append(pairing.note)
        at = np.full(len(other), -1, dtype=np.intp)
        at[pairing.rows_b] = pairing.rows_a
        new = np.flatnonzero(at < 0)
        at[new] = len(whole) + np.arange(len(new))
        rows.append(at)
        if len(new):
            whole = _with_new_questions(whole, other, new.tolist())
    return whole, rows, notes


def _with_new_questions(q: Questions, r: Questions, new: Sequence[int]) -> Questions:
    """Append the questions in rows `new` of another run. Text hashes that one of the two lacks are dropped."""

    def more(a: Sequence[str] | None, b: Sequence[str] | None) -> tuple[str, ...] | None:
        return None if a is None or b is None else (*a, *(b[j] for j in new))

    texts = q.shown()
    return Questions(
        occurrences((*q.keys, *(r.keys[j] for j in new))),
        q.kind,
        inputs=more(q.inputs, r.inputs),
        targets=more(q.targets, r.targets),
        prompts=more(q.prompts, r.prompts),
        texts=None if texts is None else more(texts, r.shown() or ("",) * len(r)),
        fields=None if q.fields is None else _more_fields(q.fields, r.fields, new),
    )


def _more_fields(fields: Fields, others: Fields | None, new: Sequence[int]) -> Fields:
    """Append another run's new questions to these fields, None if it lacks a field. Drop fields that only it has."""
    values = {} if others is None else others.values
    nothing = [None] * len(new)
    added = {spec: [values[spec][j] for j in new] if spec in values else nothing for spec in fields.values}
    return replace(fields, values={spec: (*column, *added[spec]) for spec, column in fields.values.items()})


def joint_clusters(parts: Sequence[OnQuestions], rows: Sequence[IntArray], n: int) -> list[str | None]:
    """Return (n,) clusters of united questions from the first run with one, None if none. Later ones that overlap join.

    None: no run knows.
    """
    out: list[str | None] = [None] * n
    for part, at in zip(parts, rows, strict=True):
        named = list(zip(at.tolist(), part.clusters or (), strict=False))
        called = {name: out[i] for i, name in named if out[i] is not None}
        for i, name in named:
            out[i] = called.get(name, name) if out[i] is None else out[i]
    return out


def pair_runs(part_a: Scores, part_b: Scores) -> tuple[Scores, Scores, Note]:
    """Match two models' repeats by a factor's level, or at equal K by position. Return both, a note. Refuse under 2.

    Runs are matched by the level of a factor (prompt, seed, judge) that both carry and that tells the runs of each
    apart; else by position. Runs that only one of the two has are left out.

    Returns:
        Both scores with the columns that are shared, in one order, and a note that says how they were matched.

    Raises:
        InputError: no levels and unequal numbers of runs, or fewer than two runs in common.
    """
    ours, theirs = _run_levels(part_a), _run_levels(part_b)
    K_a, K_b = part_a.values.shape[1], part_b.values.shape[1]
    named = [name for name in ours if name in theirs and set(ours[name]) & set(theirs[name])]
    if named:
        name = named[0]
        columns = [(j, theirs[name].index(level)) for j, level in enumerate(ours[name]) if level in theirs[name]]
        only = K_a + K_b - 2 * len(columns)
        how = f"the runs of A and B are paired by {name}" + (
            f"; {only} that only one of them has are left out" if only else ""
        )
    elif K_a == K_b:
        columns = [(j, j) for j in range(K_a)]
        how = "the runs of A and B are paired by position: run 1 of A with run 1 of B, and so on"
    else:
        raise InputError(
            f"{part_a.task}, {part_a.metric}: `runs_shared` cannot tell which run of A ({K_a}) is which of B ({K_b}): "
            "read both with the factor that names the runs (factors=['prompt'] of hn.read), or give equally many, in "
            "one order"
        )
    if len(columns) < 2:
        raise InputError(
            f"{part_a.task}, {part_a.metric}: `runs_shared` needs at least two runs that A and B have in common, and "
            f"there {'is one' if columns else 'is none'}"
        )
    at_a, at_b = map(list, zip(*columns, strict=True))
    return (
        replace(part_a, **part_a.answers_at(columns=at_a), factors=None),
        replace(part_b, **part_b.answers_at(columns=at_b), factors=None),
        Note("runs_paired", how).of(part_a.task, part_a.metric),
    )


def _run_levels(part: Scores) -> dict[str, tuple[str, ...]]:
    """Return {factor: level of each column} for factors whose level differs between runs and is constant in one."""
    out = {}
    for name, rows in (part.factors or {}).items():
        if any(len(row) != part.values.shape[1] for row in rows):
            continue
        found = [{level for level in column if level} for column in zip(*rows, strict=True)]
        if all(len(levels) == 1 for levels in found):
            each = tuple(levels.pop() for levels in found)
            if len(set(each)) == len(each):
                out[name] = each
    return out
