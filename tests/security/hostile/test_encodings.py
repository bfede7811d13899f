"""Outside of UTF-8 a minus sign stays one."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness_noise.cli import streams

from .limits import table

pytestmark = pytest.mark.process


def said(encoding: str, *words: object) -> bytes:
    environment = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "harness_noise", *map(str, words)], env=environment, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_an_encoding_lacks_is_ascii(tmp_path: Path) -> None:
    words = "compare", table(tmp_path / "a.csv", 20), table(tmp_path / "b.csv", 25), "--format"
    assert "−" in said("utf-8", *words, "sentence").decode()
    for encoding in ("ascii", "latin-1", "cp1252", "ascii:surrogateescape"):
        found = said(encoding, *words, "sentence").decode(encoding.partition(":")[0])
        assert "?" not in found
        assert "a - b = -12.5 " in found
        assert ("±" in found) == (encoding in ("latin-1", "cp1252"))
    assert "?" not in said("ascii", *words, "table").decode("ascii")


def test_without_posix_a_console_does_not_die(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="cp437", errors="strict")
    monkeypatch.setattr(streams.os, "name", "nt")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict"))
    streams.harden()
    print("[−0.084, 0.114] ± – × ─ ★ é 名")
    stream.flush()
    assert raw.getvalue().decode("cp437").rstrip() == "[-0.084, 0.114] ± - x ─ * é ?"


def test_our_own_characters_are_all_known() -> None:
    """Whatever a sentence, a table or a legend is written with."""
    root = Path(streams.__file__).parents[1]
    used = {
        c for part in ("report", "results", "cli") for path in (root / part).rglob("*.py") for c in path.read_text()
    }
    shown = {c for c in used if not c.isascii() and not c.isalpha() and in_question(c)}
    assert shown <= {"\ufffd"}


def in_question(character: str) -> bool:
    error = UnicodeEncodeError("ascii", character, 0, 1, "")
    return streams.in_ascii(error)[0] == "?"
