"""Runs without a command, help without a command, and what is neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_noise.cli import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, every in (("a", 2), ("b", 3), ("c", 5)):
        rows = [f"q{q},{int(q % every == 0)}" for q in range(60)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["question,score", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "command"),
    [
        (["a.csv"], "analyze"), (["a.csv", "b.csv"], "compare"), (["a.csv", "b.csv", "c.csv"], "arena"),
        (["74/100", "66/100"], "compare"), (["17/20"], "analyze"),
        (["71%", "68%", "--profile", "gpqa_diamond"], "compare"), (["a.csv", "0.4", "--n", "50"], "compare"),
        (["*.csv"], "arena"), (["[ab].csv"], "compare"), (["a.csv", "--format", "csv", "b.csv"], "compare"),
        (["a.csv", "--level", "0.9", "b.csv", "--metric", "score"], "compare"), (["./a.csv"], "analyze"),
    ],
)  # fmt: skip
def test_the_number_of_runs_says_what_is_done(
    typed: list[str], command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*typed, "-q"]) == 0
    plain = capsys.readouterr().out
    assert main([command, *typed, "-q"]) == 0
    assert capsys.readouterr().out == plain


def test_a_command_goes_before_a_file_that_is_called_like_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("plan").write_text(Path("a.csv").read_text())
    assert main(["plan", "--effect", "0.05", "--accuracy", "0.7", "-q"]) == 0
    Path("plan").rename("export")
    assert main(["export"]) == 2
    assert "Missing argument" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["compar", "a.csv", "b.csv"], "No such command or file 'compar'. Did you mean compare?"),
        (["zzz"], "No such command or file 'zzz'. The commands are analyze, compare, gate"),
        (["explain", "a.csv"], "explain is now regress"), (["nothing/*.csv"], "No such command or file"),
        (["a.csv", "--top", "2"], "No such option"), (["a.csv", "b.csv", "--margin"], "--margin"),
    ],
)  # fmt: skip
def test_what_is_neither_is_refused(
    typed: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(typed) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_help_without_a_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for typed in ([], ["--help"], ["-h"], ["help"]):
        assert main(typed) == 0
        shown.append(capsys.readouterr().out)
    assert len(set(shown)) == 1
    assert [line for line in shown[0].splitlines() if line.endswith(":")] == [
        "Start:", "In a run:", "Decide:", "More:",
    ]  # fmt: skip
    assert "https://harness-noise.github.io" in shown[0]
    assert main(["help", "compare"]) == 0
    asked = capsys.readouterr().out
    assert main(["compare", "-h"]) == 0
    assert capsys.readouterr().out == asked
