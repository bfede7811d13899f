"""The public function `gate`: is a run good enough to ship?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...api.keywords import Choices, Request
from ...choices import has_limits
from ...data.notes import Note
from ...errors import InputError, check_count, check_kind, some_of
from ...settings import REFUSALS, Settings
from .results import Rule

if TYPE_CHECKING:
    from typing import Unpack

    from ...data.scores import Run
    from ...io.paths import PathInput
    from ...io.sources import Source
    from .judge import Floor
    from .results import Gate


def gate(
    run: Source,
    against: Source | Sequence[Source] | None = None,
    *,
    floor: float | None = None,
    n: int | None = None,
    answers_b: float | None = None,
    thresholds: PathInput | None = None,
    rule: Rule = "regression",
    ratio: float | None = None,
    pooled: bool = False,
    each: bool = False,
    skip_missing: bool = False,
    vouch: Sequence[str] = (),
    self_test: bool = False,
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
    n
        Number of questions that `floor` or the `thresholds` were measured on; their own noise then counts.
    answers_b
        Answers to each question that `floor` or the `thresholds` were measured with, on the same questions as the run,
        infinite if greedy. Question noise then cancels, and the estimand is these questions.
    thresholds
        A YAML file of the score that each task must reach, as inference engines keep them: ``tasks: [{name, metrics:
        [{name, value}]}]``, with `rtol` where a share of it may be lost.
    rule
        ``"regression"``: it fails where a loss is shown. ``"no-loss"``: it passes only where a loss is excluded.
    ratio
        The share of the baseline that must be kept, such as 0.99, in place of a `margin`.
    pooled
        Decide on the equal-weight mean of all rows; the rows are then for information.
    each
        Decide on every question by itself, by its right answers in both runs, each with K > 1 repeats: which single
        test of a suite broke?
    skip_missing
        Leave out what cannot be judged, and name it; else the outcome is ``"cannot judge"``.
    vouch
        Causes for which answers are missing at random, by your word, such as ``["infrastructure"]``. A row of which all
        missing answers have such a cause is judged without them. It says nothing of answers that may be wrong.
    self_test
        Also compute how often an identical model would fail, and which loss is seen how often.
    store
        Keep what a gate needs of this run in this folder, if it passes.
    keep
        How many of the runs that passed the folder `store` keeps.
    settings
        How to compute. None: the defaults.
    **choices
        `margin`, the loss that is accepted, on the metric's own scale (0); `level`, of the two-sided intervals: the
        gate is one-sided at (1 − level)/2; `adjust`, of the rule regression ``"holm"`` over all rows or ``"none"``;
        other fields of `Settings` to replace, and how paths are read: see `Choices`.

    Returns
    -------
    Gate
        `passed`, `outcome`, `sentence` and `rows`; ``assert hn.gate(…).passed`` shows the sentence where it fails.

    Raises
    ------
    InputError
        No bar (`against`, `floor` or `thresholds`), or `margin` with `ratio`; a bar outside the metric's range, or a
        margin as large as it; a sign or permutation test with a margin or ratio; what `compare` refuses. A run that
        cannot be judged is no error: its outcome is ``"cannot judge"``.

    References
    ----------
    Holm (1979), Scandinavian Journal of Statistics 6(2); Zou & Donner (2008), Statistics in Medicine 27(10).
    """
    from ...io.sources import SIDES, lettered, listed, names, only_of
    from . import judge as analysis
    from .kept_runs import comparable
    from .thresholds import read_recovery

    check_count("keep", keep)
    new_run, baseline = listed(run), [] if against is None else listed(against)
    request = Request.of("gate", settings, choices, sources=[*new_run, *baseline], strict=True)
    margin, recovery = request.settings.margin or 0.0, None
    if thresholds is not None and against is not None and ratio is None and not margin:
        recovery = ratio = read_recovery(thresholds)
    if not each:
        _check_settings(request.settings, ratio, pooled=pooled)
    bar = analysis.Bar(
        rule=rule, margin=margin, ratio=ratio, pooled=pooled, skip_missing=skip_missing, vouched=names(vouch)
    )
    new = lettered(only_of(request.runs(new_run), new_run), SIDES[0])
    settings = request.settings if answers_b is None else replace(request.settings, questions_are="fixed")
    _check_same_questions(settings, floor, n, answers_b, baseline)
    if each:
        others: dict[str, Any] = {"floor": floor, "thresholds": thresholds, "ratio": ratio, "store": store}
        others |= {"vouch": tuple(vouch) or None, "pooled": pooled, "self_test": self_test}
        others |= {"rule": rule != "regression" and rule}
        return _judge_each_question(new, baseline, request, others, skip_missing=skip_missing)
    floors = _floors(floor, n, thresholds, answers_b, bare=recovery is not None)
    baselines, kept, origins = _baselines(baseline, request)
    if not baselines and not floors:
        raise InputError("what must the run reach? Give `against`, a run to compare with, a `floor`, or `thresholds`")
    if request.correction and (kept or len(baselines) > 1 or ratio is not None or store is not None):
        raise InputError(
            "with labels a gate holds the corrected mean against a floor, or against one baseline whose answers are "
            "labelled, too: leave `ratio`, `store` and further baselines out"
        )
    given = new
    new, *baselines = request.prepared([new, *baselines])
    judged = comparable(new) if kept else new
    result = analysis.judge(judged, baselines, floors, bar, settings, tested=self_test)
    notes = [Note("baseline_from", f"baseline: {said}") for said in origins]
    if not kept and any(base.model == given.model for base in baselines):  # whom the models' names do not tell apart
        named = f"A = {given.name}, B = {some_of([base.name for base in baselines], 3)}"
        notes.append(Note("baseline_from", named))
    notes += result.notes
    if recovery is not None:
        said = f"`ratio` {recovery:g} is the recovery_threshold of {thresholds}"
        notes.append(Note("ratio_from_file", said))
    if request.correction:
        notes.append(Note("estimand", "the estimand is the mean that people would give, by their labels"))
    if settings.questions_are == "fixed":
        said = "the figures hold for these questions, not for other questions of their kind"
        notes.append(Note("estimand", said))
    notes += [] if store is None else _stored(given, store, keep, passed=result.passed)
    return replace(result, notes=tuple(notes))


def _check_settings(settings: Settings, ratio: float | None, *, pooled: bool) -> None:
    """Refuse a test, interval or weights that a gate cannot use.

    Raises:
        InputError: says what to leave out.
    """
    test, weights = settings.test, settings.weights
    if settings.interval not in ("auto", test):
        raise InputError(
            f"a gate reads p and limit of one test, and `interval={settings.interval!r}` is not that of "
            f"`test={test!r}`: leave `interval` out, or name it as the `test`"
        )
    if ratio is not None and not has_limits(test):
        raise InputError(
            f"`test={test!r}` has no limit to hold against a `ratio`: leave one of the two out, or use `test='t'`"
        )
    if pooled and weights == "none":
        raise InputError("`weights='none'` leaves out the mean over all tasks, on which `pooled` decides")
    if pooled and settings.strata is not None:
        raise InputError(
            f"`weights` by {settings.strata[0]} are the mix within each task, and `pooled` is the mean over tasks: "
            "leave one of the two out"
        )
    if not pooled and weights not in ("equal", "none") and settings.strata is None:
        raise InputError("`weights` are of the mean over all tasks, which decides with `pooled` alone: give it, too")


def _stored(run: Run, store: PathInput, keep: int, *, passed: bool) -> list[Note]:
    """Keep a run that passed in folder `store`, but not in a pull request's job. Return notes, [] if it failed."""
    from .kept_runs import from_pull_request
    from .kept_runs import keep as keep_run

    if from_pull_request():
        said = f"not kept in {store}: the run is of a pull request, and a later one would be held against it"
        return [Note("not_kept", said)]
    if not passed:
        return []
    written = keep_run(run, Path(str(store)), keep)
    said = f"wrote {written[0]}" if written else f"{store} has this run already"
    return [Note("wrote" if written else "kept_already", said)]


def _judge_each_question(
    new: Run, baseline: Sequence[Any], request: Request, others: Mapping[str, Any], *, skip_missing: bool
) -> Gate:
    """Return the gate's result for `each`, a verdict on every question. Refuse `others` and a missing baseline."""
    from .each import judge_each

    settings = replace(request.settings, margin=request.settings.margin or None)
    settings.check("each")
    for name, value in (dict(others) | {"labels": request.correction}).items():
        if value not in (None, False, {}):
            raise InputError(REFUSALS["each"].format(what=f"`{name}`"))
    baselines, kept, _ = _baselines(baseline, request)
    if not baselines or kept:
        why = "a kept run has only means" if kept else "none is given"
        raise InputError(f"`each` needs the answers of a baseline run, and {why}: name one as `against`")
    return judge_each(new, baselines, settings, skip_missing=skip_missing)


def _check_same_questions(
    settings: Settings, floor: float | None, n: int | None, answers: float | None, against: Sequence[Any]
) -> None:
    """Refuse `n` (questions of a floor) with fixed questions, and `answers_b` with a baseline run.

    Raises:
        InputError: says both commands.
    """
    if n is not None and settings.questions_are == "fixed":
        number = "VALUE" if floor is None else f"{floor:g}"
        raise InputError(
            "`n` adds the noise of other questions, and with fixed questions there are no others. If "
            f"{number} was measured on the same questions: `answers_b=K`, K its answers to each. If on {n} others: "
            f"`n={n}`, without `questions_are='fixed'`"
        )
    if answers is not None and against:
        raise InputError(
            "`answers_b` is about a `floor`, and `against` is a run whose answers are known: leave one out"
        )


def _floors(
    floor: float | None, n: int | None, thresholds: PathInput | None, answers: float | None, *, bare: bool
) -> list[Mapping[Any, Floor] | Floor]:
    """Return a list of a `Floor` for all rows, {row: Floor} of a file, both or []. Refuse `n`, `answers_b` without one.

    With `bare` the file may name none: it has a `recovery_threshold`.
    """
    from .judge import Floor

    check_count("n", n)
    out: list[Mapping[Any, Floor] | Floor] = []
    check_kind("`floor`", floor, Real, type(None))
    if floor is not None:
        out.append(Floor(floor if isinstance(floor, float) else float(floor), n, answers=answers))  # or `InPoints`
    if thresholds is not None:
        from .thresholds import read_thresholds

        named = read_thresholds(thresholds, bare=bare)
        out += [{key: Floor(value, n, rtol, limit, answers) for key, value, rtol, limit in named}] if named else []
    for name, given in (("n", n), ("answers_b", answers)):
        if given is not None and not out:
            raise InputError(f"`{name}` is about `floor` or `thresholds`: give one of them")
    return out


def _baselines(sources: Sequence[Any], request: Request) -> tuple[list[Run], bool, list[str]]:
    """Return baseline runs (hashed if any is kept), True if one is a kept run, and origins. Refuse an empty folder."""
    from ...io.paths import is_path
    from ...io.sources import SIDES, lettered, only_of
    from .kept_runs import comparable, is_store, provenance, read_kept

    out, kept, origins = [], [], []
    for source in sources:
        if is_path(source) and Path(str(source)).is_dir() and not any(Path(str(source)).iterdir()):
            raise InputError(f"{source} is empty: no run has been kept there yet, so name a baseline run or a `floor`")
        stored = is_path(source) and is_store(source)
        runs = read_kept(source) if stored else [lettered(only_of(request.runs([source]), [source]), SIDES[1])]
        out += runs
        kept += [stored] * len(runs)
        origins += [said for said in [provenance(source) if stored else ""] if said]
    if any(kept):
        out = [run if is_kept else comparable(run) for run, is_kept in zip(out, kept, strict=True)]
    return out, any(kept), origins
