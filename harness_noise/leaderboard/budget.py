"""What it takes to tell the models apart that are not told from the best, from the formulas of the plan."""

from __future__ import annotations

from dataclasses import replace

from ..analysis.pilots import Noise, from_runs
from ..errors import InputError
from ..results.arena import Arena, BenchmarkResult, Budget
from ..results.rows import Difference
from ..settings import Settings
from ..stats.planning import detectable_effect, required_units

POWER = 0.8
ASSURANCE = 0.8
MOST_REPEATS = 1000


def with_budget(arena: Arena) -> Arena:
    """The arena with, for each benchmark, the pairs of its best model with those that are not told from it.

    Raises:
        InputError: an arena of fixed questions, which more questions say nothing of.
    """
    if arena.settings.get("questions_are") == "fixed":
        raise InputError("a budget counts questions that would be added: not with `questions_are='fixed'`")
    return replace(arena, budget=tuple(row for board in arena.boards for row in _rows(board)))


def _rows(board: BenchmarkResult) -> list[Budget]:
    known = [model for model in board.models if model.mean is not None]
    if not known:
        return []
    sign = -1 if board.pairs.common["higher_is_better"] is False else 1
    best = max(known, key=lambda model: sign * (model.mean or 0.0))
    rivals = {(model.model, model.run) for model in known if model.among_best and model is not best}
    out = []
    for pair in board.pairs:
        sides = [(pair.model_a, pair.run_a), (pair.model_b, pair.run_b)]
        if (best.model, best.run) not in sides:
            continue
        other = sides[1 - sides.index((best.model, best.run))]
        if other in rivals:
            out.append(_row(pair, best.model, other[0]))
    return sorted(out, key=lambda row: abs(row.diff or 0.0), reverse=True)


def _row(pair: Difference, best: str, other: str) -> Budget:
    questions, repeats = _needs(pair)
    lead = None if pair.diff is None else (pair.diff if pair.model_a == best else -pair.diff)
    return Budget(
        task=pair.task,
        metric=pair.metric,
        scorer=pair.scorer,
        best=best,
        model=other,
        diff=lead,
        n_questions=pair.n_questions,
        repeats=min(pair.repeats_a, pair.repeats_b),
        more_questions=None if questions is None else max(0, questions - pair.n_questions),
        more_repeats=None if repeats is None else max(0, repeats - min(pair.repeats_a, pair.repeats_b)),
    )


def _needs(pair: Difference) -> tuple[int | None, int | None]:
    """Questions at the answers they have, and answers at the questions they have, that find the difference seen."""
    if not pair.diff or not pair.se or pair.df is None:
        return None, None
    alpha, effect = 1 - pair.level, abs(pair.diff)
    noise: Noise = from_runs([pair], Settings(), ASSURANCE)
    v = noise.variances if noise.upper is None else noise.upper
    same = pair.repeats_a == pair.repeats_b
    K = min(pair.repeats_a, pair.repeats_b)
    now = v.at(K) if noise.split and same else pair.n_questions * pair.se**2
    try:
        questions = noise.units.questions(required_units(now, effect, alpha, POWER, noise.units))
    except ValueError:
        questions = None
    if not noise.split:
        return questions, None

    def enough(k: int) -> bool:
        return detectable_effect(v.at(k), pair.n_questions, alpha, POWER, noise.units) <= effect

    if not enough(MOST_REPEATS):
        return questions, None
    low, high = 0, MOST_REPEATS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return questions, high
