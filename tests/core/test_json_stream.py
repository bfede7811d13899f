"""JSON from a stream is what `json.loads` makes of the whole, however the stream is cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_noise_adapters import records as stream
from harness_noise_adapters.records import CutError, JsonStream

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
SPACE = st.sampled_from(["", " ", "\n\t  ", "\r\n"])


def pieces(data: bytes, size: int):
    for start in range(0, len(data), size):
        yield data[start : start + size]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(stream, "_PIECE", 1)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=5), st.integers(1, 40), st.booleans(), SPACE)
def test_an_object_is_walked_through(document, size, ascii_only, space):
    text = space + json.dumps(document, ensure_ascii=ascii_only, indent=len(space) or None) + space
    found = JsonStream(pieces(text.encode(), size))
    assert {name: found.value() for name in found.members()} == document
    found.end()


@given(st.lists(VALUES, max_size=6), st.integers(1, 40))
def test_an_array_comes_item_by_item(document, size):
    found = JsonStream(pieces(json.dumps(document).encode(), size))
    assert found.is_array()
    assert list(found.items()) == document
    found.end()


@given(st.lists(VALUES, min_size=1, max_size=4), st.integers(1, 40), st.data())
def test_what_is_cut_is_never_taken_for_whole(document, size, data):
    whole = json.dumps(document, ensure_ascii=False).encode()
    end = data.draw(st.integers(0, len(whole) - 1))
    found = JsonStream(pieces(whole[:end], size))
    with pytest.raises(ValueError):
        list(found.items())


@pytest.mark.parametrize("text", ["[1, 2", '["a', '{"a": [1', "[tru", '["\\u00', "[1.", "", "  "])
def test_cut_text_is_told_from_wrong_text(text):
    with pytest.raises(CutError):
        JsonStream([text.encode()]).value()


@pytest.mark.parametrize(
    "text",
    ["[1 2" + " " * 40 + "]", "{1: 2" + " " * 40 + "}", "[01" + " " * 40 + "]", "[nul" + " " * 40 + "]", "x" * 40],
)
def test_wrong_text(text):
    with pytest.raises(ValueError) as caught:
        JsonStream([text.encode()]).value()
    assert not isinstance(caught.value, CutError)


def test_nesting_without_end_is_refused():
    with pytest.raises(ValueError, match="nested too deeply"):
        JsonStream([b"[" * 100_000]).value()


def test_one_value_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(stream, "LONGEST_ITEM", 1000)
    endless = iter(lambda: b"x" * 100, b"")
    with pytest.raises(ValueError, match="longer than"):
        JsonStream([b'["', *[next(endless) for _ in range(50)]]).value()


def test_more_behind_the_end_is_refused():
    found = JsonStream([b"{} {}"])
    assert found.value() == {}
    with pytest.raises(ValueError, match="follows the end"):
        found.end()


@pytest.mark.parametrize("text", [b"\xff\xfe{}", b'["\xc3("]', b'["\xed\xa0\x80"]'])
def test_what_is_no_utf_8_is_refused(text):
    with pytest.raises(ValueError):
        JsonStream([text]).value()


def test_a_byte_order_mark_is_passed_over():
    assert JsonStream([b"\xef\xbb\xbf[1]"]).value() == [1]


@pytest.mark.parametrize("number", ["0.0", "-1.5", "1e5", "2E+7", "3e-05", "10", "0"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_number_is_whole_wherever_the_pieces_end(number, size, monkeypatch):
    monkeypatch.setattr(stream, "_PIECE", size)
    text = f"[{number},{number}]".encode()
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    assert list(stream.JsonStream(pieces).items()) == [json.loads(number)] * 2
