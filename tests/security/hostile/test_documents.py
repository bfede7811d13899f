"""A document that is held in memory as a whole has an end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness_noise.io import paths

from .limits import refused, shown

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="the limits of memory and time need Linux"),
]

EMPTY = b"[]," * 20_000_000 + b"[]"


@pytest.mark.parametrize(
    ("name", "start", "end"),
    [
        ("a.json", b"[", b"]"), ("a.json", b'{"rows": [', b"]}"),
        ("results_a.json", b'{"results": {"a": {"x": [', b"]}}}"),
        ("b.json", b'{"version": 2, "status": "success", "eval": {"task": "t", "x": [', b"]}}"),
    ],
)  # fmt: skip
def test_sixty_megabytes_of_empty_lists(tmp_path: Path, name: str, start: bytes, end: bytes) -> None:
    (tmp_path / name).write_bytes(start + EMPTY + end)
    refused("analyze", tmp_path / name)


def test_commas_of_texts_are_no_values(tmp_path: Path) -> None:
    rows = [f'{{"question": "{i} {"," * 120_000}", "score": {i % 2}}}' for i in range(50)]
    (tmp_path / "a.json").write_text(f"[{', '.join(rows)}]")
    (row,) = shown("analyze", tmp_path / "a.json")["estimates"]
    assert row["n_questions"] == 50


def test_values_are_counted_outside_of_texts() -> None:
    paths.check_nodes(b'["' + b',\\"[' * 4_000_000 + b'"]')
    with pytest.raises(ValueError, match="5 million values"):
        paths.check_nodes(b"[" + b"1," * 5_100_000 + b"1]")
