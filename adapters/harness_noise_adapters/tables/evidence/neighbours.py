"""Other columns that show that a column does not hold scores (rule 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from harness_noise.arrays import BoolArray, FloatArray

from ..values import cell_text
from .lexicon import WORDS, is_gold, is_judge, is_pred, is_vetoed
from .questions import is_broken
from .scores import ScoreCandidate, is_earned
from .table import ColumnFacts, TableFacts
from .verdicts import AskError, Choice, Roles

_NEARLY = 0.95
_ALWAYS = 0.98
_CHANCE = 0.9
"""Agreement of two models by chance above which equal scores prove nothing."""
_LONE = (-1.0, -9.0, -99.0, -999.0)


@dataclass(eq=False)
class Scene:
    """A table with what is known of it while the score is looked for."""

    table: TableFacts
    roles: Roles
    candidates: list[ScoreCandidate]

    @cached_property
    def agreement(self) -> FloatArray | None:
        """(n,) for each row 1.0 if the model's answer equals the right one, else 0.0. None without these columns."""
        gold, pred = self.roles.gold, self.roles.pred
        return None if gold is None or pred is None else agreement_of(gold, pred)


def agreement_of(gold: ColumnFacts, pred: ColumnFacts) -> FloatArray:
    """Return (n,) for each row 1.0 if the model's answer equals the right one, 0.0 if not, NaN without a right one."""
    n = len(pred.distinct) + 1
    pairs, inverse = np.unique((gold.codes + 1) * n + pred.codes + 1, return_inverse=True)
    a, b = ([None, *column.distinct] for column in (gold, pred))
    told = [(a[pair // n], b[pair % n]) for pair in pairs.tolist()]
    same = [np.nan if x is None else float(y is not None and _same(x, y)) for x, y in told]
    out: FloatArray = np.array(same)[inverse.reshape(-1)]
    return out


def _same(a: object, b: object) -> bool:
    return (cell_text(a) or "").lower() == (cell_text(b) or "").lower()


def find_answers(table: TableFacts, roles: Roles, said: Mapping[str, str], off: Sequence[str]) -> None:
    """Store the columns of the right answer (`gold`) and the model's answer (`pred`) in `roles`, None without one.

    What the user named as `target` and `response`, or switched off, is not decided here."""
    named = {ours: table.named(said[ours]) for ours in ("target", "response") if ours in said}
    golds = [column for column in table.columns if (is_gold(column.last) or column.vetoed) and _holds(column)]
    whole = [name for name in WORDS["pred"]["exact"] if name not in ("extracted", "parsed", "chosen", "executed")]
    preds = [column for column in table.columns if is_pred(column.last) and _holds(column)]
    preds.sort(key=lambda column: (column.last not in whole, column.depth))
    strict = [column for column in golds if column.last != "answer"]
    if (strict or "target" in off) and not preds:
        preds = [column for column in golds if column.last == "answer"]
    golds = strict or golds
    texts = [column for column in golds if not column.vetoed] or golds
    texts = [column for column in texts if column is not named.get("response")]
    roles.gold = named.get("target") or next(iter([] if "target" in off else texts), None)
    preds = [column for column in preds if column is not roles.gold]
    roles.pred = named.get("response") or next(iter([] if "response" in off else preds), None)


def settle_lone_answer(roles: Roles, said: Mapping[str, str], off: Sequence[str]) -> None:
    """Move a lone column `answer` from `gold` to `pred` if its cells differ within a question. Else set `either`.

    Nothing else tells a right answer from a reply: both are called `answer`."""
    column, question = roles.gold, roles.question
    if column is None or roles.pred is not None or column.last != "answer" or "target" in said or "response" in off:
        return
    roles.either = True
    if question is None:
        return
    task = roles.named.get("task")
    keys = question.codes if task is None else (question.codes + 1) * (len(task.distinct) + 1) + task.codes
    there = (question.codes >= 0) & (column.codes >= 0)
    told = np.unique(np.stack([keys[there], column.codes[there]], axis=1), axis=0)[:, 0]
    rows, several = (np.unique(each, return_counts=True)[1] for each in (keys[there], told))
    differ = int((several > 1).sum())
    if differ >= 2 and differ >= _RARELY * int((rows > 1).sum()):
        roles.gold, roles.pred, roles.either = None, column, False


_RARELY = 0.05
"""Share of the questions whose right answer may be written in two ways."""


def _holds(column: ColumnFacts) -> bool:
    return column.kind not in ("object", "empty")


def felled(scene: Scene, one: ScoreCandidate) -> str | None:
    """Return the reason why other columns show that a candidate column is not the score, None if none does."""
    return next((why for check in _FELLERS if (why := check(scene, one)) is not None), None)


def why_answers_by_gold(scene: Scene, one: ScoreCandidate) -> str | None:
    """Return why column X holds answers, not scores: a column gold_X or expected_X exists. None if not (a)."""
    column = one.column
    stem = [part for part in column.parts if part not in ("output", "pred", "predicted")]
    for other in scene.table.columns:
        words = [word for part in other.parts for word in part.split("_") if part]
        golden = [word for word in words if word in ("gold", "golden", "expected")]
        if golden and other is not column and "_".join(w for w in words if w not in golden) == "_".join(stem):
            return f"{other.name!r} is next to {column.name!r}, which holds answers, then"
    return None


def _why_property_of_question(scene: Scene, one: ScoreCandidate) -> str | None:
    """Return why a column is no score: it hardly differs between models on a question. None if not so (g)."""
    model, question = scene.roles.named.get("model"), scene.roles.question
    if model is None or question is None or len(model.distinct) < 2 or one.column.kind == "scores":
        return None
    values, q = one.column.numbers, question.codes
    there = (q >= 0) & ~np.isnan(values)
    values, q, m = values[there], q[there], model.codes[there]
    order = np.argsort(q, kind="stable")
    q, m, values = q[order], m[order], values[order]
    starts = np.flatnonzero(np.diff(q, prepend=-1))
    if not starts.size or len(starts) > _MANY:
        return None
    several = np.minimum.reduceat(m, starts) < np.maximum.reduceat(m, starts)
    if several.sum() < _FEWEST or one.column.is_constant:
        return None
    same = np.mean((np.minimum.reduceat(values, starts) == np.maximum.reduceat(values, starts))[several])
    _, counts = np.unique(values, return_counts=True)
    if same < _ALWAYS or ((counts / counts.sum()) ** 2).sum() > _CHANCE:
        return None
    if one.column.scale == "01" and several.sum() < _FEWEST_01:
        return None
    return f"{one.column.name!r} is the same for all models on {same:.0%} of the questions: a property of the question"


_FEWEST, _FEWEST_01, _MANY = 4, 20, 5000


def _why_constant(scene: Scene, one: ScoreCandidate) -> str | None:
    """Return why a constant column is no score: some answers are right (all only if it is 0). None if not so (h)."""
    agreement = scene.agreement
    if agreement is None or not one.column.is_constant or one.column.kind == "scores":
        return None
    share = float(np.nanmean(agreement)) if np.isfinite(agreement).any() else 0.0
    if share < 1 - _ALWAYS or (share > _ALWAYS and one.column.mean > 0):
        return None
    return (
        f"{one.column.name!r} is {_cell(one.column)} in every row, though the answer is the right one "
        f"in {share:.0%} of them: it is no score of the answers"
    )


def _why_of_another_thing(scene: Scene, one: ScoreCandidate) -> str | None:
    """Return why X_score rates something else: a column X_id exists that names another thing. None if not so."""
    parent, before = one.column.parts[:-1], one.column.last.rpartition("_")[0]
    ids = [column for column in scene.table.columns if column.parts == [*parent, f"{before}_id"]]
    if not ids or ids[0] is scene.roles.question or before in WORDS["another"]["own"]:
        return None
    return f"{one.column.name!r} may be the score of what {ids[0].name!r} names, and not of the answer"


def _cell(column: ColumnFacts) -> str:
    return str(column.distinct[0])[:20] if column.distinct else "empty"


_FELLERS: Sequence[Callable[[Scene, ScoreCandidate], str | None]] = (
    why_answers_by_gold,
    _why_property_of_question,
    _why_constant,
    _why_of_another_thing,
)


def question_beside(scene: Scene, one: ScoreCandidate) -> None:
    """Raise AskError if a neighbouring column allows a second reading of the candidate score column.

    Raises:
        AskError: it names both readings.
        RefuseError: there is no reading by which it is a score.
    """
    for check in _ASKERS:
        check(scene, one)


def _choice(column: ColumnFacts, of: str = "") -> Choice:
    return Choice({"score": column.name}, of, column.mean)


def _ask_beside_prediction(scene: Scene, one: ScoreCandidate) -> None:
    """Raise AskError if a true/false column next to the model's answers may be the right answer, not a score (b)."""
    column, pred = one.column, scene.roles.pred
    if one.group != "verdict" or column.scale != "01" or pred is None or pred.scale != "01":
        return
    agreement, values = scene.agreement, column.numbers
    if agreement is not None:
        both = ~np.isnan(agreement) & ~np.isnan(values)
        if both.any() and np.mean(agreement[both] == values[both]) > _NEARLY:
            return
    elif not _has_only_values_of(column, pred):
        return
    raise AskError(
        "score",
        f"{column.name!r} is next to {pred.name!r}, which has the same values: it may be the right answer, and no "
        "score",
        (_choice(column),),
        (column.name,),
        "it says which answers are right",
    )


def _has_only_values_of(column: ColumnFacts, pred: ColumnFacts) -> bool:
    """Return True if a verdict column holds only values that the answer column also has, such as 0 and 1."""
    return {str(cell).lower() for cell in column.distinct} <= {str(cell).lower() for cell in pred.distinct} | {
        "",
        "none",
    }


def _ask_beside_earned(scene: Scene, one: ScoreCandidate) -> None:
    """Raise AskError if a column never lies below the points earned: it may be what a question is worth (c)."""
    worth = one.column
    others = [column for column in scene.table.columns if column is not worth and is_earned(column.last)]
    if is_earned(worth.last):
        others, worth_columns = [worth], [c.column for c in scene.candidates if not is_earned(c.column.last)]
        worth = next((column for column in worth_columns if _never_above(one.column, column)), worth)
    for got in others:
        if got is not worth and got.scored and _never_above(got, worth) and not worth.is_constant:
            raise AskError(
                "score",
                f"{got.name!r} is never above {worth.name!r}, which may be what a question is worth",
                (_choice(got), _choice(worth)),
                (got.name, worth.name),
            )


def _template_of_ratio(part: ColumnFacts, whole: ColumnFacts) -> str:
    """Return a template text that divides one column by another and is empty where the first one is."""
    return f"{{{{ (({part.name} | float) / ({whole.name} | float)) if {part.name} not in (none, '') }}}}"


def _never_above(low: ColumnFacts, high: ColumnFacts) -> bool:
    if not (low.scored and high.scored) or "scores" in (low.kind, high.kind):
        return False
    both = ~np.isnan(low.numbers) & ~np.isnan(high.numbers)
    return bool(both.any()) and bool((low.numbers[both] <= high.numbers[both]).all())


def _ask_beside_maximum(scene: Scene, one: ScoreCandidate) -> None:
    """Raise AskError if a maximum column varies: the score may be the points, or their share of it (d)."""
    column = one.column
    if column.scale in ("", "01") or column.kind == "scores" or column.last == "pass1":
        return
    for most in scene.table.columns:
        named = most.last in WORDS["whole"]["exact"] or most.last in (f"max_{column.last}", f"{column.last}_max")
        if most is column or not named or most.is_constant or not _never_above(column, most):
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            share = float(np.nanmean(np.where(most.numbers > 0, column.numbers / most.numbers, np.nan)))
        raise AskError(
            "scale",
            f"{column.name!r} is never above {most.name!r}, which varies: points, or the share of them",
            (_choice(column, "points"), Choice({"score": _template_of_ratio(column, most)}, "the share", share)),
            (column.name,),
        )


def _ask_beside_tests(scene: Scene, counts: ColumnFacts) -> None:
    """Raise AskError if counts never exceed a number of tests: the score may be the share, or all passed (e)."""
    for most in scene.table.columns:
        if most is counts or most.last not in WORDS["whole"]["tests"] or not _never_above(counts, most):
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            share = most.numbers > 0, counts.numbers / most.numbers
            every = np.nanmean(np.where(share[0], counts.numbers == most.numbers, np.nan))
        all_of = f"{{{{ ({counts.name} | float == {most.name} | float) | int }}}}"
        raise AskError(
            "score",
            f"{counts.name!r} counts up to {most.name!r}: a share, or whether all passed",
            (
                Choice(
                    {"score": _template_of_ratio(counts, most)},
                    "the share",
                    float(np.nanmean(np.where(*share, np.nan))),
                ),
                Choice({"score": all_of}, "all of them", float(every)),
            ),
            (counts.name,),
        )


def ask_of_counts(scene: Scene) -> None:
    """Raise AskError if a column named like a verdict holds counts of passed tests next to their total."""
    for column in scene.table.columns:
        if column.vetoed and column.scale in ("small", "hundred", "other"):
            _ask_beside_tests(scene, column)


def _ask_beside_worth(scene: Scene, one: ScoreCandidate) -> None:
    """Raise AskError if points above 1 next to right and given answers, and no judge, may be a question's worth (f)."""
    column, roles = one.column, scene.roles
    if one.group != "graded" or column.scale not in ("small", "hundred", "other") or column.kind == "scores":
        return
    model = roles.named.get("model")
    judged = any(is_judge(other.last) for other in scene.table.columns) or (model and len(model.distinct) > 1)
    if roles.gold is None or roles.pred is None or judged:
        return
    raise AskError(
        "score",
        f"{column.name!r} is next to the right answer ({roles.gold.name!r}) and no column shows a judge: it may be "
        "what a question is worth",
        (_choice(column),),
        (column.name,),
        "it is what the answer got",
    )


def _ask_of_lone_value(scene: Scene, one: ScoreCandidate) -> None:
    """Raise AskError if a single value such as −1 among scores above 1 may stand for a missing score (i)."""
    values = one.column.numbers if one.column.kind == "number" else np.zeros(0)
    values = values[~np.isnan(values)]
    for lone in _LONE:
        rest = values[values != lone]
        if rest.size and rest.size < values.size and rest.min() >= 0 and rest.max() > 1:
            name = one.column.name
            taken = Choice({"score": name}, f"{lone:g} is a score", one.column.mean)
            left_out = f"{{{{ {name} if {name} | float != {lone:g} }}}}"  # renders as nothing where it is missing
            raise AskError(
                "missing",
                f"{name!r} is {lone:g} in {values.size - rest.size} of {values.size} rows and otherwise "
                f"{rest.min():g} to {rest.max():g}: {lone:g} may mean a missing score",
                (taken, Choice({"score": left_out}, "it is missing", float(rest.mean()))),
                (name,),
            )


def _ask_beside_ratings(scene: Scene, one: ScoreCandidate) -> None:
    """Raise AskError if, next to two ratings, a verdict is false just on errors: it may say that grading ran."""
    columns, verdict = scene.table.columns, one.column
    error = next((column for column in columns if column.last in WORDS["causes"]["texts"]), None)
    if one.group != "verdict" or verdict.scale != "01" or error is None:
        return
    failed = is_broken(error)
    if not failed.any() or not np.array_equal(verdict.numbers == 0, failed):
        return
    ratings = [
        column
        for column in columns
        if column.kind == "number" and not is_vetoed(column.last) and _is_lowest(column, failed)
    ]
    if len(ratings) > 1:
        names = "+".join(column.name for column in ratings)
        raise AskError(
            "score",
            f"{verdict.name!r} is false just where there is an {error.name!r}: it may say which answers were rated, "
            f"and {' and '.join(repr(column.name) for column in ratings[:2])} may be the scores",
            (Choice({"metrics": names}, "each a metric"), _choice(verdict)),
            (verdict.name,),
        )


def _is_lowest(column: ColumnFacts, failed: BoolArray) -> bool:
    """Return True if a column is empty or lowest in all failed rows (also if none failed) and seldom in others."""
    if column.scale not in ("unit", "small", "hundred") or column.is_constant:
        return False
    lowest = np.isnan(column.numbers) | (column.numbers == np.nanmin(column.numbers))
    return bool(lowest[failed].all()) and float(lowest[~failed].mean()) < 1 - _CHANCE


def _ask_of_family(scene: Scene, one: ScoreCandidate) -> None:
    """Raise AskError if a score column has sisters of its prefix and scale, and none is sure: one, or all (j)."""
    prefix, _, rest = one.column.last.rpartition("_")
    if (
        not prefix
        or not rest
        or one.group == "verdict"
        or any(one is not other and other.points >= _KNOWN for other in scene.candidates)
    ):
        return
    family = [
        other.column
        for other in scene.candidates
        if other.group in ("unnamed", "metric", "graded")
        and other.column.last.startswith(f"{prefix}_")
        and other.column.scale == one.column.scale
    ]
    if len(family) > 1:
        names = [one.column.name, *(column.name for column in family if column is not one.column)]
        raise AskError(
            "score",
            f"{', '.join(names)} have one scale and one kind of name: one of them, or all as metrics",
            (_choice(one.column), Choice({"metrics": "+".join(names)}, "each a metric")),
            (one.column.name,),
        )


_KNOWN = 4.0
_ASKERS: Sequence[Callable[[Scene, ScoreCandidate], None]] = (
    _ask_beside_earned,
    _ask_beside_maximum,
    _ask_of_lone_value,
    _ask_beside_prediction,
    _ask_beside_worth,
    _ask_beside_ratings,
    _ask_of_family,
)
