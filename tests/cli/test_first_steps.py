"""What a new user types first, and what stops nobody."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.cli.commands import in_flags
from support.tables import table


def failed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(item) for item in arguments]) == 2
    return " ".join(capsys.readouterr().err.split())


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(item) for item in arguments]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_bare_numbers_lead_to_the_benchmarks_noise(capsys: pytest.CaptureFixture[str]) -> None:
    text = failed(capsys, "compare", "62.5", "50.7")
    counts = re.findall(r"\d+/500", text)
    assert "better" in shown(capsys, "compare", *counts)
    (named,) = re.findall(r"--profile (\w+)", text)
    assert "62.5" in shown(capsys, "compare", 0.625, 0.507, "--profile", named)


def test_a_misspelt_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Did you mean analyze?" in failed(capsys, "analyse", "run")
    assert "The commands are analyze, compare" in failed(capsys, "zzz")


def test_counts_have_their_names_and_one_p(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "74/100", "66/100", "--models", "new,old"]) == 0
    out, err = capsys.readouterr()
    assert "new is not shown to differ from old: −4.7 to +20.4 points; Fisher's exact test." in " ".join(out.split())
    assert re.search(r"^A +74\.0% +new$", out, re.MULTILINE)
    assert re.search(r"^B +66\.0% +old$", out, re.MULTILINE)
    assert "p =" not in err
    assert out.count("0.280") == 1
    assert shown(capsys, "compare", "74/100", "66/100").startswith("74 of 100 is not shown to differ from 66 of 100")


def test_plan_takes_clusters_as_the_other_commands_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(f"q{i}", i % 3 % 2, f"p{i // 4}") for i in range(40)]
    path = table(tmp_path / "pilot.csv", ("question", "score", "passage"), *rows)
    found = shown(capsys, "plan", "--effect", "0.1", "--from", path, "--cluster", "passage", "-q", "--format", "json")
    assert json.loads(found)["plan"]["cluster_size"] == 4


def test_plan_takes_a_level_as_the_other_commands_do(capsys: pytest.CaptureFixture[str]) -> None:
    plans = [
        shown(capsys, "plan", "--effect", "0.1", "--accuracy", "0.7", *level, "--format", "json")
        for level in (("--level", "0.9"), ())
    ]
    assert plans[0] != plans[1]
    assert json.loads(plans[0])["plan"]["alpha"] == 0.1


@pytest.mark.parametrize("name", ["Correct?", "my score"])
def test_a_column_that_is_surely_the_score_is_taken_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = table(tmp_path / "odd.csv", ("question", name), ("a", 1), ("b", 0), ("c", 1))
    assert main(["analyze", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "67%" in out
    assert f"score: {name}, 0/1, 67% ones; question: question" in err
    assert "67%" in shown(capsys, "analyze", path, "--columns", f"score={name}")


@pytest.mark.parametrize("name", ["Gut?", "my outcome", "Result?", 'say "yes"', "$HOME", "plain"])
def test_an_odd_column_is_asked_for_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    path = table(tmp_path / "odd.csv", ("question", name), ("a", 1), ("b", 0), ("c", 1))
    text = failed(capsys, "analyze", path)
    (said,) = re.findall(r"(?:as in|say) (--columns .*?)(?: \(mean 0\.6667\))?$", text)
    flag = shlex.split(said.replace("\\$", "$"))  # as a shell reads it
    assert flag == ["--columns", f"score={name}"]
    assert "67%" in shown(capsys, "analyze", path, *flag)


def test_columns_of_one_side_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = table(tmp_path / "one.csv", ("question", "Correct?"), ("a", 1), ("b", 0), ("c", 1))
    two = table(tmp_path / "two.csv", ("question", "score"), ("a", 0), ("b", 0), ("c", 1))
    assert "one is not shown to differ from two" in shown(capsys, "compare", one, two, "--columns", "A:score=Correct?")
    assert "--columns two:question=COLUMN" in failed(capsys, "analyze", two, "--columns", "question=nowhere")
    assert "accepted names are question, score" in failed(capsys, "analyze", two, "--columns", "foo=question")


def test_a_run_without_samples_says_what_to_do_instead_of_dashes(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (source,) = (shared_data / "lm_eval" / "asdiv").rglob("results_*.json")
    (tmp_path / source.name).write_bytes(source.read_bytes())
    text = shown(capsys, "analyze", tmp_path)
    assert "the harness's own value, without an error bar" in text
    assert "What to do: keep them with --log_samples" in text
    assert "–" not in text
    text = failed(capsys, "compare", tmp_path, shared_data / "lm_eval" / "asdiv")
    assert "no answers that can be compared" in text
    assert "--log_samples" in text


def test_what_python_prints_is_what_the_terminal_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = table(tmp_path / "one.csv", ("question", "score"), ("a", 1), ("b", 0), ("c", 1))
    result = hn.analyze(hn.read(path)[0])
    print(result)
    printed = capsys.readouterr().out
    assert in_flags(printed).split() == shown(capsys, "analyze", path).split()
    assert result.rows[0].mean == pytest.approx(2 / 3)
