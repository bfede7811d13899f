"""The fuzzer, short and with the same damage each time; `make fuzz` takes ten minutes for each reader."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from .campaign import run
from .readers import READERS


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_refused_or_read_right(name: str, real_files: Path, tmp_path: Path) -> None:
    logging.disable()
    try:
        outcomes = run(READERS[name], real_files, tmp_path, 0, start=1, n=40)
    finally:
        logging.disable(logging.NOTSET)
    assert sum(outcomes.values()) >= 40
