"""The answer that a label is of, by the column `repeat`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.extra.labels.files import Label, LabelFile, answer_id
from harness_noise.extra.labels.numbering import answers_labelled
from harness_noise_adapters.extra.labels.reading import read_labels


def files(folder: Path, first: int, named: int) -> tuple[Path, Path]:
    """Scores of two answers to each of 120 questions, and labels of both answers to half of them."""
    rng = np.random.default_rng(1)
    score, label = rng.integers(0, 2, (2, 120, 2))
    scores, labels = folder / "scores.csv", folder / "labels.csv"
    each = [(i, j) for i in range(120) for j in range(2)]
    scores.write_text("question,repeat,score\n" + "".join(f"q{i},{first + j},{score[i, j]}\n" for i, j in each))
    rows = [(i, j) for i, j in each if i % 2]
    labels.write_text("question,repeat,label\n" + "".join(f"q{i},{named + j},{label[i, j]}\n" for i, j in rows))
    return scores, labels


@pytest.mark.parametrize(("first", "named"), [(0, 0), (1, 1), (7, 1), (7, 0)])
def test_repeats_are_numbered_from_one_or_zero(tmp_path: Path, first: int, named: int) -> None:
    (tmp_path / "as").mkdir()
    expected, row = (
        hn.analyze(scores, labels=labels, labels_at_random=True).estimates[0]
        for scores, labels in (files(tmp_path / "as", 0, 0), files(tmp_path, first, named))
    )
    assert (row.mean, row.se) == (expected.mean, expected.se)


def test_a_repeat_that_no_question_has_is_no_label_of_the_whole_question(tmp_path: Path) -> None:
    scores, labels = files(tmp_path, 0, 7)
    with pytest.raises(hn.InputError, match=r"labels\.csv, line 2: repeat 7 of question 'q1', and .* has 2 answers"):
        hn.analyze(scores, labels=labels, labels_at_random=True)


def answer_of(folder: Path, repeat: str, scores: list[list[str]], more: tuple[str, ...] = ()) -> int | None:
    """The answer that labels of one repeat are of: 0, 1, or None for the question.

    Args:
        folder: for the files.
        repeat: what every label says.
        scores: header and the cells before the score, of the first answer and the second.
        more: further rows of the labels.
    """
    head, *answers = scores
    lines = [",".join(["question", *head, "score"])]
    lines += [",".join([f"q{i}", *cell, str(j)]) for i in range(3) for j, cell in enumerate(answers)]
    (folder / "scores.csv").write_text("\n".join(lines) + "\n")
    rows = ["question,repeat,label", *(f"q{i},{repeat},0.5" for i in range(3)), *more]
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")
    (run,) = hn.read(folder / "scores.csv")
    assert run.scores[0].values[0].tolist() == [0, 1]
    (found,) = answers_labelled(read_labels(folder / "labels.csv"), [(run.scores[0], run.model, run.name)])
    assert len(found) == 3
    (answer,) = set(found.values())
    return answer


NAMED_FROM_0, NAMED_FROM_1 = [["repeat"], ["0"], ["1"]], [["repeat"], ["1"], ["2"]]
SEEDS, UNNAMED = [["repeat"], ["7"], ["8"]], [[], [], []]
FIRST, SECOND = 0, 1


@pytest.mark.parametrize(
    ("repeat", "scores", "more", "answer"),
    [
        ("1", NAMED_FROM_0, (), SECOND),
        ("1.0", NAMED_FROM_0, (), SECOND),
        ("0", NAMED_FROM_0, (), FIRST),
        ("1", NAMED_FROM_1, (), FIRST),
        ("2", NAMED_FROM_1, (), SECOND),
        ("2", NAMED_FROM_0, (), SECOND),
        ("8", SEEDS, (), SECOND),
        ("b", [["repeat"], ["a"], ["b"]], (), SECOND),
        ("1", SEEDS, ("q1,0,",), SECOND),
        ("1", UNNAMED, ("q1,0,",), SECOND),
        ("1", UNNAMED, ("q1,2,",), FIRST),
        ("2", UNNAMED, (), SECOND),
    ],
)
def test_a_label_goes_to_the_answer_that_the_run_calls_so(
    tmp_path: Path, repeat: str, scores: list[list[str]], more: tuple[str, ...], answer: int
) -> None:
    assert answer_of(tmp_path, repeat, scores, more) == answer


@pytest.mark.parametrize(("scores", "names"), [(UNNAMED, ""), (SEEDS, r" table calls its repeats 7, 8: write these")])
def test_a_repeat_that_may_be_either_answer_is_refused(tmp_path: Path, scores: list[list[str]], names: str) -> None:
    said = (
        r"labels\.csv, line 2: repeat 1 of question 'q0' is answer 2 of 2 if repeats count from 0, and answer 1 if "
        rf"they count from 1\. The file has neither a repeat 0 nor a repeat 2\.{names}"
    )
    with pytest.raises(hn.InputError, match=said):
        answer_of(tmp_path, "1", scores)


def test_a_second_answer_counts_alike_under_any_number(tmp_path: Path) -> None:
    """Labels of repeat 1 alone, which the run counts from 0, and of repeat 2 alone, which it counts from 1."""
    rows = []
    for first in (0, 1):
        (tmp_path / str(first)).mkdir()
        scores, labels = files(tmp_path / str(first), first, first)
        head, *lines = labels.read_text().splitlines()
        labels.write_text("\n".join([head, *lines[1::2]]) + "\n")
        rows.append(hn.analyze(scores, labels=labels, labels_at_random=True).estimates[0])
    assert [(row.mean, row.se) for row in rows] == [(rows[1].mean, rows[1].se)] * 2


def test_an_answer_id_says_more_than_a_repeat(tmp_path: Path) -> None:
    """A drawn file with other numbers in its column `repeat`."""
    scores, _ = files(tmp_path, 0, 0)
    drawn = hn.label_sample(scores, 3, tmp_path / "drawn.csv", seed=1)
    (run,) = hn.read(scores)
    of = {row.question: int(row.repeat) for row in drawn.rows}
    labels = [Label(row.question, 1.0, i, repeat="1", answer_id=row.answer_id) for i, row in enumerate(drawn.rows)]
    (found,) = answers_labelled(LabelFile("drawn", tuple(labels)), [(run.scores[0], run.model, run.name)])
    assert {label.question: answer for label, answer in found.items()} == of
    assert len({*of.values()}) == 2


def drawn_without_hashes(folder: Path, names: tuple[str, ...]) -> dict[int | None, set[str]]:
    """Draw answers, each of which says which it is, take the hashes out of the file, and read it back.

    Returns:
        Answer → the names that the labels have for it.
    """
    rows = [f"q{i},{name},{j / 2},answer {j}" for i in range(40) for j, name in enumerate(names)]
    (folder / "scores.csv").write_text("\n".join(["question,repeat,score,response", *rows]) + "\n")
    (run,) = hn.read(folder / "scores.csv")
    drawn = hn.label_sample(folder / "scores.csv", 20, folder / "drawn.csv", seed=3)
    lines = [f"{row.question},{row.repeat},{row.answer}" for row in drawn.rows if row.answer != "answer 2"]
    lines = [line.replace("answer ", "") for line in lines]
    (folder / "labels.csv").write_text("\n".join(["question,repeat,label", *lines]) + "\n")
    (found,) = answers_labelled(read_labels(folder / "labels.csv"), [(run.scores[0], run.model, run.name)])
    assert [label.value for label in found] == list(found.values())
    out: dict[int | None, set[str]] = {}
    for label, answer in found.items():
        out.setdefault(answer, set()).add(str(label.repeat))
    return out


@pytest.mark.parametrize("names", [("0", "1", "2"), ("1", "2", "3"), ("2", "10", "11"), ("x", "y", "z")])
def test_a_drawn_file_names_repeats_as_the_run_does(tmp_path: Path, names: tuple[str, ...]) -> None:
    """Not even the last repeat is there, by which one could tell how a file counts."""
    assert drawn_without_hashes(tmp_path, names) == {0: {names[0]}, 1: {names[1]}}


def test_an_answer_id_of_one_row_renumbers_no_other(tmp_path: Path) -> None:
    """The run calls its repeats 1, 3 and 4: a hash for 1 does not make 3 the third."""
    rows = [f"q{i},{name},{j / 2}" for i in range(3) for j, name in enumerate((1, 3, 4))]
    (tmp_path / "scores.csv").write_text("\n".join(["question,repeat,score", *rows]) + "\n")
    (run,) = hn.read(tmp_path / "scores.csv")
    part = run.scores[0]
    labels = (
        Label("q0", 1.0, 2, repeat="1", answer_id=answer_id(run.model, part.task, "q0", 0)),
        Label("q1", 1.0, 3, repeat="3"),
    )
    (found,) = answers_labelled(LabelFile("labels", labels), [(part, run.model, run.name)])
    assert [*found.values()] == [0, 1]
