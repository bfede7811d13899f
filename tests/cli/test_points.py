"""Differences go in as they come out: in points and per cent of a scale from 0 to 1, and of no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness_noise.cli import main
from harness_noise.settings import InPoints, difference


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, every in (("a", 2), ("b", 3)):
        rows = [f"q{q},{int(q % every == 0)},{(q * every) % 11}" for q in range(60)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["question,score,length", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("text", ["1.5%", "1.5pt", "1.5 pts", "1.5pp", "1.5 points", " 1.5% "])
def test_a_point_is_a_hundredth(text: str) -> None:
    assert difference(text) == 0.015
    assert isinstance(difference(text), InPoints)


def test_a_plain_number_is_on_the_scale_and_words_are_none() -> None:
    assert not isinstance(difference("0.015"), InPoints)
    assert difference("1e-2") == 0.01
    for text in ("1.5 percent of it", "", "%", "1,5%"):
        with pytest.raises(ValueError, match=r"could not convert"):
            difference(text)


@pytest.mark.parametrize(
    ("number", "points"),
    [
        ("compare a.csv b.csv --margin 0.05", "compare a.csv b.csv --margin 5pt"),
        ("gate a.csv --against b.csv --margin 0.1", "gate a.csv --against b.csv --margin 10%"),
        ("plan --effect 0.03 --accuracy 0.7", "plan --effect 3% --accuracy 70%"),
        ("gate a.csv --floor 0.3", "gate a.csv --floor 30%"),
        ("plan --effect 0.1 --from a.csv b.csv", "plan --effect 10pt --from a.csv b.csv"),
        ("compare 74/100 66/100 --margin 0.02", "compare 74/100 66/100 --margin 2pt"),
        ("compare 0.7 0.6 --profile gpqa_diamond --margin 0.02", "compare 0.7 0.6 --profile gpqa_diamond --margin 2%"),
    ],
)  # fmt: skip
def test_points_say_what_the_number_says(
    number: str, points: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for typed in (number, points):
        main([*typed.split(), "--format", "json", "-q"])
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("compare a.csv b.csv --measure length --margin 5pt", "5pt is of a scale from 0 to 1, and length has no"),
        ("compare a.csv b.csv --range 0,10 --margin 5%", "score runs from 0 to 10: write a plain number on its own"),
        ("gate a.csv --range 0,10 --floor 50%", "--floor 50% is of a scale from 0 to 1, and score runs from 0 to 10"),
        ("plan --effect 500pt --accuracy 0.6", "--effect 500pt is on the scale of the metric"),
        ("plan --effect 500% --accuracy 0.6", "--effect 500% is on the scale of the metric"),
        ("gate a.csv --floor 500pt", "--floor 500pt is outside the range of score, 0 to 1"),
        ("gate a.csv --floor half", "is not a mean, such as 0.85 or 85%"),
        ("plan --effect 2% --omega2 0.2", "the metric has no known range"),
        ("compare a.csv b.csv --margin 5x", "is not a difference, such as 0.015, 1.5% or 1.5pt"),
    ],
)  # fmt: skip
def test_points_of_another_scale_are_refused(
    typed: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(typed.split()) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("plan --profile gsm8k --effect 2pt -q", "a true difference of 2.00 points is found"),
        ("plan --profile gsm8k --effect 0.02 -q", "smallest detectable difference      2.00 points"),
        ("list gsm8k", "SE of A − B   1.4 points"),
        ("list a.csv", "mean 50%"),
        ("gate a.csv --against b.csv --self-test -q", "in every row is detected"),
    ],
)
def test_0_1_metrics_come_out_in_points(
    typed: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    main(typed.split())
    shown = capsys.readouterr().out
    assert said in shown
    assert " sees " not in shown


def test_what_is_proposed_is_in_per_cent(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for typed in ("gate a.csv --floor 85", "compare a.csv b.csv --margin 85"):
        assert main(typed.split()) == 2
        assert "Did you mean 0.85 (85%)?" in capsys.readouterr().err


def test_totals_without_a_standard_error_have_no_unit_of_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, shift in (("x", 0.0), ("y", 0.05)):
        rows = [f"r{i},{0.6 + shift + i / 100}" for i in range(3)]
        (folder / f"{name}.csv").write_text("\n".join(["run,score", *rows]) + "\n")
    assert main(["analyze", "x.csv", "--totals", "-q"]) == 0
    assert "SE" not in capsys.readouterr().out
    assert main(["compare", "x.csv", "y.csv", "--totals", "-q"]) == 0
    assert "score; differences in points" in capsys.readouterr().out


def test_questions_that_come_twice_say_it_in_points(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = [max(q, 5) for q in range(40)]
    rows = [f"id{q},What is number {same[q]} in words please?,gold {same[q]},{q % 3 % 2}" for q in range(40)]
    (folder / "c.csv").write_text("\n".join(["question_id,prompt,gold,correct", *rows]) + "\n")
    assert main(["analyze", "c.csv", "--details"]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "the standard error is" in told
    assert " points and not " in told
