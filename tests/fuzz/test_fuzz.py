"""The fuzzer, short and with the same damage each time; `make fuzz` takes ten minutes for each reader."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from support.slow import rest_slow

from .campaign import run
from .readers import READERS

PRIVATE = "kept-runs", "looks", "arena-looks", "thresholds", "reference"
"""The readers of what only we write, of which a crash would be a wrong exit code of a gate."""
TABLES = "csv", "jsonl", "json", "formats", "parquet"
"""The readers of the one frame of answers."""


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", [*PRIVATE, *TABLES])
@pytest.mark.parametrize("seconds", [10, pytest.param(60, marks=pytest.mark.slow)])
def test_private_formats_and_tables_for_a_while(name: str, seconds: int, tmp_path: Path, real_files: Path) -> None:
    logging.disable()
    try:
        outcomes = run(READERS[name], real_files, tmp_path, seconds, start=seconds, n=100)
    finally:
        logging.disable(logging.NOTSET)
    assert outcomes[False] > 0
    assert sum(outcomes.values()) >= 100


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("n", rest_slow([10, 40]))
def test_damaged_files_are_refused_or_read_right(name: str, n: int, real_files: Path, tmp_path: Path) -> None:
    logging.disable()
    try:
        outcomes = run(READERS[name], real_files, tmp_path, 0, start=1, n=n)
    finally:
        logging.disable(logging.NOTSET)
    assert sum(outcomes.values()) >= n
