"""Check of all promises of an adapter in one call, for the adapter's own tests.

from harness_noise.extra.testing.adapters import check_adapter

def test_the_adapter(tmp_path):
    check_adapter(
        adapter, "data/run.json", tmp_path, cluster="passage", question="id", factor="prompt",
        expected={("arithmetic", "q1"): [1.0, 0.0]}, models=["m"],
    )
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias
from unittest.mock import patch

import numpy as np

from harness_noise.io.protocol import Adapter, PartRead

from ...data.native_values import MISMATCH, check_native
from ...data.notes import Note
from ...data.scores import CorpusScores, ReadOptions, Run, Scores
from ...errors import InputError
from ...io.joining import select, travelling
from ...io.registry import LAST

Checked: TypeAlias = tuple[dict[str, Any], Callable[[Scores], bool]]
"""Options, and what scores are read with them."""
ABSENT = "no_such_field"
"""A name that no file has."""
_TEXT = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"')
"""A text in JSON."""
GARBAGE = {
    "empty": b"",
    "text": b"hello\n",
    "zeros": b"\0" * 64,
    "not utf-8": b"\xff\xfe\x80\xc3",
    "null": b"null",
    "a number": b"1e999",
    "a list": b"[1, [2], {}]",
    "an empty object": b"{}",
    "another object": b'{"results": [], "a": {"b": null}}',
    "cut": b'{"model": "m", "answers": [{"id"',
    "deep": b"[" * 5000,
    "lines": b'{}\n[]\n"x"\n',
    "an archive": b"PK\x03\x04",
}
OTHERS: dict[str, dict[str, Any]] = {
    "lm-eval": {
        "results_2025-01-31T12-00-00.000001.json": {"results": {"t": {"alias": "t", "acc,none": 0.5}}, "configs": {}},
        "samples_t_2025-01-31T12-00-00.000001.jsonl": {"doc_id": 0, "doc": {}, "target": "a", "acc": 1.0},
    },
    "inspect": {
        "2025-01-31T12-00-00+00-00_t_abc.json": {"version": 2, "status": "success", "eval": {"task": "t"}},
        "2025-01-31T12-00-00+00-00_t_abc.eval": {"version": 2, "status": "success", "eval": {"task": "t"}},
    },
    "harbor": {"result.json": {"task_name": "t", "trial_name": "t__1", "agent_info": {"name": "a"}}},
    "swe-bench": {"m.run.json": {"total_instances": 1, "resolved_ids": ["a__b-1"]}},
    "every-eval-ever": {"uuid_samples.jsonl": {"schema_version": "0.3.0", "evaluation_id": "e", "sample_id": "q1"}},
    "lighteval": {"details_t_2025-01-31T12-00-00.000001.parquet": "PAR1"},
    LAST: {
        "scores.csv": "question,score\nq1,1\n",
        "scores.jsonl": {"question": "q1", "score": 1},
        "scores.json": [{"question": "q1", "score": 1}],
    },
}
"""One small file of each format that comes with the package, by the adapter that reads it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a small test run, to be written in the adapter's format."""

    question: str
    repeat: int
    score: Any
    """Its raw value, None for an answer that was asked for and has no score."""
    cluster: str | None = None
    """The field `cluster` of the question's document, None if the document has no such field."""


Write: TypeAlias = Callable[[Path, Sequence[Answer], float | None], Path | None]
"""Writes answers and the harness's own mean into a new folder. Returns the run, or None if the format lacks a place.

The mean is the true one if it is None.
"""


class Case(NamedTuple):
    """A small test run that every adapter must read in one way, whatever the format."""

    name: str
    answers: list[Answer]
    values: list[list[float]] | None
    """(n, K) scores, None if the answers are refused, or their metric is left out with a reason."""
    n_missing: int = 0
    clusters: tuple[str, ...] | None = None
    note: str = ""
    """The code of a note."""
    native: float | None = None
    options: Mapping[str, Any] = MappingProxyType({})


_NONE = float("nan")


def _case_answers(second: Any = 0.5, clusters: str = "   ", last: Sequence[Any] = (0.0, 0.5)) -> list[Answer]:
    """Return a test case's answers: three questions with two answers each, varied by the arguments.

    The variations are another score of q2, clusters, and other answers to q3.

    A cluster " " is none, and "?" a blank text.
    """
    scores = {"q1": (1.0, 0.0), "q2": (second, 1.0), "q3": last}
    named = {key: {" ": None, "?": " "}.get(name, name) for key, name in zip(scores, clusters, strict=True)}
    return [Answer(key, k, score, named[key]) for key, of_key in scores.items() for k, score in enumerate(of_key)]


CASES = (
    Case("a whole run", _case_answers(), [[1, 0], [0.5, 1], [0, 0.5]]),
    Case("a score of 1e69", _case_answers(1e69), [[1, 0], [1e69, 1], [0, 0.5]]),
    Case("a score of 1e160", _case_answers(1e160), None),
    Case("a score of -1e160", _case_answers(-1e160), None),
    Case("a score of 400 digits", _case_answers(10**400), None),
    Case("a score of true", _case_answers(True), [[1, 0], [1, 1], [0, 0.5]]),
    Case("a score of NaN", _case_answers(_NONE), [[1, 0], [_NONE, 1], [0, 0.5]], 1),
    Case("an answer without a score", _case_answers(None), [[1, 0], [_NONE, 1], [0, 0.5]], 1),
    Case(
        "an answer without a score that is to count as wrong",
        _case_answers(None),
        [[1, 0], [0, 1], [0, 0.5]],
        1,
        options={"missing": "zero"},
    ),
    Case("a question without any score", _case_answers(last=(None, None)), [[1, 0], [0.5, 1], [_NONE, _NONE]], 2),
    Case("a question with fewer answers", _case_answers(last=(0.5,)), [[1, 0], [0.5, 1], [0.5, _NONE]]),
    Case("clusters in the documents", _case_answers(clusters="aba"), [[1, 0], [0.5, 1], [0, 0.5]], 0, ("a", "b", "a")),
    Case(
        "a question without a cluster",
        _case_answers(clusters="a b"),
        [[1, 0], [0.5, 1], [0, 0.5]],
        note="not_all_clustered",
    ),
    Case(
        "a cluster that is blank", _case_answers(clusters="a?b"), [[1, 0], [0.5, 1], [0, 0.5]], note="not_all_clustered"
    ),
    Case(
        "a cluster that was named and is not there", _case_answers(clusters="a b"), None, options={"cluster": "cluster"}
    ),
    Case("a question in two clusters", [*_case_answers(clusters="aba"), Answer("q3", 2, 1.0, "b")], None),
    Case("a mean of the harness that is wrong", _case_answers(), None, native=0.75),
)
"""What `check_adapter` asks of every adapter whose test can write answers."""


def check_adapter(
    adapter: Adapter,
    place: str | Path | Write,
    folder: Path,
    *,
    cluster: str | None = None,
    question: str | None = None,
    factor: str | None = None,
    expected: Mapping[tuple[str, ...], Sequence[float | None]] | None = None,
    models: Sequence[str] | None = None,
) -> None:
    """Check that an adapter keeps the promises of `io.protocol.Adapter`. AssertionError lists the broken ones.

    `sniff` never raises and claims no file of another format; damaged files are refused with an `InputError` or read,
    never end in another exception, and garbage in one of several files is told of; a line separator within a prompt
    changes no score; runs, scores and questions have names that are unique, and the same when they are read again, from
    a copy, by another process, or from a folder that is listed in another order; our mean is the one that the harness
    reports; each field of `ReadOptions` is obeyed or refused; what is read in parts is what is read at once; what is
    written again has the same scores, and writing twice changes nothing. Mean and standard error do not see scores in
    the wrong order, and no check here sees answers that were left out: name some of both kinds in `expected`. Look
    yourself whether each answer has its own cluster, and whether a metric is better when higher.

    Args:
        adapter: the object that the entry point names; its class stands where another process can import it.
        place: a file or folder with at least one run, which is not changed; or a function that writes a run (see
            `Write`), by which the adapter is asked to read each of `CASES` as all others do.
        folder: an empty folder for copies and damaged files.
        cluster: a field or SPEC by which the questions of all tasks have clusters, if there is one.
        question: a field that identifies the questions of all tasks, if there is one.
        factor: a field that says what each answer was made with, if there is one.
        expected: (task, question) or (task, metric, question) → the scores of its answers in order, None where an
            answer has none; for some questions of every task.
        models: the models of all runs, in their order.

    Raises:
        AssertionError: what does not hold, one line each.
    """
    printed = io.StringIO()
    with redirect_stdout(printed):
        write = None if isinstance(place, str | Path) else place
        found = place if isinstance(place, str | Path) else place(folder / "run", _case_answers(), None)
        assert found is not None, "the function has written no run"
        of = _Checked(adapter, Path(found), folder)
        problems = [*of.promises(expected or {}, models), *of.options(cluster, question, factor)]
        problems += [] if write is None else of.cases(write)
    if printed.getvalue():
        problems.append(f"prints to standard output, where results go: {printed.getvalue()[:80]!r}")
    if problems:
        raise AssertionError("\n".join([f"the adapter {adapter.name!r} on {found}:", *problems]))


class _Checked:
    """The checks of one adapter on one place, each of which yields broken promises."""

    def __init__(self, adapter: Adapter, place: Path, folder: Path) -> None:
        self.adapter, self.place, self.folder = adapter, place, folder
        self.once = self.read()
        """The runs that were read first, for the checks that only look at them."""

    def read(self, place: Path | None = None, **options: Any) -> list[Run]:
        return self.adapter.read(self.place if place is None else place, ReadOptions(**options))

    def copy(self, name: str) -> Path:
        """Copy the file or folder under test into a subfolder `name`, and return the copy's path."""
        target = self.folder / name / self.place.name
        target.parent.mkdir(parents=True)
        return Path((shutil.copytree if self.place.is_dir() else shutil.copy)(self.place, target))

    def promises(
        self, expected: Mapping[tuple[str, ...], Sequence[float | None]], models: Sequence[str] | None
    ) -> Iterator[str]:
        """Yield a text for each broken promise, by all checks but those of `options` and `cases`."""
        yield from self.sniffing()
        yield from self.names(models)
        yield from self.scores(expected)
        checks = (self.native, self.damage, self.separator, self.again, self.elsewhere, self.in_parts, self.writing)
        for check in (*checks, self.missing, self.selection):
            yield from check()

    def sniffing(self) -> Iterator[str]:
        """Yield complaints unless `sniff` accepts its own files, rejects others and never raises."""
        odd = self.folder / "odd"
        (odd / "folder.json").mkdir(parents=True)
        (odd / "folder").mkdir()
        (odd / "broken link").symlink_to(odd / "nowhere")
        for i, (name, data) in enumerate(GARBAGE.items()):
            (odd / name).write_bytes(data)
            for file in _of_each_kind(self.place):
                (odd / f"{file.stem}_{i}{''.join(file.suffixes[-1:])}").write_bytes(data)
        owners = _of_other_formats(odd, self.adapter.name)
        for path in (self.place, odd, *sorted(odd.iterdir())):
            try:
                claimed = self.adapter.sniff(path)
            except Exception as error:  # noqa: BLE001 - whatever it is, it must not come
                yield f"sniff: raises {type(error).__name__} on {path.name}: {error}"
                continue
            if not isinstance(claimed, bool):
                yield f"sniff: {claimed!r} on {path.name} is neither True nor False"
            if path == self.place and not claimed:
                yield "sniff: does not recognise it"
            if path in owners and claimed:
                yield f"sniff: claims {path.name}, which is {owners[path]}'s"

    def names(self, models: Sequence[str] | None) -> Iterator[str]:
        """Yield complaints unless there is a run, and runs, questions and the adapter have proper names."""
        runs = self.once
        if not (getattr(self.adapter, "about", "") or type(self.adapter).__doc__ or "").strip():
            yield "the class of the adapter has no docstring, whose first line says what it reads"
        if models is not None and [run.model for run in runs] != list(models):
            yield f"read: runs of {[run.model for run in runs]} instead of {list(models)}"
        if not runs:
            yield "read: no run, and no InputError that says why"
        if len({(run.model, run.name) for run in runs}) < len(runs):
            yield "read: two runs have the same model and name"
        for run in runs:
            if not (run.model and run.name and run.harness):
                yield f"read: a run without model, name or harness: {run.model!r}, {run.name!r}, {run.harness!r}"
            if odd := [note for note in run.notes if not isinstance(note, Note)]:
                yield f"read: notes that are no `harness_noise.data.notes.Note`: {odd!r}"
            rows = Counter(part.key for part in (*_measured(run), *run.skipped))
            yield from (f"read: {row} is there {n} times" for row, n in rows.items() if n > 1)
            for part in _measured(run):
                if not all(isinstance(key, str) and key for key in part.questions.keys):
                    yield f"read: {part.task}: keys of questions that are empty or no strings"

    def scores(self, expected: Mapping[tuple[str, ...], Sequence[float | None]]) -> Iterator[str]:
        """Yield complaints unless questions have the expected scores, in order, and tasks as many missing ones."""
        parts = [part for run in self.once for part in run.scores]
        holes: dict[str, int] = {}
        for (task, *metric, key), scores in expected.items():
            rows = [
                (part, part.questions.keys.index(key))
                for part in parts
                if part.task == task and metric in ([], [part.metric]) and key in part.questions.keys
            ]
            if not rows:
                yield f"read: no question {key!r} of {task}"
                continue
            part, row = rows[0]
            wanted = np.array([np.nan if score is None else score for score in scores])
            have = part.values[row]
            have = have[: max(len(wanted), int(np.flatnonzero(~np.isnan(have)).max(initial=-1)) + 1)]
            if not np.array_equal(have, wanted, equal_nan=True):
                yield f"read: {task}, {part.metric}, {key}: scores {have.tolist()} instead of {wanted.tolist()}"
            holes[task] = holes.get(task, 0) + int(np.isnan(wanted).sum())
            if part.n_missing < holes[task]:
                yield f"read: {task}, {part.metric}: {part.n_missing} answers without a score, of {holes[task]} or more"

    def native(self) -> Iterator[str]:
        """Yield a complaint if our mean differs from the mean that the harness reports."""
        from ...analysis.mean import analyze_run
        from ...settings import Settings

        for run in self.once:
            for row in analyze_run(run, Settings()).estimates:
                if "mean_mismatch" in row.diagnostics:
                    yield f"read: {row.task}, {row.metric}: mean_mismatch: {row.mean} is not what the harness reports"

    def damage(self) -> Iterator[str]:
        """Yield complaints if a cut or garbage file causes any error but InputError, or silent loss of scores."""
        copy = self.copy("cut")
        first = set(_of_each_kind(copy))
        for path in _files(copy):
            whole = path.read_bytes()
            for data in (whole[: len(whole) // 2], whole[:-2], *(GARBAGE.values() if path in first else [b"", b"{}"])):
                path.write_bytes(data)
                what = f"on {path.name} of {len(data)} bytes"
                try:
                    found = self.read(copy) if self.adapter.sniff(copy) else self.once
                    if _lost_silently(self.once, found) and data in GARBAGE.values():
                        yield f"read: scores are lost without a word {what}"
                except InputError as error:
                    if not str(error).strip():
                        yield f"read: an InputError without words {what}"
                except Exception as error:  # noqa: BLE001 - whatever it is, it must not come
                    yield f"read: {type(error).__name__} instead of an InputError {what}: {error}"
            path.write_bytes(whole)

    def separator(self) -> Iterator[str]:
        """Yield a complaint if a line separator (U+2028) inside a text changes any score."""
        copy = self.copy("separator")
        for path in _of_each_kind(copy):
            with suppress(UnicodeDecodeError):  # an archive, which has no lines
                whole = path.read_bytes().decode()
                for text in sorted((quoted for quoted in _TEXT.findall(whole) if " " in quoted), key=len)[-1:]:
                    path.write_bytes(whole.replace(text, text.replace(" ", "\u2028", 1)).encode())
        try:
            runs = self.read(copy)
        except Exception as error:  # noqa: BLE001 - of lines that end too early, whatever it is
            yield f"read: {type(error).__name__} on a text with a line separator (U+2028): {error}"
            return
        if list(map(_all_scores, runs)) != list(map(_all_scores, self.once)):
            yield "read: a line separator (U+2028) within a text changes the scores"

    def again(self) -> Iterator[str]:
        """Yield complaints if a run reads differently when read again, copied, or with folders listed backwards."""
        twice = self.read()
        yield from _differences("read again", self.once, twice, named=True)
        yield from _differences("read from a copy", self.once, self.read(self.copy("copy")))
        for backwards in (False, True):
            with _folders_in_order(backwards):
                runs = self.read()
            yield from _differences("read with its folders listed in another order", self.once, runs)

    def elsewhere(self) -> Iterator[str]:
        """Yield complaints if runs read in another process, with other string hashes, differ."""
        what = "read by another process"
        with patch.dict(os.environ, PYTHONHASHSEED="20261122"), ProcessPoolExecutor(1, get_context("spawn")) as pool:
            try:
                runs = pool.submit(_read_elsewhere, self.adapter, self.place).result()
            except Exception as error:  # noqa: BLE001 - of a process that cannot import the adapter, too
                yield f"{what}: {error}"
                return
        yield from _differences(what, self.once, runs, named=True)

    def cases(self, write: Write) -> Iterator[str]:
        """Yield complaints for each of `CASES`, written by `write`, that is not read as it should be."""
        for number, case in enumerate(CASES):
            place = write(self.folder / f"case {number}", case.answers, case.native)
            if place is None:
                continue
            try:
                runs = [check_native(run) for run in self.read(place, **case.options)]
            except InputError as error:
                if case.values is not None or not str(error).strip():
                    yield f"{case.name}: refused: {error}"
                continue
            yield from (f"{case.name}: {problem}" for problem in _unlike_case(case, runs))

    def missing(self) -> Iterator[str]:
        """Yield complaints unless `missing="zero"` scores missing answers 0 and changes no other score."""
        for old, new in _pairs(self.once, _runs(self.read_or_refused(missing="zero"))):
            filled = np.isnan(old.values) & ~np.isnan(new.values)
            others = ~filled & ~np.isnan(new.values)
            if int(filled.sum()) != old.n_missing or (new.values[filled] != 0).any():
                yield f"missing=zero: {old.task}, {old.metric}: {filled.sum()} of {old.n_missing} are 0"
            if not np.array_equal(old.values[others], new.values[others]):
                yield f"missing=zero: {old.task}, {old.metric}: other scores change"

    def selection(self) -> Iterator[str]:
        """Yield complaints if reading only some tasks differs from dropping the others afterwards."""
        for run in self.once:
            for part in run.scores[:3]:
                wanted: dict[str, Any] = {"tasks": (part.task,), "metrics": (part.metric,), "scorers": (part.scorer,)}
                less = [other for other in self.read(**wanted) if (other.model, other.name) == (run.model, run.name)]
                options = ReadOptions(**wanted)
                yield from _differences(
                    f"read {wanted}", [select(run, options)], [select(other, options) for other in less]
                )

    def options(self, cluster: str | None, question: str | None, factor: str | None) -> Iterator[str]:
        """Yield complaints unless `cluster`, `columns`, `factors` obey fields. Only the last may ignore absent ones."""
        plain: list[Checked] = [
            ({"cluster": "none"}, lambda part: part.clusters is None),
            ({"cluster": "task"}, lambda part: len(set(part.clusters or ())) == 1),
            # the analysis refuses a factor that is not there
            ({"factors": (ABSENT,)}, lambda part: ABSENT not in (part.factors or {})),
        ]
        by_field: list[Checked] = [
            ({"cluster": cluster}, lambda part: bool(part.clusters and part.cluster_spec)),
            ({"columns": {"question": question}}, lambda part: part.questions.kind == "question"),
            ({"factors": (factor,)}, lambda part: factor in (part.factors or {})),
        ]
        named = [check for name, check in zip((cluster, question, factor), by_field, strict=True) if name is not None]
        for options, holds in (*plain, *named):
            outcome = self.read_or_refused(**options)
            if isinstance(outcome, InputError) and (options, holds) in named:
                yield f"{_said(options)}: refused: {outcome}"
            for part in (part for run in _runs(outcome) for part in run.scores):
                if not holds(part):
                    yield f"{_said(options)}: not obeyed in {part.task}, {part.metric}"
        for options in ({"cluster": ABSENT}, {"columns": {"question": ABSENT}}):
            outcome = self.read_or_refused(**options)
            if not isinstance(outcome, InputError):
                yield f"{_said(options)}: neither obeyed nor refused"
            elif ABSENT not in str(outcome):
                yield f"{_said(options)}: the refusal does not say what is not there: {outcome}"

    def read_or_refused(self, **options: Any) -> list[Run] | InputError:
        """Read with these options. Return an InputError instead of raising it. AssertionError if it has no text."""
        try:
            return self.read(**options)
        except InputError as error:
            if not str(error).strip():
                raise AssertionError(f"{_said(options)}: refused without words") from error
            return error

    def in_parts(self) -> Iterator[str]:
        """Yield complaints unless the adapter's parts can be pickled, keep their order and add up to the whole."""
        adapter: Any = self.adapter
        if not hasattr(adapter, "parts"):
            return
        parts = [str(part) for part in adapter.parts(self.place)]
        if parts != [str(part) for part in adapter.parts(self.place)]:
            yield "parts: in another order when asked again"
        parts_read: list[PartRead | InputError] = []
        for part in adapter.parts(self.place):
            try:
                ForkingPickler.dumps(part)  # as it goes to another process
                parts_read.append(adapter.read_part(deepcopy(part), ReadOptions()))
            except InputError as error:
                parts_read.append(error)
        joined = adapter.join(self.place, parts_read, ReadOptions())
        yield from _differences("parts", self.once, [run for run in joined if isinstance(run, Run)])

    def writing(self) -> Iterator[str]:
        """Yield complaints unless writing twice gives equal files that read as before, or is refused."""
        from ...analysis.mean import analyze_run
        from ...settings import Settings

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
        places = [out] if self.adapter.sniff(out) else filter(self.adapter.sniff, _files(out))
        written = [run for place in places for run in self.read(place)]
        yield from _differences(
            "write", [_without_clusters(run) for run in self.read(copy)], [_without_clusters(run) for run in written]
        )


def _unlike_case(case: Case, runs: Sequence[Run]) -> Iterator[str]:
    """Yield how the runs that were read differ from what a test case demands, in words."""
    parts = [part for run in runs for part in run.scores]
    if case.values is None:
        if any(MISMATCH not in part.diagnostics for part in parts) or not (parts or any(run.skipped for run in runs)):
            yield f"read as {[part.values.tolist() for part in parts]}, and neither refused nor left out with a reason"
        return
    if not parts:
        yield f"left out: {[row.reason for run in runs for row in run.skipped]}"
    for part in parts:
        if not np.array_equal(part.values, np.array(case.values), equal_nan=True):
            yield f"scores {part.values.tolist()} instead of {case.values}"
        if part.n_missing != case.n_missing:
            yield f"{part.n_missing} answers without a score instead of {case.n_missing}"
        if part.clusters != case.clusters:
            yield f"clusters {part.clusters} instead of {case.clusters}"
        lost = int(np.count_nonzero(np.isnan(part.values) & part.was_asked))
        if lost != part.n_missing - part.n_zero:
            yield f"{lost} answers were asked for in vain, where {part.n_missing} have no score and {part.n_zero} are 0"
    if case.note and case.note not in {note.code for run in runs for note in run.notes}:
        yield f"no note {case.note}"


def _all_scores(run: Run) -> list[list[float]]:
    """Return the sorted scores of each metric of a run, to compare without questions' names."""
    return [np.sort(part.values[~np.isnan(part.values)]).tolist() for part in run.scores]


def _lost_silently(whole: Sequence[Run], found: Sequence[Run]) -> bool:
    """Return True if answers are missing compared to the whole runs and no note says so."""
    parts = ([part for run in runs for part in run.scores] for runs in (whole, found))
    n, left = (sum(np.isfinite(part.values).sum() + part.n_missing for part in of) for of in parts)
    told = {note for run in whole for note in run.notes}
    return bool(left < n and not any(run.skipped or {*run.notes} - told for run in found))


def _read_elsewhere(adapter: Adapter, place: Path) -> list[Run]:
    return list(map(travelling, adapter.read(place, ReadOptions())))


def _files(place: Path) -> list[Path]:
    return [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())


def _of_each_kind(place: Path) -> list[Path]:
    """Return the first file of each file-name ending in a folder, or the file itself."""
    return list({path.suffix: path for path in reversed(_files(place))}.values())


def _of_other_formats(folder: Path, own: str) -> dict[Path, str]:
    """Write small files of other adapters' formats. Return {path: adapter that owns it}.

    Score tables have none, as they are asked last."""
    owners = {}
    for owner, files in OTHERS.items():
        for name, content in files.items() if own not in (owner, LAST) else ():
            path = folder / name
            text = content if isinstance(content, str) else json.dumps(content)
            if path.suffix == ".eval":
                with zipfile.ZipFile(path, "w") as archive:
                    archive.writestr("header.json", text)
            else:
                path.write_text(text)
            owners[path] = owner
    return owners


@contextmanager
def _folders_in_order(backwards: bool) -> Iterator[None]:
    """List folders in alphabetical or reverse order within the block, as other file systems might."""
    listdir, scandir = os.listdir, os.scandir

    class Entries(ExitStack):
        def __init__(self, *of: Any) -> None:
            super().__init__()
            with scandir(*of) as entries:
                self.entries = iter(sorted(entries, key=lambda entry: str(entry.name), reverse=backwards))

        def __iter__(self) -> Iterator[os.DirEntry[Any]]:
            return self.entries

        def __next__(self) -> os.DirEntry[Any]:
            return next(self.entries)

    with patch.multiple(os, scandir=Entries, listdir=lambda *of: sorted(listdir(*of), reverse=backwards)):
        yield


def _runs(outcome: list[Run] | InputError) -> list[Run]:
    return [] if isinstance(outcome, InputError) else outcome


def _said(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items())


def _without_clusters(run: Run) -> Run:
    """Return the run without clusters, to compare it with one whose clusters were written by us."""
    return replace(run, scores=tuple(replace(part, clusters=None, cluster_spec=None) for part in run.scores))


def _contents(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place.parent)): path.read_bytes() for path in _files(place)}


def _pairs(old: Sequence[Run], new: Sequence[Run]) -> Iterator[tuple[Scores, Scores]]:
    for a, b in zip(old, new, strict=False):
        yield from zip(a.scores, b.scores, strict=False)


def _measured(run: Run) -> list[Scores | CorpusScores]:
    return [*run.scores, *run.corpus]


def _facts(run: Run, *, named: bool) -> dict[str, Any]:
    """Return {description: value} of what two readings of one run must agree in."""
    facts: dict[str, Any] = {"another name": run.name if named else ""}
    facts |= {"other rows": [part.key for part in _measured(run)]}
    for part in _measured(run):
        of_part = {"keys of questions": tuple(part.questions.keys)}
        of_part |= {name: getattr(part, name) for name in ("clusters", "cluster_spec", "higher_is_better")}
        of_part |= {name: getattr(part, name) for name in ("n_missing", "native")}
        of_part |= {"scores": np.nan_to_num(part.values, nan=np.inf).tolist()} if isinstance(part, Scores) else {}
        facts |= {f"{part.task}, {part.metric}: other {name}": value for name, value in of_part.items()}
    return facts


def _differences(what: str, old: Sequence[Run], new: Sequence[Run], *, named: bool = False) -> Iterator[str]:
    """Yield every difference between two readings of the same runs, in words. Paths may differ."""
    if [run.model for run in old] != [run.model for run in new]:
        yield f"{what}: runs of {[run.model for run in new]} instead of {[run.model for run in old]}"
        return
    for a, b in zip(old, new, strict=True):
        wanted, have = _facts(a, named=named), _facts(b, named=named)
        yield from (f"{what}: the run {a.name!r} has {name}" for name in wanted if wanted[name] != have.get(name))
