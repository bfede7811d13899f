"""`--questions`: of how many."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_noise.cli import main


def table(folder: Path, name: str, right: str) -> str:
    lines = ["question_id,acc", *(f"q{i},{c}" for i, c in enumerate(right))]
    (folder / name).write_text("\n".join(lines), encoding="utf-8")
    return str(folder / name)


def test_the_list_says_of_how_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = table(tmp_path, "a.csv", "1111101010"), table(tmp_path, "b.csv", "1111010101")
    assert main(["compare", a, b, "--questions", "2", "--details"]) == 0
    assert "2 of the 6 questions on which a and b differ" in capsys.readouterr().err
