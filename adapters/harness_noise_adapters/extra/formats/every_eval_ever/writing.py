"""Files of Every Eval Ever with error bars: its own ones filled in, and those of a run of any harness."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from harness_noise import InputError, __version__
from harness_noise.data.clusters import split_crossed
from harness_noise.data.questions import QuestionText
from harness_noise.data.scores import Run, Scores
from harness_noise.errors import counted
from harness_noise.io.atomic import write_bytes

from .results import Results

if TYPE_CHECKING:
    from harness_noise.results.rows import Analysis, Estimate

VERSION = "0.3.0"
EXTREME = {float("inf"): "Infinity", float("-inf"): "-Infinity"}


def write_again(results: Results, samples: Path, rows: Iterable[Estimate], out: Path) -> list[Path]:
    """Write copies of both files, with an uncertainty added to every result that has an estimate. Return paths.

    Returns:
        the files written.
    """
    by_name = {(row.task, row.metric): row for row in rows if row.se is not None}
    for result, name in zip(results.items, results.names, strict=True):
        if name in by_name:
            result["score_details"]["uncertainty"] = uncertainty(by_name[name])
    text = json.dumps(results.data, indent=2, ensure_ascii=False, allow_nan=False)
    assert results.path is not None  # a run with samples and results
    return _written(
        {out / results.path.name: text.encode(), out / samples.name: samples.read_bytes()}, results.path, samples
    )


def write_anew(run: Run, analysis: Analysis, out: Path) -> list[Path]:
    """Write a run as results and samples files of this format. Return both paths. Refuse runs without question scores.

    The same run gives the same files.

    Raises:
        InputError: no metric of it is a mean of question scores.
    """
    rows = {row.key: row for row in analysis.estimates}
    parts = [(part, rows[part.key]) for part in run.scores if part.key in rows and rows[part.key].mean is not None]
    if not parts:
        raise InputError(f"{run.name}: no metric in it is a mean of question scores, so no sample can be written")
    identity = sha256("\x1f".join([run.name, run.model, run.date, *map(repr, rows)]).encode()).digest()[:16]
    developer, _, model = run.model.partition("/") if "/" in run.model else ("unknown", "", run.model)
    identifier = f"{_folder_name(developer)}/{_folder_name(model)}"
    uuid, evaluation = UUID(bytes=identity, version=4), f"{run.harness}/{identifier}/{_seconds(run.date)}"
    tasks = list(dict.fromkeys(part.task for part, _ in parts))
    where = Path("data", _folder_name(tasks[0] if len(tasks) == 1 else run.harness), identifier)
    results, samples = where / f"{uuid}.json", where / f"{uuid}_samples.jsonl"
    lines = [json.dumps(line, ensure_ascii=False, allow_nan=False) for line in _samples(parts, evaluation, identifier)]
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    said = {
        "schema_version": VERSION,
        "evaluation_id": evaluation,
        "retrieved_timestamp": _seconds(run.date),
        "source_metadata": {
            "source_name": run.harness,
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
            "additional_details": {"written_by": f"harness-noise {__version__}"},
        },
        "eval_library": {"name": run.harness, "version": "unknown"},
        "model_info": {
            "name": run.model,
            "id": identifier,
            "developer": _folder_name(developer),
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
        },
        "evaluation_results": [_result(part, row) for part, row in parts],
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": samples.as_posix(),
            "hash_algorithm": "sha256",
            "checksum": sha256(data).hexdigest(),
            "total_rows": len(lines),
        },
    }
    return _written(
        {out / results: json.dumps(said, indent=2, allow_nan=False).encode(), out / samples: data}, Path(run.path)
    )


def _written(files: dict[Path, bytes], *inputs: Path) -> list[Path]:
    for path, content in files.items():
        write_bytes(path, content, inputs)
    return list(files)


def uncertainty(row: Estimate) -> dict[str, Any]:
    """Return the format's fields of an estimate: standard error (even None), interval if any, number of questions."""
    clustered = "" if row.cluster is None else f", clustered by {row.cluster} ({counted(row.n_clusters, 'cluster')})"
    by = f"harness-noise: {row.estimator} of {counted(row.n_questions, 'question')}{clustered}"
    out: dict[str, Any] = {"standard_error": {"value": row.se, "method": by}, "num_samples": row.n_questions}
    if row.ci_low is not None and row.ci_high is not None:
        ends = {"lower": row.ci_low, "upper": row.ci_high, "confidence_level": row.level}
        out["confidence_interval"] = ends | {"method": f"harness-noise: {row.interval}"}
    return out


def _folder_name(name: str) -> str:
    """Return a name with each run of odd characters as one underscore, "unnamed" if nothing else is left."""
    return re.sub(r"[^A-Za-z0-9._@+-]+", "_", name).strip("._") or "unnamed"


def _seconds(date: str) -> str:
    """Convert a run's date (UTC unless it says) to seconds since 1970 as text. Digits stay, other text is "0"."""
    try:
        moment = datetime.fromisoformat(re.sub(r"T(\d\d)-(\d\d)-(\d\d)", r"T\1:\2:\3", date))
    except ValueError:
        return date if date.isdecimal() else "0"
    return str(int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()))


def _key(part: Scores) -> str:
    return "/".join([part.task, part.metric, *([part.scorer] if part.scorer != "none" else [])])


def _result(part: Scores, row: Estimate) -> dict[str, Any]:
    """Return a metric as a result of this format: the native value, else our mean, with error bars if there are any."""
    low, high = row.range or (float("-inf"), float("inf"))
    split = {"se_data": row.se_data, "se_prediction": row.se_prediction, "se_total": row.se_total, "df": row.df}
    if part.native_is_first:  # the samples hold all answers, and so does the mean that the error bar belongs to
        split["score_of_first_answers"] = part.native
    details = {name: f"{value:.6g}" for name, value in split.items() if value is not None}
    return {
        "evaluation_result_id": _key(part),
        "evaluation_name": part.task,
        "source_data": {"dataset_name": part.task, "source_type": "other"},
        "metric_config": {
            "metric_id": part.metric,
            "metric_name": part.metric,
            "lower_is_better": part.higher_is_better is False,
            "score_type": "continuous",
            "min_score": EXTREME.get(low, low),
            "max_score": EXTREME.get(high, high),
        },
        "score_details": {
            "score": row.mean if part.native is None or part.native_is_first else part.native,
            "details": details | {"answers_per_question": str(row.repeats_max), "missing": str(row.n_missing)},
            **({} if row.se is None else {"uncertainty": uncertainty(row)}),
        },
    }


def _samples(parts: Sequence[tuple[Scores, Estimate]], evaluation: str, model: str) -> Iterator[dict[str, Any]]:
    """Yield a sample dict for each answer and metric. Missing: 0 with an error, or left out if some were not asked."""
    # a reader takes them of all samples or of none
    clustered = all(part.clusters is not None and split_crossed(part.clusters) is None for part, _ in parts)
    for part, row in parts:
        log, n = part.questions.log, len(part.questions)
        texts = log.read(range(n), part.scorer) if log is not None else [QuestionText()] * n
        shown, best = part.questions.shown() or [""] * n, (row.range or (0.0, 1.0))[1]
        K = part.values.shape[1]
        own = part.repeat_names or ()
        names = own if len(own) == K else [str(k + 1) for k in range(K)]
        names_of = part.clusters if clustered else None
        all_asked = int((part.values != part.values).sum()) == part.n_missing - part.n_zero
        for i, (key, question) in enumerate(zip(part.questions.keys, texts, strict=True)):
            raw, reference = question.text or shown[i], [] if question.target is None else [question.target]
            words = "".join([raw, *reference])
            for k, value in enumerate(part.values[i].tolist()):
                lost = value != value
                if lost and not all_asked:
                    continue  # never asked for
                said = question.answers[k : k + 1]
                yield {
                    "schema_version": VERSION,
                    "evaluation_id": evaluation,
                    "model_id": model,
                    "evaluation_name": part.task,
                    "evaluation_result_id": _key(part),
                    "sample_id": key,
                    "sample_hash": sha256(words.encode("utf-8", "replace")).hexdigest() if raw else None,
                    "interaction_type": "single_turn",
                    "input": {"raw": raw, "reference": reference},
                    "output": {"raw": list(said)},
                    "answer_attribution": [],
                    "evaluation": {"score": 0.0 if lost else value, "is_correct": value == best},
                    "error": "no score" if lost else None,
                    "metadata": {"epoch": names[k]} | ({"cluster": names_of[i]} if names_of else {}),
                }
