"""Every Eval Ever 0.3: `UUID.json` has the results of a run, `UUID_samples.jsonl` a line for each sample and metric.

`is_correct` is not read: converters set it by rules of their own. A sample with an `error` is missing; so is one that
belongs to no result (converters write such a line where a sample has no score), under each result of its evaluation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from itertools import islice
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from harness_noise import InputError, __version__
from harness_noise.data.answers import compared
from harness_noise.data.native_values import fitting
from harness_noise.data.questions import QuestionText, content_hash, excerpt
from harness_noise.data.scores import ReadOptions, Run, Scores, Skipped
from harness_noise.errors import FinalError
from harness_noise.io.atomic import write_bytes

from .records import document, field, head, number
from .tables.files import Record, columns_of, objects, readable
from .tables.formats import RowReader, as_chosen
from .tables.presets import OURS, Cause, Preset, Recognised, ScorePath

if TYPE_CHECKING:
    from harness_noise.io.protocol import Analyzer
    from harness_noise.results.rows import Analysis, Estimate

DAMAGED = ": was it written for Every Eval Ever, and is it whole?"
SAMPLES = "_samples.jsonl"
NAME, RESULT = "evaluation_name", "evaluation_result_id"
PRESET = Preset(
    name="every-eval-ever",
    reads="Every Eval Ever samples",
    when=("evaluation_id", "sample_id"),
    question=("sample_id",),
    score=(ScorePath("evaluation.score", metric="score"),),
    model="model_id",
    task=NAME,
    metric=RESULT,
    target="input.reference",
    answer="output.raw",
    missing=(Cause("", {"error": "*"}),),
    fields={
        "input_tokens": "token_usage.input_tokens",
        "output_tokens": "token_usage.output_tokens",
        "total_tokens": "token_usage.total_tokens",
        "reasoning_tokens": "token_usage.reasoning_tokens",
        "cache_read_tokens": "token_usage.input_tokens_cache_read",
        "cache_write_tokens": "token_usage.input_tokens_cache_write",
        "time": "{{ performance.latency_ms / 1000 if performance.latency_ms is number }}",
    },
)
VERSION = "0.3.0"
EXTREME = {float("inf"): "Infinity", float("-inf"): "-Infinity"}


class _Reader(RowReader):
    """What the samples have said so far."""

    def add_plain(self, rows: Sequence[Record]) -> bool:
        late = self.metric is None and any(row.get(RESULT) is not None for row in rows)
        return not late and super().add_plain(rows)

    def add(self, line: int, row: Record) -> None:
        if self.metric is None and row.get(RESULT) is not None:
            raise InputError(f"{self.path}, line {line}: it says its {RESULT}, others before do not{DAMAGED}")
        if self.metric is not None and row.get(RESULT) is None:
            self.lost(line, row, None)
        else:
            super().add(line, row)

    def documents(self, keys: Sequence[str]) -> _Words | None:
        if isinstance(self.path, Path) and "question" not in self.chosen:
            return _Words(self.path, keys)
        return None


def _reader(samples: Path, options: ReadOptions) -> _Reader:
    """The reader of a samples file, whose first lines say whether results have ids and samples have epochs."""
    first: list[Record] = []
    with readable(samples):
        for _, rows in objects(samples):
            first += rows
            if len(first) >= 1000:
                break
    epochs = any(field(row, "metadata", "epoch") is not None for row in first)
    named = any(row.get(RESULT) is not None for row in first)
    preset = replace(PRESET, repeat="metadata.epoch" if epochs else "", metric=RESULT if named else "")
    reader = _Reader(as_chosen(Recognised(samples, preset), options.columns), options, options.columns)
    reader.again = partial(_reader, samples, options)
    return reader


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of the questions, read when somebody asks for them."""

    samples: Path
    keys: Sequence[str]

    def read(self) -> tuple[Sequence[str] | None, Sequence[str] | None]:
        """Hashes and beginnings; no hashes where a sample has no words."""
        known: dict[str, tuple[str, str]] = {}
        for _, rows in objects(self.samples):
            for row in rows:
                told = str(field(row, "input", "raw") or ""), str(row.get("sample_hash") or "")
                known.setdefault(str(row["sample_id"]), told)
        of_each = [known.get(key, ("", "")) for key in self.keys]
        words = [text or hashed for text, hashed in of_each]
        return tuple(map(content_hash, words)) if all(words) else None, tuple(excerpt(text) for text, _ in of_each)


class EveryEvalEverAdapter:
    """Every Eval Ever (UUID.json and UUID_samples.jsonl), read and written"""

    name = "every-eval-ever"

    def sniff(self, path: Path) -> bool:
        """By the first bytes of a file; a folder of them is read as a whole, as two files are one run."""
        if path.is_dir():
            return any(map(_is_file, islice(_files(path), 20)))
        return _is_file(path)

    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        """One Run for each model of each file; results without samples are listed without an error bar."""
        options = replace(options, columns=columns_of(path, options.columns))
        if not options.columns.keys() <= set(OURS):
            raise InputError(f"{path}: of this format `columns` names only {', '.join(OURS)}")
        runs: list[Run] = []
        broken: list[InputError] = []
        for file, samples in _pairs(path):
            try:
                runs += _read(file, samples, options)
            except FinalError:
                raise
            except InputError as error:
                broken.append(error)
        if broken and (options.strict or not runs):
            raise broken[0]
        left_out = tuple(f"left out: {error}" for error in broken)
        return [replace(run, notes=(*run.notes, *left_out)) for run in runs]

    def write(self, path: Path, out: Path, analyze: Analyzer, options: ReadOptions) -> list[Path]:
        """Fill `score_details.uncertainty` of every result whose samples are there; all else stays as it is."""
        written = []
        for file, samples in _pairs(path):
            if file is None or samples is None:
                continue
            results, names = _results(file)
            for run in _read(file, samples, options):
                rows = {(row.task, row.metric): row for row in analyze(run).estimates}
                for result, name in zip(results["evaluation_results"], names, strict=True):
                    if (row := rows.get(name)) is not None and row.se is not None:
                        result["score_details"]["uncertainty"] = uncertainty(row)
            text = json.dumps(results, indent=2, ensure_ascii=False, allow_nan=False)
            for place, data in ((out / file.name, text.encode()), (out / samples.name, samples.read_bytes())):
                write_bytes(place, data)
                written.append(place)
        if not written:
            raise InputError(f"{path}: no result here has its samples, so there is nothing to compute an error bar of")
        return written

    def make(self, run: Run, analysis: Analysis, out: Path) -> list[Path]:
        """Write a run of any harness as two files, which are the same each time, under `data/TASK/DEVELOPER/MODEL/`."""
        rows = {row.key: row for row in analysis.estimates}
        parts = [(part, rows[key]) for part in run.scores if (key := part.key) in rows]
        parts = [(part, row) for part, row in parts if row.mean is not None]
        if not parts:
            raise InputError(f"{run.name}: no metric in it is a mean of question scores, so no sample can be written")
        identity = sha256("\x1f".join([run.name, run.model, run.date, *map(repr, rows)]).encode()).digest()[:16]
        developer, _, model = run.model.partition("/") if "/" in run.model else ("unknown", "", run.model)
        identifier = f"{_plain(developer)}/{_plain(model)}"
        uuid, evaluation = UUID(bytes=identity, version=4), f"{run.harness}/{identifier}/{_seconds(run.date)}"
        tasks = list(dict.fromkeys(part.task for part, _ in parts))
        where = Path("data", _plain(tasks[0] if len(tasks) == 1 else run.harness), identifier)
        lines = [
            json.dumps(line, ensure_ascii=False, allow_nan=False) for line in _samples(parts, evaluation, identifier)
        ]
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
        results = {
            "schema_version": VERSION,
            "evaluation_id": evaluation,
            "retrieved_timestamp": _seconds(run.date),
            "source_metadata": {
                "source_name": run.harness, "source_type": "evaluation_run", "source_organization_name": "unknown",
                "evaluator_relationship": "other", "additional_details": {"written_by": f"harness-noise {__version__}"},
            },
            "eval_library": {"name": run.harness, "version": "unknown"},
            "model_info": {
                "name": run.model, "id": identifier, "developer": _plain(developer),
                "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
            },
            "evaluation_results": [_result(part, row) for part, row in parts],
            "detailed_evaluation_results": {
                "format": "jsonl", "file_path": (where / f"{uuid}{SAMPLES}").as_posix(), "hash_algorithm": "sha256",
                "checksum": sha256(data).hexdigest(), "total_rows": len(lines),
            },
        }  # fmt: skip
        paths = [out / where / f"{uuid}.json", out / where / f"{uuid}{SAMPLES}"]
        for path, content in zip(paths, (json.dumps(results, indent=2, allow_nan=False).encode(), data), strict=True):
            write_bytes(path, content)
        return paths


adapter = EveryEvalEverAdapter()


def uncertainty(row: Estimate) -> dict[str, Any]:
    """What the schema has room for of an estimate: the standard error, the interval, the number of questions."""
    clustered = "" if row.cluster is None else f", clustered by {row.cluster} ({row.n_clusters} clusters)"
    by = f"harness-noise: {row.estimator} of {row.n_questions} questions{clustered}"
    found: dict[str, Any] = {"standard_error": {"value": row.se, "method": by}, "num_samples": row.n_questions}
    if row.ci_low is not None and row.ci_high is not None:
        ends = {"lower": row.ci_low, "upper": row.ci_high, "confidence_level": row.level}
        found["confidence_interval"] = ends | {"method": f"harness-noise: {row.interval}"}
    return found


def _is_file(path: Path) -> bool:
    start = head(path) if path.suffix in (".json", ".jsonl") else b""
    return b'"evaluation_id"' in start and b'"schema_version"' in start


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(child for child in path.iterdir() if child.suffix in (".json", ".jsonl") and child.is_file())


def _pairs(path: Path) -> Iterator[tuple[Path | None, Path | None]]:
    """Results and samples that belong together; either may be missing."""
    stems = {
        file.with_name(file.name.removesuffix(".json").removesuffix(SAMPLES)): file
        for file in filter(_is_file, _files(path))
    }
    for stem, file in stems.items():
        results, samples = (stem.with_name(f"{stem.name}{end}") for end in (".json", SAMPLES))
        samples = file if file.suffix == ".jsonl" else samples
        yield results if results.is_file() else None, samples if samples.is_file() else None


def _results(file: Path) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The file of results, and task and metric of each; its own id as the task where two would be called alike."""
    found = document(file, DAMAGED)
    items = field(found, "evaluation_results")
    if not isinstance(items, list) or not all(isinstance(field(item, "metric_config"), dict) for item in items):
        raise InputError(f"{file}: no list of evaluation_results, each with its metric_config{DAMAGED}")
    if not all(isinstance(field(item, "score_details"), dict) for item in items):
        raise InputError(f"{file}: a result without score_details{DAMAGED}")
    configs = [item["metric_config"] for item in items]
    metrics = [str(config.get("metric_id") or config.get("metric_name") or "score") for config in configs]
    names = [(str(item.get(NAME)), metric) for item, metric in zip(items, metrics, strict=True)]
    return dict(found), [
        name if names.count(name) == 1 else (str(item.get(RESULT) or name[0]), name[1])
        for item, name in zip(items, names, strict=True)
    ]


def _read(file: Path | None, samples: Path | None, options: ReadOptions) -> list[Run]:
    """The runs of results, of samples with what their results say of each metric, or of samples alone."""
    results, names = _results(file) if file is not None else ({}, [])
    items = results.get("evaluation_results", ())
    if samples is None:
        values = [number(item["score_details"].get("score")) for item in items]
        why = "its samples are not here"
        skipped = tuple(Skipped(*name, "none", why, value) for name, value in zip(names, values, strict=True))
        model = field(results, "model_info", "id") or field(results, "model_info", "name") or (file and file.stem)
        return [Run(str(model), str(file), adapter.name, path=str(file), skipped=skipped)]
    reader = _reader(samples, options)
    runs, lost = reader.read(), len(reader.unscored)
    notes = [f"{samples}: {lost} samples belong to no result; they are missing under each"] if lost else []
    date, out = str(results.get("evaluation_timestamp") or ""), []
    for run in runs:
        parts = []
        for part in run.scores:
            key = part.task if reader.metric is None else part.metric
            called = [key in map(str, map(result.get, (RESULT, NAME))) for result in items]
            if reader.metric is None and sum(called) > 1 and part.values.shape[1] > 1 and reader.repeat is None:
                raise InputError(
                    f"{samples}: {sum(called)} results are called {key!r:.80}, and the samples do not "
                    f"say of which they are ({RESULT}): several metrics cannot be told from several answers"
                )
            if sum(called) == 1:
                mine = called.index(True)
                parts.append(_described(part, names[mine], items[mine]))
            else:
                parts.append(replace(part, task=key, metric="score"))
        said = (*run.notes[1:], *notes)
        out.append(replace(run, name=str(file or samples), date=date, notes=said, scores=tuple(parts)))
    return out


def _described(part: Scores, name: tuple[str, str], result: Any) -> Scores:
    """The scores with the names, range, direction and value that the result they belong to gives."""
    config, value = result["metric_config"], number(result["score_details"].get("score"))
    ends = [end for name in ("min_score", "max_score") if (end := number(config.get(name))) is not None]
    bounds = (0.0, 1.0) if config.get("score_type") == "binary" else (ends[0], ends[1]) if len(ends) == 2 else None
    lower, (task, metric) = config.get("lower_is_better"), name
    higher, fitted = None if lower is None else not lower, fitting(bounds, part.values)
    part = replace(part, task=task, metric=metric, higher_is_better=higher, bounds=fitted, native=value)
    scored = part.values[part.values == part.values].tolist()
    return compared(part, [*scored, *[nan] * (part.n_missing - part.n_zero)])


def _plain(name: str) -> str:
    """A name that can be a folder's."""
    return re.sub(r"[^A-Za-z0-9._@+-]+", "_", name).strip("._") or "unnamed"


def _seconds(date: str) -> str:
    """Seconds since 1970, "0" where the run does not say when it was made."""
    try:
        found = datetime.fromisoformat(re.sub(r"T(\d\d)-(\d\d)-(\d\d)", r"T\1:\2:\3", date))
    except ValueError:
        return date if date.isdecimal() else "0"
    return str(int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()))


def _key(part: Scores) -> str:
    return "/".join([part.task, part.metric, *([part.scorer] if part.scorer != "none" else [])])


def _result(part: Scores, row: Estimate) -> dict[str, Any]:
    """One metric with its error bars."""
    low, high = row.range or (float("-inf"), float("inf"))
    split = {"se_data": row.se_data, "se_prediction": row.se_prediction, "se_total": row.se_total, "df": row.df}
    details = {name: f"{value:.6g}" for name, value in split.items() if value is not None}
    return {
        "evaluation_result_id": _key(part),
        "evaluation_name": part.task,
        "source_data": {"dataset_name": part.task, "source_type": "other"},
        "metric_config": {
            "metric_id": part.metric, "metric_name": part.metric, "lower_is_better": part.higher_is_better is False,
            "score_type": "continuous", "min_score": EXTREME.get(low, low), "max_score": EXTREME.get(high, high),
        },
        "score_details": {
            "score": row.mean if part.native is None else part.native,
            "details": details | {"answers_per_question": str(row.repeats_max), "missing": str(row.n_missing)},
            **({} if row.se is None else {"uncertainty": uncertainty(row)}),
        },
    }  # fmt: skip


def _samples(parts: list[tuple[Scores, Estimate]], evaluation: str, model: str) -> Iterator[dict[str, Any]]:
    """A line for each answer under each metric; the words as far as the run has them."""
    for part, row in parts:
        known, n = part.questions.log, len(part.questions)
        texts = known.read(range(n), part.scorer) if known is not None else [QuestionText()] * n
        shown, best = part.questions.shown() or [""] * n, (row.range or (0.0, 1.0))[1]
        asked = int((part.values != part.values).sum()) == part.n_missing - part.n_zero
        for i, (key, told) in enumerate(zip(part.questions.keys, texts, strict=True)):
            raw, reference = told.text or shown[i], [] if told.target is None else [told.target]
            words = "".join([raw, *reference])
            for k, value in enumerate(part.values[i].tolist()):
                lost = value != value
                if lost and not asked:
                    continue  # never asked for
                said = told.answers[k : k + 1]
                yield {
                    "schema_version": VERSION, "evaluation_id": evaluation, "model_id": model,
                    "evaluation_name": part.task, "evaluation_result_id": _key(part), "sample_id": key,
                    "sample_hash": sha256(words.encode("utf-8", "replace")).hexdigest() if raw else None,
                    "interaction_type": "single_turn", "input": {"raw": raw, "reference": reference},
                    "output": {"raw": list(said)}, "answer_attribution": [],
                    "evaluation": {"score": 0.0 if lost else value, "is_correct": value == best},
                    "error": "no score" if lost else None, "metadata": {"epoch": str(k + 1)},
                }  # fmt: skip
