"""What every adapter has to do, as one call in its own tests.

from harness_noise.testing import check_adapter

def test_the_adapter(tmp_path):
    check_adapter(adapter, "data/run.json", tmp_path, cluster="passage", question="id", factor="prompt")
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .data.scores import CorpusScores, ReadOptions, Run, Scores
from .errors import InputError
from .io.registry import PartRead
from .io.selection import select

if TYPE_CHECKING:
    from harness_noise_adapters.base import Adapter

ABSENT = "no_such_field"
"""A name that no file has."""
GARBAGE = {
    "empty": b"", "text": b"hello\n", "zeros": b"\0" * 64, "not utf-8": b"\xff\xfe\x80\xc3", "null": b"null",
    "a number": b"1e999", "a list": b"[1, [2], {}]", "another object": b'{"results": [], "a": {"b": null}}',
    "cut": b'{"model": "m", "answers": [{"id"',
    "deep": b"[" * 5000, "lines": b'{}\n[]\n"x"\n',
    "an archive": b"PK\x03\x04",
}  # fmt: skip


def check_adapter(
    adapter: Adapter,
    place: str | Path,
    folder: Path,
    *,
    cluster: str | None = None,
    question: str | None = None,
    factor: str | None = None,
) -> None:
    """Check that an adapter keeps what `harness_noise_adapters.base.Adapter` promises.

    `sniff` never raises; damaged files are refused with an `InputError` or read, and never end in another exception;
    runs, scores and questions have names that are unique, and the same when they are read again or from a copy; each
    field of `ReadOptions` is obeyed or refused; what is read in parts is what is read at once; what is written again
    has the same scores, and writing twice changes nothing.

    Args:
        adapter: the object that the entry point names.
        place: a file or folder with at least one run, which is not changed.
        folder: an empty folder for copies and damaged files.
        cluster: a field or SPEC by which the questions of all tasks have clusters, if there is one.
        question: a field that identifies the questions of all tasks, if there is one.
        factor: a field that says what each answer was made with, if there is one.

    Raises:
        AssertionError: what does not hold, one line each.
    """
    checked = _Checked(adapter, Path(place), folder)
    said = {"cluster": cluster, "question": question, "factor": factor}
    checks: list[Callable[[], Iterator[str]]] = [
        checked.described, checked.sniffing, checked.names, checked.damage, checked.again, checked.missing,
        checked.selection, lambda: checked.clusters(said["cluster"]), lambda: checked.keys(said["question"]),
        lambda: checked.factors(said["factor"]), checked.in_parts, checked.writing,
    ]  # fmt: skip
    problems = [problem for check in checks for problem in check()]
    if problems:
        raise AssertionError("\n".join([f"the adapter {adapter.name!r} on {place}:", *problems]))


@dataclass(frozen=True, slots=True)
class _Checked:
    adapter: Adapter
    place: Path
    folder: Path

    def read(self, place: Path | None = None, **options: Any) -> list[Run]:
        return self.adapter.read(self.place if place is None else place, ReadOptions(**options))

    def copy(self, name: str) -> Path:
        """The place again, beside nothing that it does not need."""
        target = self.folder / name / self.place.name
        target.parent.mkdir(parents=True)
        return Path((shutil.copytree if self.place.is_dir() else shutil.copy)(self.place, target))

    def described(self) -> Iterator[str]:
        """`harness-noise adapters` shows a line of it."""
        if not (type(self.adapter).__doc__ or "").strip():
            yield "the class of the adapter has no docstring, whose first line says what it reads"

    def sniffing(self) -> Iterator[str]:
        """`sniff` knows its own, and has an answer for everything else."""
        if self.adapter.sniff(self.place) is not True:
            yield "sniff: does not recognise it"
        odd = self.folder / "odd"
        odd.mkdir(parents=True)
        (odd / "folder").mkdir()
        (odd / "folder.json").mkdir()
        (odd / "broken link").symlink_to(odd / "nowhere")
        for path in (odd, odd / "folder", odd / "folder.json", odd / "broken link", *self._garbage(odd)):
            try:
                found = self.adapter.sniff(path)
            except Exception as error:  # noqa: BLE001 - whatever it is, it must not come
                yield f"sniff: raises {type(error).__name__} on {path.name}: {error}"
            else:
                if not isinstance(found, bool):
                    yield f"sniff: {found!r} on {path.name} is neither True nor False"

    def _garbage(self, folder: Path) -> Iterator[Path]:
        one = self.place if self.place.is_file() else next(path for path in self.place.rglob("*") if path.is_file())
        for i, (name, data) in enumerate(GARBAGE.items()):
            for path in (folder / name, folder / f"{one.stem}_{i}{''.join(one.suffixes[-1:])}"):
                path.write_bytes(data)
                yield path

    def names(self) -> Iterator[str]:
        """There is a run, and everything in it has a name of its own."""
        runs = self.read()
        if not runs:
            yield "read: no run, and no InputError that says why"
        if len({(run.model, run.name) for run in runs}) < len(runs):
            yield "read: two runs have the same model and name"
        for run in runs:
            if not (run.model and run.name and run.harness):
                yield f"read: a run without model, name or harness: {run.model!r}, {run.name!r}, {run.harness!r}"
            measured: list[Any] = [*run.scores, *run.corpus]
            rows = [(item.task, item.metric, item.scorer) for item in (*measured, *run.skipped)]
            yield from (
                f"read: {row} is there {rows.count(row)} times" for row in dict.fromkeys(rows) if rows.count(row) > 1
            )
            for item in measured:
                keys = tuple(item.questions.keys)
                if len(set(keys)) < len(keys) or not all(isinstance(key, str) and key for key in keys):
                    yield f"read: {item.task}: keys of questions that are empty, twice there or no strings"

    def damage(self) -> Iterator[str]:
        """Files that are cut or garbage are refused in words, or read."""
        copy = self.copy("cut")
        files = sorted(path for path in ([copy] if copy.is_file() else copy.rglob("*")) if path.is_file())
        for path in files:
            whole = path.read_bytes()
            for data in (whole[: len(whole) // 2], whole[:-2], *(GARBAGE.values() if path == files[0] else [b""])):
                path.write_bytes(data)
                yield from self._read_or_refused(copy, f"{path.name} of {len(data)} bytes")
            path.write_bytes(whole)

    def _read_or_refused(self, place: Path, what: str) -> Iterator[str]:
        try:
            if self.adapter.sniff(place):
                self.read(place)
        except InputError as error:
            if not str(error).strip():
                yield f"read: an InputError without words on {what}"
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not come
            yield f"read: {type(error).__name__} in place of an InputError on {what}: {error}"

    def again(self) -> Iterator[str]:
        """The same runs whenever and wherever they are read."""
        yield from _unlike("read again", self.read(), self.read())
        yield from _unlike("read from a copy", self.read(), self.read(self.copy("copy")))

    def missing(self) -> Iterator[str]:
        """`missing="zero"`: an answer without a score is wrong."""
        zero = self._obeyed_or_refused("missing", missing="zero")
        for old, new in _pairs(self.read(), zero):
            filled = np.isnan(old.values) & ~np.isnan(new.values)
            others = ~filled & ~np.isnan(new.values)
            if int(filled.sum()) != old.n_missing or (new.values[filled] != 0).any():
                yield f"missing=zero: {old.task}, {old.metric}: {filled.sum()} of {old.n_missing} are 0"
            if not np.array_equal(old.values[others], new.values[others]):
                yield f"missing=zero: {old.task}, {old.metric}: other scores change"

    def selection(self) -> Iterator[str]:
        """Reading less is the same as leaving out."""
        for run in self.read():
            for item in run.scores[:3]:
                wanted: dict[str, Any] = {"tasks": (item.task,), "metrics": (item.metric,), "scorers": (item.scorer,)}
                less = [other for other in self.read(**wanted) if (other.model, other.name) == (run.model, run.name)]
                options = ReadOptions(**wanted)
                yield from _unlike(f"read {wanted}", [select(run, options)], [select(found, options) for found in less])

    def clusters(self, field: str | None) -> Iterator[str]:
        """`cluster`: none, the task, a field, and one that nobody has."""
        for run in self._obeyed_or_refused("cluster", cluster="none") or ():
            yield from (f"cluster=none: {item.task} has clusters" for item in run.scores if item.clusters is not None)
        for run in self._obeyed_or_refused("cluster", cluster="task") or ():
            yield from (
                f"cluster=task: {item.task} is not one" for item in run.scores if len(set(item.clusters or ())) != 1
            )
        if field is not None:
            for item in (item for run in self.read(cluster=field) for item in run.scores):
                if item.clusters is None or not item.cluster_spec:
                    yield f"cluster={field}: {item.task} has no clusters, or does not say which"
        yield from self._refused(cluster=ABSENT)

    def keys(self, field: str | None) -> Iterator[str]:
        """`columns`: the field of the question, and one that nobody has."""
        if field is not None:
            for run in self.read(columns={"question": field}):
                for item in run.scores:
                    if item.questions.kind != "question":
                        yield f"columns question={field}: the keys of {item.task} are called {item.questions.kind!r}"
        yield from self._refused(columns={"question": ABSENT})

    def factors(self, field: str | None) -> Iterator[str]:
        """`factors`: on every score, and none that is not there."""
        if field is not None:
            for item in (item for run in self.read(factors=(field,)) for item in run.scores):
                if field not in (item.factors or {}):
                    yield f"factors={field}: {item.task}, {item.metric} has no levels of it"
        for run in (
            self._obeyed_or_refused("factors", factors=(ABSENT,)) or ()
        ):  # the analysis refuses what is not there
            yield from (
                f"factors={ABSENT}: made up for {item.task}" for item in run.scores if ABSENT in (item.factors or {})
            )

    def _obeyed_or_refused(self, what: str, **options: Any) -> list[Run] | None:
        try:
            return self.read(**options)
        except InputError as error:
            if not str(error).strip():
                raise AssertionError(f"{what}: refused without words") from error
            return None

    def _refused(self, **options: Any) -> Iterator[str]:
        said = ", ".join(f"{name}={value}" for name, value in options.items())
        try:
            self.read(**options)
        except InputError as error:
            if ABSENT not in str(error):
                yield f"{said}: the refusal does not say what is not there: {error}"
        else:
            yield f"{said}: neither obeyed nor refused"

    def in_parts(self) -> Iterator[str]:
        """Parts that travel, in an order that stays; together they are the whole."""
        adapter: Any = self.adapter
        if not hasattr(adapter, "parts"):
            return
        parts = [str(part) for part in adapter.parts(self.place)]
        if parts != [str(part) for part in adapter.parts(self.place)]:
            yield "parts: in another order when asked again"
        found: list[PartRead | InputError] = []
        for part in adapter.parts(self.place):
            try:
                found.append(adapter.read_part(_sent(part), ReadOptions()))
            except InputError as error:
                found.append(error)
        joined = adapter.join(self.place, found, ReadOptions())
        yield from _unlike("parts", self.read(), [run for run in joined if isinstance(run, Run)])

    def writing(self) -> Iterator[str]:
        """Written again it says what it said, and once more it is the same; or it is refused."""
        from .analysis.mean import analyze_run
        from .settings import Settings

        copy, out = self.copy("written"), self.folder / "out"
        before = _contents(copy)
        try:
            self.adapter.write(copy, out, lambda run: analyze_run(run, Settings()), ReadOptions())
        except InputError:
            return
        if _contents(copy) != before:
            yield "write: changes the run that it was read from"
        first = _contents(out)
        if not first:
            yield "write: no file, and no InputError that says why"
            return
        self.adapter.write(copy, out, lambda run: analyze_run(run, Settings()), ReadOptions())
        if _contents(out) != first:
            yield "write: a second time changes what was written"
        written = [run for place in _places(self.adapter, out) for run in self.read(place)]
        yield from _unlike("write", [_bare(run) for run in self.read(copy)], [_bare(run) for run in written])


def _places(adapter: Adapter, out: Path) -> list[Path]:
    return (
        [out]
        if adapter.sniff(out)
        else sorted(path for path in out.rglob("*") if path.is_file() and adapter.sniff(path))
    )


def _bare(run: Run) -> Run:
    """Without the clusters, which may come from the analysis that was written."""
    return replace(run, scores=tuple(replace(item, clusters=None, cluster_spec=None) for item in run.scores))


def _contents(place: Path) -> dict[str, bytes]:
    files = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
    return {str(path.relative_to(place.parent)): path.read_bytes() for path in files}


def _pairs(old: Sequence[Run], new: Sequence[Run] | None) -> Iterator[tuple[Scores, Scores]]:
    for a, b in zip(old, new or (), strict=False):
        yield from zip(a.scores, b.scores, strict=False)


def _unlike(what: str, old: Sequence[Run], new: Sequence[Run]) -> Iterator[str]:
    """In what two readings of the same runs differ, but for the place where they lie."""
    if [run.model for run in old] != [run.model for run in new]:
        yield f"{what}: runs of {[run.model for run in new]} in place of {[run.model for run in old]}"
        return
    for a, b in zip(old, new, strict=True):
        for kind in ("scores", "corpus"):
            mine, theirs = getattr(a, kind), getattr(b, kind)
            names = [[(item.task, item.metric, item.scorer) for item in part] for part in (mine, theirs)]
            if names[0] != names[1]:
                yield f"{what}: {kind} {names[1]} in place of {names[0]}"
                continue
            for x, y in zip(mine, theirs, strict=True):
                yield from (f"{what}: {x.task}, {x.metric}: other {field}" for field in _differing(x, y))


def _differing(x: Scores | CorpusScores, y: Scores | CorpusScores) -> Iterator[str]:
    if tuple(x.questions.keys) != tuple(y.questions.keys):
        yield "keys of questions"
    if isinstance(x, Scores) and isinstance(y, Scores) and not np.array_equal(x.values, y.values, equal_nan=True):
        yield "scores"
    for field in ("clusters", "cluster_spec", "higher_is_better", "n_missing", "native"):
        if getattr(x, field) != getattr(y, field):
            yield field


def _sent(part: object) -> Any:
    """A part as another process gets it; an exception where it cannot be sent."""
    ForkingPickler.dumps(part)
    return deepcopy(part)
