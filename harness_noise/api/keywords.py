"""The keywords that the public functions share: how to compute (`Settings`), and how what is named is read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from ..data import clusters
from ..data.measures import OF_REPEATS, SCORE, parse_measures
from ..data.only import Condition
from ..data.scores import ReadOptions, Run
from ..errors import InputError, NotThereError, check_kind, is_now
from ..extras import module_if_any, module_of, preparing
from ..io.first_answers import first_answers
from ..io.paths import PathInput, is_path
from ..io.registry import asked_of, those_with
from ..io.sources import (
    SIDES,
    Source,
    columns_of_side,
    is_same,
    lettered,
    listed,
    names,
    numbered,
    numbers_of,
    only_of,
    pair_of,
    runs_of,
)
from ..io.weights import chance_of, weights_of
from ..settings import (
    KEYWORDS,
    Adjust,
    Chance,
    Estimator,
    Interval,
    Missing,
    QuestionsAre,
    RepeatsAre,
    Settings,
    Test,
    Weights,
    check_obeyed,
)

if TYPE_CHECKING:
    import pandas as pd


Progress: TypeAlias = Callable[[Iterable[Any], str, int], Iterable[Any]]
"""A wrapper of an iterable that shows how far it is, given what is done and the number of items, such as tqdm's."""
Say: TypeAlias = Callable[[str], None]


class Computing(TypedDict, total=False):
    """Keywords of every function that computes: fields of `Settings`. None leaves a field as it is."""

    se: Estimator | None
    interval: Interval | None
    test: Test | None
    adjust: Adjust | None
    margin: float | None
    unpaired: bool | None
    range: tuple[float, float] | None
    repeats_are: RepeatsAre | None
    runs_shared: bool | None
    questions_are: QuestionsAre | None
    weights: Weights | PathInput | Mapping[str, float] | None
    chance: Chance | PathInput | Mapping[str, float] | None
    missing: Missing | None
    seed: int | None
    resamples: int | None


class Choices(Computing, total=False):
    """Keywords of every function on runs: the fields of `Settings`, and how paths are read.

    What a function does not obey it refuses, with a sentence that says why.
    """

    cluster: str | Sequence[str] | None
    """Field that related questions share, a dotted path, a Jinja template, ``"task"``, ``"none"`` or ``"auto"``.

    Also ``"A*B"`` for two crossed ways, or several SPECs ``"TASK=SPEC"``. None: the clusters that the run has.
    """
    level: float | None
    """Coverage of the confidence intervals, in (0, 1), by default 0.95."""
    only: Sequence[str] | None
    """Conditions that each question must meet, ``"FIELD OP VALUE"`` (see `Settings.only`)."""
    tasks: Sequence[str]
    """The tasks to read, as names or globs."""
    metrics: Sequence[str]
    """Only these metrics."""
    scorers: Sequence[str]
    """Only these scorers or filters."""
    measures: Sequence[str]
    """Quantities of the answers to analyse: ``"score"`` (the default), ``"cost"``, ``"output_tokens"``, ``"time"``, …

    Also a numeric column or field, ``"consistency"``, ``"pass^3"``, or a ratio of sums such as ``"cost/score"``. Less
    is better, unless the name ends in ``":higher"``.
    """
    prices: Sequence[str]
    """Dollars per million tokens, ``"input=3,output=15"``, for one model ``"MODEL:input=3,output=15"``.

    By default costs are what the log holds.
    """
    groups: Mapping[str, str] | None
    """Name of a new group → glob of the tasks that it averages."""
    columns: Mapping[str, str] | None
    """Our name of a column (``"question"``, ``"score"``, …) → the file's."""
    format_file: PathInput | None
    """The user's own formats of tables, in TOML. None: ``~/.config/harness-noise/formats.toml``, if it exists."""
    follow_links: bool
    """Follow links that lead out of the folder that is named. Otherwise they are left out, with a note."""
    apart: bool
    """Keep every run by itself, in place of one run of each model in a folder."""
    as_repeats: bool
    """Join the runs of each model: they are its repeats."""
    labels: PathInput | pd.DataFrame | Sequence[Mapping[str, Any]] | None
    """Human labels of a random subset of the answers, which correct a judge's scores: a table with the columns
    `question`, `label` and, where they are needed, `task`, `model`, `repeat` and `person`."""
    labels_scorer: str | None
    """The scorer of the log whose scores are human labels.

    ``"edits"``: the labels are the scores that people have edited in an Inspect log, and the scores before the edit are
    the judge's.
    """
    label_range: tuple[float, float] | None
    """Lowest and highest label, which stand for the ends of the metric's range. None: labels are on its scale."""
    labels_at_random: bool
    """The labelled answers are a random subset, though the file does not say so and they do not look it."""
    progress: Progress | None
    """Shows how far reading is: called with an iterable, what is done and its length, as ``tqdm.tqdm`` takes them."""
    say: Say
    """Function that is told what is left out of the result, by default `warnings.warn`."""


_OF_FILES = "columns", "format_file", "follow_links", "apart"
"""Keywords for how files are read, which have no effect on runs that have been read."""


_DEFAULT = Settings()


_OF_RENDER = ("details", "legend", "wide")
"""Keywords that say how a result is shown."""


def chosen_settings(
    function: str, settings: Settings | None, choices: Mapping[str, Any], accepted: type = Computing
) -> Settings:
    """Return the settings with each keyword given in its field. Raise TypeError if unknown, InputError if not obeyed.

    Args:
        function: that they were given to, for messages.
        settings: None: the defaults.
        choices: the keywords; None stands for one that was not given.
        accepted: the `TypedDict` that has all others.

    Raises:
        TypeError: a keyword that the function does not have.
        InputError: a value out of range, or a setting that the function does not obey.
    """
    fields = Settings.__dataclass_fields__
    unknown = [name for name in choices if name not in fields and name not in accepted.__annotations__]
    if unknown:
        now = is_now(f"{unknown[0]}=")
        if unknown[0] in _OF_RENDER:
            now = f"it is for render(result, {unknown[0]}=…)"
        if unknown[0] in ("run", "runs"):
            now = f"give the runs without a name, as in {function}(a, b)"
        raise TypeError(f"{function}() got an unexpected keyword argument {unknown[0]!r}{now and f': {now}'}")
    check_kind("settings", settings, Settings, type(None))
    changes = {name: value for name, value in choices.items() if name in fields and value is not None}
    chosen = replace(settings or _DEFAULT, **changes) if changes else settings or _DEFAULT
    chosen.check(function)
    return chosen


@dataclass(frozen=True, slots=True)
class Request:
    """The settings and reading options that a call of a function on runs asked for."""

    settings: Settings
    options: ReadOptions
    as_repeats: bool = False
    progress: Progress | None = None
    say: Say = warnings.warn
    correction: Any = None
    """An extra's, of the scores, before anything is computed of them. None where no keyword asks for it."""

    @classmethod
    def of(
        cls,
        function: str,
        settings: Settings | None,
        choices: Mapping[str, Any],
        own: Mapping[str, Any] | None = None,
        *,
        form: str = "",
        sources: Iterable[Any] = (),
        **read: Any,
    ) -> Request:
        """Build the request (settings, reading options) from a function's keywords, checked for that function.

        Args:
            function: that they were given to, which says what is obeyed (`settings.KEYWORDS`).
            settings: None: the defaults.
            choices: the keywords that functions on runs share.
            own: further keywords, of which the form may not obey all.
            form: what was given to the function, where that says what is obeyed: counts, for example.
            sources: what is read; where all are Runs, how files are read is not obeyed.
            **read: further fields of `ReadOptions`.

        Raises:
            TypeError: a keyword that no function has.
            InputError: a keyword that is not obeyed, or a value out of range.
        """
        choices = _parsed(choices)
        chosen = chosen_settings(function, settings, choices, Choices)
        asked = {name: choices[name] for name in _CORRECTING if not _is_left_out(choices.get(name))}
        for name in asked:
            module_of(name)  # its absence comes first: what obeys it is not known without it
        named = {name: value for name, value in choices.items() if name in KEYWORDS}
        check_obeyed(form or function, named | dict(own or {}))
        if form:
            chosen.check(form)
        if chosen.strata is not None:
            check_obeyed("strata", dict(own or {}))
        if {isinstance(source, Run) for source in sources} == {True}:
            check_obeyed("given_runs", {name: choices.get(name) for name in _OF_FILES})
        for name in ("groups", "columns"):
            check_kind(name, choices.get(name) or {}, Mapping)
        as_repeats = bool(choices.get("as_repeats"))
        several = ("tasks", "metrics", "scorers", "measures", "prices")
        reading: dict[str, Any] = {name: names(choices.get(name) or ()) for name in several}
        reading |= {name: dict(choices.get(name) or {}) for name in ("groups", "columns")}
        formats = choices.get("format_file")
        correction = module_of(next(iter(asked))).correction(asked, chosen, own) if asked else None
        reading |= {
            "measures": parse_measures(reading["measures"]),
            "apart": as_repeats or bool(choices.get("apart")),
            "follow_links": bool(choices.get("follow_links")),
            "format_file": None if formats is None else str(formats),
        }
        reading |= {} if correction is None else correction.reads(reading["scorers"])
        spec = None if chosen.cluster is None else clusters.UserSpec(chosen.cluster)
        read |= {"only": chosen.only, "fields": tuple(dict.fromkeys((*read.get("fields", ()), *_fields_of(chosen))))}
        options = ReadOptions(cluster=spec, missing=chosen.missing, **(reading | read))
        more = {name: choices[name] for name in ("progress", "say") if name in choices}
        return cls(chosen, options, as_repeats, correction=correction, **more)

    def prepared(self, runs: list[Run]) -> list[Run]:
        """Return the runs corrected by labels and for chance, and weighted by question, as far as asked for.

        Only what was asked for is done.
        """
        runs = runs if self.correction is None else self.correction.of(runs)
        for extra in _preparing(self.settings):
            runs = extra.prepare(runs, self.settings)
        return runs

    def check_measures(self, **keywords: Any) -> None:
        """Refuse keywords that suit one score only (such as `margin`) with other measures, and `prices` without a cost.

        Args:
            **keywords: those that only a score obeys, with their values.

        Raises:
            InputError: names the keyword.
        """
        others = [name for name in self.options.measures if name != SCORE]
        several = len(self.options.measures) > 1
        one_scale = {"margin": self.settings.margin is not None, "range": self.settings.range is not None}
        for name, value in (keywords | one_scale | {"labels": self.correction}).items():
            if value and (several if name in one_scale else others):
                about = "one measure" if name in one_scale else "a score alone"
                listed = ", ".join(self.options.measures)
                raise InputError(f"`{name}` is about {about}, and `measures` names {listed}: leave one of the two out")
        if self.options.prices and not any("cost" in name for name in others):
            raise InputError("`prices` are for costs, and none is asked for: name it, as in `measures=['cost']`")

    def watched(self, values: Iterable[Any], doing: str, total: int) -> Iterable[Any]:
        """Return the values to iterate over, wrapped in the user's progress display if there is one."""
        return values if self.progress is None else self.progress(values, doing, total)

    def runs(self, sources: Sequence[Source], *, some: bool = False, tell_apart: bool = False) -> list[Run]:
        """Read the runs of all sources (paths, runs or tables), joined as repeats if asked for. Refuse none.

        Args:
            sources: paths, runs, tables.
            some: a source without what was asked for is left out with a note, if another has it.
            tell_apart: several DataFrames without a name are numbered, unless they are repeats of one model.

        Raises:
            InputError: there is none, or one cannot be used.
        """
        if not sources:
            raise InputError("no run is given: give a path, a Run or a DataFrame, or a list of them")
        told = numbers_of(sources) if tell_apart and not self.as_repeats else [0] * len(sources)

        def read(source: Source, number: int) -> list[Run]:
            found = runs_of(source, self.options)
            return [numbered(run, number) for run in found] if number else found

        watched = self.watched(sources, "reading", len(sources))
        readers = (partial(read, *each) for each in zip(watched, told, strict=True))
        try:
            return self.joined(those_with(readers) if some else [run for reader in readers for run in reader()])
        except NotThereError:
            later = [SCORE if OF_REPEATS.fullmatch(name) else name for name in self.options.measures]
            if not self.as_repeats or later == [*self.options.measures]:
                raise
        # no run alone has so many answers, but all of them together may
        alone = replace(self, options=replace(self.options, measures=tuple(dict.fromkeys(later))))
        runs = alone.runs(sources, some=some, tell_apart=tell_apart)
        return [run for one in runs for run in asked_of(one, self.options)]

    def joined(self, runs: list[Run]) -> list[Run]:
        """Return the runs, joined by model as repeats if asked for (notes are on them), and cut to first answers.

        Of answers that were repeated until one passed, the first ones of each run, or of runs that together did so.
        """
        runs = [first_answers(run) for run in runs]
        if self.as_repeats:
            from ..analysis.repeats import as_repeats

            runs = [first_answers(run) for run in as_repeats(runs)]
        return runs

    def of_side(self, side: str) -> Request:
        """Return the request with only the column choices meant for one side of a comparison, A or B."""
        columns = columns_of_side(self.options.columns, side)
        return replace(self, options=replace(self.options, columns=columns))

    def refuse_sides(self, what: str) -> None:
        """Raise an error for column choices meant for A or B in a function that does not compare two sides.

        A file may have the name A or B.

        Raises:
            InputError: names the column.
        """
        for key in self.options.columns:
            if key.partition(":")[0] in SIDES and ":" in key:
                raise InputError(
                    f"`columns` {key}: A and B are the two runs of a comparison, and there are {what}: write the name "
                    "of the file with its ending in front of the colon"
                )

    def complete(self, sources: Source | Sequence[Source]) -> list[Run]:
        """Return the complete reference runs of all sources in one list. A stored noise profile is read as runs."""
        several = listed(sources)
        if not several:
            return []
        noise, out = module_if_any("profile"), list[Run]()
        for source in several:
            profile = noise is not None and is_path(source) and noise.is_profile(str(source))
            out += noise.read_runs(str(source)) if profile else self.runs([source])
        return out

    def pair(
        self, sides: Sequence[Sequence[Source]], models: Sequence[str] = (), baseline: Sequence[Source] = ()
    ) -> list[tuple[Run, Run]]:
        """Return pairs (A, B) to compare: two sides, two runs of one, or all with the one baseline. Refuse others."""
        sources, *other = sides
        if other:
            check_obeyed("sides", {"against": baseline, "models": models})
            first, second = (
                only_of(self.of_side(letter).runs(side), side) for letter, side in zip(SIDES, sides, strict=True)
            )
            return [_lettered((first, second))]
        if len(sources) == 2 and not baseline:
            # of two places, what lies in one is joined, though both may call the model by one name
            each = zip(SIDES, sources, strict=True)
            runs = [run for letter, source in each for run in self.of_side(letter).runs([source])]
        else:
            self.refuse_sides(f"{len(sources)} runs" if not baseline else "a baseline")
            runs = self.runs(sources, tell_apart=True)
        if not baseline:
            return [_lettered(pair_of(runs, sources, models, many="compare all of them with one by `against=RUN`, "))]
        check_obeyed("against", {"models": models})
        against = [lettered(run, SIDES[1]) for run in self.runs(baseline)]
        if len(against) != 1:
            raise InputError(f"`against` {baseline[0]} holds {len(against)} runs: name one")
        pairs = [(run, against[0]) for run in runs if not is_same(run, against[0])]
        if not pairs:
            raise InputError(f"`against` {baseline[0]}: no other run is given. Name what is compared with it")
        return pairs


def _lettered(pair: tuple[Run, Run]) -> tuple[Run, Run]:
    """Return a pair of runs whose tables without a name are called A and B."""
    first, second = pair
    return lettered(first, SIDES[0]), lettered(second, SIDES[1])


def _parsed(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords with `cluster`, `only`, `weights` and `chance` parsed for `Settings`, others as they are."""
    cluster, only = choices.get("cluster"), choices.get("only")
    return {
        **choices,
        "cluster": None if cluster is None else clusters.combine_specs(map(clusters.UserSpec, names(cluster))),
        "only": None if only is None else names(only),
        "weights": weights_of(choices.get("weights")),
        "chance": chance_of(choices.get("chance")),
    }


def _fields_of(chosen: Settings) -> list[str]:
    """Return the names of the question fields that must be read for these settings: filters, strata, chance."""
    fields = [Condition.parse(text).field for text in chosen.only]
    return fields + [field for extra in reversed(_preparing(chosen)) for field in extra.fields(chosen)]


def _preparing(chosen: Settings) -> list[Any]:
    """Return the extras' modules that change runs as these settings ask. Raise an error if one is not installed."""
    asked = {"chance": "`chance`", "strata": "`weights` by a property of the questions"}
    return [preparing(name, what) for name, what in asked.items() if getattr(chosen, name) is not None]


_CORRECTING = ("labels", "labels_scorer", "label_range", "labels_at_random")
"""Keywords that ask for a correction of the scores."""


def _is_left_out(value: Any) -> bool:
    """Return True if a keyword's value (None or False) counts as not given."""
    return value is None or value is False
