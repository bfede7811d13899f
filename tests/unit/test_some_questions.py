"""What is known of every answer stays known of some of the questions: its text, whether it was asked, its doubles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.analysis.sample import scores_of_rows
from harness_noise.data.only import with_only
from harness_noise.data.questions import Questions
from harness_noise.data.scores import CorpusScores, Run
from harness_noise.extra.arena.report import sentences


def write(path: Path, head: str, rows: list[str]) -> str:
    path.write_text("\n".join([head, *rows]) + "\n")
    return str(path)


@pytest.fixture
def scored_twice(tmp_path: Path) -> list[str]:
    """Two runs with the same answers, of which B's scorer gets a third wrong; every other question is easy."""

    def row(i: int, bad: bool) -> str:
        right = (i * 7) % 10 < 8
        answer, score = f"answer {i}" if right else f"wrong {i}", int(right and not (bad and i % 3 == 0))
        return f"Question number {i} is what?,answer {i},{answer},{score},{('hard', 'easy')[i % 2]}"

    head = "question,gold,response,correct,level"
    return [write(tmp_path / f"{name}.csv", head, [row(i, name == "b") for i in range(60)]) for name in "ab"]


@pytest.mark.parametrize("choice", [{"only": "level=easy"}, {"unpaired": True}, {}])
def test_equal_answers_are_held_against_each_other(scored_twice: list[str], choice: dict[str, object]) -> None:
    (row,) = hn.compare(*scored_twice, **choice).comparisons
    assert row.verdict == "scored differently"
    assert row.equal_answers is not None
    assert row.equal_answers.n_differ >= 5
    assert row.equal_answers.n_equal == (30 if choice.get("only") else 60)


def test_so_are_those_of_strata_and_slices(scored_twice: list[str], tmp_path: Path) -> None:
    mix = write(tmp_path / "mix.csv", "field,value,weight", ["level,hard,1", "level,easy,2"])
    (row,) = hn.compare(*scored_twice, weights=mix).comparisons
    assert row.verdict == "scored differently"
    slices = hn.compare(*scored_twice, by="level").slices
    assert [each.verdict for each in slices] == ["scored differently"] * 2


def test_unpaired_questions_that_numbers_alone_name_are_not_taken_for_the_same(tmp_path: Path) -> None:
    """A letter is right for one question and wrong for another."""
    paths = [
        write(tmp_path / f"{name}.csv", "id,response,score", [f"{i},A,{int(i % 3 == k)}" for i in range(60)])
        for k, name in enumerate("ab")
    ]
    (row,) = hn.compare(*paths, unpaired=True).comparisons
    assert row.verdict != "scored differently"


@pytest.fixture
def unequal(tmp_path: Path) -> str:
    """40 questions with 1 or 3 answers, of which one, to an odd question, has no score."""
    rows = []
    for i in range(40):
        for k in range(3 if i % 2 else 1):
            score = "" if (i, k) == (1, 2) else int((i * 7 + k * 3) % 5 < 3)
            rows.append(f"q{i},{k + 1},{score},{'easy' if i % 4 else 'hard'},{'odd' if i % 2 else 'even'}")
    return write(tmp_path / "unequal.csv", "question,repeat,score,level,parity", rows)


def test_answers_that_were_not_asked_for_are_not_missing(unequal: str, tmp_path: Path) -> None:
    whole = hn.analyze(unequal).estimates[0]
    assert whole.n_missing == 1
    for only, n in (("level=easy", 1), ("level=hard", 0), ("parity=odd", 1), ("parity=even", 0)):
        assert hn.analyze(unequal, only=only).estimates[0].n_missing == n
    assert {row.slice: row.n_missing for row in hn.analyze(unequal, by="level").slices} == {"easy": 1, "hard": 0}
    mix = write(tmp_path / "mix.csv", "field,value,weight", ["level,hard,1", "level,easy,2"])
    assert hn.analyze(unequal, weights=mix).estimates[0].n_missing == 1


def test_what_is_missing_of_unequal_repeats_is_known(unequal: str) -> None:
    part = hn.read(unequal)[0].scores[0]
    assert part.lost is not None
    assert np.argwhere(part.lost).tolist() == [[1, 2]]
    assert scores_of_rows(part, [0, 1]).n_missing == 1
    assert scores_of_rows(part, [0, 2]).n_missing == 0
    other = scores_of_rows(part, np.arange(1, 40))
    other = replace(other, values=1 - other.values)
    row = hn.compare(hn.Run("a", "a", "x", scores=(part,)), hn.Run("b", "b", "x", scores=(other,))).comparisons[0]
    assert row.if_missing is not None
    assert row.if_missing != "not known"
    better = hn.as_scores(np.ones((40, 3)), higher_is_better=True)
    run = Run("a", "a", "x", scores=(hn.as_scores(np.where(part.was_asked, 1.0, np.nan), higher_is_better=True),))
    assert hn.gate(run, Run("b", "b", "x", scores=(better,))).outcome == "cannot judge"  # nobody says why
    told = Run("a", "a", "x", scores=(scores_of_rows(run.scores[0], range(40)),))
    assert told.scores[0].n_missing == 40


def test_no_answer_is_missing_where_questions_have_fewer(unequal: str, tmp_path: Path) -> None:
    """The gate takes an answer that nobody asked for as no loss."""
    rows = [line for line in Path(unequal).read_text().splitlines()[1:] if not line.startswith("q1,3,")]
    path = write(tmp_path / "none.csv", "question,repeat,score,level,parity", rows)
    assert hn.read(path)[0].scores[0].n_missing == 0
    assert hn.gate(hn.read(path)[0], Run("b", "b", "x", scores=hn.read(path)[0].scores)).passed


def test_answers_of_unknown_questions_may_be_of_any(unequal: str) -> None:
    from dataclasses import replace

    part = hn.read(unequal)[0].scores[0]
    lost = replace(part, n_missing=3)  # two that the log does not have at all
    assert lost.lost is None
    assert scores_of_rows(lost, [0, 2]).n_missing == 2
    assert scores_of_rows(lost, [0, 2]).lost is None


def test_sums_over_questions_know_what_is_missing_of_them() -> None:
    stats = np.ones((6, 2, 3))
    stats[1, 0], stats[4] = np.nan, np.nan
    fields = None
    for records in (False, True):
        kept = [[None if np.isnan(x).any() else tuple(x) for x in row] for row in stats]
        how = {"records": tuple(map(tuple, kept))} if records else {"stats": stats}
        questions = Questions(tuple("abcdef"), fields=fields)
        part = CorpusScores("t", "f1", "none", questions, n_missing=3, **how)
        for rows, n in (([0, 1], 1), ([2, 3], 0), ([1, 4], 3)):
            assert part.take(rows, questions.at(rows)).n_missing == n


def doubled(tmp_path: Path, same: set[int]) -> str:
    rows = [
        f"id{i},What is number {min(same) if i in same else i} in words please?,gold {min(same) if i in same else i},"
        f"{i % 3 % 2},{'hard' if i < 10 else 'easy'}"
        for i in range(40)
    ]
    return write(tmp_path / "doubled.csv", "question_id,prompt,gold,correct,level", rows)


@pytest.mark.parametrize(("same", "n"), [({0, 1, 2}, 0), ({20, 21, 39}, 2), ({5, 30, 31}, 1), ({5, 39}, 0)])
def test_questions_that_are_one_are_still_one_among_fewer(tmp_path: Path, same: set[int], n: int) -> None:
    path = doubled(tmp_path, same)
    assert "doubled_questions" in hn.analyze(path).estimates[0].diagnostics
    found = hn.analyze(path, only="level=easy")
    notes = [note.as_text() for note in found.notes if note.code == "doubled_questions"]
    assert ("doubled_questions" in found.estimates[0].diagnostics) == bool(n)
    assert len(notes) == bool(n)
    assert not n or f"{n} of 30 questions" in notes[0]


def test_what_is_left_out_is_no_double(tmp_path: Path) -> None:
    run = hn.read(doubled(tmp_path, {3, 20, 30}), only="level=easy")[0]
    assert run.scores[0].questions.doubles == ((10, 20),)
    assert with_only(run, ["level=easy"]).scores[0].questions.doubles == ((10, 20),)
    assert "doubled_questions" not in scores_of_rows(run.scores[0], range(10)).diagnostics


def test_an_arena_ranks_no_model_by_a_withheld_pair(scored_twice: list[str]) -> None:
    (board,) = hn.arena(scored_twice).boards
    assert board.pairs[0].verdict == "scored differently"
    assert board.pairs[0].p_value < 0.001
    assert [(row.rank_low, row.rank_high, row.ties) for row in board.models] == [(1, 2, 1)] * 2
    assert all(row.p_best is None for row in board.models)
    names = " and ".join(model.model for model in board.models)
    assert sentences(board)[0].replace(", ", " and ").startswith(f"{names} are scored differently from all others")
