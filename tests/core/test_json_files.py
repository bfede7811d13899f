"""JSON of others, read whole or line by line."""

import json
import math
import sys

import pytest

from harness_noise.errors import InputError
from harness_noise.io import paths
from harness_noise.io.paths import load, load_line


def test_a_document_is_read_with_its_nan(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": [1, NaN]}')
    assert math.isnan(load(path)["a"][1])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1,\n oops}', r"a\.json, line 2: not JSON \(.*\); cut"),
        (b"[" * 200_000, r"not JSON that can be read|nested too deeply"),
        (b'{"a": "\xff"}', "not UTF-8 text: invalid start byte at byte 7"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
    ],
)
def test_what_is_no_json_is_refused_with_the_place(tmp_path, content, message):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        load(path, "; cut")


def test_a_document_too_large_to_be_held_is_refused_unread(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(list(range(100))))
    monkeypatch.setattr(paths, "LARGEST", 100)
    with pytest.raises(InputError, match="has to be held in memory as a whole; cut it"):
        load(path, advice="; cut it")


def test_a_file_that_is_not_there_is_no_traceback(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.json: cannot be read \(No such file"):
        load(tmp_path / "nothing.json")


def test_a_line_that_is_no_json_is_named_by_its_number(tmp_path):
    assert load_line(tmp_path, 1, b"[1]", "") == [1]
    for line in (b"{", b"[" * 200_000, b'"\xff"', b"\x00" * 64):
        with pytest.raises(InputError, match=r"line 7: not JSON \(.*\); cut"):
            load_line(tmp_path, 7, line, "; cut")


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"a": 1, "b": {"score": 1, "score": 0}}', "'score'"),
        ('{"a" : 1, "a"\n: 2, "b": "x: y"}', "'a'"),
        ('[{"x": ["\\"a\\": :"], "a": NaN, "a": 1}]', "'a'"),
        ('{"\\u0061": 1, "a": 1}', "'a'"),
        ('{"a": 1, "a": 0, "b": "x\\u003ay"}', "'a'"),
        ('{"a": 1, "a": 0, "b": "\\u003A"}', "'a'"),
    ],
)
def test_a_name_that_stands_twice_in_an_object_is_refused(tmp_path, monkeypatch, installed, text, name):
    if not installed:
        paths._codec.cache_clear()
        monkeypatch.setitem(sys.modules, "orjson", None)
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError, match=f"{name} is in one of its objects twice"):
        load(path)
    with pytest.raises(InputError, match=f"line 3: .*{name} is in one of its objects twice"):
        load_line(path, 3, text.encode(), "")
    assert paths.loads(b'{"a": "b: \\u003a", "b": {"a": 1}, "c": [{"a": ":"}]}')["a"] == "b: :"
    paths._codec.cache_clear()


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 12345678901234567890123])
def test_a_whole_number_beyond_64_bits_keeps_its_digits(number):
    """As names of questions, two of them would be one."""
    assert paths.loads(f'{{"id": {number}, "b": [1.50, 1e-05]}}'.encode()) == {"id": number, "b": [1.5, 1e-05]}
