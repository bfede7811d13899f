"""A column that nobody named, and whose questions are right or wrong together, is named with what to type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.data.notes import Note

N, SIZE = 240, 8
GROUP = np.arange(N) // SIZE


def scores(seed: int, spread: float = 1.2, passages: int | None = None) -> np.ndarray[Any, Any]:
    """0/1 scores of questions whose passages differ by `spread` on the logit scale."""
    effects = np.random.default_rng(seed if passages is None else passages).normal(0, spread, N // SIZE)
    logit = 0.4 + effects[GROUP]
    return (np.random.default_rng(seed + 1000).random(N) < 1 / (1 + np.exp(-logit))).astype(int)


def table(seed: int = 0, **columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"id": [f"q{i}" for i in range(N)], "correct": scores(seed), **columns})


def asked(frame: pd.DataFrame, **options: Any) -> list[str]:
    """What the notes on clusters of a table say."""
    found: list[Note] = [note for run in hn.read(frame, **options) for note in run.notes]
    return [note.as_text() for note in found if note.code == "natural_clusters"]


def test_a_passage_is_named_with_what_to_type() -> None:
    (said,) = asked(table(passage=GROUP))
    assert said.startswith("questions with one passage score alike")
    assert said.endswith("ask with `cluster='passage'`")
    assert asked(table(story=[f"Once upon a time {g} and so on." for g in GROUP]))  # whatever it is called
    order = np.random.default_rng(1).permutation(N)
    assert asked(table(doc=[f"d{g}" for g in GROUP]).iloc[order])  # in any order of the rows


@pytest.mark.parametrize("cluster", ["passage", "none", "id"])
def test_who_has_chosen_is_not_asked(cluster: str) -> None:
    assert asked(table(passage=GROUP), cluster=cluster) == []
    assert asked(table(cluster=GROUP)) == [], "its name says it"


@pytest.mark.parametrize(
    "column",
    [
        np.arange(N) % 4,  # a category
        np.arange(N),  # the number of the question
        np.arange(N) // 2 + 0.5,  # no name of a group
        np.random.default_rng(3).permutation(GROUP),  # whose groups have nothing to do with the scores
        [f"answer {i % 97}" if i % 3 else f"other {i}" for i in range(N)],  # most are in a group of one
        [None, *GROUP[1:]],  # not of all questions
    ],
    ids=["category", "number", "fraction", "chance", "words", "gap"],
)
def test_what_is_no_cluster_is_not_named(column: Any) -> None:
    assert asked(table(column=column)) == []


@pytest.mark.parametrize(
    "name",
    ["error_type", "details.explanation", "predicted_label", "subject", "question_type", "none", "auto"],
)
def test_what_a_name_says_is_no_cluster_is_not_named(name: str) -> None:
    """Of the model's answer, a benchmark's parts, or words that `cluster` has for something else."""
    assert asked(table(**{name: [f"c{g}" for g in GROUP]})) == []


def test_one_large_group_and_many_small_are_too_few() -> None:
    frame = table()
    of_wrong = [f"KeyError {i % 14}" for i in range(N)]
    frame["cause"] = np.where(frame["correct"] == 1, "no remark", of_wrong)
    assert asked(frame) == []


@pytest.mark.parametrize("score", [0, 1, 0.1])
def test_equal_scores_tell_no_groups(score: float) -> None:
    assert asked(table(passage=GROUP).assign(correct=score), columns={"score": "correct"}) == []


def test_a_field_of_objects_is_named_by_its_path() -> None:
    (said,) = asked(table(meta=[{"passage": f"p{g}", "page": 1} for g in GROUP]))
    assert said.endswith("ask with `cluster='meta.passage'`")
    assert asked(table(meta=[{"passage": f"p{g}", "page": 1} for g in GROUP]), cluster="meta.passage") == []


def test_an_amount_that_goes_along_with_the_scores_is_no_cluster() -> None:
    rng = np.random.default_rng(5)
    frame = table()
    frame["n_words"] = rng.integers(20, 40, N) + 8 * frame["correct"]
    assert asked(frame) == []


def test_a_question_in_two_groups_and_cells_of_models_and_tasks() -> None:
    frames = [table(passage=GROUP, model=name).assign(correct=scores(i, 1.2, 9)) for i, name in enumerate("ab")]
    assert asked(pd.concat(frames))
    frames[1]["passage"] = np.roll(GROUP, 1)
    assert asked(pd.concat(frames)) == []
    easy = table(passage=GROUP, task=["easy" if i < N // 2 else "hard" for i in range(N)])
    rng = np.random.default_rng(2)
    easy["correct"] = (rng.random(N) < np.where(easy["task"] == "easy", 0.9, 0.3)).astype(int)
    assert asked(easy) == [], "tasks differ, passages within a task do not"


@pytest.mark.simulation
def test_how_often_it_is_named() -> None:
    """Without clusters fewer than 1 % of columns are named (nominal 0.1 %); clusters that matter mostly are."""
    for spread, low, high in ((0.0, 0, 4), (1.2, 170, 200)):
        frames = [table(passage=GROUP).assign(correct=scores(100 + i, spread)) for i in range(200)]
        assert low <= sum(bool(asked(frame)) for frame in frames) <= high


@pytest.mark.simulation
def test_rare_wrong_answers_are_no_clusters() -> None:
    """1,000 questions, 1 % wrong, passages of unequal sizes: an F test alone would name 18 % of such columns."""
    named = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        groups = np.repeat(np.arange(400), rng.geometric(0.2, 400))[:1000]
        scores = (rng.random(1000) < 0.99).astype(int)
        frame = pd.DataFrame({"id": [f"q{i}" for i in range(1000)], "correct": scores, "passage": groups})
        named += bool(asked(frame))
    assert named <= 3


def test_one_hint_for_both_sides_of_a_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, seed in (("new", 0), ("old", 7)):
        table(seed, passage=GROUP).to_csv(tmp_path / f"{name}.csv", index=False)
    files = [str(tmp_path / f"{name}.csv") for name in ("new", "old")]
    assert main(files) == 0
    said = capsys.readouterr().err
    assert said.count("score alike") == 1
    assert "ask with --cluster passage" in said
    assert main([*files, "--cluster", "passage"]) == 0
    again = capsys.readouterr()
    assert "score alike" not in again.err
    assert "30 clusters (passage)" in again.out
