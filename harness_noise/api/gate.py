"""The public function `gate`: is a run good enough to ship?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, check_count
from ..results.gate import Rule
from ..settings import Settings
from .keywords import Choices, Request

if TYPE_CHECKING:
    from typing import Unpack

    from ..analysis.gate import Floor
    from ..data.scores import Run
    from ..io.paths import PathInput
    from ..io.sources import Source
    from ..results.gate import Gate


def gate(
    run: Source,
    against: Source | Sequence[Source] | None = None,
    *,
    floor: float | None = None,
    floor_questions: int | None = None,
    thresholds: PathInput | None = None,
    rule: Rule = "regression",
    ratio: float | None = None,
    pooled: bool = False,
    skip_missing: bool = False,
    self_test: bool = False,
    budget: int | None = None,
    store: PathInput | None = None,
    keep: int = 6,
    settings: Settings | None = None,
    **choices: Unpack[Choices],
) -> Gate:
    """Decide whether a run is good enough: one verdict over all its tasks, at one level.

    Parameters
    ----------
    run
        The new run: a path, a Run or a DataFrame, of one model.
    against
        The baseline; or several runs of its configuration, whose spread from run to run then counts; or a folder of
        runs that `store` has kept.
    floor
        The score that every row must reach, in place of a baseline or beside it.
    floor_questions
        Number of questions that `floor` or the `thresholds` were measured on; their own noise then counts.
    thresholds
        A YAML file of the score that each task must reach, as inference engines keep them: ``tasks: [{name, metrics:
        [{name, value}]}]``, with `rtol` where a share of it may be lost.
    rule
        ``"regression"``: it fails where a loss is shown. ``"no-loss"``: it passes only where a loss is excluded.
    ratio
        The share of the baseline that must be kept, such as 0.99, in place of a `margin`.
    pooled
        Decide on the equal-weight mean of all rows; the rows are then for information.
    skip_missing
        Leave out what cannot be judged, and name it; else the outcome is ``"cannot judge"``.
    self_test
        Also compute how often an identical model would fail, and which loss is seen how often.
    budget
        Number of questions that you could ask at most: also compute the loss that they would show. It never changes
        the outcome.
    store
        Keep what a gate needs of this run in this folder, if it passes.
    keep
        How many of the runs that passed the folder `store` keeps.
    settings
        How to compute. None: the defaults.
    **choices
        `margin`, the loss that is accepted, on the metric's own scale (0); `level`, of the two-sided intervals: the
        gate is one-sided at (1 − level)/2; `adjust`, ``"holm"`` over all rows or ``"none"``; other fields of `Settings`
        to replace, and how paths are read: see `Choices`.

    Returns
    -------
    Gate
        `passed`, `outcome`, `sentence` and `rows`; ``assert hn.gate(…).passed`` shows the sentence where it fails.

    Raises
    ------
    InputError
        Input or settings that cannot be used.

    References
    ----------
    Holm (1979), Scandinavian Journal of Statistics 6(2); Zou & Donner (2008), Statistics in Medicine 27(10).
    """
    from ..analysis import gate as analysis
    from ..io.kept_runs import comparable
    from ..io.kept_runs import keep as keep_run
    from ..io.sources import listed, only_of
    from ..io.thresholds import read_recovery

    check_count("budget", budget, least=2)
    check_count("keep", keep)
    new_run, baseline = listed(run), [] if against is None else listed(against)
    request = Request.of("gate", settings, choices, sources=[*new_run, *baseline], strict=True)
    margin = request.settings.margin or 0.0
    recovery = None
    if thresholds is not None and against is not None and ratio is None and not margin:
        recovery = ratio = read_recovery(thresholds)
    bar = analysis.Bar(rule=rule, margin=margin, ratio=ratio, pooled=pooled, skip_missing=skip_missing)
    new = only_of(request.runs(new_run), new_run)
    floors = _floors(floor, floor_questions, thresholds, bare=recovery is not None)
    baselines, kept = _baselines(baseline, request)
    if not baselines and not floors:
        raise InputError("what must the run reach? Give `against`, a run to compare with, a `floor`, or `thresholds`")
    if request.labels:
        if kept or len(baselines) > 1 or ratio is not None or store is not None:
            raise InputError(
                "with labels a gate holds the corrected mean against a floor, or against one baseline whose answers "
                "are labelled, too: leave `ratio`, `store` and further baselines out"
            )
        new, *baselines = request.corrected([new, *baselines])
    judged = comparable(new) if kept else new
    result = analysis.judge(judged, baselines, floors, bar, request.settings, budget=budget, tested=self_test)
    notes = list(result.notes)
    if recovery is not None:
        notes.append(f"`ratio` {recovery:g} is the recovery_threshold of {thresholds}")
    if request.labels:
        notes.append("the estimand is the mean that people would give, by their labels")
    if store is not None and result.passed:
        written = keep_run(new, Path(str(store)), keep)
        notes.append(f"wrote {written[0]}" if written else f"{store} has this run already")
    return replace(result, notes=tuple(notes))


def _floors(
    floor: float | None, n: int | None, thresholds: PathInput | None, *, bare: bool
) -> list[Mapping[Any, Floor] | Floor]:
    """What the run's own means must reach: one number for all rows, or one for each that a file names.

    With `bare` the file may name none: it has a `recovery_threshold`.
    """
    from ..analysis.gate import Floor

    check_count("floor_questions", n)
    out: list[Mapping[Any, Floor] | Floor] = [] if floor is None else [Floor(float(floor), n)]
    if thresholds is not None:
        from ..io.thresholds import read_thresholds

        named = read_thresholds(thresholds, bare=bare)
        out += [{key: Floor(value, n, rtol, limit) for key, value, rtol, limit in named}] if named else []
    if n is not None and not out:
        raise InputError("`floor_questions` is about `floor` or `thresholds`: give one of them")
    return out


def _baselines(sources: Sequence[Any], request: Request) -> tuple[list[Run], bool]:
    """The baseline runs, and whether any of them is a kept one."""
    from ..io.kept_runs import comparable, is_store, read_kept
    from ..io.paths import is_path
    from ..io.sources import only_of

    out, kept = [], []
    for source in sources:
        if is_path(source) and Path(str(source)).is_dir() and not any(Path(str(source)).iterdir()):
            raise InputError(f"{source} is empty: no run has been kept there yet, so name a baseline run or a `floor`")
        stored = is_path(source) and is_store(source)
        runs = read_kept(source) if stored else [only_of(request.runs([source]), [source])]
        out += runs
        kept += [stored] * len(runs)
    if any(kept):
        out = [run if is_kept else comparable(run) for run, is_kept in zip(out, kept, strict=True)]
    return out, any(kept)
