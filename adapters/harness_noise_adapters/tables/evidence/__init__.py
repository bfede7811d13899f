"""Evidence for the meaning of a table's columns: their values and their neighbours, and not their names alone.

A guess is taken only if it holds a certificate: a known name, values that fit it, and no neighbour that contradicts.
All else is asked, with the readings and their means, or refused with the reason. Where the user names columns, nothing
is asked about them. The rules were measured on public tables; their numbers are those of the specification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ..blocks import Block
from .deciding import ask_of_listed_rivals, find_scores, refuse_listed_questions
from .neighbours import find_answers, settle_lone_answer
from .pooling import find_repeats
from .questions import ask_for_question, find_cause, find_names, note_failed, store_chosen, unknown_ids
from .table import TableFacts
from .verdicts import AskError, RefuseError, Roles

__all__ = ["AskError", "RefuseError", "Roles", "judge"]


def judge(
    rows: TableFacts | Sequence[Mapping[str, Any]],
    said: Mapping[str, str] | None = None,
    off: Sequence[str] = (),
    ignored: Sequence[str] = (),
    *,
    factors: bool = False,
    within: bool = False,
) -> Roles:
    """Return the roles of a table's columns, by its first rows. Raise AskError or RefuseError if unclear.

    Args:
        rows: its first rows, at most `table.SEEN`.
        said: ours → the column that the user named.
        off: ours that the user switched off.
        ignored: columns that the user speaks of elsewhere (clusters, measures), which are no oversight.
        factors: whether the user asks for the noise of what tells the answers to a question apart.
        within: whether the user asks for what is made of all answers to a question, as pass@k.

    Raises:
        AskError: two readings stand.
        RefuseError: nothing in it is a score of single answers.
    """
    table = rows if isinstance(rows, TableFacts) else TableFacts.of(Block(range(len(rows)), rows))
    roles, said = Roles(), said or {}
    store_chosen(table, roles, said)
    find_names(table, roles, off)
    find_answers(table, roles, said, off)
    find_scores(table, roles, said)
    roles.cause = (
        table.named(said["missing"]) if "missing" in said else find_cause(table, [*roles.score, *roles.keys()])
    )
    settle = partial(
        find_repeats,
        table,
        roles,
        off="repeat" in off,
        ignored=ignored,
        vouched="question" in said,
        factors=factors,
        within=within,
    )
    refuse_listed_questions(table, roles)
    ask_of_listed_rivals(table, roles, said)
    if roles.question is None:
        if len(ids := unknown_ids(table, [*roles.keys(), *roles.score])) == 1:
            roles.question = ids[0]  # it may be: first check that its rows are not repeats
            settle()
        ask_for_question(table, roles, roles.score)
    settle()
    settle_lone_answer(roles, said, off)
    if "missing" not in said:
        note_failed(roles)
    return roles
