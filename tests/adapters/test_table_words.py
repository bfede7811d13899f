"""What the words of a table's questions say stands above ids that only number its rows."""

from __future__ import annotations

import random

import pytest

import harness_noise as hn
from harness_noise.data.questions import content_hash
from harness_noise.errors import InputError
from support.notes import noted
from support.tables import one, table

TEXTS = [f"How many are {i} and {2 * i}, taken together?" for i in range(50)]
HEADER = ("qid", "question", "score")


def right(text, chance, salt):
    return int(random.Random(f"{salt}{text}").random() < chance)


def rows(texts, chance, salt):
    return [(i, text, right(text, chance, salt)) for i, text in enumerate(texts, 1)]


def shuffled(texts, seed=1):
    return random.Random(seed).sample(texts, len(texts))


def difference(a, b, **options):
    (row,) = hn.compare(a, b, **options).comparisons
    return row


@pytest.fixture
def pair(tmp_path):
    """Two tables of the same questions under ids 1 to 50, of which the second is shuffled."""
    return (
        table(tmp_path / "a.csv", HEADER, *rows(TEXTS, 0.7, "a")),
        table(tmp_path / "b.csv", HEADER, *rows(shuffled(TEXTS), 0.6, "b")),
    )


def test_shuffled_ids_are_paired_by_the_words(pair, tmp_path):
    words = hn.estimate_difference(
        [[right(text, 0.7, "a")] for text in TEXTS], [[right(text, 0.6, "b")] for text in TEXTS]
    )
    row = difference(*pair)
    assert (row.n_questions, row.diff, row.se) == (50, pytest.approx(words.diff), pytest.approx(words.se))
    assert "share an id but not their text: matched by text" in " ".join(noted(hn.compare(*pair)))
    vouched = difference(*pair, columns={"question": "qid"})  # somebody who names the id answers for it
    assert vouched.se != pytest.approx(words.se)
    unnumbered = table(tmp_path / "c.csv", HEADER[1:], *(row[1:] for row in rows(shuffled(TEXTS, 2), 0.6, "b")))
    assert difference(pair[0], unnumbered).se == pytest.approx(words.se)


def test_other_questions_under_the_same_ids_are_refused(pair, tmp_path):
    other = table(tmp_path / "c.csv", HEADER, *rows([f"Why is it {text}" for text in TEXTS], 0.9, "c"))
    with pytest.raises(InputError, match=r"no question in common.*50 questions share an id but not their text"):
        hn.compare(pair[0], other)


def test_the_words_of_a_prompt_verify_an_id(tmp_path):
    header = ("id", "prompt", "score")
    a = table(tmp_path / "a.csv", header, *rows(TEXTS, 0.7, "a"))
    b = table(tmp_path / "b.csv", header, *rows(shuffled(TEXTS), 0.6, "b"))
    template = table(tmp_path / "c.csv", header, *rows([f"[INST] {text} [/INST]" for text in TEXTS], 0.6, "b"))
    assert one(a).scores[0].questions.inputs == tuple(map(content_hash, TEXTS))
    assert difference(a, b).diff == pytest.approx(
        sum(right(text, 0.7, "a") - right(text, 0.6, "b") for text in TEXTS) / 50
    )
    with pytest.raises(InputError, match="share an id but not their text"):
        hn.compare(a, template)
    assert difference(a, template, columns={"question": "id"}).n_questions == 50


def test_names_stand_above_prompts_that_are_worded_in_another_way(tmp_path):
    names = [f"{random.Random(i).getrandbits(64):016x}" for i in range(50)]
    tables = [
        table(tmp_path / f"{salt}.csv", ("id", "prompt", "score"),
              *((name, f"{salt} {text}", i % 2) for i, (name, text) in enumerate(zip(names, TEXTS, strict=True))))
        for salt in "ab"
    ]  # fmt: skip
    found = hn.compare(*tables)
    assert found.comparisons[0].n_questions == 50
    assert "matched by id, which is a name" in " ".join(noted(found))


def test_an_arena_keeps_apart_what_only_shares_ids(pair, tmp_path):
    other = [f"Why is it {text}" for text in TEXTS]
    more = [table(tmp_path / f"{name}.csv", HEADER, *rows(other, 0.9, name)) for name in "cd"]
    found = hn.arena([*pair, *more])
    assert sorted((item.task, item.n_questions, item.n_pairs) for item in found.benchmarks) == [
        ("table", 50, 1), ("table#2", 50, 1),
    ]  # fmt: skip
    assert "2 sets of questions that share none" in " ".join(noted(found))


def test_a_row_without_words_leaves_the_id_unverified(pair, tmp_path):
    bare = table(tmp_path / "c.csv", ("qid", "score"), *((i, 1) for i in range(1, 51)))
    assert one(bare).scores[0].questions.inputs is None
    notes = noted(hn.compare(pair[0], bare))
    assert any("paired by ids that only number them" in note for note in notes)


def test_a_log_with_automatic_ids_is_paired_with_a_table_by_the_words(shared_data, tmp_path):
    pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    log = shared_data / "inspect" / "mmlu_gpt-4_285.eval"
    (run,) = hn.read(log)
    part = run.scores[0]
    texts = [told.text for told in part.questions.log.read(range(len(part.questions)), part.scorer)]
    assert tuple(map(content_hash, texts)) == tuple(part.questions.inputs)
    said = {"metrics": [part.metric, "score"], "scorers": [part.scorer, "none"]}
    mixed = shuffled(list(dict(zip(texts, part.values[:, 0], strict=True)).items()))
    assert len(mixed) == len(texts) - 1  # which of two equal texts is which nothing tells
    own = table(tmp_path / "own.csv", HEADER, *((i, *item) for i, item in enumerate(mixed, 1)))
    words = table(tmp_path / "words.csv", HEADER[1:], *mixed)
    for path in (own, words):
        row = difference(log, path, **said)
        assert row.n_questions == len(mixed)
        assert row.diff == 0
        assert row.wins_a == row.wins_b == 0


def answered(n, turn=0):
    """Rows of questions without words: their numbers, the right answer, the model's, and whether it is right."""
    return [(i, "ABCD"[(i + turn) % 4], "ABCD"[i % 3], int((i + turn) % 4 == i % 3)) for i in range(n)]


@pytest.mark.parametrize("turn", [0, 1])
def test_right_answers_tell_that_numbered_questions_are_others(turn, tmp_path):
    header = ("id", "correct_answer", "predicted_answer", "is_correct")
    a = table(tmp_path / "a.csv", header, *answered(40))
    b = table(tmp_path / "b.csv", header, *answered(39, turn), (39, "", "A", 0))  # one without a right answer
    found = hn.compare(a, b)
    said = "40 questions are paired by ids that only number them, and 39 have other right answers in the other run"
    assert found.comparisons[0].n_questions == 40
    assert any(said in note for note in noted(found)) == bool(turn)
