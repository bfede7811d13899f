"""Packed strings are what a tuple of the same strings is."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_noise.data.questions import Hashes

HASH = st.text("0123456789abcdef", min_size=8, max_size=8)
ODD = st.sampled_from(["", "0", "ABCDEF01", "12 45678", "x" * 8, "\ud800", "0123456789", "a#2", "é1234567"])


def packed(texts):
    out = Hashes()
    for text in texts:
        out.append(text)
    return out


@given(st.lists(HASH | ODD, max_size=40), st.integers(1, 1100))
def test_hashes_are_the_strings_that_were_put_in(texts, times):
    texts = texts * (times if times > 1000 else 1)
    found = packed(texts)
    same_as_a_tuple(found, texts)
    assert found.distinct() == len(set(texts))
    at_once = Hashes()
    at_once.extend(texts)
    assert at_once == found
    if texts:
        found.replace(len(texts) - 1, "another")
        same_as_a_tuple(found, [*texts[:-1], "another"])
        assert at_once != found


def same_as_a_tuple(found, texts):
    whole = tuple(texts)
    assert found == whole
    assert whole == found
    assert hash(found) == hash(whole)
    assert len(found) == len(whole)
    assert tuple(found) == whole
    assert found[1:-1:2] == whole[1:-1:2]
    assert found == pickle.loads(pickle.dumps(found))  # noqa: S301 - our own
    assert found != (*whole, "more")
    assert found != list(whole)
    if whole:
        assert (found[0], found[-1]) == (whole[0], whole[-1])
    with pytest.raises(IndexError):
        found[len(whole)]


def test_a_hash_takes_half_a_byte_a_digit():
    found = packed([f"{i:064x}" for i in range(5000)])
    assert found[4999].endswith("1387")
    assert len(pickle.dumps(found)) < 33 * 5000
