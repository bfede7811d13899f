"""The fuzzer, short and with the same damage each time; `make fuzz` takes ten minutes for each reader."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from support.slow import rest_slow

from .campaign import run
from .readers import READERS


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
