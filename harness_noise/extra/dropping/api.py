"""The public functions `drop_models` and `drop_in_sequence`."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...analysis.ranges import Ends, widths
from ...analysis.sample import as_scores
from ...analysis.scoring import said_of
from ...api.keywords import Request, chosen_settings
from ...arrays import IntArray
from ...data.native_values import are_zero_one
from ...data.notes import Note, merge_notes
from ...data.numbers import number_array
from ...data.scores import Group, Run
from ...errors import InputError, check_count, some_of
from ...extras import module_of
from ...io.paths import is_path, is_url
from ...io.sources import all_of
from ...results.forms import finite
from ...settings import Settings
from ..arena.build import distinct_names, measurements
from ..arena.pairs import Grid, grid
from ..arena.scoring import MeasuredRun, scoring_of_pairs
from ..boundaries import LOOKS, MOST_LOOKS
from ..ground import refuse_others
from ..kept_looks import head_of
from . import memory, order
from .results import Dropping, LookedModel
from .stats import FEWEST_CLUSTERS, ModelFamily, Whole, replay, see

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ...arrays import NamesLike

_OBEYED = (
    *("tasks", "metrics", "scorers", "only", "groups", "columns", "format_file", "follow_links", "apart"),
    *("as_repeats", "cluster", "missing", "range", "level", "se", "seed"),
)
_ONE_MODEL = "looks at many models take two at least, and {} is given"
_NOT_HERE = "looks at many models have no use for {}: leave it out, or use `arena` without `looks`"


def drop_models(
    *runs: Any,
    looks: int | str = LOOKS,
    n: int | None = None,
    strict: bool = False,
    jobs: int | str = 1,
    settings: Settings | None = None,
    **choices: Any,
) -> Dropping:
    """Return which of many models need no more answers, while all of them answer one order of questions.

    Parameters
    ----------
    *runs
        The runs of all models, as of `arena`; paths of local files or folders while they grow. Runs that have answered
        everything are replayed in a random order.
    looks
        How often is looked at most, at equal steps.
    n
        Questions that a model is asked at most; None: as many as the runs say, or all that there are.
    strict
        A path that cannot be used is an error.
    jobs
        1: nothing else is obeyed.
    settings
        How to compute. None: the defaults.
    **choices
        `level`, `se`, `cluster`, `missing`, `range`, `seed` of a replay, and how paths are read: see `Choices`. Other
        keywords are refused.

    Returns
    -------
    Dropping
        A row for each model: it goes on, or is no longer asked. The best model is dropped with probability 1 − level at
        most. The looks are kept in a file next to each run.

    Raises
    ------
    InputError
        Fewer than two models, runs of different questions or in no recorded order, several tasks, earlier looks with
        other choices, `looks` outside 2 to 50, or `n` below 1.

    References
    ----------
    Lan & DeMets (1983), Biometrika 70; Hwang, Shih & DeCani (1990), Statistics in Medicine 9.
    """
    sources = all_of(runs)
    refuse_others(_NOT_HERE, choices | {"jobs": None if jobs == 1 else jobs}, _OBEYED)
    check_count("n", n)
    looks = _number_of_looks(looks)
    reading = {name: value for name, value in choices.items() if value or name in ("progress", "say")}
    request = Request.of("arena", settings, reading, sources=sources, strict=strict)
    refuse_others(_NOT_HERE, request.settings.to_dict(), _OBEYED)
    found = order.read(request, sources)
    board = _board(found)
    _check_scoring(board)
    said = merge_notes(*(run.notes for run in found), board.grid.notes)
    paths = [source.path if isinstance(source, Run) else source for source in sources]
    places = [Path(str(path)) for path in paths if is_path(path) and str(path) and not is_url(path)]
    local = len(places) == len(sources)
    chosen = request.settings
    head = head_of(
        "arena looks", what=list(board.key), level=chosen.level, looks=looks, se=chosen.se, missing=chosen.missing,
        cluster=chosen.cluster, range=None if chosen.range is None else list(chosen.range), only=list(chosen.only),
    )  # fmt: skip
    kept = memory.read(places, head) if local else None
    asked = [order.asked(entry) for entry in board.measured]
    total = order.total(board.measured, max(len(board.grid.questions), *asked), n, kept)
    if kept is None and min(asked) >= total:
        return _replayed(board, request.settings, looks, said)
    if not local:
        raise InputError("the looks at runs that grow are kept next to them: give paths of local files or folders")
    return _looked(board, kept, dict(head) | {"n": total}, request, places, total, asked, said)


def drop_in_sequence(
    scores: ArrayLike,
    clusters: NamesLike | None = None,
    level: float | None = None,
    *,
    looks: int | str = LOOKS,
    higher_is_better: bool = True,
    settings: Settings | None = None,
    **choices: Any,
) -> Dropping:
    """Replay interim looks at M models from their (M, n, K) scores: who would have been dropped, and when.

    Parameters
    ----------
    scores
        (M, n, K) scores of M models on n questions, NaN where one is missing; or (M, n).
    clusters
        (n,) names, equal for questions that are asked together; None: single questions.
    level
        1 − the probability to drop the best model; 0.95.
    looks
        How often is looked at most, at equal steps of information; all questions are asked once before any twice.
    higher_is_better
        False if less is better.
    settings
        How to compute. None: the defaults.
    **choices
        `se`, `range` and `seed` of the random order of the questions.

    Returns
    -------
    Dropping
        A row for each model, called 1 … M.

    Raises
    ------
    InputError
        Scores of another shape, fewer than two models, too few questions (clusters) for a look, `looks` outside 2 to
        50, or a keyword that is not obeyed. As a ValueError: names of another length.

    References
    ----------
    Lan & DeMets (1983), Biometrika 70; Hwang, Shih & DeCani (1990), Statistics in Medicine 9.

    Examples
    --------
    >>> import numpy as np
    >>> import harness_noise as hn
    >>> rng = np.random.default_rng(2)
    >>> right = rng.random((4, 400)) < np.array([0.7, 0.68, 0.5, 0.4])[:, None]
    >>> found = hn.drop_in_sequence(right)
    >>> [(row.model, row.dropped_at) for row in found.models]
    [('1', None), ('2', None), ('3', 7), ('4', 4)]
    >>> round(found.share_asked, 2)
    0.64

    """
    values = number_array(scores)
    values = values[:, :, None] if values.ndim == 2 else values
    if values.ndim != 3 or min(values.shape) == 0:
        raise InputError(f"scores must be an (M, n, K) array, not of shape {values.shape}")
    chosen = chosen_settings("compare_in_sequence", settings, {**choices, "level": level})
    refuse_others(_NOT_HERE, {**chosen.to_dict(), **choices}, ("level", "se", "range", "seed"))
    looks = _number_of_looks(looks)
    if len(values) < 2:
        raise InputError(_ONE_MODEL.format(len(values)))
    parts = [as_scores(x, clusters, higher_is_better=higher_is_better) for x in values]
    measured = [
        MeasuredRun(str(m + 1), Run(str(m + 1), str(m + 1), "array", scores=(part,)), (part,))
        for m, part in enumerate(parts)
    ]
    return _replayed(_Board(measured, None, grid(measured, None)), chosen, looks, ())


def _number_of_looks(looks: int | str) -> int:
    """Return the number of interim looks as an int, also from text. Refuse numbers outside 2 … the maximum.

    Raises:
        InputError: anything else.
    """
    number = int(looks) if isinstance(looks, str) and looks.isdecimal() else looks
    if isinstance(number, bool) or not isinstance(number, int) or not 2 <= number <= MOST_LOOKS:
        raise InputError(f"looks {looks!r} at many models must be a number from 2 to {MOST_LOOKS}")
    return number


@dataclass(frozen=True, slots=True, eq=False)
class _Board:
    """The scores of all runs on the one task, or one group of tasks, that decides."""

    measured: Sequence[MeasuredRun]
    group: Group | None
    grid: Grid

    @property
    def key(self) -> tuple[str, str, str]:
        """(task or group, metric, scorer) by whose scores models are dropped."""
        return self.measured[0].parts[0].key if self.group is None else self.group.key

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(entry.name for entry in self.measured)

    @property
    def higher(self) -> bool | None:
        """True if higher scores are better, False if lower ones are, None if unknown."""
        parts = [part for entry in self.measured for part in entry.parts]
        return next((part.higher_is_better for part in parts if part.higher_is_better is not None), None)

    def whole(self, n: int, repeats: float, settings: Settings) -> Whole:
        """Return facts on the complete run of n questions that a look needs: size, repeats, direction, range."""
        width = float(np.nanmax(widths([Ends.of(entry.parts) for entry in self.measured], settings), initial=-1.0))
        sign = -1.0 if self.higher is False else 1.0
        return Whole(n, repeats, sign, width if width > 0 else None, settings.se)


def _board(runs: Sequence[Run]) -> _Board:
    """Return the only group, or else only task, of all runs as a `_Board`. Refuse one model, none, several, crossed.

    Raises:
        InputError: one model, nothing in common, or several tasks or metrics.
    """
    if len(runs) < 2:
        raise InputError(_ONE_MODEL.format(len(runs)))
    names = distinct_names(runs)
    every, _ = measurements(runs, names)
    common = [(group, measured) for group, measured in every if len(measured) == len(runs)]
    groups = [entry for entry in common if entry[0] is not None]
    chosen = groups if len(groups) == 1 else common
    if not chosen:
        raise InputError(
            "the runs measured no task and metric that all of them have: name the runs of one benchmark, or choose one "
            "by `tasks` and `metrics`"
        )
    if len(chosen) > 1:
        titles = [measured[0].parts[0].title if group is None else group.name for group, measured in chosen]
        raise InputError(
            f"who may be dropped is decided by one score, and the runs have {len(chosen)} ({some_of(titles, 4)}): "
            "choose one by `tasks` and `metrics`, or average several tasks by `groups`"
        )
    group, measured = chosen[0]
    board = grid(measured, group)
    if board.table.design.crossed is not None:
        raise InputError("whole clusters are asked together, and these are crossed in two ways: name one by `cluster`")
    return _Board(measured, group, board)


def _check_scoring(board: _Board) -> None:
    """Refuse models whose equal answers are scored differently: a look would drop one of them for its scoring."""
    a, b = np.triu_indices(len(board.measured), 1)
    scoring = scoring_of_pairs(board.measured, board.grid.rows, a, b)
    for i in np.flatnonzero(scoring.apart)[:1].tolist():
        equal = said_of(scoring.columns["equal_answers"][i])
        raise InputError(
            f"{board.names[a[i]]} and {board.names[b[i]]}: {equal}: the scoring differs, not the models, and one "
            "of them would be dropped for it. Score both with the same version of the scorer, or leave one out"
        )


def _replayed(board: _Board, settings: Settings, looks: int, said: Sequence[Note]) -> Dropping:
    """Return which models looks would have dropped, had complete runs been asked at random. Refuse few questions."""
    plan, table = board.grid.table.design, board.grid.table
    every = [sample.values for sample in board.grid.samples]
    K = max(x.shape[1] for x in every)
    values = np.stack([np.pad(x, ((0, 0), (0, K - x.shape[1])), constant_values=np.nan) for x in every])
    values = np.take_along_axis(values, np.argsort(np.isnan(values), axis=2, kind="stable"), axis=2)
    most = table.stats.count.max(axis=0)
    rule = module_of("looks").StoppingRule(looks=looks, level=settings.level, seed=settings.seed)
    clusters = plan.clusters if plan.clustered else None
    asked = rule.order(len(most), clusters, plan.strata if plan.strata.any() else None, repeats=most)
    steps = [np.pad(each, (0, len(most) - len(each))) for each in map(asked.answers, range(1, len(asked.ends) + 1))]
    whole = board.whole(len(most), float((1 / most).mean()), settings)
    family, answers = replay(values, plan, steps, settings.level, whole)
    if not family.models:
        raise InputError(
            f"a look needs {FEWEST_CLUSTERS} questions (clusters) that all models have answered, and these have fewer: "
            "leave out the models that lack most"
        )
    note = Note("replayed", f"all models have answered everything: replayed in a random order (seed {settings.seed})")
    given = np.array([answers, table.stats.count.sum(axis=1)])
    return replace(_result(board, board.names, family, looks, settings, len(most), given), notes=(*said, note))


def _looked(
    board: _Board,
    kept: memory.Kept | None,
    head: Mapping[str, Any],
    request: Request,
    places: Sequence[Path],
    total: int,
    asked: Sequence[int],
    said: Sequence[Note],
) -> Dropping:
    """Take the next look at growing runs. Return who goes on, save it next to each run. Refuse lost and new models."""
    settings = request.settings
    names = board.names if kept is None else kept.models
    family = ModelFamily(len(names), settings.level) if kept is None else kept.family
    on = [names[m] for m in family.left]
    if lost := [name for name in on if name not in board.names]:
        raise InputError(
            f"{some_of(lost, 4)}: still asked at the last look, and not given: name all runs that go on, and of two "
            "that share a model's name both"
        )
    if new := [name for name in board.names if name not in names]:
        raise InputError(
            f"{some_of(new, 4)}: not there at the first look, and a model that comes later starts a new family. Leave "
            "it out, or delete the files of the looks (*.arena.looks.json) to start again with all models"
        )
    at = [board.names.index(name) for name in on]
    seed = order.check([board.measured[i] for i in at], board.grid, at, total)
    count = board.grid.table.stats.count
    n = int((count[at] > 0).all(axis=0).sum())
    before = max((of.n for of in family.models.values()), default=0)
    if n < before:
        raise InputError(
            f"{n} questions are answered by all models that go on, and {before} were at the last look: runs that grow "
            "lose none. Are these other runs? Then delete the files of the looks (*.arena.looks.json)"
        )
    _add_look(family, board, at, on, names, total, settings, new=n > before)
    files = memory.write(places, memory.Kept(head, tuple(names), family))
    note = Note("looks_kept", f"the looks are kept in {some_of(files, 2)}")
    left = [board.names.index(names[m]) for m in family.left]
    done = min(asked[i] for i in left)
    steps = steps_of([board.measured[i] for i in left], done, total, seed, places, head["looks"], as_typed(request))
    found = _result(board, names, family, head["looks"], settings, total)
    return replace(found, next_steps=tuple(steps), notes=(*said, note))


def _add_look(
    family: ModelFamily,
    board: _Board,
    at: Sequence[int],
    on: Sequence[str],
    names: Sequence[str],
    total: int,
    settings: Settings,
    *,
    new: bool,
) -> None:
    """Add a look at the models to `family` if questions are new. Refuse too few at a first look, and changed old means.

    Raises:
        InputError: too few questions for a first look, or other answers to those of the last look.
    """
    table, M = board.grid.table, len(names)
    places = [names.index(name) for name in on]
    rows = np.zeros(M, dtype=np.intp)
    rows[places] = at
    seen = see(
        table.stats.runs(rows), table.design, places, board.whole(total, _repeats(table.stats.count[at]), settings)
    )
    if seen is not None and new:
        family.look(seen)
    elif seen is not None:
        for name, m in zip(on, places, strict=True):
            old, mean = family.models[m].mean, seen.rivals[m].mean
            if not math.isclose(old, mean, rel_tol=1e-9, abs_tol=1e-12):
                raise InputError(
                    f"{name}: its mean over the {seen.n} questions of the last look was {old:.6g} and is {mean:.6g}. A "
                    "look counts all answers to a question at once. If the answers were made or scored again, delete "
                    "the files of the looks (*.arena.looks.json) to start again"
                )
    elif not family.info:
        raise InputError(
            f"a first look needs {FEWEST_CLUSTERS} questions (clusters) that all models have "
            "answered: ask more of the order, and look again"
        )


def _repeats(count: IntArray) -> float:
    """Return the mean of 1/K over questions that all models answered, with K answers each. 1 if there are none."""
    both = (count > 0).all(axis=0)
    return float((1 / count[:, both]).mean()) if both.any() else 1.0


def _result(
    board: _Board,
    names: Sequence[str],
    family: ModelFamily,
    looks: int,
    settings: Settings,
    total: int,
    given: IntArray | None = None,
) -> Dropping:
    """Return the rows of all models after the interim looks taken so far, without notes and next steps.

    Args:
        board: what was measured.
        names: of the models of the family.
        family: with its looks.
        looks: planned.
        settings: how it was computed.
        total: questions that are asked at most.
        given: (2, M) answers of each model up to its last look, and all of them. None: in proportion to the questions.
    """
    task, metric, scorer = board.key
    about: dict[str, Any] = {"task": task, "metric": metric, "scorer": scorer, "higher_is_better": board.higher}
    about |= {"n_total": total, "level": 1 - family.alpha}
    about["_zero_one"] = are_zero_one([part for entry in board.measured for part in entry.parts])
    rows = []
    for m, of in family.models.items():
        share = of.n / total if given is None else float(given[0, m] / given[1, m])
        row = LookedModel(
            **about, model=names[m], n_questions=of.n, n_answers=of.answers, asked=share, mean=of.mean,
            behind=None if of.leader == m else names[of.leader], diff=of.diff, diff_low=finite(of.low),
            diff_high=finite(of.high), dropped_at=of.look if of.dropped else None, goes_on=not of.dropped,
        )  # fmt: skip
        rows.append(row)
    sign = -1.0 if board.higher is False else 1.0
    rows.sort(key=lambda row: (not row.goes_on, -(row.dropped_at or 0), -sign * row.mean))
    share = sum(row.asked for row in rows) / len(names) if given is None else float(given[0].sum() / given[1].sum())
    known = {name: value for name, value in settings.to_dict().items() if name in ("level", "se", "seed", "missing")}
    return Dropping(known, tuple(rows), len(family.info), looks, share)


def as_typed(request: Request) -> str:
    """Return the settings that differ from the defaults as " --flag value …", to be appended to a command, or ""."""
    chosen, default, options = request.settings, Settings(), request.options
    words: list[str] = []
    for name in ("tasks", "metrics", "scorers"):
        words += [word for value in getattr(options, name) for word in (f"--{name[:-1]}", value)]
    for flag, pairs in (("--group", options.groups), ("--columns", options.columns)):
        words += [word for name, value in pairs.items() for word in (flag, f"{name}={value}")]
    words += [word for value in chosen.only for word in ("--only", value)]
    for name in ("cluster", "level", "se", "missing"):
        if (value := getattr(chosen, name)) != getattr(default, name):
            words += [f"--{name}", str(value)]
    if chosen.range is not None:
        words.append("--range=" + ",".join(f"{end:.15g}" for end in chosen.range))
    words += [] if options.format_file is None else ["--format-file", options.format_file]
    apart = options.apart and not request.as_repeats
    flags = {"--as-repeats": request.as_repeats, "--apart": apart, "--follow-links": options.follow_links}
    words += [flag for flag, given in flags.items() if given]
    return f" {shlex.join(words)}" if words else ""


def steps_of(
    on: Sequence[MeasuredRun], n: int, total: int, seed: int | None, places: Sequence[Path], looks: int, choices: str
) -> list[str]:
    """Return commands to type next: ask remaining models more and look again, or compare them. [] for one model left.

    Args:
        on: the models that go on.
        n: questions that all of them have been asked.
        total: questions that are asked at most.
        seed: of their order, if a harness drew it.
        places: the runs, for the command.
        looks: that were planned.
        choices: what else was typed (see `as_typed`).
    """
    if n >= total or len(on) < 2:
        left = [path for path in places if any(Path(entry.run.path) == path for entry in on)]
        return [f"harness-noise arena {shlex.join(map(str, left or places))}{choices}"] if len(on) > 1 else []
    step = total / looks
    more = min(total, math.ceil((math.floor(n / step + 1e-9) + 1) * step - 1e-9))
    harnesses = {entry.run.harness for entry in on}
    who = some_of([entry.name for entry in on], 12)
    steps = []
    if "lm-eval" in harnesses:
        steps.append(f"harness-noise lm-eval run … --noise --noise_sample {more} --noise_seed {seed}   ({who})")
    if "inspect" in harnesses:
        metadata = f"--metadata noise=true --metadata noise_sample={more} --metadata noise_seed={seed}"
        steps.append(f"inspect eval … {metadata}   ({who})")
    if harnesses - {"lm-eval", "inspect"}:
        steps.append(f"ask {who} the questions {n + 1:,} to {more:,} of the order")
    return [*steps, f"harness-noise arena {shlex.join(map(str, places))}{choices} --looks {looks} --n {total}"]
