"""A run that stopped early, or that asked a random part, of which only some questions or tasks are wanted."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("lm_eval")

import harness_noise as hn
from harness_noise.cli import main
from harness_noise_adapters.lm_eval_harness import noise
from support import lm_eval_models as toys
from support.lm_eval_live import save

N = 200
ONLY = ["meta.source >= 30"]


def strong() -> toys.HashModel:
    return toys.HashModel(seed=1, share=0.9)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """`a` was stopped by `b`: the group as one, the choice by itself. `part` asked a number that was fixed before."""
    folder = tmp_path_factory.mktemp("selected")
    toys.write_task(folder, "gen", toys.docs(N))
    toys.write_task(folder, "few", toys.docs(40, start=500))
    toys.write_task(folder, "choice", toys.docs(90, start=700), toys.CHOICE)
    by_size = {"metric": "exact_match", "weight_by_size": True, "filter_list": ["strict", "flexible"]}
    toys.write_group(folder, "both", ["gen", "few"], [by_size])
    save(folder, folder / "b", ["both", "choice"], toys.HashModel(seed=9, share=0.35))
    with noise(until="decided", against=str(folder / "b")):
        save(folder, folder / "a", ["both", "choice"], strong())
    with noise(sample="40%"):
        save(folder, folder / "part", ["gen"], strong())
    return SimpleNamespace(a=folder / "a", b=folder / "b", part=folder / "part", folder=folder)


def stopped_tasks(table: Any) -> list[str]:
    return [look.task for look in table.sequential]


def codes(rows: Any) -> set[bool]:
    return {"stopped_early" in row.diagnostics for row in rows}


@pytest.mark.parametrize(
    ("tasks", "recorded", "drawn"),
    [
        (["both"], ["both"], ["gen", "few"]),
        (["gen"], ["both"], ["gen"]),
        (["choice"], ["choice"], ["choice"]),
        (["few", "choice"], ["both", "choice"], ["few", "choice"]),
    ],
)
def test_what_stopped_a_task_stays_with_it(
    runs: SimpleNamespace, tasks: list[str], recorded: list[str], drawn: list[str]
) -> None:
    table = hn.analyze(runs.a, tasks=tasks)
    assert stopped_tasks(table) == recorded
    assert [record.task for record in table.drawn] == drawn
    assert codes(table.estimates) == {True}


def test_what_stopped_the_tasks_of_a_new_group_stays(runs: SimpleNamespace) -> None:
    table = hn.analyze(runs.a, tasks=["mine"], groups={"mine": "[gf]*"})
    assert stopped_tasks(table) == ["both"]
    table = hn.analyze(runs.a, tasks=["mine"], groups={"mine": "choice*"})
    assert stopped_tasks(table) == ["choice"]
    assert codes(table.estimates) == {True}


def test_some_questions_of_a_stopped_run_are_not_corrected(runs: SimpleNamespace) -> None:
    alone = hn.analyze(runs.a, only=ONLY)
    found = hn.compare(runs.a, runs.b, only=ONLY, tasks=["gen"])
    row = found.comparisons[0]
    assert (alone.sequential, codes(alone.estimates)) == ((), {True})
    assert (row.test, row.unadjusted, codes([row])) == ("t", None, {True})
    assert "stopped early, not corrected" in found.sentence
    (note,) = [note for note in alone.notes if "early stop" in note.as_text()]
    assert (note.code, note.as_text().partition(":")[0]) == ("left_out", "both, choice")


def test_the_drawing_counts_the_questions_that_meet_the_conditions(
    runs: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    (whole,) = hn.analyze(runs.part).drawn
    table = hn.analyze(runs.part, only=ONLY)
    (some,) = table.drawn
    n = table.estimates[0].n_questions
    assert (whole.n_asked, whole.n_only) == (80, None)
    assert (some.n_asked, some.n_total, some.n_only) == (80, N, n)
    assert 0 < n < 80
    assert main(["analyze", str(runs.part), "--only", *ONLY]) == 0
    said = f"gen: 80 of {N} questions, drawn at random (seed 0); {n} of these 80 meet the conditions."
    assert said in " ".join(capsys.readouterr().out.split())


def test_a_task_without_such_questions_has_no_drawing(runs: SimpleNamespace) -> None:
    table = hn.analyze(runs.a, only=ONLY)
    assert {record.task for record in table.drawn} == {row.task for row in table.estimates} - {"both"}
    assert "few" not in {row.task for row in table.estimates}


def test_a_group_asked_again_in_part_is_not_said_to_have_stopped(runs: SimpleNamespace, tmp_path: Path) -> None:
    """Newer results of `gen` replace those that stopped: what stopped the group is no longer of these answers."""
    save(runs.folder, tmp_path / "a", ["gen"], strong())
    (old,) = runs.a.rglob("results_*.json")
    (new,) = (tmp_path / "a").rglob("results_*.json")
    for file in old.parent.iterdir():
        (new.parent / file.name).write_bytes(file.read_bytes())
    table = hn.analyze(tmp_path / "a")
    row = next(row for row in table.estimates if row.task == "gen")
    assert (row.n_questions, codes([row])) == (N, {False})
    assert stopped_tasks(table) == ["choice"]
    assert [record.task for record in table.drawn] == ["few", "choice"]


def test_a_regression_says_that_the_run_stopped(runs: SimpleNamespace) -> None:
    for found in (
        hn.regress(runs.a, on=["meta.source"], tasks=["gen"]),
        hn.regress(runs.b, runs.a, on=["meta.source"], tasks=["gen"]),
    ):
        assert codes(found.fits) == {True}
        assert "stopped_early" in str(found)
    assert codes(hn.regress(runs.part, on=["meta.source"]).fits) == {False}


def test_the_first_screen_of_an_arena_says_that_a_run_stopped(
    runs: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(runs.a), str(runs.b), str(runs.part), "--task", "gen"]
    for more in ([], ["--scorer", "strict"]):
        assert main(["arena", *words, *more]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert said.count("stopped early, not corrected") == (1 if more else 2)
