"""Tests for rows of one question that are repeats of its answer (rule 9).

Rows are pooled only where nothing but the answer differs between them. Conditions are never pooled.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from harness_noise.errors import parameter
from harness_noise.stats.stopped import stopped_at, within_k

from .grouping import Pools
from .lexicon import WORDS, exact, families_of, is_condition, is_judge, is_pred, tells_of
from .table import ColumnFacts, TableFacts
from .verdicts import AskError, Choice, Roles

_DIFFERS = 0.3
"""Share of the repeated questions in which a column may differ before it is asked about."""
_JUDGED = 0.1
_OPAQUE = re.compile("^[0-9a-f-]{8,}$|[0-9a-z]{12,}", re.IGNORECASE)
"""Drawn by a machine to name a row."""
_MOST_SHOWN = 64


def find_repeats(
    table: TableFacts,
    roles: Roles,
    *,
    off: bool,
    ignored: Sequence[str] = (),
    vouched: bool = False,
    factors: bool = False,
    within: bool = False,
) -> None:
    """Store the column that numbers repeats, if any. Raise AskError if rows of one question differ otherwise.

    Args:
        table: the first rows.
        roles: `repeat` is added where a column tells the rows apart and nothing else.
        off: whether the user said that no column is one.
        ignored: columns that the user speaks of elsewhere.
        vouched: whether the user named the question.
        factors: whether the user asks for the noise of what tells the answers apart.
        within: whether the user asks for what is made of all answers to a question, as pass@k.

    Raises:
        AskError: says what differs and what it may be.
    """
    pools = Pools.of(roles.keys(), table.n)
    if roles.question is not None:
        pools = pools.apart_at(roles.question.codes < 0)  # without a question: refused with its line when it is read
    given = "repeat" in roles.named
    if not (given or off):
        if not (pools.several.size or vouched or roles.question is None):
            _ask_of_numbered_rows(table, roles)
        column = _repeat_column(table, roles, pools) if pools.several.size else None
        roles.named |= {"repeat": column} if column is not None else {}
    if not (off or given or vouched or factors):
        _ask_of_split_conditions(table, roles, pools, ignored)
    if not pools.several.size or _are_distinct_questions(roles, pools, vouched=vouched):
        return
    if not (off or given or within):
        _ask_of_retries(roles, pools)
    used = [*roles.keys(), *roles.score, *roles.named.values(), roles.cause, roles.count, *_same(table, roles)]
    rest = [column for column in table.columns if column not in used and column.name not in ignored]
    if not (off or given or factors or roles.count):
        _ask_of_conditions(table, roles, pools, rest)
    if not (off or given or factors or vouched):
        _ask_of_scorers(roles, pools)
        _ask_of_uneven_words(roles, pools)
    if not (off or given or vouched) and "repeat" not in roles.named and roles.kind != "list":
        _ask_of_one_question(table, roles, pools)


def _ask_of_split_conditions(table: TableFacts, roles: Roles, pools: Pools, ignored: Sequence[str]) -> None:
    """Raise AskError if a condition column splits rows and the question's text may contain that condition."""
    question = roles.question
    if question is None or not question.is_worded or 2 * len(pools.several) > len(pools.counts):
        return
    keys = roles.keys()
    beside = Pools.of([column for column in keys if column is not question], table.n)
    used = [*keys, *roles.score, *roles.named.values()]
    for column in table.columns:
        known = column.last in WORDS["conditions"]["worded"] and column not in used and column.name not in ignored
        if known and len(column.distinct) <= _MOST_SHOWN and _splits(column, beside):
            shown = ", ".join(repr(str(cell)[:30]) for cell in column.distinct[:5])
            spec = whole_name(column)
            raise AskError(
                "conditions",
                f"{column.name!r} ({shown}) splits the rows. Questions are told apart by their words alone, and these "
                "may name the condition: one mean of all rows may mix several conditions",
                (
                    *([Choice({"task": spec}, "each a task of its own")] if spec else []),
                    Choice({"question": question.name}, "if all are questions of one kind"),
                ),
                tuple(score.name for score in roles.score),
            )


def _splits(column: ColumnFacts, beside: Pools) -> bool:
    """Return True if, within one model and task, at least two values of a column have several rows each.

    The groups are those of one model and task.
    """
    several = len(column.distinct) + 1
    pairs, rows = np.unique(beside.codes * several + column.codes + 1, return_counts=True)
    return bool((np.bincount(pairs[rows >= _FEWEST_ROWS] // several, minlength=1) > 1).any())


_FEWEST_ROWS = 5


def _same(table: TableFacts, roles: Roles) -> list[ColumnFacts]:
    return [column for column in table.columns if column.name in roles.also]


def _are_distinct_questions(roles: Roles, pools: Pools, *, vouched: bool) -> bool:
    """Return True, set `roles.apart` and note it if few texts come again: distinct questions, not repeats."""
    question, n = roles.question, len(pools.counts)
    if vouched or question is None or not question.is_worded or "repeat" in roles.named:
        return False
    roles.apart = 2 * len(pools.several) <= n
    if roles.apart:
        roles.notes.append(
            (
                "same_words",
                f"{len(pools.several)} of {n} texts in {question.name!r} come more than once. So few are different "
                "questions with the same words, not repeats. If they are repeats, say "
                f"{parameter('columns', {'question': question.name})}",
            )
        )
    return roles.apart


_SEVERAL = 20


def _ask_of_one_question(table: TableFacts, roles: Roles, pools: Pools) -> None:
    """Raise AskError if most rows would be answers to one question, so the id column may be wrong."""
    question, most = roles.question, int(pools.counts.max())
    if question is None or table.n < _SEVERAL or 2 * most <= table.n:
        return
    raise AskError(
        "question",
        f"by {question.name!r}, {most} of {table.n} rows are answers to one question, so it hardly names the questions",
        (Choice({"question": "COLUMN"}), Choice({"question": question.name}, "if it does")),
        tuple(score.name for score in roles.score),
    )


def _ask_of_numbered_rows(table: TableFacts, roles: Roles) -> None:
    """Raise AskError if a column numbers repeats although no question comes twice."""
    question = roles.question
    assert question is not None
    for column in table.called(WORDS["repeat"]["exact"], [*roles.keys(), *roles.score]):
        codes = column.codes[column.codes >= 0]
        rows = np.bincount(codes)[np.unique(codes)] if codes.size else codes
        if 1 < len(rows) <= table.n // 2 and rows.max() < 2 * rows.min():
            raise AskError(
                "question",
                f"by {question.name!r}, every row is a question of its own, though {column.name!r} tells {len(rows)} "
                f"answers apart, so {question.name!r} hardly names the questions",
                (Choice({"question": "COLUMN"}), Choice({"question": question.name}, "if it does")),
                tuple(score.name for score in roles.score),
            )


def _repeat_column(table: TableFacts, roles: Roles, pools: Pools) -> ColumnFacts | None:
    """Return the column with a name of repeats that tells rows apart, or a sure name, or mostly varies. Else None."""
    found = table.called(WORDS["repeat"]["exact"], [*roles.keys(), *roles.score])
    found = [one for one in found if one.kind not in ("object", "list", "scores", "empty")]
    found = [one for one in found if (not one.is_constant or one.last in _SURE) and not _names_models(one)]
    for column in found:
        inner = Pools.of([*roles.keys(), column], table.n)
        if not inner.several.size:
            return column
    again = [column for column in found if column.last in _SURE or 2 * pools.share_varied(column) > 1]
    return next(iter(again), None)  # what contradicts itself is said with its rows when it is read


_SURE = ("repeat", "epoch", "trial", "attempt", "repetition")


def _ask_of_retries(roles: Roles, pools: Pools) -> None:
    """Raise AskError if questions seem to be retried until an answer passed (or failed): first or any counts.

    Each model and task is looked at by itself. If the user names the column of repeats, the rows of a run become first
    attempts (`io.first_answers`).
    """
    (score, *more), repeat = roles.score, roles.named.get("repeat")
    if more or score.kind == "scores" or pools.counts.min() == pools.counts.max():
        return
    numbers = repeat.numbers if repeat is not None and repeat.kind == "number" else np.arange(len(score.codes))
    order = np.lexsort((numbers, pools.codes))
    first = np.cumsum(pools.counts) - pools.counts
    values = np.full((len(pools.counts), int(pools.counts.max())), np.nan)
    codes = pools.codes[order]
    values[codes, np.arange(len(order)) - first[codes]] = score.numbers[order]
    # K may differ by model and task: only within one does an early end tell of the score before it. Metrics stay
    # together: where one of them stopped, the rows of all become first attempts when the run is read
    of_run = [column for column in map(roles.named.get, ("model", "over", "task")) if column]
    apart = Pools.of(of_run, len(order))
    of_pool = apart.codes[order[first]]
    found = [(stopped_at(values[of_pool == code]), of_pool == code) for code in range(len(apart.counts))]
    seen, rows = next(((how, at) for how, at in found if how is not None), (None, of_pool))
    if seen is None:
        return
    values, whose = values[rows], ""
    if len(found) > 1:
        row = order[first][rows][0]
        cells = [column.distinct[column.codes[row]] for column in of_run if column.codes[row] >= 0]
        whose = f" to the questions of {', '.join(map(str, cells))}" if cells else ""
    within = within_k(values, values.shape[1], seen.how)
    how, mean = ("pass@", np.nanmean(within)) if seen.how == "success" else ("pass^", np.nanmean(within))
    raise AskError(
        "repeats",
        f"answers{whose} were repeated until the first {seen.how} ({score.name!r}), so the mean over all of them, "
        f"{np.nanmean(values):.4g}, is none: first attempts, or the chance within {values.shape[1]} "
        f"(`measures=['{how}{values.shape[1]}']`, {mean:.4g})",
        (Choice({"repeat": repeat.name if repeat is not None else "none"}, "first", float(np.nanmean(values[:, 0]))),),
        (score.name,),
    )


def _ask_of_conditions(table: TableFacts, roles: Roles, pools: Pools, rest: Sequence[ColumnFacts]) -> None:
    """Raise AskError for a column that differs between the rows of one question, unless it describes answers."""
    repeat = roles.named.get("repeat")
    if repeat is not None and Pools.of([*roles.keys(), repeat], table.n).share_varied(roles.score[0]):
        repeat = None  # an answer has two scores: something else tells the rows apart, and no name of each row
        rest = [column for column in rest if len(column.distinct) < table.n]

    def order(column: ColumnFacts) -> tuple[bool, float]:
        known = is_condition(column.last)
        alone = known and not Pools.of([*roles.keys(), column], table.n).several.size
        return not known, len(column.distinct) if alone else np.inf

    for column in sorted(rest, key=order):
        if column.kind == "empty" or pools.share_varied(column) <= _DIFFERS:
            continue
        known = is_condition(column.last) and not column.is_worded
        if repeat is not None and _follows_score(column, roles.score[0]):
            continue
        if not known and (repeat is not None or _tells_of_answer(column, pools, roles)):
            continue
        _ask_what_differs(table, roles, pools, column)


def _follows_score(column: ColumnFacts, score: ColumnFacts) -> bool:
    """Return True if each value of a column, most of them repeated, goes with one score: an outcome, no condition."""
    if score.kind == "scores" or score.is_constant or len(column.distinct) * 2 > len(column.codes):
        return False
    values, numbers = np.unique(score.numbers, return_inverse=True)
    pairs = np.unique(column.codes * len(values) + numbers.reshape(-1))
    return len(values) > 1 and len(pairs) == len(np.unique(column.codes))


def _tells_of_answer(column: ColumnFacts, pools: Pools, roles: Roles) -> bool:
    """Return True if a column naturally differs between answers to one question, as texts and times do."""
    name = column.last
    if name == "" or column.counts_rows or (tells_of("repeats", name) and not _names_models(column)):
        return True
    if len(column.keys) > 1 and any(column.keys[:-1] == score.keys[:-1] for score in roles.score):
        return column.scored  # another score of the same object
    if column.scale == "01":
        own = name.startswith(("is_", "has_")) or tells_of("parts", name.replace("answer", ""))
        return own and not name.startswith("use_") and not _is_balanced(column, pools)
    if tells_of("questions", name) and column.kind != "number" and not is_pred(name):
        return False
    if is_judge(name) and not exact("conditions", name):
        return not _is_balanced(column, pools)
    if name.endswith("id") or all(_OPAQUE.search(str(cell)) for cell in column.distinct[:_MOST_SHOWN]):
        return _names_rows(column, pools)
    if is_pred(name) or tells_of("parts", name):
        return not _is_balanced(column, pools)
    return column.kind == "number" and column.scale in ("other", "unit") and not _is_balanced(column, pools)


def _names_models(column: ColumnFacts) -> bool:
    """Return True if cells name several model families, or one and none: `gpt-4o` and `ours`, not `gpt-4o run 2`."""
    return len({families_of(str(cell)) for cell in column.distinct[:_MOST_SHOWN]}) > 1


def _is_balanced(column: ColumnFacts, pools: Pools) -> bool:
    """Return True if a few values come equally often under each of 20 or more questions, as conditions do."""
    kinds, codes = np.unique(column.codes, return_inverse=True)
    V, Q = len(kinds), len(pools.counts)
    if not 1 < V <= _MOST_SHOWN or Q < 2:
        return False
    cells, counts = np.unique(pools.codes * V + codes.reshape(-1), return_counts=True)
    full = len(cells) == Q * V and (counts.reshape(Q, V) == counts[:V]).all()
    return bool(full) and Q >= _ENOUGH


_ENOUGH = 20


def _names_rows(column: ColumnFacts, pools: Pools) -> bool:
    """Return True if an id is new in each row and names answers: opaque, a number, or questions have as many rows."""
    if len(column.distinct) < len(column.codes) - column.empty:
        return False
    opaque = any(_OPAQUE.search(str(cell)) for cell in column.distinct[:_MOST_SHOWN])
    as_many = int(np.bincount(pools.counts).max())
    return opaque or column.kind == "number" or 2 * as_many >= len(pools.counts)


def _ask_what_differs(table: TableFacts, roles: Roles, pools: Pools, column: ColumnFacts) -> None:
    question, name = roles.question, column.name
    assert question is not None
    shown = ", ".join(repr(str(cell)[:30]) for cell in column.distinct[:8])
    shown = shown if len(shown) <= 100 else f"{shown[:100]}…"
    ids, spec = column.last.endswith("id") and len(column.distinct) == table.n, whole_name(column)
    ways: dict[str, tuple[str, str | None]] = {
        "a model": ("model", None if "model" in roles.named else spec),
        "a task or condition of its own": ("task", None if "task" in roles.named else spec),
        "part of the question": ("question", name if ids else spec and f"{question.name}*{spec}"),
        "the number of the answer": ("repeat", None if column.empty else name),
        "nothing but a remark on the answer": ("repeat", "none"),
    }
    said = "; ".join(
        f"{what}: {parameter('columns', {ours: theirs})}" for what, (ours, theirs) in ways.items() if theirs is not None
    )
    several, most = len(pools.several), pools.counts.max()
    named = f"1 question by {question.name!r} has {most} rows"
    if several > 1:
        named = f"{several} questions by {question.name!r} have up to {most} rows each"
    raise AskError(
        "repeats" if column.last in WORDS["conditions"]["rounds"] else "conditions",
        f"{named}, which differ in {name!r} ({shown}): are they answers of one model to one question? Say what "
        f"{name!r} is: {said}",
        (),
        tuple(score.name for score in roles.score),
    )


def whole_name(column: ColumnFacts) -> str | None:
    """Return a SPEC (column or template) that gives each row a value, `none` if empty. None if impossible."""
    if not column.empty:
        return column.name
    if not all(key.isidentifier() for key in column.keys):
        return None
    return f"{{{{ {column.name} if {column.name} | default(none) not in (none, '') else 'none' }}}}"


def _ask_of_scorers(roles: Roles, pools: Pools) -> None:
    """Raise AskError if the same answer to a question comes with several scores: of filters or judges."""
    pred, (score, *more) = roles.pred, roles.score
    if pred is None or more or score.kind == "scores" or pred.kind != "text" or not pred.is_worded:
        return
    again = Pools.of([*roles.keys(), pred], len(pred.codes))
    if not again.several.size or 2 * again.counts[again.several].sum() < len(score.codes):
        return
    share = again.share_varied(score)
    if share <= _JUDGED:
        return
    raise AskError(
        "repeats",
        f"in {share:.0%} of the rows with one answer ({pred.name!r}) the scores differ ({score.name!r}): filters or "
        "judges scored it, and a column that names them is missing",
        (Choice({"repeat": "none"}, "", score.mean),),
        (score.name,),
        "the rows are repeats all the same",
    )


def _ask_of_uneven_words(roles: Roles, pools: Pools) -> None:
    """Raise AskError if only texts name the questions and most texts come several times, unequally often."""
    question = roles.question
    if question is None or "repeat" in roles.named or not question.is_worded:
        return
    if 2 * len(pools.several) <= len(pools.counts) or len({*pools.counts.tolist()}) == 1:
        return
    most = Counter(pools.counts.tolist()).most_common(1)[0][1]
    if 2 * most > len(pools.counts):
        return
    name = question.name
    raise AskError(
        "repeats",
        f"the texts in {name!r} come {pools.counts.min()} to {pools.counts.max()} times: repeats of a question, or "
        "questions with the same words",
        (Choice({"question": name}, "repeats"),),
        tuple(score.name for score in roles.score),
    )
