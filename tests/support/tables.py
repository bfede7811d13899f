"""Score tables, written and read."""

import csv
from collections.abc import Sequence
from pathlib import Path

from harness_noise.data.scores import ReadOptions
from harness_noise_adapters.tables import adapter


def table(path: Path, header: Sequence[str], *rows: Sequence[object], delimiter: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerows([header, *rows])
    return path


def read(path, **options):
    return adapter.read(Path(path), ReadOptions(**options))


def one(path, **options):
    (run,) = read(path, **options)
    return run


def array(run):
    (part,) = run.scores
    return part.values
