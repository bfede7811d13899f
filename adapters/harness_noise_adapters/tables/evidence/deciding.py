"""Take, ask or refuse: which columns are the scores (rule 6)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness_noise.errors import parameter

from ..presets import parsed_cell
from .lexicon import WORDS, ending, exact, is_model, snake
from .neighbours import Scene, agreement_of, ask_of_counts, felled, question_beside, why_answers_by_gold
from .questions import find_question, refuse_means
from .scores import ASKED, MARGIN, TAKEN, ScoreCandidate, candidates, merged
from .table import ColumnFacts, TableFacts
from .verdicts import AskError, Choice, RefuseError, Roles
from .wide import (
    Family,
    ask_bare,
    ask_of_baseline,
    ask_of_crossed,
    families,
    has_parts,
    is_number_of_run,
    of_questions,
    possible_scores,
    take_family,
)

JOINT = "+"
"""Between the columns of a wide table, where a user names them."""


def find_scores(table: TableFacts, roles: Roles, said: Mapping[str, str]) -> None:
    """Store in `roles` which columns hold scores and the question. Raise AskError or RefuseError if unclear.

    Raises:
        AskError: two readings stand.
        RefuseError: there is none.
    """
    if {"score", "models", "metrics"} & {*said}:
        _take_named(table, roles, said)
        _find_question(table, roles, roles.score)
        return
    if _take_counts(table, roles):
        _find_question(table, roles, roles.score)
        return
    found = candidates(table, [*roles.named.values(), *([roles.question] if roles.question else [])])
    if turned := of_questions(table.columns, roles.named.get("model")):
        raise AskError(
            "wide",
            f"the columns {turned[0].name} … {turned[-1].name} are questions, and the rows models: turn the table (one "
            "row for each answer, with the columns question, model, score, in pandas by `frame.melt(id_vars='model')`)",
        )
    refuse_means(table, roles, found)
    best = [one.column for one in found if one.points >= ASKED]
    _find_question(table, roles, best)
    found = [one for one in found if one.column is not roles.question]
    if _take_wide(table, roles, found):
        return
    found = merged(found)
    scene = Scene(table, roles, found)
    ask_of_counts(scene)
    taken = _decide(scene)
    roles.score = [one.column for one in taken]
    roles.also = [name for one in taken for name in one.also]
    roles.others = sum(one.points >= ASKED for one in found)
    if len(taken) > 1:
        roles.kind, roles.names = "metrics", [one.column.name for one in taken]
    elif taken[0].column.kind == "scores":
        roles.kind = "list"
    elif "question" not in said:
        _ask_of_ranking(roles)


def refuse_listed_questions(table: TableFacts, roles: Roles) -> None:
    """Raise RefuseError if the question, or ids, have lists as long as those of the scores: these are no repeats."""
    if roles.kind != "list":
        return
    score, names = roles.score[0], (*WORDS["question"]["ids"], *WORDS["question"]["last_resort"])
    ids = [column for column in table.columns if column.last.removesuffix("s") in names]
    for column in ids if roles.question is None else [roles.question]:
        rows = [[_listed(cells[i]) for cells in (score.raw, column.raw)] for i in range(min(table.n, _LISTS))]
        if all(a and b and len(a) == len(b) > 1 for a, b in rows):
            raise RefuseError(
                f"the cells of {score.name!r} list scores, and those of {column.name!r} as many items: write one row "
                f"for each, in pandas by `frame.explode([{score.name!r}, {column.name!r}])` of cells that are lists"
            )


def ask_of_listed_rivals(table: TableFacts, roles: Roles, said: Mapping[str, str]) -> None:
    """Raise AskError if there are as many numbered columns (`answer1_id`, `answer2_id`) as scores in each list."""
    if roles.kind != "list" or "score" in said:
        return
    score = roles.score[0]
    lengths = {len(_listed(cell) or ()) for cell in score.distinct}
    numbered: dict[str, list[str]] = defaultdict(list)
    for column in table.columns:
        if column is not score and (part := _NUMBERED.fullmatch(column.last)):
            numbered[part[1] + part[3]].append(column.name)
    for names in numbered.values():
        if {len(names)} != lengths or len(names) < 2:
            continue
        ways = [
            Choice({"score": f"{score.name}.{i}"}, f"of {name}", _mean_at(score, i)) for i, name in enumerate(names)
        ]
        raise AskError(
            "score",
            f"the cells of {score.name!r} list {len(names)} scores, as many as there are {' and '.join(names)}: of "
            "several models, or the answers of one",
            (*ways, Choice({"score": score.name}, "answers of one", score.mean)),
            (score.name,),
        )


_NUMBERED = re.compile(r"(.*[a-z])_?([1-9]|(?<=_)[ab])((?:_.*)?)")


def _mean_at(score: ColumnFacts, i: int) -> float:
    cells = [cell for cell in map(_listed, score.distinct_rows) if cell]
    return float(np.mean([float(cell[i]) for cell in cells]))


def _listed(cell: Any) -> list[Any] | None:
    """Return a cell that is a list or the text of one as a list, else None."""
    found = parsed_cell(cell) if isinstance(cell, str) else cell
    return found if isinstance(found, list) else None


_LISTS = 5
"""Rows that are looked at."""


def _ask_of_ranking(roles: Roles) -> None:
    """Raise AskError if an object lists models under each key in order of their scores: a ranking, so means."""
    question, model, score = roles.question, roles.named.get("model"), roles.score[0]
    if question is None or question.last != "@key" or model is None:
        return
    steps = np.diff(score.numbers)[np.diff(question.codes) == 0]
    if len(steps) >= _RANKED and (steps <= 0).all() and 2 * (steps < 0).sum() > len(steps):
        raise AskError(
            "question",
            f"under each key of the object ({', '.join(map(str, question.distinct[:3]))}, …) the models are in the "
            f"order of {score.name!r}: perhaps they are ranked by their means, and these are not single answers",
            (Choice({"question": question.name}, "the keys are questions", score.mean),),
            (score.name,),
        )


_RANKED = 10
"""Steps down, and none up, that are not by chance."""


def _find_question(table: TableFacts, roles: Roles, scores: Sequence[ColumnFacts]) -> None:
    if roles.question is None:
        find_question(table, roles, scores)


def _take_counts(table: TableFacts, roles: Roles) -> bool:
    """Store `pass1` (share right) and `count` as score and count. Return False if one is missing, or `score` exists."""
    share, count = table.called(["pass1"]), table.called(["count"])
    if share and count and table.named("score") is None:
        roles.score, roles.count = share[:1], count[0]
    return bool(roles.score)


def _take_named(table: TableFacts, roles: Roles, said: Mapping[str, str]) -> None:
    """Store in `roles` the score column that the user named, or one per model or metric. `pass1` takes its `count`."""
    for kind in ("models", "metrics"):
        if kind in said:
            roles.kind, roles.names = kind, said[kind].split(JOINT)
            roles.score = [column for name in roles.names if (column := table.named(name)) is not None]
            return
    column = table.named(said["score"])
    roles.score = [] if column is None else [column]
    if column is not None and column.kind == "scores":
        roles.kind = "list"
    if column is not None and column.last == "pass1":
        roles.count = next(iter(table.called(["count"], roles.score)), None)


def _take_wide(table: TableFacts, roles: Roles, found: Sequence[ScoreCandidate]) -> bool:
    """Store a score column for each model, repeat or metric. Return False if not so. Raise AskError if unclear."""
    several = families(found)
    ask_of_crossed(several)
    ask_of_baseline(table.columns, found, roles.question)
    named = [one for one in found if one.points >= TAKEN]
    for family in several:
        outside = [one for one in named if one.column not in family.columns]
        if not outside and (taken := take_family(family, roles.question)) is not None:
            roles.kind, roles.score, roles.names = taken
            roles.others = len(roles.score)
            return True
    if any(one.points >= ASKED for one in found):
        _ask_of_wide_beside(several, found, roles)
        return False
    if several:
        ask_bare(several[0].columns, roles.question)  # `score_cultural`, `score_feasibility`: who knows of what
    if len(columns := possible_scores([one.column for one in found])) < 2:
        return False
    names = [column.name for column in columns]
    kinds = {"models": all(map(is_model, names)), "repeats": all(map(is_number_of_run, names))}
    kind = next((kind for kind, fits in kinds.items() if fits), None)
    if kind is None or (kind == "models" and (roles.question is None or _rows_are_answers(roles))):
        ask_bare(columns, roles.question)
    roles.kind, roles.score, roles.names = str(kind), columns, names
    return True


def _ask_of_wide_beside(several: Sequence[Family], found: Sequence[ScoreCandidate], roles: Roles) -> None:
    """Raise AskError if a score stands beside columns that without it would be models, or a metric beside repeats.

    Raises:
        AskError: which are the scores?
    """
    bare = [one.column for one in found if one.group == "unnamed"]
    groups = [(bare, [column.name for column in bare]), *((family.columns, family.names) for family in several)]
    for kind, fits in (("model", is_model), ("repeat", is_number_of_run)):
        for columns, told in groups if kind not in roles.named else ():
            names = [column.name for column, name in zip(columns, told, strict=True) if fits(name)]
            best = next((one for one in found if one.points >= ASKED and one.column not in columns), None)
            if best is None or len(names) < 2 or (kind == "repeat" and best.group != "metric"):
                continue
            name = best.column.name
            ways = [Choice({"score": name}, "", best.column.mean)]
            why = f"{name!r} may be the score, but {', '.join(names[:4])} are named like {kind}s"
            if kind == "model":
                ways.append(Choice({"models": JOINT.join(names)}, "each a model"))
                ways.append(Choice({"metrics": JOINT.join([name, *names])}, "each a metric"))
            else:
                why += f", and are read as such if you leave {name!r} out of the table"
            raise AskError("wide", why, tuple(ways), (name, *names), "it is the score")


def _rows_are_answers(roles: Roles) -> bool:
    """Return True if several rows answer one question: its name repeats or is numbered 1, 1.1, 1.2."""
    question = roles.question
    return question is not None and (has_parts(question) or len(question.distinct) < len(question.codes))


def _decide(scene: Scene) -> list[ScoreCandidate]:
    """Return the candidates that hold the scores: one, or several metrics. Raise AskError or RefuseError if unclear."""
    table, roles, found = scene.table, scene.roles, scene.candidates
    named = [one for one in found if one.group != "unnamed" and one.points > 0]
    reasons = {id(one): why for one in named if (why := felled(scene, one)) is not None}
    left = [one for one in named if id(one) not in reasons]
    if named and reasons:
        _ask_of_felled(named, left, reasons, scene)
    stated = [one for one in left if _says_in_words(one, roles.pred)]
    right = [one for one in left if one.column is roles.gold]  # of a data set, unless there is a model, too
    left = left if roles.named.get("model") or roles.pred else [one for one in left if one not in right]
    plain = table.named("score")
    if not named and plain is not None and plain.kind in ("text", "list", "empty"):
        return [ScoreCandidate(plain, "graded", TAKEN)]  # what is odd in it is said with its row when it is read
    _ask_of_unknown_words(scene, left[0] if left and left[0].points >= ASKED else None)
    if not left or left[0].points < ASKED:
        _refuse(table, roles, [*reasons.values()], left, found)
    best = left[0]
    question_beside(scene, best)
    close = [one for one in left if best.points - one.points < MARGIN and one.points >= ASKED]
    close += [one for one in stated if one not in close]
    if len(close) > 1 and best.points >= TAKEN:
        metrics = [one for one in close if one.points >= TAKEN - MARGIN]
        if all(one.group in ("metric", "graded") or _is_exact_match(one) for one in metrics) and _has_metrics(metrics):
            return metrics
        if _are_parts(metrics):
            return metrics
    if len(close) > 1 or best.points < TAKEN:
        _ask_of_rivals(close)
    _ask_of_unknown_family(table, best)
    return [best]


def _says_in_words(one: ScoreCandidate, pred: ColumnFacts | None) -> bool:
    """Return True if a column such as `result` says of each answer, by pass and fail, if it is right."""
    words = {str(cell).strip().lower() for cell in one.column.distinct}
    told = {str(cell).strip().lower() for cell in pred.distinct} if pred is not None else set()
    verdict = one.group == "weak" and one.column.kind == "verdict" and len(words) > 1
    return verdict and not words <= {*_TRUTHS, *told}


_TRUTHS = ("true", "false", "yes", "no")
"""Words that may as well say what an answer is, such as `valid` or `refused`."""


def _ask_of_unknown_words(scene: Scene, best: ScoreCandidate | None) -> None:
    """Raise AskError if a column named like a score has two words that are none we know, per cent, or odd numbers.

    Nothing is asked if `best` is right or wrong, or named like a verdict.

    Raises:
        AskError: which of the two words is right, or is `best` the score?
    """
    roles = scene.roles
    if best is not None and (best.group == "verdict" or best.column.scale == "01"):
        return
    used = [roles.gold, *roles.named.values(), *roles.words]
    answers = {*map(str, roles.pred.distinct)} if roles.pred is not None else set[str]()
    lone = best is not None and best.group == "metric"  # whatever a metric is called, a score stands before it
    for column in scene.table.columns:
        words, name = column.distinct, column.last
        surely = exact("verdict", name) or name in _WORDED
        named = surely or (lone and (exact("graded", name) or ending("graded", name) or ending("verdict", name)))
        if best is not None and column.kind == "percent" and named:
            raise AskError(
                "score",
                f"{column.name!r} is named like a score, but holds percentages: write them as numbers",
                (Choice({"score": best.column.name}, "", best.column.mean),),
                (column.name,),
                "it is none",
            )
        known = surely and name not in _OF_THE_RIGHT_ANSWER
        taken = best is not None and column is best.column  # two numbers are a score
        few = 2 <= len(words) <= (_FEW_WORDS if best is None else 2)
        odd = lone and column.kind == "number" and bool(column.vetoed)
        if taken or not known or not (few or odd) or column in used or answers & {*map(str, words)}:
            continue
        ways = [Choice({"score": best.column.name}, "", best.column.mean)] if best is not None else []
        if odd or (column.kind == "number" and column.scale == "other"):
            ways.append(Choice({"score": column.name}, "", column.mean))
        elif column.kind == "text" and not column.empty and all(key.isidentifier() for key in column.keys):
            for i, word in enumerate(words):
                way = f"{{{{ ({column.name} == {str(word)!r}) | int }}}}"
                ways.append(Choice({"score": way}, f"{word} is right", float((column.codes == i).mean())))
        elif column.kind != "text" or len(words) > 2:
            continue
        shown = " and ".join(repr(str(word)[:20]) for word in words[:_FEW_WORDS])
        why = f"{column.name!r} is named like a score, but {shown} are not known as words for right and wrong"
        raise AskError("score", why, tuple(ways), (column.name,))


_FEW_WORDS = 4
"""Words of which one may mean right."""
_OF_THE_RIGHT_ANSWER = ("correct", "right")
"""Names of verdicts that a column of right answers may have."""
_WORDED = ("score", "grade", "points")


def _ask_of_unknown_family(table: TableFacts, best: ScoreCandidate) -> None:
    """Raise AskError if three columns of one prefix (`r1_a, r1_b`) have the scale of a score with a vague name.

    Raises:
        AskError: names the family.
    """
    if best.group != "graded" or best.column.last in WORDS["graded"]["exact"]:
        return
    families: dict[str, list[str]] = defaultdict(list)
    for column in possible_scores([column for column in table.columns if column.scale == best.column.scale]):
        if column is not best.column and "_" in column.last and not column.is_constant:
            families[column.last.partition("_")[0]].append(column.name)
    names = max(families.values(), key=len, default=[])
    if len(names) >= _FAMILY:
        joined = "+".join(names)
        raise AskError(
            "score",
            f"{best.column.name!r} may be the score, but {', '.join(names[:4])}, … are on its scale, too",
            (
                Choice({"score": best.column.name}, "", best.column.mean),
                Choice({"models": joined}, "each a model"),
                Choice({"metrics": joined}, "each a metric"),
            ),
            (best.column.name, *names),
        )


_FAMILY = 3


def _is_exact_match(one: ScoreCandidate) -> bool:
    """Return True if a candidate score column is named like exact match (`em` or `…exact_match`)."""
    return one.column.last == "em" or one.column.last.endswith("exact_match")


def _are_parts(found: Sequence[ScoreCandidate]) -> bool:
    """Return True if all candidate score columns are fields of one object called `scores` or `metrics`."""
    parents = {one.column.keys[:-1] for one in found}
    return len(parents) == 1 and snake((*parents.pop(), "")[-2:][0]) in ("scores", "metrics")


def _has_metrics(found: Sequence[ScoreCandidate]) -> bool:
    """Return True if candidate columns include known metric names and none is plainly called a score.

    Unknown names count only if they share an affix with known ones."""
    exact = [one for one in found if one.group == "graded" and one.column.last in WORDS["graded"]["exact"]]
    return not exact and any(one.group == "metric" for one in found)


def _ask_of_felled(
    named: Sequence[ScoreCandidate], left: Sequence[ScoreCandidate], reasons: Mapping[int, str], scene: Scene
) -> None:
    """Raise AskError or RefuseError if the column best named as score was ruled out and none is named as well."""
    best = named[0]
    why = reasons.get(id(best))
    if why is None or (left and left[0].points >= best.points):
        return
    if best.column.is_constant and not left:
        raise RefuseError(why)
    others = [one for one in left if one.points >= ASKED]
    ways = (
        *(Choice({"score": one.column.name}, "", one.column.mean) for one in others),
        Choice({"score": best.column.name}, "all the same", best.column.mean),
    )
    if why_answers_by_gold(scene, best) is not None:
        raise RefuseError(why)
    raise AskError("score", why, ways, tuple(one.column.name for one in (*others, best)))


def _ask_of_rivals(close: Sequence[ScoreCandidate]) -> None:
    names = [one.column.name for one in close]
    ways = tuple(Choice({"score": one.column.name}, "", one.column.mean) for one in close)
    if len(close) > 1:
        ways = (*ways, Choice({"metrics": "+".join(names)}, "each a metric"))
        shown = " and ".join(map(repr, names[:4])) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        raise AskError("score", f"{shown} could each be the score", ways, tuple(names))
    raise AskError("score", f"no column is surely the score, but {names[0]!r} may be", ways, tuple(names))


def _refuse(
    table: TableFacts,
    roles: Roles,
    reasons: Sequence[str],
    left: Sequence[ScoreCandidate],
    found: Sequence[ScoreCandidate],
) -> None:
    """Raise RefuseError for a table without scores, AskError if its only true/false column or models may be them.

    Raises:
        RefuseError: says what the columns are.
        AskError: one may be the score.
    """
    beside = roles.named.get("model") or roles.pred or roles.named.get("repeat")
    truths = [one for one in found if one.column.scale == "01" and one not in left and one.group != "none"]
    truths = truths or [one for one in left if one.column.scale == "01"]
    truths = [one for one in truths if one.column.last not in WORDS["causes"]["texts"]]
    have = table.shown_names
    vetoed = [column.vetoed for column in table.columns if column.vetoed]
    for kind, of in (("percent", "per cent"), ("fraction", "fractions")):
        if of_kind := [column for column in table.columns if column.kind == kind]:
            vetoed.append(f"{of_kind[0].name!r} holds {of}: write them as numbers")
    why = "; ".join([*reasons, *vetoed])
    if len(truths) == 1 and beside and not why and roles.gold is not truths[0].column:
        name = truths[0].column.name
        raise AskError(
            "score",
            f"no column holds the scores by its name. There are {have}. {name!r} holds true and false",
            (Choice({"score": name}, "", truths[0].column.mean),),
            (name,),
        )
    models = [column for column in table.columns if column.scored and is_model(column.last) and not column.vetoed]
    if len(models) > 1 and not why:
        ask_bare(models, roles.question)
    likely = truths[0].column.name if len(truths) == 1 else "COLUMN"
    raise RefuseError(
        f"no column holds the scores. There are {have}{why and f' ({why})'}. If one of them does, name it, as in "
        f"{parameter('columns', {'score': likely})}{_way_by_answers(roles)}"
    )


def _way_by_answers(roles: Roles) -> str:
    """Return words on scores made by comparing the model's answer with the right one, "" if few or long ones agree.

    Both are texts in each row, as numbers can be written in several ways."""
    gold, pred = roles.gold, roles.pred
    if gold is None or pred is None or gold.is_worded or not all(key.isidentifier() for key in gold.keys + pred.keys):
        return ""
    if gold.empty or pred.empty or not all(isinstance(cell, str) for cell in (*gold.distinct, *pred.distinct)):
        return ""
    if not _SELDOM <= (share := float(agreement_of(gold, pred).mean())) < 1:
        return ""
    told, right = (f"{column.name} | trim | lower" for column in (pred, gold))
    way = Choice({"score": f"{{{{ (({told}) == ({right})) | int }}}}"}, "", share)
    return f". To score whether {pred.name!r} is {gold.name!r}, say {way}"


_SELDOM = 0.05
"""Share of answers that are the right one word for word, below which a person has to read them."""
