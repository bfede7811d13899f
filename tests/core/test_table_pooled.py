"""Rows of one question that differ in more than the answer: asked about, not taken for repeats."""

import random

import pytest

from harness_noise.errors import InputError
from support.notes import noted
from support.tables import array, one, table

QUESTIONS = [f"q{i}" for i in range(40)]


def coin(seed):
    draw = random.Random(seed)
    return lambda: draw.randint(0, 1)


@pytest.mark.parametrize(
    ("column", "values", "times"),
    [
        ("stimulus", [f"stimulus number {j}" for j in range(90)], 1),
        ("condition", ["control", "treated"], 3),
        ("temperature", [0.0, 0.7], 3),
        ("persona", ["nurse", "pilot", "judge"], 1),
        ("level", [1, 2, 3], 2),
    ],
)
def test_what_is_under_every_question_is_a_condition(csv_file, column, values, times):
    flip = coin(column)
    rows = [(q, value, flip()) for q in QUESTIONS[:4] for value in values for _ in range(times)]
    path = table(csv_file, ("question", column, "score"), *rows)
    with pytest.raises(InputError, match=f"4 questions by 'question' have up to {len(values) * times} rows each"):
        one(path)
    run = one(path, columns={"question": f"question*{column}"})
    assert array(run).shape == (4 * len(values), times)
    assert f"question: question*{column}" in noted(run)[0]
    assert "not used" not in noted(run)[0]
    assert array(one(path, columns={"repeat": "none"})).shape == (4, len(values) * times)


def test_a_few_judges_of_many_and_words_of_their_own_are_asked_about(csv_file):
    draw, flip = random.Random(1), coin(1)
    judged = [(q, f"j{j}", flip()) for q in QUESTIONS for j in draw.sample(range(10), 3)]
    with pytest.raises(InputError, match="differ in 'judge'"):
        one(table(csv_file, ("question", "judge", "score"), *judged))
    nested = [(q, f"these are the words {q} {j}", flip()) for q in QUESTIONS for j in range(5)]
    with pytest.raises(InputError, match="differ in 'text'"):
        one(table(csv_file, ("question", "text", "score"), *nested))


@pytest.mark.parametrize(("name", "drawn"), [("solution_id", "{}.1.{}"), ("pid", "{}/{}")])
def test_ids_under_groups_of_unequal_size_are_questions(csv_file, name, drawn):
    """As in a public benchmark whose `task_id` is a kind of question: repeats would be as many for most questions."""
    flip = coin(4)
    rows = [(k, drawn.format(k, j), flip()) for k, n in enumerate((15, 16, 16, 17, 18), 13) for j in range(n)]
    path = table(csv_file, ("task_id", name, "score"), *rows)
    with pytest.raises(InputError, match=rf"differ in '{name}'.*part of the question: `columns=.*{name}"):
        one(path)
    assert array(one(path, columns={"question": name})).shape == (82, 1)
    even = [(k, drawn.format(k, j), flip()) for k in range(8) for j in range(5) if (k, j) not in {(1, 1), (2, 4)}]
    assert array(one(table(csv_file, ("task_id", name, "score"), *even))).shape == (8, 5)


def test_what_tells_of_an_answer_may_differ_between_answers(csv_file):
    draw = random.Random(2)
    rows = [
        (q, f"I think it is {draw.random()}", draw.choice("ABCD"), draw.random(), draw.randint(1, 500),
         draw.randint(0, 1), f"{draw.getrandbits(64):x}", j, draw.randint(0, 1))
        for q in QUESTIONS for j in range(10)
    ]  # fmt: skip
    header = (
        "question",
        "response",
        "letter",
        "latency",
        "prompt_tokens",
        "is_right_last",
        "request",
        "sample",
        "score",
    )
    assert array(one(table(csv_file, header, *rows))).shape == (40, 10)


def test_a_few_questions_with_the_same_words_pool_nothing(csv_file):
    flip = coin(3)
    texts = [f"what is {i} and {i}?" for i in (*range(60), 0, 0, 3)]
    rows = [(text, f"a response {i}", i, f"judged {flip()}", flip()) for i, text in enumerate(texts)]
    path = table(csv_file, ("question", "response", "line", "gpt-4", "score"), *rows)
    run = one(path)
    assert array(run).shape == (63, 1)
    assert len(noted(run)) == 2
    assert "different questions with the same words" in noted(run)[1]
    (part,) = one(path, cluster="gpt-4").scores  # a label for each row, in the order of the questions that it is of
    judged = {text: [row[3] for row in rows if row[0] == text] for text in texts}
    assert part.clusters == tuple(label for text in dict.fromkeys(texts) for label in judged[text])


def test_a_factor_that_is_asked_about_is_no_oversight(csv_file):
    flip = coin(4)
    rows = [(q, prompt, flip()) for q in QUESTIONS for prompt in ("p1", "p2")]
    run = one(table(csv_file, ("question", "wording", "score"), *rows), factors=("wording",))
    assert array(run).shape == (40, 2)


def test_a_half_empty_column_of_repeats_can_be_switched_off(csv_file):
    rows = [(q, "" if i % 2 else k, (i + k) % 2) for i, q in enumerate(QUESTIONS) for k in range(2)]
    path = table(csv_file, ("question", "trial", "score"), *rows)
    with pytest.raises(InputError, match=r"`columns={'repeat': 'none'}`"):
        one(path)
    assert array(one(path, columns={"repeat": "none"})).tolist() == [[i % 2, 1 - i % 2] for i in range(40)]


def test_a_guess_by_which_most_rows_are_one_question_is_refused(csv_file):
    path = table(csv_file, ("id", "score"), *(("x" if i < 30 else f"q{i}", i % 2) for i in range(40)))
    with pytest.raises(InputError, match="by 'id', 30 of 40 rows are answers to one question"):
        one(path)
    assert array(one(path, columns={"question": "id"})).shape == (11, 30)
