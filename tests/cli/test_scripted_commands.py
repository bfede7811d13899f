"""Commands as a script calls them: JSON that fits the schema, the exit code of the gate, the baseline."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from harness_noise.cli import main
from harness_noise.results.schema import json_schema

RNG = np.random.default_rng(11)


def table(path: Path, rows: list[str], head: str = "question,score") -> str:
    path.write_text("\n".join([head, *rows]) + "\n")
    return str(path)


@pytest.fixture
def two(tmp_path: Path) -> tuple[str, str]:
    rng = np.random.default_rng(3)
    found = []
    for name, p in (("a", 0.4), ("b", 0.7)):
        rows = [f"t{t},q{i},{k},{int(rng.random() < p)}" for t in range(3) for i in range(20) for k in range(3)]
        found.append(table(tmp_path / f"{name}.csv", rows, "task,question,repeat,score"))
    return found[0], found[1]


@pytest.mark.parametrize(
    "arguments",
    [
        [
            "plan",
            "--effect",
            "0.03",
            "--omega2",
            "0.11",
            "--sigma2",
            "0.2",
            "--costs",
            "question=1,answer=2",
        ],
        ["plan", "--accuracy", "0.7", "--n", "200"],
        ["factors", "A", "--task", "t0", "--factor", "round=repeat"],
        ["compare", "A", "B", "--questions", "2"],
        ["compare", "74/100", "60/100"],
        ["arena", "A", "B"],
        ["analyze", "A"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_what_every_command_prints_fits_the_schema(
    arguments: list[str], two: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    paths = {"A": two[0], "B": two[1]}
    assert main([*(paths.get(item, item) for item in arguments), "--format", "json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name))
    jsonschema.validate(found, json_schema())


class TestGate:
    def test_two_counts_have_an_interval(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["compare", "10/100", "90/100", "--format", "json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)["comparisons"]
        assert (row["n_questions"], row["n_only_a"], row["n_only_b"]) == (200, 100, 100)
        assert -1 < row["ci_low"] < row["diff"] < row["ci_high"] < 0

    @pytest.mark.parametrize(("margin", "code"), [("0", 1), ("4.9", 1), ("5.1", 0)])
    def test_the_same_loss_on_every_question_is_a_loss(self, tmp_path: Path, margin: str, code: int) -> None:
        scores = RNG.normal(10, 1, 20)
        new = table(tmp_path / "new.csv", [f"q{i},{s!r}" for i, s in enumerate(scores.tolist())])
        old = table(tmp_path / "old.csv", [f"q{i},{s + 5!r}" for i, s in enumerate(scores.tolist())])
        assert main(["gate", new, "--against", old, "--margin", margin, "-q"]) == code
        assert main(["gate", old, "--against", new, "--margin", margin, "-q"]) == 0

    def test_a_gate_that_can_judge_nothing_is_no_pass(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        rows = [f"q{i},{i % 3 == 0:d},x" for i in range(12)]
        new = table(tmp_path / "new.csv", rows, "question,score,cluster")
        old = table(tmp_path / "old.csv", [f"q{i},1" for i in range(12)])
        assert main(["gate", new, "--against", old, "-q"]) == 2
        assert "cannot judge: table score: " in capsys.readouterr().out
        assert main(["compare", new, old, "-q"]) == 0
        assert "cannot judge" not in capsys.readouterr().err


class TestBaseline:
    def test_the_baseline_is_not_compared_with_itself(
        self, two: tuple[str, str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["compare", *two, "--against", two[1], "--task", "t0", "--format", "json", "-q"]) == 0
        (row,) = json.loads(capsys.readouterr().out)["comparisons"]
        assert (row["model_a"], row["model_b"]) == ("a", "b")
        assert row["p_adjusted"] == row["p_value"]

    def test_alone_it_has_nothing_to_be_compared_with(self, two: tuple[str, str]) -> None:
        assert main(["compare", two[0], "--against", two[0]]) == 2

    def test_models_and_a_baseline_are_refused_together(self, two: tuple[str, str]) -> None:
        assert main(["compare", *two, "--against", two[0], "--models", "a,b"]) == 2


def test_runs_are_joined_behind_a_group_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(8)
    paths = []
    for name in "abc":
        rows = [f"m,t{t},q{i},{int(rng.random() < 0.5)}" for t in range(2) for i in range(15)]
        paths.append(table(tmp_path / f"{name}.csv", rows, "model,task,question,score"))
    both = []
    for only in ([], ["--task", "g"]):
        assert main(["analyze", *paths, "--as-repeats", "--group", "g=t*", *only, "--format", "json", "-q"]) == 0
        both.append(json.loads(capsys.readouterr().out)["estimates"][-1])
    assert both[0] == both[1]
    assert both[0]["repeats_max"] == 3
