"""Which question is which: keys, shuffled ids, changed documents, two harnesses, duplicates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_noise.data.matching import ids_are_numbers, pair_questions
from harness_noise.data.questions import Questions, content_hash, occurrences


def questions(keys: str, kind: str = "sample id", inputs: str | None = None, targets: str | None = None) -> Questions:
    return Questions(
        tuple(keys),
        kind,
        None if inputs is None else tuple(inputs),
        None if targets is None else tuple(targets),
    )


def pairs(a: Questions, b: Questions) -> list[tuple[str, str]]:
    found = pair_questions(a, b)
    return [(a.keys[i], b.keys[j]) for i, j in zip(found.rows_a, found.rows_b, strict=True)]


def said_of(a: Questions, b: Questions) -> str:
    note = pair_questions(a, b).note
    return "" if note is None else note.as_text()


def test_keys_match_in_any_order_and_leave_the_rest() -> None:
    assert pairs(questions("abcd"), questions("dxa")) == [("a", "a"), ("d", "d")]


def test_ids_given_after_a_shuffle_are_matched_by_text() -> None:
    a, b = questions("123", inputs="pqr"), questions("123", inputs="rpq")
    assert pairs(a, b) == [("1", "2"), ("2", "3"), ("3", "1")]
    assert "matched by text" in said_of(a, b)


def test_one_id_with_two_answers_is_not_one_question() -> None:
    a, b = questions("12", inputs="pq", targets="xy"), questions("12", inputs="pq", targets="xz")
    assert pairs(a, b) == [("1", "1")]
    assert "1 question shares a sample id but not their text" in said_of(a, b)


def test_a_document_hash_needs_no_verification() -> None:
    a = questions("12", "doc_hash", inputs="pq", targets="xy")
    b = questions("12", "doc_hash", inputs="pq", targets="uv")  # the task's reference answer was reformatted
    assert pairs(a, b) == [("1", "1"), ("2", "2")]
    assert pair_questions(a, b).note is None


def test_documents_that_another_version_changed_are_matched_by_text() -> None:
    a, b = questions("12", "doc_hash", inputs="pq"), questions("34", "doc_hash", inputs="qp")
    assert pairs(a, b) == [("1", "4"), ("2", "3")]
    assert "matched by text" in said_of(a, b)


def test_two_harnesses_are_matched_by_text_whatever_their_keys() -> None:
    a, b = questions("12", "doc_hash", inputs="pq"), questions("12", "sample id", inputs="qp")
    assert pairs(a, b) == [("1", "2"), ("2", "1")]
    assert pair_questions(a, b).by == "content"


def test_targets_of_two_harnesses_are_not_compared() -> None:
    a = questions("12", "doc_hash", inputs="pq", targets="xy")
    assert pairs(a, questions("34", "sample id", inputs="qp", targets="uv")) == [("1", "4"), ("2", "3")]


def test_the_nth_of_equal_texts_is_matched_with_the_nth() -> None:
    a, b = questions("123", "doc_hash", inputs="ppq"), questions("456", "sample id", inputs="qpp")
    assert pairs(a, b) == [("1", "5"), ("2", "6"), ("3", "4")]


def test_numbers_written_in_two_ways_are_one_id() -> None:
    a, b = Questions(("0", "1", "10")), Questions(("010", "000", "001"))
    assert pairs(a, b) == [("0", "000"), ("1", "001"), ("10", "010")]
    assert pairs(a, Questions(("10.0", "0.0", "3.0"))) == [("0", "0.0"), ("10", "10.0")]
    assert pairs(Questions(("1", "01")), Questions(("1.0", "2.0"))) == []  # two ids of one value


@pytest.mark.parametrize(
    ("keys", "numbers"),
    [
        ([str(i) for i in range(50)], True),
        ([f"HumanEval/{i}" for i in range(164)], True),
        ([f"{subject}_{i}" for subject in ("law", "art") for i in range(9)], True),
        (["7"], True),
        ([f"django__django-{i}" for i in (11099, 11133, 13033, 16560)], False),
        (["rec06pnAkLOr2t2mp", "rec0Arme2jcXQZnAW", "recz"], False),
        (["easy", "hard"], False),
    ],
)
def test_ids_that_only_number_questions(keys: list[str], numbers: bool) -> None:
    assert ids_are_numbers(keys) is numbers


def test_numbers_never_outweigh_texts_and_names_do_where_none_agrees() -> None:
    numbered = [Questions(tuple("12345"), inputs=tuple(texts)) for texts in ("abcde", "fghij")]
    assert pairs(*numbered) == []
    assert said_of(*numbered) == "5 questions share an id but not their text: left out"
    named = [Questions(("x", "yy", "z"), inputs=tuple(texts)) for texts in ("abc", "def")]
    assert len(pairs(*named)) == 3
    assert "which is a name" in said_of(*named)


def test_keys_that_are_the_texts_of_the_other_run() -> None:
    texts = ("what is 1?", "what is 2?", "what is 3?")
    a = questions("312", inputs=None)
    a = Questions(a.keys, a.kind, tuple(map(content_hash, (texts[2], texts[0], texts[1]))))
    assert pairs(a, Questions(texts)) == [("3", texts[2]), ("1", texts[0]), ("2", texts[1])]


def test_nothing_in_common_is_nothing() -> None:
    assert pairs(questions("ab"), questions("cd")) == []


@given(st.lists(st.sampled_from(["a", "b", "a#2", "a#3"]), max_size=12))
def test_numbered_occurrences_are_unique_and_keep_the_first(keys: list[str]) -> None:
    found = occurrences(keys)
    assert len(set(found)) == len(keys)
    for i, key in enumerate(keys):
        if key not in keys[:i] and keys.count(key) == 1:
            assert found[i] == key


@pytest.mark.parametrize("other", ["What is 2 + 2?\n", "  What is 2 + 2?  ", "What is 2 + 2?\r\n"])
def test_the_hash_of_a_text_does_not_depend_on_its_margins(other: str) -> None:
    assert content_hash("What is 2 + 2?") == content_hash(other)
    assert content_hash("What is 2 + 3?") != content_hash(other)
    assert content_hash("cafe\u0301") == content_hash("caf\u00e9")
    assert content_hash("\ud800")
