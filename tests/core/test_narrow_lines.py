"""Lines of which only some names are decoded say the same as lines that are decoded whole."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from harness_noise import InputError
from harness_noise_adapters.tables.files import narrow, objects
from harness_noise_adapters.tables.narrow import MOST_NAMES, Narrow

pytest.importorskip("msgspec", reason="msgspec is not installed")
NAMES = ["id", "score", "error"]
LINE = {"id": "q1", "score": {"value": 1.0}, "text": 'A ": colon, and \n a break', "list": [{"id": "not this"}]}


def written(folder: Path, *lines: str | bytes) -> Path:
    path = folder / "lines.jsonl"
    path.write_bytes(b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines))
    return path


def both(path: Path) -> tuple[list[tuple[int, list[object]]], list[tuple[int, list[object]]]]:
    """What `narrow` reads, and what the whole lines say."""
    some = [
        (line, [block.column(name)[i] for name in NAMES])
        for block in narrow(path, NAMES)
        for i, line in enumerate(block.lines)
    ]
    whole = [
        (line, [row.get(name) for name in NAMES])
        for lines, rows in objects(path)
        for line, row in zip(lines, rows, strict=True)
    ]
    return some, whole


@pytest.mark.parametrize(
    "odd",
    [
        json.dumps(LINE | {"id": None, "score": None, "error": None}),
        json.dumps(LINE | {"error": "timeout", "another": 1}),
        json.dumps({"id": "q2"}),
        json.dumps(LINE | {"id": 2**64 + 1}),
        r'{"id": "q\u003a", "score": 0.5}',
        json.dumps(LINE | {"text": "ü, Ü\U0001f600"}, ensure_ascii=False),
        '{"id": "q3", "score": -Infinity, "text": "a"}',
        r'{"\u0069d": "q4", "score": 2, "text": "\ud800"}',
        "",
        "  {}  ",
    ],
)  # fmt: skip
@pytest.mark.parametrize("known", [True, False])
def test_narrow_lines_hold_what_whole_lines_hold(tmp_path, monkeypatch, odd, known):
    monkeypatch.setattr("harness_noise_adapters.tables.files._DECODED", 1)  # each line for itself
    if not known:
        monkeypatch.setitem(sys.modules, "msgspec", None)
    some, whole = both(written(tmp_path, json.dumps(LINE), odd, json.dumps(LINE), odd, odd))
    assert some == whole


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ('{"id": "q", "score": 0, "score": 1}', "'score' is in one of its objects twice"),
        (r'{"id": "q", "score": 0, "sc\u006fre": 1}', "'score' is in one of its objects twice"),
        ('{"id": "q", "text": 0, "text": 1}', "'text' is in one of its objects twice"),
        ('{"id": "q", "score": {"a": 1, "a": 2}}', "'a' is in one of its objects twice"),
        (r'{"id": "q\u003a", "score": 0, "score": 1}', "'score' is in one of its objects twice"),
        (r'{"id": "q\u003A", "score": 0, "score": 1}', "'score' is in one of its objects twice"),
        ("[1]", "not an object with columns, but list"),
        ('{"id": "q", "text": "cut', "not JSON"),
        (b'{"id": "q", "text": "\xff"}', "not UTF-8"),
        ('{"id": "q"} {"id": "r"}', "not JSON"),
        ('{"id": "q"} {"id": "r"}\n', "not JSON"),  # as many objects as lines
        ('{"id": "q"} {"id": "r"}\r\n \r', "not JSON"),
        ('{"id": "q", "text": ' + "[" * 200_000, "not JSON|nested too deeply"),
    ],
)
def test_narrow_lines_are_refused_as_whole_lines_are(tmp_path, odd, said):
    path = written(tmp_path, *([json.dumps(LINE)] * 2000), odd, json.dumps(LINE))
    for read in (lambda: list(objects(path)), lambda: list(narrow(path, NAMES))):
        with pytest.raises(InputError, match=f"line 2001: .*(?:{said})"):
            read()


def test_a_name_inside_an_unread_value_may_stand_twice():
    decoder, line = Narrow(NAMES), json.dumps(LINE).encode()
    decoder.learn([LINE])
    assert decoder.cells(line.replace(b'{"id": "not', b'{"id": 1, "id": "not'), 1) is not None
    assert decoder.cells(line.replace(b'"value": ', b'"value": 0, "value": '), 1) is None


def test_narrow_decoder_takes_usual_lines_alone():
    decoder, line = Narrow(NAMES), json.dumps(LINE).encode()
    assert decoder.cells(line, 1) is None
    decoder.learn([LINE])
    assert decoder.cells(line + b"\n" + line, 2) == {
        "id": ["q1"] * 2,
        "score": [{"value": 1.0}] * 2,
        "error": [None] * 2,
    }
    assert decoder.cells(line + b"\r\n" + line + b"\r\n", 2) is not None
    assert decoder.cells(line, 2) is None
    for blank in (b"\n", b"\r\n", b" \n", b"\t\r\n"):
        assert decoder.cells(line + b" " + line + b"\n" + blank, 2) is None
        assert decoder.cells(blank + line + b" " + line, 2) is None
    assert decoder.cells(line + b" " + line + b"\n  ", 2) is None
    assert decoder.cells(b"\n", 1) is decoder.cells(b"{\n", 1) is None
    decoder.learn([{f"{i}": 0 for i in range(MOST_NAMES)}])
    assert decoder.cells(b'{"0": 1}', 1) is None
