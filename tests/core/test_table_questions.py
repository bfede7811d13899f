"""Which rows of a table are one question."""

import json
from pathlib import Path

import pandas as pd
import pytest

import harness_noise as hn
from harness_noise.data.answers import Answers
from harness_noise.errors import InputError
from support.notes import noted
from support.tables import array, one, table


def texts(n, collisions=()):
    return [f"what is {i} and {i}?" for i in range(n)] + [f"what is {i} and {i}?" for i in collisions]


def test_a_unique_id_wins_over_texts_that_collide(csv_file):
    rows = [(i, text, i % 2) for i, text in enumerate(texts(60, (0, 0, 3, 5)))]
    run = one(table(csv_file, ("id", "question", "score"), *rows))
    assert array(run).shape == (64, 1)
    assert [note for note in noted(run) if "3 texts in 'question' have several 'id' each" in note]
    (row,) = hn.analyze(csv_file).estimates
    assert (row.n_questions, row.repeats_min, row.repeats_max, row.se_prediction) == (64, 1, 1, None)
    assert array(one(csv_file, columns={"question": "question"})).shape == (60, 3)


def test_an_id_that_numbers_the_rows_is_not_the_question(csv_file):
    rows = [(i, f"what is {i % 20} and {i % 20}?", i % 3 == 0) for i in range(100)]
    run = one(table(csv_file, ("id", "question", "score"), *rows))
    assert array(run).shape == (20, 5)
    assert array(run)[7].tolist() == [float((7 + 20 * k) % 3 == 0) for k in range(5)]


def test_an_id_that_numbers_the_answers_of_a_question_is_not_the_question(csv_file):
    rows = [(f"what is {i} and {i}?", k, (i + k) % 3 == 0) for i in range(20) for k in range(4)]
    run = one(table(csv_file, ("question", "sample_id", "score"), *rows))
    assert array(run).shape == (20, 4)
    assert array(run)[5].tolist() == [float((5 + k) % 3 == 0) for k in range(4)]


def test_an_id_may_start_anew_in_each_task(csv_file):
    rows = [(task, i, f"{task} asks for {i}", i % 2) for task in "ab" for i in range(10)]
    run = one(table(csv_file, ("task", "id", "question", "score"), *rows))
    assert [part.values.shape for part in run.scores] == [(10, 1), (10, 1)]
    assert run.scores[1].questions.keys == tuple(map(str, range(10)))


def test_an_id_with_two_wordings_is_one_question(csv_file):
    """A few odd rows do not make the id worthless: its rows are its answers."""
    rows = [(i % 20, f"what is {i % 20} and {i % 20}" + "?" * (i == 3), i % 2) for i in range(40)]
    assert array(one(table(csv_file, ("id", "question", "score"), *rows))).shape == (20, 2)


def test_an_id_that_comes_again_has_repeats(csv_file):
    rows = [(i % 20, f"what is {i % 20 % 18}, then?", i % 3 == 0) for i in range(100)]
    assert array(one(table(csv_file, ("id", "question", "score"), *rows))).shape == (20, 5)
    few = [(f"q{i}", 1) for i in range(20)] + [("q3", 0)]
    assert array(one(table(csv_file, ("question_id", "score"), *few))).shape == (20, 2)


def test_a_few_equal_texts_are_different_questions(csv_file):
    rows = [(text, i % 2) for i, text in enumerate(texts(60, (0, 0, 3)))]
    run = one(table(csv_file, ("question", "score"), *rows))
    assert array(run).shape == (63, 1)
    assert [note for note in noted(run) if "2 of 60 texts in 'question' come more than once" in note]
    most = [(text, i % 2) for i, text in enumerate(texts(60, range(40)))]
    assert array(one(table(csv_file, ("question", "score"), *most))).shape == (60, 2)


def test_a_factor_survives_a_new_name_of_the_question(csv_file):
    rows = [(i, f"what is {i % 20} and {i % 20}?", f"p{i // 20}", i % 3 == 0) for i in range(60)]
    run = one(table(csv_file, ("id", "question", "prompt", "score"), *rows), factors=("prompt",))
    (part,) = run.scores
    assert part.factors["prompt"][4] == ("p0", "p1", "p2")


@pytest.mark.parametrize(
    ("header", "shape"),
    [
        (("task_id", "trial", "reward"), (4, 3)),
        (("task_id", "trial_id", "success"), (4, 3)),
        (("instance_id", "attempt", "resolved"), (4, 3)),
        (("prompt_id", "rollout", "is_correct"), (4, 3)),
        (("problem", "run_id", "passed"), (4, 3)),
    ],
)
def test_the_names_of_agent_benchmarks(csv_file, header, shape):
    rows = [(f"q{i}", k, (i + k) % 2) for i in range(4) for k in range(3)]
    run = one(table(csv_file, header, *rows))
    assert array(run).shape == shape
    assert f"score: {header[2]}, 0/1, 50% ones; question: {header[0]}; repeat: {header[1]}" in noted(run)[0]


@pytest.mark.parametrize("other", ["correct", "success"])
def test_two_columns_of_scores_are_asked_about_with_both_means(csv_file, other):
    path = table(csv_file, ("question", "reward", other), ("q", 7, 1), ("r", 8, 0))
    with pytest.raises(InputError, match=rf"'reward' and '{other}' could each be the score.*mean 7.5.*mean 0.5"):
        one(path)
    assert array(one(path, columns={"score": other})).ravel().tolist() == [1, 0]


def test_columns_can_be_named_for_one_file(tmp_path):
    a = table(tmp_path / "a.csv", ("item", "x"), ("q", 1), ("r", 0))
    b = table(tmp_path / "b.csv", ("item", "y"), ("q", 0), ("r", 0))
    said = {"a:score": "x", "b.csv:score": "y"}
    assert [array(one(path, columns=said)).ravel().tolist() for path in (a, b)] == [[1, 0], [0, 0]]


def test_an_id_or_the_number_of_a_try_is_not_taken_for_a_model(csv_file):
    csv_file.write_text("id,attempt,gpt,llama\n1,1,0.5,0.2\n2,1,0.1,0.9\n")
    runs = hn.read(csv_file)
    assert [(run.model, array(run).ravel().tolist()) for run in runs] == [("gpt", [0.5, 0.1]), ("llama", [0.2, 0.9])]


def numbered(texts, name="id", answers=5):
    """(row number, text, number of the answer, score), the answers to a text one after the other."""
    rows = [(text, k) for text in texts for k in range(answers)]
    return [(f"r{i}", text, k, (i + k) % 2) for i, (text, k) in enumerate(rows)]


def test_an_id_of_its_own_for_each_answer_to_a_prompt_is_asked_about(csv_file):
    rows = [(i, text, score) for i, text, _, score in numbered(texts(30))]
    path = table(csv_file, ("id", "prompt", "score"), *rows)
    with pytest.raises(
        InputError, match=r"though 30 texts in 'prompt' come again.*'question': 'prompt'.*'question': 'id'"
    ):
        hn.read(path)
    assert array(one(path, columns={"question": "prompt"})).shape == (30, 5)
    assert array(one(path, columns={"question": "id"})).shape == (150, 1)


def test_prompts_that_come_again_may_be_templates_or_stand_beside_what_differs(csv_file):
    templates = [(i, f"Translate into {('French', 'Greek')[i % 2]}, please", i % 2) for i in range(40)]
    assert array(one(table(csv_file, ("id", "prompt", "score"), *templates))).shape == (40, 1)
    numbers = [(i, i % 20, i % 2) for i in range(40)]
    assert array(one(table(csv_file, ("id", "input", "score"), *numbers))).shape == (40, 1)
    assert hn.read(pd.DataFrame(numbers, columns=["id", "input", "score"]))[0].scores[0].values.shape == (40, 1)
    passages = [(i, f"Read passage {i % 20} again", f"and say {i}", i % 2) for i in range(40)]
    assert array(one(table(csv_file, ("id", "input", "query", "score"), *passages))).shape == (40, 1)


def test_an_id_of_its_own_for_each_numbered_answer_is_asked_about(csv_file):
    path = table(csv_file, ("id", "case", "trial", "score"), *numbered([f"case-{i}" for i in range(30)]))
    with pytest.raises(InputError, match=r"'trial' tells 5 answers apart.*'question': 'COLUMN'.*'question': 'id'"):
        hn.read(path)
    assert array(one(path, columns={"question": "case"})).shape == (30, 5)
    assert array(one(path, columns={"question": "id"})).shape == (150, 1)


def test_how_many_attempts_it_took_numbers_no_answers(csv_file):
    rows = [(i, 1 + (i % 5 == 0) + (i % 10 == 0), i % 2) for i in range(40)]
    assert array(one(table(csv_file, ("id", "attempt", "score"), *rows))).shape == (40, 1)


def test_ids_of_a_frame_that_its_floats_round_are_refused() -> None:
    """A column with a gap is one of floats to pandas, and two ids beyond 2^53 were one question with two answers."""
    rows = [{"question": 10**17 + i, "score": i % 2} for i in range(4)]
    assert array(hn.read(pd.DataFrame(rows))[0]).shape == (4, 1)
    frame = pd.concat([pd.DataFrame(rows), pd.DataFrame([{"score": 0}])])[:4]
    assert frame["question"].nunique() == 1
    with pytest.raises(InputError, match="line 1: the question 1e\\+17 is too large for a float"):
        hn.read(frame)
    with pytest.raises(InputError, match="row 1: the question 1e\\+17 is too large for a float"):
        Answers.from_frame(frame, "here")


@pytest.mark.parametrize("columns", [None, {"question": "id", "score": "score"}])
def test_ids_of_more_than_64_bits_are_read_or_refused_and_never_rounded(
    tmp_path: Path, columns: dict[str, str] | None
) -> None:
    """Two such numbers could be one float, and two questions one."""
    first = 18446744073709551617
    rows = [{"id": first + i, "score": i % 2} for i in range(4)]
    (path := tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert hn.read(path, columns=columns)[0].scores[0].questions.keys == tuple(str(row["id"]) for row in rows)
    (path := tmp_path / "f.jsonl").write_text(
        "".join(json.dumps(row | {"id": float(row["id"])}) + "\n" for row in rows)
    )
    with pytest.raises(InputError, match=r"line 1: the question .* is too large for a float, which rounds it"):
        hn.read(path, columns=columns)


@pytest.mark.parametrize(("name", "kind"), [("model", "model"), ("seed", "repeat"), ("task", "task")])
def test_a_rounded_name_of_more_than_64_bits_is_refused_whatever_it_names(tmp_path: Path, name: str, kind: str) -> None:
    """Two answers with one seed would be one answer, and two models one model. A float holds 53 bits."""
    rows = [{"id": f"q{i // 2}", name: 1e20 + 2**15 * (i % 2), "score": i % 2} for i in range(8)]
    (path := tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = {"question": "id", "score": "score", kind: name}
    with pytest.raises(InputError, match=rf"line 1: the {kind} 1e\+20 is too large for a float, which rounds it"):
        hn.read(path, columns=columns)


def rows_with_errors(**more):
    failed = [{"error": "timeout", "kind": "ab"[i % 2], **more} for i in range(5)]
    return [{"id": i, "is_correct": i % 3 == 0, "kind": "ab"[i % 2]} for i in range(20)] + failed


def test_rows_without_an_id_are_no_question_of_several_kinds(tmp_path):
    path = tmp_path / "answers.json"
    path.write_text(json.dumps(rows_with_errors()), encoding="utf-8")
    with pytest.raises(InputError, match=r"line 21: no 'id': which question is it\?"):
        one(path)


def test_a_number_that_says_the_same_as_an_id_with_gaps_is_the_question(tmp_path):
    path = tmp_path / "answers.json"
    path.write_text(json.dumps([row | {"index": i} for i, row in enumerate(rows_with_errors())]), encoding="utf-8")
    (estimate,) = hn.analyze(path).estimates
    assert (estimate.n_questions, estimate.mean) == (20, 7 / 20)
    (part,) = one(path).scores
    assert len(part.questions) == 25
    other = [row | {"index": 7 * i % 25} for i, row in enumerate(rows_with_errors())]
    other[0]["index"] = other[-1]["index"]  # of an answer and of an error
    path.write_text(json.dumps(other), encoding="utf-8")
    with pytest.raises(InputError, match="no 'id'"):
        one(path)


def test_one_question_with_several_rows_is_one(csv_file):
    rows = [(f"q{i}", "new", i % 2) for i in range(30)] + [("q0", "old", 1)]
    table(csv_file, ("question_id", "style", "score"), *rows)
    with pytest.raises(InputError, match="1 question by 'question_id' has 2 rows, which differ in 'style'"):
        one(csv_file)


@pytest.mark.parametrize("more", [(), ("f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9")])
def test_a_table_without_questions_says_what_to_name(more, csv_file):
    rows = [(("dense", "bm25")[i % 2], i % 7, i / 40, i / 50, *("x" for _ in more)) for i in range(40)]
    table(csv_file, ("retrieval", "failures", "faithfulness", "config", *more), *rows)
    listed = "retrieval, failures, faithfulness, config" + (", f1, f2, f3, f4, f5, f6, f7, f8, …" if more else "")
    with pytest.raises(InputError, match=rf"There are {listed}\. If one of them does, say `columns=") as error:
        one(csv_file)
    assert "if so" not in str(error.value)
