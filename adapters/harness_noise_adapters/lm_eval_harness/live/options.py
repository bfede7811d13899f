"""Options for the noise of a live lm-eval run, and the four places to give them.

Flags of the command line, a `noise:` block in lm-eval's own YAML or a file of its own, keyword
arguments of the context manager, and `HARNESS_NOISE_*` in the environment all end here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from harness_noise.data.clusters import ClusterSpec, UserSpec, combine_specs
from harness_noise.errors import InputError, is_now, parameter
from harness_noise.settings import Settings

from ...asking import OF_DECIDED, OF_UNTIL, StoppingOptions, number, whole_number
from ...extras import extra

ENVIRONMENT = "HARNESS_NOISE_"
_HOW_MUCH = ("until", *OF_DECIDED, *OF_UNTIL, "metric", "sample", "complete")
_OURS = ("repeats", "cluster", "groups", "rows", "reseed", "journal", *_HOW_MUCH)
_SETTINGS = ("level", "se", "interval", "seed")


JOURNALS = ("auto", "reuse", "off")
"""Take up the further answers of runs that did not finish, those of finished ones, too, or keep no journal."""
AUTO = 2
"""Answers per question that `auto` begins with. One would show nothing of the spread."""


@dataclass(frozen=True, slots=True)
class RepeatsSpec:
    """The user's numbers of answers per question for generate_until tasks."""

    by_task: tuple[tuple[str, int], ...] = ()
    """(glob of tasks, K ≥ 1, or 0 for `auto`). The last one that matches a task is used."""

    @classmethod
    def parse(cls, value: object, where: str) -> RepeatsSpec:
        """Parse answers per question: K, `auto`, TASK=K, a list, or {task: K}. Refuse a K below 1.

        Raises:
            InputError: a K that is no number of answers.
        """
        return cls(tuple((task or "*", _repeats(K, where)) for task, K in _name_value_pairs(value)))

    def _given_for(self, task: str) -> int | None:
        """Return the K given for a task, 0 for `auto`, None if none is given."""
        return next((K for pattern, K in reversed(self.by_task) if fnmatchcase(task, pattern)), None)

    def begin(self, task: str) -> int | None:
        """Return the answers per question with which a task starts. None: the task's own number."""
        K = self._given_for(task)
        return AUTO if K == 0 else K

    def grows(self, task: str) -> bool:
        """Return True if a task's answers per question are `auto`: asked until more no longer pay."""
        return self._given_for(task) == 0

    @property
    def auto(self) -> bool:
        return any(K == 0 for _, K in self.by_task)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(StoppingOptions):
    """The options of one live run.

    Raises:
        InputError: a value outside its range.
    """

    repeats: RepeatsSpec = field(default_factory=RepeatsSpec)
    cluster: ClusterSpec = field(default_factory=ClusterSpec)
    groups: Mapping[str, str] = field(default_factory=dict)
    """Group name → glob of the tasks that it averages."""
    rows: bool = True
    """True to add the visible `<metric>_avg` rows."""
    reseed: bool = True
    """True to give repeats from 1 on their own seeds if a server is asked."""
    journal: str = "auto"
    """The runs whose further answers are reused (see `JOURNALS`)."""
    settings: Settings = field(default_factory=Settings)
    where: str = "noise options"
    """The source of the options: --noise (flags), environment …, or any other text, for Python."""
    of_many: bool = False
    """True if they are the default of many runs. Then they may name tasks that a run does not have."""

    @property
    def partial(self) -> bool:
        """True if a run may end before every question is asked, or may add answers while it is analysed."""
        return self.rule is not None or self.sample is not None or self.repeats.auto

    @property
    def asks_less(self) -> bool:
        """True if a run is partial, or estimates a whole benchmark from a part (`complete`)."""
        return self.partial or bool(self.complete)

    @property
    def names_something(self) -> bool:
        """True if the options name tasks or document fields, which have to exist."""
        fields = {self.cluster.default} - {None, "auto", "none", "task"}
        return bool(fields or self.cluster.by_task or self.groups or {task for task, _ in self.repeats.by_task} - {"*"})

    def named(self, name: str, value: object = "") -> str:
        """Return an option with its value as the user types it: flag, variable or parameter."""
        return _as_typed(name, value, where=self.where)

    @classmethod
    def of(cls, options: Mapping[str, Any], where: str = "noise options") -> Options:
        """Return Options from a mapping (YAML block, keywords). Refuse unknown or wrong ones, naming `where`."""
        names = (*_OURS, *_SETTINGS)
        unknown = [name for name in options if name not in names]
        if unknown:
            known = is_now(f"noise_{unknown[0]}") or f"There are {', '.join(names)}"
            raise InputError(f"{where}: unknown option {unknown[0]!r}. {known}")
        spec, text = clusters(options.get("cluster"), where)
        chosen = {name: options[name] for name in _SETTINGS if options.get(name) is not None}
        for name, kind in (("level", number), ("seed", whole_number)):
            if name in chosen:
                chosen[name] = kind(chosen[name], f"{where}: {name}")
        settings = Settings(**chosen, cluster=text)
        repeats = RepeatsSpec.parse(options.get("repeats"), where)
        asking = {name: options[name] for name in _HOW_MUCH if options.get(name) is not None}
        named, fields = partial(_as_typed, where=where), {}
        if asking:
            less = asking | {"repeats": "auto" if repeats.auto else None}
            check = extra("stopping.options", named(next(iter(asking)))).checked
            fields = check(less, named, level=settings.level, seed=settings.seed)
        return cls(
            repeats=repeats,
            cluster=spec,
            groups=groups(options.get("groups"), where),
            rows=_flag(options.get("rows"), f"{where}: rows"),
            reseed=_flag(options.get("reseed"), f"{where}: reseed"),
            journal=_journal(options.get("journal"), where),
            settings=settings,
            where=where,
            **fields,
        )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Options:
        """Return options given by known variables HARNESS_NOISE_*, marked as `of_many` runs. Refuse wrong values only.

        These are HARNESS_NOISE_REPEATS, _CLUSTER, _GROUPS (NAME=PATTERN,…), _ROWS, _RESEED, _LEVEL and others."""
        options: dict[str, Any] = {}
        for name in (*_OURS, *_SETTINGS):
            if value := environment.get(ENVIRONMENT + name.upper(), "").strip():
                options[name] = value.split(",") if name == "complete" else value
        return replace(cls.of(options, f"environment {ENVIRONMENT}…"), of_many=True)


def read_file(path: str | Path) -> dict[str, Any]:
    """Read a `--noise_config` file: YAML or JSON of options, or `noise:` alone with them. Refuse unreadable files."""
    import yaml

    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Name a YAML or JSON file") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid YAML: {error}") from None
    if isinstance(content, dict) and set(content) == {"noise"}:
        content = content["noise"]
    return block(content, str(path))


def block(content: object, where: str) -> dict[str, Any]:
    """Return the options in a `noise:` block as a dictionary, {} for true or empty. Refuse all else."""
    if content is None or content is True:
        return {}
    if not isinstance(content, dict):
        raise InputError(f"{where}: the noise block must be a mapping such as {{repeats: 5, cluster: auto}}")
    return {str(key): value for key, value in content.items()}


def clusters(value: object, where: str) -> tuple[ClusterSpec, str | None]:
    """Return a cluster option (text, list, mapping) as SPEC and text, (empty SPEC, None) for None. Refuse all else."""
    if value is None:
        return ClusterSpec(), None
    if isinstance(value, Mapping):
        by_task = {str(task): UserSpec(str(spec)) for task, spec in value.items()}
        return ClusterSpec.parse(by_task), ",".join(f"{task}={spec}" for task, spec in by_task.items())
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"{where}: cluster must be a SPEC, a list of them, or a mapping of task to SPEC")
    text = combine_specs(map(UserSpec, texts))
    return ClusterSpec.parse(text), text


def groups(value: object, where: str) -> dict[str, str]:
    """Parse groups given as a mapping or NAME=PATTERN texts. Return {name: pattern}. Refuse other texts."""
    out = {}
    for name, pattern in _name_value_pairs(value):
        if not (name and pattern):
            text = f"{name}={pattern}" if name else pattern
            raise InputError(f"{where}: group {text!r} is not NAME=PATTERN, such as mgsm=mgsm_direct_*")
        out[name] = str(pattern)
    return out


def _name_value_pairs(entries: object) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of mappings and NAME=VALUE,… texts, ("", value) of other values. None yields nothing."""
    for entry in entries if isinstance(entries, (list, tuple)) else () if entries is None else (entries,):
        if isinstance(entry, Mapping):
            yield from ((str(name), value) for name, value in entry.items())
        elif isinstance(entry, str):
            for text in entry.split(","):
                name, _, value = (part.strip() for part in text.rpartition("="))
                yield name, value
        else:
            yield "", entry


def _as_typed(name: str, value: object = "", *, where: str) -> str:
    """Return an option as the user types it: a flag, a variable or a parameter, depending on `where`."""
    if where.startswith("--"):
        return f"{where}_{name} {value}".rstrip()
    if where.startswith("environment"):
        return f"{ENVIRONMENT}{name.upper()}={value}"
    return parameter("groups" if name == "group" else name, value) if value != "" else f"`{name}`"


def _repeats(value: object, where: str) -> int:
    """Parse answers per question: K ≥ 1, or 0 for `auto`. Refuse other values."""
    if isinstance(value, str) and value.strip() == "auto":
        return 0
    K = whole_number(value, f"{where}: repeats")
    if K < 1:
        raise InputError(f"{where}: repeats must be at least 1, not {K}: it is the number of answers per question")
    return K


def _journal(value: object, where: str) -> str:
    if isinstance(value, bool):  # YAML's off
        return "auto" if value else "off"
    if value not in (None, *JOURNALS):
        raise InputError(f"{where}: journal must be auto, reuse or off, not {value!r}")
    return str(value or "auto")


def _flag(value: object, where: str) -> bool:
    if value is None or isinstance(value, bool):
        return value is not False
    text = str(value).strip().lower()
    if text in ("1", "true", "yes", "on", "0", "false", "no", "off"):
        return text in ("1", "true", "yes", "on")
    raise InputError(f"{where} must be true or false, not {value!r}")
