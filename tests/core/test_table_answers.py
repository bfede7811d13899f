"""Tables whose id numbers the answers: the words are the question, and the hint says what was taken."""

import csv
import json
import pickle

import pytest

import harness_noise as hn
from support.notes import noted


def read(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("id", "problem", "trial", "score"), *rows])
    return hn.read(path)[0]


def test_an_id_that_numbers_the_answers_is_no_question_where_a_few_have_several(tmp_path):
    rows = [(4 * i + k, f"the text {i}", k, (i + k) % 2) for i in range(50) for k in range(4) if k == 0 or i < 10]
    run = read(tmp_path / "t.csv", rows)
    (scores,) = run.scores
    assert scores.values.shape == (50, 4)
    assert noted(run)[0] == "t.csv: score: score, 0/1, 50% ones; question: problem; repeat: trial; not used: id"


def test_seeds_of_rows_do_not_number_the_answers(tmp_path):
    rows = [(i, f"the text {min(i, 47)}", 1000 + i, i % 2) for i in range(50)]
    (scores,) = read(tmp_path / "t.csv", rows).scores
    assert scores.values.shape == (50, 1)


def test_one_trial_of_all_does_not_number_the_answers(tmp_path):
    rows = [(i, f"the text {min(i, 47)}", 0, i % 2) for i in range(50)]
    (scores,) = read(tmp_path / "t.csv", rows).scores
    assert scores.values.shape == (50, 1)


def test_answers_to_words_that_are_the_question_are_read_again_by_the_words(tmp_path):
    path = tmp_path / "t.csv"
    rows = [(i, f"the text {i % 10}", i // 10, i % 2, f"I say {i}") for i in range(30)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("id", "problem", "trial", "score", "response"), *rows])
    (scores,) = hn.read(path)[0].scores
    assert scores.questions.keys[3] == "the text 3"
    (told,) = pickle.loads(pickle.dumps(scores.questions.log)).read([3], "none")  # noqa: S301
    assert told.answers == ("I say 3", "I say 13", "I say 23")


def test_an_object_that_holds_the_cause_is_used(tmp_path):
    path = tmp_path / "t.jsonl"
    rows = [
        {"question": f"q{i}", "score": i % 2 if i % 6 else None, "info": {} if i % 6 else {"error": "boom"}}
        for i in range(30)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = hn.read(path)
    assert run.scores[0].missing == {"agent": 5}
    assert not [note for note in noted(run) if "not used" in note]


def read_as(path, scores, name="score"):
    path.write_text(f"question,{name}\n" + "".join(f"q{i},{score}\n" for i, score in enumerate(scores)))
    return noted(hn.read(path)[0])[-1]


def test_a_code_or_a_slip_among_shares_is_named(tmp_path):
    path = tmp_path / "t.csv"
    said = read_as(path, [-1, *([0.25, 0.5] * 15)])
    assert said == "t.csv: score: score, -1 to 0.5, 3 distinct, all from 0 to 1 but -1 (1 row); question: question"
    assert "all from 0 to 1 but 50 (2 rows)" in read_as(path, [50, 50, *([0, 1] * 15)])
    assert "but" not in read_as(path, [1, 2, 3, 4, 5] * 6)
    assert "but" not in read_as(path, [0, 1, 2] * 10)


def test_words_in_place_of_scores_are_named(tmp_path):
    path = tmp_path / "t.csv"
    said = read_as(path, ["NaN", "n/a", "n/a", "", *([0, 1] * 15)])
    assert "0/1, 50% ones, 3 rows without a score: NaN, n/a; question" in said
    assert "without" not in read_as(path, ["", *([0, 1] * 15)])


def test_columns_named_like_models_are_asked_about_on_any_scale(tmp_path):
    path = tmp_path / "t.csv"
    rows = "".join(f"q{i},{i % 7 + 0.5},{i % 5 * 3.25}\n" for i in range(40))
    path.write_text("question,gpt,opus\n" + rows)
    with pytest.raises(hn.InputError, match="'models': 'gpt\\+opus'"):
        hn.read(path)
    runs = hn.read(path, columns={"models": "gpt+opus"})
    assert [run.model for run in runs] == ["gpt", "opus"]
