"""The README's pictures: there, small, of both schemes, and of what the page shows today."""

from __future__ import annotations

import importlib.util
import json
import struct
from pathlib import Path

import pytest

import harness_noise as hn

DOCS = Path(__file__).parents[2] / "docs"
SPEC = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
assert SPEC is not None
assert SPEC.loader is not None
pictures = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(pictures)


@pytest.mark.parametrize("scheme", pictures.SCHEMES)
def test_every_picture_is_there_and_small(scheme: str) -> None:
    data = (DOCS / "images" / f"compare-{scheme}.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) <= pictures.MOST
    width, height = struct.unpack(">II", data[16:24])
    assert width > 1500, "sharp on fine screens"
    assert height > 500


def test_no_picture_is_stale() -> None:
    made_of = json.loads(pictures.MADE_OF.read_text(encoding="utf-8"))
    assert pictures.ingredients(pictures.compared()) == made_of, "`make pictures`, and look at them"


def test_the_pictures_have_no_caveat_and_the_readme_shows_what_is_printed_today() -> None:
    assert "few_flips" not in pictures.compared()
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    a, e = (pictures.simulated(f"sim-{name}") for name in "ae")
    assert pictures.printed(hn.compare(a, e), 80) in readme
