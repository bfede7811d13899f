"""Faults that a review found, each with the case that showed it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import harness_noise as hn
from harness_noise.analysis.factors import factor_noise
from harness_noise.analysis.gate import regressions
from harness_noise.analysis.repeats import as_repeats
from harness_noise.analysis.sample import as_scores
from harness_noise.cli import main
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run
from harness_noise.report.columns import number
from harness_noise.report.sentences import sentence
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
            "--cost-question",
            "1",
            "--cost-answer",
            "2",
        ],
        ["plan", "--accuracy", "0.7", "--n", "200"],
        ["factors", "A", "--task", "t0", "--factor", "round=repeat"],
        ["compare", "A", "B", "--combine", "--questions", "2"],
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
    def test_two_counts_have_an_interval_to_judge_by(self, capsys: pytest.CaptureFixture[str]) -> None:
        gate = ["--fail-on", "regression", "-q"]
        assert main(["compare", "10/100", "90/100", *gate]) == 1
        assert main(["compare", "10/100", "90/100", *gate, "--margin", "0.9"]) == 0
        assert main(["compare", "74/100", "75/100", *gate]) == 0
        capsys.readouterr()
        assert main(["compare", "10/100", "90/100", "--format", "json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)["comparisons"]
        assert (row["n_questions"], row["n_only_a"], row["n_only_b"]) == (200, 100, 100)
        assert -1 < row["ci_low"] < row["diff"] < row["ci_high"] < 0

    @pytest.mark.parametrize(("margin", "code"), [("0", 1), ("4.9", 1), ("5.1", 0)])
    def test_the_same_loss_on_every_question_is_a_loss(self, tmp_path: Path, margin: str, code: int) -> None:
        scores = RNG.normal(10, 1, 20)
        new = table(tmp_path / "new.csv", [f"q{i},{s!r}" for i, s in enumerate(scores.tolist())])
        old = table(tmp_path / "old.csv", [f"q{i},{s + 5!r}" for i, s in enumerate(scores.tolist())])
        assert main(["compare", new, old, "--fail-on", "regression", "--margin", margin, "-q"]) == code
        assert main(["compare", old, new, "--fail-on", "regression", "--margin", margin, "-q"]) == 0

    def test_what_cannot_be_judged_is_said(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        rows = [f"q{i},{i % 3 == 0:d},x" for i in range(12)]
        new = table(tmp_path / "new.csv", rows, "question,score,cluster")
        old = table(tmp_path / "old.csv", [f"q{i},1" for i in range(12)])
        assert main(["compare", new, old, "--fail-on", "regression", "-q"]) == 0
        assert "cannot judge table score" in capsys.readouterr().err
        assert main(["compare", new, old, "-q"]) == 0
        assert "cannot judge" not in capsys.readouterr().err


class TestBaseline:
    def test_the_baseline_is_not_compared_with_itself(
        self, two: tuple[str, str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["compare", *two, "--baseline", two[1], "--task", "t0", "--format", "json", "-q"]) == 0
        (row,) = json.loads(capsys.readouterr().out)["comparisons"]
        assert (row["model_a"], row["model_b"]) == ("a", "b")
        assert row["p_adjusted"] == row["p_value"]

    def test_alone_it_has_nothing_to_be_compared_with(self, two: tuple[str, str]) -> None:
        assert main(["compare", two[0], "--baseline", two[0]]) == 2

    def test_models_and_a_baseline_are_refused_together(self, two: tuple[str, str]) -> None:
        assert main(["compare", *two, "--baseline", two[0], "--models", "a,b"]) == 2


def run_of(scores: np.ndarray, first: int = 0, clusters: list[str] | None = None) -> Run:
    item = as_scores(scores, clusters)
    keys = Questions(tuple(f"q{first + i}" for i in range(len(scores))))
    return Run("m", "r", "table", scores=(hn.Scores("t", "acc", "none", keys, item.values, item.clusters),))


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


class TestClustersOfJoinedRuns:
    scores = (RNG.random((20, 1)) < 0.5).astype(float)
    labels = [f"c{i // 4}" for i in range(20)]  # noqa: RUF012

    def test_whichever_run_names_them(self) -> None:
        plain, named = run_of(self.scores), run_of(1 - self.scores, clusters=self.labels)
        for pair in ([plain, named], [named, plain]):
            (joined,) = as_repeats(pair)
            assert joined.scores[0].clusters == tuple(self.labels)

    @pytest.mark.parametrize("turned", [False, True])
    def test_questions_whose_cluster_is_not_known_are_refused(self, turned: bool) -> None:
        pair = [run_of(self.scores), run_of(self.scores, first=5, clusters=self.labels)]
        with pytest.raises(hn.InputError, match="`cluster=SPEC`"):
            as_repeats(pair[::-1] if turned else pair)

    def test_different_clusters_are_said(self) -> None:
        other = [f"d{i % 5}" for i in range(20)]
        pair = [run_of(self.scores, clusters=self.labels), run_of(self.scores, clusters=other)]
        assert any("cluster the questions differently" in note for note in as_repeats(pair)[0].notes)
        renamed = [f"passage {label}" for label in self.labels]
        pair[1] = run_of(self.scores, clusters=renamed)
        assert not as_repeats(pair)[0].notes

    def test_a_comparison_says_so_too(self) -> None:
        a = run_of(self.scores, clusters=self.labels)
        b = run_of(1 - self.scores, clusters=[f"d{i % 5}" for i in range(20)])
        assert any("cluster the questions differently" in note for note in hn.compare(a, b).notes)
        assert not any("cluster" in note for note in hn.compare(a, run_of(1 - self.scores)).notes)


def test_what_only_one_run_measured_is_said() -> None:
    scores = (RNG.random((20, 1)) < 0.5).astype(float)
    a, b = run_of(scores), run_of(1 - scores)
    assert not any("not compared" in note for note in hn.compare(a, b).notes)
    more = replace(a, name="more", scores=(*a.scores, replace(a.scores[0], task="t2")))
    for pair in ((more, b), (b, more)):
        notes = hn.compare(*pair).notes
        assert [note for note in notes if "not compared" in note] == ["only more has t2 / acc: not compared"]


def test_a_direction_that_nobody_knows_is_said() -> None:
    scores = (RNG.random((20, 1)) < 0.5).astype(float)
    a, b = run_of(scores), run_of(1 - scores)
    assert any("whether higher is better" in note for note in hn.compare(a, b).notes)
    assert any("whether higher is better" in note for note in hn.arena([a, replace(b, model="n")]).notes)
    known = replace(b, scores=(replace(b.scores[0], higher_is_better=False),))
    assert not any("higher" in note for note in hn.compare(a, known).notes)


@pytest.mark.parametrize("lower", [False, True])
def test_a_loss_counts_the_other_way_round(lower: bool) -> None:
    low, high = run_of(RNG.normal(1, 0.1, 30)), run_of(RNG.normal(2, 0.1, 30))
    low, high = (replace(run, scores=(replace(run.scores[0], higher_is_better=not lower),)) for run in (low, high))
    for a, b, a_wins in ((low, high, lower), (high, low, not lower)):
        result = hn.compare(a, b)
        assert result.differences[0].verdict == ("A better" if a_wins else "B better")
        assert regressions(result).tripped is (not a_wins)


@pytest.mark.parametrize("column", ["model", "task"])
def test_a_row_without_its_model_is_refused(tmp_path: Path, column: str) -> None:
    path = table(tmp_path / "t.csv", ["a,1,M", "b,0,"], f"question,score,{column}")
    with pytest.raises(hn.InputError, match=f"line 3: no '{column}'"):
        hn.read(path)


def test_few_degrees_of_freedom_are_said_where_runs_bring_them() -> None:
    scores = RNG.normal(0, 1, (200, 1)) + RNG.normal(0, 0.5, (1, 3)) + RNG.normal(0, 0.1, (200, 3))
    as_runs = hn.estimate(scores, repeats_are="runs")
    assert as_runs.df is not None
    assert as_runs.df < 10
    assert "few_clusters" in as_runs.diagnostics


def test_few_degrees_of_freedom_of_one_side_are_not_those_of_the_difference() -> None:
    noisy, small = RNG.normal(0, 10, 300), RNG.normal(0, 0.01, 5)
    row = hn.estimate_difference(noisy, small, unpaired=True)
    assert row.df is not None
    assert row.df > 100
    assert "few_clusters" not in row.diagnostics
    assert "few_clusters" in hn.estimate_difference(noisy / 1e6, small, unpaired=True).diagnostics


@pytest.mark.parametrize(("n", "verdict"), [(12, "A better"), (2, "not separable")])
def test_all_right_against_all_wrong_unpaired_is_judged_by_the_interval(n: int, verdict: str) -> None:
    row = hn.estimate_difference(np.ones((n, 3)), np.zeros((n, 3)), unpaired=True)
    assert row.ci_low is not None
    assert (row.verdict, row.ci_low > 0) == (verdict, verdict == "A better")
    same = hn.estimate_difference(np.ones((n, 3)), np.ones((n, 3)), unpaired=True)
    assert (same.verdict, same.p_value) == ("not separable", 1.0)


def test_rounding_is_no_negative_component() -> None:
    question, prompt = np.repeat(np.arange(6), 3), np.tile(np.arange(3), 6)
    rows = factor_noise(0.1 * prompt + 0.3, question, {"prompt": prompt}).factors
    assert {row.factor: row.var for row in rows if row.factor != "prompt"} == {"question": 0.0, "residual": 0.0}
    assert not any(row.diagnostics for row in rows)


def test_a_metric_on_a_small_scale_is_not_shown_as_zero() -> None:
    a, b = RNG.random(30) * 1e-6, RNG.random(30) * 1e-6 + 1e-6
    words = sentence(hn.estimate_difference(a, b))
    assert "0.000000" not in words
    assert re.search(r"= −\d\.\d\de−0[67] ± \d\.\d\de−0\d ", words)
    assert number(0.0, 6) == "0.000000"
    assert (number(-0.25, 6), number(-0.00012, 6)) == ("−0.250000", "−0.000120")


def test_the_rows_of_the_kernel_have_all_forms() -> None:
    scores = (RNG.random((30, 3)) < 0.5).astype(float)
    for item in (hn.estimate(scores), hn.estimate_difference(scores, 1 - scores)):
        found = item.to_dict()
        assert found["se"] == item.se
        assert isinstance(found["diagnostics"], list)
        assert len(item.to_frame()) == 1
        assert "<table" in item._repr_html_()
        assert item.__rich__() is not None


def test_clusters_that_only_some_samples_carry_are_not_dropped_in_silence(tmp_path: Path) -> None:
    rows = []
    for i in range(12):
        row = {"doc_id": i, "doc": {"question": f"How many are {i}?"}, "target": "1", "doc_hash": f"h{i}", "acc": i % 2}
        row |= {"resps": [["a"]], "filtered_resps": ["a"], "arguments": {}, "prompt_hash": "p", "target_hash": "t"}
        rows.append(row | ({"cluster": f"c{i // 3}"} if i else {}))
    path = tmp_path / "samples_some_2025-01-01T00-00-00.000000.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = hn.read(path)
    assert isinstance(run, Run)
    assert run.scores[0].clusters is None
    assert any("1 of 12 questions carry no cluster" in note for note in run.notes)
    rows[0]["cluster"] = "c0"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = hn.read(path)
    assert isinstance(run, Run)
    assert run.scores[0].clusters is not None
    assert not any("carry no cluster" in note for note in run.notes)
