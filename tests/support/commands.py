"""Commands called in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from harness_noise.cli import main


def runner() -> CliRunner:
    """One that keeps stdout and stderr apart, which click before 8.2 does only if asked and later ones always do."""
    try:
        return CliRunner(mix_stderr=False)  # type: ignore[call-arg]
    except TypeError:
        return CliRunner()


def refused(path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Assert that `analyze` refuses a file in one paragraph with these words and prints nothing else; returns it."""
    assert main(["analyze", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.strip().splitlines()) <= 4
    for text in words:
        assert text in " ".join(said.err.split())
    return said.err
