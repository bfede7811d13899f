"""The README's pictures: there, small, and of both schemes."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SPEC = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
assert SPEC is not None
assert SPEC.loader is not None
pictures = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(pictures)


@pytest.mark.parametrize("scheme", sorted(pictures.PAPERS))
@pytest.mark.parametrize("what", ["compare", "terminal"])
def test_every_picture_is_there_and_small(what: str, scheme: str) -> None:
    data = (DOCS / "images" / f"{what}-{scheme}.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) <= pictures.MOST
    width, height = struct.unpack(">II", data[16:24])
    assert width > 1500, "sharp on fine screens"
    assert height > 500


def test_a_terminal_keeps_its_colours_and_loads_nothing() -> None:
    text = pictures.terminal("plain \x1b[1;32mgreen\x1b[0m <b>", "dark")
    assert pictures.PAPERS["dark"][0] in text
    assert "font-weight: bold" in text
    assert "&lt;b&gt;" in text
    assert "http" not in text
