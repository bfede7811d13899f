"""Files of a finished lm-eval run: found, read and changed."""

import json
from pathlib import Path

from harness_noise.data.scores import ReadOptions
from harness_noise_adapters.lm_eval_harness import adapter


def one(path, **options):
    runs = adapter.read(Path(path), ReadOptions(**options))
    assert len(runs) == 1
    return runs[0]


def score(run, task, metric, scorer="none"):
    return next(part for part in run.scores if (part.task, part.metric, part.scorer) == (task, metric, scorer))


def skipped(run, task, metric, scorer="none"):
    return next(part for part in run.skipped if (part.task, part.metric, part.scorer) == (task, metric, scorer))


def samples_file(folder: Path, task: str) -> Path:
    (found,) = folder.rglob(f"samples_{task}_2*.jsonl")
    return found


def results_file(folder: Path) -> Path:
    (found,) = folder.rglob("results_*.json")
    return found


def edit(path: Path, change) -> None:
    """Rewrite every row of a samples file."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows = change(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def edit_results(folder: Path, change) -> None:
    path = results_file(folder)
    results = json.loads(path.read_text())
    change(results)
    path.write_text(json.dumps(results, indent=2))


def rows_of(folder: Path, task: str) -> list[dict]:
    return [json.loads(line) for line in samples_file(folder, task).read_text().splitlines()]
