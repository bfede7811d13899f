"""Files of weights and chances that cannot be read say so."""

from __future__ import annotations

from pathlib import Path

import pytest

import harness_noise as hn


@pytest.mark.parametrize("keyword", ["weights", "chance"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("task,NAME\nalpha,1\nbéta,0.5\n".encode("latin-1"), "no text in UTF-8"),
        (b"task,NAME\nalpha,1\n\0beta,0.5\n", "bytes of another kind"),
        (b"task,NAME\nalpha," + b"1" * 200_000 + b"\n", "no table"),
        (b"task,NAME,source\nalpha,1,hard\n", "this one has task, (weight|chance), source"),
        (b"task,NAME\nalpha,1,hard\n", "line 2: it has more cells"),
    ],
)
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, keyword: str, content: bytes, said: str) -> None:
    name = "weight" if keyword == "weights" else "chance"
    path = tmp_path / "given.csv"
    path.write_bytes(content.replace(b"NAME", name.encode()))
    scores = hn.as_scores([[1.0], [0.0], [1.0]], task="alpha")
    with pytest.raises(hn.InputError, match=said):
        hn.analyze(hn.Run("a", "a", "x", scores=(scores,)), **{keyword: str(path)})
